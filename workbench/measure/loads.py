"""Loads: programs that keep the machine busy in a known way while something is measured.

A load is a process of its own that ends with its context, and by itself within a second of the end of the process that
started it, however that ended: it looks whether that is still its parent.

>>> from workbench.measure.loads import run_load
>>> with run_load("busy core"):
...     pass
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import threadpoolctl

from kernels import threads
from kernels.registry import unknown_name

# The BLAS that dense baselines run on: which one is loaded, and the environment in which it makes its own choices.
#
# A slowed baseline proves nothing. Environment variables that pin BLAS to older processors or fewer threads, or
# change memory allocation, are therefore removed for the processes of a sweep; records state what was removed.

HOLD_BACK = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "BLIS_ARCH_TYPE")
THREADS = (
    *("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MKL_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"),
    *("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY"),
)
ALLOCATION = (
    *("MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST", "MALLOC_CHECK_", "MALLOC_CONF", "MALLOC_MMAP_MAX_"),
    *("MALLOC_MMAP_THRESHOLD_", "MALLOC_PERTURB_", "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"),
)
"""Variables of allocators: what a step takes, and what is held at its peak, are other numbers with them."""

MENDED = "WORKBENCH_MENDED"
"""The variable by which a process learns what was kept from it, as JSON."""

OWN = {"OPENBLAS_THREAD_TIMEOUT": "12"}
"""What processes that measure are started with: idle OpenBLAS threads wait 2**12 turns awake, not 2**26, which are tens
of milliseconds in which they keep a core from our kernels and from other programs. Read when the library is loaded.

Measured on two quiet cores in turns, 8 fresh processes each, time with it / without it of a dense step on two threads:
1.00 (0.51 to 1.96) at 64 rows a batch, 0.89 (0.71 to 1.11) at 256, 0.89 (0.76 to 1.06) at 1,024.
"""


def loaded_libraries(info: Sequence[Mapping[str, Any]] | None = None) -> list[dict]:
    """Return the BLAS libraries loaded in this process, sorted: a dict of version, architecture, threads, ... each.

    For another process pass as `info` the list that `threadpoolctl.threadpool_info` returned in it.
    """
    keys = ("internal_api", "version", "architecture", "num_threads", "threading_layer")
    info = threadpoolctl.threadpool_info() if info is None else info
    found = [{key: entry.get(key) for key in keys} for entry in info if entry["user_api"] == "blas"]
    return sorted(found, key=str)


def blas_name(info: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Return names, versions and architectures of the loaded BLAS in one line; `info` as in `loaded_libraries`."""
    names = {f"{entry['internal_api']} {entry['version']} {entry['architecture']}" for entry in loaded_libraries(info)}
    return ", ".join(sorted(names))


def distorting_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables in `environment` that distort a measurement, with their values.

    They are settings of BLAS, threads and allocation; the spin count that `kernels.threads` sets itself is not
    included.
    """
    own = ("GOMP_SPINCOUNT", threads.SPIN_COUNT)
    distorting = (*HOLD_BACK, *THREADS, *ALLOCATION)
    variables = {name: environment[name] for name in distorting if name in environment}
    return {name: value for name, value in variables.items() if (name, value) != own}


def measuring_environment(
    environment: Mapping[str, str] = os.environ, stopped: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment for a measuring process: without `distorting_variables`, with the variables `OWN`.

    What was removed, and the other interventions `stopped` ({name: value}), are recorded in it for `removed_variables`.
    """
    pins = distorting_variables(environment)
    put_right = removed_variables(environment) | pins | dict(stopped or {})
    interventions = {MENDED: json.dumps(put_right)} if put_right else {}
    return {name: value for name, value in environment.items() if name not in pins} | OWN | interventions


def removed_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return {variable: former value} of the variables removed from this process's environment for measuring."""
    return json.loads(environment.get(MENDED, "{}"))


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
    command = [sys.executable, "-m", "workbench.measure.loads", name, str(os.getpid())]
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
