"""Matrix products: `dot` of X and Y in any formats, and `sampled_dot`, a product at the places of a pattern alone.

`methods.METHODS` is dispatch, documentation and the list of tests in one: X in this format, transposed or not, with
Y in that one gives a result in this format, computed by this kernel. The engines are `ours` (the kernels of this
project), `vendor` (SciPy) and `dense` (BLAS); the latter two refuse what they have no rule for. No method makes an
operand dense.

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

from kernels.plan import BatchPlan
from workbench import formats
from workbench.ops.contract import ANY, Op, OpError, Rule, Shape, Symbolic, get, register
from workbench.ops.places import wanted_places
from workbench.ops.products.methods import ENGINES, METHODS, RESULTS, SPARSE, Method


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
    """Return the method for X in format `x` and a dense Y. Raises NoRuleError, which lists the existing ones."""
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
    """Return the engine of the format's own kernels: "dense" for dense, "ours" for the others."""
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
    """Compute X @ Y or X.T @ Y for a dense Y, by `rule`; into `out` if given. Shapes and dtypes must fit."""
    format, x = formats.validate(x)
    kind = format.name
    chosen = rule(kind, transposed, result, engine or default_engine(kind))
    return chosen(x, y, out=out, plan=plan)


@dataclass(frozen=True, eq=False)
class Unsummed:
    """A factored gradient: X.T @ slope of `shape` [D, N], kept as its factors and summed while it is applied.

    `x` is csr or coo [R, D], `plan` its batch plan and `slope` [R, N] the gradient of the scores.
    """

    x: Any
    slope: np.ndarray
    plan: BatchPlan
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """dtype of the values."""
        return self.slope.dtype

    def check(self) -> None:
        """Raise OpError unless score gradient, column index and values belong to one batch. O(1)."""
        rows, columns = self.plan.shape
        expected, actual = (rows, *self.shape[1:]), self.slope.shape
        if self.shape[0] != columns or expected != actual or self.x.data.shape != self.plan.rows.shape:
            raise OpError(
                f"A gradient of shape {self.shape} was left as a slope {list(actual)}, the plan of a batch "
                f"{list(self.plan.shape)} and {self.x.data.size} values for {self.plan.rows.size} entries. They belong "
                "to one batch: take them from one backward pass."
            )

    def compute(self) -> formats.RowSparse:
        """Multiply out: return the gradient as a RowSparse of the active columns."""
        return rule(formats.format_of(self.x), True, "row_sparse")(self.x, self.slope, plan=self.plan)


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of dot; OpError if shapes or parameters do not fit."""
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
    """Raise OpError for an unknown engine or result format."""
    if params["engine"] not in ENGINES:
        raise OpError(f"There is no engine {params['engine']!r}; the engines are {', '.join(ENGINES)}.")
    if params["result"] not in (None, *RESULTS):
        raise OpError(f"A product cannot be had as {params['result']!r}; result is None, {', '.join(RESULTS)}.")


def float_dtype(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of all inputs. Raises OpError unless it is float32 or float64."""
    if len(set(dtypes)) > 1 or dtypes[0] not in (np.float32, np.float64):
        types = " and ".join(map(str, dtypes))
        raise OpError(f"Products take float32 or float64, the same for all; {types} came. Convert with cast.")
    return np.dtype(dtypes[0])


def _dense(x, y, out=None, **params):
    """Compute the product of NumPy arrays."""
    left = x.T if params["transpose_a"] else x
    return np.matmul(left, y.T if params["transpose_b"] else y, out=out)


def factors(head, x, y, transpose_a: bool, transpose_b: bool) -> tuple[tuple, tuple]:
    """Return the gradients of op(x) @ op(y) towards x and y as products: (left, right, transpose_a, transpose_b) of
    each.
    """
    towards_x = (y, head, transpose_b, True) if transpose_a else (head, y, False, not transpose_b)
    towards_y = (head, x, True, transpose_a) if transpose_b else (x, head, not transpose_a, False)
    return towards_x, towards_y


def _gradient(head, output, inputs, params):
    """Return the gradients; towards a csr, csc or coo matrix at its stored positions only."""
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


dot = register(
    Op(
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
)
