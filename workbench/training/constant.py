"""Predictions that ignore X: what they are called, and whether a trained model is worse than they are.

>>> import numpy as np
>>> why_worse("numbers", np.float64([[9], [9]]), np.float64([[1], [2]]))
'always predicting the mean: mean squared error 56.5, of the mean 0.25'
>>> why_worse("binary", np.float64([[-1], [1]]), np.float64([[0], [1]]))
''
"""

from typing import Any

import numpy as np

from workbench.metrics import constant_quality
from workbench.models import Model

MARGIN = 1e-3
"""What a model may be worse by without a word, relative to the error of the mean, or of all rows of a classifier."""
MARGIN_LOSS = 1e-2
"""The same of the log loss, relative and in nats: of an intercept that has not quite arrived."""


def constant_words(target: str) -> str:
    """Return what the best prediction without X is for this type of target, "always predicting the mean"."""
    known = {"numbers": "always predicting the mean", "implicit": "always recommending the most frequent items"}
    return known.get(target, "always predicting the most frequent class")


def quality_without_x(model: Model, y: Any, y_held_out: np.ndarray, width: int) -> float:
    """Return the main quality on held-out targets of the best constant prediction for targets y, of `width` scores."""
    return float(constant_quality(model.target, model.quality, np.asarray(y), y_held_out, width))


def are_right(target: str, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether the class of each row is predicted, bool [R], by scores [R, N]; y is as the loss takes it."""
    return scores.argmax(axis=1) == y if target == "classes" else (scores[:, 0] > 0) == (y.reshape(-1) > 0.5)


def mean_squares(
    scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None, constant: float | None = None
) -> tuple[float, float]:
    """Return the squared errors of scores [R, N] and of a constant, over rows by `weights` [R], summed over N.

    `constant` None is the mean of y.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores, y = scores.astype(np.float64), y.reshape(scores.shape).astype(np.float64)
        apart = y - (np.average(y, axis=0, weights=weights) if constant is None else constant)
        error, spread = (np.average(square**2, axis=0, weights=weights).sum() for square in (scores - y, apart))
    return float(error), float(spread)


def quality(target: str, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the share of right rows, or R squared of numbers, of scores [R, N], each row by its weight."""
    if target != "numbers":
        return float(np.average(are_right(target, scores, y), weights=weights))
    error, spread = mean_squares(scores, y, weights)
    return 1 - error / spread if spread else np.nan


def why_worse(
    target: str, scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, has_intercept: bool = True
) -> str:
    """Return what is better than the scores [R, N], and by how much: a prediction that ignores X; "" if none is.

    `target` is "numbers", "binary" or "classes"; y are targets as the loss takes them, `weights` [R] those of rows.
    Classes are compared by log loss with their shares, and by accuracy if the log loss is no better: where X tells
    little, the minimum of the log loss may be right a little less often than the most frequent class. A model without
    an intercept is compared with scores of 0. NaN is worse.
    """
    if target == "numbers":
        constant = None if has_intercept else 0.0
        error, spread = mean_squares(scores, y, weights, constant)
        if error <= spread * (1 + MARGIN) or spread <= 1e-12 * float(np.square(y, dtype=np.float64).mean()):
            return ""
        words, name = (constant_words(target), "the mean") if has_intercept else ("always predicting 0", "0")
        return f"{words}: mean squared error {error:.4g}, of {name} {spread:.4g}"
    accuracy, classes = quality(target, scores, y, weights), y.reshape(-1).astype(np.int64)
    shares = np.bincount(classes, weights)
    shares = shares[shares > 0] / shares.sum()
    scores = scores.astype(np.float64)
    with np.errstate(invalid="ignore"):
        if target == "binary":
            losses = np.logaddexp(0, np.where(classes, -scores[:, 0], scores[:, 0]))
        else:
            losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(classes)), classes]
    loss, best = float(np.average(losses, weights=weights)), float(-(shares * np.log(shares)).sum())
    if not has_intercept:
        best = float(np.log(max(2, scores.shape[1])))
        words = f"scores of 0: log loss {loss:.4g}, of scores of 0 {best:.4g}"
    elif accuracy < shares.max() - MARGIN and not loss <= best * (1 + MARGIN):
        return f"{constant_words(target)}: accuracy {accuracy:.4g}, of the most frequent class {shares.max():.4g}"
    else:
        words = f"always predicting the shares of the classes: log loss {loss:.4g}, of the shares {best:.4g}"
    return "" if loss <= best * (1 + MARGIN_LOSS) + MARGIN_LOSS else words
