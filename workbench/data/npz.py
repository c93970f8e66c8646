"""Matrices saved by `scipy.sparse.save_npz`, with labels saved by `numpy.save`. Files that hold pickles are refused."""

import os
import zipfile

import numpy as np
import scipy.sparse

from workbench.data.contract import Source, register
from workbench.data.dataset import DataError, Dataset
from workbench.data.files import dataset_of, fingerprint, reading

LICENCE = "that of the file"


def make(path: str | os.PathLike, labels: str | os.PathLike, kind: str = "auto") -> Dataset:
    """The csr, csc or coo matrix in `path` with the labels in `labels` (.npy, one a row).

    `kind` of labels: `classes`, `targets`, or `auto`, which takes strings and up to 1000 distinct whole numbers for
    classes. Refused (`DataError`): missing or malformed files, other formats, Python objects.
    """
    with reading(labels, "NumPy labels"):
        y = np.load(labels, allow_pickle=False)
        if not isinstance(y, np.ndarray) or y.ndim not in (1, 2) or y.dtype.kind not in "biufUS":
            raise DataError(f"{labels} does not hold labels; save one array of numbers or strings, one a row.")
    with reading(path, "a SciPy matrix"):
        try:
            x = scipy.sparse.load_npz(path)
        except zipfile.BadZipFile as error:
            raise ValueError(error) from error
        return dataset_of("npz", x, y, kind, path, LICENCE)


register(Source("npz", make, "files of yours", LICENCE, lambda path, labels, **rest: fingerprint(path, labels)))
