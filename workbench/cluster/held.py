"""Knowledge of a trainer about a value that shards hold."""

from typing import NamedTuple

import numpy as np

from workbench.cluster.partition import Partition


class Held(NamedTuple):
    """Value that shards hold, as a trainer knows it: its shape and which shard has which of its rows."""

    shape: tuple[int, ...]
    dtype: np.dtype
    partition: Partition

    def part_shape(self, shard: int) -> tuple[int, ...]:
        """The shape of a shard's part."""
        return (self.partition.count(shard), *self.shape[1:]) if self.shape else ()
