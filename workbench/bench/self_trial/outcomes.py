"""Outcomes: what a part of the self-trial found, as rows of the table `store.SELF`."""

import time
from pathlib import Path
from typing import Any

from workbench import store
from workbench.measure import machine
from workbench.measure.rounds import Ratio
from workbench.measure.stats import share_interval


class SelfTrialError(ValueError):
    """A part of the self-trial cannot be done; the message says what to do first."""


def outcome(part: str, what: str, condition: str, **known: Any) -> dict[str, Any]:
    """A row of an outcome, other columns as given."""
    own = {"key": f"{part}: {what}; {condition}", "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "status": "ok"}
    own |= {"part": part, "what": what, "condition": condition, "machine": machine.machine_id()}
    return store.SELF.new_row(**own | {"versions": machine.versions()} | known)


def counted(
    part: str, what: str, condition: str, hits: int, count: int, wanted: tuple[float | None, float | None], **known: Any
) -> dict[str, Any]:
    """The outcome of a share: `hits` of `count`, of which at least and at most `wanted` (shares, or None) should be."""
    low, high = wanted
    columns = {"hits": int(hits), "count": int(count), "wanted_low": low, "wanted_high": high}
    if not count:
        reason = "There was none that could be counted."
        return outcome(part, what, condition, status="failed", reason=reason, **columns, **known)
    share, least, most = share_interval(int(hits), int(count))
    is_met = None if low is None and high is None else (low or 0.0) <= share <= (1.0 if high is None else high)
    columns |= {"share": share, "low": least, "high": most, "met": is_met}
    return outcome(part, what, condition, **columns, **known)


def compared(part: str, what: str, condition: str, ratio: Ratio | None, **known: Any) -> dict[str, Any]:
    """The outcome of a ratio with its interval; failed where there is none."""
    if ratio is None:
        reason = "No round has both sides."
        return outcome(part, what, condition, status="failed", reason=reason, **known)
    columns = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "rounds": ratio.rounds}
    return outcome(part, what, condition, **columns, **known)


def append(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Add outcomes to the file of a folder of results."""
    for row in rows:
        store.SELF.append(folder / store.SELF.file, row)
