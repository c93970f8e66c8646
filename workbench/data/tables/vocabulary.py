"""Distinct texts of a column that grow block by block, found by compiled code, of which each text is looked up once."""

from typing import Any, final

import numpy as np

from workbench.data.tables.arrow import Texts, arrow, strings_of
from workbench.data.tables.compiled import buffers_of, compiled, compiled_inline
from workbench.data.tables.splitting import MULTIPLIER, word_at

LEAST_TABLE = 1 << 6
"""Places of an empty table."""


@compiled_inline
def _hash(text, start, stop):
    """Return a hash of a text, uint64."""
    hashed = np.uint64(stop - start)
    if stop - start < 8:
        for at in range(start, stop):
            hashed = (hashed << np.uint64(8)) | np.uint64(text[at])
    else:
        for at in range(start, stop - 8, 8):
            hashed = (hashed ^ (hashed >> np.uint64(29)) ^ word_at(text, at)) * MULTIPLIER
        hashed ^= (hashed >> np.uint64(29)) ^ word_at(text, stop - 8)
    hashed *= MULTIPLIER
    return hashed ^ (hashed >> np.uint64(32))


@compiled
def look_up(text, offsets, letters, starts, hashes, table, count, is_added, numbers):
    """Write the number of each text, -1 if it is unknown; with `is_added` it becomes known. Returns how many are.

    Texts are `offsets` [texts + 1] into `text`. `letters` uint8 and `starts` int64 [texts + 1] hold the known ones,
    `hashes` uint64 theirs, `table` int32 their numbers from 1 on, with zeros between them. These have room for all new
    ones, and change.
    """
    mask = np.uint64(len(table) - 1)
    for one in range(len(numbers)):
        start, stop = np.int64(offsets[one]), np.int64(offsets[one + 1])
        hashed = _hash(text, start, stop)
        slot, found = hashed & mask, np.int64(-1)
        while table[slot] and found < 0:
            known = np.int64(table[slot]) - 1
            if hashes[known] == hashed and starts[known + 1] - starts[known] == stop - start:
                begin, is_same = starts[known], True
                for at in range(stop - start):
                    is_same &= letters[begin + at] == text[start + at]
                found = known if is_same else found
            slot = (slot + np.uint64(1)) & mask
        if found < 0 and is_added:
            found = count
            hashes[found] = hashed
            for at in range(stop - start):
                letters[starts[found] + at] = text[start + at]
            starts[found + 1] = starts[found] + stop - start
            count += 1
            table[slot] = count
        numbers[one] = found
    return count


@compiled
def fill(hashes, count, table):
    """Put the numbers of `count` texts into a table of zeros."""
    mask = np.uint64(len(table) - 1)
    for one in range(count):
        slot = hashes[one] & mask
        while table[slot]:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = one + 1


@final
class Vocabulary:
    """Distinct texts, numbered in the order in which they were added."""

    def __init__(self, texts: tuple[str, ...] = ()) -> None:
        self._count = 0
        self._letters, self._starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
        self._hashes, self._table = np.empty(0, np.uint64), np.zeros(LEAST_TABLE, np.int32)
        if texts:
            self.add(Texts(strings_of(texts), np.empty(0, np.int32)))

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the texts as pyarrow holds them."""
        return int(self._starts[self._count]) + 4 * (self._count + 1)

    def find(self, texts: Texts) -> np.ndarray:
        """Return the number of each text, int32; -1 for unknown texts. O(letters)."""
        return self._looked_up(texts, is_added=False)

    def add(self, texts: Texts) -> np.ndarray:
        """Add unknown texts; return the number of each text, int32. O(letters)."""
        return self._looked_up(texts, is_added=True)

    def _looked_up(self, texts: Texts, is_added: bool) -> np.ndarray:
        """Return the number of each text; with `is_added` unknown ones are added."""
        offsets, letters = buffers_of(texts.distinct)
        if is_added:
            self._make_room(len(texts), int(offsets[-1]) - int(offsets[0]))
        numbers = np.empty(len(texts), np.int32)
        held = self._letters, self._starts, self._hashes, self._table
        self._count = look_up(letters, offsets, *held, self._count, is_added, numbers)
        return numbers

    def _make_room(self, texts: int, count_bytes: int) -> None:
        """Grow the arrays, at least to the double, if more texts do not fit."""
        most, most_bytes = self._count + texts, int(self._starts[self._count]) + count_bytes
        if most_bytes > len(self._letters):
            self._letters = _grown(self._letters, most_bytes)
        if most > len(self._hashes):
            self._hashes, self._starts = _grown(self._hashes, most), _grown(self._starts, most + 1)
        if 3 * most > 2 * len(self._table):
            self._table = np.zeros(1 << (3 * most // 2).bit_length(), np.int32)
            fill(self._hashes, self._count, self._table)

    def array(self) -> Any:
        """Return the texts in their order, a pyarrow array of strings."""
        pa = arrow()
        offsets = pa.py_buffer(self._starts[: self._count + 1].astype(np.int32))
        return pa.StringArray.from_buffers(self._count, offsets, pa.py_buffer(self._letters))

    def in_order(self) -> tuple[str, ...]:
        """Return the texts by their code points."""
        texts = self.array()
        return tuple(texts.take(arrow().compute.sort_indices(texts)).to_pylist())


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return the array with room for `size` values, or twice as many as it had."""
    grown = np.empty(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown
