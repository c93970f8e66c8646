"""Loads: programs that keep the machine busy in a known way while something is measured beside them.

A load is a process of its own that ends with its context, and by itself within a second of the end of the process that
started it, however that ended: it looks whether that is still its parent.

>>> from workbench.measure.loads import run_load
>>> with run_load("busy core"):
...     pass
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from workbench.measure import blas

SECONDS_END = 5.0
SECONDS_STRETCH = 0.1
"""How long a load works between two looks at its parent."""
SECONDS_BUSY = 0.3
"""How much of each second a burst takes."""
BYTES_COPIED = 200 * 2**20
QUIET = "quiet"


class LoadError(RuntimeError):
    """Unknown name of a load, or a load process that failed to start."""


def _spin(seconds: float) -> None:
    """Keep one core busy for `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def _burst() -> None:
    """Keep one core busy for a part of a second, then sleep for the rest."""
    _spin(SECONDS_BUSY)
    time.sleep(1 - SECONDS_BUSY)


def _copies() -> Callable[[], None]:
    """Return a function that copies a large array, to keep the memory busy."""
    source = np.ones(BYTES_COPIED // 8)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


LOADS: dict[str, Callable[[], Callable[[], None]]] = {
    "busy core": lambda: lambda: _spin(SECONDS_STRETCH),
    "bursts": lambda: _burst,
    "memory traffic": _copies,
}
"""Name -> what makes a stretch of the load's work, which is repeated."""


@contextmanager
def run_load(name: str) -> Iterator[int]:
    """Run a load in a separate process within the context; yields its process id, 0 for "quiet" (no load)."""
    if name == QUIET:
        yield 0
        return
    if name not in LOADS:
        raise LoadError(f"There is no load {name!r}; there is: {', '.join((QUIET, *LOADS))}.")
    command = [sys.executable, "-m", "workbench.measure.loads", name, str(os.getpid())]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=blas.measuring_environment(), text=True
    )
    assert process.stdout is not None, "it was asked for"
    try:
        if not process.stdout.readline():
            raise LoadError(f"The load {name!r} ended with status {process.wait()} before it was at work.")
        yield process.pid
    finally:
        process.kill()
        process.wait(SECONDS_END)
        process.stdout.close()


def do_load(name: str, parent: int) -> None:
    """Do the work of a load, telling on the standard output that it begins, until `parent` is not the parent."""
    stretch = LOADS[name]()
    print("at work", flush=True)
    while os.getppid() == parent:
        stretch()


if __name__ == "__main__":
    do_load(sys.argv[1], int(sys.argv[2]))
