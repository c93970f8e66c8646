"""Text files in the svmlight (LIBSVM) form: a line a row, `label index:value index:value ...`, plain, .gz or .bz2."""

import os

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset import DataError, Dataset
from workbench.data.files import dataset_of, fingerprint, reading
from workbench.data.svmlight_text import first_fault

LICENCE = "that of the file"


def make(
    path: str | os.PathLike, features: int | None = None, zero_based: bool | str = "auto", kind: str = "auto"
) -> Dataset:
    """The rows of the file, columns as numbered in it.

    `features` is the number of columns, None the highest index there is: give it when a test file must fit a training
    file. `zero_based` says whether columns count from 0; `auto` takes them to do so when a 0 occurs. `kind` of labels:
    `classes`, `targets`, or `auto`, which takes up to 1000 distinct whole numbers for classes. Refused (`DataError`):
    a missing or malformed file; columns unsorted, twice in a row or beyond `features`, with the line.
    """
    from sklearn.datasets import load_svmlight_file  # a second to import, and only these readers need it

    with reading(path, "svmlight text (each line: label column:value ...)"):
        try:
            x, y = load_svmlight_file(os.fspath(path), n_features=features, dtype=np.float64, zero_based=zero_based)
            return dataset_of("svmlight", x, y, kind, path, LICENCE)
        except (ValueError, OverflowError):
            if said := first_fault(path, features, zero_based is not False):
                raise DataError(said) from None
            raise


register(Source("svmlight", make, "a file of yours", LICENCE, lambda path, **rest: fingerprint(path)))
