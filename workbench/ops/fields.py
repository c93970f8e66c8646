"""Sums of embeddings by field: for each field of columns, such as users and items, the sum over its features.

>>> import numpy as np
>>> from workbench import ops
>>> x = ops.to_format(np.float32([[1, 0, 0, 1], [0, 1, 1, -1]]), format="csr")
>>> ops.field_sums(x, np.float32([[1], [2], [10], [20]]), fields=(2, 2)).tolist()
[[1.0, 20.0], [2.0, -10.0]]

It equals x @ V where V [D, F K] has the row v_i of a feature in the columns of its field and zeros elsewhere, in O(z K)
and without that table. Matrix factorization is the product of the sums of two fields.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import kernels
from kernels.plan import BatchPlan
from workbench import formats, ops
from workbench.formats import RowSparse
from workbench.formats.compressed import assemble
from workbench.ops import stored
from workbench.ops.contract import REQUIRED, OpError, Rule, Shape, operator, real, rules_with_plan
from workbench.ops.like import put
from workbench.ops.places import wanted_places
from workbench.ops.products import make_plan, rule


def _borders(fields: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first column, end column) of each field, whose lengths are `fields`."""
    return itertools.pairwise(itertools.accumulate(fields, initial=0))


def _check(x: Shape, v: Shape, fields: Sequence[int]) -> tuple[int, int]:
    """Return (rows, width) of the sums for x [R, D] and v [D, K]. Raises OpError if shapes or fields do not fit."""
    if len(x) != 2 or len(v) != 2 or x[1] != v[0]:
        raise OpError(f"field_sums takes x [R, D] and v [D, K]; the shapes {tuple(x)} and {tuple(v)} came.")
    if not fields or min(fields) < 0 or sum(fields) != x[1]:
        raise OpError(f"fields is {list(fields)}; they are the numbers of columns of each, {x[1]} together.")
    return x[0], len(fields) * v[1]


def _shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape [R, F K] of field_sums for shapes of (x [R, D], v [D, K]) and F fields.

    OpError if unfit.
    """
    return _check(shapes[0], shapes[1], params["fields"])


def _dense(
    x: np.ndarray, v: np.ndarray, out: np.ndarray | None = None, fields: Any = REQUIRED, sparse_grad: bool = True
) -> np.ndarray:
    """Return the sums [R, F K] of x[:, field] @ v[field] for dense x [R, D] and v [D, K], in `out` if given.

    `fields` are the sizes of the F fields as in `_borders`; `sparse_grad` is unused.
    """
    return put(out, np.concatenate([x[:, low:high] @ v[low:high] for low, high in _borders(fields)], axis=1))


def _sparse(x: Any, v: np.ndarray, out: np.ndarray | None = None, fields: Any = (), **_: Any) -> np.ndarray:
    """Return the sums [R, F K] of x[:, field] @ v[field], dense, for sparse x [R, D] and v [D, K], in `out` if given.

    `fields` are the sizes of the F fields as in `_borders`.
    """
    x = formats.to_format(x, "csr")
    return put(out, np.concatenate([rule("csr", False)(_field(x, *pair), v) for pair in _borders(fields)], axis=1))


def _field(x: Any, low: int, high: int) -> Any:
    """Return the entries of columns `low` to `high` - 1 of a csr matrix, as csr of the same shape; O(z)."""
    mask = (x.indices >= low) & (x.indices < high)
    before = np.concatenate([[0], np.cumsum(mask)])
    indptr = before[x.indptr].astype(x.indptr.dtype)
    return assemble("csr", indptr, x.indices[mask], x.data[mask], x.shape)


def _gradient_of_rows(
    x: Any, v: Any, head: np.ndarray, plan: BatchPlan | None = None, fields=(), **_: Any
) -> RowSparse:
    """Return the gradient of v [D, K] for sparse x and `head` [R, F K], row_sparse on the active columns.

    `plan` is the batch plan of x, computed if None. Columns of a field are adjacent in it and read their part of the
    head.
    """
    x = formats.to_format(x, "csr")
    plan = plan or make_plan(x)
    width, values = v.shape[1], np.zeros((plan.touched, v.shape[1]), head.dtype)
    entries, kernel = plan.in_order(x.data), kernels.get("csr_t_dense").trusted
    for field, (low, high) in enumerate(_borders(fields)):
        first, end = np.searchsorted(plan.columns, (low, high))
        if first < end and width:
            part = np.ascontiguousarray(head[:, field * width : (field + 1) * width])
            kernel(plan.segments[first : end + 1], plan.rows, entries, part, values[first:end])
    return RowSparse.assemble(values, plan.columns, tuple(v.shape))


def _whole_gradient(
    x: Any, v: Any, head: np.ndarray, out: np.ndarray | None = None, fields: Any = REQUIRED, sparse_grad: bool = True
) -> np.ndarray:
    """Return the gradient of v [D, K], dense, for x in any format and `head` [R, F K], in `out` if given.

    `fields` are the sizes of the F fields; `sparse_grad` is unused.
    """
    if not isinstance(x, np.ndarray):
        return put(out, formats.to_format(_gradient_of_rows(x, v, head, fields=fields), "dense"))
    parts = np.split(head, len(fields), axis=1)
    pairs = zip(_borders(fields), parts, strict=True)
    return put(out, np.concatenate([x[:, low:high].T @ part for (low, high), part in pairs]))


def _spread(v: Any, fields: Sequence[int]) -> Any:
    """Return the table V [D, F K] by operators: row i of v in the columns of its field, zeros elsewhere."""
    rows = []
    for own, (low, high) in enumerate(_borders(fields)):
        part = ops.slice(v, begin=[low], end=[high])
        none = ops.zeros_like(part)
        rows.append(ops.concat(*(part if place == own else none for place in range(len(fields))), axis=1))
    return ops.concat(*rows, axis=0)


def _towards(x: Any, head: Any, v: Any, fields: Sequence[int]) -> Any:
    """Return the gradient of x [R, D] at its stored positions: head @ V.T for the table V of `_spread(v, fields)`."""
    return ops.sampled_dot(wanted_places(x), head, _spread(v, fields), transpose_b=True)


def _gradient(head: Any, output: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple:
    """Return the gradients (of x, of v) of field_sums for the gradient `head` [R, F K] of its result.

    `output` is unused.
    """
    x, v = inputs
    return _towards(x, head, v, params["fields"]), ops.field_sums_gradient(x, v, head, **params)


def _second(head: Any, output: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple:
    """Return the gradients (of x, None, of the inner head) of `field_sums_gradient`, which is linear in both.

    `output` is unused.
    """
    x, _, inner = inputs
    head = ops.to_format(head, format="dense")
    return _towards(x, inner, head, params["fields"]), None, ops.field_sums(x, head, **params)


def _gradient_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of v; OpError unless the head, shapes[2], has the shape of the sums."""
    sums = _shape(shapes, params)
    if tuple(shapes[2]) != sums:
        raise OpError(f"The head of field_sums has the shape {sums}; {tuple(shapes[2])} came.")
    return tuple(shapes[1])


operator(
    "field_sums",
    _dense,
    _shape,
    "For each row of x [R, D] and each of F fields, which are so many columns each, the sum of x_i v_i over the "
    "features of that field, with v [D, K]: [R, F K]. With `sparse_grad` the gradient of v is row_sparse where x "
    "is sparse: the active rows.",
    rules=tuple(Rule((form, "dense"), "dense", _sparse, "csr_dense") for form in stored.SPARSE),
    dtype=real,
    gradient=_gradient,
    family="layers",
)
operator(
    "field_sums_gradient",
    _whole_gradient,
    _gradient_shape,
    "The gradient of `field_sums` towards v, by the head [R, F K], of which each field reads its part: row_sparse "
    "with `sparse_grad` where x is sparse, else dense. Of v the shape alone is read.",
    rules=(
        *rules_with_plan(_gradient_of_rows, 2, "row_sparse", "csr_t_dense", "sparse_grad"),
        *(Rule((form, "dense", "dense"), "dense", _whole_gradient, "csr_t_dense") for form in stored.SPARSE),
    ),
    dtype=real,
    gradient=_second,
    unread=(1, 2),
    family="layers",
)
