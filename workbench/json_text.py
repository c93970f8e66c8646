"""JSON from outside, read so that every text gives a value or a `ValueError`."""

import json
from itertools import chain
from typing import Any

DEEPEST = 64
"""Levels of lists and objects within each other; nothing that the project writes has a quarter of them."""


def parsed(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is invalid or nested deeper than `DEEPEST` levels.

    >>> parsed('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    level = [value]
    for _ in range(DEEPEST + 1):
        lists = [item for item in level if isinstance(item, list)]
        dicts = [item.values() for item in level if isinstance(item, dict)]
        items = chain(chain.from_iterable(lists), chain.from_iterable(dicts))
        level = [item for item in items if isinstance(item, list | dict)]
        if not level:
            return value
    raise ValueError(_too_deep())


def is_whole(value: Any, least: int = 0, most: int = 2**53) -> bool:
    """Return whether a JSON value is an int from `least` to `most`; bools are not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _too_deep() -> str:
    """Return the phrase that says that JSON is nested deeper than `DEEPEST` levels, for an error."""
    return f"it is nested deeper than {DEEPEST} levels"
