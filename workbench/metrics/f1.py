"""F1, the harmonic mean of precision and recall, of classes or of yes-or-no outputs."""

from typing import Any

import numpy as np

from workbench.metrics.measures import NAN, as_classes, as_pair, dense_scores


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
