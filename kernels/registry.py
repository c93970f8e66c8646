"""Entries by name. Folders are scanned on first use: a file that registers an entry is all it takes to add one."""

import importlib
import pkgutil
from typing import Generic, TypeVar

from kernels.contract import Kernel, KernelError

Entry = TypeVar("Entry")


class Registry(Generic[Entry]):
    """Entries with a `.name`, registered by the modules of some packages, which are imported on first look-up.

    `kind` is the word for an entry in messages; `error` the type of what is raised for a taken or unknown name.
    """

    def __init__(self, kind: str, packages: tuple[str, ...], error: type[Exception]) -> None:
        self.kind, self.packages, self.error = kind, packages, error
        self.entries: dict[str, Entry] = {}
        self.scanned = False

    def register(self, entry: Entry) -> Entry:
        """Add an entry and return it; a name that is taken is refused."""
        if entry.name in self.entries:
            raise self.error(f"A {self.kind} named {entry.name!r} is already registered; choose another name.")
        self.entries[entry.name] = entry
        return entry

    def names(self) -> list[str]:
        """All names, sorted."""
        self._scan()
        return sorted(self.entries)

    def get(self, name: str) -> Entry:
        """The entry of that name; an unknown name is an error that lists the known ones."""
        if name not in self.entries:
            self._scan()
        if name not in self.entries:
            raise self.error(f"There is no {self.kind} {name!r}; there is: {', '.join(self.names())}.")
        return self.entries[name]

    def _scan(self) -> None:
        if self.scanned:
            return
        self.scanned = True  # first, because the modules import the package that asks
        for package in self.packages:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                importlib.import_module(f"{package}.{module.name}")


FOLDERS = ("products", "gradients", "updates", "rows", "convert", "losses", "rivals")
_kernels: Registry[Kernel] = Registry("kernel", tuple(f"kernels.{folder}" for folder in FOLDERS), KernelError)
register, names, get = _kernels.register, _kernels.names, _kernels.get


def rivals_of(name: str) -> list[Kernel]:
    """The kernels that compute what `name` computes and are not ours, available or not."""
    get(name)
    return [kernel for kernel in map(get, names()) if kernel.rival_of == name]
