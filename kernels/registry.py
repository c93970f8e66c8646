"""Kernels by name. The folders are scanned on first use; a file that registers a kernel is all it takes to add one."""

import functools
import importlib
import pkgutil

from kernels.contract import Kernel, KernelError

FOLDERS = ("products", "gradients", "updates", "rows", "convert", "losses", "rivals")
_kernels: dict[str, Kernel] = {}


def register(kernel: Kernel) -> Kernel:
    """Add a kernel and return it; a name that is taken is refused (`KernelError`)."""
    if kernel.name in _kernels:
        where = _kernels[kernel.name].reference.__module__
        raise KernelError(f"A kernel named {kernel.name!r} is already registered by {where}; choose another name.")
    _kernels[kernel.name] = kernel
    return kernel


@functools.cache
def _scan() -> None:
    for folder in FOLDERS:
        package = importlib.import_module(f"kernels.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"kernels.{folder}.{module.name}")


def names() -> list[str]:
    """Names of all kernels, rivals included, sorted."""
    _scan()
    return sorted(_kernels)


def get(name: str) -> Kernel:
    """The kernel of that name; an unknown name is an error that lists the known ones (`KernelError`)."""
    if name not in _kernels:
        _scan()
    if name not in _kernels:
        raise KernelError(f"There is no kernel {name!r}. The kernels are: {', '.join(names())}.")
    return _kernels[name]


def rivals_of(name: str) -> list[Kernel]:
    """The kernels that compute what `name` computes and are not ours, available or not."""
    get(name)
    return [kernel for kernel in map(get, names()) if kernel.rival_of == name]
