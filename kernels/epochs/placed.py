"""The gradient of a batch in sums that have a place for every column, where there are few columns for its entries.

Each entry is added at the place of its column and sets a bit for it: no column is looked for, and nothing is guessed.
Then the columns with a bit are taken up in their order, a stretch at a time: what the parts of the batch have summed
for each is added up, in their order, its place is cleared, and the rule's step is done on those of the stretch.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels import aligned, reused
from kernels.code_cache import inlined
from kernels.epochs import touched
from kernels.epochs.programs import Programs
from kernels.unsorted import BITS, DE_BRUIJN
from kernels.vector.lanes import emit_row

WORD, SHIFT, LAST = np.uint64(64), np.uint64(6), np.uint64(63)
"""Columns of a word of bits, and what a column's word and bit in it are found with."""

PLACES = 16
"""Places for each entry of a batch at most: about the memory that listing its columns takes."""

LOOKED_THROUGH = 64
"""Columns whose bits are looked through for each entry of a batch at most, in less time than listing takes for it."""

ROWS = 128
"""Rows of a block that has its scores, its slopes and its sums before the next one."""

STRETCH = 8
"""Words of bits of a stretch: the sums of its 512 columns lie in a core's nearest cache."""


class Placed(NamedTuple):
    """`sums` [P * 64 * words, N] and `bits` uint64 [P, words] of each part, all zero between batches; of the owner of a
    stretch the `columns` int64 [P, 512] that were touched there, and what was `found` for each [P * 512, N]."""

    sums: np.ndarray
    bits: np.ndarray
    columns: np.ndarray
    found: np.ndarray


def suits(entries: int, columns: int, width: int) -> bool:
    """Whether batches of so many entries are summed so, beside weights [columns, width]."""
    return columns * width <= max(PLACES * entries, min(LOOKED_THROUGH * entries, touched.DIRECT))


def table(rows: int, width: int, dtype: np.dtype) -> np.ndarray:
    """Memory [rows, width] that begins at a cache line; of earlier calls where new pages would take long."""
    if rows * width * dtype.itemsize < reused.SMALL:
        return aligned.empty((rows, width), dtype)
    return reused.empty(rows * width, dtype).reshape(rows, width)


def placed_for(parts: int, weights: np.ndarray) -> Placed:
    """Memory for batches in so many parts, in places of earlier calls where there are some."""
    (columns, width), dtype, most = weights.shape, weights.dtype, 64 * STRETCH
    words = -(-columns // most) * STRETCH
    sums = table(parts * words * 64, width, dtype)
    sums[...] = 0
    bits = np.zeros((parts, words), np.uint64)
    return Placed(sums, bits, np.empty((parts, most), np.int64), aligned.empty((parts * most, width), dtype))


def make_gather(programs: Programs) -> Callable:
    """Adds up the gradient of the rows `order[first:last]`, whose slope it is, in one part's sums."""
    add = programs.add

    def gather(part, rows, order, first, last, slope, placed):
        width, bits = slope.shape[1], placed.bits[part]
        base = part * 64 * bits.size
        for place in range(first, last):
            row = np.uint64(order[place])
            for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                column = np.uint64(rows.indices[k])
                bits[column >> SHIFT] |= np.uint64(1) << (column & LAST)
                emit_row(add, base + np.int64(column), width, (rows.data[k], slope, place - first, placed.sums))

    return inlined(gather)


def make_pass(programs: Programs, forward: Callable) -> Callable:
    """Scores, slopes and, where asked for, sums of the rows `order[first:last]`, a block at a time, whose entries the
    core's cache then still has: (sum of losses, place of a wrong target or -1)."""
    gather = make_gather(programs)

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store, is_summed):
        total = 0.0
        for begin in range(first, last, ROWS):
            end = min(begin + ROWS, last)
            slope = scratch.slope[begin - first : end - first]
            own = scratch.scores, scratch.targets, slope
            loss, wrong = forward(rows, order, begin, end, share, arrays, added, is_far, own)
            if wrong >= 0:
                return total, wrong
            total += loss
            if is_summed:
                gather(part, rows, order, begin, end, slope, store)
        return total, -1

    return inlined(one_pass)


def make_take(programs: Programs) -> Callable:
    """Puts the sums of a column over all parts into row `at` of what was found, and clears their places."""
    begin, add = programs.begin, programs.add

    def take(column, at, parts, placed):
        width, places, one = placed.sums.shape[1], 64 * placed.bits.shape[1], placed.sums.dtype.type(1)
        emit_row(begin, at, width, (one, placed.sums, column, placed.found))
        for part in range(1, parts):
            emit_row(add, at, width, (one, placed.sums, part * places + column, placed.found))
        for part in range(parts):
            for n in range(width):
                placed.sums[np.uint64(part * places + column), n] = 0

    return inlined(take)


def make_step(programs: Programs) -> Callable:
    """The step on the columns of an owner, whose stretches lie `parts` apart, by what all parts have summed."""
    take, steps = make_take(programs), programs.steps

    def step(owner, parts, stepped, settings, at, placed):
        columns, width = placed.columns[owner], placed.sums.shape[1]
        first, words = owner * columns.size, placed.bits.shape[1]
        found = placed.found[first : first + columns.size]
        for start in range(owner * STRETCH, words, parts * STRETCH):
            count = 0
            for word in range(start, start + STRETCH):
                left = np.uint64(0)
                for part in range(parts):
                    left |= placed.bits[part, word]
                    placed.bits[part, word] = 0
                while left:
                    rest = left & (left - np.uint64(1))
                    column = np.int64(word) * 64 + BITS[((left ^ rest) * DE_BRUIJN) >> np.uint64(58)]
                    columns[count] = column
                    take(column, first + count, parts, placed)
                    count, left = count + 1, rest
            emit_row(steps, 0, width, (count, *stepped, columns, columns, found, settings, at))

    return inlined(step)
