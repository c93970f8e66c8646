"""Setting arrays to zero, on several threads if that is faster."""

import numpy as np
from numba import prange

from kernels.partition import equal_count
from kernels.threads import compiled_parallel, is_serial, parts

CLEARED = 4
"""Elements that are set to zero in the time of a multiply-add."""


def clear(out: np.ndarray, bounds: np.ndarray | None = None) -> None:
    """Set every element of a C-contiguous array to zero.

    `bounds` int64 are the first elements of the parts and the end, so that each part is then in the cache of its
    thread.
    """
    if is_serial(out.size // CLEARED) and bounds is None:
        out[...] = 0
    else:
        _clear_parts(out.reshape(-1), equal_count(out.size, parts()) if bounds is None else bounds)


@compiled_parallel
def _clear_parts(out, bounds):
    """Set `out` to zero in place, the slice between two consecutive `bounds` on each thread."""
    for part in prange(bounds.size - 1):
        out[bounds[part] : bounds[part + 1]] = 0
