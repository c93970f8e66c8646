"""Operands of a kernel call: allowed dtypes and numbers, and their validation with messages."""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernels.registry import KernelError

if TYPE_CHECKING:
    from kernels.contract import Kernel

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
NARROW = (np.dtype(np.uint8),), (np.dtype(np.uint16),)
KINDS = {"f": FLOATS, "d": FLOATS[1:], "i": INTEGERS, "l": INTEGERS[1:], "b": NARROW[0], "h": NARROW[1]}
"""Types that each kind of array operand may have; all operands of a kind have the same one in a call."""


class Range(NamedTuple):
    """Values that a number may have: in words, an example, and as a condition in Python on `{0}`."""

    text: str
    example: float
    condition: str

    def contains(self, value: Any) -> bool:
        """Return whether `value`, a real number, is in the range; False for NaN."""
        return _condition(self.condition)(value)


@functools.cache
def _condition(source: str) -> Callable[[Any], bool]:
    """Return a condition of `RANGES` as a function of the value: `values_check` writes the same text into its code."""
    return eval(f"lambda value: {source.format('value')}", {"inf": math.inf})


def _at_least_0(example: float) -> Range:
    """Return the range of finite numbers from 0, with this example."""
    return Range("a finite number, 0 or more", example, "0 <= {0} < inf")


_BELOW_1 = Range("0 or more and below 1", 0.9, "0 <= {0} < 1")
_LIMIT = Range("0 or more, infinite for none", math.inf, "{0} >= 0")
_FINITE = Range("a finite number", 1.0, "-inf < {0} < inf")
_LENGTH = Range("a whole number, 0 or more", 1, "{0} >= 0")

RANGES = {
    "learning_rate": _at_least_0(0.1),
    "decay": _at_least_0(0.0),
    "decoupled": _at_least_0(0.0),
    "rescale": _FINITE,
    "beta": _at_least_0(0.9),
    "beta1": _BELOW_1,
    "beta2": _BELOW_1,
    "gamma": _BELOW_1,
    "clip": _LIMIT,
    "clip_weights": _LIMIT,
    "epsilon": _at_least_0(1e-7),
    "l1": _at_least_0(0.0),
    **dict.fromkeys(("weight_scale", "weight_shift", "target_scale", "target_shift"), _FINITE),
    "steps": _LENGTH,
    "first": _LENGTH,
    "n_rows": _LENGTH,
    "n_columns": _LENGTH,
    "step": Range("a whole number, 1 or more", 1, "True"),  # a step below 1 is refused by the rules that divide by it
}
"""Values that the numbers among the operands may have, by name."""

WHOLE = {"n_rows", "n_columns", "step", "steps", "first"}
"""Numbers that must be whole."""

WHOLE_TYPES = frozenset((int, bool, *(np.dtype(code).type for code in "bhilqBHILQ?")))
NUMBER_TYPES = WHOLE_TYPES | {float, np.float16, np.float32, np.float64}


def values_check(kernel: "Kernel", is_host: bool = True) -> Callable[[Sequence[Any]], None]:
    """Return a function of the operands of a call that raises KernelError for an invalid number or for overlaps.

    A number is invalid if it is not in `RANGES`. An array that the kernel writes must not share memory with another
    operand: it may read what it has written. The arrays must be C-contiguous. For arrays of a device (`is_host` False)
    only the same array given twice is refused, not its views. Compiled from source: valid operands of `sgd_fused` take
    0.4 microseconds; they take 0.8 in a loop over numbers and pairs.
    """
    names: dict[str, Any] = {"wholes": WHOLE_TYPES, "numbers": NUMBER_TYPES, "inf": math.inf, "ndarray": np.ndarray}
    names["refuse"] = functools.partial(refuse_values, kernel, is_host=is_host)
    parsed = kernel.parsed
    pairs = _pairs(kernel)
    roots = sorted({place for pair in pairs for place in pair}) if is_host else []
    tests = [f"arg_{first} is not arg_{second}" for first, second in pairs]
    if roots:
        tests = [f"type(root_{place}) is ndarray and root_{place}.base is None" for place in roots]
        tests += [f"root_{first} is not root_{second}" for first, second in pairs]
    for place, (name, kind, _) in enumerate(parsed):
        if kind == "s" and name in RANGES:
            types = "wholes" if name in WHOLE else "numbers"
            tests.append(f"type(arg_{place}) in {types} and {RANGES[name].condition.format(f'arg_{place}')}")
    lines = ["def check(args):", f"    {''.join(f'arg_{place}, ' for place in range(len(parsed)))} = args"]
    for place in roots:
        lines += [f"    base = arg_{place}.base", f"    root_{place} = arg_{place} if base is None else base"]
    lines += [f"    if not ({' and '.join(tests) or 'True'}):", "        refuse(args)"]
    exec(compile("\n".join(lines), f"<values of {kernel.name}>", "exec"), names)
    return names["check"]


def _pairs(kernel: "Kernel") -> list[tuple[int, int]]:
    """Return the positions (written array, other array) of all operands that must not overlap, each pair once."""
    arrays = [place for place, (_, kind, _) in enumerate(kernel.parsed) if kind != "s"]
    written = [place for place in arrays if kernel.parsed[place][0] in kernel.writes]
    return [(place, other) for place in written for other in arrays if other not in written or other > place]


def refuse_values(kernel: "Kernel", args: Sequence[Any], is_host: bool = True) -> None:
    """Raise KernelError for the first operand with an invalid number, or the first pair of arrays that overlap.

    Returns None if there is neither. Arrays of the host overlap if they share memory, others if they are the same.
    """
    for arg, (name, kind, _) in zip(args, kernel.parsed, strict=True):
        if kind == "s" and name in RANGES and not _is_valid(name, arg):
            expected = RANGES[name]
            raise KernelError(
                f"{kernel.name}: {name} is {arg!r:.80}; expected {expected.text}. Pass {expected.example}, for example."
            )
    for first, second in _pairs(kernel):
        if np.may_share_memory(args[first], args[second]) if is_host else args[first] is args[second]:
            written, other = kernel.parsed[first][0], kernel.parsed[second][0]
            raise KernelError(
                f"{kernel.name}: {written} and {other} share memory, and the call writes {written}. "
                f"Pass {other}.copy() or a new array."
            )


def _is_valid(name: str, value: Any) -> bool:
    """Return whether `value` may be given as the number `name`: a real number, not text, in its range of `RANGES`."""
    if isinstance(value, str | bytes):
        return False
    try:
        number = operator.index(value) if name in WHOLE else float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return RANGES[name].contains(number)


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


# Messages about contents of operands that a kernel may not follow.


NO_LIMIT = 2**63 - 1
"""The limit of indices that have none."""


def range_error(name: str, indices: np.ndarray, limit: int) -> str:
    """Return the message for the first index outside [0, limit), which must exist: "rows[3] is 9, out of range.

    ...".
    """
    at = int(np.argmax((indices < 0) | (indices >= limit)))
    allowed = "0 and more" if limit == NO_LIMIT else f"0 to {limit - 1}" if limit > 0 else "none, as there is no row"
    advice = "Count from 0, not from the end" if indices[at] < 0 else "Correct it, or give the other arrays more rows"
    return f"{name}[{at}] is {indices[at]}, out of range. Allowed: {allowed}. {advice}."


def order_error(name: str, indices: np.ndarray) -> str:
    """Return the message for the first index that is not larger than the one before; there must be one."""
    at = int(np.argmax(indices[1:] <= indices[:-1])) + 1
    pair = f"{name}[{at}] is {indices[at]} and {name}[{at - 1}] is {indices[at - 1]}"
    return f"{pair}. Allowed: indices that rise, each once. Sort them with np.unique."


def repeated_error(name: str, indices: np.ndarray) -> str:
    """Return the error for an index that occurs twice in `indices` [z] of operand `name`; "" if there is none."""
    unique, counts = np.unique(indices, return_counts=True)
    if unique.size == indices.size:
        return ""
    return f"{name} has {unique[np.argmax(counts > 1)]} twice. Allowed: each index once. Sum what belongs together."


def starts_error(name: str, starts: np.ndarray, entries: int) -> str:
    """Return the error for row pointers `starts` of operand `name` that fall or do not go from 0 to `entries`."""
    advice = "Build the matrix again from its parts"
    if not starts.size or starts[0] != 0 or starts[-1] != entries:
        ends = f"goes from {starts[0]} to {starts[-1]}" if starts.size else "is empty"
        return f"{name} {ends}. Allowed: 0 to {entries}, the number of stored entries. {advice}."
    at = int(np.argmax(starts[1:] < starts[:-1]))
    return f"{name} falls from {starts[at]} to {starts[at + 1]} at {at}. Allowed: numbers that never fall. {advice}."
