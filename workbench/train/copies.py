"""What a training on a device has in hand: a batch that was copied there, and the times of a step's phases."""

from dataclasses import dataclass, field
from typing import Any

from kernels.plan import BatchPlan
from kernels.sessions import Beside, Session


@dataclass
class Copied:
    """A batch on the device: its arrays in the setup's format, targets, its plan and its values in the plan's order."""

    rows: int
    arrays: tuple[Any, ...]
    y: Any
    plan: BatchPlan | None
    values: Any
    work: Beside | None
    """What must have arrived before the first step reads it; None once it has."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of the host: convert, and all that is inside of `work`."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        planned = [] if self.plan is None else [self.plan.columns, self.plan.segments, self.plan.rows, self.values]
        own = [self.plan.permutation] if self.plan else []
        return sum(array.nbytes for array in (*self.arrays, self.y, *planned, *own))


class DeviceLaps:
    """Marks of the device at the ends of the phases of a step; `seconds()` is asked for when all are passed."""

    def __init__(self, session: Session) -> None:
        self.session, self.marks = session, [("", session.mark())]

    def lap(self, phase: str) -> None:
        """What was queued since the last lap is of `phase`."""
        self.marks.append((phase, self.session.mark()))

    def seconds(self) -> dict[str, float]:
        """By phase."""
        found: dict[str, float] = {}
        for (_, start), (phase, end) in zip(self.marks, self.marks[1:], strict=False):
            found[phase] = found.get(phase, 0.0) + self.session.seconds(start, end)
        return found
