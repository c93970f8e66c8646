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

    `records` are those of `benchmarks end`.
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

    `records` are those of one case of `benchmarks end`; `start` is "warm" or "cold".
    """
    own, other = soonest(taken(records, start), "project"), soonest(taken(records, start), "competitor")
    return other.record["seconds"] / own.record["seconds"] if own and other else None


def soonest(found: Mapping[str, Taken], side: str) -> Taken | None:
    """Return the fastest candidate of a side ("project", "competitor") in the result of `taken`; None without one."""
    return next((one for one in found.values() if one.record["side"] == side), None)


def reason_left_out(records: Sequence[Record], candidate: str) -> str:
    """Return why a candidate has no time: the reason of its first failure, or that no setting reaches the loss.

    `records` are those of one case of `benchmarks end`.
    """
    own = [record for record in records if record["candidate"] == candidate]
    if reason := next((record["reason"] for record in own if record["status"] != "ok"), ""):
        return str(reason)
    losses = [record["loss"] for record in own if record["loss"] is not None]
    best = f"; its best is {formatting.format_number(min(losses), 4)}" if losses else ""
    return f"No setting reaches the loss{best}."


def summary(records: Iterable[Record]) -> str:
    """Return sentences on how often the project is faster than the soonest competitor, warm and cold, and how much.

    `records` are those of `benchmarks end`.
    """
    cases = cases_of(records).values()
    each = {start: [value for own in cases if (value := ratio(own, start)) is not None] for start in STARTS}
    parts = [f"{start.capitalize()}, the project is {_gains_text(values)}." for start, values in each.items() if values]
    return " ".join(parts) or "No case has a time of the project and of a competitor."


def _gains_text(values: Sequence[float]) -> str:
    """Return in how many cases the project is faster or slower, and by how much; `values` are competitor / project."""
    sides = {
        "faster than the soonest competitor": [value for value in values if value > 1],
        "slower than the soonest competitor": [1 / value for value in values if value <= 1],
    }
    return ", and ".join(
        f"{side} in {len(some)} of {formatting.format_count(len(values), 'case')}, by {_span(some)} times"
        for side, some in sides.items()
        if some
    )


def _span(values: Sequence[float]) -> str:
    """Return the least and the largest value as text, "1.3 to 1.6", or the only one."""
    return " to ".join(dict.fromkeys(formatting.format_number(bound, 2) for bound in (min(values), max(values))))


def describe_case(records: Sequence[Record]) -> str:
    """Return sentences on the seconds of the project and of the soonest competitor, warm and cold; "" without any.

    `records` are those of one case of `benchmarks end`.
    """
    return " ".join(filter(None, (_describe_start(taken(records, start), start) for start in STARTS)))


def _describe_start(found: Mapping[str, Taken], start: str) -> str:
    """Return a sentence on the soonest of both sides from a start, or on the only side that is there."""
    both = [one for side in ("project", "competitor") if (one := soonest(found, side))]
    if not both:
        return ""
    named = [f"{one.record['candidate']} takes {formatting.format_seconds(one.record['seconds'])}" for one in both]
    value = both[-1].record["seconds"] / both[0].record["seconds"]
    how = f"{formatting.format_number(max(value, 1 / value), 2)} times {'less' if value > 1 else 'more'} than"
    if len(both) == 1:
        return f"{start.capitalize()}, {named[0]}."
    other = both[1].record
    return (
        f"{start.capitalize()}, {named[0]}, {how} {other['candidate']} ({formatting.format_seconds(other['seconds'])})."
    )
