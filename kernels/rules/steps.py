"""Vector code of update rules: a row's step, and the row loops of the dense, lazy, fused and step_by_step kernels."""

import math
from collections.abc import Callable

from kernels.vector.lanes import AHEAD, GATHERED
from kernels.vector.tiles import Tile, gathers

CHUNK = 4096
"""Elements of a dense update that are one row of its loop."""

UNCHANGED = (1.0, math.inf)
"""The last two settings, rescale and clip, of a gradient that is taken as it is. Code is made for this case alone, in
which they are known and cost nothing: in columns of one number they take a tenth of the time."""


def step(rule, lane, row, arrays: tuple, gradient: Callable, settings: tuple, ahead=None) -> None:
    """Emit the update of `row` of `arrays`, weights and states, in place, by vectors `gradient(j)` from column j on.

    `settings` are scalars; the last two, if omitted, are `UNCHANGED`. A row `ahead`, if given, is prefetched.
    """
    settings = whole(rule, settings)
    if rule.average:
        _step_by_row(rule, lane, row, arrays, gradient, settings, ahead)
        return

    def block(j, _):
        """Emit the update of the columns of one tile, from column j on, and prefetch them in the row `ahead`."""
        for array in arrays if ahead is not None else ():
            array.row(ahead, j).prefetch()
        step_elements(rule, [array.row(row, j) for array in arrays], gradient(j), settings)

    lane.blocks(block)


def step_columns(
    rule, lane, first, last, columns, arrays: tuple, settings: tuple, of_places: Callable, of_row: Callable, ended=None
) -> None:
    """Emit the update of rows columns[k] of `arrays`, weights and states, for k = first..last - 1, in place.

    The columns must differ. Rows of one element have the gradient `of_places(k, places)`, of the tile from k on,
    `places` being its columns; many are stepped as a vector where the processor gathers, since roots and quotients take
    as long for one: on a core of an EPYC 9005, rows of 39 entries in 12,741 columns, one a batch, AdaGrad, 2.4 ns an
    entry instead of 3.1. Other rows have the vectors `of_row(k, j)`, and `ended(column)` after the step.
    """

    def one(k, _):
        """Emit the step of row columns[k]; `_` is unused."""
        column = columns[k]
        step(rule, lane, column, arrays, lambda j: of_row(k, j), settings)
        if ended is not None:
            ended(column)

    def some(k, _):
        """Emit the update of the elements of one tile, from columns[k] on; `_` is unused."""
        places = columns.places_at(k)
        old = [array.take(places) for array in arrays]
        new = rule.formula(*old, of_places(k, places), *whole(rule, settings))
        for array, changed in zip(arrays, new, strict=True):
            array.put(places, changed)

    if lane.cut.width > 1 or lane.cut.width == 0 or rule.average:
        lane.loop(first, last, 1, [], one)
        return
    tile, many = lane.tile, GATHERED * 8 // lane.bits
    for lanes in (many, 1) if gathers() else (1,):
        lane.use(Tile(lane.bits, lanes, 1, masked=False))
        end = first + (last - first).rounded_down(lanes)
        lane.loop(first, end, lanes, [], some)
        first = end
    lane.use(tile)


def step_elements(rule, places: list, gradient, settings: tuple) -> None:
    """Emit the update of the vectors of weights and states at `places` by the vectors `gradient`.

    Elementwise rules only.
    """
    old = [place.load() for place in places]
    new = [rule.formula(*values, *whole(rule, settings)) for values in zip(*old, gradient, strict=True)]
    for place, changed in zip(places, zip(*new, strict=True), strict=True):
        place.store(changed)


def whole(rule, settings: tuple) -> tuple:
    """Return all settings of the rule: `settings`, with `UNCHANGED` appended if the last two were omitted."""
    return settings if len(settings) == len(rule.settings(*rule.example)) else (*settings, *UNCHANGED)


def _step_by_row(rule, lane, row, arrays: tuple, gradient: Callable, settings: tuple, ahead) -> None:
    """Emit `step` for a rule with one state per row: one pass for the mean over the row, and one for the step.

    arrays, gradient, settings and ahead are as of `step`. A row of one tile is loaded only once.
    """
    weights, *states = arrays
    kept: list = []
    for state in states if ahead is not None else ():
        state.prefetch(ahead)

    def read(j) -> list:
        """Return the pairs (weights, gradient) of the tile from column j on as vectors, loaded once if it is alone."""
        if not kept or lane.cut.full is not None:
            kept[:] = zip(weights.row(row, j).load(), gradient(j), strict=True)
        return kept

    def add(j, sums):
        """Return the one-element list `sums` plus the terms of the tile from column j on."""
        if ahead is not None:
            weights.row(ahead, j).prefetch()
        return [sums[0] + lane.total([rule.average(w, g, *settings) for w, g in read(j)])]

    mean = lane.blocks(add, [lane.number(0)])[0] / lane.width.to_float()
    old = [state[row] for state in states]

    def apply(j, _):
        """Emit the store of the new weights of the tile from column j on; return the new states, scalars."""
        new = [rule.formula(w, *old, g, mean, *settings) for w, g in read(j)]
        weights.row(row, j).store([w for w, *_ in new])
        return new[0][1:]

    for state, changed in zip(states, lane.blocks(apply, old), strict=True):
        state[row] = changed


def _ahead(lane, u, rows):
    """Return the row index `AHEAD` positions after `u` in `rows`, to be prefetched; None unless states are far."""
    return rows[(u + AHEAD).least(rows.last)] if lane.cut.far_state else None


def dense(rule) -> Callable:
    """Return the row function of the dense update: for chunks of flat arrays, or rows if a state is shared by a row.

    row(lane, u, weights, *states, gradient, *settings) emits the update of row or chunk u in place, by `rule`'s
    formula.
    """
    count = len(rule.written)

    def row(lane, u, *args):
        """Emit the update of row u by row u of the gradient; `args` are weights, states, gradient and settings."""
        arrays, gradient, settings = args[:count], args[count], args[count + 1 :]
        step(rule, lane, u, arrays, lambda j: gradient.row(u, j).load(), settings)

    def chunk(lane, u, *args):
        """Emit the update of the flat elements from u * CHUNK on, at most CHUNK; `args` as for `row`, all 1-d."""
        start = u * CHUNK
        lane.width = (args[0].last + 1 - start).least(lane.integer(CHUNK))
        arrays = [array.moved(start) for array in args[: count + 1]]
        nought = lane.integer(0)
        step(rule, lane, nought, arrays[:-1], lambda j: arrays[-1].row(nought, j).load(), args[count + 1 :])

    return row if rule.average else chunk


def lazy(rule) -> Callable:
    """Return the row function of the lazy update: row rows[u] of weights and states by row u of the gradient.

    row(lane, u, weights, *states, rows, gradient, *settings) emits it in place, by `rule`'s formula.
    """
    count = len(rule.written)

    def row(lane, u, *args):
        """Emit the update of row rows[u]; `args` are weights, states, rows, gradient and settings."""
        rows, gradient = args[count : count + 2]
        ahead = _ahead(lane, u, rows)
        step(rule, lane, rows[u], args[:count], lambda j: gradient.row(u, j).load(), args[count + 2 :], ahead)

    return row


def step_by_step(rule) -> Callable:
    """Return the row function of deferred updates: row rows[u] by zero-gradient steps table[since[u]:].

    row(lane, u, weights, *states, rows, since, table) emits them in place, by `rule`'s formula.
    """
    count = len(rule.written)

    def row(lane, u, *args):
        """Emit all missed steps of row rows[u]; `args` are weights, states, rows, since and table."""
        arrays, (rows, since, table) = args[:count], args[count:]
        repeat(rule, lane, rows[u], arrays, since[u], table.last + 1, table)

    return row


def repeat(rule, lane, row, arrays: tuple, start, stop, table) -> None:
    """Emit the update of `row` of `arrays` in place by zero-gradient steps with rows start to stop - 1 of `table`.

    `table` is [steps, settings]; weights and states stay in registers between the steps.
    """
    count, numbers = len(rule.written), len(rule.settings(*rule.example))

    def again(k, carried: list) -> list:
        """Return the vectors `carried` (weights, then states) after a zero-gradient step with row k of the table."""
        settings = [table[k * numbers + number] for number in range(numbers)]
        vectors = len(carried) // count
        old = [carried[vector::vectors] for vector in range(vectors)]
        new = [rule.formula(*values, lane.number(0), *settings) for values in old]
        return [lane.numbers.spread(value) for values in zip(*new, strict=True) for value in values]

    def block(j, _):
        """Emit all steps of the columns of one tile, from column j on; `_` is unused."""
        places = [array.row(row, j) for array in arrays]
        old = [value for place in places for value in place.load()]
        new = lane.loop(start, stop, 1, old, again)
        vectors = len(new) // count
        for number, place in enumerate(places):
            place.store(new[number * vectors : (number + 1) * vectors])

    lane.blocks(block)


def fused(rule) -> Callable:
    """Return the row function of the fused update: row columns[u] by the sum over the entries of that column.

    row(lane, u, weights, *states, columns, segments, rows, values, g, *settings) emits it in place, by `rule`'s
    formula.
    """
    count = len(rule.written)

    def row(lane, u, *args):
        """Emit the update of row columns[u]; `args`: weights, states, columns, segments, rows, values, g, settings."""
        columns, segments, rows, values, g = args[count : count + 5]

        def gradient(j) -> list:
            """Return the sum of values[k] * g[rows[k]] over the column's entries, as vectors from column j on."""
            return lane.sum_of_rows(segments[u], segments[u + 1], values, rows, g, j)

        step(rule, lane, columns[u], args[:count], gradient, args[count + 5 :], _ahead(lane, u, columns))

    return row
