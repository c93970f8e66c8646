"""Checks of what a store takes: keys, values, and what is pushed to them; anything else is refused in words."""

from collections.abc import Collection, Hashable
from typing import Any

from workbench import formats
from workbench.kvstore.contract import Key, StoreError
from workbench.ops.products import Unsummed

FORMATS = ("dense", "row_sparse")


def admitted(key: Key, value: Any) -> Any:
    """The value as a store takes it, dense, row_sparse or left as its factors; anything else is a `StoreError`."""
    if isinstance(value, Unsummed):
        value.check()
        return value
    format, value = formats.admit(value)
    if format.name not in FORMATS:
        advice = f"formats.to_format(x, {FORMATS[1]!r})"
        raise StoreError(f"{key!r} was given a {format.name} array; a store holds {' and '.join(FORMATS)}: {advice}.")
    return formats.check(value)


def check_new_key(key: Hashable, held: Collection[Key]) -> None:
    """Refuse a key that is no string or whole number, is set already, or is of another kind than those that are."""
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise StoreError(f"The key {key!r} is a {type(key).__name__}; keys are strings, or whole numbers.")
    if key in held:
        raise StoreError(f"The key {key!r} is set already; push changes its value.")
    if held and type(key) is not type(first := next(iter(held))):
        raise StoreError(f"The key {key!r} came and {first!r} is set; all keys are strings, or all are numbers.")


def check_pushed(key: Key, array: Any, stored: Any) -> None:
    """Refuse an array of another shape or type than `stored`, the value of the key or what stands for it."""
    if tuple(array.shape) != stored.shape or array.dtype != stored.dtype:
        actual, own = f"{array.dtype} {tuple(array.shape)}", f"{stored.dtype} {stored.shape}"
        raise StoreError(f"{actual} was pushed to {key!r}, which is {own}; shape and type must be the same.")
