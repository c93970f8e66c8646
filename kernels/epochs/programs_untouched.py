"""Vector code of the ways of an epoch that step rows which a batch does not touch: see `kernels.epochs.ways`."""

from collections.abc import Callable

from kernels.rules import steps
from kernels.rules.rule import Rule
from kernels.vector.marked import where_marked


def numbers_at(settings, at, count: int) -> list:
    """Return the `count` values of row `at` of a table of settings, as scalars of generated code."""
    return [settings[at * count + number] for number in range(count)]


def sum_of_column(lane, u, starts, rows, values, slope) -> Callable:
    """Return a function of the tile that emits the sum of column u's entries, values times gradient rows."""
    return lambda j: lane.sum(starts[u], starts[u + 1], lambda k: (values[k], slope.row(rows[k], j)), rows.last)


def put_steps(rule: Rule, count: int, is_listed: bool = False) -> Callable:
    """Write the sums of `_steps` as rows of the gradient of all."""

    def work(lane, first, last, gradient, columns, listed, sums, settings, at):
        def one(place, _):
            u = listed[place] if is_listed else place
            lane.blocks(lambda j, _: gradient.row(columns[u], j).store(sums.row(u, j).load()))

        lane.loop(first, last, 1, [], one)

    return work


def put_listed(rule: Rule, count: int) -> Callable:
    """Write the rows of the sums that are listed, as `put_steps` does."""
    return put_steps(rule, count, is_listed=True)


def put_steps_placed(rule: Rule, count: int) -> Callable:
    """Write the sums of `_steps_placed`, which are cleared, as rows of the gradient of all."""

    def work(lane, first, last, gradient, columns, sums, settings, at):
        def one(u, _):
            def block(j, _):
                total = sums.row(columns[u], j)
                gradient.row(columns[u], j).store(total.load())
                total.store(nothing(lane))

            lane.blocks(block)

        lane.loop(first, last, 1, [], one)

    return work


def put_marked(rule: Rule, count: int) -> Callable:
    """Write the sums of `_marked` as elements of the gradient of all."""

    def work(lane, first, last, gradient, marks, sums, settings, at):
        def put(place):
            total = sums.flat().row(lane.integer(0), place)
            gradient.flat().row(lane.integer(0), place).store(total.load())
            total.store(nothing(lane))

        step, length = lane.tile.lanes, gradient.rows
        lane.loop(first, last, step, [], lambda place, _: where_marked(lane, marks, place, length, put))

    return work


def put_grouped(rule: Rule, count: int) -> Callable:
    """Write the sums of `_grouped` as rows of the gradient of all."""

    def work(lane, first, last, gradient, columns, starts, rows, values, slope, settings, at):
        def one(u, _):
            total = sum_of_column(lane, u, starts, rows, values, slope)
            lane.blocks(lambda j, _: gradient.row(columns[u], j).store(total(j)))

        lane.loop(first, last, 1, [], one)

    return work


def put_entries(rule: Rule, count: int) -> Callable:
    """Write the sums of `_entries` as rows of the gradient of all."""

    def work(lane, first, last, gradient, indices, data, slope, settings, at):
        nought = lane.integer(0)

        def one(k, _):
            factor = data[k]
            lane.blocks(
                lambda j, _: gradient.row(indices[k], j).store([factor * g for g in slope.row(nought, j).load()])
            )

        lane.loop(first, last, 1, [], one)

    return work


def dense(rule: Rule, count: int) -> Callable:
    """Return the program: the dense update of rows first to last - 1 by a gradient, which is cleared."""
    step = steps.dense(rule)

    def work(lane, first, last, *args):
        *arrays, gradient, settings, at = args
        numbers = numbers_at(settings, at, count)

        def one(u, _):
            step(lane, u, *arrays, gradient, *numbers)
            part, row = (gradient, u) if rule.average else (gradient.moved(u * steps.CHUNK), lane.integer(0))
            lane.blocks(lambda j, _: part.row(row, j).store(nothing(lane)))

        lane.loop(first, last, 1, [], one)

    return work


def nothing(lane) -> list:
    """Return the gradient of an inactive row: zero vectors of the tile."""
    return [lane.float(lane.zeros())] * lane.tile.vectors


def coast(rule: Rule, count: int) -> Callable:
    """Return the program that multiplies a row of the weights by `factor`."""

    def work(lane, row, factor, weights, *states):
        def block(j, _):
            place = weights.row(row, j)
            place.store([factor * value for value in place.load()])

        lane.blocks(block)

    return work


def coast_pair(rule: Rule, count: int) -> Callable:
    """Return the program: (weights, state) of a row times a 2 x 2 matrix."""

    def work(lane, row, a, b, c, d, weights, state):
        def block(j, _):
            places = [array.row(row, j) for array in (weights, state)]
            pairs = list(zip(*[place.load() for place in places], strict=True))
            places[0].store([a * w + b * s for w, s in pairs])
            places[1].store([c * w + d * s for w, s in pairs])

        lane.blocks(block)

    return work


def settle(rule: Rule, count: int) -> Callable:
    """Return the program: the zero-gradient step of a row with row k of the settings."""
    numbers = len(rule.settings(*rule.example))

    def work(lane, row, k, table, *arrays):
        steps.step(rule, lane, row, arrays, lambda j: nothing(lane), numbers_at(table, k, numbers))

    return work


def replay(rule: Rule, count: int) -> Callable:
    """Return the program: the zero-gradient steps of a row with rows start to stop - 1 of the settings."""

    def work(lane, row, start, stop, table, *arrays):
        steps.repeat(rule, lane, row, arrays, start, stop, table)

    return work


PUT = {make.__name__: make for make in (put_steps, put_steps_placed, put_marked, put_listed, put_grouped, put_entries)}
UNTOUCHED = {make.__name__: make for make in (dense, coast, coast_pair, settle, replay)}
