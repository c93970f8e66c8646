"""Vector code of a dense epoch's inner loops: scores of several rows at once, and steps by sums over the rows.

Two layouts of the weights. Narrow ones, of up to `MOST_NARROW` outputs, are [N, D] with vectors along D: entries of X
are used with all outputs in registers. Wider ones are [D, N] with vectors along N: an entry is spread over a vector.
Both keep up to 16 sums in registers, so that an entry that was loaded has several uses.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from kernels.epochs.programs import steps_of_intercept
from kernels.epochs.programs_untouched import UNTOUCHED, nothing, numbers_at
from kernels.rules import steps
from kernels.rules.rule import Rule, get_rule
from kernels.vector.gather import RowLoop
from kernels.vector.tiles import LINE, Cut, Tile, cut_elements, cut_neighbours, full_lanes, most_vectors, tile_for

MOST_NARROW = 4
"""Outputs up to which vectors lie along D: of five outputs or more a vector along N has no fewer lanes in use."""

ROWS = 8
"""Rows whose scores are summed together: a vector of weights that was loaded serves as many."""


def _power(number: int) -> int:
    """Return the largest power of two that is at most `number`."""
    return 1 << (number.bit_length() - 1)


def _rows_at(index, first, count: int) -> list:
    """Return the `count` row indices index[first], index[first + 1], ... as values of generated code."""
    return [index[first + number] for number in range(count)]


def narrow_scores(rows: int, width: int, is_far: bool) -> Callable:
    """Return the program: scores of `rows` rows of X from index[first] on, written from row q on; weights [N, D]."""
    side = _power(max(most_vectors() // (rows * width), 1))

    def work(lane, q, first, index, x, weights, added, scores):
        numbers, count = _rows_at(index, first, rows), rows * width * side
        later = _rows_at(index, (first + rows).least(index.last + 1 - rows), rows) if is_far else []

        def span(j, sums):
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
    """Return the program: the update of columns first to last - 1 of weights [N, D], by sums over `rows` rows of X.

    Sums begin with those in `gradient` if `reads`; they are stored there unless `is_last`.
    """
    written, side = len(rule.written), min(_power(most_vectors() // width), 8)

    def work(lane, first, last, rows, offset, index, x, slope, gradient, *args):
        arrays, (settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def span(j, _):
            vectors = lane.tile.vectors
            known = [gradient.row(lane.integer(n), j).load() if reads else nothing(lane) for n in range(width)]

            def one(i, sums):
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
    """Return sums + factors outer values, as vectors of generated code, [factors, vectors]."""
    pairs = [(lane.numbers.spread(factor), value) for factor in factors for value in values]
    return [factor.times_plus(value, total) for (factor, value), total in zip(pairs, sums, strict=True)]


def _sums_of_lines(lane, x, start: list, later: list, callable: Callable) -> list:
    """Return sums over the columns of X, prefetching the rows `later` a cache line at a time."""
    entries, nought = LINE * 8 // lane.bits, lane.integer(0)
    if not later:
        return lane.loop(nought, x.columns, 1, start, callable)

    def line(d, sums):
        for row in later:
            x.prefetch(row * x.columns + d)
        return lane.loop(d, (d + entries).least(x.columns), 1, sums, callable)

    return lane.loop(nought, x.columns, entries, start, line)


def wide_scores(rows: int, width: int, is_far: bool) -> Callable:
    """Return the program: scores of `rows` rows of X from index[first] on, written from row q on; weights [D, N]."""

    def work(lane, q, first, index, x, weights, added, scores):
        numbers, nought = _rows_at(index, first, rows), lane.integer(0)
        later = _rows_at(index, (first + rows).least(index.last + 1 - rows), rows) if is_far else []

        def one(d, sums, j):
            factors = [x[row * x.columns + d] for row in numbers]
            return _outer_sum(lane, factors, weights.row(d, j).load(), sums)

        def block(j, _):
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
    """Return the program: the update of rows first to last - 1 of weights [D, N]; otherwise as `narrow_steps`."""
    written = len(rule.written)

    def work(lane, first, last, rows, offset, index, x, slope, gradient, *args):
        arrays, (settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def block(d, j, together: int):
            def one(i, sums):
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
    """Emit the update of weights and states at `places` by the sums, or the store of sums if not `is_last`."""
    if not is_last:
        gradient.store(total)
        return
    steps.step_elements(rule, places, total, tuple(numbers))
    if reads:
        gradient.store(nothing(lane))


def _cut_wide(width: int, itemsize: int) -> Cut:
    """Cut of a row of the weights into tiles of two vectors, whose sums of eight rows fit the registers."""
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
    """Return the compiled vector code for weights of `width` outputs and a rule with `count` settings."""
    rule = get_rule(rule_name)
    is_narrow = width <= MOST_NARROW and not rule.average
    cut = cut_neighbours(itemsize) if is_narrow else _cut_wide(width, itemsize)
    make_scores, make_steps = (narrow_scores, narrow_steps) if is_narrow else (wide_scores, wide_steps)
    layout = f"dense_epoch_{'narrow' if is_narrow else 'wide'}_{width if is_narrow else 0}"

    def scores(rows: int) -> str:
        return RowLoop(make_scores(rows, width, is_far), name=f"{layout}_scores_{rows}_{is_far}").code(cut)

    def steps_of(reads: bool, is_last: bool) -> str:
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
