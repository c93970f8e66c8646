"""Vector code of an epoch's inner loops: the scores of a row, an entry's part of a gradient, steps of touched rows."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from kernels.aligned import LINE
from kernels.rules import steps
from kernels.rules.rule import Rule, get_rule
from kernels.vector.gather import RowLoop
from kernels.vector.lanes import I8, Lane
from kernels.vector.operands import Array, Int
from kernels.vector.tiles import Cut, cut_elements, cut_neighbours, cut_sums

# Vector code of the ways of an epoch that step rows which a batch does not touch: see `kernels.epochs.touched`.


# Vector code for adjacent elements of which only some are processed: those whose byte in an array of marks is not
# zero.


def where_marked(lane: Lane, marks: Array, place: Int, length: Int, body: Callable[[Int], None]) -> None:
    """Emit `body(place)` for the lanes of a masked tile whose bytes of `marks` from `place` on are not 0, if there is
    any.

    These bytes are set to 0. What `body` loads and stores has `length` elements, with no marks beyond.
    """
    builder, lanes = lane.builder, lane.tile.lanes
    vector, bits = ir.VectorType(I8, lanes), ir.IntType(lanes)
    at = builder.bitcast(marks.bytes_at(place, lane.integer(lanes)), vector.as_pointer())
    none = ir.Constant(vector, [0] * lanes)
    found = builder.load(at)
    found.align = 1
    mask = builder.icmp_unsigned("!=", found, none)
    with builder.if_then(builder.icmp_unsigned("!=", builder.bitcast(mask, bits), bits(0))):
        lane.mask, lane.edge = mask, (length - place).least(lane.integer(lanes))
        body(place)
        builder.store(none, at).align = 1


def numbers_at(settings, at, count: int) -> list:
    """Return the `count` values of row `at` of a table of settings, as scalars of generated code."""
    return [settings[at * count + number] for number in range(count)]


def sum_of_column(lane, u, starts, rows, values, slope) -> Callable:
    """Return a function of the tile that emits the sum of column u's entries, values times gradient rows."""
    return lambda j: lane.sum_of_rows(starts[u], starts[u + 1], values, rows, slope, j)


def put_steps(rule: Rule, count: int, is_listed: bool = False) -> Callable:
    """Write the sums of `_steps` as rows of the gradient of all."""

    def work(lane, first, last, gradient, columns, listed, sums, settings, at):
        """Emit code that stores sums first to last - 1 as rows of the gradient."""

        def one(place, _):
            """Store the sum of one column."""
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
        """Emit code that moves the sums of columns[first:last] to the gradient."""

        def one(u, _):
            """Move the sum of one column."""

            def block(j, _):
                """Store block j of the sum in the gradient, and clear it."""
                total = sums.row(columns[u], j)
                gradient.row(columns[u], j).store(total.load())
                total.store(nothing(lane))

            lane.blocks(block)

        lane.loop(first, last, 1, [], one)

    return work


def put_marked(rule: Rule, count: int) -> Callable:
    """Write the sums of `_marked` as elements of the gradient of all."""

    def work(lane, first, last, gradient, marks, sums, settings, at):
        """Emit code that moves the marked sums among elements first to last - 1 to the gradient."""

        def put(place):
            """Store the vector of sums at `place` in the gradient, and clear it."""
            total = sums.flat().row(lane.integer(0), place)
            gradient.flat().row(lane.integer(0), place).store(total.load())
            total.store(nothing(lane))

        step, length = lane.tile.lanes, gradient.rows
        lane.loop(first, last, step, [], lambda place, _: where_marked(lane, marks, place, length, put))

    return work


def put_grouped(rule: Rule, count: int) -> Callable:
    """Write the sums of `_grouped` as rows of the gradient of all."""

    def work(lane, first, last, gradient, columns, starts, rows, values, slope, settings, at):
        """Emit code that stores the sums of the entries of columns first to last - 1 as rows of the gradient."""

        def one(u, _):
            """Sum the entries of one column, and store the sum."""
            total = sum_of_column(lane, u, starts, rows, values, slope)
            lane.blocks(lambda j, _: gradient.row(columns[u], j).store(total(j)))

        lane.loop(first, last, 1, [], one)

    return work


def put_entries(rule: Rule, count: int) -> Callable:
    """Write the sums of `_entries` as rows of the gradient of all."""

    def work(lane, first, last, gradient, indices, data, slope, settings, at):
        """Emit code that stores entries first to last - 1 times the gradient of the scores as rows."""
        nought = lane.integer(0)

        def one(k, _):
            """Store one entry times the gradient of its row's scores."""
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
        """Emit code that updates rows (or chunks) first to last - 1 and clears their gradient."""
        *arrays, gradient, settings, at = args
        numbers = numbers_at(settings, at, count)

        def one(u, _):
            """Update one row or chunk, and clear its gradient."""
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
        """Emit code that multiplies row `row` of the weights by `factor`."""

        def block(j, _):
            """Multiply block j of the row."""
            place = weights.row(row, j)
            place.store([factor * value for value in place.load()])

        lane.blocks(block)

    return work


def coast_pair(rule: Rule, count: int) -> Callable:
    """Return the program: (weights, state) of a row times a 2 x 2 matrix."""

    def work(lane, row, a, b, c, d, weights, state):
        """Emit code that multiplies (weights, state) of row `row` by the matrix ((a, b), (c, d))."""

        def block(j, _):
            """Multiply block j of both rows."""
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
        """Emit code for a step of row `row` by a gradient of zero, with row k of the settings."""
        steps.step(rule, lane, row, arrays, lambda j: nothing(lane), numbers_at(table, k, numbers))

    return work


def replay(rule: Rule, count: int) -> Callable:
    """Return the program: the zero-gradient steps of a row with rows start to stop - 1 of the settings."""

    def work(lane, row, start, stop, table, *arrays):
        """Emit code for the steps of row `row` by gradients of zero, with settings start to stop - 1."""
        steps.repeat(rule, lane, row, arrays, start, stop, table)

    return work


PUT = {make.__name__: make for make in (put_steps, put_steps_placed, put_marked, put_listed, put_grouped, put_entries)}
UNTOUCHED = {make.__name__: make for make in (dense, coast, coast_pair, settle, replay)}


AHEAD_ROWS = 2
"""Rows between asking for a row of several lines of weights and states, and its step."""


def _score(lane, q, row, indptr, indices, data, weights, intercept, scores):
    """Emit code: scores[q] = row `row` of X @ weights + intercept."""
    nought = lane.integer(0)

    def block(j, _):
        """Write the scores of the outputs of block j."""
        total = lane.sum_of_rows(indptr[row], indptr[row + 1], data, indices, weights, j)
        added = intercept.row(nought, j).load()
        scores.row(q, j).store([one + other for one, other in zip(total, added, strict=True)])

    lane.blocks(block)


def _begin(lane, u, factor, vectors, r, sums):
    """Emit code: sums[u] = factor * vectors[r]."""

    def block(j, _):
        """Write block j of the sum."""
        sums.row(u, j).store([factor * value for value in vectors.row(r, j).load()])

    lane.blocks(block)


def _add(lane, u, factor, vectors, r, sums):
    """Emit code: sums[u] += factor * vectors[r]."""

    def block(j, _):
        """Add to block j of the sum."""
        place, factors = sums.row(u, j), lane.numbers.spread(factor)
        pairs = zip(vectors.row(r, j).load(), place.load(), strict=True)
        place.store([factors.times_plus(value, total) for value, total in pairs])

    lane.blocks(block)


def _add_entries(lane, first, stop, indices, data, slope, q, sums, base, marks):
    """Rows `base + indices[k]` of the sums: `data[k]` times row `q` of the slopes more, for k from `first` to `stop`;
    `marks[indices[k]]` becomes 1."""

    def block(j, _):
        """Add the entries times block j of the gradient of the scores to the sums of their columns."""
        moved = slope.row(q, j).load()

        def entry(k, _):
            """Add one entry times the gradient of its row's scores to its column's sum; mark the column."""
            column, factor = indices[k], lane.numbers.spread(data[k])
            place = sums.row(base + column, j)
            pairs = zip(moved, place.load(), strict=True)
            place.store([factor.times_plus(value, total) for value, total in pairs])
            marks.mark(column)

        lane.loop(first, stop, 1, [], entry)

    lane.blocks(block)


def _steps(rule: Rule, count: int, is_listed: bool = False) -> Callable:
    """Return the program: the update of rows columns[u] by sums[u], u in [first, last) or in a list."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that updates rows columns[u] by sums[u]."""
        arrays, (columns, listed, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def one(place, _):
            """Update one row by its sum."""
            u = listed[place] if is_listed else place
            steps.step(rule, lane, columns[u], arrays, lambda j: sums.row(u, j).load(), numbers)

        lane.loop(first, last, 1, [], one)

    return work


def _listed(rule: Rule, count: int) -> Callable:
    """Return the loop program for steps of rows that are given as a list of indices."""
    return _steps(rule, count, is_listed=True)


def _entries(rule: Rule, count: int) -> Callable:
    """Return the program: the update of rows indices[k] by data[k] times the gradient, k in [first, last), no
    duplicates.
    """
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that updates rows indices[k] by data[k] times the gradient of the scores, first <= k < last."""
        arrays, (indices, data, slope, settings, at) = args[:written], args[written:]
        numbers, nought = numbers_at(settings, at, count), lane.integer(0)

        def one(k, _):
            """Update one row by one entry."""
            factor = data[k]
            gradient = lambda j: [factor * g for g in slope.row(nought, j).load()]  # noqa: E731
            steps.step(rule, lane, indices[k], arrays, gradient, numbers)

        lane.loop(first, last, 1, [], one)

    return work


def _entries_at(rule: Rule, count: int) -> Callable:
    """Rows `indices[k]`, each by `data[k]` times row `q` of the slopes, one after the other, for `k` from `first` to
    `last`; of rules that are linear in the gradient, in steps that change nothing without one.

    Such a step adds the gradient times what a gradient of one makes of a weight of zero: the same for all entries.
    """

    def work(lane, first, last, weights, indices, data, slope, q, settings, at):
        """Emit code that adds data[k] times the change by row q of the gradient to rows indices[k] of the weights."""
        numbers, nought, one = numbers_at(settings, at, count), lane.number(0), lane.number(1)
        (rate,) = rule.formula(nought, one, *steps.whole(rule, tuple(numbers)))

        def block(j, _):
            """Change block j of the weights of all entries."""
            moved = [lane.numbers.spread(rate) * g for g in slope.row(q, j).load()]

            def entry(k, _):
                """Change the weights of one entry."""
                place, factor = weights.row(indices[k], j), lane.numbers.spread(data[k])
                pairs = zip(moved, place.load(), strict=True)
                place.store([factor.times_plus(change, old) for change, old in pairs])

            lane.loop(first, last, 1, [], entry)

        lane.blocks(block)

    return work


def _steps_placed(rule: Rule, count: int) -> Callable:
    """Return the program: the update of rows columns[u] by the same rows of the sums, which are cleared."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that updates rows columns[u] by their sums, which are cleared."""
        arrays, (columns, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def one(u, _):
            """Update one row, and clear its sum."""
            column = columns[u]
            steps.step(rule, lane, column, arrays, lambda j: sums.row(column, j).load(), numbers)
            lane.blocks(lambda j, _: sums.row(column, j).store(nothing(lane)))

        lane.loop(first, last, 1, [], one)

    return work


def _marked(rule: Rule, count: int) -> Callable:
    """Return the program: the update of marked rows of one output by their sums; marks and sums are cleared."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that updates the marked weights among elements first to last - 1."""
        arrays, (marks, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def step(place):
            """Update the vector of weights and states at `place`, and clear its sums."""
            total = sums.flat().row(lane.integer(0), place)
            steps.step_elements(
                rule, [each.flat().row(lane.integer(0), place) for each in arrays], total.load(), numbers
            )
            total.store(nothing(lane))

        length = arrays[0].rows
        lane.loop(first, last, lane.tile.lanes, [], lambda place, _: where_marked(lane, marks, place, length, step))

    return work


def _grouped(rule: Rule, count: int) -> Callable:
    """Return the program: the update of rows columns[u] by the sum of their entries from starts[u] on."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that updates rows columns[u] by the sums of their entries."""
        arrays, (columns, starts, rows, values, slope, settings, at) = args[:written], args[written:]
        numbers, end = numbers_at(settings, at, count), last - 1

        def one(u, _):
            """Update one row by the sum of its entries."""
            ahead = columns[(u + AHEAD_ROWS).least(end)] if lane.cut.far_state else None
            gradient = sum_of_column(lane, u, starts, rows, values, slope)
            steps.step(rule, lane, columns[u], arrays, gradient, numbers, ahead)

        lane.loop(first, last, 1, [], one)

    return work


def _ask(rule: Rule, count: int) -> Callable:
    """Return the program: prefetch rows indices[k] of weights and states, k in [first, last)."""
    return _asking(with_states=not rule.average, by_row=rule.average is not None)


def _ask_weights(rule: Rule, count: int) -> Callable:
    """Return the program: prefetch rows of the weights only; wide states would leave the cache before use."""
    return _asking(with_states=False, by_row=False)


def _asking(with_states: bool, by_row: bool) -> Callable:
    """Return the loop program that prefetches rows of the weights, and of the states if `with_states`."""

    def work(lane, first, last, indices, weights, *states):
        """Emit code that prefetches the rows indices[first:last] of the tables."""
        tables = (weights, *states) if with_states else (weights,)

        def one(k, _):
            """Prefetch the rows of one entry."""

            def block(j, _):
                """Prefetch block j of the rows."""
                for array in tables:
                    array.row(indices[k], j).prefetch()

            for state in states if by_row else ():
                state.prefetch(indices[k])
            lane.blocks(block)

        lane.loop(first, last, 1, [], one)

    return work


_LOOPS = {row.__name__[1:]: RowLoop(row, name=f"epoch{row.__name__}") for row in (_score, _begin, _add, _add_entries)}
_OF_RULE = {
    make.__name__[1:]: make
    for make in (_steps, _steps_placed, _marked, _listed, _grouped, _entries, _entries_at, _ask, _ask_weights)
}


OF_ENTRIES = ("steps", "steps_placed", "listed", "entries")
"""What steps rows by themselves, or puts them into the gradient of all."""


@functools.cache
def _of_rule(rule_name: str, kind: str, count: int) -> RowLoop:
    """Return the compiled row loop of a kind ("step", ...) for a rule by name and its count of states."""
    return RowLoop(
        (_OF_RULE | PUT | UNTOUCHED)[kind](get_rule(rule_name), count), name=f"epoch_{rule_name}_{kind}_{count}"
    )


def steps_of_intercept(rule_name: str, count: int, itemsize: int) -> str:
    """Name of the code that steps rows of one number: those of the intercept."""
    return _of_rule(rule_name, "steps", count).code(cut_elements(1, itemsize))


@dataclass(frozen=True)
class Programs:
    """Names of the vector code for rows of one width; see the functions above."""

    score: str
    begin: str
    add: str
    add_entries: str
    steps: str
    steps_placed: str
    marked: str
    """Rows of one number, vectors of neighbours at a time; "" where rows have more, or a state for all of a row."""
    listed: str
    grouped: str
    entries: str
    entries_at: str
    """Of rules that are linear in the gradient; "" of others."""
    ask: str
    steps_intercept: str
    """As `steps`, for rows of one number."""
    untouched: str
    """What is done with rows that were not touched; "" where that is nothing."""
    way: str


def adding(cut: Cut) -> str:
    """Return the name of the vector code that adds factor * row to a row of sums, for a cut."""
    return _LOOPS["add"].code(cut)


@functools.cache
def programs_for(
    rule_name: str, width: int, itemsize: int, count: int, way: str = "lazy", far_state: bool = False
) -> Programs:
    """Return the compiled vector code for weights [D, width], a rule with `count` settings and an update strategy.

    `far_state` says that weights and states come from beyond a core's cache, as `tiles.is_far_state` tells.
    """
    elements, put = cut_elements(width, itemsize), "put_" if way == "standard" else ""
    kinds = {kind: _LOOPS[kind].code(elements) for kind in ("begin", "add")}
    kinds |= {kind: _of_rule(rule_name, put + kind, count).code(elements) for kind in OF_ENTRIES}
    ask = "ask_weights" if width * itemsize >= LINE else "ask"
    kinds["ask"] = _of_rule(rule_name, ask, count).code(elements)
    if width == 1 and not get_rule(rule_name).average:
        kinds["marked"] = _of_rule(rule_name, put + "marked", count).code(cut_neighbours(itemsize))
    kinds["grouped"] = _of_rule(rule_name, put + "grouped", count).code(cut_sums(width, itemsize, far_state=far_state))
    of_entries = _of_rule(rule_name, "entries_at", count) if get_rule(rule_name).is_linear else None
    kinds["entries_at"] = of_entries.code(cut_sums(width, itemsize)) if of_entries is not None else ""
    kinds |= {kind: _LOOPS[kind].code(cut_sums(width, itemsize)) for kind in ("score", "add_entries")}
    kinds["steps_intercept"] = steps_of_intercept(rule_name, count, itemsize)
    if way == "standard":
        whole = elements if get_rule(rule_name).average else cut_elements(steps.CHUNK, itemsize)
        kinds["untouched"] = _of_rule(rule_name, "dense", count).code(whole)
    elif way != "lazy":
        kinds["untouched"] = _of_rule(rule_name, way, count).code(elements)
    return Programs(**{"untouched": "", "marked": "", **kinds}, way=way)
