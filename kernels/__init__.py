"""Sparse products, gradients, lazy updates and conversions on plain arrays. Numba on the CPU, CuPy on the GPU.

>>> import numpy as np, kernels
>>> indptr, indices = np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32)
>>> out = np.empty((2, 2), np.float32)
>>> kernels.get("csr_dense").cpu(indptr, indices, np.float32([2, 3]), np.eye(2, dtype=np.float32), out)
>>> out
array([[0., 2.],
       [3., 0.]], dtype=float32)
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

if os.name != "posix":
    raise ImportError(
        f"The kernels need a POSIX system, Linux or macOS; this one is {os.name!r}. On Windows use them inside WSL 2."
    )

from kernels.registry import KernelError, get, names, register, unavailable

if TYPE_CHECKING:
    from kernels.contract import Case, Cost, Kernel, Sizes

__all__ = [
    "Case",
    "Cost",
    "Kernel",
    "KernelError",
    "Sizes",
    "get",
    "names",
    "register",
    "unavailable",
]


def __getattr__(name: str) -> Any:
    """Return a name of `kernels.contract`, imported now: a registry of other entries needs neither it nor Numba.

    Raises AttributeError for other names.
    """
    if name in __all__:
        return getattr(importlib.import_module("kernels.contract"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
