"""The gradient of a batch in sums that have a place for every column, where there are few columns for its entries.

Each entry is added at the place of its column, which is marked; no column is searched for. Then the marked columns are
stepped in ascending order, `CHUNK` columns at a time: first the sums of the parts of the batch are added in the order
of the parts, and cleared. With one output, neighbouring columns are stepped as a vector, in which unmarked ones are
masked.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels import aligned, reused
from kernels.code_cache import inlined
from kernels.epochs import touched
from kernels.epochs.programs import Programs
from kernels.vector.lanes import emit_row

PLACES = 16
"""Places for each entry of a batch at most: about the memory that listing its columns takes."""

LOOKED_THROUGH = 64
"""Columns whose marks are looked through for each entry of a batch at most, in less time than listing takes for it."""

ROWS, ENTRIES = 128, 24 * 1024
"""Rows of a block that has its scores, its slopes and its sums before the next one, and entries from which on it has no
further row: some 200 KB of X, which the cache of a core still has when it is read for the second time."""

CHUNK = 512
"""Columns of a chunk, whose sums lie in a core's nearest cache."""


class DenseTable(NamedTuple):
    """`sums` [P * places, N] and `marks` uint8 [P, places] of each part, all zero between batches; `columns` int64
    [P, 512], those of a chunk that are marked, of its owner. Places are the columns, and more up to whole chunks.
    """

    sums: np.ndarray
    marks: np.ndarray
    columns: np.ndarray


@inlined
def dense_table_of(parts):
    """Return a `DenseTable` built from the tuple of its fields, inside compiled code."""
    return DenseTable(*parts)


def suits(entries: int, columns: int, width: int) -> bool:
    """Return whether a sum for each column pays, for batches of `entries` entries and weights [columns, width]."""
    return columns * width <= max(PLACES * entries, min(LOOKED_THROUGH * entries, touched.DIRECT))


def table(rows: int, width: int, dtype: np.dtype) -> np.ndarray:
    """Return uninitialised memory [rows, width] that starts at a cache line.

    Large blocks are reused from earlier calls.
    """
    if rows * width * dtype.itemsize < reused.SMALL:
        return aligned.empty((rows, width), dtype)
    return reused.empty(rows * width, dtype).reshape(rows, width)


def dense_table_for(parts: int, weights: np.ndarray) -> DenseTable:
    """Allocate a `DenseTable` for `parts` threads and weights [D, N]: sums and marks zero, columns uninitialised."""
    columns, width = weights.shape
    places = -(-columns // CHUNK) * CHUNK
    sums = table(parts * places, width, weights.dtype)
    sums[...] = 0
    return DenseTable(sums, np.zeros((parts, places), np.uint8), np.empty((parts, CHUNK), np.int64))


def make_gather(programs: Programs) -> Callable:
    """Return compiled gather(part, rows, order, first, last, slope, dense_table) -> None for sums of one thread.

    It adds X[order[first:last]].T @ slope to the sums of thread `part` in `dense_table` and marks the active columns.
    """
    add = programs.add_entries

    def gather(part, rows, order, first, last, slope, dense_table):
        """Add X[order[first:last]].T @ slope to the sums of part `part` and mark its active columns, in place.

        `slope` [last - first, N] is the gradient of the scores; `dense_table` a `DenseTable`.
        """
        width, marks = slope.shape[1], dense_table.marks[part]
        base = part * marks.size
        for place in range(first, last):
            row = np.uint64(order[place])
            start, stop = np.int64(rows.indptr[row]), np.int64(rows.indptr[row + np.uint64(1)])
            operands = (stop, rows.indices, rows.data, slope, place - first, dense_table.sums, base, marks)
            emit_row(add, start, width, operands)

    return inlined(gather)


@inlined
def end_of_block(rows, order, begin, last):
    """Return the exclusive end of the block of rows that starts at order[begin]: one row or more.

    A block ends after 128 rows, after 24 K entries, or at `last`.
    """
    entries, end = 0, begin
    while end < min(begin + ROWS, last) and entries < ENTRIES:
        row = np.uint64(order[end])
        entries += rows.indptr[row + np.uint64(1)] - rows.indptr[row]
        end += 1
    return end


def make_pass(programs: Programs, forward: Callable) -> Callable:
    """Return compiled one_pass(part, rows, order, first, last, ..): scores, gradients, sums, block by block.

    It writes the gradient of the scores of rows order[first:last] to `scratch`, adds column sums to `store`, and
    returns (sum of losses, position of an invalid target or -1). `forward` is the result of `loops.make_forward`.
    """
    gather = make_gather(programs)

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store):
        """Process rows order[first:last] block by block; return (sum of losses, position of an invalid target or -1).

        rows, share, arrays, added and is_far are as in `loops.make_forward`. Writes the gradient of the scores to
        scratch.slope [last - first, N] and adds to the sums of part `part` in `store`. Stops at an invalid target.
        """
        total, end = 0.0, first
        while end < last:
            begin, end = end, end_of_block(rows, order, end, last)
            slope = scratch.slope[begin - first : end - first]
            own = scratch.scores, scratch.targets, slope
            loss, wrong = forward(rows, order, begin, end, share, arrays, added, is_far, own)
            if wrong >= 0:
                return total, wrong
            total += loss
            gather(part, rows, order, begin, end, slope, store)
        return total, -1

    return inlined(one_pass)


@inlined
def add_up(start, parts, dense_table):
    """Add the sums and marks of parts 1.. for columns start..start + CHUNK - 1 to those of part 0.

    Zero the others.
    """
    places, width = dense_table.marks.shape[1], dense_table.sums.shape[1]
    sums, marks = dense_table.sums[start : start + CHUNK], dense_table.marks[0, start : start + CHUNK]
    for part in range(1, parts):
        others = dense_table.sums[part * places + start : part * places + start + CHUNK]
        marks_others = dense_table.marks[part, start : start + CHUNK]
        for place in range(CHUNK):
            marks[place] |= marks_others[place]
            marks_others[place] = 0
        for place in range(CHUNK):
            for n in range(width):
                sums[place, n] += others[place, n]
                others[place, n] = 0


@inlined
def list_marked(start, owner, dense_table):
    """Write the marked columns start..start + CHUNK - 1 to dense_table.columns[owner], zero their marks.

    Return their count.
    """
    marks, columns, count = dense_table.marks[0], dense_table.columns[owner], 0
    for place in range(np.uint64(start), np.uint64(start + CHUNK)):
        columns[np.uint64(count)] = place
        count += np.int64(marks[place])
        marks[place] = 0
    return count


@inlined
def _nothing_to_add(start, parts, dense_table):
    """Do nothing, all parameters being unused: with one thread part 0 already has all sums."""


def make_step(programs: Programs, is_parallel: bool) -> Callable:
    """Return compiled step(owner, parts, ..) -> None: update one thread's columns, in chunks, by all threads' sums.

    Weights and states change in place; sums and marks are zeroed. `is_parallel` is False for one thread, which has
    nothing to add up.
    """
    steps, marked, add = programs.steps_dense, programs.marked, add_up if is_parallel else _nothing_to_add

    def step_vectors(owner, parts, stepped, settings, at, dense_table, batch):
        """Update the marked weights [D, 1] and states `stepped` of chunks owner, owner + parts, ...

        In place by their sums. `owner` is the thread of `parts`. Sums and marks in `dense_table` are zeroed; `settings`
        [steps, K] is read at row `at`; `batch` is unused.
        """
        marks = dense_table.marks[0]
        for start in range(owner * CHUNK, marks.size, parts * CHUNK):
            add(start, parts, dense_table)
            emit_row(marked, start, 1, (start + CHUNK, *stepped, marks, dense_table.sums, settings, at))

    def step_rows(owner, parts, stepped, settings, at, dense_table, batch):
        """Update the marked rows of weights and states `stepped` of chunks owner, owner + parts, ...

        In place by their sums. `owner` is the thread of `parts`. Sums and marks in `dense_table` are zeroed; `settings`
        [steps, K] is read at row `at`; `batch` is unused.
        """
        columns, width = dense_table.columns[owner], dense_table.sums.shape[1]
        for start in range(owner * CHUNK, dense_table.marks.shape[1], parts * CHUNK):
            add(start, parts, dense_table)
            count = list_marked(start, owner, dense_table)
            emit_row(steps, 0, width, (count, *stepped, columns, dense_table.sums, settings, at))

    return inlined(step_vectors if marked else step_rows)
