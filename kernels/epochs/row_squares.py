"""The sum of squares of a row of a matrix in CSR form, by which dual ascent knows how far a step moves its score."""

import numpy as np

from kernels.code_cache import inlined
from kernels.epochs.loops import rises
from kernels.threads import compiled_with_arrays

FEW_ENTRIES = 32
"""Entries of a row whose columns are compared each with each, for duplicates."""


def reference_square(indices: np.ndarray, data: np.ndarray) -> float:
    """Return the squared 2-norm of a row in plain loops, duplicates summed first."""
    entries: dict[int, float] = {}
    for column, value in zip(indices.tolist(), data.tolist(), strict=True):
        entries[column] = entries.get(column, 0.0) + value
    return sum(entry * entry for entry in entries.values())


@compiled_with_arrays
def _of_repeated(indices, data):
    """Return the squared 2-norm of a row that may have duplicate columns, which are summed first."""
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


@inlined
def square_of(indices, data, start, stop):
    """Return the squared 2-norm of entries start to stop - 1, duplicates summed first.

    O(entries), or O(entries log entries) if columns do not ascend.
    """
    if not rises(indices, start, stop):
        return _of_repeated(indices[start:stop], data[start:stop])
    total = 0.0
    for k in range(np.uint64(start), np.uint64(stop)):
        total += np.float64(data[k]) * data[k]
    return total
