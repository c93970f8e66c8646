"""The compiled loop of a dense epoch, made for a loss, a rule and a width when these are first used.

A batch is done in blocks of rows that fit the caches of the cores at work. Of a block each part of the rows has its
scores and slopes, then each part of the columns its sums over these rows, which step the weights at once if the block
is the last of its batch. No element has two writers, and sums have the same order on any number of threads.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels._compat.numba_internals import each_part, flat, layer
from kernels.code_cache import inlined
from kernels.epochs.dense.sources import SOURCES
from kernels.epochs.loops import compiled, make_step_intercept, multiply_by_counts, named, take_target
from kernels.epochs.programs import UNTOUCHED, nothing, numbers_at, steps_of_intercept
from kernels.epochs.touched import span_of
from kernels.loss_blocks import block_of, element_of
from kernels.rules import steps
from kernels.rules.rule import Rule, get_rule
from kernels.vector.gather import RowLoop
from kernels.vector.lanes import emit_row
from kernels.vector.tiles import LINE, Cut, Tile, cut_elements, cut_neighbours, full_lanes, most_vectors, tile_for

# Vector code of a dense epoch's inner loops: scores of several rows at once, and steps by sums over the rows.
#
# Two layouts of the weights. Narrow ones, of up to `MOST_NARROW` outputs, are [N, D] with vectors along D: entries
# of X are used with all outputs in registers. Wider ones are [D, N] with vectors along N: an entry is spread over a
# vector. Both keep up to 16 sums in registers, so that an entry that was loaded has several uses.


MOST_NARROW = 4
"""Outputs up to which vectors lie along D: of five outputs or more a vector along N has no fewer lanes in use."""

ROWS = 8
"""Rows whose scores are summed together: a vector of weights that was loaded serves as many."""


def _power(number: int) -> int:
    """Return the largest power of two that is at most `number`, a positive integer."""
    return 1 << (number.bit_length() - 1)


def _rows_at(index, first, count: int) -> list:
    """Return the `count` values index[first], index[first + 1], ... as integers of generated code."""
    return [index[first + number] for number in range(count)]


def narrow_scores(rows: int, width: int, is_far: bool) -> Callable:
    """Return a code generator of the scores of `rows` rows of X at once, for weights [N, D] with `width` = N outputs.

    The generator has operands (lane, q, first, index, x, weights, added, scores) and overwrites scores[q:q + rows].
    `is_far`: prefetch the rows that follow.
    """
    side = _power(max(most_vectors() // (rows * width), 1))

    def work(lane, q, first, index, x, weights, added, scores):
        """Emit code: scores[q + i] = X[index[first + i]] @ weights.T + added, for i < rows.

        Vectors run along columns of X.
        """
        numbers, count = _rows_at(index, first, rows), rows * width * side
        later = _rows_at(index, (first + rows).least(index.last + 1 - rows), rows) if is_far else []

        def span(j, sums):
            """Return the sums (a vector for each row and output) plus the products of the columns from j on."""
            sums, outputs = list(sums), [weights.row(lane.integer(n), j).load() for n in range(width)]
            for row in later:
                x.row(row, j).prefetch()
            for i, row in enumerate(numbers):
                for v, value in enumerate(x.row(row, j).load()):
                    for n in range(width):
                        at = (i * width + n) * side + v
                        sums[at] = value.times_plus(outputs[n][v], sums[at])
            return sums

        sums = lane.spans(lane.integer(0), lane.width, side, span, [lane.float(lane.zeros())] * count)
        for i in range(rows):
            for n in range(width):
                at = (i * width + n) * side
                total = lane.total(sums[at : at + side])
                scores[(q + i) * width + n] = total + added[lane.integer(n)]

    return work


def narrow_steps(rule: Rule, count: int, width: int, reads: bool, is_last: bool) -> Callable:
    """Return a code generator of the update of some columns of weights [N, D] by sums over the rows of a block.

    The sums start from those in `gradient` if `reads`, else from 0. They step the weights if `is_last`, else they are
    stored in `gradient`. `width` is N, `count` the number of settings.
    """
    written, side = len(rule.written), min(_power(most_vectors() // width), 8)

    def work(lane, first, last, rows, offset, index, x, slope, gradient, *args):
        """Emit code for columns first to last - 1: sum of slope[i] * X[index[offset + i]], i < rows; step or store.

        `args` are weights and states [N, D], settings [steps, count] and the row `at` of these; vectors run along the
        columns.
        """
        arrays, (settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def span(j, _):
            """Emit the sums of the columns from j on over the rows, then the step or the store of the sums."""
            vectors = lane.tile.vectors
            known = [gradient.row(lane.integer(n), j).load() if reads else nothing(lane) for n in range(width)]

            def one(i, sums):
                """Emit sums[n] + slope[i * width + n] * row i of the block, for each output n.

                Return the new list of sums.
                """
                sums, values = list(sums), x.row(index[offset + i], j).load()
                for n in range(width):
                    factor = lane.numbers.spread(slope[i * width + n])
                    for v, value in enumerate(values):
                        sums[n * vectors + v] = factor.times_plus(value, sums[n * vectors + v])
                return sums

            sums = lane.loop(lane.integer(0), rows, 1, [each for totals in known for each in totals], one)
            for n in range(width):
                total, row = sums[n * vectors : (n + 1) * vectors], lane.integer(n)
                places = [each.row(row, j) for each in arrays]
                _step(rule, lane, places, gradient.row(row, j), total, numbers, reads, is_last)

        lane.spans(first, last, side, span)

    return work


def _outer_sum(lane, factors: list, values: list, sums: list) -> list:
    """Emit sums[f, v] + factors[f] * values[v] for all f, v; return the new sums as a flat list, v fastest."""
    pairs = [(lane.numbers.spread(factor), value) for factor in factors for value in values]
    return [factor.times_plus(value, total) for (factor, value), total in zip(pairs, sums, strict=True)]


def _sums_of_lines(lane, x, start: list, later: list, callable: Callable) -> list:
    """Return `start` after `callable(d, sums)` for each column d of X.

    Prefetch the rows `later` one cache line at a time. `callable` emits the products of one column and returns the new
    sums; without `later` nothing is prefetched.
    """
    entries, nought = LINE * 8 // lane.bits, lane.integer(0)
    if not later:
        return lane.loop(nought, x.columns, 1, start, callable)

    def line(d, sums):
        """Prefetch the cache line of each later row at column d; return the sums plus the columns of this line."""
        for row in later:
            x.prefetch(row * x.columns + d)
        return lane.loop(d, (d + entries).least(x.columns), 1, sums, callable)

    return lane.loop(nought, x.columns, entries, start, line)


def wide_scores(rows: int, width: int, is_far: bool) -> Callable:
    """Return a code generator of the scores of `rows` rows of X at once, for weights [D, N].

    Operands and result as of `narrow_scores`. `is_far`: prefetch the rows that follow; `width` is unused.
    """

    def work(lane, q, first, index, x, weights, added, scores):
        """Emit code: scores[q + i] = X[index[first + i]] @ weights + added, for i < rows.

        Vectors run along the outputs.
        """
        numbers, nought = _rows_at(index, first, rows), lane.integer(0)
        later = _rows_at(index, (first + rows).least(index.last + 1 - rows), rows) if is_far else []

        def one(d, sums, j):
            """Return the sums plus the products of column d of all rows with row d of the weights, from output j on."""
            factors = [x[row * x.columns + d] for row in numbers]
            return _outer_sum(lane, factors, weights.row(d, j).load(), sums)

        def block(j, _):
            """Emit the sums over all columns for the outputs of one tile from j on, and their store; `_` is unused."""
            vectors, row = lane.tile.vectors, numbers[0]
            if rows == 1:
                term = lambda d: (x[row * x.columns + d], weights.row(d, j))  # noqa: E731
                sums = lane.sum(nought, x.columns, term, weights.last)
            else:
                sums = _sums_of_lines(lane, x, nothing(lane) * rows, later, lambda d, sums: one(d, sums, j))
            intercept = added.row(nought, j).load()
            for i in range(rows):
                totals = zip(sums[i * vectors : (i + 1) * vectors], intercept, strict=True)
                scores.row(q + i, j).store([total + other for total, other in totals])

        lane.blocks(block)

    return work


def wide_steps(rule: Rule, count: int, width: int, reads: bool, is_last: bool) -> Callable:
    """Return a code generator of the update of rows of weights [D, N] by sums over the rows of a block.

    rule, count, reads and is_last as of `narrow_steps`; `width` is unused.
    """
    written = len(rule.written)

    def work(lane, first, last, rows, offset, index, x, slope, gradient, *args):
        """Emit code for weight rows first to last - 1: sums of slope[i] * X[index[offset + i], d], then step or store.

        `args` are weights and states [D, N], settings [steps, count] and the row `at` of these; vectors run along the
        outputs.
        """
        arrays, (settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def block(d, j, together: int):
            """Emit sums, then step or store, of weight rows d to d + together - 1, outputs of one tile from j on."""

            def one(i, sums):
                """Return the sums plus row i of the block, at columns d on, times the gradient of its scores."""
                place = index[offset + i] * x.columns + d
                return _outer_sum(lane, [x[place + k] for k in range(together)], slope.row(i, j).load(), sums)

            vectors = lane.tile.vectors
            known = [gradient.row(d + k, j).load() if reads else nothing(lane) for k in range(together)]
            sums = lane.loop(lane.integer(0), rows, 1, [each for totals in known for each in totals], one)
            for k in range(together):
                total = sums[k * vectors : (k + 1) * vectors]
                places = [each.row(d + k, j) for each in arrays]
                _step(rule, lane, places, gradient.row(d + k, j), total, numbers, reads, is_last)

        together = max(most_vectors() // max(tile.vectors for tile in (lane.cut.full, lane.cut.rest) if tile), 1)
        start = first
        while together:
            stop = start + (last - start).rounded_down(together)
            columns = functools.partial(block, together=together)
            lane.loop(start, stop, together, [], lambda d, _, at=columns: lane.blocks(lambda j, _: at(d, j)))
            start, together = stop, together // 2

    return work


def _step(rule: Rule, lane, places: list, gradient, total: list, numbers: list, reads: bool, is_last: bool) -> None:
    """Emit the step of weights and states at `places` by `total` if `is_last`, else the store of `total` in `gradient`.

    `gradient` is zeroed after a step if it was read (`reads`); `numbers` are the settings.
    """
    if not is_last:
        gradient.store(total)
        return
    steps.step_elements(rule, places, total, tuple(numbers))
    if reads:
        gradient.store(nothing(lane))


def _cut_wide(width: int, itemsize: int) -> Cut:
    """Return the cut of `width` outputs into tiles of two vectors: the sums of eight rows then fit the registers."""
    bits = 8 * itemsize
    lanes = full_lanes(bits)
    if width <= 2 * lanes:
        return Cut(None, tile_for(width, bits))
    return Cut(Tile(bits, lanes, 2, masked=False), tile_for((width - 1) % (2 * lanes) + 1, bits))


@dataclass(frozen=True)
class Programs:
    """Names of the vector code for weights of one width; see the functions above."""

    scores: str
    """Of several rows at once."""
    scores_of_one: str
    steps: str
    """By the rows of a batch that is one block."""
    adds: str
    """Sums of a block that is not the last of its batch."""
    steps_added: str
    """By the rows of the last block, and sums of those before."""
    steps_intercept: str
    by_row: str
    """A dense step of whole rows, of rules that average over a row; "" for others."""
    is_narrow: bool
    """Whether weights and states are [N, D]."""
    rows: int
    """Rows whose scores `scores` has."""


@functools.cache
def programs_for(rule_name: str, width: int, itemsize: int, count: int, is_far: bool) -> Programs:
    """Return the names of the vector code for `width` outputs of `itemsize` bytes and a rule of `count` settings.

    Cached. `is_far`: prefetch rows of X. Raises KernelError for an unknown rule.
    """
    rule = get_rule(rule_name)
    is_narrow = width <= MOST_NARROW and not rule.average
    cut = cut_neighbours(itemsize) if is_narrow else _cut_wide(width, itemsize)
    make_scores, make_steps = (narrow_scores, narrow_steps) if is_narrow else (wide_scores, wide_steps)
    layout = f"dense_epoch_{'narrow' if is_narrow else 'wide'}_{width if is_narrow else 0}"

    def scores(rows: int) -> str:
        """Return the name of the compiled code that computes the scores of `rows` rows of X at once."""
        return RowLoop(make_scores(rows, width, is_far), name=f"{layout}_scores_{rows}_{is_far}").code(cut)

    def steps_of(reads: bool, is_last: bool) -> str:
        """Return the name of the compiled code of the update by the sums of a block.

        `reads`: continue the stored sums; `is_last`: step the weights by them, else store them.
        """
        made = make_steps(rule, count, width, reads, is_last)
        return RowLoop(made, name=f"{layout}_{rule_name}_{count}_steps_{reads}_{is_last}").code(cut)

    vectors = width if is_narrow else max(tile.vectors for tile in (cut.full, cut.rest) if tile)
    together = min(_power(max(most_vectors() // vectors, 1)), ROWS)
    loop = RowLoop(UNTOUCHED["dense"](rule, count), name=f"dense_epoch_{rule_name}_by_row_{count}")
    return Programs(
        scores=scores(together),
        scores_of_one=scores(1),
        steps=steps_of(False, True),
        adds=steps_of(True, False),
        steps_added=steps_of(True, True),
        steps_intercept=steps_of_intercept(rule_name, count, itemsize),
        by_row=loop.code(cut_elements(width, itemsize)) if rule.average else "",
        is_narrow=is_narrow,
        rows=together,
    )


class Labels(NamedTuple):
    """Targets of all rows, and what the loss of each counts for ([0]: all equally)."""

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
    """Return (begin, end) of the share `part` of `parts` of [first, last), cut at multiples of `unit` from first."""
    units = (last - first + unit - 1) // unit
    begin = first + units * part // parts * unit
    return begin, min(first + units * (part + 1) // parts * unit, last)


def make_slope(loss: str) -> Callable:
    """Return a compiled function of `loss`: (scores [R, N], targets, slope [R, N], share) -> (sum of losses, wrong).

    It overwrites slope by the gradient of the scores times share; `wrong` is the row of an invalid target or -1.
    """
    block, element = block_of(loss), element_of(loss)
    if element is None:
        return block

    def slope_of(scores, targets, slope, share):
        """Overwrite `slope` by the gradient of the scores [R, N] times `share`.

        Return (sum of losses, invalid row or -1). A single row is done in registers, without the memory that a block
        takes.
        """
        if scores.shape[0] > 1:
            return block(scores, targets, slope, share)
        total, labels = 0.0, flat(targets)
        for n in range(scores.shape[1]):
            one, g = element(scores[0, n], labels[n], slope.dtype.type(1))
            slope[0, n] = g * share
            total += one
        return total, -1

    return inlined(slope_of)


def make_scores(programs: Programs, loss: str, held: str) -> Callable:
    """Return compiled scores_of(source, order, start, begin, end, ..): scores and gradients of rows of a block.

    It overwrites the operand `memory` and returns (sum of losses, position of an invalid target in `order` or -1).
    `loss` is the name of a loss kernel, `held` the storage of X, a key of `SOURCES`.
    """
    several, single, rows_at_once = programs.scores, programs.scores_of_one, programs.rows
    is_narrow, (fill, table_at, index_at, is_in_order) = programs.is_narrow, SOURCES[held].loop
    slope_of = make_slope(loss)

    def scores_of(source, order, start, begin, end, labels, share, trained, memory):
        """Write scores and gradients of rows begin to end - 1 of a block; return (sum of losses, invalid target or -1).

        Row q of the block is row order[start + q] of X; rows that are not read in place are first filled into the
        block's table in `source`. `memory` is (scores, targets, slopes), overwritten; gradients are times `share` and
        the row's count. `labels` is a `Labels`, `trained` a `Trained`. The invalid target is its position in `order`.
        """
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
                multiply_by_counts(slope, labels.counts, order[start + first : start + last])
        return total, -1

    return inlined(scores_of)


def make_rows(programs: Programs, loss: str, held: str) -> Callable:
    """Return compiled do_rows(part, parts, ..) -> None: scores and gradients of one thread's share of a block's rows.

    It writes them, losses and positions of invalid targets to the scratch memory. Parameters as of `make_scores`.
    """
    scores_of, unit = make_scores(programs, loss, held), programs.rows

    def do_rows(part, parts, source, order, start, count, bare_labels, share, bare_trained, bare_scratch):
        """Fill the gradients of the scores of share `part` of `parts` of the block of `count` rows from order[start].

        Writes losses[part] (sum) and wrong[part] (position of an invalid target in `order`, or -1) of the scratch
        memory. `source` is what `Source.prepare` returns; bare_labels, bare_trained, bare_scratch are `Labels`,
        `Trained`, `Scratch` as tuples, `share` is 1 / rows of the batch.
        """
        scratch = Scratch(*bare_scratch)
        begin, end = bounds_of(part, parts, 0, count, unit)
        memory = scratch.scores[part], scratch.targets[part], scratch.slopes
        scratch.losses[part], scratch.wrong[part] = scores_of(
            source, order, start, begin, end, Labels(*bare_labels), share, Trained(*bare_trained), memory
        )

    return inlined(do_rows)


def make_columns(programs: Programs, held: str) -> Callable:
    """Return compiled do_columns(part, parts, ..) -> None: X.T @ gradient of a block for one thread's columns.

    Sums are kept in the gradient between the blocks of a batch; after the last block weights and states are stepped in
    place. `held` is the storage of X, a key of `SOURCES`.
    """
    direct, adds, added, by_row = programs.steps, programs.adds, programs.steps_added, programs.by_row
    is_narrow, (_, table_at, index_at, is_in_order) = programs.is_narrow, SOURCES[held].loop

    def do_columns(part, parts, source, order, start, count, bare_trained, slopes, at, is_first, is_last):
        """Add X.T @ slopes of one block for share `part` of `parts` of the columns; update these after the last block.

        The block has `count` rows, from order[start] on; `source` is what `Source.prepare` returns, bare_trained a
        `Trained` as a tuple. `is_first`, `is_last` state the position of the block in its batch. Sums go to the
        gradient in between; weights and states are updated in place with the settings of step `at`, and the gradient is
        then zero.
        """
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
    """Add the column sums of `slopes` [R, N], the gradient of the scores, to sums [N, 1], in place."""
    for q in range(slopes.shape[0]):
        for n in range(slopes.shape[1]):
            sums[n, 0] += slopes[q, n]


def make_each(is_parallel: bool, function: Callable) -> Callable:
    """Return a compiled function: calls `function(part, *arguments)` for all parts, or only for part 0 if serial."""
    if is_parallel:

        def each(parts, arguments):
            """Call `function(part, *arguments)` for part 0 to parts - 1, on all threads."""
            each_part(function, parts, arguments)
    else:

        def each(parts, arguments):
            """Call `function(0, *arguments)` on this thread; `parts` is unused."""
            function(0, *arguments)

    return inlined(each)


@functools.cache
def make_loop(programs: Programs, loss: str, held: str, is_parallel: bool) -> Callable:
    """Return the compiled training loop over batches, for a loss and the storage `held` of X; cached.

    loop(source, order, cut, ..) updates weights and states in place, adds the mean loss of each batch to its operand
    `losses` and returns the position in `order` of an invalid target or -1. `is_parallel`: on all threads.
    """
    each_rows = make_each(is_parallel, make_rows(programs, loss, held))
    each_columns = make_each(is_parallel, make_columns(programs, held))
    step_intercept = make_step_intercept(programs.steps_intercept)

    def loop(source, order, cut, block_rows, parts, labels, bare_trained, bare_scratch, losses, span):
        """Train on batches span[0] to span[1] - 1 in place; return the position in `order` of an invalid target or -1.

        Batches, by `cut` as in `span_of`, are done in blocks of `block_rows` on `parts` threads. `source` is what
        `Source.prepare` returns; labels, bare_trained and bare_scratch are a `Labels`, `Trained` and `Scratch` as
        tuples. Adds the mean loss of each batch to `losses`, which must be 0 before. Batches before an invalid target
        are applied.
        """
        trained, scratch = Trained(*bare_trained), Scratch(*bare_scratch)
        wrong, sums, numbers = scratch.wrong, scratch.sums, scratch.numbers
        for step in range(span[0], span[1]):
            (first, last), at = span_of(step, cut, order.size), min(step, trained.settings.shape[0] - 1)
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
