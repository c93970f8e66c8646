"""JSON from outside, read so that every text gives a value or a `ValueError`."""

import json
from collections.abc import Callable, Mapping
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


Fields = Mapping[str, tuple[Callable[[Any], bool], str]]
"""Fields of a JSON object: a test of the value, and what it expects, in words."""


def check_fields(value: Any, fields: Fields, within: str = "") -> None:
    """Raise ValueError, which names the field, unless `value` is an object whose `fields` pass their tests.

    `within` is the name of the object in messages.

    >>> check_fields({"rows": -1}, {"rows": (is_whole, "a whole number from 0")})
    Traceback (most recent call last):
    ValueError: rows is -1; expected a whole number from 0
    """
    if not isinstance(value, dict):
        raise ValueError(f"{within or 'it'} is {value!r:.80}; expected an object")
    for name, (is_right, expected) in fields.items():  # a test gets any value, so `in` needs lists, not sets
        path = f"{within}.{name}" if within else name
        if name not in value:
            raise ValueError(f"{path} is missing; expected {expected}")
        if not is_right(value[name]):
            raise ValueError(f"{path} is {value[name]!r:.80}; expected {expected}")


def check_document(value: Any, kind: str, version: int, fields: Fields) -> dict[str, Any]:
    """Return the object that a file of this project says: of this kind and version, with these fields.

    ValueError, which says what it is instead, otherwise.

    >>> check_document({"kind": "sparse-workbench module", "version": 9}, "sparse-workbench module", 1, {})
    Traceback (most recent call last):
    ValueError: its version is 9; this program reads 1
    """
    if not isinstance(value, dict) or value.get("kind") != kind:
        raise ValueError(f"it is no {kind}")
    if value.get("version") != version:
        raise ValueError(f"its version is {value.get('version')!r:.40}; this program reads {version}")
    check_fields(value, fields)
    return value


def is_optional(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test that also passes None."""
    return lambda value: value is None or is_right(value)


def are_numbers(value: Any) -> bool:
    """Return whether a JSON value is a list of numbers; bools are none."""
    return isinstance(value, list) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in value)


def is_text(value: Any) -> bool:
    """Return whether a JSON value is a string."""
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def are_texts(value: Any) -> bool:
    """Return whether a JSON value is a list of strings."""
    return isinstance(value, list) and all(map(is_text, value))


def are_whole(value: Any) -> bool:
    """Return whether a JSON value is a list of whole numbers from 0."""
    return isinstance(value, list) and all(map(is_whole, value))


def _too_deep() -> str:
    """Return the phrase that says that JSON is nested deeper than `DEEPEST` levels, for an error."""
    return f"it is nested deeper than {DEEPEST} levels"
