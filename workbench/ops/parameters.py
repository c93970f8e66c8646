"""Types of operator parameters by name: the same for all operators that have a parameter of that name.

Whether a value then suits the operator and its arrays is checked by its shape, dtype and rules.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

LARGEST = 2**63 - 1
"""Lengths and places are kept in 64 bits."""


def _is_number(value: Any) -> bool:
    """Return whether the value is a real number and not bool."""
    return isinstance(value, int | float | np.number | np.bool_)


def _is_flag(value: Any) -> bool:
    """Return whether the value is a bool."""
    return isinstance(value, bool | np.bool_) or (_is_whole(value) and value in (0, 1))


def _is_whole(value: Any) -> bool:
    """Return whether the value is an integer and not bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and abs(int(value)) <= LARGEST


def _is_whole_or_none(value: Any) -> bool:
    """Return whether the value is an integer or None."""
    return value is None or _is_whole(value)


def _are(value: Any, check: Callable[[Any], bool]) -> bool:
    """Return whether the value is a list or tuple whose items pass `check`."""
    return isinstance(value, tuple | list) and all(map(check, value))


def _is_dtype(value: Any) -> bool:
    """Return whether the value names a dtype."""
    try:
        return np.dtype(value).kind in "biuf"
    except (TypeError, ValueError, SyntaxError):
        return False


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "number": (_is_number, "a number; an array belongs among the inputs"),
    "flag": (_is_flag, "True or False"),
    "text": (lambda value: isinstance(value, str), "text"),
    "text or none": (lambda value: value is None or isinstance(value, str), "text or None"),
    "whole": (_is_whole, "a whole number"),
    "axes": (lambda value: _is_whole_or_none(value) or _are(value, _is_whole), "a whole number, several, or None"),
    "lengths": (lambda value: _is_whole(value) or _are(value, _is_whole), "whole numbers, as a tuple or list"),
    "order": (lambda value: value is None or _are(value, _is_whole), "a list of whole numbers, or None"),
    "places": (lambda value: value is None or _are(value, _is_whole_or_none), "a list of whole numbers and None"),
    "dtype": (_is_dtype, "a type of numbers"),
}

OF = {
    "number": ("scalar", "low", "high", "grad_scale", "ignore_label", "deviation", "ord"),
    "flag": ("keepdims", "transpose_a", "transpose_b", "sparse_grad", "use_ignore"),
    "text": ("engine", "mode", "kind", "loss", "normalization", "format"),
    "text or none": ("result",),
    "whole": ("place",),
    "axes": ("axis",),
    "order": ("axes",),
    "places": ("begin", "end", "step"),
    "lengths": ("shape", "fields"),
    "dtype": ("dtype",),
}
_KIND = {name: KINDS[kind] for kind, names in OF.items() for name in names}


def fault(name: str, value: Any) -> str:
    """Return what the parameter `name` should be if `value` is of the wrong type; "" if it is valid or the name is
    unknown.
    """
    is_right, allowed = _KIND.get(name, (None, ""))
    return "" if is_right is None or is_right(value) else allowed
