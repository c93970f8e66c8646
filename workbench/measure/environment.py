"""The BLAS that dense baselines run on: which one is loaded, and the environment in which it makes its own choices.

A slowed baseline proves nothing. Environment variables that pin BLAS to older processors or fewer threads, or change
memory allocation, are therefore removed for the processes of a sweep; records state what was removed.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import threadpoolctl

from kernels import threads

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

REMOVED = "WORKBENCH_ENVIRONMENT_REMOVED"
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
    interventions = {REMOVED: json.dumps(put_right)} if put_right else {}
    return {name: value for name, value in environment.items() if name not in pins} | OWN | interventions


def removed_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return {variable: former value} of the variables removed from this process's environment for measuring."""
    return json.loads(environment.get(REMOVED, "{}"))
