"""Quality beside speed: what a training came to on held-out rows, how long it took to a given one, what updates change.

All of it is of rows that trained epochs. The target is what the slowest-moving honest side comes to: the dense baseline
with a standard update, less 1 %; a configuration that never gets there has no time, however fast its steps are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.analysis import cells
from workbench.analysis.curves import NEAR, SMALLER
from workbench.analysis.intervals import known
from workbench.analysis.worse import beside_standard

Row = Mapping[str, Any]


class Target(NamedTuple):
    """A value of a measure on held-out rows to be reached; of a loss less is better."""

    measure: str
    value: float

    @property
    def is_loss(self) -> bool:
        """Whether the measure is a loss, of which less is better."""
        return self.measure in SMALLER


class Trained(NamedTuple):
    """A row that trained epochs: seconds of training, quality at the end, seconds to the target, None where never."""

    row: Row
    seconds: float
    quality: float
    reached: float | None


class Moved(NamedTuple):
    """Difference of an update from the standard one: last loss and quality less those of the standard one."""

    row: Row
    standard: Row
    loss: float | None
    quality: float | None


def trained(rows: Iterable[Row]) -> list[Trained]:
    """The rows that have a quality and the time of their epochs, by time, rising. O(rows * points)."""
    able = [row for row in rows if row["status"] == "ok" and row["epochs"] and known(row["quality"]) is not None]
    timed = [(row, seconds) for row in able if (seconds := _seconds(row)) is not None]
    goal = target(able)
    found = [Trained(row, seconds, float(row["quality"]), _reached(row, goal)) for row, seconds in timed]
    return sorted(found, key=lambda one: one.seconds)


def _seconds(row: Row) -> float | None:
    points = row["quality_curve"] or ()
    told = known(points[-1].get("seconds")) if points else None
    epoch = known(row["seconds_epoch"])
    return told if told is not None else None if epoch is None else epoch * row["epochs"]


def target(rows: Sequence[Row]) -> Target | None:
    """Result of dense, less 1 % of it: a loss on held-out rows where its points have one, else quality."""
    dense = [row for row in cells.dense_rows(rows) if row["quality_curve"]]
    if not dense:
        return None
    last = dense[0]["quality_curve"][-1]
    measure = next((name for name in SMALLER if known(last.get(name)) is not None), dense[0]["quality_name"])
    ends = [value for row in dense if (value := known(row["quality_curve"][-1].get(measure))) is not None]
    if not ends or not measure:
        return None
    worst = max(ends) if measure in SMALLER else min(ends)
    return Target(measure, worst + NEAR * abs(worst) if measure in SMALLER else worst - NEAR * abs(worst))


def _reached(row: Row, goal: Target | None) -> float | None:
    for point in (row["quality_curve"] or ()) if goal else ():
        value = known(point.get(goal.measure)) if goal else None
        if value is not None and goal and (value <= goal.value if goal.is_loss else value >= goal.value):
            return known(point.get("seconds"))
    return None


def frontier(found: Sequence[Trained]) -> list[Trained]:
    """Points of which none other is both as fast and better, by time, rising. O(n log n)."""
    best: list[Trained] = []
    for one in sorted(found, key=lambda one: (one.seconds, -one.quality)):
        if not best or one.quality > best[-1].quality:
            best.append(one)
    return best


def moved(rows: Iterable[Row]) -> list[Moved]:
    """Differences of each lazy and exact update from the standard one, of trainings that are alike otherwise."""
    return [
        Moved(row, fair, _less(row, fair, "loss_last"), _less(row, fair, "quality"))
        for row, fair in beside_standard(rows)
    ]


def _less(row: Row, fair: Row, name: str) -> float | None:
    value, other = known(row[name]), known(fair[name])
    return None if value is None or other is None else value - other
