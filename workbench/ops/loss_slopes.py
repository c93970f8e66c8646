"""Gradients of losses with respect to their scores, and the gradients of these (Hessian-vector products)."""

from typing import Any

import numpy as np

from workbench import ops
from workbench.ops.contract import REQUIRED, Op, OpError, real, register, same_shape
from workbench.ops.like import reshape_like
from workbench.ops.losses import kernel_float


def _over_rows(x, out=None):
    """Divide x by its number of rows."""
    rows = np.asarray(x.shape[0] if x.ndim else 1, x.dtype)
    return np.divide(x, rows, out=out)


over_rows: Op = register(
    Op(
        "over_rows",
        ("x",),
        _over_rows,
        same_shape,
        "x divided by the number of its rows: what a mean over the rows leaves of a gradient.",
        dtype=real,
        gradient=lambda head, output, inputs, params: (over_rows(head),),
        family="losses",
    )
)


def _slope_of_loss(scores, labels, out=None, loss=None):
    """Return the gradient of the scores of the loss operator `loss` for a head of 1."""
    out = np.empty(scores.shape, scores.dtype) if out is None else out
    ops.get(loss).joint(scores, labels, out)
    return out


def _squared(head: Any, scores: Any) -> Any:
    """Return the Hessian of the squared loss times `head`."""
    return head


def _logistic(head: Any, scores: Any) -> Any:
    """Return the Hessian of the logistic loss times `head`."""
    share = ops.sigmoid(scores)
    return ops.multiply(head, ops.multiply(share, ops.subtract_from_scalar(share, scalar=1.0)))


def _softmax(head: Any, scores: Any) -> Any:
    """Return the Hessian of the softmax cross-entropy times `head`."""
    shares = ops.softmax(scores)
    return ops.multiply(shares, ops.subtract(head, ops.sum(ops.multiply(head, shares), axis=-1, keepdims=True)))


CURVATURES = {"squared_loss": _squared, "logistic_loss": _logistic, "softmax_loss": _softmax}
"""For each loss the gradient of rows * slope towards the scores."""
LINEAR_IN_LABELS = ("squared_loss", "logistic_loss")


def _gradient(head, output, inputs, params):
    """Return the gradients of scores and labels; labels that are class indices have none."""
    scores, labels = inputs
    towards_scores = over_rows(CURVATURES[params["loss"]](head, scores))
    if params["loss"] not in LINEAR_IN_LABELS:
        return towards_scores, None
    return towards_scores, reshape_like(ops.negative(over_rows(head)), labels)


def _shape(shapes, params):
    """Return the shape of the scores; OpError for an unknown loss."""
    if params["loss"] not in CURVATURES:
        raise OpError(f"There is no loss {params['loss']!r}; the losses are {', '.join(sorted(CURVATURES))}.")
    return tuple(shapes[0])


register(
    Op(
        "slope_of_loss",
        ("scores", "labels"),
        _slope_of_loss,
        _shape,
        "The gradient of the loss named `loss` towards the scores.",
        params={"loss": REQUIRED},
        dtype=kernel_float,
        gradient=_gradient,
        family="losses",
    )
)
