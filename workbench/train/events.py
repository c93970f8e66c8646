"""What a step was: its loss, and where its time went."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

PHASES = ("slice", "convert", "transfer", "plan", "wait", "forward", "loss", "gradient", "update", "graph")
"""The phases of a step, in order; a step that is launched as one graph has `graph` in the place of the last four."""


@dataclass(frozen=True)
class StepEvent:
    """One step that was done: its loss before the update, and the seconds of each phase.

    `seconds_prepare` is what slice, convert and plan of its batch took, also when that was beside an earlier step; it
    is 0 for a batch that was kept.
    """

    step: int
    epoch: int
    rows: int
    loss: float
    seconds: dict[str, float]
    seconds_prepare: float = 0.0

    @property
    def seconds_step(self) -> float:
        """Sum of the phases."""
        return sum(self.seconds.values())


class Laps:
    """Seconds since the last lap, filed under a phase; `known` are phases that were timed elsewhere."""

    def __init__(self, known: Mapping[str, float] | None = None) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0) | (known or {})
        self.last = perf_counter()

    def lap(self, phase: str) -> None:
        """File the time since the last lap under `phase`."""
        now = perf_counter()
        self.seconds[phase] += now - self.last
        self.last = now
