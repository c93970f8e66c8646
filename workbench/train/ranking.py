"""How good the order is that a model gives items for users: measures on items held out, those trained on left out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from workbench.models.two_fields import pairs_of

ELEMENTS = 1 << 24
"""Scores that are held at once."""

Scorer = Callable[[np.ndarray], np.ndarray]
"""`scores_of(users)` of all items [n, items]."""


def by_popularity(x: Any, fields: Sequence[int]) -> Scorer:
    """The best order that ignores the user: by how many rows of X have the item."""
    counts = np.bincount(pairs_of(x, fields)[1], minlength=fields[1]).astype(np.float32)
    return lambda users: np.tile(counts, (len(users), 1))


def measured(
    scores_of: Scorer, measures: Mapping[str, Callable], fields: Sequence[int], trained: Any, held_out: Any
) -> dict[str, float]:
    """The means of the measures over users with items held out; `trained` and `held_out` have a row for each pair.

    Items that a user has in the rows trained on come last and count as not relevant. O(users * items).
    """
    sums, users = dict.fromkeys(measures, 0.0), 0
    for scores, targets in _parts(scores_of, fields, trained, held_out):
        for name, measure in measures.items():
            sums[name] += len(scores) * measure(scores, targets)
        users += len(scores)
    return {name: total / users if users else float("nan") for name, total in sums.items()}


def _parts(scores_of: Scorer, fields: Sequence[int], *rows: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    seen, held = (_matrix(x, fields) for x in rows)
    held = held - held.multiply(seen)
    held.eliminate_zeros()
    users = np.flatnonzero(np.diff(held.indptr))
    for part in np.array_split(users, -(-users.size * fields[1] // ELEMENTS)) if users.size else []:
        scores = np.array(scores_of(part))
        scores[seen[part].nonzero()] = -np.inf
        yield scores, held[part].toarray() > 0


def _matrix(x: Any, fields: Sequence[int]) -> scipy.sparse.csr_array:
    """Which user has which item: csr [users, items] of ones."""
    pairs = pairs_of(x, fields)
    matrix = scipy.sparse.csr_array((np.ones(len(pairs[0]), np.float32), pairs), shape=tuple(fields))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
