"""Conversions of entries and rows: by kernels for float32 and float64, by NumPy for other dtypes.

Values of float16, int32, int64 and uint8 are converted by the functions here, which have the parameters and results of
the kernels of the same names; sums of duplicates are computed in the dtype itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from workbench.formats.contract import FLOATS


def get(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """Return the kernel called `name` for float32 and float64, else the NumPy function of the same name."""
    return kernels.get(name).trusted if dtype in FLOATS else PLAIN[name]


def _row_of_each(indptr: np.ndarray) -> np.ndarray:
    """Return the row index of every entry [nnz] from row pointers [rows + 1], in their dtype."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=indptr.dtype), np.diff(indptr))


def _ends(row: np.ndarray, rows: int) -> np.ndarray:
    """Return row pointers [rows + 1] from the row index of every entry [nnz], in its dtype."""
    return np.append(0, np.cumsum(np.bincount(row, minlength=rows))).astype(row.dtype)


def coo_to_csr(row: np.ndarray, col: np.ndarray, data: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
    """Return (indptr [rows + 1], indices [nnz], data [nnz]) of COO entries; order in a row and duplicates are kept."""
    order = np.argsort(row, kind="stable")
    return _ends(row, rows), col[order], data[order]


def csr_to_csc(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, columns: int) -> tuple[np.ndarray, ...]:
    """Return (indptr [columns + 1], row indices [nnz], data [nnz]) of a CSR matrix compressed by columns."""
    return coo_to_csr(indices, _row_of_each(indptr), data, columns)


def csr_to_dense(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, out: np.ndarray) -> None:
    """Overwrite the dense array `out` [rows, columns] by the CSR matrix (indptr, indices, data).

    Duplicates are summed.
    """
    out[...] = 0
    np.add.at(out, (_row_of_each(indptr), indices), data)


def dense_to_csr(dense: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return (indptr [rows + 1], indices [nnz], data [nnz]) of the nonzero elements of `dense` [rows, columns]."""
    row, col = np.nonzero(dense)
    return _ends(row, len(dense)), col, dense[row, col]


def take_rows(source: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """Overwrite `out` by rows: out[i] = source[index[i]]."""
    out[...] = source[index]


def slice_rows(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indptr [R + 1], indices, data) of the rows `rows` int64 [R] of a CSR matrix, in this order."""
    lengths = np.diff(indptr)[rows]
    ends = np.append(0, np.cumsum(lengths))
    entries = np.repeat(indptr[rows] - ends[:-1], lengths) + np.arange(ends[-1])
    return ends.astype(indptr.dtype), indices[entries], data[entries]


def scatter_rows(values: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """Write rows of `out` [D, N] in place: out[index[i]] = values[i]; other rows are not changed."""
    out[index] = values


def merge_rows(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum rows with equal index: return unique sorted indices int64 [U] and sums [U, N]."""
    unique, place = np.unique(indices, return_inverse=True)
    sums = np.zeros((len(unique), values.shape[1]), values.dtype)
    np.add.at(sums, place, values)
    return unique, sums


def retain_rows(indices: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices [K], values [K, N]) of the stored rows whose index is in `wanted`, in the order of `indices`."""
    kept = np.isin(indices, wanted)
    return indices[kept], values[kept]


PLAIN: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(coo_to_csr, csr_to_csc, csr_to_dense, dense_to_csr),
        *(take_rows, slice_rows, scatter_rows, merge_rows, retain_rows),
    )
}
