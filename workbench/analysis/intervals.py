"""Intervals of measured numbers of a row: the number and its interval, from the rounds of its configuration."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from workbench.measure.posterior import Candidate, Trial, severity_of
from workbench.measure.rounds import mean_interval

DISTURBED = "disturbed"
"""The name in `round_values` of the rounds that were disturbed."""
MIB = 2**20
MEMORY_SHARE = 0.02
"""Memory is never known better than to this share, nor than to 1 MiB: so far apart are runs alike in everything."""
ONCE = "measured once"
COMPUTED = "computed, not measured"


class Interval(NamedTuple):
    """A number with the interval it is known to; `why` is empty, or says why there is no interval."""

    value: float
    low: float
    high: float
    why: str


def interval_of(row: Mapping[str, Any], measure: str) -> Interval | None:
    """Return the interval of a measure in a pooled record; None if the record has no such number.

    Seconds of a step: the estimate that verdicts are made of (`estimates`), where the record was pooled with others;
    else as of `measured_interval_of`.
    """
    member = row.get("member") if measure == "seconds_step" else None
    return (member.estimate if member else None) or measured_interval_of(row, measure)


def shown_value(row: Mapping[str, Any], measure: str) -> float | None:
    """Return the value of a measure that is shown of a pooled record: that of `interval_of`; None if it has none."""
    known = interval_of(row, measure)
    return None if known is None else known.value


def measured_interval_of(row: Mapping[str, Any], measure: str) -> Interval | None:
    """Return the interval of a measure as it was measured; None if the record has no such number.

    Times: mean of the rounds of its run with 95 % interval. Bytes: at least 1 MiB and 2 % to either side. Predicted or
    once measured numbers have equal bounds, and `why` says so.
    """
    value = number_or_none(row.get(measure))
    if value is None:
        return None
    if "predicted" in measure:
        return Interval(value, value, value, COMPUTED)
    values = values_of(row, measure)
    if measure.startswith("bytes"):
        return _memory(value, list(values.values()))
    here = [seconds for place, seconds in values.items() if place[0] == str(row.get("run")) and seconds > 0]
    if len(here) < 2:
        return Interval(value, value, value, ONCE)
    mean = mean_interval(here)
    return Interval(mean.value, mean.low, mean.high, "")


def _memory(value: float, rounds: list[float]) -> Interval:
    """Return the interval of a size in bytes around `value`.

    To either side it has 1 MiB, 2 % or half the range of the `rounds`, whichever is largest; never below 0.
    """
    half = max(MIB, MEMORY_SHARE * value, (max(rounds, default=value) - min(rounds, default=value)) / 2)
    return Interval(value, max(value - half, 0.0), value + half, "")


def values_of(row: Mapping[str, Any], measure: str) -> dict[tuple[str, int], float]:
    """Return {(run, round): value} of a measure in a pooled record; {} for a record that was not pooled.

    Of columns whose names begin with "seconds" only undisturbed rounds are returned.
    """
    values = row.get("round_values") or {}
    known = values.get(measure) or {}
    if not measure.startswith("seconds"):
        return known
    disturbed = values.get(DISTURBED) or {}
    return {place: value for place, value in known.items() if place not in disturbed}


def trials_of(row: Mapping[str, Any], measure: str, candidate: Candidate) -> list[Trial[Candidate]]:
    """Return the trials of a pooled record in a column of seconds, disturbed ones included, named `candidate`.

    A record with status "timeout" and no rounds gives one trial of the time that it reached.
    """
    values = row.get("round_values") or {}
    disturbed, processes = values.get(DISTURBED) or {}, values.get("process") or {}
    others = values.get("busy_others") or {}
    found = [
        Trial(
            candidate,
            value,
            place[0],
            place[1],
            place in disturbed,
            processes.get(place),
            severity_of(others.get(place)),
        )
        for place, value in (values.get(measure) or {}).items()
        if value > 0
    ]
    if not found and row.get("status") == "timeout" and (value := number_or_none(row.get(measure))):
        return [Trial(candidate, value, str(row["run"]), row["round"] or 0)]
    return found


def number_or_none(value: Any) -> float | None:
    """Return `value` as a float; None for None, NaN, pandas.NA and everything that is not a number."""
    return None if value is None or value != value or not isinstance(value, int | float | np.number) else float(value)
