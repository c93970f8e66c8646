"""The compiled loop of an epoch on several threads, for batches that have work for them.

A batch is cut into parts of as many rows each. In a first pass over them each part has scores, slopes and the sums of a
gradient of its own. In a second one each part owns some of the columns: it adds up what the parts have summed for
these, in their order, and does the rule's step. No element has two writers, and no sum an order that depends on time.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels.code_cache import inlined
from kernels.epochs.loops import Scratch, compiled, make_forward, make_gather, make_step_intercept, named, sum_columns
from kernels.epochs.programs import Programs
from kernels.epochs.touched import Touched, find, forget, owner_of
from kernels.epochs.ways import catches_up, is_dense, make_after, make_before
from kernels.private.of_numba import layer
from kernels.vector.lanes import emit_row
from kernels.vector.parts import each_part

PARTS = 8
"""Parts of a batch at most: what is summed for a column is looked for in the parts before."""


class Work(NamedTuple):
    """What the parts tell each other: losses and places of wrong targets [P], numbers of touched columns [P], the
    columns by owner: `owned` [P, most], where those of each begin `starts` [P, P + 2], and end once merged [P, P].

    Columns whose numbers differ in no more than the last `group` bits have one owner: they share a line of memory.
    """

    losses: np.ndarray
    wrong: np.ndarray
    counts: np.ndarray
    owned: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    group: np.ndarray


@inlined
def divide(columns, count, starts, owned, group):
    """Put the numbers of the columns in the order of their owners: those of owner o begin at `starts[o]`."""
    parts = starts.size - 2
    starts[:] = 0
    for number in range(count):
        starts[owner_of(columns[number], group, parts) + np.uint64(2)] += 1
    for owner in range(1, starts.size):
        starts[owner] += starts[owner - 1]
    for number in range(count):
        place = owner_of(columns[number], group, parts) + np.uint64(1)
        owned[starts[place]] = number
        starts[place] += 1


@inlined
def touched_of(part, stacked):
    """The touched columns of a part."""
    return Touched(stacked.slots[part], stacked.columns[part], stacked.places[part])


def make_part(programs: Programs, loss: str) -> Callable:
    """A part's scores, slopes and sums, for its share of the rows `order[first:last]`."""
    forward, gather = make_forward(programs, loss), make_gather(programs)

    def do_part(part, rows, order, first, last, arrays, added, is_far, hashing, stacked, scratch, work):
        parts, most = work.owned.shape
        begin, end = first + (last - first) * part // parts, first + (last - first) * (part + 1) // parts
        touched, slope = touched_of(part, stacked), scratch.slope[begin - first : end - first]
        forget(touched, work.counts[part])
        work.counts[part] = 0
        own = Scratch(scratch.scores[part], scratch.targets[part], slope, scratch.sums)
        share = slope.dtype.type(1 / (last - first))
        work.losses[part], work.wrong[part] = forward(rows, order, begin, end, share, arrays, added, is_far, own)
        if work.wrong[part] < 0:
            sums = scratch.sums[part * most : (part + 1) * most]
            work.counts[part] = gather(rows, order, begin, end, slope, hashing, touched, sums)
            divide(touched.columns, work.counts[part], work.starts[part], work.owned[part], work.group[0])

    return inlined(do_part)


@inlined
def holder_of(column, part, hashing, stacked, most):
    """The row of the sums that an earlier part has for the column, or -1."""
    for earlier in range(part):
        number, _ = find(touched_of(earlier, stacked), hashing, column)
        if number >= 0:
            return earlier * most + number
    return -1


def make_merge(programs: Programs) -> Callable:
    """The step on the columns of one owner, by what all parts have summed for these."""
    add, listed = programs.add, programs.listed

    def merge(owner, stepped, settings, at, hashing, stacked, sums, work):
        (parts, most), width = work.owned.shape, sums.shape[1]
        for part in range(parts):
            kept = work.starts[part, owner]
            for place in range(work.starts[part, owner], work.starts[part, owner + 1]):
                number = work.owned[part, place]
                holder = holder_of(stacked.columns[part, number], part, hashing, stacked, most)
                if holder < 0:
                    work.owned[part, kept] = part * most + number
                    kept += 1
                else:
                    emit_row(add, holder, width, (sums.dtype.type(1), sums, part * most + number, sums))
            work.ends[part, owner] = kept
        for part in range(parts):
            first, last = part * most + work.starts[part, owner], part * most + work.ends[part, owner]
            operands = (stacked.columns.reshape(-1), work.owned.reshape(-1), sums, settings, at)
            emit_row(listed, first, width, (last, *stepped, *operands))

    return inlined(merge)


@functools.cache
def make_parallel(programs: Programs, loss: str) -> Callable:
    """The loop on several threads, as `loops.make_serial`; arrays of `stacked` and `scratch` have a row for each part,
    the sums `most` rows."""
    do_part, merge, step_intercept = make_part(programs, loss), make_merge(programs), make_step_intercept(programs)
    before, after = make_before(programs), make_after(programs)
    misses, steps_all = catches_up(programs.way), is_dense(programs.way)

    def parallel(rows, order, batch_rows, trained, is_far, hashing, stacked, scratch, intercept, losses, work):
        (numbers, sums_intercept), parts, group = intercept, work.counts.size, work.group[0]
        arrays, added, settings, sums = trained.arrays, trained.added, trained.settings, scratch.sums
        stepped, beside, units, width = trained.stepped, trained.beside, trained.units, trained.added.size
        for step in range(losses.size):
            first, at = step * batch_rows, min(step, settings.shape[0] - 1)
            last = min(first + batch_rows, order.size)
            if misses:
                each_part(before, parts, (parts, group, rows, order[first:last], arrays, beside, step))
            shared = arrays, added, is_far, hashing, stacked, scratch, work
            each_part(do_part, parts, (rows, order, first, last, *shared))
            for part in range(parts):
                if work.wrong[part] >= 0:
                    return work.wrong[part]
                losses[step] += work.losses[part] / (last - first)
            each_part(merge, parts, (stepped, settings, at, hashing, stacked, sums, work))
            if steps_all:
                each_part(after, parts, (parts, beside, units, width, settings, at))
            if sums_intercept.size:
                sum_columns(scratch.slope[: last - first], sums_intercept)
                step_intercept(trained, numbers, sums_intercept, step)
        return -1

    layer()  # code is linked with its functions
    return compiled(named(parallel, programs, loss))
