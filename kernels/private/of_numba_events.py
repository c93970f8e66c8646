"""Numba's events: apart from `of_numba`, since no number that compiled code gives follows from them."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from kernels.private import part

event = part("numba.core.event")


def timed_compiling(hear: Callable[[float], object]) -> AbstractContextManager[object]:
    """Call `hear` at the context's end with the seconds that compiling took while it was open, if anything did."""
    return event.install_timer("numba:compile", hear)
