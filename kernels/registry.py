"""Entries by name. Folders are scanned on first use: a file that registers an entry is all it takes to add one.

This is the registry of kernels, formats, operators, data sets, models, optimizers and charts. A scan takes no lock of
its own: Python's import locks let each file run once, however many threads ask, and a scan that did not come to its end
is made again by whoever asks next. A file whose import fails is left out, and told by `unavailable`.
"""

import importlib
import pkgutil
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType
from typing import Generic, Protocol, TypeVar

from kernels.contract import Kernel, KernelError


class Named(Protocol):
    """An object with a `name`, unique in its registry."""

    @property
    def name(self) -> str:
        """Name by which the registry finds the entry."""


Entry = TypeVar("Entry", bound=Named)


registries: list["Registry"] = []
"""Every registry of this process."""


class Registry(Generic[Entry]):
    """Entries with a `.name`, registered by the modules of some packages, which are imported on first look-up.

    `kind` is the word for an entry in messages; `error` the type of what is raised for a taken or unknown name; names
    in `order` come first in lists, the others follow sorted.
    """

    def __init__(self, kind: str, packages: tuple[str, ...], error: type[Exception], order: Sequence[str] = ()) -> None:
        self.kind, self.packages, self.error, self.order = kind, packages, error, tuple(order)
        self.entries: dict[str, Entry] = {}
        self._origins: dict[str, dict | None] = {}
        self._reasons: dict[str, str] = {}
        self._scanned = False
        self._scanning: set[int] = set()
        registries.append(self)

    def register(self, entry: Entry) -> Entry:
        """Add an entry and return it; a name that is taken is refused.

        A file that is imported again, after its import was interrupted, takes its own names once more.
        """
        if entry.name in self.entries and _is_live(self._origins[entry.name]):
            names = ", ".join(sorted(self.entries))
            raise self.error(
                f"A {self.kind} named {entry.name!r} is already registered; choose another name. Taken are: {names}."
            )
        self._origins[entry.name] = _namespace_on_its_way_in()
        self.entries[entry.name] = entry
        return entry

    def names(self) -> list[str]:
        """All names, those of `order` first, the others sorted."""
        self.scan()
        known = list(self.entries)
        return [name for name in self.order if name in known] + sorted(set(known).difference(self.order))

    def get(self, name: str) -> Entry:
        """The entry of that name; an unknown one is an error that lists the known ones and what is unavailable."""
        entry = self.entries.get(name)
        if entry is None:
            self.scan()
            entry = self.entries.get(name)
        if entry is None:
            raise self.error(self._refusal(name))
        return entry

    def unavailable(self) -> dict[str, str]:
        """Reasons why files of entries could not be imported, by the names of the files."""
        self.scan()
        return {module.rpartition(".")[2]: reason for module, reason in self._reasons.items()}

    def origin(self, name: str) -> str:
        """Name of the module that registered the entry; empty for one that no module did."""
        self.get(name)
        return (self._origins[name] or {}).get("__name__", "")

    def _refusal(self, name: str) -> str:
        missing = self.unavailable()
        if name in missing:
            return f"The {self.kind} {name!r} is unavailable: {missing[name]}"
        text = f"There is no {self.kind} {name!r}; there is: {', '.join(self.names())}."
        reasons = " ".join(f"{file}: {reason}" for file, reason in missing.items())
        return text + (f" Unavailable is what these files have: {reasons}" if reasons else "")

    def scan(self) -> None:
        """Import the files of the packages, once; those which this thread is importing already are not waited for."""
        thread = threading.get_ident()
        if self._scanned or thread in self._scanning:  # the modules import the package that asks
            return
        self._scanning.add(thread)
        try:
            with _interrupts_held():
                for package in self.packages:
                    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                        self._import(f"{package}.{module.name}")
            for name in [name for name in self.entries if not _is_live(self._origins[name])]:
                del self.entries[name]
            self._scanned = True  # last: an interrupted scan is none
        finally:
            self._scanning.discard(thread)

    def _import(self, module: str) -> None:
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a file does wrong, the others are there
            self._reasons[module] = _reason(module, error)
        else:
            self._reasons.pop(module, None)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C until the end, about a second: a library whose import was cut short (Numba) never imports again."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    interrupts: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *signalled: interrupts.append(signalled))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for signalled in interrupts[:1]:
            handler(*signalled)


def _reason(module: str, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in frames if frame.name == "<module>"), frames[-1])
    place = f"{PurePath(frame.filename).name}, line {frame.lineno}"
    return f"{module} could not be imported: {type(error).__name__}: {error} ({place})."


def _namespace_on_its_way_in() -> dict | None:
    """The names of the module that is being run, from which a call comes; None for a call that none makes."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame.f_globals if frame is not None and _is_live(frame.f_globals) else None


def _is_live(namespace: dict | None) -> bool:
    """Whether the import of the module with these names went well, or is on its way: Python forgets a failed one."""
    if namespace is None:
        return True
    module = sys.modules.get(namespace.get("__name__", ""))
    return module is not None and vars(module) is namespace


def origin(kind: str, name: str) -> str:
    """Name of the module that registered the entry of that name in the registry of that kind."""
    return next(registry for registry in registries if registry.kind == kind).origin(name)


FOLDERS = ("products", "gradients", "updates", "rows", "convert", "losses", "rivals")
_kernels: Registry[Kernel] = Registry("kernel", tuple(f"kernels.{folder}" for folder in FOLDERS), KernelError)
register, names, get, unavailable = _kernels.register, _kernels.names, _kernels.get, _kernels.unavailable


def rivals_of(name: str) -> list[Kernel]:
    """The kernels that compute what `name` computes and are not ours, available or not."""
    get(name)
    return [kernel for kernel in map(get, names()) if kernel.rival_of == name]
