"""Software and processor that code runs on: what two results must share to be pooled."""

import functools
import importlib.metadata
import json
import platform
import subprocess
import sys

from workbench.measure import loads, machine

PACKAGES = ("numpy", "scipy", "numba", "llvmlite")
"""Packages whose code is in every result."""

_LOADED = "import json, numpy, scipy.linalg, threadpoolctl as t; print(json.dumps(t.threadpool_info()))"


@functools.cache
def describe_stack(*more: str) -> dict[str, str]:
    """Return the versions of Python, `PACKAGES` and BLAS, and the name of the processor.

    `more` names further packages; a package that is not installed has the version "".
    """
    return versions(*more) | {"blas": _blas(), "cpu": machine.cpu_name()}


def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python, of `PACKAGES` and of the packages `more`; empty if one is not installed."""
    return {"python": platform.python_version()} | {name: _version(name) for name in (*PACKAGES, *more)}


def _version(package: str) -> str:
    """Return the installed version of a package, "" if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _blas() -> str:
    """Return the BLAS that a process that measures has loaded, found in such a process: in this one others may be
    loaded, and variables may hold it back that are kept from those. About 0.2 s, once."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, env=loads.measuring_environment()
    )
    return loads.name(json.loads(done.stdout))
