"""Functions that the rules of the products call, one per method of computation, all with the same parameters.

`call(kernel, x, y, transpose_a, result, out, plan)`; see `ProductCall`.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

import kernels
from kernels import reused, sorting
from kernels.plan import BatchPlan, build, build_coo
from workbench import formats
from workbench.ops.products.blocks import (
    Block,
    as_csr,
    block_of,
    filled_rows,
    finish,
    full_block_csr,
    keep_columns,
    multiply,
    select_rows,
)


class ProductCall(Protocol):
    """Function that computes X @ Y, or X.T @ Y, for one pair of formats."""

    def __call__(
        self,
        kernel: Callable[..., Any],
        x: Any,
        y: Any,
        transpose_a: bool,
        result: str,
        out: np.ndarray | None,
        plan: BatchPlan | None,
        /,
    ) -> Any:
        """Compute the product.

        Parameters
        ----------
        kernel : callable
            The kernel of `Method.kernel`, on plain arrays.
        x : array of any format, [rows, columns]
            Left operand as it was given, not transposed.
        y : Block, ndarray or tuple
            Right operand, turned already; each function says which of the three it takes.
        transpose_a : bool
            Whether X.T is multiplied.
        result : str
            Format of the result.
        out : ndarray or None
            C-contiguous array [rows of the product, N] that a dense result is written to.
        plan : BatchPlan or None
            Column index of `x` for functions that read one; computed if None.

        Returns
        -------
        ndarray, RowSparse or csr_array
            The product in the format `result`; `out` if that is given.
        """


Kernel: TypeAlias = Callable[..., Any]
Out: TypeAlias = np.ndarray | None
Plan: TypeAlias = BatchPlan | None


def make_plan(x: Any) -> BatchPlan:
    """Compute the batch plan (column index) of X in CSR or COO form, which the row_sparse gradient reads. O(nnz).

    Parameters
    ----------
    x : array, [R, D]
        csr or coo matrix.

    Returns
    -------
    BatchPlan
        Active columns and the order of entries by column.

    Raises
    ------
    FormatError
        If `x` is invalid.

    Examples
    --------
    >>> import scipy.sparse
    >>> make_plan(scipy.sparse.csr_array(np.float32([[0, 2], [0, 1]]))).columns
    array([1])
    """
    return plan_of(formats.validate(x)[1])


def plan_of(x: Any) -> BatchPlan:
    """Compute the batch plan of a validated csr or coo array."""
    if x.format == "coo":
        row, col = x.coords
        return build_coo(row, col, x.shape)
    return build(x.indptr, x.indices, x.shape[1])


def plan_for(x: Any, width: float) -> BatchPlan | None:
    """Compute the plan of an array used once, with its values; None if X.T @ Y with `width` columns is faster
    without.
    """
    if x.format != "csr":
        return plan_of(x)
    if sorting.suits(x.indices.size, x.shape[1], width):
        return None
    return build(x.indptr, x.indices, x.shape[1], x.data)


def turned(y: Any, transposed: bool) -> np.ndarray:
    """Return a dense matrix, or a copy of its transpose."""
    return np.ascontiguousarray(y.T) if transposed else y


def _new(x: Any, transposed: bool, y: np.ndarray) -> np.ndarray:
    """Return an uninitialised array for the dense product."""
    return np.empty((x.shape[transposed], y.shape[1]), y.dtype)


def compressed(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Multiply a csr or csc matrix by a dense one, with a kernel on the matrix's own arrays."""
    if out is None:
        out = _new(x, transpose_a, y)
    kernel(x.indptr, x.indices, x.data, y, out)
    return out


def coordinates(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Multiply a coo matrix by a dense one."""
    if out is None:
        out = _new(x, transpose_a, y)
    row, col = reversed(x.coords) if transpose_a else x.coords
    kernel(row, col, x.data, y, out)
    return out


def planned(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Multiply the transpose of a csr or coo matrix by a dense one, for active columns only; uses the batch plan if
    given.
    """
    if plan is None and result == "row_sparse":
        plan = plan_for(x, y.shape[1])
        if plan is None:
            columns, sums = sorting.gradient(x.indptr, x.indices, x.data, y, x.shape[1])
            return formats.RowSparse.assemble(sums, columns, (x.shape[1], y.shape[1]))
    plan = plan or plan_of(x)
    values = reused.empty(plan.touched * y.shape[1], y.dtype).reshape(plan.touched, y.shape[1])  # [U, N]
    kernel(plan.segments, plan.rows, plan.in_order(x.data), y, values)
    shape = x.shape[1], y.shape[1]
    if result == "row_sparse":
        return formats.RowSparse.assemble(values, plan.columns, shape)
    return finish(Block(values, plan.columns, None, shape), result)


def filled(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Multiply the nonempty rows of a csr or coo matrix, or of a transposed csc matrix, by a dense one."""
    matrix, rows = filled_rows(as_csr(x, transpose_a))
    values = np.empty((rows.size, y.shape[1]), y.dtype)  # [filled, N]
    kernel(matrix.indptr, matrix.indices, matrix.data, y, values)
    return finish(Block(values, rows, None, (x.shape[transpose_a], y.shape[1])), result)


def blocks(kernel: Kernel, x: Any, y: Block, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Multiply dense or row_sparse by dense or row_sparse (y a Block) with BLAS on what is stored; no transpose is
    copied.
    """
    return finish(multiply(block_of(x, transpose_a), y, out), result, out)


def transposed(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Compute X.T @ Y of plain arrays into `out`, without a copy of the transpose."""
    return np.matmul(x.T, y, out)


def sparse_block(kernel: Kernel, x: Any, y: Block, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Multiply a csr, csc or coo matrix by a Block; if transposed, rows that the block lacks are skipped."""
    values = np.ascontiguousarray(y.values)
    if y.rows is None:
        matrix = as_csr(x, transpose_a)
    elif transpose_a:
        matrix = as_csr(select_rows(as_csr(x), y.rows), True)
    else:
        matrix = keep_columns(as_csr(x), y.rows)
    matrix, rows = filled_rows(matrix) if result != "dense" else (matrix, None)
    shape = matrix.shape[0], values.shape[1]
    product = np.empty(shape, values.dtype) if out is None or y.columns is not None else out
    kernel(matrix.indptr, matrix.indices, matrix.data, values, product)
    return finish(Block(product, rows, y.columns, (x.shape[transpose_a], y.shape[1])), result, out)


def block_sparse(
    kernel: Kernel, x: Any, y: tuple[Any, bool], transpose_a: bool, result: str, out: Out, plan: Plan
) -> Any:
    """Multiply a dense or row_sparse matrix by a csr, csc or coo one; y is (matrix, whether it is transposed).

    A csr result stores, in every row that x has, all the columns that y has.
    """
    matrix, transposed = y
    shape = x.shape[transpose_a], matrix.shape[not transposed]
    left, right = block_of(x, transpose_a), as_csr(matrix, transposed)
    if left.columns is not None:
        right = select_rows(right, left.columns)
    if result == "csr":
        batch = build(right.indptr, right.indices, right.shape[1])
        product = np.empty((batch.touched, left.values.shape[0]), left.values.dtype)  # [U, rows of x]
        gather = kernels.get("csr_t_dense").trusted
        gather(batch.segments, batch.rows, batch.in_order(right.data), np.ascontiguousarray(left.values.T), product)
        return full_block_csr(Block(product.T, left.rows, batch.columns, shape))
    block_shape = left.values.shape[0], shape[1]
    values = np.empty(block_shape, left.values.dtype) if out is None or left.rows is not None else out
    kernel(left.values, right.indptr, right.indices, right.data, values)
    return finish(Block(values, left.rows, None, shape), result, out)


def sparse_sparse(
    kernel: Kernel, x: Any, y: tuple[Any, bool], transpose_a: bool, result: str, out: Out, plan: Plan
) -> Any:
    """Multiply two csr, csc or coo matrices; y is (matrix, whether it is transposed)."""
    left, right = as_csr(x, transpose_a), as_csr(*y)
    if left.indptr.dtype != right.indptr.dtype:
        left, right = map(_wide, (left, right))
    shape, operands = (left.shape[0], right.shape[1]), (*_arrays(left), *_arrays(right))
    if result == "dense":
        out = np.empty(shape, left.dtype) if out is None else out
        kernel(*operands, out)
        return out
    indptr, indices, data = kernel(*operands)
    return formats.to_format(formats.compressed.assemble("csr", indptr, indices, data, shape), result)


def _arrays(x: Any) -> tuple[np.ndarray, ...]:
    """Return indptr, indices and data."""
    return x.indptr, x.indices, x.data


def _wide(x: Any) -> Any:
    """Return a csr matrix with int64 indices."""
    return formats.compressed.assemble("csr", x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data, x.shape)
