"""Parts of products: dense blocks at some rows and columns of a matrix, and CSR forms of sparse matrices."""

from typing import Any, NamedTuple

import numpy as np

import kernels
from kernels import blas
from workbench import formats
from workbench.formats import compressed, numpy_conversions
from workbench.formats.compressed import index_dtype
from workbench.formats.contract import Coo

Index = np.ndarray | None


class Block(NamedTuple):
    """A matrix of `shape` with `values` at `rows` and `columns` (ascending; None: all) and zeros elsewhere."""

    values: np.ndarray
    rows: Index
    columns: Index
    shape: tuple[int, int]


def block_of(x: Any, transposed: bool) -> Block:
    """Return a dense or row_sparse matrix, or its transpose if `transposed`, as a `Block` over the same memory."""
    if isinstance(x, np.ndarray):
        return Block(x.T if transposed else x, None, None, x.shape[::-1] if transposed else x.shape)
    rows = None if len(x.indices) == x.shape[0] else x.indices
    if transposed:
        return Block(x.values.T, None, rows, x.shape[::-1])
    return Block(x.values, rows, None, x.shape)


def common(left: Index, right: Index) -> tuple[Any, Any]:
    """Return index objects for two summed axes that select the positions both have, in the same order.

    `left` and `right` are ascending positions, None for all.
    """
    if left is None and right is None:
        return slice(None), slice(None)
    if left is None:
        return right, slice(None)
    if right is None:
        return slice(None), left
    _, ours, theirs = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return ours, theirs


def multiply(left: Block, right: Block, out: np.ndarray | None = None) -> Block:
    """Return left @ right as a `Block`, by BLAS over their common positions; in `out` if given and its shape fits."""
    ours, theirs = common(left.columns, right.rows)
    shape = left.shape[0], right.shape[1]
    whole = out if left.rows is None and right.columns is None else None
    values = blas.matmul(left.values[:, ours], right.values[theirs], whole)
    return Block(values, left.rows, right.columns, shape)


def finish(block: Block, result: str, out: np.ndarray | None = None) -> Any:
    """Convert a block to the format `result`: dense (in `out` if given), row_sparse or csr."""
    if result == "dense":
        return _dense(block, out)
    return _row_sparse(block) if result == "row_sparse" else full_block_csr(block)


def _dense(block: Block, out: np.ndarray | None) -> np.ndarray:
    """Write the values of a block, and zeros elsewhere, to `out` (None: a new array); return it.

    Without `out` a block of all rows and columns is returned over its own memory if contiguous.
    """
    whole = block.rows is None and block.columns is None
    if whole and (out is None or out is block.values):
        return np.ascontiguousarray(block.values)
    out = np.empty(block.shape, block.values.dtype) if out is None else out
    if whole:
        out[...] = block.values
        return out
    out[...] = 0
    rows, columns = block.rows, block.columns
    out[_place(rows, columns)] = block.values
    return out


def _place(rows: Index, columns: Index) -> tuple:
    """Return the NumPy index of a dense matrix for `rows` and `columns` (None: all)."""
    if rows is not None and columns is not None:
        return np.ix_(rows, columns)
    return (slice(None) if rows is None else rows, slice(None) if columns is None else columns)


def _row_sparse(block: Block) -> formats.RowSparse:
    """Return the block as a RowSparse; columns that it lacks become zero."""
    rows = np.arange(block.shape[0]) if block.rows is None else block.rows.copy()
    values = _dense(Block(block.values, None, block.columns, (rows.size, block.shape[1])), None)
    return formats.RowSparse.assemble(values, rows, block.shape)


def _spread(indptr: np.ndarray, rows: Index, count: int) -> np.ndarray:
    """Return row pointers [count + 1] in which `rows` (None: all) have the entries of `indptr` and other rows none."""
    if rows is None:
        return indptr
    lengths = np.zeros(count + 1, np.int64)
    lengths[rows + 1] = np.diff(indptr)
    return lengths.cumsum()


def full_block_csr(block: Block) -> Any:
    """Return the block as a csr matrix [block.shape] that stores all its values, zeros included.

    Shared if contiguous.
    """
    height, width = block.values.shape
    columns = np.arange(block.shape[1]) if block.columns is None else block.columns
    kind = index_dtype(*block.shape, block.values.size)
    starts = _spread(np.arange(height + 1) * width, block.rows, block.shape[0]).astype(kind)
    indices = np.tile(columns.astype(kind), height)
    return compressed.assemble("csr", starts, indices, np.ascontiguousarray(block.values).reshape(-1), block.shape)


def as_csr(x: Any, transposed: bool = False) -> Any:
    """Return a csr, csc or coo matrix, or its transpose, in CSR form; over the same memory if it is in that form."""
    format = formats.format_of(x)
    if format == "coo":
        row, col = (x.col, x.row) if transposed else (x.row, x.col)
        shape = x.shape[::-1] if transposed else x.shape
        indptr, indices, data = compressed.coo_to_csr(Coo(row, col, x.data, shape))
        return compressed.assemble("csr", indptr, indices, data, shape)
    shape = x.shape[::-1] if transposed else x.shape
    if (format == "csr") != transposed:
        return compressed.assemble("csr", x.indptr, x.indices, x.data, shape)
    indptr, indices, data = compressed.transposed(x)
    return compressed.assemble("csr", indptr, indices, data, shape)


def select_rows(x: Any, rows: np.ndarray) -> Any:
    """Return the rows `rows` int64 of a csr matrix, in the given order, as a new csr matrix.

    KernelError if out of range.
    """
    indptr, indices, data = numpy_conversions.get("slice_rows", x.dtype)(x.indptr, x.indices, x.data, rows)
    return compressed.assemble("csr", indptr, indices, data, (rows.size, x.shape[1]))


def keep_columns(x: Any, columns: np.ndarray) -> Any:
    """Return the entries of a csr matrix in `columns` (ascending), renumbered 0, 1, ...; O(nnz log columns)."""
    place, kept = places(x.indices, columns)
    starts = np.concatenate(([0], np.cumsum(kept)))[x.indptr]
    kind = x.indptr.dtype
    parts = starts.astype(kind), place[kept].astype(kind), x.data[kept]
    return compressed.assemble("csr", *parts, (x.shape[0], columns.size))


def places(indices: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (position of each index in `stored` int64 ascending, -1 if absent; whether it is there), both [z]."""
    place = np.empty(indices.size, np.int64)
    kernels.get("find_rows").trusted(indices, stored, place)
    return place, place >= 0


def filled_rows(x: Any) -> tuple[Any, np.ndarray]:
    """Return (a csr matrix without its empty rows, the indices of the other rows int64); values are not copied."""
    rows = np.flatnonzero(x.indptr[1:] > x.indptr[:-1])
    starts = np.append(x.indptr[rows], x.indptr[-1]).astype(x.indptr.dtype)
    return compressed.assemble("csr", starts, x.indices, x.data, (rows.size, x.shape[1])), rows
