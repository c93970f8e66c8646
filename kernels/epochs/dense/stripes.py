"""The compiled loop of a dense epoch whose batches exceed the caches: rows in stripes, of a gradient each.

A batch is cut into `STRIPES` stripes of rows, whatever the number of threads. The thread that has a stripe takes blocks
of its rows, which fit the cache of its core, through scores, slopes and the stripe's gradient, so that X comes from
memory once and to one core alone. Then each thread adds up the gradients of all stripes in their order for its part of
the columns, and steps the weights there. Threads wait for each other twice a batch, not twice a block, and no sum
depends on how many there are.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels._compat.numba_internals import layer
from kernels.code_cache import inlined
from kernels.epochs.dense.loops import (
    UNIT_NARROW,
    UNIT_WIDE,
    Labels,
    Scratch,
    Trained,
    add_columns,
    bounds_of,
    make_each,
    make_scores,
)
from kernels.epochs.dense.programs import Programs
from kernels.epochs.dense.sources import SOURCES
from kernels.epochs.loops import compiled, make_step_intercept, named
from kernels.vector.lanes import emit_row
from kernels.vector.tiles import cache_bytes

STRIPES = 8
"""Stripes of a batch: as many threads at most have work."""

ROWS_AN_OUTPUT = 128
"""Rows of a batch for each output at least: a stripe's gradient is written, added up and cleared, as many bytes as
`3 * STRIPES` rows of X for each output."""


class Store(NamedTuple):
    """What each stripe has of its own: `gradients` [STRIPES * rows of the weights, ...] in the layout of the weights,
    zero between batches; `losses` float64 [STRIPES], `wrong` int64 [STRIPES], the place of a wrong target or -1, and
    `sums` [STRIPES * N, 1] of slopes, [0, 1] without an intercept."""

    gradients: np.ndarray
    losses: np.ndarray
    wrong: np.ndarray
    sums: np.ndarray


def suits(batch_rows: int, columns: int, width: int, itemsize: int) -> bool:
    """Whether batches of so many rows are trained on in stripes, for X [rows, columns] and `width` outputs.

    The number of threads does not count, so that weights have the same bits on any number of them.
    """
    cache, row = cache_bytes(2), columns * itemsize
    return batch_rows >= ROWS_AN_OUTPUT * width and batch_rows * row > 2 * cache and row * width <= cache // 2


def rows_of_block(batch_rows: int, columns: int, itemsize: int, rows_at_once: int) -> int:
    """Number of rows of a block: as fit half of the cache of a core, at least `rows_at_once`, at most a stripe's."""
    fitting = cache_bytes(2) // 2 // max(columns * itemsize, 1) // rows_at_once * rows_at_once
    return min(max(fitting, rows_at_once), -(-batch_rows // STRIPES) + rows_at_once)


def store_for(shape: tuple[int, int], width: int, dtype: np.dtype, has_intercept: bool) -> Store:
    """Return memory for the stripes of a batch, for weights of this shape in the layout of the programs."""
    return Store(
        np.zeros((STRIPES * shape[0], shape[1]), dtype),
        np.zeros(STRIPES),
        np.full(STRIPES, -1),
        np.zeros((STRIPES * width if has_intercept else 0, 1), dtype),
    )


def make_stripes(programs: Programs, loss: str, held: str) -> Callable:
    """Work of a part on its stripes of the rows `first` to `last` of the order: their losses and gradients."""
    scores_of, adds, unit = make_scores(programs, loss, held), programs.adds, programs.rows
    is_narrow, (_, table_at, index_at, is_in_order) = programs.is_narrow, SOURCES[held].loop

    def do_stripes(part, parts, source, order, span, block_rows, bare_labels, share, bare_trained, memory, store):
        trained, scratch, labels = Trained(*bare_trained), Scratch(*memory), Labels(*bare_labels)
        gradients, losses, wrong, sums = store
        x, index, stripes = source[table_at], source[index_at], losses.size
        columns, width, rows_each = x.shape[1], trained.arrays[0].shape[1], gradients.shape[0] // stripes
        base, own = part * block_rows, (scratch.scores[part], scratch.targets[part], scratch.slopes)
        for stripe in range(stripes * part // parts, stripes * (part + 1) // parts):
            losses[stripe], wrong[stripe] = 0, -1
            begin, end = bounds_of(stripe, stripes, span[0], span[1], unit)
            gradient = gradients[stripe * rows_each : (stripe + 1) * rows_each]
            outputs = sums.shape[0] // stripes
            of_intercept = sums[stripe * outputs : (stripe + 1) * outputs]
            of_intercept[:] = 0
            for start in range(begin, end, block_rows):
                count = min(block_rows, end - start)
                total, bad = scores_of(source, order, start - base, base, base + count, labels, share, trained, own)
                if bad >= 0:
                    wrong[stripe] = bad
                    break
                losses[stripe] += total
                slopes, offset = scratch.slopes[base : base + count], start if is_in_order else base
                operands = (columns, count, offset, index, x, slopes, gradient, *trained.arrays, trained.settings, 0)
                emit_row(adds, 0, columns if is_narrow else width, operands)
                if outputs:
                    add_columns(slopes, of_intercept)

    return inlined(do_stripes)


def make_columns(programs: Programs, held: str) -> Callable:
    """Work of a part on its columns: the gradients of the stripes added up in their order, and the step by them."""
    added, by_row, is_narrow = programs.steps_added, programs.by_row, programs.is_narrow
    _, table_at, index_at, _ = SOURCES[held].loop

    def do_columns(part, parts, source, bare_trained, slopes, gradients, stripes, at):
        trained, x, index = Trained(*bare_trained), source[table_at], source[index_at]
        columns, width, rows_each = x.shape[1], trained.arrays[0].shape[1], gradients.shape[0] // stripes
        first, last = bounds_of(part, parts, 0, columns, UNIT_NARROW if is_narrow else UNIT_WIDE)
        gradient = gradients[:rows_each]
        for stripe in range(1, stripes):
            others = gradients[stripe * rows_each : (stripe + 1) * rows_each]
            if is_narrow:
                for n in range(rows_each):
                    add_row(gradient[n, first:last], others[n, first:last])
            else:
                for d in range(first, last):
                    add_row(gradient[d], others[d])
        if by_row:
            emit_row(by_row, first, width, (last, *trained.arrays, gradient, trained.settings, at))
        else:
            operands = (last, 0, 0, index, x, slopes, gradient, *trained.arrays, trained.settings, at)
            emit_row(added, first, last if is_narrow else width, operands)

    return inlined(do_columns)


@inlined
def add_row(one, other):
    """one += other, which becomes 0."""
    for j in range(one.size):
        one[j] += other[j]
        other[j] = 0


@functools.cache
def make_loop(programs: Programs, loss: str, held: str, is_parallel: bool) -> Callable:
    """The loop, as `kernels.epochs.dense.loops.make_loop`, with the memory of the stripes, a bare `Store`, beside."""
    each_stripes = make_each(is_parallel, make_stripes(programs, loss, held))
    each_columns = make_each(is_parallel, make_columns(programs, held))
    step_intercept = make_step_intercept(programs.steps_intercept)

    def striped(source, order, batch_rows, block_rows, parts, labels, bare_trained, memory, losses, store, span):
        trained, scratch = Trained(*bare_trained), Scratch(*memory)
        (gradients, losses_each, wrong, sums_each), sums, stripes = store, scratch.sums, store[1].size
        for step in range(span[0], span[1]):
            first, at = step * batch_rows, min(step, trained.settings.shape[0] - 1)
            last = min(first + batch_rows, order.size)
            share, rows = trained.added.dtype.type(1 / (last - first)), (first, last)
            each_stripes(parts, (parts, source, order, rows, block_rows, labels, share, bare_trained, memory, store))
            for stripe in range(stripes):
                if wrong[stripe] >= 0:
                    return wrong[stripe]
                losses[step] += losses_each[stripe]
            losses[step] /= last - first
            each_columns(parts, (parts, source, bare_trained, scratch.slopes, gradients, stripes, at))
            if sums.size:
                sums[:] = 0
                for place in range(sums_each.shape[0]):
                    sums[place % sums.shape[0], 0] += sums_each[place, 0]
                step_intercept(trained, scratch.numbers, sums, step)
        return -1

    if is_parallel:
        layer()  # code is linked with its functions
    return compiled(named(striped, programs, loss, held, is_parallel))
