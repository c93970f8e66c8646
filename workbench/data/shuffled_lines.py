"""The rows of a text file in a random order, without holding the file: random blocks, shuffled together in a buffer.

An epoch is a permutation: every row once, another order each epoch, the same for the same seed and epoch. A buffer is
filled with blocks of consecutive rows from all over the file, and its rows are shuffled; so rows that stand next to
each other in the file are a little likelier to meet in a buffer than others. Where the file has no more rows than a
buffer every order is as likely as any other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.svmlight_text import Line, holds_row

BLOCKS = 256
"""Blocks of a buffer, at least, where it has so many rows: more of them mix better and cost more seeks."""


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """Where blocks of `length` rows begin: `starts` in bytes and `numbers` of lines, int64; the last may be shorter.

    A buffer holds `buffer_rows` rows, rounded up to whole blocks. A file that was cut short is a `DataError`.
    """

    starts: np.ndarray
    numbers: np.ndarray
    total: int
    length: int
    buffer_rows: int

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]], buffer_rows: int) -> "Blocks":
        """Blocks of the (byte, line number) of every row, in order. One pass, O(rows)."""
        length, starts, numbers, total = max(1, buffer_rows // BLOCKS), [], [], 0
        for total, (start, number) in enumerate(places, 1):
            if (total - 1) % length == 0:
                starts.append(start)
                numbers.append(number)
        return cls(np.array(starts, np.int64), np.array(numbers, np.int64), total, length, buffer_rows)

    def _rows_of(self, blocks: np.ndarray) -> np.ndarray:
        """The numbers of the rows of those blocks, in their order."""
        rows = (blocks[:, None] * self.length + np.arange(self.length)).ravel()
        return rows[rows < self.total]

    def buffers(self, seed: int, epoch: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(blocks, ascending, the order of their rows) of each buffer, less the first rows of the epoch's order."""
        order = np.random.default_rng((seed, epoch)).permutation(len(self.starts))
        at_once = -(-self.buffer_rows // self.length)
        for number, begin in enumerate(range(0, len(order), at_once)):
            blocks = np.sort(order[begin : begin + at_once])
            count = len(self._rows_of(blocks))
            if first < count:
                yield blocks, np.random.default_rng((seed, epoch, number)).permutation(count)[first:]
            first = max(first - count, 0)

    def lines(self, file: BinaryIO, seed: int, epoch: int, first: int = 0) -> Iterator[tuple[int, Line]]:
        """(number of the row in the file, its line) for the rows of an epoch, less the first ones of its order."""
        for blocks, order in self.buffers(seed, epoch, first):
            rows = self._rows_of(blocks)
            lines = [line for block in blocks.tolist() for line in self._block(file, block)]
            for place in order.tolist():
                yield int(rows[place]), lines[place]

    def _block(self, file: BinaryIO, block: int) -> Iterator[Line]:
        file.seek(self.starts[block])
        left, number = min(self.length, self.total - block * self.length), int(self.numbers[block])
        while left:
            text = file.readline()
            if not text:
                raise DataError(f"{file.name} was cut short while it was read; set these batches up anew.")
            if holds_row(text):
                left -= 1
                yield number, text
            number += 1
