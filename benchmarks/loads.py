"""Loads: programs that keep the machine busy in a known way while something is measured.

A load is a process of its own that ends with its context, and by itself within a second of the end of the process that
started it, however that ended: it looks whether that is still its parent.

>>> from benchmarks.loads import run_load
>>> with run_load("busy core"):
...     pass
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from kernels.registry import unknown_name
from workbench.measure.environment import measuring_environment

SECONDS_END = 5.0
SECONDS_BURST = 0.1
"""How long a load works between two looks at its parent."""
SECONDS_BUSY = 0.3
"""How much of each second a burst takes."""
SECONDS_DRIFT, SHARE_DRIFT = 60.0, 0.5
"""The period of a load that drifts, and the largest share of a core that it takes."""
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
    """Keep one core busy for 0.3 s, then sleep for 0.7 s."""
    _spin(SECONDS_BUSY)
    time.sleep(1 - SECONDS_BUSY)


def _drift() -> None:
    """Keep one core busy for a share of 0.1 s that varies over a minute between 0 and `SHARE_DRIFT`, then sleep."""
    share = SHARE_DRIFT * (1 - math.cos(2 * math.pi * time.monotonic() / SECONDS_DRIFT)) / 2
    _spin(share * SECONDS_BURST)
    time.sleep((1 - share) * SECONDS_BURST)


def _copies() -> Callable[[], None]:
    """Return a function that copies an array of 200 MiB, to keep the memory busy; allocates both arrays."""
    source = np.ones(BYTES_COPIED // 8)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


LOADS: dict[str, Callable[[], Callable[[], None]]] = {
    "busy core": lambda: lambda: _spin(SECONDS_BURST),
    "busy cores": lambda: lambda: _spin(SECONDS_BURST),
    "bursts": lambda: _burst,
    "drift": lambda: _drift,
    "memory traffic": _copies,
}
"""Name -> what makes a stretch of the load's work, which is repeated."""
PROCESSES = {"busy cores": os.cpu_count() or 1}
"""How many processes a load has, where it is more than one."""


@contextmanager
def run_load(name: str) -> Iterator[int]:
    """Run a load in separate processes within the context; yields the id of one, 0 for "quiet" (no load).

    Raises LoadError for an unknown name or a process that fails to start.
    """
    if name == QUIET:
        yield 0
        return
    if name not in LOADS:
        raise LoadError(unknown_name("load", name, (QUIET, *LOADS)))
    with ExitStack() as others:
        for _ in range(PROCESSES.get(name, 1) - 1):
            others.enter_context(_run_process(name))
        with _run_process(name) as pid:
            yield pid


@contextmanager
def _run_process(name: str) -> Iterator[int]:
    """Run one process of a load within the context; yields its id; raises LoadError if it fails to start."""
    command = [sys.executable, "-m", "benchmarks.loads", name, str(os.getpid())]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=measuring_environment(), text=True
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
    """Do the work of a load until `parent` is no longer the parent; prints "at work" when it begins."""
    burst = LOADS[name]()
    print("at work", flush=True)
    while os.getppid() == parent:
        burst()


if __name__ == "__main__":
    do_load(sys.argv[1], int(sys.argv[2]))
