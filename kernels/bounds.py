"""A debug build of the compiled code: every access is checked against the length of its array.

    import kernels.bounds
    kernels.bounds.switch_on()  # before anything else of `kernels` is imported

Then Numba's code and vector code (`kernels.vector`) look at every place before they read or write it; the first wrong
one is noted, the loop that asked for it is left, and the kernel's call raises `BoundsError`, also out of a parallel
region, where an error of Numba's own would be lost. Prefetches are not checked: they read nothing. Nothing but this
call turns it on, and code of this kind is kept on disk apart from the other, which has no trace of it.
"""

import ctypes
import functools
import re
import sys
from collections.abc import Callable
from typing import Any

SYMBOL = "kernels_note_wrong_access"
"""What compiled code calls: (first place, places that there are, what is accessed)."""

_is_on = False
_noted: list[str] = []


class BoundsError(IndexError):
    """Compiled code would have accessed memory outside of an array."""


def is_on() -> bool:
    """Whether code is compiled with checks."""
    return _is_on


def switch_on() -> None:
    """Compile all code with checks from here on (`RuntimeError` once there is code without)."""
    global _is_on
    if _is_on:
        return
    if "kernels.code_cache" in sys.modules:
        raise RuntimeError(
            "kernels.bounds.switch_on() came too late: functions are there that will be compiled without checks. Call "
            "it first, before other modules of kernels or workbench are imported."
        )
    from kernels.private import of_numba  # which loads Numba, as nothing else does until a kernel is wanted

    of_numba.define(SYMBOL, ctypes.cast(_note, ctypes.c_void_p).value)
    of_numba.check_accesses_by(require_one)
    _is_on = True


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)
def _note(place: int, length: int, what: bytes) -> None:
    if len(_noted) < 2:
        _noted.append(f"{_readable(what.decode())} at {place}, where there are {length}.")


def _readable(what: str) -> str:
    """Text with the names in it that compilers have mangled written out: `_ZN3one3two` as one.two."""
    return re.sub(r"_ZN\w+", lambda match: ".".join(_names(match.group()[3:])), what)


def _names(mangled: str) -> list[str]:
    names = []
    while match := re.match(r"(\d+)", mangled):
        start = match.end()
        names.append(mangled[start : start + int(match.group())])
        mangled = mangled[start + int(match.group()) :]
    return names


def take() -> str:
    """What the first wrong access was since the last call of this, or nothing."""
    first = _noted[0] if _noted else ""
    _noted.clear()
    return first


def watched(function: Callable, name: str) -> Callable:
    """`function` that raises `BoundsError` where compiled code noted a wrong access; itself without checks."""
    if not _is_on:
        return function

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        """Call the function, and look what was noted."""
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
    """Write the check that an index is in range, in the place of Numba's own."""
    require(context, builder, place, place.type(1), length, f"{builder.function.name}: an element")


def require(context: Any, builder: Any, place: Any, count: Any, length: Any, what: str) -> None:
    """Write the check that `count` things from `place` on are within `length`; a wrong one is noted, and code left."""
    from kernels.private.of_numba import cgutils, leave, note

    end = builder.add(place, count)
    wrong = builder.or_(builder.icmp_signed("<", place, place.type(0)), builder.icmp_signed(">", end, length))
    with cgutils.if_unlikely(builder, wrong):
        note(context, builder, SYMBOL, place, length, what)
        leave(context, builder)
