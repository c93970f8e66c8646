"""Gradients of changes of shape or dtype: operators that read only the shape or dtype of an input `like`."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats
from workbench.ops import fallback, stored
from workbench.ops.contract import ANY, Op, OpError, Rule, Shape, operator


def put(out: np.ndarray | None, result: np.ndarray) -> np.ndarray:
    """Return `result` itself if `out` is None, else `out` after copying `result` into it."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


def shape_of_last(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the last input as a tuple; `params` is unused."""
    return tuple(shapes[-1])


def type_of_first(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of the first input; `params` is unused."""
    return dtypes[0]


def check_countable(shape: Shape) -> None:
    """Raise OpError for a shape with 2**63 elements or more."""
    if math.prod(shape) >= 2**63:
        raise OpError(f"The shape {tuple(shape)} has {math.prod(shape):,} elements; up to 2**63 - 1 are counted here.")


def as_dense(x: Any) -> np.ndarray:
    """Return an array of any format as a dense one, without a warning; for small arrays such as gradients."""
    return formats.to_format(x, "dense")


def of_dense_head(name: str, call: Callable[..., np.ndarray], *others: str) -> tuple[Rule, Rule]:
    """Return the rules of the gradient operator `name`, by `call(head, *others, out, **params)` on a dense head.

    Of `others`, given as formats, only the shape is read. A sparse head is made dense, which is reported.
    """

    def of_sparse_head(head: Any, *like: Any, out: np.ndarray | None = None, **params: Any) -> np.ndarray:
        """Report the conversion, then return `call` on a dense copy of the head, in `out` if given.

        Raises DensifyError.
        """
        fallback.report(name, (head.format,), (head,))
        return call(as_dense(head), *like, out=out, **params)

    way_out = Rule((ANY, *others), "dense", of_sparse_head, "dense after to_format", densifies=True)
    return Rule(("dense", *others), "dense", call), way_out


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that `axis` selects (None: all `ndim`), ascending and non-negative.

    `axis` is an int or several. Raises OpError for an axis out of range or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    numbers = axis if isinstance(axis, tuple | list) else (axis,)
    if not all(isinstance(number, int | np.integer) and -ndim <= number < ndim for number in numbers):
        raise OpError(
            f"axis is {axis!r}; allowed are None, whole numbers from {-ndim} to {ndim - 1}, and tuples of them."
        )
    axes = sorted({int(number) % ndim for number in numbers})
    if len(axes) < len(numbers):
        raise OpError(f"axis is {axis!r}, which names an axis twice; name each once.")
    return tuple(axes)


def with_ones(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return `shape` with the lengths of `axes`, non-negative, replaced by one."""
    return tuple(1 if place in axes else length for place, length in enumerate(shape))


def _reshape_like(x, like, out=None):
    """Return a copy of dense x in the shape of `like`, in `out` if given."""
    return put(out, x.reshape(like.shape).copy() if out is None else x.reshape(like.shape))


def _check_size(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of `like`, the second input; OpError if x, the first, has another count of elements.

    `params` is unused.
    """
    x, like = shapes
    if math.prod(x) != math.prod(like):
        raise OpError(f"An array of shape {tuple(x)} cannot be given the shape {tuple(like)}: the sizes differ.")
    return tuple(like)


reshape_like: Op = operator(
    "reshape_like",
    _reshape_like,
    _check_size,
    "x in the shape of `like`, dense.",
    rules=of_dense_head("reshape_like", _reshape_like, ANY),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (reshape_like(head, inputs[0]), None),
    unread=(1, None),
    family="layout",
)


def _cast_like(x, like, out=None):
    """Return x in the dtype of `like` and its own format; in `out` if given and dense."""
    if isinstance(x, np.ndarray):
        return put(out, x.astype(like.dtype))
    return formats.astype(stored.canonical(x), like.dtype)


cast_like: Op = operator(
    "cast_like",
    _cast_like,
    lambda shapes, params: tuple(shapes[0]),
    "x with values of the type of `like`, in its own format.",
    rules=tuple(Rule((form, ANY), form, _cast_like) for form in ("dense", "csr", "csc", "coo", "row_sparse")),
    dtype=lambda dtypes, params: dtypes[1],
    gradient=lambda head, output, inputs, params: (cast_like(head, inputs[0]), None),
    unread=(1, None),
    family="layout",
)


def _keep_axes(head, like, out=None, axis=None, keepdims=False):
    """Return a reduction's result `head` in the shape of `like` with length one along `axis` (None: all); dense.

    `keepdims` is unused.
    """
    shape = with_ones(like.shape, axes_of(axis, len(like.shape)))
    return put(out, np.array(as_dense(head)).reshape(shape))


def _kept_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the second input with length one along the reduced axes."""
    return with_ones(shapes[1], axes_of(params["axis"], len(shapes[1])))


keep_axes = operator(
    "keep_axes",
    _keep_axes,
    _kept_shape,
    "The gradient of a reduction over `axis` with length one along the axes that `like` was reduced over; dense.",
    rules=(Rule((ANY, ANY), "dense", _keep_axes),),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (reshape_like(head, inputs[0]), None),
    unread=(1, None),
    family="reductions",
)


def _unless_alike(x, like, out=None):
    """Return a copy of dense x, in `out` if given; `like` is unused."""
    return put(out, x.copy() if out is None else x)


def _make_dense(x, like, out=None):
    """Return x as a dense array, in `out` if given; `like` is unused."""
    return put(out, as_dense(x))


dense_unless_alike = operator(
    "dense_unless_alike",
    _unless_alike,
    lambda shapes, params: tuple(shapes[0]),
    "x, dense unless `like` has its sparse format: head times factor, on the way to the other factor of a product.",
    rules=(
        *(
            Rule((form, form), form, lambda x, like, out=None: formats.copy(x))
            for form in ("csr", "csc", "coo", "row_sparse")
        ),
        Rule((ANY, ANY), "dense", _make_dense),
    ),
    dtype=type_of_first,
    gradient=lambda head, output, inputs, params: (head, None),
    unread=(1, None),
    family="layout",
)
