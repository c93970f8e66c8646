"""A table whose blocks are kept after the first pass, so that later passes do not read and split the file again."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, final

import numpy as np

from workbench.data.tables.arrow import Texts, arrow
from workbench.data.tables.blocks import Block, Table

BYTES_VALUE = 8
"""Bytes that are kept for each value at most, on average: as many as its entry takes in the matrix."""


@final
class HeldTable:
    """A table that keeps the blocks of `names` when they are first read, in no more memory than their matrix takes.

    Where texts are so long or so different that they take more, nothing is kept, and each pass reads the file.
    """

    def __init__(self, table: Table, names: Collection[str]) -> None:
        self._table, self._wanted = table, names
        self.path, self.names, self.nested = table.path, table.names, table.nested
        self._kept: list[Block] = []
        self._is_whole = False
        self.is_last_pass = False
        """Whether the next pass is the last one, so that what it has yielded is not kept."""

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        if self._is_whole and self._kept and set(names) <= self._kept[0].keys():
            blocks = deque(self._kept)
            if self.is_last_pass:
                self._kept, self._is_whole = [], False
            while blocks:
                block = blocks.popleft()
                yield {name: _widened(block[name]) for name in names}
        elif names:
            yield from self._read(names)

    def _read(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the blocks of a pass over the file; keep them where they fit."""
        every = [name for name in self.names if name in self._wanted or name in names]
        taken = values = 0
        self._kept, is_kept = [], not (self._is_whole or self.is_last_pass)
        for block in self._table.blocks(every if is_kept else names):
            yield {name: block[name] for name in names}
            if is_kept:
                self._kept.append({name: _narrowed(texts) for name, texts in block.items()})
                taken += sum(_bytes_of(texts) for texts in self._kept[-1].values())
                values += sum(len(texts.numbers) for texts in block.values())
                if taken > BYTES_VALUE * values:
                    self._kept, is_kept = [], False
        self._is_whole = True
        arrow().default_memory_pool().release_unused()  # what the blocks took while they were split

    def place(self, row: int) -> str:
        """Place of the row, counted from 0, in the file, in words."""
        return self._table.place(row)

    def layout(self) -> dict[str, Any]:
        """Return the parameters by which another file is split as this one is."""
        return self._table.layout()


def _narrowed(texts: Texts) -> Texts:
    """Return the texts with their numbers in 16 bits, if there are few."""
    dtype = np.int16 if len(texts.distinct) <= np.iinfo(np.int16).max else np.int32
    return Texts(texts.distinct, texts.numbers.astype(dtype))


def _widened(texts: Texts) -> Texts:
    """Return the texts with their numbers in 32 bits."""
    return Texts(texts.distinct, texts.numbers.astype(np.int32, copy=False))


def _bytes_of(texts: Texts) -> int:
    """Return the bytes that the texts take in memory."""
    return int(texts.distinct.nbytes) + texts.numbers.nbytes
