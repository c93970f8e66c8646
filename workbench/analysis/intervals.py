"""Intervals for medians, and what is known of one measured number in one row."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Interval(NamedTuple):
    """A number with the interval it is known to; `why` is empty, or says why the interval is not a 95 % one."""

    value: float
    low: float
    high: float
    why: str


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """(median, low, high): the interval between two ranks of the samples that holds the true median.

    It assumes no distribution: how many of n samples lie below the median is binomial(n, 1/2), and the ranks are the
    innermost with at least `confidence`. Below six samples no ranks reach 95 %: smallest and largest are returned,
    which hold the median with probability 1 - 2**(1 - n). Same unit as the samples. O(n log n). ValueError without
    samples or where one is not finite.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if ordered.size == 0 or not np.isfinite(ordered).all():
        raise ValueError(f"a median needs finite samples; got {ordered.size} samples, {np.isnan(ordered).sum()} NaN")
    rank = max(int(stats.binom.ppf((1 - confidence) / 2, ordered.size, 0.5)), 1)
    return float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[-rank])


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
