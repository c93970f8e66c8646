"""The gradient of a sum: broadcast over its elements, unless it is multiplied by a factor that stores few.

`sum(square(w))` of a row_sparse w has a gradient in the rows that w stores; broadcast over all elements first, it would
have all rows. A rule that multiplies its head by a factor calls `times`, which keeps such a head unbroadcast; a linear
rule calls `through`, which keeps the broadcast last.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import ops
from workbench.ops import fallback
from workbench.ops.contract import ANY, Op, Rule, Shape, Symbolic, operator
from workbench.ops.like import as_dense, axes_of, keep_axes, put, shape_of_last, type_of_first, with_ones
from workbench.ops.stored import SPARSE, with_dense


def _kept_head(head: Any, like: Any, axis: Any, mean: bool) -> np.ndarray:
    """Return head, dense, in the shape of `like` with length one along `axis`; divided by the count if `mean`."""
    axes = axes_of(axis, len(like.shape))
    kept = np.asarray(as_dense(head)).reshape(with_ones(like.shape, axes))
    if not mean:
        return kept
    count = float(math.prod(like.shape[axis] for axis in axes))
    with np.errstate(all="ignore"):
        return (kept / np.float64(count)).astype(kept.dtype)  # float16 has no counts beyond 65,504


def _spread(head, like, out=None, axis=None, keepdims=False, mean=False):
    """Return head broadcast to the shape of `like` over the reduced `axis`, dense, in `out` if given.

    If `mean`, head is divided by the count of reduced elements. `keepdims` is unused.
    """
    whole = spread_view(head, like, axis, mean)
    return put(out, whole.copy() if out is None else whole)


def _spread_sparse(head, like, out=None, **params):
    """Return head broadcast to the shape of a sparse `like`, dense, which is reported. Raises DensifyError."""
    fallback.report("spread", ("dense", like.format), (head, like))
    return _spread(head, like, out, **params)


def spread_view(head: Any, like: Any, axis: Any, mean: bool) -> np.ndarray:
    """Return head broadcast to the shape of `like` as a read-only view: the gradient of a sum over `axis`.

    If `mean`, head is first divided by the number of elements that one mean is of.
    """
    return np.broadcast_to(_kept_head(head, like, axis, mean), like.shape)


def reduced(head: Any, params: Mapping[str, Any]) -> Any:
    """Return the sum, or the mean if `mean` is among `params`, of head over the axes."""
    return (ops.mean if params["mean"] else ops.sum)(head, axis=params["axis"], keepdims=params["keepdims"])


spread = operator(
    "spread",
    _spread,
    shape_of_last,
    "The gradient of a sum over `axis`, or with `mean` of a mean: every element of `like` gets its sum's; dense. "
    "Where `like` is sparse, that is reported as making it dense.",
    rules=(
        Rule((ANY, "dense"), "dense", _spread),
        *(Rule((ANY, form), "dense", _spread_sparse, "numpy onto a dense array", densifies=True) for form in SPARSE),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (reduced(head, params), None),
    unread=(1, None),
    family="reductions",
)


def _spread_times(head, factor, like, out=None, axis=None, keepdims=False, mean=False):
    """Return head, broadcast over the reduced `axis` to the shape of `like`, times a dense factor.

    Dense, in `out` if given. `mean` divides by the count of elements; `keepdims` is unused.
    """
    out = np.empty(like.shape, head.dtype) if out is None else out
    return np.multiply(_kept_head(head, like, axis, mean), factor, out=out)


def _at_stored(head, factor, like, out=None, axis=None, keepdims=False, mean=False):
    """Return broadcast head * factor at the stored positions of a sparse factor, in its format; `out` is unused.

    `head` is broadcast over the reduced `axis` to the shape of `like`; `mean` divides by the count; `keepdims` is
    unused.
    """
    return with_dense(factor, _kept_head(head, like, axis, mean), np.multiply)


def _whole(shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
    """Return whether the factor, shapes[1], has the shape of `like`, shapes[2]; `params` is unused."""
    return tuple(shapes[1]) == tuple(shapes[2])


def _times_gradient(head, output, inputs, params):
    """Return the gradients (of head, of factor, None) of the `inputs` (head, factor, like) of spread_times.

    `head` is the gradient of `output`, `params` are those of spread_times.
    """
    sums, factor, like = inputs
    return (
        reduced(ops.multiply(head, factor), params),
        ops.sum_to_shape_of(spread_times(sums, head, like, **params), factor),
        None,
    )


spread_times = operator(
    "spread_times",
    _spread_times,
    shape_of_last,
    "`spread` times a factor, of the shape of `like` or a shape that is broadcast to it. An element that a "
    "sparse factor does not store stays zero, also if the head is inf or NaN.",
    rules=(
        *(
            Rule((ANY, form, ANY), form, _at_stored, "numpy on the stored values", _whole, "factor not broadcast")
            for form in SPARSE
        ),
        Rule((ANY, "dense", ANY), "dense", _spread_times),
    ),
    dtype=type_of_first,
    gradient=_times_gradient,
    unread=(2, None),
    family="reductions",
)


def _is(op: Op, head: Any) -> bool:
    """Return whether `head` is a symbol made by `op`."""
    return isinstance(head, Symbolic) and head.op is op


def inner_spread(head: Any) -> Symbolic | None:
    """Return the `spread` node that head is, or that head sums back to the shape of an operand.

    None if there is none.
    """
    inner = head.inputs[0] if _is(ops.sum_to_shape_of, head) else head
    return inner if _is(spread, inner) else None


def times(head: Any, factor: Any) -> Any:
    """Return head * factor; the factor has the shape of head or is broadcast to it.

    A head that is broadcast is multiplied by `spread_times`, so that a sparse factor keeps its format.
    """
    spreading = inner_spread(head)
    if spreading is None:
        return ops.multiply(head, factor)
    sums, like = spreading.inputs
    product = spread_times(sums, factor, like, **spreading.params)
    return product if spreading is head else ops.sum_to_shape_of(product, head.inputs[1])


def through(linear: Callable[[Any], Any], head: Any) -> Any:
    """Return `linear(head)` for an elementwise linear function.

    Of a broadcast head it is applied before the broadcast.
    """
    spreading = inner_spread(head)
    if spreading is None:
        return linear(head)
    sums, like = spreading.inputs
    wide = spread(linear(sums), like, **spreading.params)
    return wide if spreading is head else ops.sum_to_shape_of(wide, head.inputs[1])


def narrow(head: Any) -> Any:
    """Return what a broadcast head broadcasts, with length one along the reduced axes; any other head unchanged."""
    if not _is(spread, head) or head.params["mean"]:
        return head
    return keep_axes(*head.inputs, axis=head.params["axis"], keepdims=head.params["keepdims"])
