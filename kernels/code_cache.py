"""Cache of compiled code on disk: keyed by the source it was compiled from, and safe for several processes at once.

Numba keys the cache of a function by the time stamp of its own file, so that changes in files that it takes compiled
functions or constants from go unnoticed. Here the name of a cached file contains a digest of the function's byte code,
its options, and all that both refer to: compiled functions recursively, constants, and whole files for intrinsics and
overloads. Checkouts of the same code share the folder that NUMBA_CACHE_DIR names.

Numba 0.68 writes a function's index first, then the file of the new version under the index's next number, without a
lock. Two processes that save two versions at once may take the same number: the index then has the code of one under
the types of the other, and a later process runs it. A lock here serialises them; saving takes some ms.
"""

import fcntl
import functools
import hashlib
import inspect
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from opcode import hasconst
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np

from kernels import bounds
from kernels._compat.numba_internals import (
    Dispatcher,
    FileCache,
    Intrinsic,
    NullCache,
    ParallelCompiler,
    PartCompiler,
    WholeCompiler,
    config,
    definition_of,
    keep_code_in,
)

Function = TypeVar("Function", bound=Callable[..., Any])

CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, np.dtype, numba.types.Type)
"""Types of values that their text tells apart."""

SCALARS = frozenset({str, int, float, bool, bytes, type(None)})
"""Types of values whose `repr` is their text."""

_READS_FIRST = [(operation, 0) for operation in hasconst]
"""(operation, argument) of each instruction that reads the constant at index 0."""

HAS_DOCSTRING = getattr(inspect, "CO_HAS_DOCSTRING", inspect.CO_OPTIMIZED)
"""Flag of the code of a function with a docstring; before Python 3.13 that of a function, whose first text is one."""


class CodeCache(FileCache):
    """Numba's cache of a function's versions, keyed by a digest of the code; one process at a time writes."""

    def __init__(self, function: Callable, options: dict[str, object] | None = None) -> None:
        """Set up the cache of a function under a name with the digest of its code and `options`.

        Reads no compiled code. The folder is that of Numba's CACHE_DIR, shared by all checkouts, else Numba's own
        choice.
        """
        digest = digest_of(function, options)
        name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        python = f"py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
        folder = None  # Numba's own choice, a folder for each path
        if config.CACHE_DIR:  # of all checkouts
            folder = str(Path(config.CACHE_DIR) / function.__module__.partition(".")[0])
        super().__init__(function, folder, f"{name}-{digest[:16]}.{python}", digest)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled version of the signature `sig` from disk, under a shared file lock.

        None if it is not cached or cannot be read: then it is compiled.
        """
        try:
            with self._lock(fcntl.LOCK_SH):
                return super().load_overload(sig, target_context)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            _warn_of_folder(self.cache_path, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the compiled version `data` of the signature `sig` on disk, under an exclusive file lock.

        If the folder cannot be written, a warning says so, and the code is used all the same.
        """
        try:
            with self._lock(fcntl.LOCK_EX):
                super().save_overload(sig, data)
        except OSError as error:
            _warn_of_folder(self.cache_path, error)

    @contextmanager
    def _lock(self, mode: int) -> Iterator[None]:
        """Hold a file lock on the cache folder within the block; `mode` is LOCK_SH or LOCK_EX. Creates the folder."""
        Path(self.cache_path).mkdir(parents=True, exist_ok=True)
        with locked(self.cache_path, mode):
            yield


@contextmanager
def locked(folder: str, mode: int) -> Iterator[None]:
    """Hold a file lock on a cache folder within the block; `mode` is LOCK_SH or LOCK_EX."""
    with (Path(folder) / "numba.lock").open("w") as lock:
        fcntl.flock(lock, mode)
        yield


_warned: set[str] = set()


def _warn_of_folder(folder: str, error: Exception) -> None:
    """Warn, once a process and folder, that compiled code is not kept in `folder`."""
    if folder not in _warned:
        _warned.add(folder)
        reason = getattr(error, "strerror", None) or error
        warnings.warn(
            f"Compiled code cannot be kept in {folder} ({reason}), so each process compiles it again.\n"
            "Set NUMBA_CACHE_DIR to a folder that can be written to.",
            stacklevel=2,
        )


class LateCache:
    """A `CodeCache` created on first access, when all names that the function refers to are defined."""

    def __init__(self, function: Callable, options: dict[str, object]) -> None:
        """Keep function and options until the cache is needed."""
        self.function, self.options = function, options

    @functools.cached_property
    def cache(self) -> Any:
        """Return the cache of the function's compiled code, opened on first access; an empty one without a folder."""
        try:
            return CodeCache(self.function, self.options)
        except (OSError, RuntimeError) as error:  # Numba finds no folder that can be written
            _warn_of_folder(config.CACHE_DIR or "any folder", error)
            return NullCache()

    def __getattr__(self, name: str) -> Any:
        """Return the attribute `name` of the cache, which is opened if it was not."""
        return getattr(self.cache, name)


def njit(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator: `numba.njit` with these options, code cached on disk, bounds checks if `bounds` is on.

    The function is called from Python and from compiled code, not by its address in C, for which Numba compiles a
    wrapper.
    """

    def decorate(function: Function) -> Function:
        """Return the Numba dispatcher of `function` with the `options` of `njit`.

        Its compiled code is cached on disk.
        """
        own: dict[str, Any] = {"no_cfunc_wrapper": True} | options
        compiler = ParallelCompiler if options.get("parallel") else WholeCompiler
        dispatcher = numba.njit(pipeline_class=compiler, **own)(function)
        keep_code_in(LateCache(function, own), dispatcher)
        bounds.register_checked(dispatcher, own)
        return dispatcher

    return decorate


_PART: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def njit_part(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator, with these Numba options, for functions that only compiled functions call.

    Their code is optimised within each caller and cached with it. It does not count references (callers of the
    outermost function hold them), so it may create views but no arrays, unless the options have `_nrt=True`.
    """

    def decorate(function: Function) -> Function:
        """Return the Numba dispatcher of `function`, for inlining: no separate machine code, not cached."""
        own = _PART | options
        dispatcher = numba.njit(pipeline_class=PartCompiler, **own)(function)
        bounds.register_checked(dispatcher, own)
        return dispatcher

    return decorate


def folder_of(dispatcher: Any) -> Path:
    """Return the folder on disk with the compiled code of a dispatcher."""
    return Path(CodeCache(dispatcher.py_func).cache_path)


inlined = njit_part(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, forceinline=True)
"""Decorator of a function that only compiled functions call: it is inlined into each of them and cached with them."""


def digest_of(function: Callable, options: dict[str, object] | None = None) -> str:
    """Return a SHA-256 hex digest of everything that a function's machine code is made from, equal in every process.

    `options` are those of its decorator. Raises TypeError if the function refers to an object without a digest.
    """
    parts: list[bytes] = [_options_text(options or {})]
    _add_function(function, parts, set())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


_options_texts: dict[str, bytes] = {}
"""What `_options_text` gave before, by the `repr` of the options: decorators have few different ones."""


def _options_text(options: dict[str, object]) -> bytes:
    """Return the bytes that identify the options of a decorator, sorted by name."""
    known = repr(options)
    if known not in _options_texts:
        _options_texts[known] = _text(sorted(options.items(), key=str))
    return _options_texts[known]


def _text(value: Any) -> bytes:
    """Return bytes that are equal in each process for equal values: collections by element, others by `repr`."""
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        if SCALARS.issuperset(map(type, value)):  # names and constants: without a call for each
            return f"({','.join(map(repr, value))})".encode()
        return b"(" + b",".join(map(_text, value)) + b")"
    return repr(value).encode()


def _add_function(function: Callable, parts: list[bytes], seen: set) -> None:
    """Append the bytes that identify a function to `parts` and the function to `seen`; nothing if `seen` has it.

    That is its code and, recursively, the globals and closed-over values that it names. Raises TypeError.
    """
    if function in seen:
        return
    seen.add(function)
    values: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        values[name] = cell.cell_contents
    for code in _codes(function.__code__):  # without a call for each name: a process that trains has hundreds of codes
        names, variables = ",".join(map(repr, code.co_names)), ",".join(map(repr, code.co_varnames))
        parts += [code.co_name.encode(), code.co_code, f"({names})".encode(), f"({variables})".encode()]
        for value in _constants(code):
            parts.append(repr(value).encode() if type(value) in SCALARS else _text(value))
        for name in code.co_names:
            if name in function.__globals__:
                values[name] = function.__globals__[name]
    for name, value in sorted(values.items()):
        parts.append(name.encode())
        _add_value(value, f"{function.__qualname__} refers to {name}", parts, seen)


def _codes(code: CodeType) -> list[CodeType]:
    """Return a code object and, recursively, those nested in it."""
    found = [code]
    for value in code.co_consts:
        if isinstance(value, CodeType):
            found += _codes(value)
    return found


def _constants(code: CodeType) -> list[Any]:
    """Return the constants of a code object that it computes with, in order, without those of nested code objects.

    The docstring does not change machine code and is left out. Python stores it first; if the code computes with a
    constant of the same text, which Python stores only once, it is kept.
    """
    values = [value for value in code.co_consts if not isinstance(value, CodeType)]
    first = code.co_consts[0] if code.co_consts else None
    # The code of a comprehension has no docstring. It and a lambda are named in angle brackets.
    is_documented = not code.co_name.startswith("<") and bool(code.co_flags & HAS_DOCSTRING)
    if isinstance(first, str) and is_documented:
        instructions = set(zip(code.co_code[::2], code.co_code[1::2], strict=True))
        return values if any(each in instructions for each in _READS_FIRST) else values[1:]
    return values


def _add_value(value: Any, place: str, parts: list[bytes], seen: set) -> None:
    """Append the bytes that identify `value`, to which compiled code refers, to `parts`.

    Functions recursively, with `seen`. Raises TypeError for a type without digest; `place` describes the reference in
    its message.
    """
    if isinstance(value, Dispatcher):
        parts.append(_options_text(value.targetoptions))
        _add_function(value.py_func, parts, seen)
    elif isinstance(value, ModuleType):
        parts.append(_module(value.__name__))
    elif isinstance(value, FunctionType | Intrinsic | type):
        definition = definition_of(value)  # an intrinsic's code stands in the file of its definition
        parts += [_module(definition.__module__), definition.__qualname__.encode()]
        if isinstance(value, FunctionType) and _is_ours(value.__module__):
            _add_function(value, parts, seen)
    elif isinstance(value, list | tuple):
        for item in value:
            _add_value(item, place, parts, seen)
    elif isinstance(value, np.ndarray):
        parts += [_text((value.dtype, value.shape)), value.tobytes()]
    elif isinstance(value, CONSTANTS):
        parts.append(_text(value))
    elif is_dataclass(value):
        for each in fields(value):
            _add_value(getattr(value, each.name), f"{place}.{each.name}", parts, seen)
    elif callable(value) and getattr(value, "__module__", None):
        parts += [_module(value.__module__), repr(getattr(value, "__qualname__", type(value))).encode()]
    else:
        raise TypeError(f"Compiled code cannot be kept: {place}, a {type(value).__name__}, which has no digest.")


def _is_ours(module: str) -> bool:
    """Return whether the module called `module` belongs to this package or its tests."""
    return module.partition(".")[0] in ("kernels", "tests")


_IMPORT = re.compile(r"^(?:from (kernels[\w.]*) )?import (\([^)]*\)|.*)", re.MULTILINE)


@functools.cache
def files_of(module: str) -> frozenset[str]:
    """Return the names of `module` and of all imported modules of this package that it imports, recursively; cached."""
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        if (name := waiting.pop()) in modules:
            continue
        modules.add(name)
        for package, names in _IMPORT.findall(_source_of(name).read_text(encoding="utf-8")):
            words = [f"{package}.{word}" if package else word for word in re.findall(r"[\w.]+", names)]
            waiting += [word for word in (package, *words) if word.startswith("kernels.") and word in sys.modules]
    return frozenset(modules)


def _source_of(module: str) -> Path:
    """Return the path of the source file of an imported module. Raises TypeError if it has none."""
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        raise TypeError(f"The module {module} has no source file, so its code has no digest.")
    return Path(file)


def digest_of_files(module: str) -> str:
    """Return a SHA-256 hex digest of the sources of `files_of` a module."""
    return hashlib.sha256(b"".join(map(_module, sorted(files_of(module))))).hexdigest()


@functools.cache
def _module(name: str) -> bytes:
    """Return the digest of the source of module `name` of this package, else its name and library version, as bytes.

    Cached.
    """
    if _is_ours(name) and getattr(sys.modules.get(name), "__file__", None):
        return hashlib.sha256(_source_of(name).read_bytes()).digest()
    library = sys.modules.get(name.split(".")[0])
    return f"{name} {getattr(library, '__version__', '')}".encode()
