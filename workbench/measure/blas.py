"""The BLAS that dense baselines run on: which one is loaded, and the environment in which it makes its own choices.

A baseline that is held back proves nothing. Variables that pin BLAS to the code of an older processor, or to fewer
threads, are therefore kept from the processes of a sweep: what is measured is set in its spec and stands in its rows.
"""

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

OWN = {"OPENBLAS_THREAD_TIMEOUT": "12"}
"""What processes that measure are started with: idle OpenBLAS threads wait 2**12 turns awake, not 2**26, which are tens
of milliseconds in which they keep a core from our kernels and from other programs. Read when the library is loaded.

Measured on two quiet cores in turns, 8 fresh processes each, time with it / without it of a dense step on two threads:
1.00 (0.51 to 1.96) at 64 rows a batch, 0.89 (0.71 to 1.11) at 256, 0.89 (0.76 to 1.06) at 1,024.
"""


def loaded(info: Sequence[Mapping[str, Any]] | None = None) -> list[dict]:
    """BLAS libraries that this process has loaded, sorted: name, version, architecture it chose, threads now.

    Those of another process by `info`, what `threadpoolctl.threadpool_info` gave there.
    """
    keys = ("internal_api", "version", "architecture", "num_threads", "threading_layer")
    info = threadpoolctl.threadpool_info() if info is None else info
    found = [{key: entry.get(key) for key in keys} for entry in info if entry["user_api"] == "blas"]
    return sorted(found, key=str)


def name(info: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Names, versions and architectures of the loaded BLAS in one line; `info` as of `loaded`."""
    names = {f"{entry['internal_api']} {entry['version']} {entry['architecture']}" for entry in loaded(info)}
    return ", ".join(sorted(names))


def holding_back(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that pin BLAS or its threads to something else than they would choose, with their values.

    What `kernels.threads` itself sets in this process is none of them.
    """
    own = ("GOMP_SPINCOUNT", threads.SPIN_COUNT)
    variables = {name: environment[name] for name in (*HOLD_BACK, *THREADS) if name in environment}
    return {name: value for name, value in variables.items() if (name, value) != own}


def own_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment without those variables and with `OWN`: what a process that measures is started in."""
    pins = holding_back(environment)
    return {name: value for name, value in environment.items() if name not in pins} | OWN
