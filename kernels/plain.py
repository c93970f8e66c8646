"""Arrays as compiled code sees them: C-contiguous, aligned and writable, so that it is compiled once for each type."""

from typing import Any

import numpy as np


def plain(array: np.ndarray) -> np.ndarray:
    """`array` for code that only reads it: itself, an alias where it is read-only, a copy where it has gaps."""
    flags = array.flags
    if flags.carray:
        return array
    if flags.c_contiguous and flags.aligned:
        return np.asarray(_Alias(array))
    copied = np.empty(array.shape, array.dtype)
    copied[...] = array
    return copied


class _Alias:
    """The memory of a read-only array under a writable face, for compiled code that is tested never to write it."""

    def __init__(self, source: np.ndarray) -> None:
        self.source = source
        self.__array_interface__: dict[str, Any] = {
            **source.__array_interface__,
            "data": (source.ctypes.data, False),
        }
