"""Documents: a text file with one a line, or a folder with a folder of files for each class; words become columns."""

import collections
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, canonical
from workbench.data.errors import DataError
from workbench.data.files.reading import blocks_of_file, dataset_of, reading
from workbench.data.labels import GUESSED, NONE, Wanted
from workbench.data.stored.converting import blocks_of
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
    wanted: Wanted = GUESSED,
) -> Dataset:
    """Return the data set of documents: a row for each, a column for each word, or `hashed` columns for all words.

    In a file each line is a document; with `label="first"` it begins with its label and the `separator`, else `labels`
    is a file of them (.npy, or text with one a line). In a folder each subfolder is a class and each file in it a
    document, as `sklearn.datasets.load_files` has it. Files may be compressed; `encoding` is theirs. `hashed` to `idf`
    are those of `Words`; a file read `like` another one has its words. `kind`, `positive`, `classes` and `unseen` are
    as those of `svmlight`. Raises DataError, with the line, for files that are not text, and if there are no words.
    """
    words = Words(hashed, weighting, ngrams, least_documents, most_features, lower, vocabulary, idf)
    came: list[str] = []
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding, wanted.kind != NONE)
        x, words = words.columns(_pass_labels(documents, came), path)
        y, reread = documents.labels(came), words.reading_options() | documents.reading_options()
        return dataset_of("text", x, y, wanted, path, documents.place, licence=LICENCE, reread=reread)


def blocks(
    path: str | os.PathLike,
    label: str = "none",
    separator: str = "\t",
    labels: str | os.PathLike | None = None,
    encoding: str = "utf-8",
    wanted: Wanted = GUESSED,
    **of_words: Any,
) -> RowBlocks:
    """Return the documents in blocks of some thousand rows if words are hashed or given, else in one block.

    Parameters are those of `make`. Memory holds the labels and a block; words that are to be found are counted in
    memory. Raises DataError if numbers of labels and documents differ. `positive`, `classes` and `unseen` are unused.
    """
    words = Words(**of_words)
    if not words.is_learned:
        return blocks_of(make(path, label, separator, labels, encoding, wanted=wanted, **of_words))
    came: list[str] = []
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding, wanted.kind != NONE)
        collections.deque(_pass_labels(documents, came), maxlen=0)
        dtype = documents.labels(came).dtype
        if documents.given is not None and len(documents.given) != documents.count:
            counts = f"{documents.count} rows and {len(documents.given)} labels"
            raise DataError(f"{path} has {counts}; there must be one for each row.")
    facts = {"duplicate_entries": 0, "reread": words.reading_options() | documents.reading_options()}
    return blocks_of_file("text", _blocks(documents, words, dtype), path, None, facts, LICENCE)


def _pass_labels(documents: Documents, came: list[str]) -> Iterator[str]:
    """Yield the documents one by one, and append their labels to `came`."""
    for some, labels in documents.parts():
        came += labels
        yield from some


def _blocks(documents: Documents, words: Words, dtype: np.dtype) -> Iterator[RowBlock]:
    """Yield the documents as CSR blocks with their labels, converted to `dtype` or taken from the file of labels."""
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


register(Source("text", make, "files of yours", LICENCE, files_read, takes_folder=True, blocks=blocks))
