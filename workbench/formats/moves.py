"""Entries and rows moved: by the kernels in the types that they take, by NumPy in the others.

Kernels compute in float32 and float64. Values of float16, int32, int64 and uint8 are held and converted by the
functions here, which take and give what the kernels of their names do; sums of duplicates are made in the type itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from workbench.formats.contract import FLOATS


def get(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """The kernel of that name, or what does its work in a type that kernels do not take."""
    return kernels.get(name).trusted if dtype in FLOATS else PLAIN[name]


def _row_of_each(indptr: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(indptr) - 1, dtype=indptr.dtype), np.diff(indptr))


def _ends(row: np.ndarray, rows: int) -> np.ndarray:
    return np.append(0, np.cumsum(np.bincount(row, minlength=rows))).astype(row.dtype)


def coo_to_csr(row: np.ndarray, col: np.ndarray, data: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
    """`(indptr [rows + 1], indices [nnz], data [nnz])`; the order within a row and duplicates are kept."""
    order = np.argsort(row, kind="stable")
    return _ends(row, rows), col[order], data[order]


def csr_to_csc(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, columns: int) -> tuple[np.ndarray, ...]:
    """`(indptr [columns + 1], indices [nnz], data [nnz])` by columns."""
    return coo_to_csr(indices, _row_of_each(indptr), data, columns)


def csr_to_dense(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, out: np.ndarray) -> None:
    """Written to `out`; duplicates are summed."""
    out[...] = 0
    np.add.at(out, (_row_of_each(indptr), indices), data)


def dense_to_csr(dense: np.ndarray) -> tuple[np.ndarray, ...]:
    """`(indptr [rows + 1], indices [nnz], data [nnz])` of the elements of `dense` [rows, columns] that are not zero."""
    row, col = np.nonzero(dense)
    return _ends(row, len(dense)), col, dense[row, col]


def take_rows(source: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """`out[i] = source[index[i]]`."""
    out[...] = source[index]


def slice_rows(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(indptr [R + 1], indices, data)` of these rows, int64 [R], in this order."""
    lengths = np.diff(indptr)[rows]
    ends = np.append(0, np.cumsum(lengths))
    entries = np.repeat(indptr[rows] - ends[:-1], lengths) + np.arange(ends[-1])
    return ends.astype(indptr.dtype), indices[entries], data[entries]


def scatter_rows(values: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
    """`out[index[i]] = values[i]`."""
    out[index] = values


def merge_rows(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices int64 [U], sorted and unique, and values [U, N], the sums of the rows that have the same."""
    unique, place = np.unique(indices, return_inverse=True)
    sums = np.zeros((len(unique), values.shape[1]), values.dtype)
    np.add.at(sums, place, values)
    return unique, sums


def retain_rows(indices: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stored rows whose index is wanted."""
    kept = np.isin(indices, wanted)
    return indices[kept], values[kept]


PLAIN: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(coo_to_csr, csr_to_csc, csr_to_dense, dense_to_csr),
        *(take_rows, slice_rows, scatter_rows, merge_rows, retain_rows),
    )
}
