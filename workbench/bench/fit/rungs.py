"""Time for settings: all are tried for a short time, those that may still matter for longer, by one rule for all.

Successive halving (Jamieson and Talwalkar 2016): of every contender, ours or not, all settings train for the seconds of
the first rung; then the best few for those of the next; then the best. None goes on that has ended by itself, nor one
that at its pace, the gain of its last doubling of time, is out of reach at the end: neither at one more of the targets
by then, nor better than the best of its side by the tightest tolerance. Who goes on is settled when all contenders have
had the rung before, so that it does not matter who is first. In the end none was left before it had `LEAST` times the
seconds of the soonest of its side: who is fastest is not decided by being left.

>>> [(rung.seconds, rung.settings) for rung in rungs(20.0)], [(rung.seconds, rung.settings) for rung in rungs(1.0)]
([(0.4, None), (2.0, 2), (20.0, 1)], [(0.4, None), (1.0, 2)])
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.bench.fit.choosing import Row, soonest, targets_among
from workbench.bench.fit.judge import TOLERANCES, is_reached, target_of

Tried = Mapping[str, Mapping[int, Row]]
"""The newest row of each setting by its number, by the name of the contender."""

FIRST, SECOND = 0.4, (2.0, 2)
"""Seconds of the first rung, which all settings have; of the second, and how many settings of a contender have it."""
AFTER = (2, 1)
"""How many the last rung has that is the second, or the third."""
LEAST = 2.0
"""Seconds of a contender that does not reach the target, by those of the soonest of its side, at least."""
LIMIT = "limit"
"""Why a training ended whose seconds were over; it alone may go on."""


@dataclass(frozen=True)
class Rung:
    """Seconds of training, and how many settings of a contender have them, None for all."""

    seconds: float
    settings: int | None = None


def rungs(seconds: float, first: float | None = None) -> list[Rung]:
    """The rungs up to that time, from those of the first on.

    >>> [rung.seconds for rung in rungs(3.0, first=0.1)], [rung.seconds for rung in rungs(3.0, first=2.5)]
    ([0.1, 2.0, 3.0], [2.5, 3.0])
    """
    first = FIRST if first is None else first
    before = [rung for rung in (Rung(first), Rung(*SECOND)) if first <= rung.seconds < seconds]
    return [*before, Rung(seconds, AFTER[len(before) - 1] if before else None)]


def going_on(tried: Tried, rung: Rung, seconds: float) -> dict[str, list[int]]:
    """The numbers of the settings of each contender that train in a rung; `seconds` are those of the last one."""
    every = [row for rows in tried.values() for row in rows.values() if row["value_best"] is not None]
    return {name: _of_contender(rows, every, rung, seconds) for name, rows in tried.items()}


def _of_contender(rows: Mapping[int, Row], every: Sequence[Row], rung: Rung, seconds: float) -> list[int]:
    able = [number for number, row in rows.items() if row["value_best"] is not None]
    sign = -1.0 if any(row["larger_is_better"] for row in every) else 1.0
    best = sorted(able, key=lambda number: sign * rows[number]["value_best"])[: rung.settings]
    return sorted(number for number in best if may_matter(rows[number], every, seconds))


def may_matter(row: Row, every: Sequence[Row], seconds: float) -> bool:
    """Whether a training that goes on for so many seconds may reach, or move, one of the targets."""
    if row["left"] != LIMIT:
        return False
    larger = bool(row["larger_is_better"])
    best = max if larger else min
    of_all = best(one["value_best"] for one in every)
    of_side = best(one["value_best"] for one in every if one["side"] == row["side"])
    expected = at_pace(row["curve"], seconds, larger)
    if expected is None or is_reached(expected, _beyond(of_side, larger), larger):
        return True
    targets = [target_of(of_all, larger, tolerance) for tolerance in TOLERANCES]
    missed = [target for target in targets if not is_reached(row["value_best"], target, larger)]
    return any(is_reached(expected, target, larger) for target in missed)


def left_early(tried: Tried, seconds: float) -> dict[str, tuple[int, Rung]]:
    """Settings trained on in the end, by contender: the number of its best one, and for how long, up to `seconds`.

    It is of those that did not reach a target and were left before `LEAST` times the seconds of the soonest of their
    side at that target.
    """
    every = [row for rows in tried.values() for row in rows.values()]
    targets, larger = targets_among(every)
    found = {}
    for name, rows in tried.items():
        able = {number: row for number, row in rows.items() if row["value_best"] is not None}
        if not able:
            continue
        number = (max if larger else min)(able, key=lambda number: able[number]["value_best"])
        of_side = [row for row in every if row["side"] == able[number]["side"]]
        missed = [target for target in targets.values() if not soonest(list(able.values()), target, larger)]
        first = [there[0] for target in missed if (there := soonest(of_side, target, larger))]
        needed = min(LEAST * max(first, default=0.0), seconds)
        if able[number]["left"] == LIMIT and able[number]["seconds_rung"] < needed:
            found[name] = number, Rung(needed, 1)
    return found


def _beyond(value: float, larger: bool) -> float:
    """Value that is better by as much as the tightest target may be worse."""
    return value - (target_of(value, larger, TOLERANCES[0]) - value)


def at_pace(curve: Sequence[Sequence[float]], seconds: float, larger: bool) -> float | None:
    """The best value that is to be expected after so many seconds, with the gain of the last doubling of time in each.

    None where there are not two points to tell a pace by.

    >>> at_pace([[1.0, 0.7, 1], [2.0, 0.6, 2]], 8.0, False)
    0.4
    """
    known = [point for point in curve if point[1] is not None]
    if len(known) < 2:
        return None
    best = max if larger else min
    end = known[-1][0]
    before = best([point[1] for point in known if point[0] <= end / 2] or [known[0][1]])
    value = best(point[1] for point in known)
    doublings = math.log2(max(seconds / end, 1.0))
    return round(value + doublings * (value - before), 12)
