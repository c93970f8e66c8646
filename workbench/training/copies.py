"""State of a training on a device: batches that were copied there, and the times of a step's phases."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.gpu.row_sums import UNKNOWN, Lengths
from kernels.plan import BatchPlan
from kernels.sessions import Beside, Session


def arrays_of(x: Any) -> tuple[np.ndarray, ...]:
    """Return the arrays of X that are copied: the array itself, or indptr from 0 on, indices and data."""
    return (x,) if isinstance(x, np.ndarray) else (x.indptr - x.indptr[0], x.indices, x.data)


@dataclass
class DeviceBatch:
    """A batch on the device: its arrays in the setup's format, targets, its plan and its values in the plan's order."""

    rows: int
    arrays: tuple[Any, ...]
    y: Any
    plan: BatchPlan | None
    values: Any
    work: Beside | None
    """What must have arrived before the first step reads it; None once it has."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of the host: convert, plan, and all that is inside of `work`."""

    @property
    def row_lengths(self) -> Lengths:
        """Lengths of rows, as the plan knows them."""
        return UNKNOWN if self.plan is None else Lengths.of_rows(self.plan)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        planned = 0 if self.plan is None else self.plan.nbytes + self.values.nbytes
        return planned + sum(array.nbytes for array in (*self.arrays, self.y))


@dataclass
class SlotBatch:
    """A batch in a slot of a step that is one graph; `work` and `seconds` as those of `DeviceBatch`."""

    rows: int
    slot: int
    work: Beside | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """0: a batch has no memory of its own, slots are the step's."""
        return 0


class DevicePhaseTimer:
    """Marks of the device at the ends of the phases of a step; `seconds()` is asked for when all are passed."""

    def __init__(self, session: Session) -> None:
        self.session, self.marks = session, [("", session.mark())]

    def split(self, phase: str) -> None:
        """Count what was queued since the last lap to `phase`."""
        self.marks.append((phase, self.session.mark()))

    def seconds(self) -> dict[str, float]:
        """Return the seconds by phase, by the clock of the device; all work before the last mark must be done."""
        totals: dict[str, float] = {}
        for (_, start), (phase, end) in zip(self.marks, self.marks[1:], strict=False):
            totals[phase] = totals.get(phase, 0.0) + self.session.seconds(start, end)
        return totals
