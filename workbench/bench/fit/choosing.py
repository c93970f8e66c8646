"""Choices among trainings that were tried: the target, the setting that is soonest there, who runs rounds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.bench.fit.judge import is_reached, target_of
from workbench.measure.rounds import LOOKS, ratio_of

RIVALS = 3
"""Rivals that run rounds: those that were soonest at the target when settings were tried."""
ROUNDS_MOST = LOOKS[-1]
NARROW = 1.5
"""The ends of the interval of a ratio, by each other, from which on no further rounds are run for it."""
NEARLY = 1.25
"""Seconds by those of the soonest of a side, up to which another may turn out to be the soonest."""

Row = dict[str, Any]
Best = tuple[float, Row, float]
"""Seconds to the target, the setting, and the number of the point."""


@dataclass
class Training:
    """One training as its process told of it."""

    number: int
    points: list[list[float]] = field(default_factory=list)
    columns: Row = field(default_factory=lambda: {"status": "ok", "reason": ""})


def curve_columns(training: Training, facts: Row) -> Row:
    """The columns of a training that follow from its points; what was cut off for time has those before."""
    curve = [[seconds, value if is_finite(value) else None, number] for seconds, value, number in training.points]
    best = max if facts.get("larger_is_better") else min
    value_best = best((point[1] for point in curve if point[1] is not None), default=None)
    return training.columns | {"curve": curve, "value_best": value_best}


def is_finite(value: float | None) -> bool:
    """Whether it is a number."""
    return value is not None and math.isfinite(value)


def is_end(row: Row) -> bool:
    """Whether no setting of the contender is tried after this row: it cannot take part, or not one point came."""
    return row["status"] in ("memory", "unsupported") or (row["status"] in ("timeout", "failed") and not row["curve"])


def target_among(rows: Sequence[Row]) -> tuple[float, bool]:
    """The value to reach and whether larger is better: within 1 % of the best of all rows (NaN without any).

    Where ours or the rivals do not come so far, it is within 1 % of the best that both come to.
    """
    known = [row for row in rows if row["value_best"] is not None]
    larger = any(row["larger_is_better"] for row in known)
    better, worse = (max, min) if larger else (min, max)
    sides = {row["side"] for row in known}
    each = [better(row["value_best"] for row in known if row["side"] == side) for side in sides]
    best = better(each, default=float("nan"))
    common = worse(each, default=float("nan"))
    target = target_of(best, larger)
    return (target if is_reached(common, target, larger) else target_of(common, larger)), larger


def reached_at(points: Sequence[Sequence[float]], target: float, larger_is_better: bool) -> Sequence[float] | None:
    """The first point that is as good as the target: seconds, value, number; None where none is."""
    return next(
        (point for point in points if point[1] is not None and is_reached(point[1], target, larger_is_better)), None
    )


def in_rounds(best: Mapping[str, Best], is_ours: Mapping[str, bool]) -> list[str]:
    """Contenders that run rounds: all of ours, and of rivals the `RIVALS` that were soonest."""
    rivals = sorted((name for name in best if not is_ours[name]), key=lambda name: best[name][0])
    return [name for name in best if is_ours[name] or name in rivals[:RIVALS]]


def in_more_rounds(seconds: Mapping[str, Mapping[int, float]], is_ours: Mapping[str, bool]) -> list[str]:
    """Contenders that run further rounds, from their seconds by round: who may be the soonest of either side, while the
    interval of their ratio is wider than `NARROW`, up to `ROUNDS_MOST` rounds.

    >>> is_ours = {"ours": True, "slow": False, "fast": False}
    >>> known = {"ours": {0: 1.0, 1: 1.1}, "slow": {0: 9.0, 1: 9.0}, "fast": {0: 3.0, 1: 2.0}}
    >>> in_more_rounds(known, is_ours)
    ['ours', 'fast']
    >>> in_more_rounds({name: dict.fromkeys(range(6), each[0]) for name, each in known.items()}, is_ours)
    []
    """
    medians = {name: float(np.median(list(each.values()))) for name, each in seconds.items() if each}
    sides = [[name for name in medians if is_ours[name] == side] for side in (True, False)]
    if not all(sides):
        return []
    ours, rival = (min(names, key=lambda name: medians[name]) for names in sides)
    by_run = ({("", number): value for number, value in seconds[name].items()} for name in (rival, ours))
    ratio = ratio_of(*by_run)
    if ratio is not None and (ratio.high <= NARROW * ratio.low or ratio.rounds >= ROUNDS_MOST):
        return []
    near = {ours: NEARLY * medians[ours], rival: NEARLY * medians[rival]}
    return [name for name in medians if medians[name] <= near[ours if is_ours[name] else rival]]


def soonest(rows: Sequence[Row], target: float, larger_is_better: bool) -> Best | None:
    """(seconds, setting, number of the point) that reached the target in the least time; None where none did."""
    found = [(reached_at(row["curve"] or [], target, larger_is_better), row["setting"]) for row in rows]
    reached = [(point[0], setting, point[2]) for point, setting in found if point]
    return min(reached, key=lambda each: each[0]) if reached else None
