"""Quality of the order of items for users: measures on items held out, those trained on left out."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from workbench.models.two_fields import pairs_of

ELEMENTS = 1 << 21
"""Scores that are held at once: a few MB, which stay in the cache from one pass over them to the next."""

BLOCK = 64
"""Items of which first only the largest score is looked at."""

NOT_FEWER = 4
"""Items are left out where so many times as many remain out as in."""

Scorer = Callable[[np.ndarray], np.ndarray]
"""`scores_of(users)` of all items [n, items]."""


def by_popularity(x: Any, fields: Sequence[int]) -> Scorer:
    """Return the best order that ignores the user: by how many rows of X have the item."""
    counts = np.bincount(pairs_of(x, fields)[1], minlength=fields[1]).astype(np.float32)
    return lambda users: np.tile(counts, (len(users), 1))


def ranking_measures(
    scores_of: Scorer, measures: Mapping[str, Callable], fields: Sequence[int], trained: Any, held_out: Any
) -> dict[str, float]:
    """Return the means of the measures over users with items held out; `trained` and `held_out` have a row for each
    pair.

    Items that a user has in the rows trained on come last and count as not relevant. O(users * items). Of measures that
    say how many items they look at, `functools.partial` with `k`, the others are left out as soon as they are known.
    """
    sums, users = dict.fromkeys(measures, 0.0), 0
    first = max((_first_of(measure) for measure in measures.values()), default=0)
    for scores, targets in _parts(scores_of, fields, trained, held_out):
        scores, targets = top_items(scores, targets, first)
        for name, measure in measures.items():
            sums[name] += len(scores) * measure(scores, targets)
        users += len(scores)
    return {name: total / users if users else float("nan") for name, total in sums.items()}


def _first_of(measure: Callable) -> float:
    """Return the number of items that the measure looks at; infinite where it does not say."""
    return getattr(measure, "keywords", {}).get("k", math.inf)


def top_items(scores: np.ndarray, targets: np.ndarray, first: float) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and targets [n, fewer] with which measures of the `first` items of each row are what they are of
    all.

    Kept are the relevant items, and those whose score is not below that of the item in the place `first` among the
    largest of every `BLOCK`, as that of the item in the place `first` of all is not. Rows with fewer are filled up with
    items that come last. The same arrays where a score is NaN, and where little would be left out. O(n * items).
    """
    rows, items = scores.shape
    blocks = items // BLOCK
    if first > blocks or not rows:
        return scores, targets
    largest = scores[:, : blocks * BLOCK].reshape(rows, blocks, BLOCK).max(axis=2)
    floor = np.partition(largest, blocks - int(first), axis=1)[:, blocks - int(first), None]
    kept = (scores >= floor) | targets
    counts = np.count_nonzero(kept, axis=1)
    most = counts.max()
    has_nan = np.isnan(largest).any() or np.isnan(scores[:, blocks * BLOCK :]).any()
    if NOT_FEWER * most > items or has_nan:
        return scores, targets
    of_row, item = np.nonzero(kept)
    place = np.arange(of_row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    few = np.full((rows, most), -np.inf, scores.dtype), np.zeros((rows, most), bool)
    for short, long in zip(few, (scores, targets), strict=True):
        short[of_row, place] = long[of_row, item]
    return few


def _parts(scores_of: Scorer, fields: Sequence[int], *rows: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (scores, held-out items) for blocks of users, items of the training masked in the scores."""
    seen, held = (_matrix(x, fields) for x in rows)
    held = held - held.multiply(seen)
    held.eliminate_zeros()
    users = np.flatnonzero(np.diff(held.indptr))
    for part in np.array_split(users, -(-users.size * fields[1] // ELEMENTS)) if users.size else []:
        scores = np.array(scores_of(part))
        scores[seen[part].nonzero()] = -np.inf
        relevant = np.zeros(scores.shape, bool)
        relevant[held[part].nonzero()] = True
        yield scores, relevant


def _matrix(x: Any, fields: Sequence[int]) -> scipy.sparse.csr_array:
    """Matrix of the items that each user has: csr [users, items] of ones."""
    pairs = pairs_of(x, fields)
    matrix = scipy.sparse.csr_array((np.ones(len(pairs[0]), np.float32), pairs), shape=tuple(fields))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
