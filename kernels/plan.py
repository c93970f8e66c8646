"""The batch plan: everything about a batch that depends on its indices alone, computed once for all the kernels.

A plan costs time and memory that grow with the stored entries of the batch and never with the number of features. The
loader builds it, one batch ahead or once for batches that repeat; forward, gradient and update read it and never sort.
"""

from dataclasses import dataclass, fields

import numpy as np

from kernels.threads import compiled

INT32_LIMIT = 2**31
"""Positions and index values from here on need int64; a test lowers it."""

DIGIT_BITS = 11
"""Widest digit of the radix sort: 2048 counters, which fit the first-level cache beside the data."""


@dataclass(frozen=True)
class BatchPlan:
    """Index work of a batch A [R, D] in CSR form with z stored entries in U touched columns.

    The entries are put in column order, rows ascending inside a column: entry `k` of that order stands at
    `permutation[k]` of the batch's own arrays, in row `rows[k]`; column `columns[u]` owns the entries from
    `segments[u]` to `segments[u + 1]`.
    """

    shape: tuple[int, int]
    columns: np.ndarray
    """Touched columns, sorted, unique: int64 [U]."""
    segments: np.ndarray
    """Row starts of A.T restricted to the touched columns: int32 or int64 [U + 1]."""
    rows: np.ndarray
    """Row of each entry in column order, type of `segments` [z]."""
    permutation: np.ndarray
    """Where each entry stands in the batch, type of `segments` [z]."""
    longest_run: int
    """Entries of the fullest column."""
    row_length: int
    """Entries of every row where all rows have the same number, else -1."""

    @property
    def touched(self) -> int:
        """U, the number of touched columns."""
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes the plan's arrays hold."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


@compiled
def _row_of_entry(indptr, rows):
    for r in range(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            rows[k] = r


@compiled
def _sort_pass(keys, order, shift, bits, keys_out, order_out):
    """One stable counting pass over `bits` bits of the keys, counters local to the call.

    Places are unsigned, because for a signed one Numba also compiles the case that it counts from the end.
    """
    one, low, mask = np.uint64(1), np.uint64(shift), np.uint64((1 << bits) - 1)
    starts = np.zeros((1 << bits) + 1, np.uint64)
    for k in range(keys.size):
        starts[((np.uint64(keys[k]) >> low) & mask) + one] += one
    for digit in range(1 << bits):
        starts[digit + 1] += starts[digit]
    for k in range(keys.size):
        digit = (np.uint64(keys[k]) >> low) & mask
        place = starts[digit]
        starts[digit] = place + one
        keys_out[place] = keys[k]
        order_out[place] = order[k]


@compiled
def _segments(keys, columns, segments):
    """Distinct sorted keys and where each starts; returns their number.

    Every entry writes the end of its run, the last one stays: runs are short, and a branch would be guessed wrong.
    """
    count, one = np.uint64(0), np.uint64(1)
    segments[0] = 0
    for k in range(keys.size):
        columns[count] = keys[k]
        segments[count + one] = k + 1
        count += np.uint64(k + 1 == keys.size or keys[k + 1] != keys[k])
    return count


@compiled
def _gather(rows_of_entries, permutation, rows):
    for k in range(permutation.size):
        rows[k] = rows_of_entries[permutation[k]]


def index_type(largest: int, least: np.dtype = np.int32) -> np.dtype:
    """The type of positions up to `largest`: `least`, or int64 where that is too narrow."""
    return np.dtype(np.int64 if largest >= INT32_LIMIT else least)


def sort_columns(indices: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Stable sort of column numbers below `n_columns`: (sorted [z], permutation [z]), O(z * digits), no O(D) memory.

    Least-significant-digit radix sort restricted to the bits that `n_columns` has (Knuth vol. 3, 5.2.5).
    """
    bits = max(int(n_columns - 1).bit_length(), 1)
    passes = -(-bits // DIGIT_BITS)
    width = -(-bits // passes)
    keys, order = indices, np.arange(indices.size, dtype=index_type(indices.size))
    for digit in range(passes):
        keys_out, order_out = np.empty_like(keys), np.empty_like(order)
        _sort_pass(keys, order, digit * width, width, keys_out, order_out)
        keys, order = keys_out, order_out
    return keys, order


def sort_segments(indices: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group entries by column: (distinct columns int64 [U], where each starts [U + 1], permutation [z])."""
    keys, permutation = sort_columns(indices, n_columns)
    columns, segments = np.empty(keys.size, np.int64), np.empty(keys.size + 1, permutation.dtype)
    touched = _segments(keys, columns, segments)
    return columns[:touched].copy(), segments[: touched + 1].copy(), permutation


def build(indptr: np.ndarray, indices: np.ndarray, n_columns: int) -> BatchPlan:
    """The plan of the CSR batch (`indptr` [R + 1], `indices` [z], int32 or int64) with `n_columns` features.

    Columns of a row may be unsorted and repeated. `indptr` may start above zero, as a slice of rows does: positions
    count from its first entry. O(z). Raises `ValueError` for an index outside `0..n_columns - 1`.
    """
    lengths = np.diff(indptr)
    entry_rows = np.empty(indices.size, index_type(indices.size))
    _row_of_entry(np.array(indptr - indptr[0]), entry_rows)
    row_length = int(lengths[0]) if lengths.size and (lengths == lengths[0]).all() else -1
    return _assemble(entry_rows, indices, (lengths.size, int(n_columns)), row_length)


def build_coo(row: np.ndarray, col: np.ndarray, shape: tuple[int, int]) -> BatchPlan:
    """The plan of a COO batch, entries in any order; as `build`, but rows inside a column keep the order given."""
    return _assemble(row.astype(index_type(row.size)), col, shape, row_length=-1)


def _assemble(entry_rows: np.ndarray, indices: np.ndarray, shape: tuple[int, int], row_length: int) -> BatchPlan:
    if indices.size and not (indices.min() >= 0 and indices.max() < shape[1]):
        raise ValueError(
            f"Column numbers lie from {indices.min()} to {indices.max()}; allowed are 0 to {shape[1] - 1}. "
            "Check the batch with workbench.formats.check(x, full=True)."
        )
    plain = indices.flags.writeable and indices.flags.c_contiguous  # else _sort_pass would be compiled once more
    columns, segments, permutation = sort_segments(indices if plain else np.array(indices, order="C"), shape[1])
    rows = np.empty_like(permutation)
    _gather(entry_rows, permutation, rows)
    longest = int(np.diff(segments).max(initial=0))
    return BatchPlan(shape, columns, segments, rows, permutation, longest, row_length)
