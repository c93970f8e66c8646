"""Losses and output layers.

A loss is the mean over the rows, with the corresponding gradient. An output layer returns predictions, and its gradient
is that of a loss on them, whatever the incoming gradient, as in Apache MXNet. Gradients of losses with respect to their
scores, and the gradients of these (Hessian-vector products), are operators too.

Both take one label per score, [R, N] or for N = 1 also [R]; the softmax ones take a class per row, [R].

>>> import numpy as np
>>> from workbench import ops
>>> ops.squared_loss(np.float32([[1], [3]]), np.float32([[0], [0]]))
array(2.5, dtype=float32)
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import kernels
from workbench import ops
from workbench.ops import stored
from workbench.ops.contract import ANY, REQUIRED, Op, OpError, Rule, Shape, operator, real, same_shape
from workbench.ops.like import as_dense, put, reshape_like
from workbench.ops.unary import sigmoid

NORMALIZATIONS = ("null", "batch", "valid")
OF_OUTPUT_LAYER = (
    "An output layer ignores the gradient that comes to it, so its own has no true gradient: take softmax_loss, "
    "logistic_loss or squared_loss."
)


def _float(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of the scores; OpError unless it is float16, float32 or float64. Labels may have another."""
    return real(dtypes[:1], params)


def check_labels(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the scores, shapes[0]; OpError unless the labels, shapes[1], have a value for each score.

    Labels have the same shape, or lack a last axis of length one. `params` is unused.
    """
    scores, labels = map(tuple, shapes)
    if labels != scores and not (scores[-1:] == (1,) and labels == scores[:-1]):
        raise OpError(f"Scores of shape {scores} go with labels of that shape; {labels} came.")
    return scores


def check_classes(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the scores [.., N].

    Raises OpError unless labels lack the last axis or have length one there. `params` is unused.
    """
    scores, labels = map(tuple, shapes)
    if not scores or labels not in (scores[:-1], (*scores[:-1], 1)):
        raise OpError(f"Scores of shape {scores} go with a class for each row, shape {scores[:-1]}; {labels} came.")
    return scores


def _classes(labels: np.ndarray) -> np.ndarray:
    """Return labels as int64, not copied if possible. Raises OpError if one is not a whole number."""
    whole = labels.astype(np.int64, copy=False)
    if labels.dtype.kind == "f" and not np.array_equal(whole, labels):
        raise OpError("Labels of classes are whole numbers; a fraction or NaN came.")
    return whole


def _ready(scores: np.ndarray, labels: np.ndarray, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return scores as [R, N], and labels as [R, N] of the scores' dtype, or as int64 [R] if `classes`.

    Views where possible, else copies.
    """
    rows = scores.shape[0]
    flat = scores if scores.ndim == 2 else scores.reshape(rows, math.prod(scores.shape[1:]))
    if classes:
        return flat, _classes(labels).reshape(rows)
    alike = labels if labels.dtype == scores.dtype else labels.astype(scores.dtype)
    return flat, alike if alike.shape == flat.shape else alike.reshape(flat.shape)


@functools.cache
def _trusted_kernel(kernel: str) -> Callable[..., Any]:
    """Return the function of the kernel called `kernel` that skips the check of operands' contents; cached."""
    trusted: Callable[..., Any] = kernels.get(kernel).trusted
    return trusted


def _loss(kernel: str, classes: bool) -> tuple[Callable, Callable]:
    """Return (loss(scores, labels, out), joint(scores, labels, slope)) of a loss kernel.

    `classes` says that labels are class indices.
    """

    def joint(scores, labels, slope):
        """Return the mean loss as a 0-d array of the scores' dtype; overwrite `slope` by the gradient of the scores.

        `slope` has the shape and dtype of `scores`; labels are class indices if `classes`.
        """
        flat, ready = _ready(scores, labels, classes)
        return np.asarray(_trusted_kernel(kernel)(flat, ready, slope.reshape(flat.shape)), scores.dtype)

    def loss(scores, labels, out=None):
        """Return the mean loss as a 0-d array of the scores' dtype, in `out` if given."""
        return put(out, joint(scores, labels, np.empty(scores.shape, scores.dtype)))

    return loss, joint


def _loss_shape(check: Callable) -> Callable:
    """Return a shape function for a loss: it returns () if `check` accepts the inputs."""

    def shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        """Return (), the shape of the loss. Raises OpError if the shapes of scores and labels do not fit."""
        if not shapes[0]:
            raise OpError("A loss takes scores of rows; a single number came.")
        check(shapes, params)
        return ()

    return shape


def _register_loss(name: str, kernel: str, check: Callable, doc: str, towards_labels: Callable) -> None:
    """Register the loss operator `name`, computed by `kernel`.

    `check` validates shapes, `towards_labels(slope, labels)` returns the gradient of the labels or None.
    """
    loss, joint = _loss(kernel, check is check_classes)

    def gradient(head, output, inputs, params):
        """Return the gradients (of scores, of labels), the `inputs`, both times `head`, the gradient of the loss.

        `output` and `params` are unused.
        """
        slope = ops.multiply(ops.slope_of_loss(*inputs, loss=name), head)
        return slope, towards_labels(slope, inputs[1])

    operator(
        name,
        loss,
        _loss_shape(check),
        doc,
        inputs=("scores", "labels"),
        rules=(Rule(("dense", "dense"), "dense", loss, kernel),),
        dtype=kernel_float,
        gradient=gradient,
        joint=joint,
        family="losses",
    )


def kernel_float(dtypes: Sequence[np.dtype], params: Mapping[str, Any]) -> np.dtype:
    """Return the dtype of the first input, the scores. Raises OpError unless it is float32 or float64.

    `params` is unused.
    """
    if dtypes[0] not in (np.float32, np.float64):
        raise OpError(f"Scores are float32 or float64; {dtypes[0]} came. Convert with cast.")
    return dtypes[0]


_register_loss(
    "squared_loss",
    "squared",
    check_labels,
    "Half the squared error, summed over the outputs, as a mean over the rows.",
    lambda slope, labels: ops.reshape_like(ops.negative(slope), labels),
)
_register_loss(
    "logistic_loss",
    "logistic",
    check_labels,
    "Cross-entropy of sigmoid(scores) and labels from 0 to 1, summed over the outputs, as a mean over the rows.",
    lambda slope, labels: None,
)
_register_loss(
    "softmax_loss",
    "softmax",
    check_classes,
    "Cross-entropy of softmax(scores) and classes, as a mean over the rows. A class out of range is refused.",
    lambda slope, labels: None,
)


def _sigmoid(x, out=None):
    """Return 1 / (1 + exp(-x)) of each element of a dense x, in `out` if given."""
    return sigmoid(x, out)


def _copy(x, out=None):
    """Return a copy of the dense array x, in `out` if given."""
    return put(out, x.copy() if out is None else x)


def _difference(output, label, out=None):
    """Return output - label, dense, in `out` if given.

    Label has any format, its shape or that without the last axis.
    """
    if isinstance(label, np.ndarray):
        return np.subtract(output, label.astype(output.dtype, copy=False).reshape(output.shape), out=out)
    if tuple(label.shape) != output.shape:
        return _difference(output, as_dense(label), out)
    return stored.onto_dense(output, label, np.subtract, out)


def _slope_of_output(output, label, out=None, kind="difference", grad_scale=1.0):
    """Return the gradient of an output layer: (output - label), or its sign, * grad_scale / outputs of a row.

    Dense, in `out` if given; `kind` "sign" selects the sign.
    """
    difference = _difference(output, label, out)
    if kind == "sign":
        difference = np.sign(difference, out=difference)
    outputs = int(np.prod(output.shape[1:], dtype=np.int64))
    return np.multiply(difference, output.dtype.type(grad_scale / max(outputs, 1)), out=difference)


def _register_output(name: str, forward: Callable, kind: str, doc: str) -> None:
    """Register the output layer `name`, which returns `forward(x, out)`.

    Its gradient is `slope_of_output` by `kind`.
    """

    def call(x, label, out=None, grad_scale=1.0):
        """Return `forward(x)`, in `out` if given; label and grad_scale are used by the gradient alone."""
        return forward(x, out)

    def gradient(head, output, inputs, params):
        """Return (gradient of x from output and label, None); the incoming gradient `head` is ignored."""
        return ops.slope_of_output(output, inputs[1], kind=kind, grad_scale=params["grad_scale"]), None

    operator(
        name,
        call,
        check_labels,
        f"{doc}, times `grad_scale`, divided by the outputs of a row; the gradient that comes in is ignored.",
        inputs=("x", "label"),
        params={"grad_scale": 1.0},
        rules=(Rule(("dense", ANY), "dense", call, "numpy"),),
        dtype=_float,
        gradient=gradient,
        family="losses",
    )


OUTPUT_LAYERS = (*(f"{name}_regression_output" for name in ("linear", "logistic", "mae")), "softmax_output")
"""Operators whose output does not depend on their second input, the labels."""
_register_output("linear_regression_output", _copy, "difference", "x itself; its gradient is x - label")
_register_output("logistic_regression_output", _sigmoid, "difference", "sigmoid(x); the gradient of x is that - label")
_register_output("mae_regression_output", _copy, "sign", "x itself; its gradient is the sign of x - label")
operator(
    "slope_of_output",
    _slope_of_output,
    check_labels,
    "The gradient of an output layer: the difference, or its sign, as `kind` says.",
    rules=(Rule(("dense", ANY), "dense", _slope_of_output, "numpy"),),
    dtype=_float,
    no_gradient=OF_OUTPUT_LAYER,
    family="losses",
)

_SOFTMAX = {"grad_scale": 1.0, "normalization": "null", "use_ignore": False, "ignore_label": -1.0}


def _softmax(x, label, out=None, **params):
    """Return the softmax of dense x along the last axis, in `out` if given; label and params are unused."""
    return softmax_of(x, out)


def softmax_of(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return exp(x) normalised to a sum of one along the last axis, in `out` if given.

    The maximum is subtracted first.
    """
    if not x.size:
        return _copy(x, out)
    risen = np.exp(x - x.max(axis=-1, keepdims=True), out=out)
    return np.divide(risen, risen.sum(axis=-1, keepdims=True), out=risen)


def _softmax_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the result shape of softmax_output; OpError if normalization or labels are invalid."""
    if params["normalization"] not in NORMALIZATIONS:
        raise OpError(f"normalization is {params['normalization']!r}; allowed are {', '.join(NORMALIZATIONS)}.")
    return check_classes(shapes, params)


def _slope_of_softmax(output, label, out=None, **params):
    """Return (p - onehot(label)) * grad_scale / count, p = output; zero for rows with the ignored label.

    `normalization` "null", "batch" or "valid" makes count 1, the rows, or the rows not ignored. In `out` if given.
    Raises OpError for a class out of range.
    """
    out = _copy(output, out)
    flat, labels = out.reshape(-1, output.shape[-1]) if out.size else out.reshape(0, 1), label.ravel()
    counted = labels != params["ignore_label"] if params["use_ignore"] else np.ones(labels.size, bool)
    rows, classes = np.flatnonzero(counted), _classes(labels[counted])
    if classes.size and not (classes.min() >= 0 and classes.max() < output.shape[-1]):
        raise OpError(
            f"Labels go from {classes.min()} to {classes.max()}; the classes are 0 to {output.shape[-1] - 1}."
        )
    flat[~counted] = 0
    flat[rows, classes] -= 1
    shares = {"null": 1, "batch": output.shape[0], "valid": rows.size}[params["normalization"]]
    return np.multiply(out, out.dtype.type(params["grad_scale"] / max(shares, 1)), out=out)


operator(
    "softmax_output",
    _softmax,
    _softmax_shape,
    "softmax over the last axis; the gradient of x is that less one at the label, times `grad_scale`, divided by "
    "the rows (`normalization` batch), by those not ignored (valid) or by nothing (null). With `use_ignore` rows "
    "of `ignore_label` have none. The gradient that comes in is ignored.",
    inputs=("x", "label"),
    params=_SOFTMAX,
    dtype=_float,
    gradient=lambda head, output, inputs, params: (ops.slope_of_softmax(output, inputs[1], **params), None),
    family="losses",
)
operator(
    "slope_of_softmax",
    _slope_of_softmax,
    _softmax_shape,
    "The gradient of softmax_output, from its output.",
    inputs=("output", "label"),
    params=_SOFTMAX,
    dtype=_float,
    no_gradient=OF_OUTPUT_LAYER,
    family="losses",
)


def _over_rows(x, out=None):
    """Return dense x divided by its number of rows, in `out` if given."""
    rows = np.asarray(x.shape[0] if x.ndim else 1, x.dtype)
    return np.divide(x, rows, out=out)


over_rows: Op = operator(
    "over_rows",
    _over_rows,
    same_shape,
    "x divided by the number of its rows: what a mean over the rows leaves of a gradient.",
    dtype=real,
    gradient=lambda head, output, inputs, params: (over_rows(head),),
    family="losses",
)


def _slope_of_loss(scores, labels, out=None, loss=REQUIRED):
    """Return the gradient of the scores of the loss operator called `loss`, for a gradient of 1 of the loss.

    In `out` if given.
    """
    out = np.empty(scores.shape, scores.dtype) if out is None else out
    ops.get(loss).joint(scores, labels, out)
    return out


def _squared(head: Any, scores: Any) -> Any:
    """Return the Hessian of R times the mean squared loss, applied to `head`: head itself; `scores` is unused."""
    return head


def _logistic(head: Any, scores: Any) -> Any:
    """Return the Hessian of R times the mean logistic loss, applied to `head`: head * p * (1 - p)."""
    share = ops.sigmoid(scores)
    return ops.multiply(head, ops.multiply(share, ops.subtract_from_scalar(share, scalar=1.0)))


def _grad_softmax(head: Any, scores: Any) -> Any:
    """Return the Hessian of R times the mean cross-entropy, applied to `head`: p * (head - sum(head * p))."""
    shares = ops.softmax(scores)
    return ops.multiply(shares, ops.subtract(head, ops.sum(ops.multiply(head, shares), axis=-1, keepdims=True)))


CURVATURES = {"squared_loss": _squared, "logistic_loss": _logistic, "softmax_loss": _grad_softmax}
"""For each loss the gradient of rows * slope towards the scores."""
LINEAR_IN_LABELS = ("squared_loss", "logistic_loss")


def _gradient(head, output, inputs, params):
    """Return the gradients (of scores, of labels), the `inputs` of `slope_of_loss`.

    Labels that are class indices have None. `head` is the gradient of its output, params["loss"] the name of the loss.
    """
    scores, labels = inputs
    towards_scores = over_rows(CURVATURES[params["loss"]](head, scores))
    if params["loss"] not in LINEAR_IN_LABELS:
        return towards_scores, None
    return towards_scores, reshape_like(ops.negative(over_rows(head)), labels)


def _shape(shapes, params):
    """Return the shape of the first input, the scores; OpError if params["loss"] is unknown."""
    if params["loss"] not in CURVATURES:
        raise OpError(f"There is no loss {params['loss']!r}; the losses are {', '.join(sorted(CURVATURES))}.")
    return tuple(shapes[0])


operator(
    "slope_of_loss",
    _slope_of_loss,
    _shape,
    "The gradient of the loss named `loss` towards the scores.",
    dtype=kernel_float,
    gradient=_gradient,
    family="losses",
)
