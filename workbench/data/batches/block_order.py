"""A random order of rows that are read from disk: random blocks of them, shuffled together in a buffer.

An epoch is a permutation: every row once, another order each epoch, the same for the same seed and epoch. A buffer is
filled with blocks of consecutive rows from all over the file, and its rows are shuffled; so rows that stand next to
each other in the file are a little likelier to meet in a buffer than others. Where the file has no more rows than a
buffer every order is as likely as any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

BLOCKS = 256
"""Blocks of a buffer, at least, where it has so many rows: more of them mix better and cost more seeks."""


@final
@dataclass(frozen=True)
class BlockOrder:
    """The order of `total` rows in buffers of `buffer_rows` rows, rounded up to whole blocks; the last may be shorter.

    >>> order = BlockOrder(total=5, buffer_rows=3)
    >>> [order.rows_of(blocks)[within].tolist() for blocks, within in order.buffers(seed=0, epoch=0, first=0)]
    [[4, 2, 3], [1, 0]]
    """

    total: int
    buffer_rows: int

    @property
    def length(self) -> int:
        """Rows of a block."""
        return max(1, self.buffer_rows // BLOCKS)

    def rows_of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the indices of the rows of those blocks, int64 [blocks], in their order: int64 [rows]."""
        rows = (blocks[:, None] * self.length + np.arange(self.length)).ravel()
        return rows[rows < self.total]

    def runs(self, blocks: np.ndarray) -> list[tuple[int, int]]:
        """Return (first row, row behind the last one) of each block; of blocks that follow each other one for all."""
        first = np.flatnonzero(np.diff(blocks, prepend=-2) != 1)
        last = np.append(first[1:], len(blocks)) - 1
        starts, stops = blocks[first] * self.length, np.minimum((blocks[last] + 1) * self.length, self.total)
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    def buffers(self, seed: int, epoch: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (blocks, ascending, the order of their rows) of each buffer, less the first rows of the epoch's
        order."""
        order = np.random.default_rng((seed, epoch)).permutation(-(-self.total // self.length))
        at_once = -(-self.buffer_rows // self.length)
        for number, begin in enumerate(range(0, len(order), at_once)):
            blocks = np.sort(order[begin : begin + at_once])
            count = len(self.rows_of(blocks))
            if first < count:
                yield blocks, np.random.default_rng((seed, epoch, number)).permutation(count)[first:]
            first = max(first - count, 0)
