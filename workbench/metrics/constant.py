"""Quality of the best answer that ignores the input: what a trained model has to beat."""

from collections.abc import Callable

import numpy as np

from workbench.metrics.measures import MetricError

RAREST = 1e-12
"""Least share that a score is made of, so that scores are finite; metrics count probabilities so, too."""


def constant_scores(target: str, y: np.ndarray, width: int) -> np.ndarray:
    """The scores [N], the same for every row, with the least mean loss on `y`; `target` is its kind.

    - `classes` (y int [R]): log of the share of each class: the largest score is the most frequent class.
    - `binary`, `multilabel` (y of 0 and 1 [R, N]): log of the odds of 1, above 0 where most rows have it.
    - `numbers` (y [R, N]): the means.

    >>> constant_scores("numbers", np.float32([[1], [2], [6]]), 1)
    array([3.])
    """
    if not len(y):
        raise MetricError("y has no rows; constant scores are made from one or more.")
    if target == "numbers":
        return y.reshape(len(y), width).mean(axis=0, dtype=np.float64)
    if target == "classes":
        return np.log(np.maximum(np.bincount(y, minlength=width) / len(y), RAREST))
    if target in ("binary", "multilabel"):
        ones = np.clip(y.reshape(len(y), width).mean(axis=0, dtype=np.float64), RAREST, 1 - RAREST)
        return np.log(ones) - np.log1p(-ones)
    raise MetricError(f"There is no target {target!r}; there are classes, binary, numbers, multilabel.")


def constant_quality(
    target: str, quality: Callable[[np.ndarray, np.ndarray], float], y: np.ndarray, y_held_out: np.ndarray, width: int
) -> float:
    """`quality` of the constant scores of `y` on the targets of held-out rows.

    >>> from workbench.metrics import accuracy
    >>> constant_quality("classes", accuracy, np.array([0, 1, 1]), np.array([1, 1, 0, 2]), 3)
    0.5
    """
    scores = constant_scores(target, y, width)
    return quality(np.broadcast_to(scores, (len(y_held_out), width)), y_held_out)
