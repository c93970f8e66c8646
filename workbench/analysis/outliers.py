"""Doubts next to a number: spread of its rounds, other programs, drift, throttling, swapping; and the usual noise.

A spread is judged by the noise of the rows themselves: on a shared machine rounds alike in everything differ by tens of
per cent, on a quiet one a tenth is an event.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from workbench.analysis import configurations
from workbench.analysis.formatting import format_bytes, format_count, format_density, format_number
from workbench.analysis.intervals import values_of
from workbench.measure.posterior import MIN_LOG_SD

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

    `usual` is the standard deviation of log times that is usual, 0 if unknown; a spread above it is reported from twice
    that on.
    """
    if row["status"] not in configurations.NUMBERED:
        return
    deviation = log_spread(row)
    if deviation is not None and deviation > max(SPREAD, NOISIER * usual):
        usual_text = f"; {format_density(usual, 2)} is usual here" if usual else ""
        yield f"rounds spread by {format_density(deviation, 2)}{usual_text}"
    if row["rounds_disturbed"]:
        yield f"{format_count(row['rounds_disturbed'], 'round')} next to other programs"
    yield from machine_state(row).values()


def machine_state(row: Record) -> dict[str, str]:
    """Return {kind: text} of what disturbed the machine during a pooled record's rounds; {} without a result."""
    return dict(_met(row)) if row["status"] in configurations.NUMBERED else {}


def _met(row: Record) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) per disturbance of the machine: drift, other programs, throttling, swapping, frequency."""
    work = _logs(row, "seconds_reference")
    if len(work) > 1 and max(work) - min(work) > math.log(1 + SPREAD):
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


OF_PAIRS = 1.0483
"""The standard deviation of a normal law over the median difference of two values."""


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


def _by_run(row: configurations.Record, measure: str = "seconds_step") -> dict[str, dict[int, float]]:
    """Return {run: {round: natural log of the value}} of a pooled record's positive values, undisturbed rounds only."""
    runs: dict[str, dict[int, float]] = {}
    for (run, number), seconds in values_of(row, measure).items():
        if seconds > 0:
            runs.setdefault(run, {})[number] = math.log(seconds)
    return runs
