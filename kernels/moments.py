"""Extremes, means and deviations of the columns of a dense matrix, in three passes over it; sizes of sparse entries.

Sums are of float64 differences from a number within the column's range, divided by its width, so that squares neither
overflow nor cancel. Rows are summed in `PARTS` parts and these in their order: same bits at every thread count.

>>> column_moments(np.float32([[1990, 0], [2010, 3]])).deviations.tolist()
[10.0, 1.5]
"""

import itertools
from typing import NamedTuple

import numpy as np
from numba import prange

from kernels.contract import KernelError
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


# Sizes of the entries of a sparse matrix, column by column. NumPy's `maximum.at` and `bincount` took 1.6 s for 11
# million entries of texts, as long as 30 epochs of dual ascent; with compiled loops it is 0.3 s.


@compiled
def _take_largest(columns, data, largest):
    """Raise largest [D] to the sizes of the entries `data` [z], each in that of its `columns` [z], in place."""
    for k in range(columns.size):
        column, size = np.uint64(columns[k]), np.float64(abs(data[k]))
        if size > largest[column]:
            largest[column] = size


@compiled
def _add_squares(columns, data, shares, largest, sums):
    """Add share * (entry / largest[column])**2 and the share of each entry to sums [D, 2], in place.

    `shares` [z], or [0] for ones.
    """
    for k in range(columns.size):
        column = np.uint64(columns[k])
        part, share = data[k] / largest[column], shares[k] if shares.size else 1.0
        sums[column, 0] += part * part * share
        sums[column, 1] += share


def largest_sizes(columns: np.ndarray, data: np.ndarray, count: int) -> np.ndarray:
    """Return a power of 2 near the largest size of the entries of each column, float64 [count]; 1 without any.

    `data` [z] are entries, float32 or float64, in `columns` [z], int32 or int64. Raises KernelError if a column is not
    in [0, count).

    >>> largest_sizes(np.array([0, 2, 2]), np.float32([3, 0.25, -0.1]), 3).tolist()
    [4.0, 1.0, 0.5]
    """
    if columns.size and not 0 <= columns.min() <= columns.max() < count:
        raise KernelError(f"columns are {columns.min()} to {columns.max()}; expected 0 to {count - 1}.")
    largest = np.zeros(count)
    _take_largest(plain(columns), plain(data), largest)
    return np.ldexp(1.0, np.where(largest > 0, np.minimum(np.frexp(largest)[1], 1023), 0))


def root_mean_squares(
    columns: np.ndarray, data: np.ndarray, count: int, shares: np.ndarray | None = None
) -> np.ndarray:
    """Return the root mean square of the entries of each column, float64 [count]; 0 without any.

    `data` [z] are entries, float32 or float64, in `columns` [z], int32 or int64; each counts by its share, float64 [z],
    None for ones. Squares neither overflow nor vanish. Raises KernelError if a column is not in [0, count).

    >>> root_mean_squares(np.array([0, 2, 2]), np.float32([3, 1, -7]), 3).tolist()
    [3.0, 0.0, 5.0]
    """
    largest, sums = largest_sizes(columns, data, count), np.zeros((count, 2))
    _add_squares(plain(columns), plain(data), np.zeros(0) if shares is None else plain(shares), largest, sums)
    return np.sqrt(sums[:, 0] / np.where(sums[:, 1] > 0, sums[:, 1], 1)) * largest
