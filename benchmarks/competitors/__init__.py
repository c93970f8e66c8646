"""Kernels of other libraries, compared with kernels of this project that have the same operands, arguments and cost.

The libraries of the engines `vendor` and `dense` are in `kernels/vendor`.
"""

from typing import Any

import kernels
from benchmarks.shapes import BenchError
from kernels import Kernel
from kernels.registry import Registry, make_competitor

KIND = "competing kernel"
_kernels: Registry[Kernel] = Registry(KIND, ("benchmarks.competitors",), BenchError)
names, get = _kernels.names, _kernels.get


def register_competitor(library: str, name: str, cpu: Any = None, gpu: Any = None, **fields: Any) -> None:
    """Register the kernel that `kernels.registry.make_competitor` returns, as a competitor only."""
    _kernels.register(make_competitor(library, name, cpu, gpu, **fields))


def competitors_of(name: str) -> list[Kernel]:
    """Return the kernels of other libraries that compete with kernel `name`, available or not. Raises KernelError."""
    kernels.get(name)
    every = [*map(kernels.get, kernels.names()), *map(get, names())]
    return sorted((kernel for kernel in every if kernel.competitor_of == name), key=lambda kernel: kernel.name)
