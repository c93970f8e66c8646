"""Rows of uint8 or float16 taken and widened to float32 or float64, exactly.

A float16 is widened by its bits, on any processor: those of its magnitude stand further left in a float32 and are
multiplied by 2 ** 112, since the zeros of the exponents differ. The product is exact, of the smallest numbers too.

>>> out = np.empty((2, 3), np.float32)
>>> widen_rows(np.float16([[0.5, -2, 65504], [np.inf, 6e-8, 0]]), np.array([1, 0]), out)
>>> out.tolist() == [[np.inf, float(np.float16(6e-8)), 0.0], [0.5, -2.0, 65504.0]]
True
"""

from collections.abc import Callable

import numpy as np
from numba import prange

from kernels import reused, structure
from kernels.contract import KernelError
from kernels.partition import equal_count
from kernels.threads import compiled, compiled_parallel, is_serial, parts

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
    """Write source[rows[i]], uint8, to out[i], float, for i in [first, last)."""
    for i in range(np.uint64(first), np.uint64(last)):
        given, row = source[np.uint64(rows[i])], out[i]
        for j in range(row.size):
            row[j] = given[j]


@compiled
def _halves(source, rows, bits, single, out, first, last):
    """Widen float16 rows by their bits, then scale them: `single` is the same memory as `bits`."""
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
    """Do `_bytes` for the rows between two `bounds` on each thread."""
    for part in prange(bounds.size - 1):
        _bytes(source, rows, out, bounds[part], bounds[part + 1])


@compiled_parallel
def _halves_parts(source, rows, bits, single, out, bounds):
    """Write source[rows[i]], float16 held as bits, to out[i] through float32, the rows between two `bounds` on each
    thread.
    """
    for part in prange(bounds.size - 1):
        _halves(source, rows, bits, single, out, bounds[part], bounds[part + 1])


def widen_rows(source: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Copy the rows `rows` int64 [R] of `source` [M, D], uint8 or float16, to `out` float32|float64 [R, D], widened.

    All arrays are C-contiguous. Raises KernelError for a row out of range.
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
        single = out if out.dtype == np.float32 else reused.empty(out.size, np.float32).reshape(out.shape)
        _run(_halves, _halves_parts, (source.view(np.uint16), rows, single.view(np.uint32), single, out))


def _run(serial: Callable[..., None], parallel: Callable[..., None], arrays: tuple[np.ndarray, ...]) -> None:
    """Widen `arrays` (source [M, D], rows [R], ..., out [R, D]) on one thread or on several, by the size of `out`."""
    rows, out = arrays[1], arrays[-1]
    if is_serial(out.size // WIDENED):
        serial(*arrays, 0, rows.size)
    else:
        parallel(*arrays, equal_count(rows.size, parts()))
