"""The check of a kernel's operands that every call pays for: half a microsecond, so that small batches stay cheap.

It is written out for each kernel and compiled, as `dataclasses` makes methods: loops over operands and their axes take
three times as long, and so does a function for the check beside that of the call. What is wrong, and how to say so, is
left to `contract.check_operands`, which is slower still.
"""

import linecache
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def guarded(
    parsed: tuple, kinds: dict[str, tuple[np.dtype, ...]], right: Callable[..., Any], otherwise: Callable[[tuple], Any]
) -> Callable[..., Any]:
    """A function that calls `right(*args)` where arguments are all right and plain: C-contiguous, aligned and writable;
    else `otherwise(args)`.

    `parsed` and `kinds` are as in `contract`.
    """
    names: dict[str, Any] = {_type(kind, n): dtype for kind, types in kinds.items() for n, dtype in enumerate(types)}
    names |= {"ndarray": np.ndarray, "right": right, "otherwise": otherwise}
    source = _source(parsed, kinds)
    file = f"<check of {' '.join(name for name, _, _ in parsed)}>"
    exec(compile(source, file, "exec"), names)  # nothing but what is written below: operands give numbers and kinds
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # a traceback shows it
    return names["call"]


def _type(kind: str, number: int) -> str:
    return f"{kind}_type_{number}"


def _source(parsed: tuple, kinds: dict[str, tuple[np.dtype, ...]]) -> str:
    arrays = [(place, kind, axes) for place, (_, kind, axes) in enumerate(parsed) if kind != "s"]
    plain = [f"type(array_{place}) is ndarray and array_{place}.flags.carray" for place, _, _ in arrays]
    first = {axes: place for place, _, axes in reversed(arrays)}
    alike = [f"array_{p}.shape == array_{first[axes]}.shape" for p, _, axes in arrays if p != first[axes]]
    types = {kind: place for place, kind, _ in reversed(arrays)}
    operands = "".join(f"array_{place}, " for place in range(len(parsed)))
    lines = [
        "def call(*args):",
        f"    if len(args) != {len(parsed)}:",
        "        return otherwise(args)",
        f"    {operands} = args",
        f"    if not ({_all(plain)}):",
        "        return otherwise(args)",
        *(f"    type_{kind} = array_{place}.dtype" for kind, place in types.items()),
        "    try:",
        *(f"        {_lengths_of(place, axes)} = array_{place}.shape" for axes, place in first.items()),
        "    except ValueError:  # another number of axes",
        "        return otherwise(args)",
        f"    if {_all([*_types(arrays, kinds), *_lengths(first), *alike])}:",
        f"        return right({operands})",
        "    return otherwise(args)",
    ]
    return "\n".join(lines)


def _length(place: int, axis: int) -> str:
    return f"length_{place}_{axis}"


def _lengths_of(place: int, axes: tuple) -> str:
    return f"({''.join(f'{_length(place, axis)}, ' for axis in range(len(axes)))})"


def _all(tests: Iterable[str]) -> str:
    return " and ".join(tests) or "True"


def _types(arrays: list[tuple], kinds: dict[str, tuple[np.dtype, ...]]) -> list[str]:
    """The first array of a kind has an allowed type, the others have the same."""
    first: set[str] = set()
    tests = []
    for place, kind, _ in arrays:
        if kind in first:
            tests.append(f"array_{place}.dtype is type_{kind}")
            continue
        first.add(kind)
        allowed = [f"type_{kind} is {_type(kind, number)}" for number in range(len(kinds[kind]))]
        tests.append(f"({' or '.join(allowed)})")
    return tests


def _lengths(arrays: dict[tuple, int]) -> list[str]:
    """Axes of a letter are of one length, after what is added to it; the first is at least what is added.

    `arrays` are the places of the first array of each shape.
    """
    seen: dict[str, tuple[str, int]] = {}
    tests = []
    for axes, place in arrays.items():
        for axis, (letter, more) in enumerate(axes):
            length = _length(place, axis)
            if letter in seen:
                other, other_more = seen[letter]
                tests.append(f"{length} == {other}{f' + {more - other_more}' if more != other_more else ''}")
                continue
            seen[letter] = length, more
            if more:
                tests.append(f"{length} >= {more}")
    return tests
