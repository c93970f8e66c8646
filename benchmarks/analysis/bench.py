"""Benchmark rows: what is known of each configuration and candidate, ratios to competitors, geometric means.

>>> from benchmarks import tables
>>> configuration = {"task": "csr_dense", "shape": "s", "rows": 8, "features": 9, "width": 4, "status": "ok"}
>>> ours = tables.BENCH.new_row(key="a", candidate="csr_dense", side="ours", ratio=1.0, seconds=1e-3, **configuration)
>>> known = {"candidate": "scipy.csr_dense", "side": "competitor", "ratio": 6.0, "seconds": 6e-3}
>>> theirs = tables.BENCH.new_row(key="a", **known, **configuration)
>>> [(ratio.value, ratio.competitor) for ratio in ratios(tables.BENCH.frame([ours, theirs]), "csr_dense")]
[(6.0, 'scipy.csr_dense')]
"""

import math
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from benchmarks import tables
from workbench.analysis import formatting
from workbench.analysis.configurations import group_by, records
from workbench.analysis.intervals import number_or_none

Record = Mapping[str, Any]
CONFIGURATION = (
    *("suite", "task", "shape", "rows", "features", "width", "optimizer", "batches", "dtype", "threads", "machine"),
    *("device", "cache"),
)
"""Columns that rows of one configuration agree in."""

_ONE = (*CONFIGURATION, "candidate", "level", "bytes_table", "bytes_row")
SMALL = "small batch"


class Ratio(NamedTuple):
    """A competitor's time by ours in one configuration, with its interval; above 1 ours is the faster."""

    row: Record
    competitor: str
    value: float
    low: float
    high: float


def newest_records(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the newest record of each candidate and configuration, the last with status "ok" if there is one.

    `frame` is in the order written; the result keeps the order of first appearance.
    """
    by_place: dict[tuple, Record] = {}
    for row in records(frame):
        row["device"] = row["device"] or "cpu"  # rows without it are from when there was no other
        place = tuple(row[name] for name in _ONE)
        if place not in by_place or row["status"] == "ok" or by_place[place]["status"] != "ok":
            by_place[place] = row
    return tables.BENCH.frame(by_place.values())


def group_by_configuration(frame: pd.DataFrame, task: str | None = None) -> list[list[Record]]:
    """Return the newest records of each configuration, one list each, failed ones included.

    Of one `task`, or with None of all tasks except records of the machine itself (no rows of data). `frame` holds
    records of the benchmark suites, in the order written.
    """
    every = records(newest_records(frame))
    own: list[Record] = [row for row in every if row["task"] == task or (task is None and row["rows"])]
    return list(group_by(own, itemgetter(*CONFIGURATION)).values())


def ratios(frame: pd.DataFrame, task: str, competitor: str = "", ours: str = "") -> list[Ratio]:
    """Return fastest competitor / ours for each configuration of a task that has both.

    `competitor` begins the competitor's name. `ours` names this project's candidate, "" for the reference candidate to
    which the stored ratios refer. `frame` holds records of the benchmark suites, in the order written.
    """
    fastest = []
    for rows in group_by_configuration(frame, task):
        able = [row for row in rows if row["status"] == "ok" and number_or_none(row["ratio"]) is not None]
        competitors = [row for row in able if row["side"] == "competitor" and row["candidate"].startswith(competitor)]
        mine = next((row for row in able if row["candidate"] == ours), None) if ours else None
        if not competitors or (ours and mine is None):
            continue
        best = min(competitors, key=lambda row: row["ratio"])
        by = mine["ratio"] if mine else 1.0
        ends = [(number_or_none(best[name]) or best["ratio"]) / by for name in ("ratio", "ratio_low", "ratio_high")]
        fastest.append(Ratio(best, best["candidate"], *ends))
    return fastest


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean of positive values; None without any.

    >>> round(geometric_mean([1.0, 4.0]), 9)
    2.0
    """
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def describe_configuration(row: Record) -> str:
    """Return a benchmark configuration as text: shape, rows R and width N, then what else is set.

    That may be the optimizer, batches, device and cache.

    >>> describe_configuration({"shape": "uniform 100k", "rows": 4096, "width": 16, "optimizer": None, "batches": None})
    'uniform 100k, R 4,096, N 16'
    """
    place = f"on {row['device']}" if row.get("device") not in (None, "cpu") else None
    more = [part for part in (row.get("optimizer"), row.get("batches"), place, row.get("cache")) if part]
    return ", ".join([row["shape"], f"R {row['rows']:,}", f"N {row['width']}", *more])


# A target in words, what was measured, and by how much it was missed.


class PerformanceTarget(NamedTuple):
    """A target in words, what was measured, and whether it is met; None if no row says."""

    what: str
    wanted: str
    measured: str
    met: bool | None


def met_sentence(targets: Iterable[Any], without: str = "Nothing was measured.") -> str:
    """Return "3 of 5 measured targets are met." for targets with `met` (True, False, None); `without` any measured."""
    met = [each.met for each in targets if each.met is not None]
    return f"{sum(met)} of {len(met)} measured targets are met." if met else without


def target_at_least(what: str, measured: Iterable[Ratio], wanted: float) -> PerformanceTarget:
    """Return the target named `what` that the geometric mean of ratios is at least `wanted`.

    `met` is None, and `measured` says "not measured", without ratios.
    """
    ratios = list(measured)
    mean = geometric_mean(ratio.value for ratio in ratios)
    if mean is None:
        return PerformanceTarget(what, f"≥ {wanted:g} x", "not measured", None)
    over = f"{formatting.format_number(mean)} x over {formatting.format_count(len(ratios), 'configuration')}"
    return PerformanceTarget(what, f"≥ {wanted:g} x", over + _missed_by(mean, wanted), mean >= wanted)


def _missed_by(mean: float, least: float) -> str:
    """Return ", 12 % short" for a mean below `least`, else ""."""
    return "" if mean >= least else f", {formatting.format_number(100 * (1 - mean / least))} % short"
