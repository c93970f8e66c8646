"""Matrices without labels in files of any kind: saved by SciPy, or Matrix Market text."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError
from workbench.data.files.matrix_market import is_market, read_market
from workbench.data.files.reading import reading
from workbench.data.files.types import looks_like, starts_with
from workbench.data.labels.meaning import format_names
from workbench.formats.files import check_members

ZIP = b"PK\x03\x04"
SAVED = "a SciPy matrix"
INDICES = ("indices", "indptr", "row", "col", "coords", "offsets")
"""Members of an archive of a SciPy matrix that hold whole numbers."""
WHAT = "a matrix (.npz by scipy.sparse.save_npz, or Matrix Market .mtx)"


def read_matrix(path: str | os.PathLike) -> Any:
    """Return the matrix, in the format that it is stored in, duplicates and explicit zeros kept (`DataError`).

    Its indices are as the file has them: the caller checks them (`formats.enter`, `dataset.canonical`).
    """
    with reading(path, WHAT):
        if starts_with(path, ZIP):
            return read_saved(path)
        if not is_market(path):
            looks, advice = looks_like(path)
            raise DataError(f"{path} cannot be read as {WHAT}: it looks like {looks}. {advice}.")
        made = read_market(path)
        return scipy.sparse.coo_array(made) if isinstance(made, np.ndarray) else made


def read_saved(path: str | os.PathLike) -> Any:
    """Return the matrix in an archive of `scipy.sparse.save_npz` (`DataError`); no pickles."""
    with read_scipy_archive(path), open(path, "rb") as file:
        for name, header in check_members(file).items():
            if name.removesuffix(".npy") in INDICES and header.dtype.kind not in "iu":  # which SciPy would cut
                advice = "indices are whole numbers. Save the matrix again by scipy.sparse.save_npz"
                raise ValueError(f"its member {name!r} holds {header.dtype}; {advice}")
    return scipy.sparse.load_npz(path)


@contextmanager
def read_scipy_archive(path: str | os.PathLike) -> Iterator[Any]:
    """The archive of a matrix by SciPy, its members looked at (`DataError`, `ValueError`)."""
    with read_npz_arrays(path) as archive:
        if "format" not in archive.files:
            held = f"it holds the arrays {format_names(archive.files)}"
            raise DataError(f"{path} cannot be read as {SAVED}: {held}. Save one by scipy.sparse.save_npz.")
        format = archive["format"]
        if format.ndim or format.dtype.kind not in "SU":
            held = f"its format is {format.dtype} {list(format.shape)}, and is the name of one"
            raise DataError(f"{path} cannot be read as {SAVED}: {held}. Save one by scipy.sparse.save_npz.")
        yield archive


@contextmanager
def read_npz_arrays(path: str | os.PathLike) -> Iterator[Any]:
    """An .npz archive whose members are what they claim to be (`ValueError`)."""
    with open(path, "rb") as file:
        check_members(file)
    with np.load(path, allow_pickle=False) as archive:
        yield archive
