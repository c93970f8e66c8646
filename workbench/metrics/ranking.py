"""Measures of order: the area under the ROC curve of all scores, and how good the first k items of each row are.

Equal scores count as every order of them would on average, so that no measure depends on the order in which ties come.
"""

from typing import Any

import numpy as np

from workbench.metrics.measures import NAN, MetricError, as_pair, dense_scores, mean


def auc(scores: np.ndarray, targets: np.ndarray) -> float:
    """The chance that a score whose target is 1 is above one whose target is 0; equal ones count one half.

    Any shape, targets as scores, 0 and 1. NaN where all targets are the same, or a score is NaN. O(n log n).
    Source: area under the ROC curve, by the ranks of Mann and Whitney 1947.
    """
    return area(of_auc(scores, targets))


def precision_at(scores: np.ndarray, targets: np.ndarray, k: int = 10) -> float:
    """Share of the first k items that are relevant: scores [R, N], targets [R, N] 0 or 1, dense or sparse.

    The mean over rows with a relevant item; NaN where there is none, or a score is NaN. Of fewer than k items those
    that are missing count as not relevant. O(R * N).
    """
    return mean(of_precision_at(scores, targets, k))


def recall_at(scores: np.ndarray, targets: np.ndarray, k: int = 10) -> float:
    """Share of the relevant items of a row that are among its first k: scores and targets as `precision_at`."""
    return mean(of_recall_at(scores, targets, k))


def ndcg_at(scores: np.ndarray, targets: np.ndarray, k: int = 10) -> float:
    """Gain of the first k items, sum of target / log2(place + 1), relative to the best order: targets 0 or more.

    The mean over rows with a target above 0; NaN where there is none, or a score is NaN. O(R * (N + k log k)), but for
    the best order, which takes sorting the targets.
    Source: Järvelin and Kekäläinen 2002; ties as McSherry and Najork 2008.
    """
    return mean(of_ndcg_at(scores, targets, k))


def of_auc(scores: Any, targets: Any) -> np.ndarray:
    """Scores with their targets, one pair after the other: an area is made of all of them."""
    scores, targets = as_pair(scores, targets)
    return np.column_stack([scores.reshape(-1), targets.reshape(-1)]).reshape(-1)


def area(pairs: np.ndarray) -> float:
    """The area of pairs of score and target."""
    scores, positive = pairs[::2], pairs[1::2] > 0.5
    ones, zeros = np.count_nonzero(positive), np.count_nonzero(~positive)
    if not ones or not zeros or np.isnan(scores).any():
        return NAN
    ordered = np.sort(scores[~positive])
    below = np.searchsorted(ordered, scores[positive], "left")
    not_above = np.searchsorted(ordered, scores[positive], "right")
    return float((below.sum() + not_above.sum()) / (2.0 * ones * zeros))


def of_precision_at(scores: Any, targets: Any, k: int = 10) -> np.ndarray:
    """Sum of the precisions of rows that have a relevant item, and those rows."""
    hits, relevant = _hits(scores, targets, k)
    return np.array([(hits[relevant > 0] / k).sum(), np.count_nonzero(relevant)], np.float64)


def of_recall_at(scores: Any, targets: Any, k: int = 10) -> np.ndarray:
    """Sum of the recalls of rows that have a relevant item, and those rows."""
    hits, relevant = _hits(scores, targets, k)
    has_any = relevant > 0
    return np.array([(hits[has_any] / relevant[has_any]).sum(), np.count_nonzero(has_any)], np.float64)


def of_ndcg_at(scores: Any, targets: Any, k: int = 10) -> np.ndarray:
    """Sum of the relative gains of rows that have a target above 0, and those rows."""
    scores, gains = _ranked(scores, targets, k)
    if gains.size and gains.min() < 0:
        raise MetricError(f"A target is {gains.min():g}; gains are 0 or more.")
    rows = gains.any(axis=1)
    if not rows.any():
        return np.zeros(2)
    scores, gains, last = scores[rows], gains[rows], min(k, gains.shape[1])
    best = -np.sort(-_largest(gains, last).astype(np.float64), axis=1) @ _discounts(last)
    return np.array([(_gains(scores, gains, last) / best).sum(), len(best)], np.float64)


def _largest(values: np.ndarray, last: int) -> np.ndarray:
    """The `last` largest values of each row, in any order."""
    return np.partition(values, values.shape[1] - last, axis=1)[:, values.shape[1] - last :]


def _gains(scores: np.ndarray, gains: np.ndarray, last: int) -> np.ndarray:
    """The gain of the first `last` items of each row [R]: each has the mean weight of the places of its ties.

    Of those that tie for the last place some are left out: all of them have the mean of their gains.
    """
    first = np.argpartition(scores, scores.shape[1] - last, axis=1)[:, scores.shape[1] - last :]
    order = np.take_along_axis(first, np.argsort(-np.take_along_axis(scores, first, axis=1), axis=1), axis=1)
    ordered, gained = (np.take_along_axis(each, order, axis=1) for each in (scores, gains))
    level = scores == ordered[:, -1:]
    shared = (gains * level).sum(axis=1) / np.maximum(np.count_nonzero(level, axis=1), 1)
    gained = np.where(ordered == ordered[:, -1:], shared[:, None], gained)
    starts = np.ones(ordered.shape, bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    places = np.flatnonzero(starts)
    lengths = np.diff(np.append(places, ordered.size))
    weights = np.tile(_discounts(last), len(ordered))
    weights = np.repeat(np.add.reduceat(weights, places) / lengths, lengths).reshape(ordered.shape)
    return np.where(np.isnan(scores).any(axis=1), NAN, (weights * gained).sum(axis=1))


def _discounts(k: int) -> np.ndarray:
    return 1 / np.log2(np.arange(2, k + 2))


def _hits(scores: Any, targets: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Relevant items among the first k of each row, by expectation where scores tie, and relevant items: [R] each.

    Of a row without relevant items nothing is looked at but that there are none.
    """
    scores, targets = _ranked(scores, targets, k)
    relevant = targets > 0.5
    counts = np.count_nonzero(relevant, axis=1)
    if not scores.size:
        return np.zeros(len(scores)), counts
    last = min(k, scores.shape[1])
    threshold = np.partition(scores, scores.shape[1] - last, axis=1)[:, scores.shape[1] - last, None]
    above, level = scores > threshold, scores == threshold
    free = last - np.count_nonzero(above, axis=1)
    ties = np.maximum(np.count_nonzero(level, axis=1), 1)
    hits = np.count_nonzero(above & relevant, axis=1) + np.count_nonzero(level & relevant, axis=1) * free / ties
    return np.where(np.isnan(scores).any(axis=1), NAN, hits), counts


def _ranked(scores: Any, targets: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(k, bool) or k != int(k) or k < 1:
        raise MetricError(f"k is {k}; it is how many items come first, a whole number from 1.")
    scores, targets = _as_they_are(scores), _as_they_are(targets)
    if scores.ndim != 2 or scores.shape != targets.shape:
        raise MetricError(f"Scores [R, N] need targets [R, N]; {scores.shape} and {targets.shape} came.")
    return scores, targets


def _as_they_are(values: Any) -> np.ndarray:
    """Dense numbers without a copy where they are: an order needs no wider type."""
    is_dense = isinstance(values, np.ndarray) and values.dtype.kind in "bf"
    return values if is_dense else dense_scores(values)
