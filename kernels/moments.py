"""Extremes, means and deviations of the columns of a dense matrix, in three passes over it.

Sums are of float64 differences from a number within the column's range, divided by its width, so that squares neither
overflow nor cancel. Rows are summed in `PARTS` parts and these in their order: same bits at every thread count.

>>> column_moments(np.float32([[1990, 0], [2010, 3]])).deviations.tolist()
[10.0, 1.5]
"""

import itertools
from typing import NamedTuple

import numpy as np
from numba import prange

from kernels.structure import plain
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial

PARTS = 16
"""Parts of the rows that are summed each on one thread."""


class Moments(NamedTuple):
    """Of each column [D]: its values other than 0, least and largest value, mean and deviation (float64).

    Rows count for mean and deviation by their shares. Of a constant column they are exactly its value and 0.
    """

    counts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    means: np.ndarray
    deviations: np.ndarray


@compiled
def _extremes(dense, counts, low, high):
    """Take rows of dense [R, D] into the counts of nonzero values, minima and maxima of its columns [D], in place."""
    for r in range(dense.shape[0]):
        row = dense[r]
        for c in range(row.size):
            counts[c] += np.int64(row[c] != 0)
            low[c] = min(low[c], row[c])
            high[c] = max(high[c], row[c])


@compiled
def _sums(dense, shares, center, factor, is_square, sums):
    """Add shares[r] * ((dense[r] - center) * factor) of rows of dense [R, D], or its square, to sums [D], in place."""
    for r in range(dense.shape[0]):
        row, share = dense[r], shares[r]
        if is_square:
            for c in range(row.size):
                part = (row[c] - center[c]) * factor[c]
                sums[c] += share * part * part
        else:
            for c in range(row.size):
                sums[c] += share * ((row[c] - center[c]) * factor[c])


@compiled_parallel
def _extremes_parts(dense, counts, low, high, bounds):
    """Do `_extremes` of rows bounds[p] to bounds[p + 1] - 1 into counts[p], low[p] and high[p], on several threads."""
    for part in prange(bounds.size - 1):
        _extremes(dense[bounds[part] : bounds[part + 1]], counts[part], low[part], high[part])


@compiled_parallel
def _sums_parts(dense, shares, center, factor, is_square, sums, bounds):
    """Do `_sums` of rows bounds[p] to bounds[p + 1] - 1 into sums[p], on several threads."""
    for part in prange(bounds.size - 1):
        first, last = bounds[part], bounds[part + 1]
        _sums(dense[first:last], shares[first:last], center, factor, is_square, sums[part])


def column_moments(dense: np.ndarray, shares: np.ndarray | None = None) -> Moments:
    """Return the moments of the columns of `dense`, float32 or float64 [R, D], finite. O(R * D).

    `shares` [R], float64 with the sum 1, weight the rows of means and deviations; None for equal ones.
    """
    rows, columns = dense.shape
    if not dense.size:
        return Moments(np.zeros(columns, np.int64), *np.zeros((4, columns)))
    dense = plain(dense)
    shares = np.full(rows, 1 / rows) if shares is None else shares
    bounds = equal_count(rows, PARTS)
    pairs = list(itertools.pairwise(bounds))
    serial = is_serial(dense.size)
    counts = np.zeros((PARTS, columns), np.int64)
    low = np.repeat(dense[:1], PARTS, axis=0)
    high = low.copy()
    if serial:
        for part, (first, last) in enumerate(pairs):
            _extremes(dense[first:last], counts[part], low[part], high[part])
    else:
        _extremes_parts(dense, counts, low, high, bounds)
    least, most = (side.astype(np.float64) for side in (low.min(axis=0), high.max(axis=0)))
    factor = 1 / np.maximum(most / 2 - least / 2, np.finfo(np.float64).tiny)

    def total(center: np.ndarray, is_square: bool) -> np.ndarray:
        """Return the sum of the shares of (value - center) * factor, or of its square, of each column [D]."""
        sums = np.zeros((PARTS, columns))
        if serial:
            for part, (first, last) in enumerate(pairs):
                _sums(dense[first:last], shares[first:last], center, factor, is_square, sums[part])
        else:
            _sums_parts(dense, shares, center, factor, is_square, sums, bounds)
        return sums.sum(axis=0)

    middle = least / 2 + most / 2
    means = np.where(least == most, least, middle + total(middle, False) / factor)
    deviations = np.where(least == most, 0.0, np.sqrt(total(means, True)) / factor)
    return Moments(counts.sum(axis=0), least, most, means, deviations)
