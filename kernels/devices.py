"""Devices: the only importer of CuPy. Everything else asks here whether there is a GPU, and gets a reason when not.

Probing starts the CUDA driver, which a process that later forks must not have done: `probe` therefore asks a child.
"""

import functools
import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

INSTALL = "pip install 'sparse-workbench[cuda12]' (or [cuda13])"
_PROBE = """
import cupy
count = cupy.cuda.runtime.getDeviceCount()
properties = cupy.cuda.runtime.getDeviceProperties(0)
print(properties["name"].decode(), properties["totalGlobalMem"], sep="\\t")
"""


@dataclass(frozen=True)
class Gpu:
    """What `probe` found: a device, or the reason why there is none."""

    name: str = ""
    bytes_memory: int = 0
    reason: str = ""

    @property
    def present(self) -> bool:
        """Whether a CUDA device can be used."""
        return not self.reason


@functools.cache
def probe(seconds_timeout: float = 60) -> Gpu:
    """Look for a CUDA device in a child process, so that this process stays free of the driver. Never raises."""
    if importlib.util.find_spec("cupy") is None:
        return Gpu(reason=f"CuPy is not installed; on a machine with an NVIDIA GPU: {INSTALL}")
    try:
        child = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=seconds_timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Gpu(reason=f"the CUDA driver did not answer within {seconds_timeout:g} s")
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"the probe ended with status {child.returncode}"]
        return Gpu(reason=f"no CUDA device: {lines[-1]}")
    name, memory = child.stdout.strip().split("\t")
    return Gpu(name, int(memory))


def cupy() -> ModuleType:
    """The CuPy module; `ImportError` with the install line where there is none."""
    if importlib.util.find_spec("cupy") is None:
        raise ImportError(f"This needs CuPy: {INSTALL}")
    return __import__("cupy")


def array_module(array: object) -> ModuleType:
    """NumPy or CuPy, whichever `array` belongs to; loads CuPy only for one of its own arrays."""
    return cupy() if type(array).__module__.split(".")[0] == "cupy" else np


def cuda_source(python_file: str) -> str:
    """The text of the `.cu` file beside a kernel's `.py` (`FileNotFoundError` where its gpu twin is not written)."""
    return Path(python_file).with_suffix(".cu").read_text(encoding="utf-8")
