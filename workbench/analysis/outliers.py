"""Rounds that lie off, cells to doubt and cells without a result: what a reader looks at before he believes a chart."""

import math
import statistics
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from workbench.analysis import cells, doubts, words
from workbench.analysis.intervals import values_of
from workbench.measure.rounds import LOOKS

FAR = 3.5
"""A round that lies so many deviations from the median lies off (Iglewicz and Hoaglin 1993, by median deviations)."""
NORMAL = 1.4826
"""The standard deviation of a normal law over its median deviation."""
LEAST = 0.01
"""The least deviation that is believed, as a share."""


class Outlier(NamedTuple):
    """What lies off: the pooled row of the cell, which round of which run ("" where it is all of them), and why."""

    row: cells.Row
    place: str
    reason: str


def outliers(rows: Iterable[cells.Row]) -> list[Outlier]:
    """Those of pooled rows, cells without a result first, then in the order of the rows. O(rows * rounds)."""
    rows = list(rows)
    lost = [row for row in rows if row["status"] not in cells.NUMBERED]
    found = [Outlier(row, "", f"{row['status']}: {row['reason'] or 'no reason given'}") for row in lost]
    for row in rows:
        if row["status"] in cells.NUMBERED:
            found += [Outlier(row, "", doubt) for doubt in _doubts(row)]
            found += [Outlier(row, place, reason) for place, reason in rounds_off(row)]
    return found


def _doubts(row: cells.Row) -> Iterator[str]:
    if row["status"] == "disturbed":
        yield f"disturbed: {row['reason'] or 'other programs were at work'}"
    yield from doubts.of_row(row)


def rounds_off(row: cells.Row) -> Iterator[tuple[str, str]]:
    """The rounds of a pooled row that lie off the others of their run, each with how far; of four rounds or more."""
    runs: dict[str, dict[int, float]] = {}
    for (run, number), seconds in values_of(row, "seconds_step").items():
        if seconds > 0:
            runs.setdefault(run, {})[number] = math.log(seconds)
    for run, logs in runs.items():
        if len(logs) < LOOKS[0]:
            continue
        middle = statistics.median(logs.values())
        deviation = max(NORMAL * statistics.median(abs(log - middle) for log in logs.values()), LEAST)
        for number, log in sorted(logs.items()):
            if abs(log - middle) > max(FAR * deviation, math.log(1 + doubts.SPREAD)):
                times = words.number(math.exp(log - middle), 2)
                yield f"round {number + 1} of {run}", f"took {times} times the median of its {len(logs)} rounds"
