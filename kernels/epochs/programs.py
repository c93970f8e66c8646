"""Vector code of an epoch's inner loops: the scores of a row, an entry's part of a gradient, steps of touched rows."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from kernels.aligned import LINE
from kernels.epochs.programs_untouched import PUT, UNTOUCHED, nothing, numbers_at, sum_of_column
from kernels.rules import steps
from kernels.rules.rule import Rule, get_rule
from kernels.vector.gather import RowLoop
from kernels.vector.marked import where_marked
from kernels.vector.tiles import Cut, cut_elements, cut_neighbours, cut_sums

AHEAD_ROWS = 2
"""Rows between asking for a row of several lines of weights and states, and its step."""


def _score(lane, q, row, indptr, indices, data, weights, intercept, scores):
    """Emit code: scores[q] = row `row` of X @ weights + intercept."""
    nought = lane.integer(0)

    def block(j, _):
        total = lane.sum(indptr[row], indptr[row + 1], lambda k: (data[k], weights.row(indices[k], j)), indices.last)
        added = intercept.row(nought, j).load()
        scores.row(q, j).store([one + other for one, other in zip(total, added, strict=True)])

    lane.blocks(block)


def _begin(lane, u, factor, vectors, r, sums):
    """Emit code: sums[u] = factor * vectors[r]."""

    def block(j, _):
        sums.row(u, j).store([factor * value for value in vectors.row(r, j).load()])

    lane.blocks(block)


def _add(lane, u, factor, vectors, r, sums):
    """Emit code: sums[u] += factor * vectors[r]."""

    def block(j, _):
        place, factors = sums.row(u, j), lane.numbers.spread(factor)
        pairs = zip(vectors.row(r, j).load(), place.load(), strict=True)
        place.store([factors.times_plus(value, total) for value, total in pairs])

    lane.blocks(block)


def _add_entries(lane, first, stop, indices, data, slope, q, sums, base, marks):
    """Rows `base + indices[k]` of the sums: `data[k]` times row `q` of the slopes more, for k from `first` to `stop`;
    `marks[indices[k]]` becomes 1."""

    def block(j, _):
        moved = slope.row(q, j).load()

        def entry(k, _):
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
        arrays, (columns, listed, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def one(place, _):
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
        arrays, (indices, data, slope, settings, at) = args[:written], args[written:]
        numbers, nought = numbers_at(settings, at, count), lane.integer(0)

        def one(k, _):
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
        numbers, nought, one = numbers_at(settings, at, count), lane.number(0), lane.number(1)
        (rate,) = rule.formula(nought, one, *steps.whole(rule, tuple(numbers)))

        def block(j, _):
            moved = [lane.numbers.spread(rate) * g for g in slope.row(q, j).load()]

            def entry(k, _):
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
        arrays, (columns, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def one(u, _):
            column = columns[u]
            steps.step(rule, lane, column, arrays, lambda j: sums.row(column, j).load(), numbers)
            lane.blocks(lambda j, _: sums.row(column, j).store(nothing(lane)))

        lane.loop(first, last, 1, [], one)

    return work


def _marked(rule: Rule, count: int) -> Callable:
    """Return the program: the update of marked rows of one output by their sums; marks and sums are cleared."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        arrays, (marks, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def step(place):
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
        arrays, (columns, starts, rows, values, slope, settings, at) = args[:written], args[written:]
        numbers, end = numbers_at(settings, at, count), last - 1

        def one(u, _):
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
        tables = (weights, *states) if with_states else (weights,)

        def one(k, _):
            def block(j, _):
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
