"""Products of all elements but one: the gradient of `prod`, and its gradient."""

import numpy as np

from workbench import ops
from workbench.ops.contract import Op, register, same_shape
from workbench.ops.like import axes_of, put


def _along_last(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Merge `axes` into one axis and move it last."""
    kept = [place for place in range(x.ndim) if place not in axes]
    moved = np.ascontiguousarray(np.transpose(x, (*kept, *axes)))
    return moved.reshape(*(x.shape[place] for place in kept), -1)


def _back(flat: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    """Undo `_along_last`."""
    order = (*(place for place in range(len(shape)) if place not in axes), *axes)
    moved = flat.reshape([shape[place] for place in order])
    return np.asarray(np.transpose(moved, np.argsort(order)), order="C")


def _others(x, out=None, axis=None):
    """Return for each element the product of all others along the axes."""
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return put(out, x.copy())
    flat = _along_last(x, axes)
    left, right = np.ones_like(flat), np.ones_like(flat)
    np.multiply.accumulate(flat[..., :-1], axis=-1, out=left[..., 1:])
    right[..., :-1] = np.multiply.accumulate(flat[..., :0:-1], axis=-1)[..., ::-1]
    return put(out, _back(left * right, x.shape, axes))


register(
    Op(
        "product_of_others",
        ("x",),
        _others,
        lambda shapes, params: tuple(shapes[0]),
        "For every element the product of the others along the axes: what the gradient of prod is made of.",
        params={"axis": None},
        gradient=lambda head, output, inputs, params: (ops.slope_of_others(head, inputs[0], **params),),
        family="reductions",
    )
)


def _before(values: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the product of the preceding elements along the last axis, and its derivative along `moves`.
    O(elements).
    """
    product, change = np.ones_like(values), np.zeros_like(values)
    for place in range(1, values.shape[-1]):
        before = place - 1
        change[..., place] = change[..., before] * values[..., before] + product[..., before] * moves[..., before]
        product[..., place] = product[..., before] * values[..., before]
    return product, change


def _slope_of_others(head, x, out=None, axis=None):
    """Return the derivative of `_others` along `head` (the matrix of second derivatives is symmetric)."""
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return put(out, x.copy())
    values, moves = _along_last(x, axes), _along_last(head, axes)
    left, left_change = _before(values, moves)
    right, right_change = (part[..., ::-1] for part in _before(values[..., ::-1], moves[..., ::-1]))
    return put(out, _back(left_change * right + left * right_change, x.shape, axes))


register(
    Op(
        "slope_of_others",
        ("head", "x"),
        _slope_of_others,
        same_shape,
        "The gradient of `product_of_others`: for every element the sum over each other one of its head times the "
        "product of those that are left.",
        params={"axis": None},
        gradient=lambda head, output, inputs, params: (ops.slope_of_others(head, inputs[1], **params), None),
        no_gradient="For third derivatives of a product write it as exp(sum(log(x))).",
        family="reductions",
    )
)
