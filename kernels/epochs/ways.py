"""Ways in which an epoch treats the rows of weights and states that a batch does not touch.

lazy        nothing
standard    they are stepped as well, by a gradient of zero: a dense step of all rows for every batch
coast, coast_pair, settle, replay
            nothing until a batch touches them; before it is scored they then catch up on what they have missed:
            by the product of the matrices of those steps, of one number or four; by the last of those steps; or by
            each of them. What they come to is what standard makes of them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernels.code_cache import inlined
from kernels.contract import KernelError
from kernels.epochs.programs import Programs
from kernels.epochs.touched import owner_of
from kernels.registry import unknown_name
from kernels.rules.missed import number_between, pair_between
from kernels.rules.rule import Rule
from kernels.vector.lanes import emit_row

ALL = np.uint64(0)
"""Columns of a group, where there is one owner."""


class Lag(NamedTuple):
    """Lag of rows: the number of the step that each has `last` had or caught up on, plus one [D]; `missed`,
    the settings of steps from number `first` on, or the tree of their matrices; `now`, the number of the first step."""

    last: np.ndarray
    missed: np.ndarray
    first: int
    now: int


def ways_of(rule: Rule) -> list[str]:
    """Return the names of the update strategies ("lazy", "standard", "coast", ...) that epochs of a rule support."""
    coasts = rule.coast is not None
    could = {"coast": coasts, "coast_pair": coasts and len(rule.states) == 1 and not rule.average}
    could |= {"settle": rule.settles, "replay": rule.replays and not rule.average}
    return ["lazy", "standard", *(way for way, can in could.items() if can)]


def check_way(rule: Rule, way: str) -> None:
    """Raise KernelError if an update rule does not support the strategy `way`."""
    if way not in (known := ways_of(rule)):
        raise KernelError(unknown_name(f"strategy of an epoch of {rule.name}", way, known))


def catches_up(way: str) -> bool:
    """Return whether a strategy defers the updates of inactive rows and applies them later."""
    return way not in ("lazy", "standard")


def is_dense(way: str) -> bool:
    """Return whether a strategy updates all rows in each batch."""
    return way == "standard"


@inlined
def _nothing_before(owner, parts, group, rows, order, arrays, lag, step):
    """Do nothing before a batch: inactive rows are left unchanged."""


@inlined
def _nothing_after(part, parts, whole, units, width, settings, at):
    """Do nothing after a batch: inactive rows are left unchanged."""


def make_before(programs: Programs) -> Callable:
    """Return a compiled function: applies the missed updates of a batch's columns that one part owns."""
    if not catches_up(programs.way):
        return _nothing_before
    catch_up = _CATCH_UP[programs.way](programs.untouched)

    def before(owner, parts, group, rows, order, arrays, lag, step):
        last, missed, begin, start = lag
        now = start + step
        for place in range(order.size):
            row = np.uint64(order[place])
            for k in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + np.uint64(1)])):
                column = np.int64(rows.indices[k])
                if owner_of(column, group, parts) == np.uint64(owner):
                    since = max(last[np.uint64(column)], begin)
                    if since < now:
                        catch_up(column, since - begin, now - begin, missed, arrays)
                    last[np.uint64(column)] = now + 1

    return inlined(before)


def _make_coast(program: str) -> Callable:
    """Return a compiled function that applies the missed zero-gradient steps of one row in closed form, by a scalar
    factor.
    """

    def coast(column, start, stop, missed, arrays):
        emit_row(program, column, arrays[0].shape[1], (number_between(missed, start, stop), *arrays))

    return inlined(coast)


def _make_coast_pair(program: str) -> Callable:
    """Return a compiled function that applies the missed zero-gradient steps of one row by a 2 x 2 matrix
    (momentum).
    """

    def coast_pair(column, start, stop, missed, arrays):
        emit_row(program, column, arrays[0].shape[1], (*pair_between(missed, start, stop), *arrays))

    return inlined(coast_pair)


def _make_settle(program: str) -> Callable:
    """Return a compiled function that applies the last missed step of one row, to which all missed ones amount."""

    def settle(column, start, stop, missed, arrays):
        emit_row(program, column, arrays[0].shape[1], (stop - 1, missed, *arrays))

    return inlined(settle)


def _make_replay(program: str) -> Callable:
    """Return a compiled function that repeats the missed steps start to stop - 1 of one row, one by one."""

    def replay(column, start, stop, missed, arrays):
        emit_row(program, column, arrays[0].shape[1], (start, stop, missed, *arrays))

    return inlined(replay)


_CATCH_UP = {"coast": _make_coast, "coast_pair": _make_coast_pair, "settle": _make_settle, "replay": _make_replay}


def make_after(programs: Programs) -> Callable:
    """Return a compiled function: a part's share of the dense update of all rows.

    `whole` are weights, states and the gradient, flat where the rule has a number for each element, of so many `units`.
    """
    if not is_dense(programs.way):
        return _nothing_after
    dense = programs.untouched

    def after(part, parts, whole, units, width, settings, at):
        first, last = units * part // parts, units * (part + 1) // parts
        emit_row(dense, first, width, (last, *whole, settings, at))

    return inlined(after)
