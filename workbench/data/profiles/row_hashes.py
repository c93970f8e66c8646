"""A number for each row by which equal rows are found without comparing them with each other."""

import numpy as np
import scipy.sparse

PART = 1 << 20
"""Entries that are hashed at once."""
GOLDEN, FIRST, SECOND = (np.uint64(value) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""Constants of SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014."""


def row_hashes(x: scipy.sparse.csr_array) -> np.ndarray:
    """uint64 [rows] of a canonical matrix: equal for rows that are equal in all columns, 0 for rows of zeros.

    Of n different rows any two share a hash with a chance of about n**2 / 2**65. A hash is the sum of those of the
    row's entries, modulo 2**64, so that entries are read once and in parts. O(entries) and O(rows) memory.
    """
    before = np.zeros(x.shape[0] + 1, np.uint64)  # sums of all entries before each row
    total = np.zeros(1, np.uint64)
    for start in range(0, x.nnz, PART):
        stop = min(start + PART, x.nnz)
        sums = np.cumsum(_hashed(x.indices[start:stop], x.data[start:stop])) + total
        first, last = np.searchsorted(x.indptr, (start, stop), side="right")
        before[first:last] = sums[x.indptr[first:last] - start - 1]
        total = sums[-1:]
    return np.diff(before)


def _hashed(indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return one number an entry; 0 for a stored zero, which is no different from none."""
    bits = values.astype(np.float64).view(np.uint64)
    return np.where(values == 0, np.uint64(0), _mixed(_mixed(indices.astype(np.uint64)) ^ bits))


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """SplitMix64 of each number."""
    numbers = numbers + GOLDEN
    numbers = (numbers ^ (numbers >> np.uint64(30))) * FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * SECOND
    return numbers ^ (numbers >> np.uint64(31))
