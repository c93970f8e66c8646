"""Numba's events: apart from `of_numba`, since no number that compiled code gives follows from them."""

import contextlib
import time
from collections.abc import Callable, Iterator

from kernels._compat import part

event = part("numba.core.event")


@contextlib.contextmanager
def watched_compiling(begin: Callable[[], object], end: Callable[[float], object]) -> Iterator[None]:
    """Call `begin` whenever compiling begins while the context is open, and `end` with its seconds when it has ended.

    Functions that are compiled for another one are parts of its compiling. What is loaded from a cache is not compiled.
    """
    depth, began = 0, 0.0

    class Listener(event.Listener):  # type: ignore[name-defined]
        """Listener of Numba's compile events that reports the outermost compilation of the thread."""

        def on_start(self, _event: object) -> None:
            """Count one more open compilation; at the first start the clock and call `begin`."""
            nonlocal depth, began
            depth += 1
            if depth == 1:
                began = time.perf_counter()
                begin()

        def on_end(self, _event: object) -> None:
            """Count one open compilation less; call `end` with the seconds after the last."""
            nonlocal depth
            depth -= 1
            if depth == 0:
                end(time.perf_counter() - began)

    with event.install_listener("numba:compile", Listener()):
        yield
