"""The gradient of a weight on the active columns of a CSR batch without a plan: (columns, (A.T @ g)[columns]).

A plan sorts the entries of a batch. If a row of g has few values, the sort takes several times as long as the rest of a
step, and pays only for a batch that repeats. Here each entry is added to sums with an element for every column, and
sets a bit for its column; the bits then give the active columns in order. Sums and bits are memory that a thread keeps
and a call leaves zero; `suits` accepts batches with about as many entries as columns.

The two halves of the rows have separate sums, however many threads there are: a sum has one order, and so the same bits
on every run and thread count.
"""

import threading

import numpy as np
from numba import prange

from kernels import reused, small_sort
from kernels.partition import equal_cost, equal_count
from kernels.plain import plain
from kernels.threads import call_parallel, compiled, compiled_parallel

NUMBERS = 2
"""Widest row of g, in numbers: of wider ones a column's sum costs less in the order of a plan."""

PLACES = 4
"""Sums for each entry of a batch, at most: sums that leave the caches gain nothing. Of 131,000 entries, beside
other programs, without / with a plan: 0.42 / 1.11 ms for 100,000 columns, 0.54 / 1.14 for 300,000; in the midst of a
step, for 1,000,000 as long."""

WORK = 4
"""What an entry counts for in the measure of `threads.is_serial`."""

BLOCKS = 64
"""Ranges of columns that are looked through side by side."""

BITS = np.zeros(64, np.int64)
"""The place of the only bit of a word, by the upper six bits of the word times `DE_BRUIJN`."""
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
for _bit in range(64):
    BITS[(int(DE_BRUIJN) << _bit & (1 << 64) - 1) >> 58] = _bit


class _Kept(threading.local):
    """Sums of the two halves [2, elements] by dtype, and the bits of their columns [2, words]: all zero between
    calls.
    """

    def __init__(self) -> None:
        self.sums: dict[np.dtype, np.ndarray] = {}
        self.bits = np.zeros((2, 0), np.uint64)

    def take(self, columns: int, width: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return memory for `columns` columns of this width; the caller leaves it zero and gives it back."""
        sums = self.sums.pop(dtype, None)
        if sums is None or sums.shape[1] < columns * width:
            sums = np.zeros((2, columns * width), dtype)
        bits, words = self.bits, -(-columns // 64)
        self.bits = np.zeros((2, 0), np.uint64)
        return sums, bits if bits.shape[1] >= words else np.zeros((2, words), np.uint64)

    def give_back(self, sums: np.ndarray, bits: np.ndarray) -> None:
        """Keep the scratch arrays `sums` and `bits`, all zero, for the next call."""
        self.sums[sums.dtype], self.bits = sums, bits


_kept = _Kept()


def suits(entries: int, columns: int, width: float) -> bool:
    """Return whether the gradient of a weight of this width is cheaper without a plan, for a batch used once."""
    return entries > small_sort.ENTRIES and width <= NUMBERS and columns * width <= PLACES * entries


@compiled
def _add(starts, indices, data, g, first, last, limit, sums, bits):
    """Add the entries of rows first to last - 1 to sums and mark their columns in bits; False if a column is >=
    limit.
    """
    width, one, is_right = np.uint64(g.shape[1]), np.uint64(1), True
    for r in range(np.uint64(first), np.uint64(last)):
        slope = g[r, 0]
        for k in range(np.uint64(starts[r] - starts[0]), np.uint64(starts[r + one] - starts[0])):
            column = np.uint64(indices[k])
            if column >= limit:
                is_right = False
                continue
            bits[column >> np.uint64(6)] |= one << (column & np.uint64(63))
            place = column * width
            sums[place] += data[k] * slope
            if width > one:
                sums[place + one] += data[k] * g[r, 1]
    return is_right


@compiled_parallel
def _add_halves(starts, indices, data, g, bounds, limit, sums, bits, is_right):
    """Do `_add` for both halves of the batch on two threads, each with its own sums and bits; results to is_right
    [2].
    """
    for half in prange(2):
        is_right[half] = _add(starts, indices, data, g, bounds[half], bounds[half + 1], limit, sums[half], bits[half])


@compiled
def _find_ends(bits, bounds, ends):
    """Find where the columns of each range of words begin among those with a bit in either half, and the end of all."""
    total = 0
    for part in range(bounds.size - 1):
        ends[part] = total
        for word in range(np.uint64(bounds[part]), np.uint64(bounds[part + 1])):
            left = bits[0, word] | bits[1, word]
            while left:
                left &= left - np.uint64(1)
                total += 1
    ends[bounds.size - 1] = total


@compiled
def _collect(sums, bits, first, last, columns, values):
    """Write the columns marked in bits[first:last] and their sums to columns, values; clears bits and sums."""
    width, u = np.uint64(values.shape[1]), np.uint64(0)
    for word in range(np.uint64(first), np.uint64(last)):
        left = bits[0, word] | bits[1, word]
        bits[0, word] = bits[1, word] = np.uint64(0)
        while left:
            rest = left & (left - np.uint64(1))
            column = word * np.uint64(64) + np.uint64(BITS[((left ^ rest) * DE_BRUIJN) >> np.uint64(58)])
            columns[u] = column
            for n in range(width):
                place = column * width + n
                values[u, n] = sums[0, place] + sums[1, place]
                sums[0, place] = sums[1, place] = 0
            u, left = u + np.uint64(1), rest


@compiled_parallel
def _collect_parts(sums, bits, bounds, ends, columns, values):
    """Gather the active columns and their gradient rows from sums and bits, between two `bounds` on each thread."""
    for part in prange(ends.size - 1):
        own = slice(ends[part], ends[part + 1])
        _collect(sums, bits, bounds[part], bounds[part + 1], columns[own], values[own])


def gradient(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, g: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return active columns, sorted int64 [U], and the gradient (A.T @ g)[columns] [U, N].

    The batch is `indptr` [R + 1] (validated), `indices` and `data` [z] in CSR form with `columns` features; g is [R,
    N].
    O(z N + features / 64). Raises KernelError for a column out of range.
    """
    starts, indices, data, g = map(plain, (indptr, indices, data, g))
    width, work = g.shape[1], WORK * indices.size * g.shape[1]
    sums, bits = _kept.take(columns, width, g.dtype)
    is_right = np.ones(2, np.bool_)
    halves = equal_cost(starts, 2)
    call_parallel(_add_halves, work, starts, indices, data, g, halves, np.uint64(columns), sums, bits, is_right)
    if not is_right.all():
        raise small_sort.wrong_column(indices, columns)  # the memory is not clear, and goes
    bounds, ends = equal_count(-(-columns // 64), BLOCKS), np.empty(BLOCKS + 1, np.int64)
    _find_ends(bits, bounds, ends)
    touched = int(ends[-1])
    found = reused.empty(touched, np.int64)
    values = reused.empty(touched * width, g.dtype).reshape(touched, width)
    call_parallel(_collect_parts, WORK * touched, sums, bits, bounds, ends, found, values)
    _kept.give_back(sums, bits)
    return found, values
