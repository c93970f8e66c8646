"""The table of the products: which kernel computes X @ Y for these formats of X and Y and of the result."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

import kernels
from kernels import reused, sorting
from kernels.plan import BatchPlan, build, build_coo
from workbench import formats
from workbench.ops.contract import Rule, Shape
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

# Functions that the rules of the products call, one per method of computation, all with the same parameters.
#
# `call(kernel, x, y, transpose_a, result, out, plan)`; see `ProductCall`.


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
    """Return the batch plan of a validated csr or coo array, a new one."""
    if x.format == "coo":
        row, col = x.coords
        return build_coo(row, col, x.shape)
    return build(x.indptr, x.indices, x.shape[1])


def plan_for(x: Any, width: float) -> BatchPlan | None:
    """Return the plan of a csr or coo array used once, with its values; None if X.T @ Y of `width` columns needs none.

    None means that the gradient is faster without a plan.
    """
    if x.format != "csr":
        return plan_of(x)
    if sorting.suits(x.indices.size, x.shape[1], width):
        return None
    return build(x.indptr, x.indices, x.shape[1], x.data)


def transpose_if(y: Any, transposed: bool) -> np.ndarray:
    """Return the dense matrix itself, or a C-contiguous copy of its transpose if `transposed`."""
    return np.ascontiguousarray(y.T) if transposed else y


def _new(x: Any, transposed: bool, y: np.ndarray) -> np.ndarray:
    """Return an uninitialised array for x @ y, or x.T @ y if `transposed`, of the dtype of the dense y."""
    return np.empty((x.shape[transposed], y.shape[1]), y.dtype)


def compressed(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Return a csr or csc matrix x, or x.T, times a dense y by `kernel`, on the matrix's own arrays.

    Dense, in `out` if given. The kernel implies the transpose; transpose_a gives the result's shape, result and plan
    are unused.
    """
    if out is None:
        out = _new(x, transpose_a, y)
    kernel(x.indptr, x.indices, x.data, y, out)
    return out


def coordinates(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Return a coo matrix x, or x.T if transpose_a, times a dense y by `kernel`; dense, in `out` if given.

    result and plan are unused.
    """
    if out is None:
        out = _new(x, transpose_a, y)
    row, col = reversed(x.coords) if transpose_a else x.coords
    kernel(row, col, x.data, y, out)
    return out


def planned(kernel: Kernel, x: Any, y: np.ndarray, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Return x.T @ y of a csr or coo matrix x and a dense y [R, N] by `kernel`, on active columns.

    `result` is "row_sparse" or "csr". Uses the batch plan of x if given, else a new one; transpose_a and out are
    unused.
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
    """Return x (csr or coo), or x.T (csc), times a dense y by `kernel` on nonempty rows, in format `result`.

    out and plan are unused.
    """
    matrix, rows = filled_rows(as_csr(x, transpose_a))
    values = np.empty((rows.size, y.shape[1]), y.dtype)  # [filled, N]
    kernel(matrix.indptr, matrix.indices, matrix.data, y, values)
    return finish(Block(values, rows, None, (x.shape[transpose_a], y.shape[1])), result)


def blocks(kernel: Kernel, x: Any, y: Block, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Return a dense or row_sparse x, or x.T if transpose_a, times the `Block` y by BLAS, in the format `result`.

    Written to `out` if given and dense. No transpose is copied; `kernel` and `plan` are unused.
    """
    return finish(multiply(block_of(x, transpose_a), y, out), result, out)


def transposed(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write x.T @ y of dense x [R, D], y [R, N] to `out` [D, N] and return it, without a copy of the transpose."""
    return np.matmul(x.T, y, out)


def sparse_block(kernel: Kernel, x: Any, y: Block, transpose_a: bool, result: str, out: Out, plan: Plan) -> Any:
    """Return a sparse x, or x.T if transpose_a, times the `Block` y by `kernel`, in format `result`.

    Written to `out` if given and dense. Rows that the block lacks are skipped; plan is unused.
    """
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
    """Return a dense or row_sparse x, or x.T if transpose_a, times a sparse matrix, in the format `result`.

    y is (matrix, whether it is transposed). Written to `out` if given and dense. A csr result stores, in every row that
    x has, all the columns that y has, and uses csr_t_dense instead of `kernel`; plan is unused.
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
    """Return a sparse x, or x.T if transpose_a, times a sparse y by `kernel`, in format `result`.

    y is (matrix, whether it is transposed). Written to `out` if given and dense; plan is unused.
    """
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
    """Return the arrays (indptr, indices, data) of a csr or csc array, not copied."""
    return x.indptr, x.indices, x.data


def _wide(x: Any) -> Any:
    """Return a csr matrix x with int64 copies of its indices over the same values."""
    return formats.compressed.assemble("csr", x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data, x.shape)


ENGINES = ("ours", "vendor", "dense")
RESULTS = ("dense", "row_sparse", "csr")
SPARSE = ("csr", "csc", "coo")
BLOCKS = ("dense", "row_sparse")


def default_result(x: str, y: str, transpose_a: bool, transpose_b: bool) -> str:
    """Return the format of op(X) @ op(Y) if none is requested: "csr", "row_sparse" or "dense".

    `x` and `y` are the formats of X and Y.
    """
    if x in SPARSE and y in SPARSE:
        return "csr"
    if x in SPARSE:
        return "row_sparse" if transpose_a and not transpose_b else "dense"
    return "csr" if x == "dense" and y in SPARSE and not transpose_a else "dense"


@dataclass(frozen=True)
class Method:
    """One row of the table: X in format `x`, transposed or not, times Y in format `y`, by `kernel` through `call`."""

    x: str
    y: str
    transpose_a: bool
    result: str
    kernel: str
    call: ProductCall
    engines: tuple[str, ...] = ("ours",)
    plan: bool = False
    direct: Callable | None = None
    """What computes two plain arrays straight into `out`, without the parts that other formats need."""

    @functools.cached_property
    def _trusted(self) -> Callable[..., Any]:
        """Return the kernel's function that skips the check of operands' contents; looked up at first access."""
        trusted: Callable[..., Any] = kernels.get(self.kernel).trusted
        return trusted

    def fits(self, shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
        """Return whether the parameters transpose_a, transpose_b, result and engine select this method.

        `shapes` is unused.
        """
        ta, tb = bool(params["transpose_a"]), bool(params["transpose_b"])
        usual = default_result(self.x, self.y, ta, tb) if params["engine"] == "ours" else "dense"
        form = params["result"] or usual
        return ta == self.transpose_a and form == self.result and params["engine"] in self.engines

    @property
    def condition(self) -> str:
        """Return the parameters that select the method as text, such as "no transpose_a, result=csr"."""
        defaults = [default_result(self.x, self.y, self.transpose_a, tb) == self.result for tb in (False, True)]
        words = "" if all(defaults) else f"result={self.result}"
        if any(defaults) and words:
            words += f", the default {'without' if defaults[0] else 'with'} transpose_b"
        x = "transpose_a" if self.transpose_a else "no transpose_a"
        if self.engines == ("vendor",):
            return f"{x}, engine=vendor"
        return ", ".join(filter(None, (x, words)))

    def __call__(
        self,
        x: Any,
        y: Any,
        *,
        out: np.ndarray | None = None,
        plan: BatchPlan | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
        result: str | None = None,
        engine: str = "",
    ) -> Any:
        """Return x @ y, transposed as the method and transpose_b say, in the method's result format.

        Written to `out` if given, for dense results. `plan` is the batch plan of x for methods that read one.
        transpose_a, result and engine are those of the method.
        """
        if self.direct and out is not None and y.ndim == 2 and not transpose_b:
            return self.direct(x, y, out)
        if self.call is compressed and out is not None and y.ndim == 2 and not transpose_b:
            self._trusted(x.indptr, x.indices, x.data, y, out)  # of a small batch the way through `call` takes as long
            return out
        columns = None if out is None else out[:, None] if y.ndim == 1 else out
        product = self.call(
            self._trusted, x, self._other(as_matrix(y), transpose_b), self.transpose_a, self.result, columns, plan
        )
        if out is not None and self.result == "dense":
            return out
        return _flat(product) if y.ndim == 1 else product

    def _other(self, y: Any, transposed: bool) -> Any:
        """Return Y as `call` takes it: a `Block`, (matrix, transposed) or a dense matrix, turned if `transposed`."""
        if self.y in SPARSE:
            return y, transposed
        if self.y == "row_sparse" or self.x in BLOCKS:
            return block_of(y, transposed)
        return transpose_if(y, transposed)

    def rule(self) -> Rule:
        """Return the method as a `Rule` of the operator `dot`."""
        return Rule(
            (self.x, self.y),
            self.result,
            self,
            self.kernel,
            self.fits,
            self.condition,
            plan=self.plan,
        )


def as_matrix(y: Any) -> Any:
    """Return a dense or row_sparse vector as a column over the same memory; a matrix is returned unchanged."""
    if y.ndim != 1:
        return y
    if isinstance(y, np.ndarray):
        return y[:, None]
    return formats.RowSparse.assemble(y.values[:, None], y.indices, (*y.shape, 1))


def _flat(product: Any) -> Any:
    """Return the only column of a dense or row_sparse product as a vector, a view."""
    if isinstance(product, np.ndarray):
        return product[:, 0]
    return formats.RowSparse.assemble(product.values[:, 0], product.indices, product.shape[:1])


BLAS = ("dense", "ours")
WITH_DENSE = (
    Method("dense", "dense", False, "dense", "blas.dense_dense", blocks, BLAS, direct=np.matmul),
    Method("dense", "dense", True, "dense", "blas.dense_t_dense", blocks, BLAS, direct=transposed),
    Method("csr", "dense", False, "dense", "csr_dense", compressed),
    Method("csc", "dense", False, "dense", "csc_dense", compressed),
    Method("coo", "dense", False, "dense", "coo_dense", coordinates),
    Method("csr", "dense", True, "dense", "csr_t_dense_full", compressed),
    Method("csc", "dense", True, "dense", "csr_dense", compressed),
    Method("coo", "dense", True, "dense", "coo_dense", coordinates),
    Method("csr", "dense", True, "row_sparse", "csr_t_dense", planned, plan=True),
    Method("coo", "dense", True, "row_sparse", "csr_t_dense", planned, plan=True),
    Method("csc", "dense", True, "row_sparse", "csr_dense", filled),
    Method("csr", "dense", True, "csr", "csr_t_dense", planned, plan=True),
    Method("coo", "dense", True, "csr", "csr_t_dense", planned, plan=True),
    Method("csc", "dense", True, "csr", "csr_dense", filled),
    *(Method(x, "dense", False, result, "csr_dense", filled) for x in SPARSE for result in ("row_sparse", "csr")),
)
"""Y dense, by our kernels and by BLAS."""

VENDOR = ("vendor",)
BY_SCIPY = (
    Method("csr", "dense", False, "dense", "scipy.csr_dense", compressed, VENDOR),
    Method("csc", "dense", False, "dense", "scipy.csc_dense", compressed, VENDOR),
    Method("coo", "dense", False, "dense", "scipy.coo_dense", coordinates, VENDOR),
    Method("csr", "dense", True, "dense", "scipy.csr_t_dense_full", compressed, VENDOR),
    Method("csc", "dense", True, "dense", "scipy.csr_dense", compressed, VENDOR),
    Method("coo", "dense", True, "dense", "scipy.coo_dense", coordinates, VENDOR),
)


def _family(
    left: Sequence[str], right: Sequence[str], kernel: Callable[[bool, str], str], call: ProductCall
) -> list[Method]:
    """Return methods for all pairs of formats left x right, X transposed or not, and all results.

    `kernel(transpose_a, result)` names the kernel, `call` computes.
    """
    return [
        Method(x, y, transpose_a, result, kernel(transpose_a, result), call)
        for x, y, transpose_a, result in itertools.product(left, right, (False, True), RESULTS)
    ]


def _blas(transpose_a: bool, result: str) -> str:
    """Return the name of the BLAS kernel for X or X.T; `result` is unused."""
    return "blas.dense_t_dense" if transpose_a else "blas.dense_dense"


METHODS = (
    *WITH_DENSE,
    *BY_SCIPY,
    *_family(SPARSE, ("row_sparse",), lambda transpose_a, result: "csr_dense", sparse_block),
    *_family(BLOCKS, SPARSE, lambda _, result: "csr_t_dense" if result == "csr" else "dense_csr", block_sparse),
    *(m for m in _family(BLOCKS, BLOCKS, _blas, blocks) if (m.x, m.y, m.result) != ("dense",) * 3),
    *_family(SPARSE, SPARSE, lambda _, result: "csr_csr_dense" if result == "dense" else "csr_csr", sparse_sparse),
)
"""The first method that fits is taken."""
