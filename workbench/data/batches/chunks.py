"""Small batches are cut many at once, since cutting and planning one batch costs more in the call than in its work.

A chunk has the rows of batches that follow each other, cut by one call; each batch is a range of it, over its memory.
The batch plans of a chunk are made together, when the first of them is asked for.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import plan
from kernels.plan import BatchPlan
from workbench import formats
from workbench.data.batches import slicing
from workbench.data.batches.feed import Batch
from workbench.data.batches.slicing import MadeDense

if TYPE_CHECKING:
    from workbench.data.batches.in_memory import Batches

NUMBERS = 32 * 1024
"""Values and indices of a stretch, in the mean: with their plans they fit a core's cache. Larger batches come alone."""


class BatchChunk:
    """Batches of `batches.rows` rows, the last perhaps of fewer; `order` int64 are the numbers of all their rows."""

    def __init__(self, batches: "Batches", order: np.ndarray) -> None:
        data, labels = (
            {name: (format, slicing.gather_rows(format, array, order)) for name, format, array in held}
            for held in (batches.data, batches.labels)
        )
        self.rows, self.numbers = batches.rows, slicing.slice_each("dense", order, batches.rows)
        self.data, self.labels = self._of_each(data), self._of_each(labels)
        self.is_planned = [format for format, _ in data.values()] == ["csr"]
        self.x: Any = next(iter(data.values()))[1]
        self.plans: list[BatchPlan] | None = None

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.numbers)

    def _of_each(self, whole: Mapping[str, tuple[str, Any]]) -> list[dict[str, Any]]:
        """Split arrays of all rows into the arrays, by name, of each batch."""
        parts = {name: slicing.slice_each(format, array, self.rows) for name, (format, array) in whole.items()}
        return [{name: of_name[number] for name, of_name in parts.items()} for number in range(len(self))]

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, one by one."""
        for number, rows in enumerate(self.numbers):
            planned = functools.partial(self.plan, number) if self.is_planned else None
            yield Batch(self.data[number], self.labels[number], rows, is_copy=True, planned=planned)

    def plan(self, number: int) -> BatchPlan | None:
        """Return the plan of a batch, whose data are one csr array; None if that array is to be planned by itself."""
        if self.plans is None:
            x = self.x
            self.plans = plan.build_each(x.indptr, x.indices, x.shape[1], self.rows)
        return self.plans[number] if self.plans else None


def batches_per_chunk(batches: "Batches") -> int:
    """Return how many batches one chunk holds; 1 for large batches."""
    numbers = sum(_numbers_of_a_row(array) for _, _, array in (*batches.data, *batches.labels))
    return max(int(NUMBERS / max(numbers * batches.rows, 1)), 1)


def _numbers_of_a_row(array: Any) -> float:
    """Return values and indices that a row of a batch stores, in the mean."""
    if isinstance(array, MadeDense):
        return array.shape[1]
    return formats.nbytes(array) / array.dtype.itemsize / max(array.shape[0], 1)
