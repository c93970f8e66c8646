"""The sum of any number of arrays, the sum back to the shape of a broadcast operand, and the quotient at stored
positions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from workbench import ops
from workbench.ops import stored
from workbench.ops.binary import EQUAL, ON_BOTH, ON_STORED, equal
from workbench.ops.contract import ANY, Op, OpError, Rule, Shape, broadcast_shape, one_type, real, register, same_shape


def _sum_of_dense(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Add dense arrays."""
    total = np.positive(arrays[0], out=out)
    for array in arrays[1:]:
        total = np.add(total, array, out=total if isinstance(total, np.ndarray) else None)
    return total


def _sum_of_sparse(*arrays: Any, out: np.ndarray | None = None) -> Any:
    """Add sparse arrays of one format."""
    if len(arrays) == 1:
        return stored.mapped(arrays[0], np.positive)
    total, *others = arrays
    for array in others:
        total = stored.union(total, array, np.add)
    return total


def _sum_onto_dense(*arrays: Any, out: np.ndarray | None = None) -> np.ndarray:
    """Add dense and sparse arrays; the result is dense."""
    if out is None:
        out = np.empty(arrays[0].shape, arrays[0].dtype)
    out[...] = 0
    for array in arrays:
        if isinstance(array, np.ndarray):
            np.add(out, array, out=out)
        else:
            stored.onto_dense(out, array, np.add, out)
    return out


register(
    Op(
        "add_n",
        ("*arrays",),
        _sum_of_dense,
        same_shape,
        "The sum of any number of arrays of one shape.",
        rules=(
            *(Rule((form, ...), form, _sum_of_sparse, ON_BOTH) for form in stored.SPARSE),
            Rule((ANY, ...), "dense", _sum_onto_dense, "numpy onto a dense one", None, "one is dense", needs="dense"),
        ),
        dtype=one_type,
        gradient=lambda head, output, inputs, params: (head,) * len(inputs),
        family="sums",
    )
)


def _like_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of `like`; OpError if it does not broadcast to that of x."""
    x, like = shapes
    tail = x[len(x) - len(like) :]
    if len(like) > len(x) or any(small not in (1, large) for small, large in zip(like, tail, strict=True)):
        raise OpError(f"An array of shape {x} cannot be summed to {like}, since {like} does not broadcast to it.")
    return like


def _bind_sum_to(x: np.ndarray, like: Any, out: np.ndarray) -> Callable[[], Any] | None:
    """Return a call that sums over the rows into `out`, for arrays that many calls share; None for other shapes."""
    return partial(np.add.reduce, x, 0, None, out) if like.shape == x.shape[1:] else None


def _sum_to(x: np.ndarray, like: Any, out: np.ndarray | None = None) -> np.ndarray:
    """Sum x over the axes along which `like` was broadcast; the result has the shape of `like`."""
    if x.shape == like.shape:
        return x if out is None else np.positive(x, out=out)
    lead = x.ndim - like.ndim
    if out is not None and like.shape == x.shape[lead:]:
        of_rows: Any = 0 if lead == 1 else tuple(range(lead))
        return np.add.reduce(x, of_rows, x.dtype, out=out)
    axes = tuple(range(lead)) + tuple(
        lead + axis for axis, length in enumerate(like.shape) if length == 1 != x.shape[lead + axis]
    )
    total = np.asarray(x.sum(axis=axes, keepdims=True, dtype=x.dtype)).reshape(like.shape)
    if out is None:
        return total
    np.copyto(out, total)
    return out


def _as_it_is(x: Any, like: Any, out: np.ndarray | None = None) -> Any:
    """Return x, which has the shape of `like`."""
    return x if out is None else np.positive(x, out=out)


register(
    Op(
        "sum_to_shape_of",
        ("x", "like"),
        _sum_to,
        _like_shape,
        "x summed over the axes along which `like` would be broadcast to it; x itself, not a copy, where the shapes are"
        " equal. Of `like` only the shape is read.",
        rules=(
            *(
                Rule((form, ANY), form, _as_it_is, "nothing to do", equal, "equal shapes")
                for form in ("dense", *stored.SPARSE)
            ),
            Rule(("dense", ANY), "dense", _sum_to, "numpy", bind=_bind_sum_to),
        ),
        dtype=lambda dtypes, params: dtypes[0],
        gradient=lambda head, output, inputs, params: (ops.add(ops.zeros_like(inputs[0]), head), None),
        unread=(1, None),
        family="sums",
    )
)


def _quotient(x: Any, y: Any, out: np.ndarray | None = None) -> Any:
    """Return x / y at the stored positions of x."""
    return stored.with_dense(x, y, np.divide) if isinstance(y, np.ndarray) else stored.with_any(x, y, np.divide)


def _quotient_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the dividend; OpError if the divisor is larger."""
    if broadcast_shape(shapes, params) != tuple(shapes[0]):
        raise OpError(f"An array of shape {tuple(shapes[0])} cannot be divided where it is stored by a larger one.")
    return tuple(shapes[0])


def _quotient_gradient(head: Any, output: Any, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple:
    """Return the gradients of x and y."""
    x, y = inputs
    head = ops.at_places_of(head, x, rows=True)
    towards_y = ops.negative(ops.stored_divide(ops.multiply(head, output), y))
    return ops.stored_divide(head, y), ops.sum_to_shape_of(ops.to_format(towards_y, format="dense"), y)


register(
    Op(
        "stored_divide",
        ("x", "y"),
        np.divide,
        _quotient_shape,
        "x / y where x is stored; what x does not store stays zero, also where y is zero. All of a dense x is stored; "
        "y may be broadcast to it.",
        rules=(
            *(Rule((form, "dense"), form, _quotient, ON_STORED) for form in stored.SPARSE),
            *(Rule((form, ANY), form, _quotient, ON_STORED, equal, EQUAL) for form in stored.SPARSE),
        ),
        dtype=real,
        gradient=_quotient_gradient,
        family="sums",
    )
)
