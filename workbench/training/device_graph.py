"""Steps on a device that are launched as one CUDA graph each, by batches in slots that are filled beside them.

CSR batches and dense ones have steps of their own, `Step` and `DenseStep`; all else here is the same.

Batches that repeat have a slot each, for good, while they are at most `MOST_KEPT`. All others are cut, planned on the
host where they are CSR, and copied anew in every epoch, into two slots in turn: with `ahead` one is filled while the
other's step runs.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from kernels import plan
from kernels.gpu.row_sums import Lengths
from kernels.gpu.slots import DenseStep, Room, Step
from kernels.plan import row_length
from kernels.sessions import Session
from workbench import data, formats
from workbench.optimizers import Optimizer
from workbench.training.copies import DevicePhaseTimer, SlotBatch
from workbench.training.device_execution import DeviceExecution
from workbench.training.events import PhaseTimer
from workbench.training.setup import Setup

MOST_KEPT = 256
"""Batches that have a slot each. A slot has a graph of its own, which takes memory of the driver and time to make."""


def most_entries(lengths: np.ndarray, batches: data.Batches | data.StoredBatches) -> int:
    """Return the largest number of stored entries of a batch.

    Exact for a fixed order, else of the longest rows together.
    """
    if not batches.shuffle and batches.last in ("keep", "discard"):
        return int(np.add.reduceat(lengths, np.arange(0, lengths.size, batches.rows)).max())
    times = 1 if batches.last in ("keep", "discard") else 2 + batches.rows // batches.total  # that a row is in a batch
    longest = np.sort(lengths)[::-1][: batches.rows]
    return int(np.repeat(longest, times)[: batches.rows].sum())


def room_of(batches: data.Batches | data.StoredBatches, rows: int) -> Room:
    """Return the sizes that fit every batch of CSR data, or of stored rows, of up to `rows` rows."""
    x = batches.x if isinstance(batches.x, data.StoredRows) else formats.to_format(batches.x, "csr")
    lengths = data.row_lengths(x)
    entries, longest = most_entries(lengths, batches), int(lengths.max(initial=0))
    known = Lengths(row_length(lengths.size, x.nnz, longest), longest)
    return Room(rows, entries, min(entries, x.shape[1]), known)


@final
class InGraph(DeviceExecution):
    """A step as one CUDA graph, with slots and buffers allocated for the largest of `batches`."""

    def __init__(
        self,
        setup: Setup,
        session: Session,
        optimizer: Optimizer,
        tables: Sequence[Any],
        loss: str,
        rows: int,
        batches: data.Batches | data.StoredBatches,
    ) -> None:
        self.keeps = not setup.shuffle and len(batches) <= MOST_KEPT
        slots = len(batches) if self.keeps else 2
        arguments = session, optimizer.rule.name, list(tables)
        self.made: Step | DenseStep = (
            DenseStep(*arguments, rows, loss, slots)
            if setup.format == "dense"
            else Step(*arguments, room_of(batches, rows), loss, slots)
        )
        self.turn = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all slots, and of what a step computes on the way."""
        return self.made.nbytes

    def prepare(self, x: Any, y: np.ndarray, laps: PhaseTimer) -> SlotBatch:
        """Load a batch into the next slot; the plan of a CSR one is built on the host, by the thread that prepares."""
        slot = self.turn % len(self.made.slots)
        self.turn += 1
        if isinstance(self.made, DenseStep):
            return SlotBatch(x.shape[0], slot, self.made.slots[slot].load(x, y))
        built = plan.build(x.indptr, x.indices, x.shape[1])
        built.in_order(x.data)
        laps.split("plan")
        return SlotBatch(x.shape[0], slot, self.made.slots[slot].load(x.indptr, x.indices, x.data, y, built))

    def step(self, batch: SlotBatch, numbers: Sequence[float], laps: DevicePhaseTimer) -> float:
        """Launch the graph, and read the loss after that."""
        self.update(batch, None, numbers)
        laps.split("graph")
        return self.made.loss()

    def forward(self, batch: SlotBatch) -> float:
        """Launch the first kernels of the graph, one by one."""
        self.made.forward(batch.slot)
        return self.made.loss()

    def slope(self, rows: int) -> Any:
        """Return the part of the slopes that a batch fills."""
        return self.made.grad_scores[:rows]

    def backward(self, batch: SlotBatch) -> Any:
        """Return the gradient [D, N] of a dense batch; of a CSR batch it is never held."""
        return self.made.backward(batch.slot) if isinstance(self.made, DenseStep) else None

    def update(self, batch: SlotBatch, gradient: Any, numbers: Sequence[float]) -> None:
        """Launch the whole step, which comes to the same slope, and gradient, once more."""
        self.made.run(batch.slot, *numbers)
