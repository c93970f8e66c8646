"""Doubts beside a number: spread of rounds, few rounds, other programs, drift, throttling, swap."""

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import values_of

Record = Mapping[str, Any]
SPREAD = 0.1
"""Deviation of a cell's rounds, as a share, from which on it is told; that of the fixed work beside them, too."""
NOISIER = 2.0
"""Where the noise is known that is usual, a spread is told from so many times that on."""
SLOW = 0.8
"""Frequency of a round by the highest of the cell below which it is told."""

OTHERS = "other programs"


def log_spread(row: Record) -> float | None:
    """Return the standard deviation of the log times of the rounds of the shown run.

    None with fewer than two rounds.
    """
    logs = _logs(row, "seconds_step")
    return statistics.stdev(logs) if len(logs) > 1 else None


def warnings_of_record(row: Record, usual: float = 0.0) -> Iterator[str]:
    """Return short warnings about the numbers of one pooled record; empty if there is no concern."""
    if row["status"] not in configurations.NUMBERED:
        return
    yield from warning_of_spread(row, usual)
    yield from warnings_of_surroundings(row)


def warnings_of_surroundings(row: Record, drift: float = 0.0) -> Iterator[str]:
    """Return warnings about other programs and the machine during the rounds of a pooled record."""
    if row["rounds_disturbed"]:
        yield f"{formatting.format_count(row['rounds_disturbed'], 'round')} beside other programs"
    yield from machine_state(row, drift).values()


def warning_of_spread(row: Record, usual: float = 0.0) -> Iterator[str]:
    """Return a warning if the rounds of a pooled record scatter more than the `usual` deviation allows, else ""."""
    deviation = log_spread(row)
    if deviation is not None and deviation > max(SPREAD, NOISIER * usual):
        beside = f"; {formatting.format_density(usual, 2)} is usual here" if usual else ""
        yield f"rounds spread by {formatting.format_density(deviation, 2)}{beside}"


def machine_state(row: Record, drift: float = 0.0) -> dict[str, str]:
    """Return what the rounds of a pooled record tell about the machine's state, as texts by name."""
    return dict(_met(row, drift)) if row["status"] in configurations.NUMBERED else {}


def _met(row: Record, drift: float) -> Iterator[tuple[str, str]]:
    """Yield (kind, sentence) for each condition of the machine that casts doubt on a record: drift, load, swap, ..."""
    work = _logs(row, "seconds_sentinel")
    if len(work) > 1 and max(work) - min(work) > max(math.log(1 + SPREAD), drift):
        drifted = math.exp(max(work) - min(work))
        yield "drift", f"drift: fixed work beside it took up to {formatting.format_number(drifted, 2)} times as long"
    busy = [value for value in values_of(row, "busy_others").values() if value > SPREAD]
    if busy:
        yield OTHERS, f"other programs took up to {formatting.format_density(max(busy), 2)} of the cores"
    if throttled := sum(values_of(row, "throttled").values()):
        yield "throttling by heat", f"throttled {formatting.format_count(int(throttled), 'time')} by heat"
    if swapped := sum(values_of(row, "bytes_swapped").values()):
        yield "swapping", f"the machine swapped {formatting.format_bytes(swapped, 2)} meanwhile"
    hertz = [value for value in values_of(row, "hertz").values() if value > 0]
    if hertz and min(hertz) < SLOW * max(hertz):
        yield (
            "changes of frequency",
            (
                f"frequency {formatting.format_number(min(hertz) / 1e9, 2)} to "
                f"{formatting.format_number(max(hertz) / 1e9, 2)} GHz"
            ),
        )


def _logs(row: Record, measure: str) -> list[float]:
    """Return the logarithms of a measure in the rounds of the record's own run."""
    own = {place: value for place, value in values_of(row, measure).items() if value > 0}
    return [math.log(value) for (run, _), value in own.items() if run == str(row.get("run"))]
