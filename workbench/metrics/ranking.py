"""Ranking metrics: area under the ROC curve, and precision, recall and gain of the k highest-scored items of each row.

Ties count as the average over their orders, so that no metric depends on the order of tied items.
"""

from typing import Any

import numpy as np

from workbench.metrics.measures import NAN, MetricError, as_pair, dense_scores, mean


def auc(scores: np.ndarray, targets: np.ndarray) -> float:
    """Compute the area under the ROC curve: the probability that a 1 scores higher than a 0; ties count one half.

    Parameters
    ----------
    scores : ndarray
        Scores, any shape.
    targets : ndarray
        0 or 1, same shape.

    Returns
    -------
    float
        Area in [0, 1]; NaN if all targets are equal or a score is NaN. O(n log n).

    Raises
    ------
    MetricError
        If shapes do not match or values are not numbers.

    Notes
    -----
    By the ranks of Mann and Whitney 1947.

    Examples
    --------
    >>> auc(np.array([0.1, 0.9]), np.array([0, 1]))
    1.0
    """
    return area(of_auc(scores, targets))


def precision_at(scores: np.ndarray, targets: np.ndarray, k: int = 10) -> float:
    """Compute the share of the k highest-scored items of a row that are relevant, averaged over rows.

    Parameters
    ----------
    scores : ndarray, [R, N]
        Scores of N items.
    targets : array, [R, N]
        0 or 1 (relevant); dense or sparse.
    k : int, default 10
        Length of the list; missing items count as not relevant.

    Returns
    -------
    float
        Mean over rows with a relevant item; NaN if there is none or a score is NaN. O(R * N).

    Raises
    ------
    MetricError
        If shapes do not match or values are not numbers.

    Examples
    --------
    >>> precision_at(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 0]]), k=2)
    0.5
    """
    return mean(of_precision_at(scores, targets, k))


def recall_at(scores: np.ndarray, targets: np.ndarray, k: int = 10) -> float:
    """Compute the share of the relevant items of a row among its k highest-scored items, averaged over rows.

    Parameters
    ----------
    scores : ndarray, [R, N]
        Scores of N items.
    targets : array, [R, N]
        0 or 1 (relevant); dense or sparse.
    k : int, default 10
        Length of the list.

    Returns
    -------
    float
        Mean over rows with a relevant item; NaN if there is none or a score is NaN.

    Raises
    ------
    MetricError
        If shapes do not match or values are not numbers.

    Examples
    --------
    >>> recall_at(np.array([[3.0, 2.0, 1.0]]), np.array([[1, 0, 1]]), k=2)
    0.5
    """
    return mean(of_recall_at(scores, targets, k))


def ndcg_at(scores: np.ndarray, targets: np.ndarray, k: int = 10) -> float:
    """Compute the discounted gain of the k highest-scored items, relative to the best order, averaged over rows.

    Parameters
    ----------
    scores : ndarray, [R, N]
        Scores of N items.
    targets : array, [R, N]
        Gains, 0 or more; dense or sparse.
    k : int, default 10
        Length of the list.

    Returns
    -------
    float
        Mean over rows with a gain above 0; NaN if there is none or a score is NaN. O(R * (N + k log k)) plus a sort of
        the gains.

    Raises
    ------
    MetricError
        If shapes do not match or values are not numbers.

    Notes
    -----
    Gain: sum of target / log2(rank + 1) (Järvelin and Kekäläinen 2002); ties as in McSherry and Najork 2008.

    Examples
    --------
    >>> ndcg_at(np.array([[3.0, 2.0]]), np.array([[1, 0]]), k=1)
    1.0
    """
    return mean(of_ndcg_at(scores, targets, k))


def of_auc(scores: Any, targets: Any) -> np.ndarray:
    """Return scores and targets by turns, float64 [2 n]: the area needs all of them.

    Raises MetricError if shapes differ or values are no numbers.
    """
    scores, targets = as_pair(scores, targets)
    return np.column_stack([scores.reshape(-1), targets.reshape(-1)]).reshape(-1)


def area(pairs: np.ndarray) -> float:
    """Return the area under the ROC curve of the scores and targets of `of_auc` [2 n]; O(n log n).

    A target above 0.5 counts as 1. It is NaN if all targets are equal or a score is NaN.
    """
    scores, positive = pairs[::2], pairs[1::2] > 0.5
    ones, zeros = np.count_nonzero(positive), np.count_nonzero(~positive)
    if not ones or not zeros or np.isnan(scores).any():
        return NAN
    ordered = np.sort(scores[~positive])
    below = np.searchsorted(ordered, scores[positive], "left")
    not_above = np.searchsorted(ordered, scores[positive], "right")
    return float((below.sum() + not_above.sum()) / (2.0 * ones * zeros))


def of_precision_at(scores: Any, targets: Any, k: int = 10) -> np.ndarray:
    """Return [sum of the precisions of rows with a relevant item, number of these rows], float64.

    Raises MetricError for shapes other than [R, N] twice and for k below 1.
    """
    hits, relevant = _hits(scores, targets, k)
    return np.array([(hits[relevant > 0] / k).sum(), np.count_nonzero(relevant)], np.float64)


def of_recall_at(scores: Any, targets: Any, k: int = 10) -> np.ndarray:
    """Return [sum of the recalls of rows with a relevant item, number of these rows], float64.

    Raises MetricError for shapes other than [R, N] twice and for k below 1.
    """
    hits, relevant = _hits(scores, targets, k)
    has_any = relevant > 0
    return np.array([(hits[has_any] / relevant[has_any]).sum(), np.count_nonzero(has_any)], np.float64)


def of_ndcg_at(scores: Any, targets: Any, k: int = 10) -> np.ndarray:
    """Return [sum of the relative gains of rows with a gain above 0, number of these rows], float64.

    Raises MetricError for a negative gain, shapes other than [R, N] twice and k below 1.
    """
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
    """Return the `last` largest values of each row of [R, N], in any order, as [R, last]."""
    return np.partition(values, values.shape[1] - last, axis=1)[:, values.shape[1] - last :]


def _gains(scores: np.ndarray, gains: np.ndarray, last: int) -> np.ndarray:
    """Return the discounted gain, float64 [R], of the `last` highest-scored items of each row of [R, N].

    Tied items share their mean weight; those tied for the last rank count with the mean of their gains. A row with a
    NaN score has NaN.
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
    """Return the weights 1 / log2(rank + 1) of the ranks 1 to k, float64 [k]."""
    return 1 / np.log2(np.arange(2, k + 2))


def _hits(scores: Any, targets: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (expected relevant items among the first k, relevant items) of each row, [R] each.

    Ties count by expectation, and a row with a NaN score has NaN hits. Raises MetricError as `_ranked` does.
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
    """Return scores and targets of equal shape [R, N], dense, in their own dtype if that is real or boolean.

    Raises MetricError for other shapes, and unless k is a whole number from 1.
    """
    if isinstance(k, bool) or k != int(k) or k < 1:
        raise MetricError(f"k is {k}; it is how many items come first, a whole number from 1.")
    scores, targets = _as_they_are(scores), _as_they_are(targets)
    if scores.ndim != 2 or scores.shape != targets.shape:
        raise MetricError(f"Scores [R, N] need targets [R, N]; {scores.shape} and {targets.shape} came.")
    return scores, targets


def _as_they_are(values: Any) -> np.ndarray:
    """Return an array of any format as dense: unchanged if it is a real or boolean NumPy array, else float64.

    Raises MetricError if its values are no numbers.
    """
    is_dense = isinstance(values, np.ndarray) and values.dtype.kind in "bf"
    return values if is_dense else dense_scores(values)
