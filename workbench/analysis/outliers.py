"""Rounds that lie off, configurations to doubt and configurations without a result: what a reader looks at before
believing a chart.

What lies off is judged by the noise of the rows themselves: on a shared machine rounds alike in everything differ by
tens of per cent, on a quiet one a tenth is an event.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from workbench.analysis import configurations
from workbench.analysis.formatting import format_bytes, format_count, format_density, format_number
from workbench.analysis.intervals import values_of
from workbench.measure.posterior import MIN_LOG_SD
from workbench.measure.rounds import INTERIM_ANALYSES

# Doubts next to a number: spread of rounds, few rounds, other programs, drift, throttling, swap.


Record = Mapping[str, Any]
SPREAD = 0.1
"""Deviation of a configuration's rounds, as a share, from which on it is reported; also that of the fixed work."""
NOISIER = 2.0
"""Where the noise is known that is usual, a spread is told from so many times that on."""
SLOW = 0.8
"""Frequency of a round by the highest of the configuration below which it is reported."""

OTHERS = "other programs"


def log_spread(row: Record) -> float | None:
    """Return the standard deviation of the log step times of the shown run's rounds; None with fewer than two."""
    logs = _logs(row, "seconds_step")
    return statistics.stdev(logs) if len(logs) > 1 else None


def warnings_of_record(row: Record, usual: float = 0.0) -> Iterator[str]:
    """Yield short warnings about a pooled record: scatter of its rounds, then its surroundings; none without a result.

    `usual` is the standard deviation of log times that is usual, 0 if unknown.
    """
    if row["status"] not in configurations.NUMBERED:
        return
    yield from warning_of_spread(row, usual)
    yield from warnings_of_surroundings(row)


def warnings_of_surroundings(row: Record, drift: float = 0.0) -> Iterator[str]:
    """Yield warnings about other programs and the machine during a pooled record's rounds.

    `drift` is the log ratio up to which the fixed reference work may vary without a warning.
    """
    if row["rounds_disturbed"]:
        yield f"{format_count(row['rounds_disturbed'], 'round')} next to other programs"
    yield from machine_state(row, drift).values()


def warning_of_spread(row: Record, usual: float = 0.0) -> Iterator[str]:
    """Yield a warning if log step times deviate by more than 0.1 and twice the `usual` deviation."""
    deviation = log_spread(row)
    if deviation is not None and deviation > max(SPREAD, NOISIER * usual):
        usual_text = f"; {format_density(usual, 2)} is usual here" if usual else ""
        yield f"rounds spread by {format_density(deviation, 2)}{usual_text}"


def machine_state(row: Record, drift: float = 0.0) -> dict[str, str]:
    """Return {kind: text} of what disturbed the machine during a pooled record's rounds; {} without a result.

    `drift` is the log ratio up to which the fixed reference work may vary.
    """
    return dict(_met(row, drift)) if row["status"] in configurations.NUMBERED else {}


def _met(row: Record, drift: float) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) per disturbance of the machine: drift, other programs, throttling, swapping, frequency."""
    work = _logs(row, "seconds_sentinel")
    if len(work) > 1 and max(work) - min(work) > max(math.log(1 + SPREAD), drift):
        drifted = math.exp(max(work) - min(work))
        yield "drift", f"drift: fixed work next to it took up to {format_number(drifted, 2)} times as long"
    busy = [value for value in values_of(row, "busy_others").values() if value > SPREAD]
    if busy:
        yield OTHERS, f"other programs took up to {format_density(max(busy), 2)} of the cores"
    if throttled := sum(values_of(row, "throttled").values()):
        yield "throttling by heat", f"throttled {format_count(int(throttled), 'time')} by heat"
    if swapped := sum(values_of(row, "bytes_swapped").values()):
        yield "swapping", f"the machine swapped {format_bytes(swapped, 2)} meanwhile"
    hertz = [value for value in values_of(row, "hertz").values() if value > 0]
    if hertz and min(hertz) < SLOW * max(hertz):
        yield (
            "changes of frequency",
            (f"frequency {format_number(min(hertz) / 1e9, 2)} to {format_number(max(hertz) / 1e9, 2)} GHz"),
        )


def _logs(row: Record, measure: str) -> list[float]:
    """Return the natural logs of a column's positive values in the undisturbed rounds of the record's own run.

    `measure` is a column of `row["round_values"]`.
    """
    own = {place: value for place, value in values_of(row, measure).items() if value > 0}
    return [math.log(value) for (run, _), value in own.items() if run == str(row.get("run"))]


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
    """Return the outliers of pooled records: those without a result first, then warnings and outlying rounds.

    `place` of an outlier names the round, "" for the whole record. O(rows * rounds**2).
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
                Outlier(row, "", warning) for warning in _record_warnings(row, math.inf if off else usual, drift)
            ] + off
    return found


def outlier_threshold(count: int) -> float:
    """Return how many standard deviations from the mean one of `count` normal values exceeds with probability 5 %."""
    return statistics.NormalDist().inv_cdf(1 - MISTAKEN / 2 / max(count, 1))


def usual_deviation_of_records(rows: Iterable[configurations.Record], measure: str = "seconds_step") -> float:
    """Return the usual standard deviation of a round's log `measure`, over the rounds of all pooled records."""
    return usual_deviation(list(logs.values()) for row in rows for logs in _by_run(row, measure).values())


def usual_deviation(runs: Iterable[Sequence[float]]) -> float:
    """Return the usual standard deviation of a round's logarithm, from those of each configuration in each run.

    From the median of the differences of two rounds of a configuration, which a few outliers do not move, and the
    number of rounds neither (Rousseeuw and Croux 1993). `MIN_LOG_SD` at least, also without two rounds.
    """
    differences = [abs(first - second) for run in runs for first, second in combinations(run, 2)]
    return max(OF_PAIRS * statistics.median(differences), MIN_LOG_SD) if differences else MIN_LOG_SD


def _record_warnings(row: configurations.Record, usual: float, drift: float) -> Iterator[str]:
    """Yield warnings about a record; `usual` is the usual deviation of log times, `drift` that of reference work."""
    if row["status"] == "disturbed":
        yield f"disturbed: {row['reason'] or 'other programs were at work'}"
    yield from warning_of_spread(row, usual)
    yield from warnings_of_surroundings(row, drift)


def outlying_rounds(row: configurations.Record, usual: float, count: int) -> Iterator[tuple[str, str]]:
    """Yield (round name, text) for each round of a pooled record that deviates from the others of its run.

    A round is compared with the median of the other ones, by the larger of their deviation and of the `usual` one, and
    so far that among `count` rounds of normal noise one would hardly be. Runs of fewer than four rounds are skipped.
    """
    far, runs = outlier_threshold(count), _by_run(row)
    for run, logs in runs.items():
        of_run = f" of {run}" if len(runs) > 1 else ""
        for number, log in sorted(logs.items()) if len(logs) >= INTERIM_ANALYSES[0] else ():
            others = [other for place, other in logs.items() if place != number]
            middle = statistics.median(others)
            deviation = max(NORMAL * statistics.median(abs(other - middle) for other in others), usual)
            limit = far * deviation * math.sqrt(1 + math.pi / 2 / len(others))  # the median is uncertain, too
            limit = max(limit, math.log(1 + SPREAD))
            if abs(log - middle) > limit:
                yield f"round {number + 1}{of_run}", _describe_outlier(log - middle, limit, len(others))


def _describe_outlier(distance: float, limit: float, others: int) -> str:
    """Return by which factor a round differs from the median of `others` rounds; `distance`, `limit` are log ratios."""
    times, most = (format_number(math.exp(value)) for value in (distance, math.copysign(limit, distance)))
    noise = f"{'up' if distance > 0 else 'down'} to {most}"
    return f"took {times} times the median of its {others} other rounds; {noise} times is noise here"


def _by_run(row: configurations.Record, measure: str = "seconds_step") -> dict[str, dict[int, float]]:
    """Return {run: {round: natural log of the value}} of a pooled record's positive values, undisturbed rounds only."""
    runs: dict[str, dict[int, float]] = {}
    for (run, number), seconds in values_of(row, measure).items():
        if seconds > 0:
            runs.setdefault(run, {})[number] = math.log(seconds)
    return runs
