"""How good predictions are: one number from scores and targets."""

import numpy as np


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows whose largest score is their label: scores [R, N], labels int [R]. NaN for no rows."""
    return float(np.mean(scores.argmax(axis=1) == labels)) if len(labels) else float("nan")


def binary_accuracy(scores: np.ndarray, targets: np.ndarray) -> float:
    """Share of scores on the right side of zero: scores [R, N], targets 0 or 1 [R, N]. NaN for no rows."""
    return float(np.mean((scores > 0) == (targets > 0.5))) if targets.size else float("nan")


def r2(scores: np.ndarray, targets: np.ndarray) -> float:
    """1 - residual sum of squares / total sum of squares around the mean: [R, N] each. NaN where targets are constant.

    Source: coefficient of determination, the mean taken for each of the N outputs.
    """
    total = float(np.sum((targets - targets.mean(axis=0)) ** 2)) if len(targets) else 0.0
    return 1.0 - float(np.sum((targets - scores) ** 2)) / total if total else float("nan")
