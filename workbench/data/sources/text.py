"""Documents: a text file with one a line, or a folder with a folder of files for each class; words become columns."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from workbench.data.contract import Source, register
from workbench.data.dataset import Dataset
from workbench.data.documents import Documents, state_of
from workbench.data.files import dataset_of, reading
from workbench.data.labels import Wanted
from workbench.data.word_columns import Words

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
    """A row for each document, a column for each word or, with `hashed`, so many for all.

    Of a file each line is a document; with `label="first"` it begins with its label and the `separator`, else `labels`
    is a file of them (.npy, or text with one a line). Of a folder each sub-folder is a class and each file in it a
    document, as `sklearn.datasets.load_files` has it. Files may be packed; `encoding` is theirs. `hashed` to `idf` are
    those of `word_columns.Words`; a file read `like` another one has its words. `kind`, `positive`, `classes` and
    `unseen` are as those of `svmlight`. Refused (`DataError`): files that are no text, with the line; no words at all.
    """
    wanted = Wanted(kind, positive, classes, unseen)
    words = Words(hashed, weighting, ngrams, least_documents, most_features, lower, vocabulary, idf)
    with reading(path, "text"):
        documents = Documents(path, label, separator, labels, encoding)
        x, alike = words.columns(documents, path)
        given, place = documents.labels()
        dataset = dataset_of("text", x, given, wanted, path, LICENCE, place)
    alike |= {"label": label, "separator": separator, "encoding": encoding}
    return dataclasses.replace(dataset, facts={**dataset.facts, "reread": alike})


register(
    Source(
        "text",
        make,
        "files of yours",
        LICENCE,
        lambda path, labels=None, **rest: state_of(path, labels),
        takes_folder=True,
    )
)
