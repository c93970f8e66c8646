"""State of a training on the host: batches that were prepared for a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.plan import BatchPlan
from workbench import formats


@dataclass
class Prepared:
    """A batch in the format it is trained in, with its plan where the gradient reads one."""

    x: Any
    y: np.ndarray
    plan: BatchPlan | None
    seconds: dict[str, float]
    """Seconds of convert and plan."""
    weights: np.ndarray | None = None
    """What the loss of each row counts for [R]; None where all count alike."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """What the model reads beside X, by name."""

    made: Sequence[Any] = ()
    """Arrays that conversion made."""
    is_own: bool = False
    """Whether X was cut for this batch from rows that were checked, and nobody else holds it."""

    @property
    def bytes_own(self) -> int:
        """Bytes beyond the data set's own arrays: what conversion made, and the plan."""
        arrays = {id(array): array for array in self.made}
        return sum(map(formats.nbytes, arrays.values())) + (self.plan.nbytes if self.plan else 0)

    @property
    def plans(self) -> dict[str, BatchPlan]:
        """The plan by the name of its argument."""
        return {"x": self.plan} if self.plan else {}

    @property
    def columns(self) -> np.ndarray:
        """The columns that it reads, sorted."""
        return self.plan.columns if self.plan else np.unique(formats.to_format(self.x, "coo").coords[1])
