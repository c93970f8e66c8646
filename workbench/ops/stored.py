"""Elementwise computation on the stored entries of sparse arrays: one array, one with a dense one, or the union of two.

Results are canonical: csr and csc sorted, duplicates summed before anything is computed. They share no memory with the
inputs.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from workbench import formats
from workbench.formats import RowSparse
from workbench.formats.arrays import canonical

SPARSE = ("csr", "csc", "coo", "row_sparse")
MATRICES = SPARSE[:3]

Function = Callable[..., np.ndarray]


def same_places(x: Any, y: Any) -> bool:
    """Return whether two arrays of one sparse format store the same positions in the same order. O(stored)."""
    ours, theirs = (list(formats.get(each.format).parts(each).values())[1:] for each in (x, y))
    return all(one is two or np.array_equal(one, two) for one, two in zip(ours, theirs, strict=True))


def map_stored(x: Any, f: Function) -> Any:
    """Return an array with values f(stored values of x), at the positions of `x`; duplicates are summed first.

    That is needed even for linear `f`: 2 and -1 times infinity sum to NaN.
    """
    return with_values(canonical(x), f)


def with_values(x: Any, f: Function) -> Any:
    """Return an array with `f(stored values)` at the positions of a canonical x, in its format; indices are copied."""
    format = formats.get(x.format)
    (name, values), *indices = format.parts(x).items()
    data = np.ascontiguousarray(f(values))
    return format.build({name: data} | {key: part.copy() for key, part in indices}, x.shape)


def places(x: Any) -> tuple[np.ndarray, ...]:
    """Return the NumPy index of the stored values in a dense array: (rows,) of row_sparse, else (rows, columns)."""
    if x.format == "row_sparse":
        return (x.indices,)
    if x.format == "coo":
        return x.row, x.col
    major = np.repeat(np.arange(len(x.indptr) - 1), np.diff(x.indptr))
    return (major, x.indices) if x.format == "csr" else (x.indices, major)


def values(x: Any) -> np.ndarray:
    """Return the array of stored values, not copied."""
    return x.values if x.format == "row_sparse" else x.data


def with_dense(x: Any, dense: np.ndarray, f: Function) -> Any:
    """Return x with the stored values replaced by f(them, values of `dense` at their positions); duplicates are summed.

    `dense` is broadcast to the shape of `x`.
    """
    x = canonical(x)
    there = np.broadcast_to(dense, x.shape)[places(x)]
    return with_values(x, lambda stored: f(stored, there))


def with_any(x: Any, y: Any, f: Function) -> Any:
    """Return `f(stored value, value of y)` at the positions of `x`, in its format; `y` has its shape and any format."""
    x = canonical(x)
    there = _read(y, places(x))
    return with_values(x, lambda stored: f(stored, there))


def _read(y: Any, index: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the values of y, dense or sparse, at `index`: (rows,) as whole rows, or (rows, columns).

    0 if not stored.
    """
    if isinstance(y, np.ndarray):
        return y[index]
    if y.format == "row_sparse":
        whole = np.concatenate([y.values, np.zeros((1, *y.shape[1:]), y.dtype)])  # the last row is for those not stored
        at = np.searchsorted(y.indices, index[0])
        at[np.isin(index[0], y.indices, invert=True)] = -1
        return whole[(at, *index[1:])]
    y = formats.to_format(y, "csr")
    if len(index) == 1:
        return y[index].toarray()
    return np.asarray(y[index]) if index[0].size else np.zeros(0, y.dtype)


def onto_dense(
    dense: np.ndarray, x: Any, f: Function, out: np.ndarray | None, first: Function | None = None
) -> np.ndarray:
    """Return `first(dense)`, broadcast to the shape of `x`, with `f(that, stored)` at the positions of x; dense.

    Written to `out` if given; `first` None is the identity, else a ufunc with `out`.
    """
    x = canonical(x)
    if out is None:
        out = np.empty(x.shape, dense.dtype)
    np.copyto(out, dense)
    if first is not None:
        first(out, out=out)
    there = places(x)
    out[there] = f(out[there], values(x))
    return out


def union(x: Any, y: Any, f: Function) -> Any:
    """Return `f` of two arrays at every position that one of them stores; `f(0, 0)` must be zero.

    The arrays have one format, shape and dtype. Zero results stay stored. A product stores the entries that both store;
    of row_sparse arrays all rows.
    """
    if x.format == "row_sparse":
        return _union_of_rows(x, y, f)
    if x.format == "coo":
        as_csr = union(formats.to_format(x, "csr"), formats.to_format(y, "csr"), f)
        return formats.to_format(as_csr, "coo")
    return _union_of_entries(canonical(x), canonical(y), f)


def _union_of_rows(x: RowSparse, y: RowSparse, f: Function) -> RowSparse:
    """Return `f` over the union of the rows of two row_sparse arrays; a product is zero in rows of only one."""
    if f in (np.add, np.subtract) and x.dtype in (np.float32, np.float64):
        width = math.prod(x.shape[1:])
        right = y.values if f is np.add else -y.values
        tables = [part.reshape(len(part), width) for part in (x.values, right)]
        indices, sums = kernels.get("add_rows").trusted(x.indices, tables[0], y.indices, tables[1])
        return RowSparse.assemble(sums.reshape(len(indices), *x.shape[1:]), indices, x.shape)
    indices = np.union1d(x.indices, y.indices)
    sides = []
    for side in (x, y):
        full = np.zeros((len(indices), *x.shape[1:]), x.dtype)
        full[np.searchsorted(indices, side.indices)] = side.values
        sides.append(full)
    result = np.asarray(f(*sides))
    if f is np.multiply:  # also where the other is inf or NaN
        result[np.isin(indices, np.intersect1d(x.indices, y.indices), invert=True)] = 0
    return RowSparse.assemble(result, indices, x.shape)


def _union_of_entries(x: Any, y: Any, f: Function) -> Any:
    """Return `f` over the union of the entries of two canonical csr or csc matrices.

    A product over their intersection.
    """
    if same_places(x, y):
        return with_values(x, lambda values: f(values, y.data))
    # Numbers of the entries, from one, y's beyond all of x's: their sum says where each entry of the union comes from.
    both = _number_values(x, 1) + _number_values(y, x.nnz + 1)
    ours, theirs = both.data % (x.nnz + 1), both.data // (x.nnz + 1)
    if f is np.multiply:
        kept = (ours > 0) & (theirs > 0)
        return _kept(both, kept, f(x.data[ours[kept] - 1], y.data[theirs[kept] - 1]))
    return _kept(both, None, np.asarray(f(_take_values(x.data, ours), _take_values(y.data, theirs))))


def _number_values(x: Any, unit: int) -> Any:
    """Return csr or csc `x` with the int64 values unit, 2 unit, 3 unit ... in place of its own, over its indices."""
    parts = {"data": np.arange(1, x.nnz + 1, dtype=np.int64) * unit, "indices": x.indices, "indptr": x.indptr}
    return formats.get(x.format).build(parts, x.shape)


def _kept(x: Any, kept: np.ndarray | None, data: np.ndarray) -> Any:
    """Return the entries of csr or csc x where the mask `kept` is set (None: all), with the values `data`."""
    parts = {"data": data, "indices": x.indices, "indptr": x.indptr}
    if kept is not None:
        before = np.concatenate([[0], np.cumsum(kept)])  # [nnz + 1]
        parts |= {"indices": x.indices[kept], "indptr": before[x.indptr].astype(x.indices.dtype)}
    return formats.get(x.format).build(parts, x.shape)


def _take_values(data: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return data[numbers - 1] of `data` [z] for 1-based `numbers`, zero where the number is 0."""
    return np.concatenate([np.zeros(1, data.dtype), data])[numbers]
