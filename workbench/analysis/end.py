"""From a file to predictions: what each candidate takes to the same held-out loss, warm and cold."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.analysis import formatting
from workbench.analysis.pool import group_by

TOLERANCE = 0.02
"""Share by which the held-out loss may be above the best that any candidate reached."""
STARTS = ("warm", "cold")

Record = Mapping[str, Any]


class Taken(NamedTuple):
    """What a candidate takes from a start: the run of median seconds of `runs`, whose extremes are low and high."""

    record: Record
    low: float
    high: float
    runs: int


def within(loss: float, best: float) -> bool:
    """Return whether a held-out loss is at most 2 % above the best one."""
    return loss <= best * (1 + TOLERANCE)


def cases_of(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return {case: its records}, ascending in megabytes, then by format name.

    `records` are those of `bench end`.
    """
    ordered = sorted(records, key=lambda record: (record["megabytes"], record["format"]))
    return group_by(ordered, lambda record: record["case"])


def taken(records: Sequence[Record], start: str) -> dict[str, Taken]:
    """Return {candidate: Taken} for start "warm" or "cold", fastest first; candidates that miss the loss are left out.

    The loss to reach is the best of any record, plus 2 %.
    """
    best = min((record["loss"] for record in records if record["loss"] is not None), default=0.0)
    able = [record for record in records if record["start"] == start and record["status"] == "ok"]
    there = [record for record in able if within(record["loss"], best)]
    kept = {name: _median(runs) for name, runs in group_by(there, lambda record: record["candidate"]).items()}
    return dict(sorted(kept.items(), key=lambda item: item[1].record["seconds"]))


def _median(runs: list[Record]) -> Taken:
    """Return the run with the (lower) median of the seconds, with the least and the most."""
    seconds = [run["seconds"] for run in runs]
    middle = statistics.median_low(seconds)
    return Taken(runs[seconds.index(middle)], min(seconds), max(seconds), len(runs))


def ratio(records: Sequence[Record], start: str) -> float | None:
    """Return seconds of the fastest competitor over those of the project; None if either has none at this start.

    `records` are those of one case of `bench end`; `start` is "warm" or "cold".
    """
    own, other = soonest(taken(records, start), "project"), soonest(taken(records, start), "competitor")
    return other.record["seconds"] / own.record["seconds"] if own and other else None


def soonest(found: Mapping[str, Taken], side: str) -> Taken | None:
    """Return the fastest candidate of a side ("project", "competitor") in the result of `taken`; None without one."""
    return next((one for one in found.values() if one.record["side"] == side), None)


def reason_left_out(records: Sequence[Record], candidate: str) -> str:
    """Return why a candidate has no time: the reason of its first failure, or that no setting reaches the loss.

    `records` are those of one case of `bench end`.
    """
    own = [record for record in records if record["candidate"] == candidate]
    if reason := next((record["reason"] for record in own if record["status"] != "ok"), ""):
        return str(reason)
    losses = [record["loss"] for record in own if record["loss"] is not None]
    best = f"; its best is {formatting.format_number(min(losses), 4)}" if losses else ""
    return f"No setting reaches the loss{best}."


def summary(records: Iterable[Record]) -> str:
    """Return the competitor / project ratios of all cases, warm and cold, in one sentence.

    `records` are those of `bench end`.
    """
    parts = []
    for case, own in cases_of(records).items():
        each = [f"{start} {formatting.format_number(value)}" for start in STARTS if (value := ratio(own, start))]
        parts += [f"{case}: {', '.join(each)}"] if each else []
    if not parts:
        return "No case has a time of the project and of a competitor."
    return f"Seconds of the soonest competitor by those of the project: {'; '.join(parts)}."
