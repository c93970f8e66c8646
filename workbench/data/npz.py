"""Matrices saved by `scipy.sparse.save_npz`, with labels saved by `numpy.save`. Files that hold pickles are refused."""

import os

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
        with open(labels, "rb") as file:
            y = np.lib.format.read_array(file, allow_pickle=False)
        if y.ndim not in (1, 2) or y.dtype.kind not in "biufUS":
            raise DataError(f"{labels} holds {y.dtype} {y.shape}; labels are numbers or strings, one for each row.")
    with reading(path, "a SciPy matrix"):
        return dataset_of("npz", scipy.sparse.load_npz(path), y, kind, path, LICENCE)


register(Source("npz", make, "files of yours", LICENCE, lambda path, labels, **rest: fingerprint(path, labels)))
