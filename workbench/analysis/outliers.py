"""Rounds that lie off, configurations to doubt and configurations without a result: what a reader looks at before
believing a chart.

What lies off is judged by the noise of the rows themselves: on a shared machine rounds alike in everything differ by
tens of per cent, on a quiet one a tenth is an event.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from workbench.analysis import configurations, formatting, quality_warnings
from workbench.analysis.intervals import values_of
from workbench.measure.posterior import MIN_LOG_SD
from workbench.measure.rounds import INTERIM_ANALYSES

MISTAKEN = 0.05
"""Probability that among rounds of the same normal noise any at all is listed."""
NORMAL, OF_PAIRS = 1.4826, 1.0483
"""The standard deviation of a normal law over its median deviation, and over the median difference of two values."""


class Outlier(NamedTuple):
    """Value that lies off: the pooled row of the configuration, which round of which run ("" for all of them), and
    why."""

    row: configurations.Record
    place: str
    reason: str


def find_outliers(rows: Iterable[configurations.Record]) -> list[Outlier]:
    """Outliers of pooled rows, configurations without a result first, then in the order of the rows.

    O(rows * rounds**2).
    """
    rows = list(rows)
    lost = [row for row in rows if row["status"] not in configurations.NUMBERED]
    found = [Outlier(row, "", f"{row['status']}: {row['reason'] or 'no reason given'}") for row in lost]
    usual, count = usual_deviation_of_records(rows), sum(len(logs) for row in rows for logs in _by_run(row).values())
    drift = math.sqrt(2) * outlier_threshold(count) * usual_deviation_of_records(rows, "seconds_sentinel")
    for row in rows:
        if row["status"] in configurations.NUMBERED:
            off = [Outlier(row, place, reason) for place, reason in outlying_rounds(row, usual, count)]
            found += [
                Outlier(row, "", doubt) for doubt in _record_warnings(row, math.inf if off else usual, drift)
            ] + off
    return found


def outlier_threshold(count: int) -> float:
    """Return the number of deviations from the middle that hardly any of `count` values of a normal law is away."""
    return statistics.NormalDist().inv_cdf(1 - MISTAKEN / 2 / max(count, 1))


def usual_deviation_of_records(rows: Iterable[configurations.Record], measure: str = "seconds_step") -> float:
    """Return the deviation of rounds that is usual among pooled rows, as `usual_deviation` finds it."""
    return usual_deviation(list(logs.values()) for row in rows for logs in _by_run(row, measure).values())


def usual_deviation(runs: Iterable[Sequence[float]]) -> float:
    """Return the standard deviation of a round's logarithm that is usual, from those of each configuration in each run.

    From the median of the differences of two rounds of a configuration, which a few rounds that lie off do not move,
    and the number of rounds neither (Rousseeuw and Croux 1993). `measure.rounds.FLOOR` at least.
    """
    differences = [abs(first - second) for run in runs for first, second in combinations(run, 2)]
    return max(OF_PAIRS * statistics.median(differences), MIN_LOG_SD) if differences else MIN_LOG_SD


def _record_warnings(row: configurations.Record, usual: float, drift: float) -> Iterator[str]:
    """Yield doubts about a row beyond the `usual` deviation of its rounds, and that of the fixed work beside them."""
    if row["status"] == "disturbed":
        yield f"disturbed: {row['reason'] or 'other programs were at work'}"
    yield from quality_warnings.warning_of_spread(row, usual)
    yield from quality_warnings.warnings_of_surroundings(row, drift)


def outlying_rounds(row: configurations.Record, usual: float, count: int) -> Iterator[tuple[str, str]]:
    """Return the rounds of a pooled record that deviate from the others of their run, with their deviations.

    A round is compared with the median of the other ones, by the larger of their deviation and of the `usual` one, and
    so far that among `count` rounds of normal noise one would hardly be.
    """
    far, runs = outlier_threshold(count), _by_run(row)
    for run, logs in runs.items():
        of_run = f" of {run}" if len(runs) > 1 else ""
        for number, log in sorted(logs.items()) if len(logs) >= INTERIM_ANALYSES[0] else ():
            others = [other for place, other in logs.items() if place != number]
            middle = statistics.median(others)
            deviation = max(NORMAL * statistics.median(abs(other - middle) for other in others), usual)
            limit = far * deviation * math.sqrt(1 + math.pi / 2 / len(others))  # the median is uncertain, too
            limit = max(limit, math.log(1 + quality_warnings.SPREAD))
            if abs(log - middle) > limit:
                yield f"round {number + 1}{of_run}", _describe_outlier(log - middle, limit, len(others))


def _describe_outlier(distance: float, limit: float, others: int) -> str:
    """Return the text on a round's distance from the median of the others; arguments are log ratios."""
    times, most = (formatting.format_number(math.exp(value)) for value in (distance, math.copysign(limit, distance)))
    noise = f"{'up' if distance > 0 else 'down'} to {most}"
    return f"took {times} times the median of its {others} other rounds; {noise} times is noise here"


def _by_run(row: configurations.Record, measure: str = "seconds_step") -> dict[str, dict[int, float]]:
    """Return the logarithms of the seconds of a pooled row's rounds, by run."""
    runs: dict[str, dict[int, float]] = {}
    for (run, number), seconds in values_of(row, measure).items():
        if seconds > 0:
            runs.setdefault(run, {})[number] = math.log(seconds)
    return runs
