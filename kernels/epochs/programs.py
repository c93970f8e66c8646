"""Vector code of an epoch's inner loops: the scores of a row, an entry's part of a gradient, steps of active rows."""

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
    """Emit `body(place)` for those lanes whose byte in `marks` (uint8) from `place` on is not 0, if any.

    Zero these bytes. Sets `lane.mask` and `lane.edge` for `body`, which loads and stores arrays of `length` elements.
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
    """Return row `at` of the settings table [steps, count] as a list of `count` scalars of generated code."""
    return [settings[at * count + number] for number in range(count)]


def sum_of_column(lane, u, starts, rows, values, slope) -> Callable:
    """Return a function `j -> vectors` that emits the sum over column u of values[k] * slope[rows[k]] from output j on.

    Entries k of column u run from starts[u] to starts[u + 1] - 1; `slope` [R, N] is the gradient of the scores.
    """
    return lambda j: lane.sum_of_rows(starts[u], starts[u + 1], values, rows, slope, j)


def put_steps(rule: Rule, count: int, is_listed: bool = False) -> Callable:
    """Return a code generator that stores sums[u] as row columns[u] of the dense gradient [D, N].

    Used for `_steps` in the strategy "standard"; `rule` and `count` are unused. `is_listed`: u runs through `listed`.
    """

    def work(lane, first, last, gradient, columns, listed, sums, settings, at):
        """Emit code: gradient[columns[u]] = sums[u], u = first..last - 1 or listed[first:last]; no settings or `at`."""

        def one(place, _):
            """Emit the copy of one row, u = `place` or listed[place]; `_` is unused."""
            u = listed[place] if is_listed else place
            lane.blocks(lambda j, _: gradient.row(columns[u], j).store(sums.row(u, j).load()))

        lane.loop(first, last, 1, [], one)

    return work


def put_hash_list(rule: Rule, count: int) -> Callable:
    """Return `put_steps(rule, count)` for the positions u in the operand `listed`."""
    return put_steps(rule, count, is_listed=True)


def put_steps_dense(rule: Rule, count: int) -> Callable:
    """Return a code generator that moves rows columns[u] of the sums [D, N] to the same rows of the dense gradient.

    The sums are zeroed. It replaces `_steps_dense` in the strategy "standard"; `rule` and `count` are unused.
    """

    def work(lane, first, last, gradient, columns, sums, settings, at):
        """Emit code: gradient[c] = sums[c]; sums[c] = 0, c = columns[u], first <= u < last; no settings, `at`."""

        def one(u, _):
            """Emit the move of row columns[u]; `_` is unused."""

            def block(j, _):
                """Emit the move of the outputs of one tile, from output j on; the sum becomes 0; `_` is unused."""
                total = sums.row(columns[u], j)
                gradient.row(columns[u], j).store(total.load())
                total.store(nothing(lane))

            lane.blocks(block)

        lane.loop(first, last, 1, [], one)

    return work


def put_marked(rule: Rule, count: int) -> Callable:
    """Return a code generator that moves the sums [D, 1] of marked columns to the dense gradient [D, 1].

    Sums and marks are zeroed. It replaces `_marked` in the strategy "standard"; `rule` and `count` are unused.
    """

    def work(lane, first, last, gradient, marks, sums, settings, at):
        """Emit code for each first <= i < last with marks[i] != 0: gradient[i] = sums[i].

        Then sums[i] = marks[i] = 0. `settings` and `at` are unused.
        """

        def put(place):
            """Emit the move of the vector of sums from element `place` on; lanes outside `lane.mask` are not stored."""
            total = sums.flat().row(lane.integer(0), place)
            gradient.flat().row(lane.integer(0), place).store(total.load())
            total.store(nothing(lane))

        step, length = lane.tile.lanes, gradient.rows
        lane.loop(first, last, step, [], lambda place, _: where_marked(lane, marks, place, length, put))

    return work


def put_hash_sort(rule: Rule, count: int) -> Callable:
    """Return a code generator: gradient[columns[u]] = sum of the entries of column u; `rule`, `count` are unused."""

    def work(lane, first, last, gradient, columns, starts, rows, values, slope, settings, at):
        """Emit code: gradient[columns[u]] = sum of the entries of column u, for u = first..last - 1.

        The entries are k = starts[u]..starts[u + 1] - 1, as in `sum_of_column`: values[k] * slope[rows[k]]; settings
        and at are unused.
        """

        def one(u, _):
            """Emit the sum of the entries of column position u and its store; `_` is unused."""
            total = sum_of_column(lane, u, starts, rows, values, slope)
            lane.blocks(lambda j, _: gradient.row(columns[u], j).store(total(j)))

        lane.loop(first, last, 1, [], one)

    return work


def put_entries(rule: Rule, count: int) -> Callable:
    """Return a code generator: gradient[indices[k]] = data[k] * slope[0] for one row of X; `rule`, `count` unused."""

    def work(lane, first, last, gradient, indices, data, slope, settings, at):
        """Emit code: gradient[indices[k]] = data[k] * slope[0], first <= k < last; columns differ; no settings read.

        `at` is unused.
        """
        nought = lane.integer(0)

        def one(k, _):
            """Emit the store of entry k; `_` is unused."""
            factor = data[k]
            lane.blocks(
                lambda j, _: gradient.row(indices[k], j).store([factor * g for g in slope.row(nought, j).load()])
            )

        lane.loop(first, last, 1, [], one)

    return work


def dense(rule: Rule, count: int) -> Callable:
    """Return a code generator of the dense update: a step of all rows by a gradient, which is then zeroed.

    Rows are flat chunks of `steps.CHUNK` elements, unless the rule averages over rows (`rule.average`).
    """
    step = steps.dense(rule)

    def work(lane, first, last, *args):
        """Emit code that updates rows or chunks first to last - 1 in place and zeroes their gradient.

        `args` are weights, states, gradient, the settings [steps, count] and the row `at` of these to use.
        """
        *arrays, gradient, settings, at = args
        numbers = numbers_at(settings, at, count)

        def one(u, _):
            """Emit the update of row or chunk u and the zeros in its gradient; `_` is unused."""
            step(lane, u, *arrays, gradient, *numbers)
            part, row = (gradient, u) if rule.average else (gradient.moved(u * steps.CHUNK), lane.integer(0))
            lane.blocks(lambda j, _: part.row(row, j).store(nothing(lane)))

        lane.loop(first, last, 1, [], one)

    return work


def nothing(lane) -> list:
    """Return one zero vector for each vector of the current tile: the gradient of an inactive row."""
    return [lane.float(lane.zeros())] * lane.tile.vectors


def closed_form(rule: Rule, count: int) -> Callable:
    """Return a code generator (lane, row, factor, weights, *states): weights[row] *= factor; `rule`, `count` unused."""

    def work(lane, row, factor, weights, *states):
        """Emit code: weights[row] *= factor, in place; the states do not change."""

        def block(j, _):
            """Emit the product for the outputs of one tile, from output j on; `_` is unused."""
            place = weights.row(row, j)
            place.store([factor * value for value in place.load()])

        lane.blocks(block)

    return work


def closed_form_pair(rule: Rule, count: int) -> Callable:
    """Return a code generator: row `row` of (weights, state) times [[a, b], [c, d]]; `rule` and `count` are unused."""

    def work(lane, row, a, b, c, d, weights, state):
        """Emit code, in place: weights[row], state[row] = a * w + b * s, c * w + d * s, of their old values w and s."""

        def block(j, _):
            """Emit the products for the outputs of one tile, from output j on; `_` is unused."""
            places = [array.row(row, j) for array in (weights, state)]
            pairs = list(zip(*[place.load() for place in places], strict=True))
            places[0].store([a * w + b * s for w, s in pairs])
            places[1].store([c * w + d * s for w, s in pairs])

        lane.blocks(block)

    return work


def last_step(rule: Rule, count: int) -> Callable:
    """Return a code generator (lane, row, k, table, *arrays): one zero-gradient step of a row; `count` is unused."""
    numbers = len(rule.settings(*rule.example))

    def work(lane, row, k, table, *arrays):
        """Emit code that steps `row` of `arrays` (weights, states) in place by gradient 0 with settings table[k]."""
        steps.step(rule, lane, row, arrays, lambda j: nothing(lane), numbers_at(table, k, numbers))

    return work


def step_by_step(rule: Rule, count: int) -> Callable:
    """Return a code generator (lane, row, start, stop, table, *arrays): zero-gradient steps of one row.

    `count` is unused.
    """

    def work(lane, row, start, stop, table, *arrays):
        """Emit code that steps `row` of `arrays` in place by gradient 0 with settings table[start] to [stop - 1]."""
        steps.repeat(rule, lane, row, arrays, start, stop, table)

    return work


PUT = {
    make.__name__: make for make in (put_steps, put_steps_dense, put_marked, put_hash_list, put_hash_sort, put_entries)
}
UNTOUCHED = {make.__name__: make for make in (dense, closed_form, closed_form_pair, last_step, step_by_step)}


AHEAD_ROWS = 2
"""Rows between asking for a row of several lines of weights and states, and its step."""


def _score(lane, q, row, indptr, indices, data, weights, intercept, scores):
    """Emit code: scores[q] = X[row] @ weights + intercept, X in CSR form (indptr, indices, data), weights [D, N]."""
    nought = lane.integer(0)

    def block(j, _):
        """Emit the scores of the outputs of one tile, from output j on; `_` is unused."""
        total = lane.sum_of_rows(indptr[row], indptr[row + 1], data, indices, weights, j)
        added = intercept.row(nought, j).load()
        scores.row(q, j).store([one + other for one, other in zip(total, added, strict=True)])

    lane.blocks(block)


def _begin(lane, u, factor, vectors, r, sums):
    """Emit code: sums[u] = factor * vectors[r], both [rows, N]; sums[u] is overwritten."""

    def block(j, _):
        """Emit the outputs of one tile, from output j on; `_` is unused."""
        sums.row(u, j).store([factor * value for value in vectors.row(r, j).load()])

    lane.blocks(block)


def _add(lane, u, factor, vectors, r, sums):
    """Emit code: sums[u] += factor * vectors[r], both [rows, N], in place."""

    def block(j, _):
        """Emit the outputs of one tile, from output j on; `_` is unused."""
        place, factors = sums.row(u, j), lane.numbers.spread(factor)
        pairs = zip(vectors.row(r, j).load(), place.load(), strict=True)
        place.store([factors.times_plus(value, total) for value, total in pairs])

    lane.blocks(block)


def _add_entries(lane, first, stop, indices, data, slope, q, sums, base, marks):
    """Emit code: sums[base + indices[k]] += data[k] * slope[q] and marks[indices[k]] = 1, for k = first..stop - 1."""

    def block(j, _):
        """Emit the loop over all entries for the outputs of one tile, from output j on; `_` is unused."""
        moved = slope.row(q, j).load()

        def entry(k, _):
            """Emit the addition of entry k to the sum of its column, and the store of 1 in the column's mark."""
            column, factor = indices[k], lane.numbers.spread(data[k])
            place = sums.row(base + column, j)
            pairs = zip(moved, place.load(), strict=True)
            place.store([factor.times_plus(value, total) for value, total in pairs])
            marks.mark(column)

        lane.loop(first, stop, 1, [], entry)

    lane.blocks(block)


def _steps(rule: Rule, count: int) -> Callable:
    """Return a code generator of the update of weight and state rows columns[u] by the gradient rows sums[u]."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that steps rows columns[u], which differ, in place, for u = first..last - 1.

        `args` are weights, states, columns, any array, sums, the settings [steps, count] and the row `at` of these.
        """
        arrays, (columns, _, sums, settings, at) = args[:written], args[written:]
        of_row = lambda u, j: sums.row(u, j).load()  # noqa: E731
        of_places = lambda u, _: sums.row(u, lane.integer(0)).load()[0]  # noqa: E731
        steps.step_columns(rule, lane, first, last, columns, arrays, numbers_at(settings, at, count), of_places, of_row)

    return work


def _hash_list(rule: Rule, count: int) -> Callable:
    """Return a code generator of the update of rows columns[u] by the rows sums[u], u = listed[first] and so on."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that steps rows columns[u] in place; `args` are as of `_steps`, with `listed` after columns."""
        arrays, (columns, listed, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def one(place, _):
            """Emit the step of one row, u = listed[place]; `_` is unused."""
            u = listed[place]
            steps.step(rule, lane, columns[u], arrays, lambda j: sums.row(u, j).load(), numbers)

        lane.loop(first, last, 1, [], one)

    return work


def _entries(rule: Rule, count: int) -> Callable:
    """Return a code generator of the update by the entries of a single row of X, whose columns must not repeat."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that steps rows indices[k] in place by the gradient data[k] * slope[0], k = first..last - 1.

        `args` are weights, states, indices, data, slope, the settings [steps, count] and the row `at` of these to use.
        """
        arrays, (indices, data, slope, settings, at) = args[:written], args[written:]
        numbers, nought = numbers_at(settings, at, count), lane.integer(0)
        moved = slope.row(nought, nought).load()[0] if lane.cut.width == 1 else None
        of_row = lambda k, j: [data[k] * g for g in slope.row(nought, j).load()]  # noqa: E731
        of_places = lambda k, _: data.row(nought, k).load()[0] * moved  # noqa: E731
        steps.step_columns(rule, lane, first, last, indices, arrays, numbers, of_places, of_row)

    return work


def _entries_at(rule: Rule, count: int) -> Callable:
    """Return a code generator of SGD-like updates entry by entry, in place, for linear rules without decay.

    A step then adds gradient times a rate, the formula's value at weight 0 and gradient 1; columns may repeat.
    """

    def work(lane, first, last, weights, indices, data, slope, q, settings, at):
        """Emit code: weights[indices[k]] += rate * data[k] * slope[q] for first <= k < last, with settings row `at`."""
        numbers, nought, one = numbers_at(settings, at, count), lane.number(0), lane.number(1)
        (rate,) = rule.formula(nought, one, *steps.whole(rule, tuple(numbers)))

        def block(j, _):
            """Emit the loop over all entries for the outputs of one tile, from output j on; `_` is unused."""
            moved = [lane.numbers.spread(rate) * g for g in slope.row(q, j).load()]

            def entry(k, _):
                """Emit the change of the weights of entry k; `_` is unused."""
                place, factor = weights.row(indices[k], j), lane.numbers.spread(data[k])
                pairs = zip(moved, place.load(), strict=True)
                place.store([factor.times_plus(change, old) for change, old in pairs])

            lane.loop(first, last, 1, [], entry)

        lane.blocks(block)

    return work


def _steps_dense(rule: Rule, count: int) -> Callable:
    """Return a code generator of the update of rows columns[u] by the same rows of sums [D, N], then zeroed."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that steps rows columns[u] in place by sums[columns[u]], first <= u < last, and zeroes these sums.

        `args` are weights, states, columns, sums, the settings [steps, count] and the row `at` of these to use.
        """
        arrays, (columns, sums, settings, at) = args[:written], args[written:]

        def of_places(_, places):
            """Return the sums at `places`, which become zero; `_` is unused."""
            total = sums.take(places)
            sums.put(places, lane.float(lane.zeros()))
            return total

        of_row = lambda u, j: sums.row(columns[u], j).load()  # noqa: E731
        ended = lambda column: lane.blocks(lambda j, _: sums.row(column, j).store(nothing(lane)))  # noqa: E731
        numbers = numbers_at(settings, at, count)
        steps.step_columns(rule, lane, first, last, columns, arrays, numbers, of_places, of_row, ended)

    return work


def _marked(rule: Rule, count: int) -> Callable:
    """Return a code generator of the update of marked weights [D, 1] by their sums; marks and sums are zeroed."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that steps each weight i = first..last - 1 with marks[i] != 0 in place by sums[i], and zeroes both.

        `args` are weights, states, marks (uint8), sums, the settings [steps, count] and the row `at` of these to use.
        """
        arrays, (marks, sums, settings, at) = args[:written], args[written:]
        numbers = numbers_at(settings, at, count)

        def step(place):
            """Emit the step of the vector at `place` and zeros in its sums; unmarked lanes are not stored."""
            total = sums.flat().row(lane.integer(0), place)
            steps.step_elements(
                rule, [each.flat().row(lane.integer(0), place) for each in arrays], total.load(), numbers
            )
            total.store(nothing(lane))

        length = arrays[0].rows
        lane.loop(first, last, lane.tile.lanes, [], lambda place, _: where_marked(lane, marks, place, length, step))

    return work


def _hash_sort(rule: Rule, count: int) -> Callable:
    """Return a code generator of the update of rows columns[u] by the summed entries starts[u] to starts[u + 1] - 1."""
    written = len(rule.written)

    def work(lane, first, last, *args):
        """Emit code that steps rows columns[u] in place by the sum of values[k] * slope[rows[k]], first <= u < last.

        `args` are weights, states, columns, starts, rows, values, slope, the settings [steps, count] and their row
        `at`.
        """
        arrays, (columns, starts, rows, values, slope, settings, at) = args[:written], args[written:]
        numbers, end = numbers_at(settings, at, count), last - 1

        def one(u, _):
            """Emit the step of row columns[u], with a prefetch of a later row if states are beyond the cache."""
            ahead = columns[(u + AHEAD_ROWS).least(end)] if lane.cut.far_state else None
            gradient = sum_of_column(lane, u, starts, rows, values, slope)
            steps.step(rule, lane, columns[u], arrays, gradient, numbers, ahead)

        lane.loop(first, last, 1, [], one)

    return work


def _ask(rule: Rule, count: int) -> Callable:
    """Return a code generator that prefetches weights and states of rows indices[first:last]; `count` is unused."""
    return _asking(with_states=not rule.average, by_row=rule.average is not None)


def _ask_weights(rule: Rule, count: int) -> Callable:
    """Return a code generator that prefetches weights only: wide states would leave the cache before their use.

    `rule` and `count` are unused.
    """
    return _asking(with_states=False, by_row=False)


def _asking(with_states: bool, by_row: bool) -> Callable:
    """Return a code generator of prefetches of weight rows.

    `with_states`: of states [D, N] too; `by_row`: of states [D], one element for each row.
    """

    def work(lane, first, last, indices, weights, *states):
        """Emit prefetches of the rows indices[k] of the arrays, k = first..last - 1; nothing is read or written."""
        tables = (weights, *states) if with_states else (weights,)

        def one(k, _):
            """Emit the prefetches for entry k; `_` is unused."""

            def block(j, _):
                """Emit the prefetches of the outputs of one tile, from output j on; `_` is unused."""
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
    for make in (_steps, _steps_dense, _marked, _hash_list, _hash_sort, _entries, _entries_at, _ask, _ask_weights)
}


OF_ENTRIES = ("steps", "steps_dense", "hash_list", "entries")
"""What steps rows by themselves, or puts them into the gradient of all."""


@functools.cache
def _of_rule(rule_name: str, kind: str, count: int) -> RowLoop:
    """Return the cached row loop `kind`, a key of `_OF_RULE`, `PUT` or `UNTOUCHED`, for a rule of `count` settings."""
    return RowLoop(
        (_OF_RULE | PUT | UNTOUCHED)[kind](get_rule(rule_name), count), name=f"epoch_{rule_name}_{kind}_{count}"
    )


def steps_of_intercept(rule_name: str, count: int, itemsize: int) -> str:
    """Return the name of the code of `_steps` for the intercept: rows of one element of `itemsize` bytes."""
    return _of_rule(rule_name, "steps", count).code(cut_elements(1, itemsize))


@dataclass(frozen=True)
class Programs:
    """Names of the vector code for rows of one width; see the functions above."""

    score: str
    begin: str
    add: str
    add_entries: str
    steps: str
    steps_dense: str
    marked: str
    """Rows of one number, vectors of neighbours at a time; "" where rows have more, or a state for all of a row."""
    hash_list: str
    hash_sort: str
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
    """Return the name of the code of `_add`, sums[u] += factor * vectors[r], for rows cut into tiles by `cut`."""
    return _LOOPS["add"].code(cut)


@functools.cache
def programs_for(
    rule_name: str, width: int, itemsize: int, count: int, way: str = "lazy", far_state: bool = False
) -> Programs:
    """Return the names of the vector code for weights [D, width] of `itemsize` bytes and a rule with `count` settings.

    `way` is the strategy for inactive rows ("lazy", "standard", ...); `far_state`: whether weights and states
    exceed a core's cache, so that they are prefetched. Cached. Raises KernelError for an unknown rule.
    """
    elements, put = cut_elements(width, itemsize), "put_" if way == "standard" else ""
    kinds = {kind: _LOOPS[kind].code(elements) for kind in ("begin", "add")}
    kinds |= {kind: _of_rule(rule_name, put + kind, count).code(elements) for kind in OF_ENTRIES}
    ask = "ask_weights" if width * itemsize >= LINE else "ask"
    kinds["ask"] = _of_rule(rule_name, ask, count).code(elements)
    if width == 1 and not get_rule(rule_name).average:
        kinds["marked"] = _of_rule(rule_name, put + "marked", count).code(cut_neighbours(itemsize))
    kinds["hash_sort"] = _of_rule(rule_name, put + "hash_sort", count).code(
        cut_sums(width, itemsize, far_state=far_state)
    )
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
