"""Launches of the steps of a training on a device: what `DeviceRun` asks of either way."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.training.copies import DeviceBatch, DevicePhaseTimer, SlotBatch
from workbench.training.events import PhaseTimer

Batch = DeviceBatch | SlotBatch
"""A batch on the device, or on its way there."""


class DeviceExecution(ABC):
    """Steps that change the weights [D, N] and states that it was made with, in place, where they are."""

    keeps: bool
    """Whether the batches of an epoch stay on the device, for those after it."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes on the device beside weights, states and what `prepare` made."""

    @abstractmethod
    def prepare(self, x: Any, y: np.ndarray, laps: PhaseTimer) -> Batch:
        """Queue the copies of a batch on the second stream, and its plan; one built on the host is a lap."""

    @abstractmethod
    def step(self, batch: Batch, numbers: Sequence[float], laps: DevicePhaseTimer) -> float:
        """Return a whole step by a batch that has arrived, with the numbers of the rule; the mean loss before it."""

    # The same in parts, by which a step is checked before it is timed

    @abstractmethod
    def forward(self, batch: Batch) -> float:
        """Return the mean loss of a batch that has arrived; its slope is what `slope` gives."""

    @abstractmethod
    def slope(self, rows: int) -> Any:
        """Return the slope of the loss of the last `forward`, on the device [rows, N]."""

    @abstractmethod
    def backward(self, batch: Batch) -> Any:
        """Return the gradient of the weights after `forward`: dense, `RowSparse`, or None, left as its factors."""

    @abstractmethod
    def update(self, batch: Batch, gradient: Any, numbers: Sequence[float]) -> None:
        """Change weights and states by what `backward` gave."""
