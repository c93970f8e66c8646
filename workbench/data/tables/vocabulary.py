"""Distinct texts of a column that grow block by block, found by compiled code, of which each text is looked up once."""

from typing import Any, final

import numpy as np

from kernels.vector.lanes import prefetch
from workbench.data.files.decimal_numbers import compiled, compiled_inline, load_word, store_word
from workbench.data.tables.arrow import Texts, arrow, strings_of
from workbench.data.tables.splitting import MULTIPLIER, PADDING, Fields, are_equal, keys_of

LEAST_TABLE = 1 << 6
"""Places of an empty table."""
LOWER = np.uint64(0xFFFFFFFF)
"""Bits of a place that hold the index of a text."""
LEAST_LONG = 16
"""Bytes from which on the letters of texts are compared; shorter ones are equal if their keys are."""
TEXTS_AHEAD = 8
"""Texts between the prefetch of a place of the hash table and its use."""
IS_LONG = np.uint64(1 << 63)
"""Bit of a hash that is set for long texts."""


@compiled_inline
def _hash(key, more, is_long):
    """Return a uint64 hash of the keys of a text, with the highest bit set if it is long."""
    half = np.uint64(32)
    hashed = (key ^ (more ^ (more >> half)) * MULTIPLIER) * MULTIPLIER
    hashed ^= hashed >> half
    return hashed | IS_LONG if is_long else hashed & ~IS_LONG


@compiled_inline
def _hashed(text, start, length):
    """Return (both keys, hash) of text[start:start + length], padded uint8; short texts have their length in a key."""
    key, more = keys_of(text, start, length)
    is_long = length >= LEAST_LONG
    if not is_long:
        more |= np.uint64(length) << np.uint64(56)  # zero bytes at the end of a text count
    return key, more, _hash(key, more, is_long)


@compiled
def look_up(text, starts, stops, letters, begins, keys, table, count, is_added, numbers):
    """Write the index of each text in the hash table to `numbers`, -1 if unknown; return the number of known texts.

    With `is_added`, unknown texts are appended and get the next index, from `count` on. Texts are text[starts[i]:
    stops[i]], padded uint8. The table is `letters` padded uint8 and `begins` int64 [known + 1], the known texts end to
    end, `keys` uint64 [known, 2], and `table` uint64 [a power of two] with index + 1 below the upper half of the hash,
    0 for free slots; all have room for the new texts and are changed in place.
    """
    mask, upper = np.uint64(len(table) - 1), ~LOWER
    for one in range(len(numbers)):
        if one + 2 * TEXTS_AHEAD < len(numbers):
            prefetch(text, np.uint64(starts[one + 2 * TEXTS_AHEAD]))
            start = np.int64(starts[one + TEXTS_AHEAD])
            prefetch(table, _hashed(text, start, np.int64(stops[one + TEXTS_AHEAD]) - start)[2] & mask)
        start, length = np.int64(starts[one]), np.int64(stops[one]) - np.int64(starts[one])
        key, more, hashed = _hashed(text, start, length)
        is_long = length >= LEAST_LONG
        slot, found = hashed & mask, np.int64(-1)
        while table[slot] and found < 0:
            known = np.int64(table[slot] & LOWER) - 1
            if (table[slot] ^ hashed) & upper == 0 and keys[known, 0] == key and keys[known, 1] == more:
                begin = begins[known]
                if not is_long or (
                    begins[known + 1] - begin == length and are_equal(text, start, letters, begin, length)
                ):
                    found = known
            slot = (slot + np.uint64(1)) & mask
        if found < 0 and is_added:
            found, begin = count, begins[count]
            keys[found, 0], keys[found, 1] = key, more
            for at in range(0, length, 8):
                store_word(letters, begin + at, load_word(text, start + at))
            begins[found + 1] = begin + length
            count += 1
            table[slot] = (hashed & upper) | np.uint64(count)
        numbers[one] = found
    return count


@compiled
def fill(keys, begins, count, table):
    """Write the hashes of `count` texts into the hash table `table` of `look_up`, uint64 zeros [a power of two].

    `keys` uint64 [known, 2] and `begins` int64 [known + 1] are those of `look_up`.
    """
    mask, upper = np.uint64(len(table) - 1), ~LOWER
    for one in range(count):
        hashed = _hash(keys[one, 0], keys[one, 1], begins[one + 1] - begins[one] >= LEAST_LONG)
        slot = hashed & mask
        while table[slot]:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = (hashed & upper) | np.uint64(one + 1)


@final
class Vocabulary:
    """Distinct texts, numbered in the order in which they were added."""

    def __init__(self, texts: tuple[str, ...] = ()) -> None:
        """Set up an empty hash table and add `texts`, which get the indices 0, 1, ..."""
        self._count = 0
        self._letters, self._begins = np.empty(0, np.uint8), np.zeros(1, np.int64)
        self._keys, self._table = np.empty((0, 2), np.uint64), np.zeros(LEAST_TABLE, np.uint64)
        if texts:
            self.add(Texts(strings_of(texts), np.empty(0, np.int32)))

    def __len__(self) -> int:
        """Return the number of distinct texts."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Memory in bytes of the texts as a pyarrow string array: UTF-8 bytes and int32 offsets."""
        return int(self._begins[self._count]) + 4 * (self._count + 1)

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
        assert len(self._table), "the vocabulary was closed"
        fields = texts.padded()
        if is_added:
            self._make_room(len(fields), fields.count_bytes())
        numbers = np.empty(len(fields), np.int32)
        held = self._letters, self._begins, self._keys, self._table
        self._count = look_up(fields.text, fields.starts, fields.stops, *held, self._count, is_added, numbers)
        return numbers

    def _make_room(self, texts: int, count_bytes: int) -> None:
        """Grow the arrays in place, at least doubling them, if `texts` more texts of `count_bytes` bytes may not fit.

        The hash table is rebuilt when it would be more than two thirds full.
        """
        most, most_bytes = self._count + texts, int(self._begins[self._count]) + count_bytes + PADDING
        if most_bytes > len(self._letters):
            self._letters = _grown(self._letters, most_bytes)
        if most > len(self._keys):
            self._keys, self._begins = _grown(self._keys, most), _grown(self._begins, most + 1)
        if 3 * most > 2 * len(self._table):
            self._table = np.zeros(1 << (3 * most // 2).bit_length(), np.uint64)
            fill(self._keys, self._begins, self._count, self._table)

    def close(self) -> None:
        """Free what texts are looked up by; the texts stay. Nothing may be added or found afterwards."""
        self._keys, self._table = self._keys[:0].copy(), self._table[:0].copy()

    def array(self) -> Any:
        """Return the texts in the order of their indices as a pyarrow string array; it shares the letters."""
        pa = arrow()
        offsets = pa.py_buffer(self._begins[: self._count + 1].astype(np.int32))
        return pa.StringArray.from_buffers(self._count, offsets, pa.py_buffer(self._letters))

    def texts(self) -> Texts:
        """Return the texts as a column with one row each, in the order of their indices."""
        each = np.arange(self._count, dtype=np.int32)
        return Texts(self.fields_of(each), each)

    def fields_of(self, indices: np.ndarray) -> Fields:
        """Return the texts of these indices, int32 [texts], where they stand; together they have less than 2 GB."""
        letters = self._letters.view()
        letters.flags.writeable = False
        return Fields(
            letters, self._begins[indices].astype(np.int32), self._begins[indices + np.int32(1)].astype(np.int32)
        )

    def in_order(self) -> tuple[str, ...]:
        """Return the texts sorted by code points."""
        texts = self.array()
        return tuple(texts.take(arrow().compute.sort_indices(texts)).to_pylist())


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return a copy of an array of at least `size` rows, at least twice as many as before.

    The rest is undefined.
    """
    grown = np.empty((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
