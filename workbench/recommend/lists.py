"""Lists of the best items, exact, in blocks that fit the cache: no array of users x items is ever made."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from kernels.blas import matmul

USERS, ITEMS = 256, 2048
"""Rows and columns of a block of scores: 2 MiB of float32, which stays in the caches of two cores."""

ScoresOf = Callable[[int, int], Callable[[int, int], np.ndarray]]
"""`scores_of(first, last)` of rows returns `block(start, stop)` of columns, an array [rows, columns] to overwrite."""


def best(scores_of: ScoresOf, rows: int, columns: int, n: int, seen: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return (places int64 [rows, n], scores float32 [rows, n]) of the largest scores of each row, descending.

    Entries of the CSR matrix `seen` [rows, columns] are left out. A row with fewer columns has -1 and -inf at its end.
    Of equal scores the smaller column comes first; NaN is left out.
    """
    places, scores = np.full((rows, n), -1, np.int64), np.full((rows, n), -np.inf, np.float32)
    take = kernels.get("top_scores").trusted
    for first in range(0, rows, USERS):
        last = min(first + USERS, rows)
        block_of = scores_of(first, last)
        if seen is not None:
            starts = seen.indptr[first : last + 1]
            taken = seen.indices[starts[0] : starts[-1]]
            own = np.repeat(np.arange(last - first), np.diff(starts))
        for start in range(0, columns, ITEMS):
            stop = min(start + ITEMS, columns)
            block = block_of(start, stop)
            if seen is not None:
                inside = (taken >= start) & (taken < stop)
                block[own[inside], taken[inside] - start] = -np.inf
            take(block, start, scores[first:last], places[first:last])
    return places, scores


def of_factors(x: np.ndarray, y: np.ndarray) -> ScoresOf:
    """Return the scores x @ y.T of factors x [rows, factors] and y [columns, factors], by blocks."""
    room = np.empty((USERS, ITEMS), np.float32)

    def scores_of(first: int, last: int) -> Callable[[int, int], np.ndarray]:
        """Return the function of columns for rows first to last - 1."""

        def block(start: int, stop: int) -> np.ndarray:
            """Compute the scores of columns start to stop - 1."""
            out = room.ravel()[: (last - first) * (stop - start)].reshape(last - first, stop - start)
            return matmul(x[first:last], y[start:stop].T, out=out)

        return block

    return scores_of


def of_weights(matrix: Any, weights: np.ndarray) -> ScoresOf:
    """Return the scores matrix @ weights of CSR rows and dense weights [items, items], by blocks."""
    room = np.empty((USERS, weights.shape[1]), np.float32)

    def scores_of(first: int, last: int) -> Callable[[int, int], np.ndarray]:
        """Compute all scores of rows first to last - 1; return the function that cuts out columns."""
        part = matrix[first:last]
        scores = room[: last - first]
        kernels.get("csr_dense").trusted(part.indptr, part.indices, part.data, weights, scores)
        return lambda start, stop: np.ascontiguousarray(scores[:, start:stop])

    return scores_of


def recall(places: np.ndarray, held: Any) -> float:
    """Return the mean over rows with held-out entries of hits / min(n, entries), for lists int [rows, n]."""
    counts = np.diff(held.indptr)
    rows = np.flatnonzero(counts)
    if not rows.size:
        return float("nan")
    width = np.int64(held.shape[1] + 1)
    keys = np.repeat(np.arange(held.shape[0]), counts) * width + held.indices
    hits = np.isin(rows[:, None] * width + places[rows], keys).sum(axis=1)
    return float(np.mean(hits / np.minimum(counts[rows], places.shape[1])))
