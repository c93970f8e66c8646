"""A whole training step of a linear model on a device: product, loss and fused update, launched as one CUDA graph.

Everything that a step needs is made once, with room for the largest batch. How many columns a batch touches and the
settings of its step are read on the device, so that one graph serves all batches, and nothing is allocated or waited
for in between. A batch comes into a `Slot`; with two of them the next one is copied while a step is under way.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import devices
from kernels.contract import KernelError
from kernels.gpu import losses, updates
from kernels.gpu.row_sums import pieces_of, row_sums
from kernels.losses import logistic, softmax, squared
from kernels.plan import BatchPlan
from kernels.products import csr_dense
from kernels.rules import get_rule

LOSSES = ("softmax", "logistic", "squared")


@dataclass(frozen=True)
class Room:
    """What the largest batch needs: rows R, which all batches have, entries z and touched columns U."""

    rows: int
    entries: int
    touched: int


class Slot:
    """The arrays of a batch on a device."""

    def __init__(self, device: devices.Device, room: Room, targets: Any, dtype: np.dtype) -> None:
        index, entries = np.int32, room.entries
        self.device, self.room = device, room
        self.indptr, self.indices = device.empty(room.rows + 1, index), device.empty(entries, index)
        self.data, self.values = device.empty(entries, dtype), device.empty(entries, dtype)
        self.columns, self.segments = device.empty(room.touched, np.int64), device.empty(room.touched + 1, index)
        self.rows, self.counted = device.empty(entries, index), device.empty(1, np.int64)
        self.targets = targets

    def load(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, targets: np.ndarray, plan: BatchPlan
    ) -> None:
        """Copy a batch of the host and its plan; `KernelError` where there is no room for it."""
        came = indptr.size - 1, indices.size, plan.touched
        room = self.room.rows, self.room.entries, self.room.touched
        if came[0] != room[0] or came[1] > room[1] or came[2] > room[2]:
            raise KernelError(
                f"A batch with {came[0]} rows, {came[1]} entries and {came[2]} touched columns came; there is room for "
                f"{room[1]} entries and {room[2]} columns in exactly {room[0]} rows. Make the step with more room."
            )
        wide = {"columns": plan.columns, "counted": np.array([plan.touched])}
        narrow = {"indptr": indptr, "indices": indices, "segments": plan.segments, "rows": plan.rows}
        floats = {"data": data, "values": plan.in_order(data), "targets": targets}
        named = {**wide, **narrow, **floats}
        pairs = [(getattr(self, name), array.astype(getattr(self, name).dtype)) for name, array in named.items()]
        self.device.upload([(target.reshape(-1), array) for target, array in pairs])


class Step:
    """Weights and states on a device, and the step that changes them; the rule is one of `kernels.rules`."""

    def __init__(
        self,
        device: devices.Device,
        rule: str,
        arrays: list[np.ndarray],
        room: Room,
        loss: str = "softmax",
        slots: int = 2,
    ) -> None:
        if loss not in LOSSES:
            raise KernelError(f"There is no loss {loss!r}; there is {', '.join(LOSSES)}.")
        self.device, self.rule, self.loss_name, self.room = device, get_rule(rule), loss, room
        self.arrays = tuple(map(device.put, arrays))
        width, dtype = arrays[0].shape[1], arrays[0].dtype
        self.scores, self.gradient = (device.empty((room.rows, width), dtype) for _ in range(2))  # [R, N]
        self.partial = device.empty((2 * pieces_of(room.entries), width), dtype)  # for both sums, one after the other
        elements = room.rows if loss == "softmax" else -(-room.rows * width // losses.ELEMENTS)
        self.sums, self.parts, self.result = losses.room_for(device, elements)
        self.wrong, self.live = device.zeros(1, np.int64), device.empty(updates.MOST_SETTINGS, dtype)
        shape, kind = (room.rows, np.int64) if loss == "softmax" else ((room.rows, width), dtype)
        self.slots = [Slot(device, room, device.empty(shape, kind), dtype) for _ in range(slots)]
        self._launches = [device.recorded(lambda slot=slot: self._launch(slot)) for slot in self.slots]

    def run(self, slot: int, *numbers: float) -> None:
        """A step by the batch in the slot; `numbers` are the rule's, such as its rate. Waits for nothing."""
        settings = np.array(self.rule.settings(*numbers), self.live.dtype)
        self.device.upload([(self.live, settings)])
        self._launches[slot]()

    def _launch(self, slot: Slot) -> None:
        weights = self.arrays[0]
        row_sums(
            csr_dense.CUDA, "csr_dense", slot.indptr, (slot.indices, slot.data), weights, self.scores, self.partial
        )
        if self.loss_name == "softmax":
            softmax.on_device(self.scores, slot.targets, self.gradient, self.sums, self.wrong)
        else:
            code = {"logistic": logistic.CUDA, "squared": squared.CUDA}[self.loss_name]
            losses.each_element(code, self.loss_name, self.scores, slot.targets, self.gradient, self.sums)
        losses.add_up(self.sums, self.parts, self.result)
        batch = slot.columns, slot.segments, slot.rows, slot.values, self.gradient
        updates.fused(self.rule, self.arrays, batch, (), counted=slot.counted, live=self.live, partial=self.partial)

    def loss(self) -> float:
        """The mean loss of the last step's batch before it; waits. `KernelError` where a label was out of range."""
        if int(self.device.read(self.wrong)[0]):  # synchronize!
            raise KernelError(
                f"A label of a batch was not in 0 to {self.scores.shape[1] - 1}; number the classes from 0."
            )
        return float(self.device.read(self.result)[0]) / self.room.rows

    def read(self) -> list[np.ndarray]:
        """Weights and states as they are now; waits."""
        return [self.device.read(array) for array in self.arrays]  # synchronize!
