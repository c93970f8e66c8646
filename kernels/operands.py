"""Operands of a kernel call: allowed dtypes, and the validation of dtypes and shapes with messages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.registry import KernelError

if TYPE_CHECKING:
    from kernels.contract import Kernel

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
NARROW = (np.dtype(np.uint8),), (np.dtype(np.uint16),)
KINDS = {"f": FLOATS, "d": FLOATS[1:], "i": INTEGERS, "l": INTEGERS[1:], "b": NARROW[0], "h": NARROW[1]}
"""Types that each kind of array operand may have; all operands of a kind have the same one in a call."""


def check_operands(kernel: "Kernel", args: Sequence[Any], array_type: type[Any] = np.ndarray) -> bool:
    """Validate dtypes and shapes of a call's operands against the kernel's declaration.

    Raises KernelError if one is wrong. Arrays must have exactly the type `array_type`; scalars are not checked. Returns
    whether all arrays are NumPy arrays that are aligned, writable and C-contiguous.
    """
    sizes: dict[str, int] = {}
    kinds: dict[str, np.dtype] = {}
    is_plain = True
    for arg, (name, kind, axes) in zip(args, kernel.parsed, strict=True):
        if kind == "s":
            continue
        if type(arg) is not array_type:
            expected = "numpy array" if array_type is np.ndarray else f"{array_type.__module__}.{array_type.__name__}"
            raise KernelError(f"{kernel.name}: {name} must be a {expected}, not {type(arg).__name__}.")
        dtype = kinds.setdefault(kind, arg.dtype)
        if arg.dtype != dtype or dtype not in KINDS[kind]:
            _refuse_dtype(kernel, name, kind, arg.dtype, dtype)
        if arg.ndim != len(axes):
            raise KernelError(f"{kernel.name}: {name} has {arg.ndim} axes; it needs {len(axes)} ({kernel.operands}).")
        for length, (letter, more) in zip(arg.shape, axes, strict=True):
            if length < more:
                raise KernelError(
                    f"{kernel.name}: {name} has shape {list(arg.shape)}; its axis {letter}+{more} has at least {more}."
                )
            if sizes.setdefault(letter, length - more) != length - more:
                _refuse_shape(kernel, name, arg.shape, letter, sizes[letter])
        is_plain = is_plain and array_type is np.ndarray and arg.flags.carray
    return is_plain


def _refuse_dtype(kernel: "Kernel", name: str, kind: str, dtype: np.dtype, first: np.dtype) -> None:
    """Raise KernelError: operand `name` has `dtype`, not one allowed for `kind`, or not that of `first`."""
    allowed = " or ".join(map(str, KINDS[kind]))
    raise KernelError(
        f"{kernel.name}: {name} is {dtype}; operands of its kind are {allowed}, all the same (the first is {first}). "
        f"Convert with {name}.astype(...)."
    )


def _refuse_shape(kernel: "Kernel", name: str, shape: tuple, letter: str, expected: int) -> None:
    """Raise KernelError: operand `name` has `shape`, but axis `letter` must have length `expected`."""
    raise KernelError(
        f"{kernel.name}: {name} has shape {list(shape)}, but {letter} is {expected} by the operands before it "
        f"({kernel.operands})."
    )
