"""Memory that the C library keeps for later calls, given back to the system."""

import ctypes
import sys


def release_heap() -> None:
    """Return free memory of the C library to the system; does nothing where the library cannot, as outside Linux."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
