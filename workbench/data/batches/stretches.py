"""Small batches, cut many at once: a call that cuts a few rows takes ten times as long as its work, and so does a plan.

A stretch has the rows of batches that follow each other, cut by one call; each batch is a range of it, over its memory.
The batch plans of a stretch are made together, when the first of them is asked for.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import plan
from kernels.plan import BatchPlan
from workbench import formats
from workbench.data.batches import cut
from workbench.data.batches.feed import Batch

if TYPE_CHECKING:
    from workbench.data.batches.in_memory import Batches

NUMBERS = 32 * 1024
"""Values and indices of a stretch, in the mean: with their plans they fit a core's cache. Larger batches come alone."""


class Stretch:
    """Batches of `batches.rows` rows, the last of fewer; `order` int64 are the numbers of all their rows."""

    def __init__(self, batches: "Batches", order: np.ndarray) -> None:
        self.rows, self.order = batches.rows, order
        self.data = [(name, format, cut.gathered(format, array, order)) for name, format, array in batches.data]
        self.labels = [(name, format, cut.gathered(format, array, order)) for name, format, array in batches.labels]
        self.is_planned = [format for _, format, _ in self.data] == ["csr"]
        self.plans: list[BatchPlan] | None = None

    def batch(self, number: int, rolled: int) -> Batch:
        """The batch of that number; `rolled` as it is to tell it."""
        start = number * self.rows
        stop = min(start + self.rows, self.order.size)
        data = {name: cut.ranged(format, array, start, stop) for name, format, array in self.data}
        labels = {name: cut.ranged(format, array, start, stop) for name, format, array in self.labels}
        planned = functools.partial(self.plan, number) if self.is_planned else None
        return Batch(data, labels, self.order[start:stop], 0, rolled, is_copy=True, planned=planned)

    def plan(self, number: int) -> BatchPlan | None:
        """The plan of a batch, whose data are one csr array; None where that array is to be planned by itself."""
        if self.plans is None:
            x = self.data[0][2]
            self.plans = plan.build_each(x.indptr, x.indices, x.shape[1], self.rows)
        return self.plans[number] if self.plans else None


class Stretches:
    """The batches of epochs by their places in the order of rows, one after the other."""

    def __init__(self, batches: "Batches") -> None:
        self.batches = batches
        numbers = sum(_numbers_of_a_row(array) for _, _, array in (*batches.data, *batches.labels))
        self.rows = int(NUMBERS / max(numbers * batches.rows, 1)) * batches.rows
        self.epoch, self.first, self.last = -1, 0, 0
        self.stretch: Stretch | None = None

    def batch(self, epoch: int, order: np.ndarray, begin: int, end: int, rolled: int) -> Batch:
        """The batch of the rows `order[begin:end]`, where `order` is that of the epoch."""
        if self.rows <= self.batches.rows:
            return self.batches.of_rows(order[begin:end], 0, rolled)
        if self.stretch is None or epoch != self.epoch or not self.first <= begin < self.last:
            self.epoch, self.first, self.last = epoch, begin, min(begin + self.rows, order.size)
            self.stretch = Stretch(self.batches, order[begin : self.last])
        return self.stretch.batch((begin - self.first) // self.batches.rows, rolled)


def _numbers_of_a_row(array: Any) -> float:
    """Values and indices that a row stores, in the mean."""
    return formats.nbytes(array) / array.dtype.itemsize / max(array.shape[0], 1)
