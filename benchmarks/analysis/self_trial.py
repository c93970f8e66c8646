"""Findings of the self-trial, from its rows: the newest outcome of each, what was wanted, and whether it was met."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from benchmarks import tables
from workbench.analysis.configurations import records

Record = Mapping[str, Any]

SURE_IS_RIGHT = "statements of 99 to 100 % are right"
HELD = "the 95 % interval holds the true ratio, all ratios"
EQUALS = "equals are told apart at 99 %"
"""What some outcomes are called, as the parts that simulate write it."""


class Criterion(NamedTuple):
    """One line of the table: what, next to what, wanted, measured with its interval, and whether it is met or None."""

    part: str
    what: str
    condition: str
    wanted: str
    measured: str
    met: bool | None


def newest_outcomes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame of the newest record per (machine, key); `frame` is in the order written."""
    newest = {(row["machine"], row["key"]): row for row in records(frame)}
    return tables.SELF.frame(newest.values())


def criteria(frame: pd.DataFrame) -> list[Criterion]:
    """Return the newest outcomes that have a target or failed, in the order written.

    `frame` holds outcome records (`tables.SELF`), in the order written.
    """
    return [
        _criterion(row) for row in records(newest_outcomes(frame)) if row["met"] is not None or row["status"] != "ok"
    ]


def other_outcomes(frame: pd.DataFrame) -> list[Criterion]:
    """Return the newest outcomes without a target that did not fail, in the order written.

    `frame` holds outcome records (`tables.SELF`), in the order written.
    """
    return [_criterion(row) for row in records(newest_outcomes(frame)) if row["met"] is None and row["status"] == "ok"]


def meaning(frame: pd.DataFrame) -> str:
    """Return what the outcomes mean for a reader of answers, in one sentence; "" before any was simulated.

    `frame` holds outcome records (`tables.SELF`), in the order written.
    """
    rows = [row for row in records(newest_outcomes(frame)) if row["share"] is not None]
    sure = [row for row in rows if row["what"] == SURE_IS_RIGHT]
    held = [100 * row["share"] for row in rows if row["part"] == "coverage" and row["what"].startswith(HELD)]
    equals = [100 * row["share"] for row in rows if row["what"] == EQUALS]
    said = []
    if sure:
        said.append(
            f"Of {sure[-1]['count']:,} answers that were stated with more than 99 % certainty, "
            f"{math.floor(1000 * sure[-1]['share']) / 10:g} % named the faster side"
        )
    if held:
        least, most = (f"{end:.0f}" for end in (min(held), max(held)))
        said.append(f"an interval called 95 % held the true ratio in {least} to {most} % of the cases")
    if equals:
        said.append(f"of two that are equally fast one was called faster with that certainty in {max(equals):.1f} %")
    return f"What this means for you: {'; '.join(said)}." if said else ""


def _criterion(row: Record) -> Criterion:
    """Return a record as a table line: target, measured value, and whether it is met (None: no target)."""
    return Criterion(row["part"], row["what"], row["condition"], format_target(row), format_measured(row), row["met"])


def format_target(row: Record) -> str:
    """Return the target of an outcome record as text; "" if there is none.

    >>> format_target({"wanted_low": 0.93, "wanted_high": 0.97, "ratio": None, "truth": None, "part": "coverage"})
    '93 to 97 %'
    """
    low, high = row["wanted_low"], row["wanted_high"]
    if low is not None and high is not None:
        return f"{_percent(low)} to {_percent(high)} %"
    if low is not None:
        return f"at least {_percent(low)} %" if low < 1 else "all"
    if high is not None:
        return f"at most {_percent(high)} %"
    if row["part"] in ("slow", "panel") and row["truth"] is not None:
        return "1 x" if row["truth"] == 1 else f"up to {row['truth']:.2f} x"
    return "flagged, or not slowed" if row["part"] == "threshold" else ""


def format_measured(row: Record) -> str:
    """Return the measured value of an outcome record with its interval; its reason if it failed.

    >>> row = {"status": "ok", "share": 0.95, "low": 0.94, "high": 0.96, "hits": 95, "count": 100, "ratio": None}
    >>> format_measured(row)
    '95.0 % (94.0 to 96.0), 95 of 100'
    """
    if row["status"] != "ok":
        return row["reason"]
    if row["ratio"] is not None:
        flagged = f"; {row['hits']} of {row['count']} flagged" if row["count"] else ""
        return f"{row['ratio']:.2f} x ({row['low']:.2f} to {row['high']:.2f}){flagged}"
    low, share, high = (100 * row[name] for name in ("low", "share", "high"))
    return f"{share:.1f} % ({low:.1f} to {high:.1f}), {row['hits']:,} of {row['count']:,}"


def _percent(share: float) -> str:
    """Return a fraction in per cent with three significant digits, without the sign, such as "12.5"."""
    return f"{100 * share:.3g}"
