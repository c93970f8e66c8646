"""The rows of a text file in a random order, without holding the file: random blocks, shuffled together in a buffer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, final

import numpy as np

from workbench.data.batches.block_order import BlockOrder
from workbench.data.errors import DataError
from workbench.data.text.svmlight import Line, holds_row


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """Starts of the blocks of an `order` in a file: `starts` in bytes and `numbers` of lines, int64.

    A file that was cut short is a `DataError`.
    """

    starts: np.ndarray
    numbers: np.ndarray
    order: BlockOrder

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]], buffer_rows: int) -> "Blocks":
        """Blocks of the (byte, line number) of every row, in order. One pass, O(rows)."""
        length, starts, numbers, total = BlockOrder(0, buffer_rows).length, [], [], 0
        for total, (start, number) in enumerate(places, 1):
            if (total - 1) % length == 0:
                starts.append(start)
                numbers.append(number)
        return cls(np.array(starts, np.int64), np.array(numbers, np.int64), BlockOrder(total, buffer_rows))

    def lines(self, file: BinaryIO, seed: int, epoch: int, first: int = 0) -> Iterator[tuple[int, Line]]:
        """(number of the row in the file, its line) for the rows of an epoch, less the first ones of its order."""
        for blocks, within in self.order.buffers(seed, epoch, first):
            rows = self.order.rows_of(blocks)
            lines = [line for block in blocks.tolist() for line in self._block(file, block)]
            for place in within.tolist():
                yield int(rows[place]), lines[place]

    def _block(self, file: BinaryIO, block: int) -> Iterator[Line]:
        file.seek(self.starts[block])
        left, number = min(self.order.length, self.order.total - block * self.order.length), int(self.numbers[block])
        while left:
            text = file.readline()
            if not text:
                raise DataError(f"{file.name} was cut short while it was read; set these batches up anew.")
            if holds_row(text):
                left -= 1
                yield number, text
            number += 1
