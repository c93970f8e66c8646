"""The touched columns of some rows, numbered in the order in which they are met, and what finds the number of one.

A table has a place for every column where there are few of them, else one of a power of two, at least twice as many as
the rows can touch: multiply-shift hashing (Dietzfelbinger et al. 1997) and the next free place. What is kept grows with
the rows of a batch and never with the number of features, but for 4 bytes a feature where that is less.
"""

from typing import NamedTuple

import numpy as np

from kernels.code_cache import inlined

FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, odd: neighbouring columns come to lie far apart."""

LOW = np.uint64(0xFFFFFFFF)

DIRECT = 64 * 1024
"""Columns up to which there is a place for each: 256 KiB, a part of a core's cache."""


class Hashing(NamedTuple):
    """`place = column * factor >> shift`; the place after it is the next modulo `mask` + 1."""

    factor: np.uint64
    shift: np.uint64
    mask: np.uint64


def hashing_for(columns: int, most: int) -> tuple[Hashing, int]:
    """Return (hash parameters, slots) of a table for up to `most` of `columns` columns."""
    bits = max(int(2 * most - 1).bit_length(), 4)
    if columns <= max(DIRECT, 1 << bits):
        return Hashing(np.uint64(1), np.uint64(0), np.uint64(2**64 - 1)), max(columns, 1)
    return Hashing(FACTOR, np.uint64(64 - bits), np.uint64((1 << bits) - 1)), 1 << bits


@inlined
def owner_of(column, group, parts):
    """Return the part that owns a column; columns that differ in the last `group` bits only share an owner."""
    place = ((np.uint64(column) >> group) * FACTOR >> np.uint64(32)) & LOW
    return place * np.uint64(parts) >> np.uint64(32)


class Touched(NamedTuple):
    """`slots` int32 [places]: the number of the column that is there, or -1; `columns` int64 [most] by number, and the
    `places` int64 [most] where they are found."""

    slots: np.ndarray
    columns: np.ndarray
    places: np.ndarray


@inlined
def touched_of(part, stacked):
    """Return the hash table of one of several parts."""
    return Touched(stacked.slots[part], stacked.columns[part], stacked.places[part])


@inlined
def find(touched, hashing, column):
    """Return (number of a column or -1, its slot or the free slot where it would go)."""
    place = (np.uint64(column) * hashing.factor) >> hashing.shift
    number = touched.slots[place]
    while number >= 0 and touched.columns[np.uint64(number)] != column:
        place = (place + np.uint64(1)) & hashing.mask
        number = touched.slots[place]
    return number, place


@inlined
def put(touched, column, place, number):
    """Assign `number` to a column in the free slot `place` of the hash table, in place."""
    touched.slots[place] = number
    touched.columns[number] = column
    touched.places[number] = place


@inlined
def forget(touched, count):
    """Empty the hash table, which holds `count` columns, in place."""
    for number in range(count):
        touched.slots[touched.places[number]] = -1
