"""The vector code of update rules: a row's step, and the row loops of the dense, lazy and fused kernels."""

from collections.abc import Callable

from kernels.lanes import AHEAD

CHUNK = 4096
"""Elements of a dense update that are one row of its loop."""


def step(rule, lane, row, arrays: tuple, gradient: Callable, settings: tuple, ahead=None) -> None:
    """Change `row` of `arrays`, the weights and states, by the vectors that `gradient(j)` has from column `j` on.

    Where a row `ahead` is given, it is asked for from memory.
    """
    if rule.average:
        _step_by_row(rule, lane, row, arrays, gradient, settings, ahead)
        return

    def block(j, _):
        for array in arrays if ahead is not None else ():
            array.row(ahead, j).prefetch()
        vectors = gradient(j)
        places = [array.row(row, j) for array in arrays]
        old = [place.load() for place in places]
        new = [rule.formula(*values, *settings) for values in zip(*old, vectors, strict=True)]
        for place, changed in zip(places, zip(*new, strict=True), strict=True):
            place.store(changed)

    lane.blocks(block)


def _step_by_row(rule, lane, row, arrays: tuple, gradient: Callable, settings: tuple, ahead) -> None:
    """`step` with one state a row: a pass for the mean and one for the step. A row of one tile is read only once."""
    weights, *states = arrays
    kept: list = []
    for state in states if ahead is not None else ():
        state.prefetch(ahead)

    def read(j) -> list:
        if not kept or lane.cut.full is not None:
            kept[:] = zip(weights.row(row, j).load(), gradient(j), strict=True)
        return kept

    def add(j, sums):
        if ahead is not None:
            weights.row(ahead, j).prefetch()
        return [sums[0] + lane.total([rule.average(w, g, *settings) for w, g in read(j)])]

    mean = lane.blocks(add, [lane.number(0)])[0] / lane.width.to_float()
    old = [state[row] for state in states]

    def apply(j, _):
        new = [rule.formula(w, *old, g, mean, *settings) for w, g in read(j)]
        weights.row(row, j).store([w for w, *_ in new])
        return new[0][1:]

    for state, changed in zip(states, lane.blocks(apply, old), strict=True):
        state[row] = changed


def _ahead(lane, u, rows):
    return rows[(u + AHEAD).least(rows.last)] if lane.cut.far_state else None


def dense(rule) -> Callable:
    """A chunk of flat arrays; a row where the rule has a state for each."""
    count = len(rule.written)

    def row(lane, u, *args):
        arrays, gradient, settings = args[:count], args[count], args[count + 1 :]
        step(rule, lane, u, arrays, lambda j: gradient.row(u, j).load(), settings)

    def chunk(lane, u, *args):
        start = u * CHUNK
        lane.width = (args[0].last + 1 - start).least(lane.integer(CHUNK))
        arrays = [array.moved(start) for array in args[: count + 1]]
        nought = lane.integer(0)
        step(rule, lane, nought, arrays[:-1], lambda j: arrays[-1].row(nought, j).load(), args[count + 1 :])

    return row if rule.average else chunk


def lazy(rule) -> Callable:
    """Row `rows[u]`, by the gradient's row `u`."""
    count = len(rule.written)

    def row(lane, u, *args):
        rows, gradient = args[count : count + 2]
        ahead = _ahead(lane, u, rows)
        step(rule, lane, rows[u], args[:count], lambda j: gradient.row(u, j).load(), args[count + 2 :], ahead)

    return row


def fused(rule) -> Callable:
    """Row `columns[u]`, by the sum over the entries of that column."""
    count = len(rule.written)

    def row(lane, u, *args):
        columns, segments, rows, permutation, data, g = args[count : count + 6]

        def gradient(j) -> list:
            return lane.sum(
                segments[u], segments[u + 1], lambda k: (data[permutation[k]], g.row(rows[k], j)), rows.last
            )

        step(rule, lane, columns[u], args[:count], gradient, args[count + 6 :], _ahead(lane, u, columns))

    return row
