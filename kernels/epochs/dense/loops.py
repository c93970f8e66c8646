"""The compiled loop of a dense epoch, made for a loss, a rule and a width when these are first used.

A batch is done in blocks of rows that fit the caches of the cores at work. Of a block each part of the rows has its
scores and slopes, then each part of the columns its sums over these rows, which step the weights at once if the block
is the last of its batch. No element has two writers, and sums have the same order on any number of threads.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels._compat.numba_internals import layer
from kernels.code_cache import inlined
from kernels.epochs.dense.programs import Programs
from kernels.epochs.dense.sources import SOURCES
from kernels.epochs.loops import compiled, make_step_intercept, named, take_target, weigh
from kernels.loss_blocks import block_of, element_of
from kernels.vector.lanes import emit_row
from kernels.vector.parts import each_part


class Labels(NamedTuple):
    """Targets of all rows, and what the loss of each counts for ([0]: all alike)."""

    targets: np.ndarray
    counts: np.ndarray


class Trained(NamedTuple):
    """Weights and states, [N, D] if narrow, else [D, N], the sums of a batch's blocks in the same layout, the intercept
    [N] (zeros if there is none) and as tables [N, 1], [0, 1] for none, and the settings of each step for either, of the
    last one for all that follow."""

    arrays: tuple
    gradient: np.ndarray
    added: np.ndarray
    intercept: tuple
    settings: np.ndarray
    settings_intercept: np.ndarray


class Scratch(NamedTuple):
    """Memory of a block: scores and targets of some rows of each part, slopes of all, losses of parts, places of wrong
    targets, row indices of the intercept and the sums of slopes."""

    scores: np.ndarray
    targets: np.ndarray
    slopes: np.ndarray
    losses: np.ndarray
    wrong: np.ndarray
    numbers: np.ndarray
    sums: np.ndarray


UNIT_NARROW, UNIT_WIDE = 128, 16
"""Columns that belong to one part together: whole lines of memory, of weights and of rows of X."""


@inlined
def bounds_of(part, parts, first, last, unit):
    """Return (first, last) of a part's rows or columns, cut at multiples of `unit`."""
    units = (last - first + unit - 1) // unit
    begin = first + units * part // parts * unit
    return begin, min(first + units * (part + 1) // parts * unit, last)


def make_slope(loss: str) -> Callable:
    """Return a compiled function: the loss of some rows, with the gradient of the scores written in place."""
    block, element = block_of(loss), element_of(loss)
    if element is None:
        return block

    def slope_of(scores, targets, slope, share):
        if scores.shape[0] > 1:
            return block(scores, targets, slope, share)
        total, flat = 0.0, targets.reshape(-1)
        for n in range(scores.shape[1]):
            one, g = element(scores[0, n], flat[n], slope.dtype.type(1))
            slope[0, n] = g * share
            total += one
        return total, -1

    return inlined(slope_of)


def make_scores(programs: Programs, loss: str, held: str) -> Callable:
    """Return a compiled function: scores and gradients of rows begin to end - 1 of a block.

    It returns (sum of losses, position of an invalid target or -1) and fills the block's table first, if rows are not
    read in place.
    """
    several, single, rows_at_once = programs.scores, programs.scores_of_one, programs.rows
    is_narrow, (fill, table_at, index_at, is_in_order) = programs.is_narrow, SOURCES[held].loop
    slope_of = make_slope(loss)

    def scores_of(source, order, start, begin, end, labels, share, trained, memory):
        (scores, targets, slopes), weights, total = memory, trained.arrays[0], 0.0
        fill(source, order, start, begin, end)
        x, index, offset = source[table_at], source[index_at], start if is_in_order else 0
        width = x.shape[1] if is_narrow else weights.shape[1]
        for first in range(begin, end, scores.shape[0]):
            last = min(first + scores.shape[0], end)
            whole = first + (last - first) // rows_at_once * rows_at_once
            operands = (index, x, weights, trained.added, scores)
            for q in range(first, whole, rows_at_once):
                emit_row(several, q - first, width, (offset + q, *operands))
            for q in range(whole, last):
                emit_row(single, q - first, width, (offset + q, *operands))
            for q in range(first, last):
                take_target(targets, q - first, labels.targets, np.uint64(order[start + q]))
            slope = slopes[first:last]
            part, wrong = slope_of(scores[: last - first], targets[: last - first], slope, share)
            if wrong >= 0:
                return total, start + first + wrong
            total += part
            if labels.counts.size:
                weigh(slope, labels.counts, order[start + first : start + last])
        return total, -1

    return inlined(scores_of)


def make_rows(programs: Programs, loss: str, held: str) -> Callable:
    """Return a compiled function: a thread's share of a block's rows; it writes its loss and any invalid target."""
    scores_of, unit = make_scores(programs, loss, held), programs.rows

    def do_rows(part, parts, source, order, start, count, bare_labels, share, bare_trained, bare_scratch):
        scratch = Scratch(*bare_scratch)
        begin, end = bounds_of(part, parts, 0, count, unit)
        memory = scratch.scores[part], scratch.targets[part], scratch.slopes
        scratch.losses[part], scratch.wrong[part] = scores_of(
            source, order, start, begin, end, Labels(*bare_labels), share, Trained(*bare_trained), memory
        )

    return inlined(do_rows)


def make_columns(programs: Programs, held: str) -> Callable:
    """Return a compiled function: a thread's share of the columns; sums over a block, and the update after the last
    one.
    """
    direct, adds, added, by_row = programs.steps, programs.adds, programs.steps_added, programs.by_row
    is_narrow, (_, table_at, index_at, is_in_order) = programs.is_narrow, SOURCES[held].loop

    def do_columns(part, parts, source, order, start, count, bare_trained, slopes, at, is_first, is_last):
        trained, x, index = Trained(*bare_trained), source[table_at], source[index_at]
        columns, width, offset = x.shape[1], trained.arrays[0].shape[1], start if is_in_order else 0
        first, last = bounds_of(part, parts, 0, columns, UNIT_NARROW if is_narrow else UNIT_WIDE)
        operands = (last, count, offset, index, x, slopes, trained.gradient, *trained.arrays, trained.settings, at)
        if by_row:
            emit_row(adds, first, width, operands)
            if is_last:
                emit_row(by_row, first, width, (last, *trained.arrays, trained.gradient, trained.settings, at))
        elif is_first and is_last:
            emit_row(direct, first, last if is_narrow else width, operands)
        elif is_last:
            emit_row(added, first, last if is_narrow else width, operands)
        else:
            emit_row(adds, first, last if is_narrow else width, operands)

    return inlined(do_columns)


@inlined
def add_columns(slopes, sums):
    """Add the sum of each column n of slopes [R, N] to sums[n, 0], in place."""
    for q in range(slopes.shape[0]):
        for n in range(slopes.shape[1]):
            sums[n, 0] += slopes[q, n]


def make_each(is_parallel: bool, function: Callable) -> Callable:
    """Return a compiled function that calls `function` for each part: on all threads, or once if not `is_parallel`."""
    if is_parallel:

        def each(parts, arguments):
            each_part(function, parts, arguments)
    else:

        def each(parts, arguments):
            function(0, *arguments)

    return inlined(each)


@functools.cache
def make_loop(programs: Programs, loss: str, held: str, is_parallel: bool) -> Callable:
    """Return the compiled loop over batches; it fills `losses` and returns the position of an invalid target or -1."""
    each_rows = make_each(is_parallel, make_rows(programs, loss, held))
    each_columns = make_each(is_parallel, make_columns(programs, held))
    step_intercept = make_step_intercept(programs.steps_intercept)

    def loop(source, order, batch_rows, block_rows, parts, labels, bare_trained, bare_scratch, losses, span):
        trained, scratch = Trained(*bare_trained), Scratch(*bare_scratch)
        wrong, sums, numbers = scratch.wrong, scratch.sums, scratch.numbers
        for step in range(span[0], span[1]):
            first, at = step * batch_rows, min(step, trained.settings.shape[0] - 1)
            last = min(first + batch_rows, order.size)
            share = trained.added.dtype.type(1 / (last - first))
            sums[:] = 0
            for start in range(first, last, block_rows):
                count = min(block_rows, last - start)
                block = parts, source, order, start, count
                each_rows(parts, (*block, labels, share, bare_trained, bare_scratch))
                for part in range(parts):
                    if wrong[part] >= 0:
                        return wrong[part]
                    losses[step] += scratch.losses[part]
                slopes = scratch.slopes[:count]
                each_columns(parts, (*block, bare_trained, slopes, at, start == first, start + count == last))
                if sums.size:
                    add_columns(slopes, sums)
            losses[step] /= last - first
            if sums.size:
                step_intercept(trained, numbers, sums, step)
        return -1

    if is_parallel:
        layer()  # code is linked with its functions
    return compiled(named(loop, programs, loss, held, is_parallel))
