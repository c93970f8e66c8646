"""The numbers of one batch, and the sums that they are made of, which add up over batches."""

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench import formats

NAN = float("nan")


class MetricError(ValueError):
    """A metric is not known, or scores and targets do not go together; the message says what came and is allowed."""


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows whose largest score is their label: scores [R, N], labels [R]. NaN for no rows."""
    return mean(of_accuracy(scores, labels))


def binary_accuracy(scores: np.ndarray, targets: np.ndarray, threshold: float = 0.0) -> float:
    """Share of scores on the right side of the threshold: scores [R, N], targets 0 or 1 [R, N]. NaN for no rows.

    The threshold is 0 for scores of any size, and 0.5 for probabilities.
    """
    return mean(of_binary_accuracy(scores, targets, threshold))


def mse(scores: np.ndarray, targets: np.ndarray) -> float:
    """Mean of the squared errors of all elements of scores and targets [...]. NaN for none."""
    return mean(of_mse(scores, targets))


def mae(scores: np.ndarray, targets: np.ndarray) -> float:
    """Mean of the absolute errors of all elements of scores and targets [...]. NaN for none."""
    return mean(of_mae(scores, targets))


def rmse(scores: np.ndarray, targets: np.ndarray) -> float:
    """Root of the mean squared error of scores and targets [...]. NaN for no elements."""
    return root(of_mse(scores, targets))


def r2(scores: np.ndarray, targets: np.ndarray) -> float:
    """1 - residual sum of squares / total sum of squares around the mean: [R, N] each. NaN where targets are constant.

    Source: coefficient of determination, the mean taken for each of the N outputs.
    """
    return one_minus_ratio(of_r2(scores, targets))


def cross_entropy(scores: np.ndarray, labels: np.ndarray, epsilon: float = 1e-12) -> float:
    """Mean of -log(probability of the label): probabilities [R, N], labels [R]. NaN for no rows."""
    return mean(of_cross_entropy(scores, labels, epsilon))


def log_loss(scores: np.ndarray, targets: np.ndarray, epsilon: float = 1e-12) -> float:
    """Mean of -log(p) where the target is 1 and of -log(1 - p) where it is 0: probabilities, targets, [R, N] each."""
    return mean(of_log_loss(scores, targets, epsilon))


def logit_loss(scores: np.ndarray, targets: np.ndarray) -> float:
    """`log_loss` of scores that are log odds, of any size: the mean of log(1 + e^s) - s * t. Nothing overflows."""
    return mean(of_logit_loss(scores, targets))


def of_accuracy(scores: Any, labels: Any) -> np.ndarray:
    """Rows that are right, and rows."""
    scores, labels = as_classes(scores, labels)
    return np.array([np.count_nonzero(scores.argmax(axis=1) == labels) if len(labels) else 0, len(labels)], np.float64)


def of_binary_accuracy(scores: Any, targets: Any, threshold: float = 0.0) -> np.ndarray:
    """Elements that are right, and elements."""
    scores, targets = as_pair(scores, targets)
    return np.array([np.count_nonzero((scores > threshold) == (targets > 0.5)), targets.size], np.float64)


def of_mse(scores: Any, targets: Any) -> np.ndarray:
    """Sum of squared errors, and how many elements: float64 [2]. O(elements)."""
    error = _error(*as_pair(scores, targets))
    return np.array([np.dot(error, error), error.size], np.float64)


def of_mae(scores: Any, targets: Any) -> np.ndarray:
    """Sum of absolute errors, and how many elements: float64 [2]. O(elements)."""
    error = _error(*as_pair(scores, targets))
    return np.array([np.abs(error).sum(), error.size], np.float64)


def of_r2(scores: Any, targets: Any) -> np.ndarray:
    """Rows, squared error, then for each output mean and squared deviation from it."""
    scores, targets = as_pair(scores, targets)
    if not targets.size:
        return np.zeros(2)
    error = _error(scores, targets)
    targets = targets.reshape(len(targets), -1)
    center = targets.mean(axis=0)
    return np.concatenate([[len(targets), np.dot(error, error)], center, ((targets - center) ** 2).sum(axis=0)])


def of_cross_entropy(scores: Any, labels: Any, epsilon: float = 1e-12) -> np.ndarray:
    """Negative logarithms of the probabilities of the labels, and rows."""
    scores, labels = as_classes(scores, labels)
    chosen = scores[np.arange(len(labels)), labels]
    return np.array([-np.log(np.maximum(chosen, epsilon)).sum(), len(labels)], np.float64)


def of_log_loss(scores: Any, targets: Any, epsilon: float = 1e-12) -> np.ndarray:
    """Negative logarithms of the probabilities of what came, and elements."""
    scores, targets = as_pair(scores, targets)
    probabilities = np.where(targets > 0.5, scores, 1 - scores)
    return np.array([-np.log(np.maximum(probabilities, epsilon)).sum(), targets.size], np.float64)


def of_logit_loss(scores: Any, targets: Any) -> np.ndarray:
    """Negative logarithms of the probabilities of what came, and elements."""
    scores, targets = as_pair(scores, targets)
    return np.array([np.logaddexp(0.0, np.where(targets > 0.5, -scores, scores)).sum(), targets.size], np.float64)


def mean(sums: np.ndarray) -> float:
    """First sum / second sum."""
    return float(sums[0] / sums[1]) if sums[1] else NAN


def root(sums: np.ndarray) -> float:
    """Root of first sum / second sum."""
    return float(np.sqrt(mean(sums)))


def one_minus_ratio(sums: np.ndarray) -> float:
    """1 - error / deviation, of the sums for r2."""
    total = sums[2 + (len(sums) - 2) // 2 :].sum()
    return float(1.0 - sums[1] / total) if total else NAN


def add_deviations(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Sums for r2 of two sets of rows together. Source: Chan, Golub and LeVeque 1983, the pairwise update."""
    if not one[0] or not two[0]:
        return one if one[0] else two
    width, rows = (len(one) - 2) // 2, one[0] + two[0]
    apart = two[2 : 2 + width] - one[2 : 2 + width]
    center = one[2 : 2 + width] + apart * (two[0] / rows)
    squares = one[2 + width :] + two[2 + width :] + apart**2 * (one[0] * two[0] / rows)
    return np.concatenate([[rows, one[1] + two[1]], center, squares])


def _error(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Differences, flat; infinities among them give infinities and NaN, without a warning."""
    with np.errstate(invalid="ignore", over="ignore"):
        return (scores - targets).reshape(-1)


def dense_scores(array: Any) -> np.ndarray:
    """Numbers of any format as a dense float64 array; what is no number is refused (`MetricError`)."""
    array = array if isinstance(array, np.ndarray) else formats.to_format(array, "dense")
    if array.dtype.kind not in "biuf":
        raise MetricError(f"Scores and targets are numbers; {array.dtype} came.")
    return array.astype(np.float64, copy=False)


def as_pair(scores: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores and targets of one shape; targets [R] are taken for [R, 1] (`MetricError` for other differences)."""
    scores, targets = dense_scores(scores), dense_scores(targets)
    if scores.shape != targets.shape:
        if scores.size != targets.size or len(scores) != len(targets) or 1 not in (scores.ndim, targets.ndim):
            raise MetricError(f"Scores {scores.shape} need targets of the same shape; {targets.shape} came.")
        targets = targets.reshape(scores.shape)
    return scores, targets


def as_classes(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores [R, N] and labels int64 [R] from 0 to N - 1 (`MetricError` for others)."""
    scores, labels = dense_scores(scores), dense_scores(labels)
    if scores.ndim != 2 or not scores.shape[1] or labels.shape not in ((len(scores),), (len(scores), 1)):
        raise MetricError(f"Scores [R, N] need labels [R]; scores {scores.shape} and labels {labels.shape} came.")
    labels = labels.reshape(-1)
    wrong = ~((labels >= 0) & (labels < scores.shape[1]) & (labels == np.floor(labels)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise MetricError(f"labels[{at}] is {labels[at]:g}; they are class numbers, 0 to {scores.shape[1] - 1}.")
    return scores, labels.astype(np.int64)


# F1, the harmonic mean of precision and recall, of classes or of yes-or-no outputs.


def f1_micro(scores: np.ndarray, targets: np.ndarray, threshold: float = 0.0) -> float:
    """F1 of all answers together: 2 * right yes / (yes said + yes true), over all classes or outputs.

    Scores [R, N] with labels [R] choose the class of the largest score, where this is the accuracy; with targets
    [R, N] of 0 and 1, and scores [R] or [R, 1], each score above the `threshold` says yes. NaN where there is no yes.
    """
    return of_all(of_f1(scores, targets, threshold))


def f1_macro(scores: np.ndarray, targets: np.ndarray, threshold: float = 0.0) -> float:
    """Mean of the F1 of each class, or output, that was said or is true at least once; scores as `f1_micro`."""
    return of_each(of_f1(scores, targets, threshold))


def of_f1(scores: Any, targets: Any, threshold: float = 0.0) -> np.ndarray:
    """Count, for each class, right yes, then for each class yes said + yes true."""
    scores = dense_scores(scores)
    if scores.ndim == 2 and scores.shape[1] > 1 and tuple(targets.shape) in ((len(scores),), (len(scores), 1)):
        scores, labels = as_classes(scores, targets)
        said, true = scores.argmax(axis=1), labels
        right, width = said[said == true], scores.shape[1]
        counts = [np.bincount(answers, minlength=width) for answers in (right, said, true)]
    else:
        scores, targets = as_pair(scores, targets)
        columns = (len(scores), -1) if scores.size else (0, scores.shape[1] if scores.ndim == 2 else 1)
        yes, is_true = (scores > threshold).reshape(columns), (targets > 0.5).reshape(columns)
        counts = [np.count_nonzero(answers, axis=0) for answers in (yes & is_true, yes, is_true)]
    return np.array([counts[0], counts[1] + counts[2]], np.float64).reshape(-1)


def of_all(sums: np.ndarray) -> float:
    """F1 of all classes together."""
    right, answers = sums.reshape(2, -1).sum(axis=1)
    return float(2 * right / answers) if answers else NAN


def of_each(sums: np.ndarray) -> float:
    """Mean over the classes that occur."""
    right, answers = sums.reshape(2, -1)
    occurs = answers > 0
    return float((2 * right[occurs] / answers[occurs]).mean()) if occurs.any() else NAN


# Quality of the best answer that ignores the input: what a trained model has to beat.


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
