"""Shared part of training steps of a linear model on a device, on batches in slots, each launched as one CUDA graph.

All memory is allocated once, for the largest batch; steps neither allocate nor wait. With two slots the next batch is
copied during a step. Settings of a step, such as its learning rate, are read on the device, so that one graph serves
all.
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
    """Steps that update `arrays`, weights [D, N] and states on the session's device, by a rule of `kernels.rules`.

    Scores and their gradient [R, N] are allocated for up to `rows` rows, in `dtype`. Wait for queued loads by
    `session.until` before releasing this object, which owns their memory. Raises KernelError for a loss that is not
    among `LOSSES`.
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
        """Queue a step on the batch in a slot."""

    @abstractmethod
    def launch_forward(self, slot: S) -> None:
        """Queue the first part of a step, kernel by kernel: scores, their gradient, and the loss."""

    @property
    def bytes_shared(self) -> int:
        """Bytes on the device of slots and intermediates."""
        own = self.scores, self.grad_scores, self.sums, self.parts, self.result, self.wrong, self.live
        return sum(each.nbytes for each in (*own, *self.slots))

    def run(self, slot: int, *numbers: float) -> None:
        """Queue a step on the batch in the slot; `numbers` are the scalars of the rule, such as its learning rate.

        The host waits if it is `STEPS_QUEUED` changes of these ahead. Raises KernelError if the slot has no batch.
        """
        loaded, settings = self.loaded(slot), tuple(self.rule.settings(*numbers))
        if settings != self.sent:
            self._send(settings)
        self.queue(loaded, lambda _: self.launch(slot))

    def _send(self, settings: tuple[float, ...]) -> None:
        """Queue a copy of the settings to the device."""
        pinned = self.settings.take()[: len(settings)]
        pinned[:] = settings
        self.session.fill(self.live, pinned)
        self.settings.copied_by(self.session.mark())
        self.sent = settings

    def forward(self, slot: int) -> None:
        """Queue the first part of `run`, kernel by kernel: scores, their gradient, and the loss."""
        self.queue(self.loaded(slot), self.launch_forward)

    def loaded(self, slot: int) -> S:
        """Return the slot after making the current stream wait for its batch. Raises KernelError if it has none."""
        chosen = self.slots[slot]
        if chosen.arrived is None:
            raise KernelError(f"Slot {slot} has no batch; load one.")
        self.session.wait_for(chosen.arrived)
        return chosen

    def queue(self, slot: S, work: Callable[[S], None]) -> None:
        """Queue work that reads the slot; the slot is not overwritten before it is done."""
        work(slot)
        slot.used, self.count = self.session.mark(), slot.count

    def _sums_of(self, rows: int) -> int:
        """Return the number of partial sums of the loss of `rows` rows."""
        return rows if self.loss_name == "softmax" else -(-rows * self.arrays[0].shape[1] // losses.ELEMENTS)

    def launch_loss(self, targets: Any, counted: Any = None) -> None:
        """Queue the loss of the rows of `targets`, or of the first `counted` ones, and the gradient of their scores."""
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
        """Return the mean loss of the last queued batch before its step; 0 without rows. Waits for the device."""
        return float(self.device.read(self.result)[0]) / max(self.count, 1)  # synchronize!

    def read(self) -> list[np.ndarray]:
        """Return copies of weights and states on the host; waits for the device."""
        return [self.device.read(array) for array in self.arrays]  # synchronize!
