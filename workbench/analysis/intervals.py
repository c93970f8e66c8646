"""Intervals for medians, and what is known of one measured number in one row."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from workbench.measure.stats import median_interval

__all__ = ["Interval", "interval_of", "known", "median_interval"]


class Interval(NamedTuple):
    """A number with the interval it is known to; `why` is empty, or says why the interval is not a 95 % one."""

    value: float
    low: float
    high: float
    why: str


def interval_of(row: Mapping[str, Any], measure: str) -> Interval | None:
    """The interval of one measure in a row, None where the row has no such number.

    The columns `<measure>_low` and `<measure>_high` where the row has them, else the range of its rounds, else the
    number itself with `why` saying that it was measured once.
    """
    value = known(row.get(measure))
    if value is None:
        return None
    low, high = known(row.get(f"{measure}_low")), known(row.get(f"{measure}_high"))
    if low is not None and high is not None:
        return Interval(value, low, high, "")
    rounds = (row.get("round_values") or {}).get(measure, ())
    if len(rounds) > 1:
        return Interval(value, min(rounds), max(rounds), f"range of {len(rounds)} rounds")
    return Interval(value, value, value, "computed, not measured" if "predicted" in measure else "measured once")


def known(value: Any) -> float | None:
    """The number, or None for null, NaN and pandas' NA."""
    return None if value is None or value != value or not isinstance(value, int | float | np.number) else float(value)
