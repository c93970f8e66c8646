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


# Ways of an epoch that step rows which a batch does not touch: see `kernels.epochs.ways`


def _put_steps(rule: Rule, count: int, is_listed: bool = False) -> Callable:
    """As `_steps`, but the sums become rows of the gradient of all."""

    def work(lane, first, last, gradient, columns, listed, sums, settings, at):
        def one(place, _):
            u = listed[place] if is_listed else place
            lane.blocks(lambda j, _: gradient.row(columns[u], j).store(sums.row(u, j).load()))

        lane.loop(first, last, 1, [], one)

    return work


def _put_listed(rule: Rule, count: int) -> Callable:
    return _put_steps(rule, count, is_listed=True)


def _put_entries(rule: Rule, count: int) -> Callable:
    """As `_entries`, but what is summed becomes rows of the gradient of all."""

    def work(lane, first, last, gradient, indices, data, slope, settings, at):
        nought = lane.integer(0)

        def one(k, _):
            factor = data[k]
            lane.blocks(
                lambda j, _: gradient.row(indices[k], j).store([factor * g for g in slope.row(nought, j).load()])
            )

        lane.loop(first, last, 1, [], one)

    return work


def _dense(rule: Rule, count: int) -> Callable:
    """The units of a dense step from `first` to `last`, by a gradient that is zero afterwards."""
    step = steps.dense(rule)

    def work(lane, first, last, *args):
        *arrays, gradient, settings, at = args
        numbers = _numbers(settings, at, count)

        def one(u, _):
            step(lane, u, *arrays, gradient, *numbers)
            part, row = (gradient, u) if rule.average else (gradient.moved(u * steps.CHUNK), lane.integer(0))
            lane.blocks(lambda j, _: part.row(row, j).store(_nothing(lane)))

        lane.loop(first, last, 1, [], one)

    return work


def _nothing(lane) -> list:
    return [lane.float(lane.zeros())] * lane.tile.vectors


def _coast(rule: Rule, count: int) -> Callable:
    """The row of the weights becomes `factor` times itself."""

    def work(lane, row, factor, weights, *states):
        def block(j, _):
            place = weights.row(row, j)
            place.store([factor * value for value in place.load()])

        lane.blocks(block)

    return work


def _coast_pair(rule: Rule, count: int) -> Callable:
    """The row of weights and state becomes [[a, b], [c, d]] @ (w, s)."""

    def work(lane, row, a, b, c, d, weights, state):
        def block(j, _):
            places = [array.row(row, j) for array in (weights, state)]
            pairs = list(zip(*[place.load() for place in places], strict=True))
            places[0].store([a * w + b * s for w, s in pairs])
            places[1].store([c * w + d * s for w, s in pairs])

        lane.blocks(block)

    return work


def _settle(rule: Rule, count: int) -> Callable:
    """The row has the step of row `k` of the table, without gradient."""
    numbers = len(rule.settings(*rule.example))

    def work(lane, row, k, table, *arrays):
        steps.step(rule, lane, row, arrays, lambda j: _nothing(lane), _numbers(table, k, numbers))

    return work


def _replay(rule: Rule, count: int) -> Callable:
    """The row has the steps of the table from `start` to `stop`, without gradient."""

    def work(lane, row, start, stop, table, *arrays):
        steps.repeat(rule, lane, row, arrays, start, stop, table)

    return work


_LOOPS = {row.__name__[1:]: RowLoop(row, name=f"epoch{row.__name__}") for row in (_score, _begin, _add)}
_OF_RULE = {make.__name__[1:]: make for make in (_steps, _listed, _entries, _ask)}
_PUT = {make.__name__[1:]: make for make in (_put_steps, _put_listed, _put_entries)}
_UNTOUCHED = {make.__name__[1:]: make for make in (_dense, _coast, _coast_pair, _settle, _replay)}


@functools.cache
def _of_rule(rule_name: str, kind: str, count: int) -> RowLoop:
    return RowLoop(
        (_OF_RULE | _PUT | _UNTOUCHED)[kind](get_rule(rule_name), count), name=f"epoch_{rule_name}_{kind}_{count}"
    )


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
    untouched: str
    """What is done with rows that were not touched; "" where that is nothing."""
    way: str


@functools.cache
def programs_for(rule_name: str, width: int, itemsize: int, count: int, way: str = "lazy") -> Programs:
    """The vector code for weights [D, width] whose rule takes `count` settings, in that way (`kernels.epochs.ways`)."""
    elements, put = cut_elements(width, itemsize), "put_" if way == "standard" else ""
    kinds = {kind: _LOOPS[kind].code(elements) for kind in ("begin", "add")}
    kinds |= {kind: _of_rule(rule_name, put + kind, count).code(elements) for kind in ("steps", "listed", "entries")}
    kinds["ask"] = _of_rule(rule_name, "ask", count).code(elements)
    kinds["score"] = _LOOPS["score"].code(cut_sums(width, itemsize))
    kinds["steps_intercept"] = _of_rule(rule_name, "steps", count).code(cut_elements(1, itemsize))
    if way == "standard":
        whole = elements if get_rule(rule_name).average else cut_elements(steps.CHUNK, itemsize)
        kinds["untouched"] = _of_rule(rule_name, "dense", count).code(whole)
    elif way != "lazy":
        kinds["untouched"] = _of_rule(rule_name, way, count).code(elements)
    return Programs(**{"untouched": "", **kinds}, way=way)
