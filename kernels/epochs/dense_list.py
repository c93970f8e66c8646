"""The gradient of a batch on one thread in sums that have a place for every column, next to a list of those touched.

Each entry is added at the place of its column, which is put into the list the first time: a mark of a byte tells, so
that no column is looked for and nothing is guessed. Of one output the sum is the mark: it is not zero, or negative zero
where its entries cancel. Sums of a column have the order of its entries, as in a hash list.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels.aligned import LINE
from kernels.code_cache import inlined
from kernels.epochs.dense_table import table
from kernels.epochs.programs import Programs
from kernels.epochs.touched import DIRECT
from kernels.vector.lanes import emit_row, prefetch

SUMS_AHEAD = 2
"""Rows between asking for the sums and marks of a row's columns, and their use, where these are far."""

PLACES = 10
"""Places for each entry of a batch from which on: with fewer it is faster to look through all marks (`dense_table`).
Measured on a core of an EPYC 9004, N = 1, 4 to 1,024 rows a batch in 2,000 to 30,000 columns, SGD and AdaGrad: at 5
places an entry this takes 1.2 to 1.4 times as long, at 10 to 11 as long, at 20 to 43 it takes 0.4 to 0.7 times."""

CLEARED = 4
"""Places for each entry of a call at most, where there are many: then the time to clear them does not count."""


class DenseList(NamedTuple):
    """`sums` [D, N] and `marks` [D], all zero between batches; the `columns` int64 [most + 1] that are touched, and how
    many these are, `counts` int64 [1].

    Marks are uint8; where the sums are marks themselves, integers of their size in their memory.
    """

    sums: np.ndarray
    marks: np.ndarray
    columns: np.ndarray
    counts: np.ndarray


@inlined
def dense_list_of(parts):
    """Return a `DenseList` built from the tuple of its fields, inside compiled code."""
    return DenseList(*parts)


def suits(entries: int, batches: int, weights: np.ndarray) -> bool:
    """Return whether to sum in a table [D, N] with a list of active columns, for batches of `entries` entries.

    True for narrow rows, many columns for the entries of a batch, and enough `batches` to pay for the clearing.
    """
    is_cleared_soon = weights.size <= max(DIRECT, CLEARED * entries * batches)
    return weights.shape[1] * weights.itemsize <= LINE and weights.size > PLACES * entries and is_cleared_soon


def dense_list_for(most: int, weights: np.ndarray, marks_itself: bool) -> DenseList:
    """Allocate a zeroed `DenseList` for batches of at most `most` entries and weights [D, N].

    `marks_itself` (one output): `marks` are the bits of the sums, as integers in the same memory.
    """
    columns, width = weights.shape
    sums = table(columns, width, weights.dtype)
    sums[...] = 0
    listed = np.empty(min(most, columns) + 1, np.int64)
    marks = sums.reshape(-1).view(f"i{sums.itemsize}") if marks_itself else np.zeros(columns, np.uint8)
    return DenseList(sums, marks, listed, np.zeros(1, np.int64))


def make_gather_one(programs: Programs) -> Callable:
    """Return compiled gather(rows, order, first, last, slope, is_far, dense_list), as `make_gather`, for one output.

    A nonzero sum (or negative zero) marks an active column. `programs` is unused.
    """

    def gather(rows, order, first, last, slope, is_far, dense_list):
        """Add X[order[first:last]].T @ slope to the sums [D, 1]; return the count of active columns.

        These are written to dense_list.columns in order of first use. A sum that cancels to 0 becomes negative zero.
        is_far[1]: prefetch sums.
        """
        sums, marks, columns, _ = dense_list
        count, cancelled = np.uint64(0), marks.dtype.type(np.iinfo(marks.dtype).min)  # the bits of negative zero
        for place in range(first, last):
            if is_far[1] and place + SUMS_AHEAD < last:
                row = np.uint64(order[place + SUMS_AHEAD])
                for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                    prefetch(sums, np.uint64(rows.indices[k]))
            row, change = np.uint64(order[place]), slope[place - first, 0]
            for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                column = np.uint64(rows.indices[k])
                columns[count] = column
                count += np.uint64(marks[column] == 0)
                total = sums[column, 0] + rows.data[k] * change
                sums[column, 0] = total
                if total == 0:
                    marks[column] = cancelled
        return np.int64(count)

    return inlined(gather)


def make_gather(programs: Programs) -> Callable:
    """Return compiled gather(rows, order, first, last, slope, is_far, dense_list) that adds a batch's gradient up.

    It adds X[order[first:last]].T @ slope to the sums [D, N] of `dense_list`, lists the active columns, and returns
    their count.
    """
    if programs.marked:
        return make_gather_one(programs)
    add = programs.add

    def gather(rows, order, first, last, slope, is_far, dense_list):
        """Add X[order[first:last]].T @ slope to the sums [D, N]; return the count of active columns.

        These are written to dense_list.columns in order of first use and marked with 1. is_far[1]: prefetch sums and
        marks.
        """
        sums, marks, columns, _ = dense_list
        width, count = slope.shape[1], np.uint64(0)
        for place in range(first, last):
            if is_far[1] and place + SUMS_AHEAD < last:
                row = np.uint64(order[place + SUMS_AHEAD])
                for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                    prefetch(marks, np.uint64(rows.indices[k]))
                    prefetch(sums, np.uint64(rows.indices[k]) * np.uint64(width))
            row = np.uint64(order[place])
            for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                column = np.uint64(rows.indices[k])
                columns[count] = column
                count += np.uint64(marks[column] == 0)
                marks[column] = 1
                emit_row(add, column, width, (rows.data[k], slope, place - first, sums))
        return np.int64(count)

    return inlined(gather)


def make_pass(programs: Programs, forward: Callable) -> Callable:
    """Return compiled one_pass(part, rows, order, first, last, ..): scores, gradients and, on request, column sums.

    It writes the operands `scratch` and `store` and returns (sum of losses, invalid target or -1). `forward` is the
    result of `loops.make_forward`.
    """
    gather = make_gather(programs)

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store):
        """Fill `scratch`, and the sums and counts[0] of `store`.

        Return (sum of losses, invalid target or -1). The batch is order[first:last]; rows, share, arrays, added and
        is_far are as in `loops.make_forward`. The invalid target is its position in `order`; then nothing is summed.
        `part` is unused.
        """
        total, wrong = forward(rows, order, first, last, share, arrays, added, is_far, scratch)
        if wrong < 0:
            store.counts[0] = gather(rows, order, first, last, scratch.slope, is_far, store)
        return total, wrong

    return inlined(one_pass)


def make_step(programs: Programs) -> Callable:
    """Return compiled step(owner, parts, ..) -> None: update the listed active columns by their sums, in place.

    The sums and marks are then zeroed.
    """
    steps, marks_itself = programs.steps_dense, bool(programs.marked)

    def step(owner, parts, stepped, settings, at, dense_list, batch):
        """Update rows of weights and states of the counts[0] listed columns in place; zero their sums and marks.

        `settings` [steps, K] is read at row `at`; `owner`, `parts` and `batch` are unused.
        """
        sums, marks, columns, counts = dense_list
        count, width = counts[0], sums.shape[1]
        emit_row(steps, 0, width, (count, *stepped, columns, sums, settings, at))
        if not marks_itself:
            for number in range(np.uint64(count)):
                marks[np.uint64(columns[number])] = 0

    return inlined(step)
