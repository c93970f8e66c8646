"""Steps on a device that are launched kernel by kernel: in every format, by every engine."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

import kernels
from kernels.gpu import plan as on_device
from kernels.gpu import updates
from kernels.gpu.row_sums import Lengths
from kernels.products import csr_dense
from kernels.sessions import Session
from workbench.formats import RowSparse
from workbench.optimizers import Optimizer
from workbench.training import products
from workbench.training.copies import DeviceBatch, DevicePhaseTimer, arrays_of
from workbench.training.device_execution import DeviceExecution
from workbench.training.events import PhaseTimer
from workbench.training.setup import Setup


@final
class ByKernel(DeviceExecution):
    """A step as single kernel launches; buffers hold `rows` rows, the batch plan is built on the second stream.

    Of batches that are kept it also has rows and columns in the order of their entries, where that may pay.
    """

    def __init__(
        self, setup: Setup, session: Session, optimizer: Optimizer, tables: Sequence[Any], loss: str, rows: int
    ) -> None:
        self.setup, self.session, self.device, self.optimizer = setup, session, session.device, optimizer
        self.tables, self.keeps = tables, not setup.shuffle
        self.shape, self.dtype = tables[0].shape, np.dtype(setup.dtype)
        self.scores, self.slopes = (self.device.empty((rows, self.shape[1]), self.dtype) for _ in range(2))  # [R, N]
        self.forward_of, self.gradient_of = products.choose_products(setup, session)
        self.loss_of = kernels.get(loss).gpu

    @property
    def nbytes(self) -> int:
        """Bytes of scores and slopes."""
        return self.scores.nbytes + self.slopes.nbytes

    def prepare(self, x: Any, y: np.ndarray, laps: PhaseTimer) -> DeviceBatch:
        """Copy a batch to new arrays on the device, with its column index if the gradient needs one."""
        with self.session.beside() as work:
            arrays = tuple(self.session.copy(array, work) for array in arrays_of(x))
            y = self.session.copy(y, work)
            work.marks["copied"] = self.session.mark()
            plan, values = None, None
            if self.setup.gradient_rule.plan:
                plan = on_device.build(*arrays[:2], x.shape[1], in_order_of_length=self.keeps)
                values = on_device.in_order(plan, arrays[2])
            if self.setup.format == "coo":
                arrays = products.coordinates(*arrays)
        return DeviceBatch(x.shape[0], arrays, y, plan, values, work)

    def step(self, batch: DeviceBatch, numbers: Sequence[float], laps: DevicePhaseTimer) -> float:
        """Return forward, loss, gradient and update; the loss is read before the gradient."""
        loss = self._forward(batch, laps)
        self.update(batch, self._backward(batch, laps), numbers)
        laps.split("update")
        return loss

    def forward(self, batch: DeviceBatch) -> float:
        """Launch two kernels, and read what the loss sums."""
        return self._forward(batch, None)

    def _forward(self, batch: DeviceBatch, laps: DevicePhaseTimer | None) -> float:
        """Compute scores and loss of a batch and write the gradient of the scores; returns the loss."""
        scores, slope = self.scores[: batch.rows], self.slope(batch.rows)
        self.forward_of(batch.arrays, self.tables[0], scores, batch.row_lengths)
        _lap(laps, "forward")
        loss = self.loss_of(scores, batch.y, slope)
        _lap(laps, "loss")
        return float(loss)

    def slope(self, rows: int) -> Any:
        """Return the part of the slopes that a batch fills."""
        return self.slopes[:rows]

    def backward(self, batch: DeviceBatch) -> Any:
        """Return the gradient in the form that the setup says."""
        return self._backward(batch, None)

    def _backward(self, batch: DeviceBatch, laps: DevicePhaseTimer | None) -> Any:
        """Return the weight gradient of a batch, dense or by rows; None if it is fused with the update."""
        if self.setup.gradient == "fused":
            return None
        slope = self.slope(batch.rows)
        if self.setup.gradient == "row_sparse":
            values = self.device.empty((batch.plan.columns.size, self.shape[1]), self.dtype)  # [U, N]
            plan, lengths = batch.plan, Lengths.of_columns(batch.plan)
            csr_dense.on_device(plan.segments, plan.rows, batch.values, slope, values, lengths)
            gradient = RowSparse.assemble(values, plan.columns, self.shape)
        else:
            gradient = self.device.empty(self.shape, self.dtype)
            self.gradient_of(batch.arrays, slope, gradient, batch.row_lengths)
        _lap(laps, "gradient")
        return gradient

    def update(self, batch: DeviceBatch, gradient: Any, numbers: Sequence[float]) -> None:
        """Update the weights on the device by the kernel for a fused, dense, lazy or scattered gradient."""
        if gradient is None:
            plan, slope, rule = batch.plan, self.slope(batch.rows), self.optimizer.rule
            operands = plan.columns, plan.segments, plan.rows, batch.values, slope
            updates.fused(rule, tuple(self.tables), operands, rule.settings(*numbers), Lengths.of_columns(plan))
            return
        if not isinstance(gradient, RowSparse):
            kind, operands = "dense", (gradient,)
        elif self.setup.update == "lazy":
            kind, operands = "lazy", (gradient.indices, gradient.values)
        else:
            full = self.device.zeros(gradient.shape, self.dtype)
            kernels.get("scatter_rows").gpu(gradient.values, gradient.indices, full)
            kind, operands = "dense", (full,)
        kernels.get(f"{self.optimizer.name}_{kind}").gpu(*self.tables, *operands, *numbers)


def _lap(laps: DevicePhaseTimer | None, phase: str) -> None:
    """Record the time of a phase if times are measured."""
    if laps is not None:
        laps.split(phase)
