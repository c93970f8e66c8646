"""Damage to files, drawn from a seed: bytes, JSON and arrays as no honest writer leaves them.

The tests that use it draw `MUTATIONS` of a kind; by hand, `FUZZ = (seed, count)` below gives other seeds and more.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from workbench.formats import RowSparse

FUZZ: tuple[int, int | None] = (0, None)
"""The seed, and how many mutations of each kind instead of the test's own number; raise it by hand."""

DEEP: Any = []
for _ in range(90):
    DEEP = [DEEP]
WILD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 2**31, 2**53 + 1, 2**63, 2**70, 10**400, -(2**63), -(10**30)),
    *(0.5, -0.0, 1e308, float("inf"), float("nan"), "", "x", "\ud800", "\x00", "1", "1_0", "nan", "a" * 5000),
    *([], {}, [[]], [1], [-1], [2**70], {"a": 1}, {"": []}, {"number": "inf"}, ["x"] * 50, [[1, 2], [3]], DEEP),
)


def draws(count: int) -> Iterator[tuple[int, random.Random]]:
    """Numbered sources of random numbers."""
    for number in range(tried(count)):
        yield number, random.Random(f"{FUZZ[0]} {number}")


def tried(count: int) -> int:
    """How many there are of a test that asks for so many."""
    return count if FUZZ[1] is None else FUZZ[1]


def damaged_bytes(source: random.Random, data: bytes) -> bytes:
    """A few of: bits flipped, bytes written over, cut off, taken out, doubled, put in."""
    made = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 5))):
        if not made:
            return bytes(made)
        first = source.randrange(len(made))
        last = min(len(made), first + source.choice((1, 1, 2, 8, 60)))
        kind = source.randrange(7)
        if kind == 0:
            made[first] ^= 1 << source.randrange(8)
        elif kind == 1:
            made[first:last] = bytes(source.randrange(256) for _ in range(last - first))
        elif kind == 2:
            del made[first:]
        elif kind == 3:
            del made[first:last]
        elif kind == 4:
            made[first:first] = made[first:last]
        elif kind == 5:
            made[first:last] = source.choice((b"\xff", b"\x00", b"9", b"-", b"_", b"e", b".", b":", b"\n")) * (
                last - first
            )
        else:
            made[first:first] = source.choice(
                (b"\xef\xbb\xbf", b"1e999", b"nan", b"[" * 200, b"\x80", b"99999999999999999999")
            )
    return bytes(made)


def _places(value: Any, before: tuple = ()) -> Iterator[tuple]:
    """The path to every value within a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*before, key)
        yield from _places(item, (*before, key))


def damaged_json(source: random.Random, value: Any) -> Any:
    """A copy with a value replaced, left out, doubled, exchanged, or damaged within where it is JSON as text."""
    value = json.loads(json.dumps(value))
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        places = list(_places(value))
        if not places:
            return copy.deepcopy(source.choice(WILD))
        *path, key = source.choice(places)
        holder = value
        for step in path:
            holder = holder[step]
        kind = source.randrange(8)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[source.choice(("", "x", "name", f"{key} ", "\ud800"))] = holder[key]
        elif kind == 1:
            holder.insert(key, holder[key])
        elif kind == 2:
            *other, last = source.choice(places)
            found = value
            try:
                for step in [*other, last]:
                    found = found[step]
            except (KeyError, IndexError, TypeError):
                found = None
            holder[key] = json.loads(json.dumps(found))
        elif kind in (3, 4) and isinstance(holder[key], int | float):
            holder[key] = holder[key] + source.choice((-1, 1, 10**9, -(10**9), 0.5))
        elif isinstance(holder[key], str) and holder[key].startswith("{") and kind < 7:
            holder[key] = json.dumps(damaged_json(source, json.loads(holder[key])))
        else:
            holder[key] = copy.deepcopy(source.choice(WILD))
    return value


def damaged_array(source: random.Random, array: np.ndarray) -> Any:
    """The array with another type, shape, length, or wild numbers in it; or something else in its place."""
    changes: list[Callable[[np.ndarray], Any]] = [
        lambda a: a.astype(source.choice(("f4", "f8", "i4", "i8", "u1", "f2", "U3", ">f8", "?", "c8")), copy=True),
        lambda a: a[: a.shape[0] // 2] if a.ndim else a,
        lambda a: a[::-1].copy() if a.ndim else a,
        lambda a: a.reshape(-1),
        lambda a: a[None],
        lambda a: np.concatenate([a, a]) if a.ndim else a,
        lambda a: np.zeros(0, a.dtype),
        lambda a: np.array(1, a.dtype),
        lambda a: RowSparse(np.ones((1, 1), np.float32), [0], (2, 1)),
    ]
    made = np.array(array)
    if source.random() < 0.6 and made.size and made.dtype.kind in "fiu":
        flat = made.reshape(-1)
        wild = (np.nan, np.inf, -1e300, -1.0, 1e9) if made.dtype.kind == "f" else (-1, -(2**40), 2**40, 2**62, 7, 99)
        for _ in range(source.choice((1, 1, 3, flat.size))):
            with np.errstate(all="ignore"):
                flat[source.randrange(flat.size)] = np.array(source.choice(wild)).astype(made.dtype)
        return made
    if made.dtype.kind not in "fiub":
        del changes[0]
    with np.errstate(all="ignore"):
        return source.choice(changes)(made)


def damaged_arrays(source: random.Random, arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays by name with one left out, named otherwise, exchanged, or damaged; one that is JSON is damaged within."""
    made = dict(arrays)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        name = source.choice(sorted(made))
        kind = source.randrange(10)
        if kind == 0 and len(made) > 1:
            del made[name]
        elif kind == 1:
            made[source.choice((f"{name}x", "", "about", name.upper(), "\ud800", "optimizer:", "value:3"))] = made[name]
        elif kind == 2:
            made[name] = made[source.choice(sorted(made))]
        else:
            texts = [name for name in made if name.endswith("about")]
            name = source.choice(texts) if texts and source.random() < 0.5 else name
            made[name] = _damaged_part(source, made[name])
    return made


def _damaged_part(source: random.Random, value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1:
        try:
            text = json.dumps(damaged_json(source, json.loads(value.tobytes())))
        except ValueError:
            return damaged_array(source, value)
        return np.frombuffer(text.encode(), np.uint8)
    if isinstance(value, RowSparse):
        parts = {"values": value.values, "indices": value.indices}
        part = source.choice(sorted(parts))
        parts[part] = damaged_array(source, parts[part])
        if not all(isinstance(part, np.ndarray) for part in parts.values()):
            return value
        return RowSparse.assemble(parts["values"], parts["indices"], value.shape)
    return damaged_array(source, value) if isinstance(value, np.ndarray) else value
