"""Text files in the svmlight (LIBSVM) form: a line a row, `label index:value index:value ...`, plain, .gz or .bz2."""

import os

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset import Dataset
from workbench.data.files import dataset_of, fingerprint, reading

LICENCE = "that of the file"


def make(
    path: str | os.PathLike, features: int | None = None, zero_based: bool | str = "auto", kind: str = "auto"
) -> Dataset:
    """The rows of the file, columns as numbered in it.

    `features` is the number of columns, None the highest index there is: give it when a test file must fit a training
    file. `zero_based` says whether columns count from 0; `auto` takes them to do so when a 0 occurs. `kind` of labels:
    `classes`, `targets`, or `auto`, which takes up to 1000 distinct whole numbers for classes. Refused (`DataError`):
    a missing or malformed file, columns unsorted, twice in a row or beyond `features`.
    """
    from sklearn.datasets import load_svmlight_file  # a second to import, and only this reader needs it

    with reading(path, "svmlight text (each line: label column:value ...)"):
        try:
            x, y = load_svmlight_file(os.fspath(path), n_features=features, dtype=np.float64, zero_based=zero_based)
        except OverflowError:
            raise ValueError("a column number is above 2**31 - 1; hash the columns to fewer") from None
        return dataset_of("svmlight", x, y, kind, path, LICENCE)


register(Source("svmlight", make, "a file of yours", LICENCE, lambda path, **rest: fingerprint(path)))
