"""Events of steps: the loss, and where the time went."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

PHASES = ("slice", "convert", "transfer", "plan", "wait", "forward", "loss", "gradient", "update", "graph", "batches")
"""The phases of a step, in order. In the place of forward, loss, gradient and update a step that is launched as one
graph has `graph`, and one of an epoch that is done in few calls `batches`."""


_NOTHING = dict.fromkeys(PHASES, 0.0)


@dataclass(frozen=True)
class StepEvent:
    """One step that was done: its loss before the update, and the seconds of each phase.

    Of an epoch that is done in few calls it is all steps of a call: `step` is the last of them, `rows` and `seconds`
    are those of all, `loss` is the mean over the rows, and `losses` float64 [steps] tell each step's own.

    `seconds_prepare` is what slice, convert and plan of its batch took, also when that was beside an earlier step; it
    is 0 for a batch that was kept.
    """

    step: int
    epoch: int
    rows: int
    loss: float
    seconds: dict[str, float]
    seconds_prepare: float = 0.0
    losses: np.ndarray | None = None

    @property
    def steps(self) -> int:
        """Number of steps that the event stands for."""
        return 1 if self.losses is None else len(self.losses)

    @property
    def seconds_step(self) -> float:
        """Sum of the phases."""
        return sum(self.seconds.values())


PHASE_OF = {"plan": "gradient", "forward": "forward", "loss": "loss", "backward": "gradient", "store": "gradient"}
"""The phase that each part of the executor's program is filed under; a plan is only taken there, being prepared."""


class PhaseTimer:
    """Times the phases of a step; `known` holds phases timed elsewhere."""

    def __init__(self, known: Mapping[str, float] | None = None) -> None:
        self.seconds = {**_NOTHING, **known} if known else {**_NOTHING}
        self.last = perf_counter()

    def split(self, phase: str) -> None:
        """Add the time since the last split to `phase`."""
        now = perf_counter()
        self.seconds[phase] += now - self.last
        self.last = now

    def add_step(self, step: Any) -> None:
        """Add the time since the last split to the phase of an executor's step, which calls this when it is done."""
        now = perf_counter()
        self.seconds[PHASE_OF[step.part]] += now - self.last
        self.last = now
