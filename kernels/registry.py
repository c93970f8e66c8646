"""Registries of entries by name. Files are imported on first use: adding a file that registers an entry is enough.

Used for kernels, formats, operators, data sets, models, optimizers and charts. A look-up imports the file that is named
like the entry, and all files only if that has not registered it. Imports take no lock: Python's import locks execute
each file once, and an interrupted look-up is repeated by the next caller. A file whose import fails is left out and
listed by `unavailable`.
"""

import difflib
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.abc import InspectLoader
from pathlib import PurePath
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from kernels.contract import Kernel


class KernelError(ValueError):
    """A kernel was declared or called incorrectly; the message says what was given, what is allowed and what to do."""


class Named(Protocol):
    """An object with a `name`, unique in its registry."""

    @property
    def name(self) -> str:
        """Return the name by which the registry finds the entry."""


Entry = TypeVar("Entry", bound=Named)


def unknown_name(kind: str, name: object, known: Iterable[object]) -> str:
    """Return the message for an unknown name, with the nearest known one and all known ones.

    >>> unknown_name("format", "csx", ["dense", "csr"])
    "Unknown format 'csx'. Did you mean 'csr'? Expected one of: dense, csr."
    """
    names = [str(each) for each in known]
    return f"Unknown {kind} {name!r:.80}.{nearest(name, names)} Expected one of: {', '.join(names) or 'none'}."


P = ParamSpec("P")
R = TypeVar("R")


def with_known_parameters(function: Callable[P, R]) -> Callable[P, R]:
    """Return a public function, or `__init__` of a class, whose TypeError for an unknown keyword lists the known ones.

    >>> with_known_parameters(lambda factors=8: None)(factor=3)
    Traceback (most recent call last):
    ...
    TypeError: <lambda> has no parameter 'factor'; its parameters are factors. Did you mean 'factors'?
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        """Call the function if it has all parameters that are given by name."""
        for name in given:
            if name not in known:
                raise TypeError(
                    f"{called} has no parameter {name!r}; its parameters are {', '.join(known)}.{nearest(name, known)}"
                )
        return function(*args, **given)

    return checked


USUAL_NAMES = {
    "lr": ("learning_rate",), "eta0": ("learning_rate",), "step_size": ("learning_rate",), "batch": ("batch_rows",),
    "batch_size": ("batch_rows",), "epoch": ("max_iter", "epochs"), "n_epochs": ("max_iter", "epochs"),
    "num_epochs": ("max_iter", "epochs"), "max_epochs": ("max_iter", "epochs"), "epochs": ("max_iter", "passes"),
    "passes": ("max_iter", "epochs"), "max_iter": ("epochs", "passes"), "iterations": ("max_iter", "epochs"),
    "decay": ("alpha",), "reg_lambda": ("alpha", "decay"), "intercept": ("fit_intercept",), "penalty": ("l1_ratio",),
    "l1": ("l1_ratio",), "patience": ("n_iter_no_change",), "validation_split": ("validation_fraction", "held_out"),
    "seed": ("random_state",), "random_state": ("seed",), "weight_decay": ("alpha", "decay"), "l2": ("alpha", "decay"),
    "alpha": ("decay",), "sep": ("separator",), "delimiter": ("separator",), "target": ("label",),
    "target_column": ("label",), "y": ("label",), "n_jobs": ("threads",), "jobs": ("threads",),
    "workers": ("threads",), "output": ("out", "save"), "factors": ("width",),
    "n_factors": ("factors", "width"), "rank": ("factors", "width"), "n_components": ("factors", "width"),
    "gpu": ("device",), "cuda": ("device",),
}  # fmt: skip
"""Names that other libraries have for parameters, with ours, of which the first that is known is meant."""


def nearest_name(name: object, known: Iterable[object]) -> str:
    """Return the known name that is meant by a usual name of other libraries, else the nearest; "" if none is near.

    >>> nearest_name("lr", ["learning_rate", "alpha"]), nearest_name("SGD", ["adam", "sgd"])
    ('learning_rate', 'sgd')
    >>> nearest_name("epochs", ["max_iter", "tol"]), nearest_name("max_iter", ["epochs", "tol"])
    ('max_iter', 'epochs')
    """
    names, lower = [str(each) for each in known], str(name).lower()
    usual = [each for each in USUAL_NAMES.get(str(name), ()) if each in names]
    usual = usual or [each for each in names if each.lower() == lower]
    return "".join((usual or difflib.get_close_matches(str(name), names, 1))[:1])


def nearest(name: object, known: Iterable[object]) -> str:
    """Return the question whether a known name was meant, a blank in front; "" if none is near.

    >>> nearest("lr", ["learning_rate", "alpha"])
    " Did you mean 'learning_rate'?"
    """
    near = nearest_name(name, known)
    return f" Did you mean {near!r}?" if near else ""


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun, which is plural unless the count is 1.

    >>> format_count(1, "configuration"), format_count(3000, "entry"), format_count(2, "class"), format_count(0, "day")
    ('1 configuration', '3,000 entries', '2 classes', '0 days')
    """
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        noun = f"{noun[:-1]}ie"
    return f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"


def format_size(size: float) -> str:
    """Return a size in bytes with the largest unit of which there is one, in powers of 1000, as charts and reports do.

    >>> format_size(0), format_size(1), format_size(1536), format_size(5.25e6), format_size(999.6e3), format_size(3e9)
    ('0 bytes', '1 byte', '1.54 kB', '5.25 MB', '1 MB', '3 GB')
    """
    if size < 1000:
        return format_count(round(size), "byte")
    rounded = float(f"{size:.3g}")
    scale, unit = next((one for one in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if rounded >= one[0]), (1e3, "kB"))
    return f"{float(f'{size / scale:.3g}'):,.6g} {unit}"


registries: list["Registry"] = []
"""Every registry of this process."""


class Registry(Generic[Entry]):
    """Entries with a `name`, registered by the modules of `packages`, which are imported on first look-up.

    `kind` is the word for an entry in messages; `error` the exception for taken or unknown names; names in `order` come
    first in lists, the others are sorted. With `is_named_by_files` each file with a line `register(...)` has one entry,
    which has the name of the file: names are listed without an import. If some are named, only these `files` are looked
    into, names without extension.
    """

    def __init__(
        self,
        kind: str,
        packages: tuple[str, ...],
        error: type[Exception],
        order: Sequence[str] = (),
        is_named_by_files: bool = False,
        files: Sequence[str] = (),
    ) -> None:
        """Create an empty registry and append it to `registries`; nothing is imported."""
        self.kind, self.packages, self.error, self.order = kind, packages, error, tuple(order)
        self.is_named_by_files, self.files = is_named_by_files, files
        self.entries: dict[str, Entry] = {}
        self._origins: dict[str, dict | None] = {}
        self._reasons: dict[str, str] = {}
        self._scanned = False
        self._scanning: set[int] = set()
        registries.append(self)

    def register(self, entry: Entry) -> Entry:
        """Add an entry under its `name` and return it. Raises `error` if the name is taken.

        A file that is imported again after an interrupted import may register its names again.
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
        """Return all names: those of `order` first, the others sorted.

        Imports all files unless names are those of the files.
        """
        if self.is_named_by_files and not self._scanned:
            failed = {module.rpartition(".")[2] for module in self._reasons}
            known = (self._named_files - failed) | set(self.entries)
        else:
            self.scan()
            known = set(self.entries)
        return [name for name in self.order if name in known] + sorted(known.difference(self.order))

    def get(self, name: str) -> Entry:
        """Return the entry called `name`, importing files if needed.

        Raises `error`, which lists the known names and the files that could not be imported, for an unknown name.
        """
        entry = self.entries.get(name)
        if entry is None:
            self._import_likely(name)
            entry = self.entries.get(name)
        if entry is None:
            self.scan()
            entry = self.entries.get(name)
        if entry is None:
            raise self.error(self._refusal(name))
        return entry

    def unavailable(self) -> dict[str, str]:
        """Import all files; return the reason for each that could not be imported, by file name without extension."""
        self.scan()
        return {module.rpartition(".")[2]: reason for module, reason in self._reasons.items()}

    def origin(self, name: str) -> str:
        """Return the name of the module that registered the entry ("kernels.rows.add"), empty if no module did."""
        self.get(name)
        return (self._origins[name] or {}).get("__name__", "")

    def _refusal(self, name: str) -> str:
        """Return the message for a name that is unknown, or whose file could not be imported."""
        missing = self.unavailable()
        if name in missing:
            return f"The {self.kind} {name!r} is unavailable: {missing[name]}"
        text = unknown_name(self.kind, name, self.names())
        reasons = " ".join(f"{file}: {reason}" for file, reason in missing.items())
        return text + (f" Unavailable is what these files have: {reasons}" if reasons else "")

    @functools.cached_property
    def _files(self) -> dict[str, list[str]]:
        """Return the full module names of the packages by file name without extension.

        None of the modules is imported.
        """
        files: dict[str, list[str]] = {}
        for package in self.packages:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                if not self.files or module.name in self.files:
                    files.setdefault(module.name, []).append(f"{package}.{module.name}")
        return files

    @functools.cached_property
    def _named_files(self) -> set[str]:
        """Return the names of the files that have a line beginning with `register(` or `register_…(`."""
        return {name for name, modules in self._files.items() if any(map(_has_entry, modules))}

    def _import_likely(self, name: str) -> None:
        """Import the files named like an entry or its beginning, longest first, until it is registered.

        `adagrad_lazy` is looked for in `adagrad_lazy.py` and `adagrad.py`, `scipy.csr_dense` in `scipy_sparse.py` too.
        Does nothing during or after `scan`.
        """
        if self._scanned or threading.get_ident() in self._scanning:
            return
        for modules in self._likely(name):
            with _interrupts_held():
                for module in modules:
                    self._import(module)
            if name in self.entries:
                return

    def _likely(self, name: str) -> Iterator[list[str]]:
        """Yield the modules of each file that may register `name`, likeliest first; nothing is imported.

        These are files named like the entry or its beginning, longest first; for `library.entry` also the files whose
        names begin with `library_`.
        """
        words = re.split(r"(?=[_.])", name)
        beginnings = ("".join(words[:count]) for count in range(len(words), 0, -1))
        yield from [self._files[beginning] for beginning in beginnings if beginning in self._files]
        library, dot, _ = name.partition(".")
        if dot and library:
            yield from [self._files[file] for file in sorted(self._files) if file.startswith(f"{library}_")]

    def likely_origin(self, name: str) -> str:
        """Return the module whose file is named like entry `name` or its beginning; "" if none is. Imports nothing."""
        return next((modules[0] for modules in self._likely(name) if len(modules) == 1 and "." not in name), "")

    def modules(self) -> list[str]:
        """Return the names of all modules of the packages, whether they register entries or not; imports nothing."""
        return [module for modules in self._files.values() for module in modules]

    def scan(self) -> None:
        """Import all modules of the packages once. Failures are recorded, not raised.

        Nested calls of a thread return at once.
        """
        thread = threading.get_ident()
        if self._scanned or thread in self._scanning:  # the modules import the package that asks
            return
        self._scanning.add(thread)
        try:
            with _interrupts_held():
                for module in self.modules():
                    self._import(module)
            self._scanned = True  # last: an interrupted scan is none
        finally:
            self._scanning.discard(thread)

    def _import(self, module: str) -> None:
        """Import `module`; if that fails, record the reason in `_reasons` and drop its registered entries."""
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a file does wrong, the others are there
            self._reasons[module] = _reason(module, error)
            for name in [name for name in self.entries if not _is_live(self._origins[name])]:
                del self.entries[name]
        else:
            self._reasons.pop(module, None)


def _has_entry(module: str) -> bool:
    """Return whether a module's source has a line that begins with `register(` or `register_…(`; imports nothing."""
    spec = importlib.util.find_spec(module)
    source = spec.loader.get_source(module) if spec is not None and isinstance(spec.loader, InspectLoader) else None
    return source is not None and re.search(r"^register(_\w+)?\(", source, re.MULTILINE) is not None


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block: Numba cannot be imported again after an interrupted import.

    Only in the main thread; elsewhere it has no effect.
    """
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
    """Return why an import failed, such as "m could not be imported: ValueError: text (m.py, line 3).", as text."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in frames if frame.name == "<module>"), frames[-1])
    place = f"{PurePath(frame.filename).name}, line {frame.lineno}"
    return f"{module} could not be imported: {type(error).__name__}: {error} ({place})."


def _namespace_on_its_way_in() -> dict | None:
    """Return the globals of the module whose top-level code is on the call stack; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame.f_globals if frame is not None and _is_live(frame.f_globals) else None


def _is_live(namespace: dict | None) -> bool:
    """Return whether the module with these globals is imported or being imported; None counts as imported.

    Python removes a module from `sys.modules` if its import fails.
    """
    if namespace is None:
        return True
    module = sys.modules.get(namespace.get("__name__", ""))
    return module is not None and vars(module) is namespace


def registry_of(kind: str) -> "Registry[Any]":
    """Return the registry whose entries are called `kind`, such as "kernel"; StopIteration if there is none."""
    return next(registry for registry in registries if registry.kind == kind)


FOLDERS = ("products", "gradients", "updates", "rows", "convert", "losses", "factors", "vendor")
_kernels: "Registry[Kernel]" = Registry("kernel", tuple(f"kernels.{folder}" for folder in FOLDERS), KernelError)
register, names, get, unavailable = _kernels.register, _kernels.names, _kernels.get, _kernels.unavailable


def make_competitor(library: str, name: str, cpu: Any = None, gpu: Any = None, **fields: Any) -> "Kernel":
    """Return the kernel `<library>.<name>`, with operands, arguments and cost of the kernel `name`.

    `cpu` and `gpu` are its implementations, None if it has none; `fields` are further fields of `Kernel`. If the
    library is `unavailable`, for the reason given, it has no `cpu`.
    """
    known = {"competitor_of": name, "cpu": None if fields.get("unavailable") else cpu, "gpu": gpu}
    return replace(get(name), name=f"{library}.{name.rpartition('.')[2]}", **known | fields)


def register_competitor(library: str, name: str, cpu: Any = None, gpu: Any = None, **fields: Any) -> None:
    """Register the kernel that `make_competitor` returns."""
    register(make_competitor(library, name, cpu, gpu, **fields))
