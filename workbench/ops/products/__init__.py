"""Matrix products: `dot` of X and Y in any formats, and `sampled_dot` at the positions of a pattern.

`methods.METHODS` is dispatch, documentation and the list of tests in one: X in this format, transposed or not, with
Y in that one gives a result in this format, computed by this kernel; `blocks.py` has the parts of implementations. The
backends are `ours` (the kernels of this project), `vendor` (SciPy) and `dense` (BLAS); the latter two raise
NoRuleError for formats that they lack. No method makes an operand dense.

What a transposed operand costs: nothing for X in csr, csc or coo with a dense Y; a copy for Y dense (`dot` with
transpose_b) and for the dense one in dense-sparse products; a sort of the entries where two sparse ones are multiplied.

>>> import numpy as np
>>> from workbench import formats, ops
>>> x = formats.to_format(np.float32([[0, 2, 0], [1, 0, 0]]), "csr")
>>> ops.dot(x, np.float32([[1], [10]]), transpose_a=True)
RowSparse(shape=(3, 1), stored_rows=2, dtype=float32)
  row 0: [10.]
  row 1: [2.]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import kernels
from kernels.plan import BatchPlan
from workbench import formats, ops
from workbench.formats import compressed
from workbench.ops import stored
from workbench.ops.contract import ANY, OpError, Rule, Shape, Symbolic, get, operator
from workbench.ops.like import check_countable
from workbench.ops.places import wanted_places
from workbench.ops.products.blocks import Block, as_csr, block_of, common, places
from workbench.ops.products.methods import (
    ENGINES,
    METHODS,
    RESULTS,
    SPARSE,
    Method,
    as_matrix,
    default_result,
    make_plan,
    plan_for,
    plan_of,
)


class NoRuleError(OpError, LookupError):
    """No rule computes this product; the message lists the rules for the operand's format."""


by_format = {
    (method.x, method.transpose_a, method.result, method.engines[0]): method
    for method in METHODS
    if method.y == "dense" and (method.result == "dense" or (method.result == "row_sparse" and method.x in SPARSE))
}
"""Methods for a dense Y, by (format of X, whether X is transposed, result, engine)."""

REFUSAL = Rule(
    (ANY, ANY),
    "dense",
    when=lambda shapes, params: params["engine"] != "ours",
    condition="engine=vendor or dense, where no rule above fits",
    refusal="the engines vendor (SciPy: csr, csc or coo with dense) and dense (BLAS: dense with dense) give dense "
    "results and make nothing dense for it. Take engine='ours', or convert with to_format.",
)


def rule(x: str, transposed: bool, result: str = "dense", engine: str = "ours") -> Method:
    """Return the method of X @ W, or X.T @ G if `transposed`, for X in format `x` and a dense right side.

    `result` is the result's format, `engine` one of `ENGINES`. Raises NoRuleError, which lists the existing methods.
    """
    method = by_format.get((x, transposed, result, engine))
    if method is None:
        what = "X.T @ G" if transposed else "X @ W"
        known = [f"{r} by {e}" for (f, t, r, e) in by_format if (f, t) == (x, transposed)]
        raise NoRuleError(
            f"No rule computes {what} as {result} by engine {engine!r} for X in format {x!r}; "
            f"there is: {', '.join(known) or 'nothing'}."
        )
    return method


def default_engine(x: str) -> str:
    """Return the engine of the format's own kernels: "dense" (BLAS) for dense, "ours" for the others."""
    return "dense" if x == "dense" else "ours"


def multiply(
    x: Any,
    y: np.ndarray,
    *,
    transposed: bool = False,
    result: str = "dense",
    out: np.ndarray | None = None,
    plan: BatchPlan | None = None,
    engine: str | None = None,
) -> Any:
    """Compute x @ y, or x.T @ y if `transposed`, for a dense y; return it in the format `result`.

    Written to `out` if given, for dense results; `plan` is the batch plan of x, computed if None and needed; `engine`
    None is that of the format's own kernels. Shapes and dtypes must fit. Raises NoRuleError or FormatError.
    """
    format, x = formats.validate(x)
    kind = format.name
    chosen = rule(kind, transposed, result, engine or default_engine(kind))
    return chosen(x, y, out=out, plan=plan)


@dataclass(frozen=True, eq=False)
class Unsummed:
    """A factored gradient: X.T @ grad_scores of `shape` [D, N], kept as its factors and summed while it is applied.

    `x` is csr or coo [R, D], `plan` its batch plan and `grad_scores` [R, N] the gradient of the scores.
    """

    x: Any
    grad_scores: np.ndarray
    plan: BatchPlan
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """Return the dtype of the values."""
        return self.grad_scores.dtype

    def check(self) -> None:
        """Raise OpError unless gradient of the scores, batch plan and values belong to one batch; O(1)."""
        rows, columns = self.plan.shape
        expected, actual = (rows, *self.shape[1:]), self.grad_scores.shape
        if self.shape[0] != columns or expected != actual or self.x.data.shape != self.plan.rows.shape:
            raise OpError(
                f"A gradient of shape {self.shape} was left as grad_scores {list(actual)}, the plan of a batch "
                f"{list(self.plan.shape)} and {self.x.data.size} values for {self.plan.rows.size} entries. They belong "
                "to one batch: take them from one backward pass."
            )

    def compute(self) -> formats.RowSparse:
        """Return the gradient multiplied out, x.T @ grad_scores, as a RowSparse of the active columns."""
        return rule(formats.format_of(self.x), True, "row_sparse")(self.x, self.grad_scores, plan=self.plan)


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of dot for the shapes of (x, y); OpError if shapes or parameters do not fit."""
    _check_params(params)
    x, y = shapes
    if len(x) != 2 or len(y) not in (1, 2):
        raise OpError(f"dot takes a matrix and a matrix or vector; the shapes {tuple(x)} and {tuple(y)} came.")
    if len(y) == 1 and (params["transpose_b"] or params["result"] == "csr"):
        raise OpError(f"y is a vector, of shape {tuple(y)}; leave transpose_b and result='csr' out, or reshape it.")
    left = x[::-1] if params["transpose_a"] else x
    right = y[::-1] if params["transpose_b"] else y
    if left[1] != right[0]:
        raise OpError(
            f"dot cannot multiply {tuple(left)} by {tuple(right)}: {left[1]} columns meet {right[0]} rows. The shapes "
            f"are {tuple(x)} and {tuple(y)}, transpose_a={params['transpose_a']}, transpose_b={params['transpose_b']}."
        )
    return (left[0], *right[1:])


def _check_params(params: Mapping[str, Any]) -> None:
    """Raise OpError for an unknown `engine` or `result` among the parameters of a product."""
    if params["engine"] not in ENGINES:
        raise OpError(f"There is no engine {params['engine']!r}; the engines are {', '.join(ENGINES)}.")
    if params["result"] not in (None, *RESULTS):
        raise OpError(f"A product cannot be had as {params['result']!r}; result is None, {', '.join(RESULTS)}.")


def float_dtype(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of all inputs. Raises OpError unless it is one of float32 and float64. `params` is unused."""
    if len(set(dtypes)) > 1 or dtypes[0] not in (np.float32, np.float64):
        types = " and ".join(map(str, dtypes))
        raise OpError(f"Products take float32 or float64, the same for all; {types} came. Convert with cast.")
    return np.dtype(dtypes[0])


def _dense(x, y, out=None, **params):
    """Return the product of NumPy arrays, transposed by transpose_a and transpose_b, in `out` if given."""
    left = x.T if params["transpose_a"] else x
    return np.matmul(left, y.T if params["transpose_b"] else y, out=out)


def factors(head, x, y, transpose_a: bool, transpose_b: bool) -> tuple[tuple, tuple]:
    """Return the gradients of op(x) @ op(y) towards x and y as products, each (left, right, transpose_a, transpose_b).

    `head` is the gradient of the result; transpose_a and transpose_b are those of the product.
    """
    towards_x = (y, head, transpose_b, True) if transpose_a else (head, y, False, not transpose_b)
    towards_y = (head, x, True, transpose_a) if transpose_b else (x, head, not transpose_a, False)
    return towards_x, towards_y


def _gradient(head, output, inputs, params):
    """Return the gradients (of x, of y), the `inputs` of `dot`, for the gradient `head` of its result.

    `params` are those of the product, `output` is unused. Gradients of sparse matrices are computed at their stored
    positions only.
    """
    x, y = inputs
    of_x, of_y = factors(head, x, y, bool(params["transpose_a"]), bool(params["transpose_b"]))
    sampled = get("sampled_dot")
    towards_x = sampled(wanted_places(x), of_x[0], of_x[1], transpose_a=of_x[2], transpose_b=of_x[3])
    form = y.attributes.get("format") if isinstance(y, Symbolic) else formats.format_of(y)
    if form in SPARSE:
        return towards_x, sampled(y, of_y[0], of_y[1], transpose_a=of_y[2], transpose_b=of_y[3])
    engine = "ours" if params["transpose_b"] else params["engine"]  # then x is on the right, where only ours has rules
    options = {"engine": engine, "result": None if engine == "ours" else "dense"}
    return towards_x, dot(of_y[0], of_y[1], transpose_a=of_y[2], transpose_b=of_y[3], **options)


dot = operator(
    name="dot",
    inputs=("x", "y"),
    params={"transpose_a": False, "transpose_b": False, "result": None, "engine": "ours"},
    dense=_dense,
    shape=_shape,
    dtype=float_dtype,
    rules=(*(method.rule() for method in METHODS), REFUSAL),
    gradient=_gradient,
    family="products",
    doc="The product of matrix x [R, D] and y [D, N] or vector y [D], either transposed where its parameter says "
    "so. `result` asks for a format: dense, row_sparse or csr. A csr product is sorted, and its pattern is that of "
    "the operands whatever the values: a dense x gives rows that store every column y has.",
)


def _at_csr(indptr, indices, a, b, transpose_a, transpose_b) -> np.ndarray:
    """Return the values [z] of op(a) @ op(b) at the entries of a CSR pattern (indptr [R+1], indices [z])."""
    sparse = [formats.format_of(operand) in SPARSE for operand in (a, b)]
    if all(sparse):
        product = dot(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return _look_up(indptr, indices, product)
    if sparse[0] and isinstance(b, np.ndarray):
        return _at_csr_of_csr(indptr, indices, as_csr(a, transpose_a), np.ascontiguousarray(b if transpose_b else b.T))
    left = _rows_of(a, transpose_a) if sparse[0] else block_of(a, transpose_a)
    right = _rows_of(b, not transpose_b) if sparse[1] else block_of(b, not transpose_b)
    ours, theirs = common(left.columns, right.columns)
    left_values = np.ascontiguousarray(left.values[:, ours])
    right_values = np.ascontiguousarray(right.values[:, theirs])
    if left.rows is None and right.rows is None:
        out = np.empty(indices.size, left_values.dtype)
        kernels.get("sddmm").trusted(indptr, indices, left_values, right_values, out)
        return out
    return _at_blocks(indptr, indices, left._replace(values=left_values), right._replace(values=right_values))


def _at_csr_of_csr(indptr, indices, a: Any, b: np.ndarray) -> np.ndarray:
    """Return the values [z] of a @ b.T at the entries of a CSR pattern; a is csr [R, M], b dense [D, M]."""
    if a.indptr.dtype != indptr.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
        a = compressed.assemble("csr", a.indptr.astype(np.int64), a.indices.astype(np.int64), a.data, a.shape)
    out = np.empty(indices.size, b.dtype)
    kernels.get("sampled_csr").trusted(indptr, indices, a.indptr, a.indices, a.data, b, out)
    return out


def _rows_of(x: Any, transposed: bool) -> Block:
    """Return the nonempty rows of a sparse x, or of x.T if `transposed`, as a dense `Block`."""
    return block_of(formats.to_format(as_csr(x, transposed), "row_sparse"), False)


def _at_blocks(indptr, indices, left: Block, right: Block) -> np.ndarray:
    """Return the values [z] of left @ right.T at the entries of a CSR pattern; rows that a block lacks give zeros."""
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    everything = np.ones(indices.size, bool)
    row, in_left = (row, everything) if left.rows is None else places(row, left.rows)
    col, in_right = (indices, everything) if right.rows is None else places(indices, right.rows)
    kept = np.flatnonzero(in_left & in_right)
    starts = np.searchsorted(row[kept], np.arange(left.values.shape[0] + 1))
    values = np.empty(kept.size, left.values.dtype)
    kernels.get("sddmm").trusted(starts, col[kept].astype(np.int64), left.values, right.values, values)
    out = np.zeros(indices.size, values.dtype)
    out[kept] = values
    return out


def _look_up(indptr, indices, product: Any) -> np.ndarray:
    """Return the values [z] of a sorted csr matrix `product` at the entries of a CSR pattern (indptr, indices).

    0 if an entry is not stored. Raises OpError for a matrix with too many elements to number.
    """
    check_countable(product.shape)
    width = product.shape[1]
    keys = np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) * width + indices
    stored = np.repeat(np.arange(indptr.size - 1), np.diff(product.indptr)) * width + product.indices
    place, hits = places(keys, stored)
    out = np.zeros(indices.size, product.dtype)
    out[hits] = product.data[place[hits]]
    return out


def _with_matrices(call):
    """Return `call` as a rule's function: vectors a and b become columns, transposes bool, `out` is dropped."""

    def wrapped(pattern, a, b, *, out=None, transpose_a=False, transpose_b=False):
        """Return `call(pattern, a, b, transpose_a, transpose_b)` with a and b as matrices; `out` is unused."""
        return call(pattern, as_matrix(a), as_matrix(b), bool(transpose_a), bool(transpose_b))

    return wrapped


def _csr(pattern, a, b, transpose_a, transpose_b):
    """Return op(a) @ op(b) at the entries of a csr pattern [R, C], as csr; duplicates of the pattern are merged.

    op transposes a if transpose_a, and b if transpose_b.
    """
    pattern = stored.canonical(pattern)
    indptr, indices = pattern.indptr, pattern.indices
    data = _at_csr(indptr, indices, a, b, transpose_a, transpose_b)
    return compressed.assemble("csr", indptr.copy(), indices.copy(), data, pattern.shape)


def _csc(pattern, a, b, transpose_a, transpose_b):
    """Return op(a) @ op(b) at the entries of a csc pattern [R, C], as csc, by the CSR form of the transpose.

    op transposes a if transpose_a, and b if transpose_b.
    """
    pattern = stored.canonical(pattern)
    indptr, indices = pattern.indptr, pattern.indices
    data = _at_csr(indptr, indices, b, a, not transpose_b, not transpose_a)
    return compressed.assemble("csc", indptr.copy(), indices.copy(), data, pattern.shape)


def _coo(pattern, a, b, transpose_a, transpose_b):
    """Return op(a) @ op(b) at the entries of a coo pattern [R, C], as coo sorted by rows; duplicates are merged.

    op transposes a if transpose_a, and b if transpose_b.
    """
    pattern = stored.canonical(pattern)
    row, col = pattern.coords
    indptr = np.searchsorted(row, np.arange(pattern.shape[0] + 1)).astype(col.dtype)
    data = _at_csr(indptr, col, a, b, transpose_a, transpose_b)
    return scipy.sparse.coo_array((data, (row.copy(), col.copy())), shape=pattern.shape)


OURS = {"engine": "ours"}


def _whole(method):
    """Return the rules of `sampled_dot` for dense or row_sparse patterns: `method` computes the whole product.

    [] if the method's result is never the default.
    """

    def call(pattern, a, b, *, out=None, plan=None, transpose_a=False, transpose_b=False):
        """Return op(a) @ op(b) by the method, in `out` if given; `pattern` and `plan` are unused."""
        whole = {"transpose_a": transpose_a, "transpose_b": transpose_b, "out": out}
        return method(as_matrix(a), as_matrix(b), **whole)

    def result_of(transpose_b):
        """Return the result's format: "row_sparse" if that is the default of the product, else "dense"."""
        usual = default_result(method.x, method.y, method.transpose_a, transpose_b)
        return "row_sparse" if usual == "row_sparse" else "dense"

    def when(shapes, params):
        """Return whether the method takes these shapes of (pattern, a, b) and parameters."""
        return method.fits(shapes[1:], {**params, "result": result_of(params["transpose_b"]), **OURS})

    if method.result not in map(result_of, (False, True)):
        return []
    return [
        Rule((form, method.x, method.y), method.result, call, method.kernel, when) for form in ("dense", "row_sparse")
    ]


def _sampled_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of sampled_dot, that of the pattern; OpError if a and b do not fit it."""
    pattern, a, b = shapes
    if (len(a) == 1 or len(b) == 1) and (params["transpose_a"], params["transpose_b"]) != (False, True):
        raise OpError("Vectors a and b are columns: their outer product is had with transpose_b alone.")
    a, b = (shape if len(shape) == 2 else (*shape, 1) for shape in (a, b))
    left, right = a[::-1] if params["transpose_a"] else a, b[::-1] if params["transpose_b"] else b
    if len(left) != 2 or len(right) != 2 or left[1] != right[0] or tuple(pattern) != (left[0], right[1]):
        raise OpError(
            f"sampled_dot cannot take {tuple(left)} by {tuple(right)} at the places of {tuple(pattern)}; "
            "a [R, N] by b [N, D] goes with a pattern [R, D]."
        )
    return tuple(pattern)


def _sampled_gradient(head, output, inputs, params):
    """Return the gradients (None, of a, of b) of the `inputs` (pattern, a, b), from `head` at the pattern's positions.

    `params` has transpose_a and transpose_b; `output` is unused.
    """
    pattern, a, b = inputs
    of_a, of_b = factors(
        ops.at_places_of(head, pattern), a, b, bool(params["transpose_a"]), bool(params["transpose_b"])
    )
    return None, *(dot(x, y, transpose_a=ta, transpose_b=tb) for x, y, ta, tb in (of_a, of_b))


def _sampled_dense(pattern, a, b, out=None, transpose_a=False, transpose_b=False):
    """Return the whole product of NumPy arrays a and b, transposed as stated, in `out` if given.

    The pattern is unused.
    """
    a, b = as_matrix(a), as_matrix(b)
    return np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)


sampled_dot = operator(
    name="sampled_dot",
    dense=_sampled_dense,
    shape=_sampled_shape,
    dtype=float_dtype,
    rules=(
        Rule(("csr", ANY, ANY), "csr", _with_matrices(_csr), "sddmm"),
        Rule(("csc", ANY, ANY), "csc", _with_matrices(_csc), "sddmm"),
        Rule(("coo", ANY, ANY), "coo", _with_matrices(_coo), "sddmm"),
        *(rule for method in METHODS for rule in _whole(method) if "ours" in method.engines),
    ),
    gradient=_sampled_gradient,
    unread=(0, 1),
    family="products",
    doc="The product of a [R, N] and b [N, D], either transposed where its parameter says so, at the entries of "
    "`pattern` [R, D], whose values play no part; in its format, each entry once. A dense or row_sparse "
    "pattern selects nothing: the result is the whole product, row_sparse where `dot` gives that, else dense.",
)


__all__ = [
    "ENGINES",
    "METHODS",
    "Method",
    "NoRuleError",
    "Unsummed",
    "by_format",
    "default_engine",
    "dot",
    "make_plan",
    "multiply",
    "plan_for",
    "plan_of",
    "rule",
    "sampled_dot",
]
