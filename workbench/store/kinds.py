"""The kinds of columns: what a value must be, and the type of the column in a frame.

Rows may come from anyone's file, so a kind also says how large a number may be that a frame has room for.
"""

from collections.abc import Callable
from typing import Any

LARGEST = 2**63 - 1
"""The largest integer of a frame."""
LONGEST = 2**1023
"""Whole numbers up to here have a float."""


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LONGEST
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_number_or_null(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_point(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number_or_null, value))


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (_is_text, "object"),
    "integer": (_is_integer, "Int64"),
    "number": (_is_number, "float64"),
    "flag": (lambda value: isinstance(value, bool), "boolean"),
    "numbers": (_is_list_of(_is_number_or_null), "object"),
    "names": (_is_list_of(_is_text), "object"),
    "curve": (_is_list_of(_is_point), "object"),
    "records": (_is_list_of(lambda value: isinstance(value, dict)), "object"),
    "mapping": (lambda value: isinstance(value, dict), "object"),
}
"""Kind -> (whether a value is of it, dtype in the frame)."""
