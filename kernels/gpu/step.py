"""A training step of a linear model on a device: product, loss and fused update, launched as one CUDA graph.

Numbers of rows and of active columns are read on the device, so that one graph serves all batches of a slot.
"""

import functools
from typing import Any, final

import numpy as np

from kernels.gpu import updates
from kernels.gpu.in_slots import InSlots
from kernels.gpu.rounding import NEAREST, Rounding, next_step
from kernels.gpu.row_sums import pieces_of, row_sums
from kernels.gpu.slots import CsrSlot, Layout, Room, Targets, make_buffers
from kernels.gpu.source import NARROW
from kernels.products import csr_dense
from kernels.sessions import Session


@final
class Step(InSlots[CsrSlot]):
    """A step on CSR batches; it updates the active rows of `arrays`.

    Weights may be float16, or bfloat16 as uint16: states and computation are float32 then, and new weights are rounded
    to nearest, or stochastically with a `seed`.
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
        features, width = arrays[0].shape
        dtype = np.dtype(np.float32) if arrays[0].dtype.name in NARROW else arrays[0].dtype
        super().__init__(session, rule, arrays, loss, room.rows, dtype)
        self.rounding = NEAREST if seed is None else Rounding(seed, self.device.zeros(1, np.int64))
        self.partial = self.device.empty((2 * pieces_of(room.entries), width), dtype)  # for both sums, one by one
        layout = Layout(room, features, Targets(width, dtype, loss == "softmax"))
        buffers = make_buffers(session, layout)
        self.slots = [CsrSlot(session, layout, buffers) for _ in range(slots)]
        self.queue(self.slots[0], self._whole)  # of no rows: it changes nothing, and compiles what no graph can hold
        self.graphs = [self.device.recorded(functools.partial(self._whole, slot)) for slot in self.slots]

    @property
    def nbytes(self) -> int:
        """Bytes on the device besides `arrays`: slots and intermediates."""
        return self.bytes_shared + self.partial.nbytes

    def launch(self, number: int) -> None:
        """Launch the CUDA graph of a step on the batch in slot `number`."""
        self.graphs[number]()

    def _whole(self, slot: CsrSlot) -> None:
        """Queue all kernels of a step on the batch in a slot: product, loss and fused update."""
        self.launch_forward(slot)
        of = slot.arrays
        batch = of["columns"], of["segments"], of["rows"], of["values"], self.grad_scores
        live = {"counted": slot.touched, "live": self.live, "partial": self.partial}
        updates.fused(self.rule, self.arrays, batch, (), rounding=self.rounding, **live)
        if self.rounding.seed is not None:
            next_step(self.rounding.step)

    def launch_forward(self, slot: CsrSlot) -> None:
        """Queue product and loss."""
        of = slot.arrays
        entries = of["indices"], of["data"]
        sums = of["indptr"], entries, self.arrays[0], self.scores, self.partial
        row_sums(csr_dense.CUDA, "csr_dense", *sums, lengths=slot.layout.room.lengths, counted=slot.counted)
        self.launch_loss(of["targets"], slot.counted)
