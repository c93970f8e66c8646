"""The sum of squares of each row of a matrix in CSR form, by which dual ascent knows how far a step moves its score."""

import numpy as np
from numba import prange

from kernels.epochs.loops import rises
from kernels.plain import plain
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_cost, parts

FEW_ENTRIES = 32
"""Entries of a row whose columns are compared each with each, for duplicates."""


WORK = 4
"""What an entry counts for in the measure of `threads.is_serial`."""


@compiled
def _sum_of_squares(data, start, stop):
    """In four sums side by side: one waits for itself, and takes four times as long."""
    sums = 0.0, 0.0, 0.0, 0.0
    whole = start + (stop - start) // 4 * 4
    for k in range(np.uint64(start), np.uint64(whole), np.uint64(4)):
        a, b = np.float64(data[k]), np.float64(data[k + np.uint64(1)])
        c, d = np.float64(data[k + np.uint64(2)]), np.float64(data[k + np.uint64(3)])
        sums = sums[0] + a * a, sums[1] + b * b, sums[2] + c * c, sums[3] + d * d
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    for k in range(np.uint64(whole), np.uint64(stop)):
        total += np.float64(data[k]) * data[k]
    return total


@compiled
def _of_repeated(indices, data):
    """Of a row whose columns may come twice."""
    total = 0.0
    if indices.size <= FEW_ENTRIES:
        for k in range(indices.size):
            for other in range(indices.size):
                total += np.float64(data[k]) * data[other] * (indices[k] == indices[other])
        return total
    place = np.argsort(indices)
    column, entry = indices[place[0]], 0.0
    for p in place:
        if indices[p] != column:
            total += entry * entry
            column, entry = indices[p], 0.0
        entry += data[p]
    return total + entry * entry


@compiled
def _squares(indptr, indices, data, first, last, out):
    for row in range(np.uint64(first), np.uint64(last)):
        start, stop = indptr[row], indptr[row + np.uint64(1)]
        if rises(indices, start, stop):
            out[row] = _sum_of_squares(data, start, stop)
        else:
            out[row] = _of_repeated(indices[start:stop], data[start:stop])


@compiled_parallel
def _squares_parts(indptr, indices, data, bounds, out):
    for part in prange(bounds.size - 1):
        _squares(indptr, indices, data, bounds[part], bounds[part + 1], out)


def squares_of(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The sum of squares of each row of a matrix in CSR form [T], of the type of data; duplicates are summed before.

    O(z), and O(z log z) in rows whose columns do not rise.
    """
    out = np.empty(indptr.size - 1, data.dtype)
    starts, indices, data = map(plain, (indptr, indices, data))
    call_parallel(_squares_parts, WORK * indices.size, starts, indices, data, equal_cost(starts, parts()), out)
    return out
