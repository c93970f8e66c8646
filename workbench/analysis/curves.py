"""Quality on held-out rows against training seconds: the quality that dense ends with, and when others reach it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from workbench.analysis import configurations
from workbench.analysis.configurations import Record
from workbench.analysis.intervals import number_or_none

SMALLER = ("log loss", "RMSE", "MAE")
"""Measures of which less is better."""
NEAR = 0.01
"""A quality is reached where all but this share of it is."""


class Target(NamedTuple):
    """A value of a measure on held-out rows to be reached; of a loss less is better."""

    measure: str
    value: float

    @property
    def is_loss(self) -> bool:
        """Whether smaller values are better (the measure is one of SMALLER)."""
        return self.measure in SMALLER


class TrainedRecord(NamedTuple):
    """A row that trained epochs: seconds of training, quality at the end, seconds to the target, None if never."""

    row: Record
    seconds: float
    quality: float
    reached: float | None


def trained_records(rows: Iterable[Record]) -> list[TrainedRecord]:
    """Return the records with a quality and a training time, ascending in time, with their time to the common target.

    The target is `quality_target` of these records. O(rows * points). `rows` are pooled records of trainings.
    """
    able = [
        row for row in rows if row["status"] == "ok" and row["epochs"] and number_or_none(row["quality"]) is not None
    ]
    timed = [(row, seconds) for row in able if (seconds := _seconds(row)) is not None]
    target = quality_target(able)
    found = [TrainedRecord(row, seconds, float(row["quality"]), _reached(row, target)) for row, seconds in timed]
    return sorted(found, key=lambda one: one.seconds)


def _seconds(row: Record) -> float | None:
    """Return the training time (s): that of the last curve point, else epochs times `seconds_epoch`.

    None if unknown.
    """
    points = row["quality_curve"] or ()
    seconds = number_or_none(points[-1].get("seconds")) if points else None
    epoch = number_or_none(row["seconds_epoch"])
    return seconds if seconds is not None else None if epoch is None else epoch * row["epochs"]


def quality_target(rows: Sequence[Record]) -> Target | None:
    """Return the worst final value of the dense records, relaxed by 1 %, as the target; None if no dense one has it.

    The measure is a held-out loss if the curves have one, else the quality. `rows` are pooled records of trainings.
    """
    dense = [row for row in configurations.dense_rows(rows) if row["quality_curve"]]
    if not dense:
        return None
    last = dense[0]["quality_curve"][-1]
    measure = next((name for name in SMALLER if number_or_none(last.get(name)) is not None), dense[0]["quality_name"])
    ends = [value for row in dense if (value := number_or_none(row["quality_curve"][-1].get(measure))) is not None]
    if not ends or not measure:
        return None
    worst = max(ends) if measure in SMALLER else min(ends)
    return Target(measure, worst + NEAR * abs(worst) if measure in SMALLER else worst - NEAR * abs(worst))


def _reached(row: Record, target: Target | None) -> float | None:
    """Return the seconds of the first curve point that reaches the target; None if none does or there is no target.

    `row` is a record with `quality_curve`.
    """
    for point in (row["quality_curve"] or ()) if target else ():
        value = number_or_none(point.get(target.measure)) if target else None
        if value is not None and target and (value <= target.value if target.is_loss else value >= target.value):
            return number_or_none(point.get("seconds"))
    return None
