"""Memory for dense values: blocks that last for the executor's life, given to values whose time does not overlap."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernels import aligned


@dataclass
class Pool:
    """Flat arrays by key; the only place where buffers are allocated.

    A block is as large as the largest value that it ever held; smaller ones take its leading part. `grown` counts the
    allocations: an executor whose shapes are known makes none.
    """

    blocks: dict[Hashable, np.ndarray] = field(default_factory=dict)
    grown: int = 0

    def view(self, key: Hashable, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """A C-contiguous array of that shape over the block's leading part; new blocks are zeros."""
        size = math.prod(shape)
        block = self.blocks.get(key)
        if block is None or block.size < size or block.dtype != dtype:
            block = self.blocks[key] = aligned.zeros((size,), dtype)
            self.grown += 1
        return block[:size].reshape(shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return sum(block.nbytes for block in self.blocks.values())


@dataclass
class Shared:
    """Block that a value takes for its time: one that is free and large enough, else the largest free one, else new.

    One of these lays out one program; blocks are numbered by dtype in order of first use, so that programs for other
    shapes take the same ones.
    """

    free: dict[np.dtype, list[tuple[int, int]]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    count: dict[np.dtype, int] = field(default_factory=dict)

    def take(self, size: int, dtype: np.dtype) -> tuple[str, int]:
        """The key of a block for a value of `size` elements."""
        free = sorted(self.free.get(dtype, []))
        if free:
            chosen = next((entry for entry in free if entry[0] >= size), free[-1])
            self.free[dtype].remove(chosen)
            number = chosen[1]
        else:
            number = self.count[dtype] = self.count.get(dtype, 0) + 1
        key = dtype.name, number
        self.sizes[key] = max(self.sizes.get(key, 0), size)
        return key

    def give_back(self, key: tuple[str, int]) -> None:
        """The value's time is over."""
        self.free.setdefault(np.dtype(key[0]), []).append((self.sizes[key], key[1]))


def last_uses(steps: Sequence[tuple[Hashable, Sequence[Hashable], bool]], kept: Sequence[Hashable]) -> dict:
    """The number of the last step that may read each value, from (result, inputs, whether it may share their memory).

    Values that are kept last beyond the last step. A result that may share the memory of its inputs, as sparse results
    may, keeps them for as long as it is read itself. O(steps + inputs).
    """
    last = dict.fromkeys(kept, len(steps))
    for number in range(len(steps) - 1, -1, -1):
        result, inputs, shares = steps[number]
        mine = max(number, last.get(result, number))
        for entry in inputs:
            last[entry] = max(last.get(entry, -1), mine if shares else number)
        last.setdefault(result, number)
    return last
