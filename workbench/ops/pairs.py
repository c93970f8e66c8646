"""Interactions of all pairs of features of a row: the second order of a factorization machine.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[1, 2, 0], [0, 3, 0]]), format="csr")
>>> ops.interactions(x, np.float32([[1, 0], [4, 1], [5, 2]])).tolist()
[[8.0], [0.0]]

The sum over pairs i < j of x_i x_j <v_i, v_j> is half of |sum_i x_i v_i|^2 - sum_i x_i^2 |v_i|^2, which takes O(z K)
for z stored entries and K factors (Rendle 2010, lemma 3.1).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernels.plan import BatchPlan
from workbench import formats, ops
from workbench.formats import RowSparse
from workbench.ops import stored
from workbench.ops.contract import OpError, Rule, Shape, operator, real, rules_with_plan
from workbench.ops.like import put
from workbench.ops.places import wanted_places
from workbench.ops.products import make_plan, rule


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape [R, 1] of interactions; OpError if x [R, D] and v [D, K] do not fit.

    `params` is unused.
    """
    x, v = shapes[:2]
    if len(x) != 2 or len(v) != 2 or x[1] != v[0]:
        raise OpError(f"interactions takes x [R, D] and v [D, K]; the shapes {tuple(x)} and {tuple(v)} came.")
    return x[0], 1


def _dense(x: np.ndarray, v: np.ndarray, out: np.ndarray | None = None, **_: Any) -> np.ndarray:
    """Return the interactions [R, 1] for dense x [R, D] and v [D, K], in `out` if given."""
    sums = x @ v
    own = np.square(x) @ np.einsum("uk,uk->u", v, v)  # a number a feature
    return put(out, (0.5 * (np.einsum("rk,rk->r", sums, sums) - own))[:, None])


def _csr_with_plan(x: Any, plan: BatchPlan | None) -> tuple[Any, BatchPlan]:
    """Return (x as csr without duplicates, its batch plan, computed if None).

    The squares of duplicates would be taken separately.
    """
    x = formats.to_format(x, "csr")
    plan = plan or make_plan(x)
    at_once = plan.rows[1:] == plan.rows[:-1]
    at_once[plan.segments[1:-1] - 1] = False  # from one column to the next
    if not at_once.any():
        return x, plan
    x = stored.canonical(x)
    return x, make_plan(x)


def _sparse(
    x: Any, v: np.ndarray, out: np.ndarray | None = None, plan: BatchPlan | None = None, **_: Any
) -> np.ndarray:
    """Return the interactions [R, 1], dense, of sparse x [R, D] with factors v [D, K], in `out` if given.

    By lemma 3.1 of Rendle 2010. `plan` is the batch plan of x, computed if None.
    """
    x, plan = _csr_with_plan(x, plan)
    sums = rule("csr", False)(x, v)  # [R, K]
    rows = v[plan.columns]
    norms = np.einsum("uk,uk->u", rows, rows)  # [U]
    entries = plan.in_order(x.data)
    own = np.repeat(norms, np.diff(plan.segments)) * entries * entries  # [z]
    own = np.bincount(plan.rows, own, minlength=x.shape[0])  # [R]
    return put(out, (0.5 * (np.einsum("rk,rk->r", sums, sums) - own)).astype(v.dtype)[:, None])


def _gradient_of_rows(x: Any, v: np.ndarray, head: np.ndarray, plan: BatchPlan | None = None, **_: Any) -> RowSparse:
    """Return the gradient of v [D, K] for sparse x and `head` [R, 1], row_sparse on the active columns.

    `plan` is the batch plan of x, computed if None.
    """
    x, plan = _csr_with_plan(x, plan)
    slope = head * rule("csr", False)(x, v)  # [R, K]
    gradient = rule("csr", True, "row_sparse")(x, slope, plan=plan)
    if plan.columns.size:
        entries = plan.in_order(x.data)
        own = np.add.reduceat(entries * entries * head[plan.rows, 0], plan.segments[:-1])  # [U]
        gradient.values[...] -= own[:, None] * v[plan.columns]
    return gradient


def _whole_gradient(x: Any, v: np.ndarray, head: np.ndarray, out: np.ndarray | None = None, **_: Any) -> np.ndarray:
    """Return the gradient of v [D, K], dense, for x in any format and `head` [R, 1], in `out` if given."""
    if not isinstance(x, np.ndarray):
        return put(out, formats.to_format(_gradient_of_rows(x, v, head), "dense"))
    return put(out, x.T @ (head * (x @ v)) - ((x * x).T @ head) * v)


def _gradient(head: Any, output: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple:
    """Return the gradients (of x at its stored positions, of v) for the gradient `head` [R, 1] of the interactions.

    `output` is unused.
    """
    x, v = inputs
    towards_x = ops.subtract(_towards(x, head, v, v), _own_terms(x, head, v, v))
    return towards_x, ops.interactions_gradient(x, v, head, sparse_grad=params["sparse_grad"])


def _towards(x: Any, head: Any, v: Any, w: Any) -> Any:
    """Return head_r <v_i, (x @ w)_r> at the stored positions (r, i) of x [R, D], as a matrix like `wanted_places(x)`.

    `head` is [R, 1], v and w [D, K]; arrays or nodes of a graph.
    """
    return ops.sampled_dot(wanted_places(x), head * ops.dot(x, w, result="dense"), v, transpose_b=True)


def _own_terms(x: Any, head: Any, v: Any, w: Any) -> Any:
    """Return head_r x_ri <v_i, w_i> at the stored positions (r, i) of x [R, D], in the format of `wanted_places(x)`.

    `head` is [R, 1], v and w [D, K]; arrays or nodes of a graph.
    """
    products = ops.sum(ops.to_format(v * w, format="dense"), axis=1, keepdims=True)
    return ops.multiply(x, ops.sampled_dot(wanted_places(x), head, products, transpose_b=True))


def _second(head: Any, output: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple:
    """Return the gradients (of x, v and the inner head) of `interactions_gradient`, linear in v and its head.

    `output` is unused.
    """
    x, v, inner = inputs
    head = ops.to_format(head, format="dense")
    both = ops.add(_towards(x, inner, v, head), _towards(x, inner, head, v))
    towards_x = ops.subtract(both, ops.multiply_scalar(_own_terms(x, inner, v, head), scalar=2.0))
    pairs = ops.sum(ops.dot(x, v, result="dense") * ops.dot(x, head, result="dense"), axis=1, keepdims=True)
    own = ops.dot(ops.square(x), ops.sum(v * head, axis=1, keepdims=True), result="dense")
    return towards_x, ops.interactions_gradient(x, head, inner, **params), ops.subtract(pairs, own)


def _gradient_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of v; OpError unless the head, shapes[2], is [R, 1]."""
    rows, one = _shape(shapes, params)
    if tuple(shapes[2]) != (rows, one):
        raise OpError(f"The head of interactions of {rows} rows has shape {(rows, one)}; {tuple(shapes[2])} came.")
    return tuple(shapes[1])


operator(
    "interactions",
    _dense,
    _shape,
    "For each row of x [R, D] the sum over all pairs of its features i < j of x_i x_j <v_i, v_j>, with v [D, K]: "
    "[R, 1], in O(z K). With `sparse_grad` the gradient of v is row_sparse where x is sparse: the active rows.",
    inputs=("x", "v"),
    params={"sparse_grad": True},
    rules=tuple(rules_with_plan(_sparse, 1, "dense", "csr_dense")),
    dtype=real,
    gradient=_gradient,
    family="layers",
)
operator(
    "interactions_gradient",
    _whole_gradient,
    _gradient_shape,
    "The gradient of `interactions` towards v, by the head [R, 1]: x.T @ (head * (x @ v)) - (x^2).T @ head * v; "
    "row_sparse with `sparse_grad` where x is sparse, else dense.",
    inputs=("x", "v", "head"),
    params={"sparse_grad": True},
    rules=(
        *rules_with_plan(_gradient_of_rows, 2, "row_sparse", "csr_dense", "sparse_grad"),
        *(Rule((form, "dense", "dense"), "dense", _whole_gradient, "csr_dense") for form in stored.SPARSE),
    ),
    dtype=real,
    gradient=_second,
    family="layers",
)
