"""Distinct texts of a column that grow block by block, found by compiled code, of which each text is looked up once."""

from typing import Any, final

import numpy as np

from workbench.data.tables.arrow import Texts, arrow, strings_of
from workbench.data.tables.compiled import buffers_of, compiled, compiled_inline
from workbench.data.tables.splitting import MULTIPLIER, word_at

LEAST_TABLE = 1 << 6
"""Places of an empty table."""
LOWER = np.uint64(0xFFFFFFFF)
"""Bits of a place that hold the index of a text."""


@compiled_inline
def _hash(text, start, stop):
    """Return a uint64 hash of text[start:stop], uint8; bytes before `stop` are read in words of eight."""
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


@compiled_inline
def _is_equal(text, start, other, begin, length):
    """Return whether text[start:start + length] and other[begin:begin + length], both uint8, are equal.

    Texts of at least eight bytes are compared in words of eight.
    """
    if length < 8:
        is_same = True
        for at in range(length):
            is_same &= text[start + at] == other[begin + at]
        return is_same
    for at in range(0, length - 8, 8):
        if word_at(text, start + at) != word_at(other, begin + at):
            return False
    return word_at(text, start + length - 8) == word_at(other, begin + length - 8)


@compiled
def look_up(text, offsets, letters, starts, hashes, table, count, is_added, numbers):
    """Write the index of each text in the hash table to `numbers`, -1 if unknown; return the number of known texts.

    With `is_added`, unknown texts are appended and get the next index, from `count` on. Texts are
    text[offsets[i]:offsets[i + 1]], uint8. The table is `letters` uint8 and `starts` int64 [known + 1], the known texts
    end to end, `hashes` uint64 [known], and `table` uint64 [a power of two] with index + 1 below the upper half of the
    hash, 0 for free slots; all have room for the new texts and are changed in place.
    """
    mask, upper = np.uint64(len(table) - 1), ~LOWER
    for one in range(len(numbers)):
        start, stop = np.int64(offsets[one]), np.int64(offsets[one + 1])
        hashed = _hash(text, start, stop)
        slot, found = hashed & mask, np.int64(-1)
        while table[slot] and found < 0:
            known = np.int64(table[slot] & LOWER) - 1
            if (
                (table[slot] ^ hashed) & upper == 0
                and starts[known + 1] - starts[known] == stop - start
                and _is_equal(text, start, letters, starts[known], stop - start)
            ):
                found = known
            slot = (slot + np.uint64(1)) & mask
        if found < 0 and is_added:
            found = count
            hashes[found] = hashed
            for at in range(stop - start):
                letters[starts[found] + at] = text[start + at]
            starts[found + 1] = starts[found] + stop - start
            count += 1
            table[slot] = (hashed & upper) | np.uint64(count)
        numbers[one] = found
    return count


@compiled
def fill(hashes, count, table):
    """Write `count` uint64 hashes into the hash table `table` of `look_up`, uint64 zeros [a power of two]."""
    mask, upper = np.uint64(len(table) - 1), ~LOWER
    for one in range(count):
        slot = hashes[one] & mask
        while table[slot]:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = (hashes[one] & upper) | np.uint64(one + 1)


@final
class Vocabulary:
    """Distinct texts, numbered in the order in which they were added."""

    def __init__(self, texts: tuple[str, ...] = ()) -> None:
        """Set up an empty hash table and add `texts`, which get the indices 0, 1, ..."""
        self._count = 0
        self._letters, self._starts = np.empty(0, np.uint8), np.zeros(1, np.int64)
        self._hashes, self._table = np.empty(0, np.uint64), np.zeros(LEAST_TABLE, np.uint64)
        if texts:
            self.add(Texts(strings_of(texts), np.empty(0, np.int32)))

    def __len__(self) -> int:
        """Return the number of distinct texts."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the texts as a pyarrow string array: UTF-8 bytes and int32 offsets."""
        return int(self._starts[self._count]) + 4 * (self._count + 1)

    def find(self, texts: Texts) -> np.ndarray:
        """Return the index of each stored text of a column, int32 [texts]; -1 if unknown. O(bytes)."""
        return self._looked_up(texts, is_added=False)

    def add(self, texts: Texts) -> np.ndarray:
        """Add the texts that are unknown and return the index of each, int32 [texts], in order of first addition.

        O(bytes).
        """
        return self._looked_up(texts, is_added=True)

    def _looked_up(self, texts: Texts, is_added: bool) -> np.ndarray:
        """Return the index of each text, int32 [texts]; unknown ones are added if `is_added`, else get -1."""
        offsets, letters = buffers_of(texts.distinct)
        if is_added:
            self._make_room(len(texts), int(offsets[-1]) - int(offsets[0]))
        numbers = np.empty(len(texts), np.int32)
        held = self._letters, self._starts, self._hashes, self._table
        self._count = look_up(letters, offsets, *held, self._count, is_added, numbers)
        return numbers

    def _make_room(self, texts: int, count_bytes: int) -> None:
        """Grow the arrays in place, at least doubling them, if `texts` more texts of `count_bytes` bytes may not fit.

        The hash table is rebuilt when it would be more than two thirds full.
        """
        most, most_bytes = self._count + texts, int(self._starts[self._count]) + count_bytes
        if most_bytes > len(self._letters):
            self._letters = _grown(self._letters, most_bytes)
        if most > len(self._hashes):
            self._hashes, self._starts = _grown(self._hashes, most), _grown(self._starts, most + 1)
        if 3 * most > 2 * len(self._table):
            self._table = np.zeros(1 << (3 * most // 2).bit_length(), np.uint64)
            fill(self._hashes, self._count, self._table)

    def array(self) -> Any:
        """Return the texts in the order of their indices as a pyarrow string array; it shares the letters."""
        pa = arrow()
        offsets = pa.py_buffer(self._starts[: self._count + 1].astype(np.int32))
        return pa.StringArray.from_buffers(self._count, offsets, pa.py_buffer(self._letters))

    def in_order(self) -> tuple[str, ...]:
        """Return the texts sorted by code points."""
        texts = self.array()
        return tuple(texts.take(arrow().compute.sort_indices(texts)).to_pylist())


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return a copy of a 1-d array of at least `size` values, at least twice as many as before.

    The rest is undefined.
    """
    grown = np.empty(max(size, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown
