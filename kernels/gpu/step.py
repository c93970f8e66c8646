"""A whole training step of a linear model on a device: product, loss and fused update, launched as one CUDA graph.

Everything that a step needs is made once, with room for the largest batch. How many rows a batch has, how many columns
it touches, and the settings of its step are read on the device, so that one graph serves all batches of a slot, and
nothing is allocated or waited for in between. With two slots the next batch is copied while a step is under way.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.contract import KernelError
from kernels.gpu import losses, updates
from kernels.gpu.losses import LOSSES
from kernels.gpu.rounding import NEAREST, Rounding, next_step
from kernels.gpu.row_sums import pieces_of, row_sums
from kernels.gpu.slots import Layout, Room, Slot, Turns, make_slots
from kernels.gpu.source import NARROW
from kernels.losses import logistic, softmax, squared
from kernels.products import csr_dense
from kernels.rules.rule import get_rule
from kernels.sessions import Session

STEPS_QUEUED = 16
"""Steps that the host may be ahead of the device by where each has settings of its own: they are in pinned memory."""


class Step:
    """The step that changes `arrays`, weights [D, N] and states on the session's device, by a rule of `kernels.rules`.

    Weights may be float16, or bfloat16 as uint16: states and all that is computed are float32 then, and new weights are
    rounded to the nearest, or with a `seed` stochastically. Wait for the loads that were queued, by `session.until`,
    before a step is let go: their memory goes with it. `KernelError` for a loss that is not among `LOSSES`.
    """

    def __init__(
        self,
        session: Session,
        rule: str,
        arrays: list[Any],
        room: Room,
        loss: str = "softmax",
        slots: int = 2,
        seed: int | None = None,
    ) -> None:
        if loss not in LOSSES:
            raise KernelError(f"There is no loss {loss!r}; there is {', '.join(LOSSES)}.")
        self.session, self.device, self.arrays = session, session.device, tuple(arrays)
        self.rule, self.loss_name, self.count = get_rule(rule), loss, 0
        features, width = arrays[0].shape
        dtype = np.dtype(np.float32) if arrays[0].dtype.name in NARROW else arrays[0].dtype
        self.rounding = NEAREST if seed is None else Rounding(seed, self.device.zeros(1, np.int64))
        self._make_room(room, width, dtype)
        self.settings = Turns(session, list(session.pinned((STEPS_QUEUED, updates.MOST_SETTINGS), dtype)))
        self.sent: tuple[float, ...] = ()
        self.slots = make_slots(session, Layout(room, features, width, dtype, loss == "softmax"), slots)
        self._queue(self.slots[0], self._whole)  # of no rows: it changes nothing, and compiles what no graph can hold
        self._graphs = [self.device.recorded(lambda slot=slot: self._whole(slot)) for slot in self.slots]

    def _make_room(self, room: Room, width: int, dtype: np.dtype) -> None:
        empty = self.device.empty
        self.scores, self.gradient = (empty((room.rows, width), dtype) for _ in range(2))  # [R, N]
        self.partial = empty((2 * pieces_of(room.entries), width), dtype)  # for both sums, one after the other
        elements = room.rows if self.loss_name == "softmax" else -(-room.rows * width // losses.ELEMENTS)
        self.sums, self.parts, self.result = losses.room_for(self.device, elements)
        self.wrong, self.live = self.device.zeros(1, np.int64), empty(updates.MOST_SETTINGS, dtype)

    @property
    def nbytes(self) -> int:
        """Bytes on the device beside `arrays`: slots, and what is computed on the way."""
        own = self.scores, self.gradient, self.partial, self.sums, self.parts, self.result, self.wrong, self.live
        return sum(each.nbytes for each in (*own, *self.slots))

    def run(self, slot: int, *numbers: float) -> None:
        """Queue a step by the batch in the slot; `numbers` are the rule's, such as its rate.

        The host waits where it is `STEPS_QUEUED` changes of these ahead. `KernelError` where the slot has no batch.
        """
        loaded, settings = self._loaded(slot), tuple(self.rule.settings(*numbers))
        if settings != self.sent:
            self._send(settings)
        self._queue(loaded, lambda _: self._graphs[slot]())

    def _send(self, settings: tuple[float, ...]) -> None:
        pinned = self.settings.take()[: len(settings)]
        pinned[:] = settings
        self.session.fill(self.live, pinned)
        self.settings.copied_by(self.session.mark())
        self.sent = settings

    def forward(self, slot: int) -> None:
        """Queue what `run` does first, kernel by kernel: scores and their gradient, and the loss."""
        self._queue(self._loaded(slot), self._forward)

    def _loaded(self, slot: int) -> Slot:
        """The slot, when what follows on this stream waits for its batch."""
        chosen = self.slots[slot]
        if chosen.arrived is None:
            raise KernelError(f"Slot {slot} has no batch; load one.")
        self.session.wait_for(chosen.arrived)
        return chosen

    def _queue(self, slot: Slot, work: Callable[[Slot], None]) -> None:
        work(slot)
        slot.used, self.count = self.session.mark(), slot.count

    def _whole(self, slot: Slot) -> None:
        self._forward(slot)
        of = slot.arrays
        batch = of["columns"], of["segments"], of["rows"], of["values"], self.gradient
        live = {"counted": slot.touched, "live": self.live, "partial": self.partial}
        updates.fused(self.rule, self.arrays, batch, (), rounding=self.rounding, **live)
        if self.rounding.seed is not None:
            next_step(self.rounding.step)

    def _forward(self, slot: Slot) -> None:
        of = slot.arrays
        entries = of["indices"], of["data"]
        sums = of["indptr"], entries, self.arrays[0], self.scores, self.partial
        row_sums(csr_dense.CUDA, "csr_dense", *sums, lengths=slot.layout.room.lengths, counted=slot.counted)
        arguments = self.scores, of["targets"], self.gradient, self.sums
        if self.loss_name == "softmax":
            softmax.on_device(*arguments, self.wrong, slot.counted)
        else:
            code = {"logistic": logistic.CUDA, "squared": squared.CUDA}[self.loss_name]
            losses.each_element(code, self.loss_name, *arguments, slot.counted)
        losses.add_up(self.sums, self.parts, self.result)

    def loss(self) -> float:
        """The mean loss of the last batch that was queued, before its step; 0 where it has no rows. Waits."""
        return float(self.device.read(self.result)[0]) / max(self.count, 1)  # synchronize!

    def read(self) -> list[np.ndarray]:
        """Weights and states as they are now; waits."""
        return [self.device.read(array) for array in self.arrays]  # synchronize!
