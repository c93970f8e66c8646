"""Memory for arrays that every batch creates: blocks of earlier arrays are reused once nothing refers to them.

The system provides new memory page by page at first access. On a virtual machine that takes 2 us a page: the 3 MB of a
batch of 130,000 entries with its plan take longer than its sort. Here no new pages are needed from the second batch on.

>>> _kept.blocks.clear()  # as in a thread that is new
>>> one = empty(100_000, np.float32)
>>> place = one.ctypes.data
>>> del one
>>> empty(90_000, np.int32).ctypes.data == place
True
"""

import sys
import threading

import numpy as np
from numpy.typing import DTypeLike

from kernels.aligned import LINE

SMALL = 1 << 16
"""Bytes below which NumPy's own memory is used, which it and the C library keep."""

MOST_BLOCKS = 24
"""Blocks that a thread remembers: those of two batches, with room for gradients."""

MOST_BYTES = 1 << 28
"""Bytes of a block that is remembered, at most."""

WASTE = 2
"""A block is used for an array that has this part of its bytes, or more."""


class _Kept(threading.local):
    """Blocks of this thread."""

    def __init__(self) -> None:
        self.blocks: list[tuple[np.ndarray, int]] = []  # memory, and its first byte at the start of a cache line


_kept = _Kept()


def _references_unused() -> int:
    """Return the value of `sys.getrefcount` for a block that only the list of blocks refers to, in a loop over that
    list.
    """
    return next(sys.getrefcount(room) for room, _ in [(np.empty(0), 0)])


UNUSED = _references_unused()


def empty(size: int, dtype: DTypeLike) -> np.ndarray:
    """Return an uninitialised array of `size` elements over memory that no other array uses."""
    dtype = np.dtype(dtype)
    nbytes = size * dtype.itemsize
    if not SMALL <= nbytes <= MOST_BYTES:
        return np.empty(size, dtype)
    room, first = _block(nbytes)
    return room[first : first + nbytes].view(dtype)


def _block(nbytes: int) -> tuple[np.ndarray, int]:
    """Return a free block of at least `nbytes` bytes (the most recently used one, which may be in the cache), and
    its index.
    """
    blocks = _kept.blocks
    for place in range(len(blocks) - 1, -1, -1):
        room, first = blocks[place]
        if sys.getrefcount(room) <= UNUSED and nbytes <= room.size - LINE <= WASTE * nbytes:
            return room, first
    if len(blocks) >= MOST_BLOCKS:
        del blocks[0]
    room = np.empty(nbytes + nbytes // 8 + LINE, np.uint8)
    blocks.append((room, -room.ctypes.data % LINE))
    return blocks[-1]
