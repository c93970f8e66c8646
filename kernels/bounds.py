"""A debug build of the compiled code: every access is checked against the length of its array.

    import kernels.bounds
    kernels.bounds.switch_on()  # before a kernel is asked for

Then Numba's code and vector code (`kernels.vector`) look at every place before they read or write it; the first wrong
one is noted, the loop that asked for it is left, and the kernel's call raises `BoundsError`, also out of a parallel
region, where an error of Numba's own would be lost. Prefetches are not checked: they read nothing. Nothing but this
call turns it on, and code of this kind is kept on disk apart from the other, which has no trace of it.
"""

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

from kernels._compat import numba_internals

SYMBOL = "kernels_note_wrong_access"
"""What compiled code calls: (first place, places that there are, what is accessed)."""

_is_on = False
_noted: list[str] = []
_functions: list[tuple[Any, dict[str, object]]] = []
"""Functions that were made before the switch, with their options."""


class BoundsError(IndexError):
    """Compiled code would have accessed memory outside of an array."""


def is_on() -> bool:
    """Return whether code is compiled with bounds checks."""
    return _is_on


def switch_on() -> None:
    """Compile all following code with bounds checks, for the life of the process.

    Raises RuntimeError if code was compiled without them already. Nothing happens if they are on.
    """
    global _is_on
    if _is_on:
        return
    if compiled := [function for function, _ in _functions if function.signatures]:
        raise RuntimeError(
            f"kernels.bounds.switch_on() came too late: {compiled[0].__qualname__} is compiled without checks. Call it "
            "first, right after the import."
        )
    numba_internals.define(SYMBOL, ctypes.cast(_note, ctypes.c_void_p).value)
    numba_internals.check_accesses_by(require_one)
    _is_on = True
    for function, options in _functions:
        register_checked(function, options)


def register_checked(function: Any, options: dict[str, object]) -> None:
    """Set "boundscheck" in `options` and in the target options of the Numba function `function`, both in place.

    At once if bounds checks are on, else when they are switched on.
    """
    if _is_on:
        options["boundscheck"] = function.targetoptions["boundscheck"] = True
    else:
        _functions.append((function, options))


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)
def _note(place: int, length: int, what: bytes) -> None:
    """Record an invalid access: called by compiled code with index, length and description.

    Only the first two are kept.
    """
    if len(_noted) < 2:
        _noted.append(f"{_readable(what.decode())} at {place}, where there are {length}.")


def _readable(what: str) -> str:
    """Return the text `what` with mangled names in it demangled: "in _ZN3one3two" gives "in one.two"."""
    return re.sub(r"_ZN\w+", lambda match: ".".join(_names(match.group()[3:])), what)


def _names(mangled: str) -> list[str]:
    """Return the identifiers of a mangled C++ name without its prefix, such as "3foo3barE": ["foo", "bar"]."""
    names = []
    while match := re.match(r"(\d+)", mangled):
        start = match.end()
        names.append(mangled[start : start + int(match.group())])
        mangled = mangled[start + int(match.group()) :]
    return names


def take() -> str:
    """Return the description of the first invalid access since the last call, "" if there was none; forget all."""
    first = _noted[0] if _noted else ""
    _noted.clear()
    return first


def with_bounds_check(function: Callable, name: str) -> Callable:
    """Return `function` raising BoundsError, prefixed by `name`, if its compiled code recorded an invalid access.

    Without bounds checks the function itself is returned.
    """
    if not _is_on:
        return function

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        """Call `function` and return its result.

        BoundsError instead of result or error if an invalid access was recorded.
        """
        take()
        error = None
        try:
            result = function(*args)
        except Exception as raised:
            error = raised
        if first := take():
            raise BoundsError(f"{name}: {first}") from error
        if error is not None:
            raise error
        return result

    return call


def require_one(context: Any, builder: Any, place: Any, length: Any, axis: object = None) -> None:
    """Emit the check that index `place` is in [0, length), in place of Numba's own; `axis` is unused."""
    require(context, builder, place, place.type(1), length, f"{builder.function.name}: an element")


def require(context: Any, builder: Any, place: Any, count: Any, length: Any, what: str) -> None:
    """Emit the check that elements place to place + count - 1 are within `length` (LLVM values).

    An invalid access is recorded with the description `what`, and the function left.
    """
    end = builder.add(place, count)
    wrong = builder.or_(builder.icmp_signed("<", place, place.type(0)), builder.icmp_signed(">", end, length))
    with numba_internals.cgutils.if_unlikely(builder, wrong):
        numba_internals.emit_c_call(context, builder, SYMBOL, place, length, what)
        numba_internals.leave(context, builder)
