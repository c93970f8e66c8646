"""Arrays as compiled code sees them: C-contiguous, aligned and writable, so that it is compiled once for each type."""

from typing import Any

import numpy as np


def plain(array: np.ndarray) -> np.ndarray:
    """Return an array for reading by compiled code: itself, an alias if it is read-only, a copy if not contiguous."""
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
