"""Vector code of an epoch's inner loops: the scores of a row, an entry's part of a gradient, steps of touched rows."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from kernels.rules import steps
from kernels.rules.rule import Rule, get_rule
from kernels.vector.gather import RowLoop
from kernels.vector.tiles import cut_elements, cut_sums


def _score(lane, q, row, indptr, indices, data, weights, intercept, scores):
    """Row `q` of the scores: row `row` of X @ W, and the intercept."""
    nought = lane.integer(0)

    def block(j, _):
        total = lane.sum(indptr[row], indptr[row + 1], lambda k: (data[k], weights.row(indices[k], j)), indices.last)
        added = intercept.row(nought, j).load()
        scores.row(q, j).store([one + other for one, other in zip(total, added, strict=True)])

    lane.blocks(block)


def _begin(lane, u, factor, vectors, r, sums):
    """Row `u` of the sums: factor times row `r` of `vectors`."""

    def block(j, _):
        sums.row(u, j).store([factor * value for value in vectors.row(r, j).load()])

    lane.blocks(block)


def _add(lane, u, factor, vectors, r, sums):
    """Row `u` of the sums: factor times row `r` of `vectors` more."""

    def block(j, _):
        place, factors = sums.row(u, j), lane.numbers.spread(factor)
        pairs = zip(vectors.row(r, j).load(), place.load(), strict=True)
        place.store([factors.times_plus(value, total) for value, total in pairs])

    lane.blocks(block)


def _numbers(settings, at, count: int) -> list:
    """Row `at` of a table of settings, as single numbers."""
    return [settings[at * count + number] for number in range(count)]


def _steps(rule: Rule, count: int, is_listed: bool = False) -> Callable:
    """Rows `columns[u]`, each by row `u` of the sums, for `u` from `first` to `last`, or those `listed` there."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        arrays, (columns, listed, sums, settings, at) = args[:written], args[written:]
        numbers = _numbers(settings, at, count)

        def one(place, _):
            u = listed[place] if is_listed else place
            steps.step(rule, lane, columns[u], arrays, lambda j: sums.row(u, j).load(), numbers)

        lane.loop(first, last, 1, [], one)

    return work


def _listed(rule: Rule, count: int) -> Callable:
    return _steps(rule, count, is_listed=True)


def _entries(rule: Rule, count: int) -> Callable:
    """Rows `indices[k]`, each by `data[k]` times the only slope, for `k` from `first` to `last`: none comes twice."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        arrays, (indices, data, slope, settings, at) = args[:written], args[written:]
        numbers, nought = _numbers(settings, at, count), lane.integer(0)

        def one(k, _):
            factor = data[k]
            gradient = lambda j: [factor * g for g in slope.row(nought, j).load()]  # noqa: E731
            steps.step(rule, lane, indices[k], arrays, gradient, numbers)

        lane.loop(first, last, 1, [], one)

    return work


def _ask(rule: Rule, count: int) -> Callable:
    """Ask memory for the rows `indices[k]` of weights and states, for `k` from `first` to `last`."""

    def work(lane, first, last, indices, weights, *states):
        tables = (weights,) if rule.average else (weights, *states)

        def one(k, _):
            def block(j, _):
                for array in tables:
                    array.row(indices[k], j).prefetch()

            for state in states if rule.average else ():
                state.prefetch(indices[k])
            lane.blocks(block)

        lane.loop(first, last, 1, [], one)

    return work


_LOOPS = {row.__name__[1:]: RowLoop(row, name=f"epoch{row.__name__}") for row in (_score, _begin, _add)}
_OF_RULE = {make.__name__[1:]: make for make in (_steps, _listed, _entries, _ask)}


@functools.cache
def _of_rule(rule_name: str, kind: str, count: int) -> RowLoop:
    return RowLoop(_OF_RULE[kind](get_rule(rule_name), count), name=f"epoch_{rule_name}_{kind}_{count}")


@dataclass(frozen=True)
class Programs:
    """Names of the vector code for rows of one width; see the functions above."""

    score: str
    begin: str
    add: str
    steps: str
    listed: str
    entries: str
    ask: str
    steps_intercept: str
    """As `steps`, for rows of one number."""


@functools.cache
def programs_for(rule_name: str, width: int, itemsize: int, count: int) -> Programs:
    """The vector code for weights [D, width] whose rule takes `count` settings."""
    elements = cut_elements(width, itemsize)
    kinds = {kind: _LOOPS[kind].code(elements) for kind in ("begin", "add")}
    kinds |= {kind: _of_rule(rule_name, kind, count).code(elements) for kind in _OF_RULE}
    kinds["score"] = _LOOPS["score"].code(cut_sums(width, itemsize))
    kinds["steps_intercept"] = _of_rule(rule_name, "steps", count).code(cut_elements(1, itemsize))
    return Programs(**kinds)
