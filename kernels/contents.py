"""Contents of operands of a kernel, by its declaration: checked where it is called by name from outside, and told.

A declaration `indices:i[z]<D` says that indices count from 0 to D - 1; `rows:l[U]<!D` that none is repeated besides;
`stored:l[U]<<D` that they rise; `indptr:i[R+1]^z` that row starts rise from 0 to z. What follows the sign is the letter
of an axis, or the name of a number among the operands, and one may be added to it; without it there is no upper limit.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import structure

SIGN = r"(\^|<<|<!|<)(\w*)(?:\+(\d+))?"
"""The end of an operand's declaration."""

NO_LIMIT = 2**63 - 1


@dataclass(frozen=True)
class Content:
    """Declared content of the operand at `place`, of that name: a `sign`, and where the limit is found.

    The limit is the length of `axis` of the operand `source`, or that operand itself where `axis` is None, and `more`.
    """

    place: int
    name: str
    sign: str
    source: int | None
    axis: int | None
    more: int

    def limit(self, args: Sequence[Any]) -> int:
        """The limit in a call."""
        if self.source is None:
            return NO_LIMIT
        operand = args[self.source]
        return self.more + int(operand if self.axis is None else operand.shape[self.axis])

    def fault(self, args: Sequence[Any]) -> str:
        """Describe what is wrong in a call; None where all is right."""
        array, limit = args[self.place], self.limit(args)
        if self.sign == "^":
            anywhere = self.source is None and array.size
            entries = int(array[-1]) if anywhere else limit
            return "" if structure.rises(array, entries) else starts_fault(self.name, array, max(entries, 0))
        if self.sign == "<":
            return "" if structure.in_range(array, limit) else range_fault(self.name, array, limit)
        if structure.is_rising(array, limit):
            return ""
        if not structure.in_range(array, limit):
            return range_fault(self.name, array, limit)
        return repeated_fault(self.name, array) if self.sign == "<!" else order_fault(self.name, array)


def contents(operands: Sequence[tuple[str, str, tuple, str]]) -> tuple[Content, ...]:
    """Declared contents of the operands (name, kind, axes, the end of its declaration), of those that have one."""
    names = [name for name, _, _, _ in operands]
    letters: dict[str, tuple[int, int, int]] = {}
    for place, (_, _, axes, _) in enumerate(operands):
        for axis, (letter, more) in enumerate(axes):
            letters.setdefault(letter, (place, axis, more))
    declared = []
    for place, (name, _, _, end) in enumerate(operands):
        if not end:
            continue
        sign, of, plus = re.fullmatch(SIGN, end).groups()
        source, axis, more = letters.get(of) or ((names.index(of) if of else None), None, 0)
        declared.append(Content(place, name, sign, source, axis, int(plus or 0) - more))
    return tuple(declared)


def checker(declared: Sequence[Content]) -> Callable[[Sequence[Any]], str]:
    """A function that tells of a call what is wrong with what its operands hold.

    Row starts and the indices that they divide, where the first of each is declared so, are looked at by one call.
    """
    first = {content.sign: content for content in reversed(declared)}
    starts, indices = first.get("^"), first.get("<")
    if starts is None or indices is None or (starts.source, starts.axis, starts.more) != (indices.place, 0, 0):
        return functools.partial(_first_fault, declared)
    others = [content for content in declared if content not in (starts, indices)]
    places, limit = (starts.place, indices.place), indices.limit

    def fault(args: Sequence[Any]) -> str:
        is_right = structure.is_compressed(args[places[0]], args[places[1]], limit(args))
        return _first_fault(others if is_right else declared, args)

    return fault


def _first_fault(declared: Sequence[Content], args: Sequence[Any]) -> str:
    for content in declared:
        if wrong := content.fault(args):
            return wrong
    return ""


def range_fault(name: str, indices: np.ndarray, limit: int) -> str:
    """The first index out of range, in words."""
    at = int(np.argmax((indices < 0) | (indices >= limit)))
    allowed = "0 and more" if limit == NO_LIMIT else f"0 to {limit - 1}" if limit > 0 else "none, as there is no row"
    advice = "Count from 0, not from the end" if indices[at] < 0 else "Correct it, or give the other arrays more rows"
    return f"{name}[{at}] is {indices[at]}, out of range. Allowed: {allowed}. {advice}."


def order_fault(name: str, indices: np.ndarray) -> str:
    """The first index that does not rise, in words."""
    at = int(np.argmax(indices[1:] <= indices[:-1])) + 1
    pair = f"{name}[{at}] is {indices[at]} and {name}[{at - 1}] is {indices[at - 1]}"
    return f"{pair}. Allowed: indices that rise, each once. Sort them with np.unique."


def repeated_fault(name: str, indices: np.ndarray) -> str:
    """An index that is there twice, in words; nothing where each is there once, in any order."""
    unique, counts = np.unique(indices, return_counts=True)
    if unique.size == indices.size:
        return ""
    return f"{name} has {unique[np.argmax(counts > 1)]} twice. Allowed: each index once. Sum what belongs together."


def starts_fault(name: str, starts: np.ndarray, entries: int) -> str:
    """Describe what is wrong with row starts."""
    advice = "Build the matrix again from its parts"
    if not starts.size or starts[0] != 0 or starts[-1] != entries:
        ends = f"goes from {starts[0]} to {starts[-1]}" if starts.size else "is empty"
        return f"{name} {ends}. Allowed: 0 to {entries}, the number of stored entries. {advice}."
    at = int(np.argmax(starts[1:] < starts[:-1]))
    return f"{name} falls from {starts[at]} to {starts[at + 1]} at {at}. Allowed: numbers that never fall. {advice}."
