"""Documents: a text file with one a line, or a folder with a folder of files for each class; words become columns."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, canonical
from workbench.data.dataset.row_blocks import RowBlock, RowBlocks
from workbench.data.errors import DataError
from workbench.data.files.reading import dataset_of, reading
from workbench.data.labels.meaning import NONE, Wanted
from workbench.data.text.documents import Documents, files_read
from workbench.data.text.words import Words

LICENCE = "that of the files"


def make(
    path: str | os.PathLike,
    label: str = "none",
    separator: str = "\t",
    labels: str | os.PathLike | None = None,
    encoding: str = "utf-8",
    hashed: int | None = None,
    weighting: str = "count",
    ngrams: int = 1,
    least_documents: int = 1,
    most_features: int | None = None,
    lower: bool = True,
    vocabulary: Sequence[str] | None = None,
    idf: Sequence[float] | None = None,
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
) -> Dataset:
    """Return a row for each document, a column for each word or, with `hashed`, so many for all.

    Of a file each line is a document; with `label="first"` it begins with its label and the `separator`, else `labels`
    is a file of them (.npy, or text with one a line). Of a folder each sub-folder is a class and each file in it a
    document, as `sklearn.datasets.load_files` has it. Files may be packed; `encoding` is theirs. `hashed` to `idf` are
    those of `word_columns.Words`; a file read `like` another one has its words. `kind`, `positive`, `classes` and
    `unseen` are as those of `svmlight`. Refused (`DataError`): files that are no text, with the line; no words at all.
    """
    wanted = Wanted(kind, positive, classes, unseen)
    words = Words(hashed, weighting, ngrams, least_documents, most_features, lower, vocabulary, idf)
    came: list[str] = []
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding, kind != NONE)
        x, words = words.columns(_noted(documents, came.extend), path)
        dataset = dataset_of("text", x, documents.labels(came), wanted, path, LICENCE, documents.place)
    return dataclasses.replace(dataset, facts={**dataset.facts, "reread": words.alike() | documents.alike()})


def blocks(
    path: str | os.PathLike,
    label: str = "none",
    separator: str = "\t",
    labels: str | os.PathLike | None = None,
    encoding: str = "utf-8",
    kind: str | None = None,
    positive: Any = None,
    classes: Sequence[Any] | None = None,
    unseen: Any = None,
    **of_words: Any,
) -> RowBlocks:
    """Return the documents, some thousand at a time, after a look through them for words and the type of their labels.

    Held are the words with two numbers each, the different labels, and a file of labels; with `hashed` no words.
    """
    words = Words(**of_words)
    distinct: set[str] = set()
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding, kind != NONE)
        words = words.learn(_noted(documents, distinct.update), path)
        dtype = documents.labels(sorted(distinct)).dtype
        if documents.given is not None and len(documents.given) != documents.count:
            counts = f"{documents.count} rows and {len(documents.given)} labels"
            raise DataError(f"{path} has {counts}; there must be one for each row.")
    facts = {"duplicate_entries": 0, "reread": words.alike() | documents.alike()}
    return RowBlocks(_blocks(documents, words, dtype), "text", f"the file {Path(path).name}", LICENCE, facts=facts)


def _noted(documents: Documents, note: Callable[[list[str]], None]) -> Iterator[list[str]]:
    """Yield the documents in parts; pass their labels to `note`."""
    for some, labels in documents.parts():
        note(labels)
        yield some


def _blocks(documents: Documents, words: Words, dtype: np.dtype) -> Iterator[RowBlock]:
    """Yield the documents in blocks as CSR rows of word columns, with their labels."""
    row = 0
    with reading(documents.path, "text"):
        for some, labels in documents.parts():
            given, row = slice(row, row + len(some)), row + len(some)
            y = (
                np.array(labels, np.str_ if dtype.kind == "U" else dtype)
                if documents.given is None
                else documents.given[given]
            )
            yield RowBlock(canonical(words.rows(some)), y)


register(
    Source(
        "text",
        make,
        "files of yours",
        LICENCE,
        lambda path, labels=None, **rest: files_read(path, labels),
        takes_folder=True,
        blocks=blocks,
    )
)
