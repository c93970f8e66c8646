"""Numbers for ids that a file gives things: users, items, nodes."""

import re
from collections.abc import Sequence
from itertools import count

import numpy as np

_WHOLE = re.compile(r"[+-]?[0-9]+")


class Numbers(dict):
    """Numbers for keys, in order of appearance: `numbers[key]` is a new one for a key not seen before."""

    def __init__(self) -> None:
        super().__init__()
        self._next = count()

    def __missing__(self, key: bytes) -> int:
        number = self[key] = next(self._next)
        return number


def is_whole(name: str) -> bool:
    """Whether an id is a whole number, of ASCII digits."""
    return _WHOLE.fullmatch(name) is not None


def sorted_ids(names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The ids in order, and the place of each in it, int64: by value where all are whole numbers, else by the alphabet.

    Ids are text: 7 and 07 are two of them, and there is no largest number.

    >>> sorted_ids(["10", "9", "07"])
    (['07', '9', '10'], array([2, 1, 0]))
    """
    numbers = [int(name) for name in names] if all(map(is_whole, names)) else [0] * len(names)
    order = sorted(range(len(names)), key=lambda place: (numbers[place], names[place]))
    place_of = np.empty(len(names), np.int64)
    place_of[order] = np.arange(len(names))
    return [names[place] for place in order], place_of


def places_of(names: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """The place of each id among those known, -1 for one that is not, int64."""
    place_of = {name: place for place, name in enumerate(known)}
    return np.array([place_of.get(name, -1) for name in names], np.int64)
