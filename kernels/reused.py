"""Memory for arrays that every batch creates: blocks of earlier arrays are reused once nothing refers to them.

The system provides new memory page by page at first access. On a virtual machine that takes 2 us a page: the 3 MB of a
batch of 130,000 entries with its plan take longer than its sort. Here no new pages are needed from the second batch on.

>>> forget()  # as in a thread that is new
>>> one = empty(100_000, np.float32)
>>> place = one.ctypes.data
>>> del one
>>> empty(90_000, np.int32).ctypes.data == place
True
"""

import sys
import threading
from collections.abc import Callable

import numpy as np
from numba import prange
from numpy.typing import DTypeLike

from kernels import structure
from kernels.aligned import LINE
from kernels.contract import KernelError
from kernels.threads import compiled, compiled_parallel, equal_count, is_serial, parts

SMALL = 1 << 16
"""Bytes below which NumPy's own memory is used, which it and the C library keep."""

MOST_BLOCKS = 24
"""Blocks that a thread remembers: those of two batches, with space for gradients."""

MOST_BYTES = 1 << 28
"""Bytes of a block that is remembered, at most."""

WASTE = 2
"""A block is used for an array that has this part of its bytes, or more."""


class _Kept(threading.local):
    """Blocks of this thread."""

    def __init__(self) -> None:
        """Start without blocks."""
        self.blocks: list[tuple[np.ndarray, int]] = []  # memory, and its first byte at the start of a cache line


_kept = _Kept()


UNUSED = next(sys.getrefcount(memory) for memory, _ in [(np.empty(0), 0)])
"""`sys.getrefcount` of a block to which only the list of blocks refers, within a loop over it."""


def empty(size: int, dtype: DTypeLike) -> np.ndarray:
    """Return an uninitialised 1-d array [size] of `dtype` over memory that no live array uses.

    Arrays from 64 KiB to 256 MiB reuse blocks of this thread that nothing refers to any more; others are new.
    """
    dtype = np.dtype(dtype)
    nbytes = size * dtype.itemsize
    if not SMALL <= nbytes <= MOST_BYTES:
        return np.empty(size, dtype)
    memory, first = _block(nbytes)
    return memory[first : first + nbytes].view(dtype)


def forget() -> None:
    """Release the blocks of this thread; arrays that use one keep it until they end, and later arrays are new."""
    _kept.blocks.clear()


def _block(nbytes: int) -> tuple[np.ndarray, int]:
    """Return (block uint8, index of its first byte at a cache line) of at least `nbytes` bytes, not referred to.

    The most recently added block that fits, else a new one, for which the oldest may be dropped.
    """
    blocks = _kept.blocks
    for place in range(len(blocks) - 1, -1, -1):
        memory, first = blocks[place]
        if sys.getrefcount(memory) <= UNUSED and nbytes <= memory.size - LINE <= WASTE * nbytes:
            return memory, first
    if len(blocks) >= MOST_BLOCKS:
        del blocks[0]
    memory = np.empty(nbytes + nbytes // 8 + LINE, np.uint8)
    blocks.append((memory, -memory.ctypes.data % LINE))
    return blocks[-1]


# Rows of uint8 or float16 taken and widened to float32 or float64, exactly.
#
# A float16 is widened by its bits, on any processor: those of its magnitude stand further left in a float32 and are
# multiplied by 2 ** 112, since the zeros of the exponents differ. The product is exact, of the smallest numbers too.
#
# >>> out = np.empty((2, 3), np.float32)
# >>> widen_rows(np.float16([[0.5, -2, 65504], [np.inf, 6e-8, 0]]), np.array([1, 0]), out)
# >>> out.tolist() == [[np.inf, float(np.float16(6e-8)), 0.0], [0.5, -2.0, 65504.0]]
# True


TYPES = (np.dtype(np.uint8), np.dtype(np.float16))
"""Types of values that are widened."""

WIDENED = 8
"""Values that are widened in the time of a multiply-add of `threads.is_serial`."""

MAGNITUDE, SIGN, INFINITE = np.uint32(0x7FFF), np.uint32(0x8000), np.uint32(0x7C00)
"""Of the bits of a float16: those of its magnitude, that of its sign, and the magnitude of infinity."""

MOVED, MOVED_SIGN, LARGEST = np.uint32(13), np.uint32(16), np.uint32(0x70000000)
"""Places by which a magnitude and a sign stand further left in a float32, and what makes infinity of one."""

SCALE = np.float32(2.0**112)


@compiled
def _bytes(source, rows, out, first, last):
    """Write source[rows[i]], uint8 [M, D], to out[i], float [R, D], for first <= i < last."""
    for i in range(np.uint64(first), np.uint64(last)):
        given, row = source[np.uint64(rows[i])], out[i]
        for j in range(row.size):
            row[j] = given[j]


@compiled
def _halves(source, rows, bits, single, out, first, last):
    """Write source[rows[i]], float16 as uint16 bits [M, D], to out[i], float [R, D], for first <= i < last.

    `bits` uint32 and `single` float32 are one scratch memory [R, D], which may be `out`.
    """
    for i in range(np.uint64(first), np.uint64(last)):
        halves, moved, values, row = source[np.uint64(rows[i])], bits[i], single[i], out[i]
        for j in range(moved.size):
            half = np.uint32(halves[j])
            magnitude = half & MAGNITUDE
            infinite = LARGEST if magnitude >= INFINITE else np.uint32(0)
            moved[j] = (magnitude << MOVED) | ((half & SIGN) << MOVED_SIGN) | infinite
        for j in range(row.size):
            row[j] = values[j] * SCALE


@compiled_parallel
def _bytes_parts(source, rows, out, bounds):
    """Write source[rows[i]], uint8 [M, D], to out[i], float [R, D], on several threads.

    Part p does rows bounds[p] to bounds[p + 1] - 1 of out.
    """
    for part in prange(bounds.size - 1):
        _bytes(source, rows, out, bounds[part], bounds[part + 1])


@compiled_parallel
def _halves_parts(source, rows, bits, single, out, bounds):
    """Run `_halves` on several threads; part p does rows bounds[p] to bounds[p + 1] - 1 of out.

    source, rows, bits and single are as in `_halves`.
    """
    for part in prange(bounds.size - 1):
        _halves(source, rows, bits, single, out, bounds[part], bounds[part + 1])


def widen_rows(source: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Write the rows `rows` int64 [R] of `source` [M, D], uint8 or float16, to `out` float32|float64 [R, D], exactly.

    All arrays are C-contiguous. Raises KernelError for other dtypes or shapes and for a row out of range.
    """
    if source.dtype not in TYPES or out.shape != (rows.size, source.shape[1]):
        raise KernelError(
            f"widen_rows takes uint8 or float16 [M, D] and out [{rows.size}, D]; source is {source.dtype} "
            f"{list(source.shape)}, out {list(out.shape)}."
        )
    if not structure.in_range(rows, source.shape[0]):
        wrong = rows[(rows < 0) | (rows >= source.shape[0])][0]
        raise KernelError(f"rows has {wrong}; the matrix has the rows 0 to {source.shape[0] - 1}.")
    if source.dtype == np.uint8:
        _run(_bytes, _bytes_parts, (source, rows, out))
    else:
        single = out if out.dtype == np.float32 else empty(out.size, np.float32).reshape(out.shape)
        _run(_halves, _halves_parts, (source.view(np.uint16), rows, single.view(np.uint32), single, out))


def _run(serial: Callable[..., None], parallel: Callable[..., None], arrays: tuple[np.ndarray, ...]) -> None:
    """Widen `arrays` (source [M, D], rows [R], ..., out [R, D]) by `serial` or `parallel`, by the size of out."""
    rows, out = arrays[1], arrays[-1]
    if is_serial(out.size // WIDENED):
        serial(*arrays, 0, rows.size)
    else:
        parallel(*arrays, equal_count(rows.size, parts()))
