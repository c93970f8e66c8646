"""Training steps of a linear model on a device by batches in slots, each launched as one CUDA graph: the shared part.

Everything that a step needs is made once, with room for the largest batch, and nothing is allocated or waited for in
between. Batches are in slots: with two of them the next batch is copied while a step is under way. The settings of a
step, such as its rate, are read on the device, so that a graph serves steps with any.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from kernels.contract import KernelError
from kernels.gpu import losses, updates
from kernels.gpu.losses import LOSSES
from kernels.gpu.slots import Slot, Turns
from kernels.losses import logistic, softmax, squared
from kernels.rules.rule import get_rule
from kernels.sessions import Session

STEPS_QUEUED = 16
"""Steps that the host may be ahead of the device by where each has settings of its own: they are in pinned memory."""


S = TypeVar("S", bound=Slot)


class InSlots(ABC, Generic[S]):
    """Steps that change `arrays`, weights [D, N] and states on the session's device, by a rule of `kernels.rules`.

    Scores and their gradient [R, N] have room for `rows`, in `dtype`. Wait for the loads that were queued, by
    `session.until`, before this is let go: their memory goes with it. `KernelError` for a loss that is not among
    `LOSSES`.
    """

    slots: Sequence[S]

    def __init__(
        self, session: Session, rule: str, arrays: Sequence[Any], loss: str, rows: int, dtype: np.dtype
    ) -> None:
        if loss not in LOSSES:
            raise KernelError(f"There is no loss {loss!r}; there is {', '.join(LOSSES)}.")
        self.session, self.device, self.arrays = session, session.device, tuple(arrays)
        self.rule, self.loss_name, self.count = get_rule(rule), loss, 0
        empty, width = self.device.empty, arrays[0].shape[1]
        self.scores, self.grad_scores = (empty((rows, width), dtype) for _ in range(2))  # [R, N]
        self.sums, self.parts, self.result = losses.room_for(self.device, self._sums_of(rows))
        self.wrong, self.live = self.device.zeros(1, np.int64), empty(updates.MOST_SETTINGS, dtype)
        self.settings = Turns(session, list(session.pinned((STEPS_QUEUED, updates.MOST_SETTINGS), dtype)))
        self.sent: tuple[float, ...] = ()

    @abstractmethod
    def launch(self, number: int) -> None:
        """Queue a step by the batch in the slot of that number."""

    @abstractmethod
    def launch_forward(self, slot: S) -> None:
        """Queue what a step does first, kernel by kernel: scores and their gradient, and the loss."""

    @property
    def bytes_shared(self) -> int:
        """Bytes on the device of slots, and of what every step computes on the way."""
        own = self.scores, self.grad_scores, self.sums, self.parts, self.result, self.wrong, self.live
        return sum(each.nbytes for each in (*own, *self.slots))

    def run(self, slot: int, *numbers: float) -> None:
        """Queue a step by the batch in the slot; `numbers` are the rule's, such as its rate.

        The host waits where it is `STEPS_QUEUED` changes of these ahead. `KernelError` where the slot has no batch.
        """
        loaded, settings = self.loaded(slot), tuple(self.rule.settings(*numbers))
        if settings != self.sent:
            self._send(settings)
        self.queue(loaded, lambda _: self.launch(slot))

    def _send(self, settings: tuple[float, ...]) -> None:
        pinned = self.settings.take()[: len(settings)]
        pinned[:] = settings
        self.session.fill(self.live, pinned)
        self.settings.copied_by(self.session.mark())
        self.sent = settings

    def forward(self, slot: int) -> None:
        """Queue what `run` does first, kernel by kernel: scores and their gradient, and the loss."""
        self.queue(self.loaded(slot), self.launch_forward)

    def loaded(self, slot: int) -> S:
        """The slot, when what follows on this stream waits for its batch."""
        chosen = self.slots[slot]
        if chosen.arrived is None:
            raise KernelError(f"Slot {slot} has no batch; load one.")
        self.session.wait_for(chosen.arrived)
        return chosen

    def queue(self, slot: S, work: Callable[[S], None]) -> None:
        """Queue work that reads the slot, which is not filled anew before it is done."""
        work(slot)
        slot.used, self.count = self.session.mark(), slot.count

    def _sums_of(self, rows: int) -> int:
        """Number of sums that the loss of so many rows is added up from."""
        return rows if self.loss_name == "softmax" else -(-rows * self.arrays[0].shape[1] // losses.ELEMENTS)

    def launch_loss(self, targets: Any, counted: Any = None) -> None:
        """Queue the loss of as many rows as `targets` has, or as `counted` says, and the gradient of their scores."""
        rows = targets.shape[0]
        sums = self.sums[: self._sums_of(rows)]
        arguments = self.scores[:rows], targets, self.grad_scores[:rows], sums
        if self.loss_name == "softmax":
            softmax.on_device(*arguments, self.wrong, counted)
        else:
            code = {"logistic": logistic.CUDA, "squared": squared.CUDA}[self.loss_name]
            losses.each_element(code, self.loss_name, *arguments, counted)
        losses.add_up(sums, self.parts, self.result)

    def loss(self) -> float:
        """The mean loss of the last batch that was queued, before its step; 0 where it has no rows. Waits."""
        return float(self.device.read(self.result)[0]) / max(self.count, 1)  # synchronize!

    def read(self) -> list[np.ndarray]:
        """Weights and states as they are now; waits."""
        return [self.device.read(array) for array in self.arrays]  # synchronize!
