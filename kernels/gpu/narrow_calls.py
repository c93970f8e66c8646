"""Validation of calls with tables of two bytes per value.

Operands are declared as in `kernels.contract`, for example `"indptr:i[R+1] indices:i[z] x:h[D,N] out:f[R,N]"`: i is
int32 or int64, l is int64, f is float32, h a table of two bytes per value, m either f or h; each the same for all
operands of its kind.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from kernels import devices
from kernels.contract import KernelError
from kernels.gpu.source import NARROW

_TABLE = "float16, or uint16, which holds bfloat16"
_ALLOWED = {
    "i": (("int32", "int64"), "int32 or int64, the same for all indices"),
    "l": (("int64",), "int64"),
    "f": (("float32",), "float32"),
    "h": (tuple(NARROW), f"{_TABLE}, the same for all"),
    "m": (("float32", *NARROW), f"float32, or the type of the table: {_TABLE}"),
}
"""Types of each kind, by name, and what to say of them."""

_OPERAND = re.compile(r"(\w+):([ilfhm])\[([^\]]*)\](?:[<^]\S*)?")  # what an operand holds is not read on a device


def checked(operands: str, writes: tuple[str, ...] = ("out",)) -> Callable:
    """Decorate a function so that its arrays are validated and made contiguous.

    Keyword arguments are passed on as they are. Raises KernelError and TypeError.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            return launch(function.__name__, operands, writes, args, functools.partial(function, **options))

        return call

    return decorate


def _parse(operand: str) -> tuple[str, str, str]:
    """Split an operand's declaration `name:kind[axes]` into name, kind and axes."""
    match = _OPERAND.fullmatch(operand)
    if match is None:
        raise KernelError(f"Invalid operand {operand!r}; expected name:kind[axes], as in 'g:f[U,N]'.")
    name, kind, axes = match.groups()
    return name, kind, axes


def launch(name: str, operands: str, writes: tuple[str, ...], args: tuple, function: Callable) -> Any:
    """Call `function` with the validated arrays `args`, copied if they are not contiguous."""
    parsed = [_parse(text) for text in operands.split()]
    if len(args) != len(parsed):
        raise KernelError(f"{name} takes {len(parsed)} arrays ({operands}), not {len(args)}.")
    device = devices.device_of(args[0])
    sizes: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for arg, (operand, kind, axes) in zip(args, parsed, strict=True):
        if type(arg) is not type(args[0]):
            raise KernelError(f"{name}: {operand} must be a {type(args[0]).__name__}, not {type(arg).__name__}.")
        _check_type(name, operand, kind, arg.dtype.name, kinds)
        _check_shape(name, operand, axes.split(","), arg.shape, sizes, operands)
    ready = [device.contiguous(arg) for arg in args]
    result = function(*ready)
    for arg, used, (operand, _, _) in zip(args, ready, parsed, strict=True):
        if operand in writes and used is not arg:
            device.assign(arg, used)
    return result


def _check_type(name: str, operand: str, kind: str, dtype: str, kinds: dict[str, str]) -> None:
    """Raise KernelError for a dtype that the kind does not allow or that differs from the first of its kind in
    `kinds`.
    """
    allowed, words = _ALLOWED[kind]
    of_table = "h" if kind == "m" and dtype != "float32" else kind
    if dtype not in allowed or kinds.setdefault(of_table, dtype) != dtype:
        first = f"; the first is {kinds[of_table]}" if of_table in kinds else ""
        raise KernelError(f"{name}: {operand} is {dtype}; allowed is {words}{first}.")


def _check_shape(name: str, operand: str, axes: list[str], shape: tuple, sizes: dict[str, int], operands: str) -> None:
    """Raise KernelError for a shape that does not fit those of earlier operands, whose lengths `sizes` has by
    letter.
    """
    if len(shape) != len(axes):
        raise KernelError(f"{name}: {operand} has {len(shape)} axes; it needs {len(axes)} ({operands}).")
    for length, (letter, _, more) in zip(shape, [axis.partition("+") for axis in axes], strict=True):
        size = length - int(more or 0)
        if size < 0 or sizes.setdefault(letter, size) != size:
            expected = f"{letter} is {sizes[letter]} by the operands before it" if size >= 0 else "it is too short"
            raise KernelError(f"{name}: {operand} has shape {list(shape)}, but {expected} ({operands}).")
