"""The compiled loop of an epoch on several threads, for batches that have work for them.

A batch is cut into parts of as many rows each. In a first pass over them each part has scores, slopes and the sums of a
gradient of its own. In a second one each part owns some of the columns: it adds up what the parts have summed for
these, in their order, and does the rule's step. No element has two writers, and no sum an order that depends on time.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels._compat.numba_internals import layer
from kernels.code_cache import inlined
from kernels.epochs import loops, placed, touched
from kernels.epochs.loops import (
    Rows,
    Scratch,
    Trained,
    compiled,
    make_forward,
    make_gather,
    make_step_intercept,
    named,
    sum_columns,
)
from kernels.epochs.programs import Programs
from kernels.epochs.touched import Hashing, Touched, find, forget, owner_of, touched_of
from kernels.epochs.ways import catches_up, is_dense, make_after, make_before
from kernels.vector.lanes import emit_row
from kernels.vector.parts import each_part

PARTS = 8
"""Parts of a batch at most: what is summed for a column is looked for in the parts before."""


class Listed(NamedTuple):
    """Sums of a batch's gradient for the columns that each part touches: how columns are found, those of each part,
    `sums` [P * most, N], numbers of active columns [P], the columns by owner: `owned` [P, most], where those of each
    begin `starts` [P, P + 2], and end once merged [P, P].

    Columns whose numbers differ in no more than the last `group` bits have one owner: they share a line of memory.
    """

    hashing: Hashing
    stacked: Touched
    sums: np.ndarray
    counts: np.ndarray
    owned: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    group: np.ndarray


@inlined
def listed_of(parts):
    """Return a `Listed` of its fields, inside compiled code."""
    hashing, stacked, sums, counts, owned, starts, ends, group = parts
    return Listed(Hashing(*hashing), Touched(*stacked), sums, counts, owned, starts, ends, group)


@inlined
def divide(columns, count, starts, owned, group):
    """Write the column numbers to `owned` by owner: those of owner o from starts[o] on."""
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


def make_pass(programs: Programs, forward: Callable) -> Callable:
    """Return a compiled function: scores, gradients and column sums of a part's rows order[first:last]."""
    gather = make_gather(programs)

    def one_pass(part, rows, order, first, last, share, arrays, added, is_far, scratch, store, is_summed):
        touched, most, counts = touched_of(part, store.stacked), store.owned.shape[1], store.counts
        forget(touched, counts[part])
        counts[part] = 0
        total, wrong = forward(rows, order, first, last, share, arrays, added, is_far, scratch)
        if wrong < 0 and is_summed:
            sums = store.sums[part * most : (part + 1) * most]
            counts[part] = gather(rows, order, first, last, scratch.slope, store.hashing, touched, sums)
            divide(touched.columns, counts[part], store.starts[part], store.owned[part], store.group[0])
        return total, wrong

    return inlined(one_pass)


def make_two(programs: Programs, loss: str, sums: str) -> tuple[Callable, Callable, Callable]:
    """Return compiled (pass over a part's rows, update of an owner's columns, constructor of the memory)."""
    forward = make_forward(programs, loss)
    if sums == "placed":
        return placed.make_pass(programs, forward), placed.make_step(programs), placed.placed_of
    if sums == "direct":
        return loops.make_pass(forward), loops.make_step(programs, is_parallel=True), loops.direct_of
    if sums == "grouped":
        return touched.make_pass(forward), touched.make_step(programs), touched.grouped_of
    return make_pass(programs, forward), make_merge(programs), listed_of


def make_part(one_pass: Callable) -> Callable:
    """Return a compiled function: a part's share of a batch; it writes the part's loss and any invalid target."""

    def do_part(part, rows, order, first, last, arrays, added, is_far, scratch, store, part_losses, wrong):
        parts, count = wrong.size, last - first
        begin, end = first + count * part // parts, first + count * (part + 1) // parts
        slope = scratch.slope[begin - first : end - first]
        own, share = Scratch(scratch.scores[part], scratch.targets[part], slope), slope.dtype.type(1 / count)
        part_losses[part], wrong[part] = one_pass(
            part, rows, order, begin, end, share, arrays, added, is_far, own, store, True
        )

    return inlined(do_part)


@inlined
def holder_of(column, part, hashing, stacked, most):
    """Return the row of the sums that an earlier part has for a column, or -1."""
    for earlier in range(part):
        number, _ = find(touched_of(earlier, stacked), hashing, column)
        if number >= 0:
            return earlier * most + number
    return -1


def make_merge(programs: Programs) -> Callable:
    """Return a compiled function: the update of an owner's columns, by the sums of all parts."""
    add, listed = programs.add, programs.listed

    def merge(owner, parts, stepped, settings, at, store, batch):
        hashing, stacked, sums, owned = store.hashing, store.stacked, store.sums, store.owned
        most, width = owned.shape[1], sums.shape[1]
        for part in range(parts):
            kept = store.starts[part, owner]
            for place in range(store.starts[part, owner], store.starts[part, owner + 1]):
                number = owned[part, place]
                holder = holder_of(stacked.columns[part, number], part, hashing, stacked, most)
                if holder < 0:
                    owned[part, kept] = part * most + number
                    kept += 1
                else:
                    emit_row(add, holder, width, (sums.dtype.type(1), sums, part * most + number, sums))
            store.ends[part, owner] = kept
        for part in range(parts):
            first, last = part * most + store.starts[part, owner], part * most + store.ends[part, owner]
            operands = (stacked.columns.reshape(-1), owned.reshape(-1), sums, settings, at)
            emit_row(listed, first, width, (last, *stepped, *operands))

    return inlined(merge)


@functools.cache
def make_parallel(programs: Programs, loss: str, sums: str) -> Callable:
    """The loop on several threads, as `loops.make_serial`; arrays of `scratch` have a row for each part, and `store` is
    a `placed.Placed`, `grouped.Grouped`, `direct.Direct` or `Listed`. `told` is a pair of arrays [P]: the loss of each
    part of a batch, and the place of its first wrong target or -1. `span` is the first batch to do and the end."""
    one_pass, merge, store_of = make_two(programs, loss, sums)
    do_part, step_intercept = make_part(one_pass), make_step_intercept(programs.steps_intercept)
    before, after = make_before(programs), make_after(programs)
    misses, steps_all = catches_up(programs.way), is_dense(programs.way)

    def parallel(bare_rows, order, batch_rows, bare_trained, is_far, memory, intercept, losses, group, told, span):
        rows, trained = Rows(*bare_rows), Trained(*bare_trained)
        scratch, store = Scratch(*memory[0]), store_of(memory[1])
        (numbers, sums_intercept), (part_losses, wrong) = intercept, told
        arrays, added, settings, parts = trained.arrays, trained.added, trained.settings, wrong.size
        stepped, beside, units, width = trained.stepped, trained.beside, trained.units, trained.added.size
        for step in range(span[0], span[1]):
            first, at = step * batch_rows, min(step, settings.shape[0] - 1)
            last = min(first + batch_rows, order.size)
            if misses:
                each_part(before, parts, (parts, group, rows, order[first:last], arrays, beside, step))
            shared = arrays, added, is_far, scratch, store, part_losses, wrong
            each_part(do_part, parts, (rows, order, first, last, *shared))
            for part in range(parts):
                if wrong[part] >= 0:
                    return wrong[part]
                losses[step] += part_losses[part] / (last - first)
            batch = rows, order[first:last], scratch.slope[: last - first]
            each_part(merge, parts, (parts, stepped, settings, at, store, batch))
            if steps_all:
                each_part(after, parts, (parts, beside, units, width, settings, at))
            if sums_intercept.size:
                sum_columns(scratch.slope[: last - first], sums_intercept)
                step_intercept(trained, numbers, sums_intercept, step)
        return -1

    layer()  # code is linked with its functions
    return compiled(named(parallel, programs, loss, sums))
