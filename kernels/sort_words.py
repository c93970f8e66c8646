"""Words of 64 bits made of the entries of a batch, which a sort moves in the place of the entries."""

from typing import NamedTuple

import numpy as np

DIGIT_BITS = 12
"""Widest digit: its 4096 counters fit the first-level cache, the lines that they point into the second."""

WORD_BITS = 64
"""Bits of a word; a test lowers it."""

VALUE_BITS = 32
"""Bits of a value that goes along."""

NO_VALUES = np.empty(0, np.uint32)


class Word(NamedTuple):
    """Layout of words: place or value, row and column, upwards; sorted by `digits` digits of `width` bits."""

    digits: int
    width: int
    streams: int
    """Bits of the number of a stream: a later pass takes its entries from `1 << streams` of them."""
    row: int
    """Lowest bit of the row; `column` where there was no room for rows."""
    column: int
    """Lowest bit of the column."""


def word_of(rows: int, entries: int, columns: int, parts: int, low: int | None = None) -> Word | None:
    """Layout of words of so many entries in so many rows and columns, sorted by so many threads.

    The lowest `low` bits are for a value; by default they are for a place. None where a word has no room for them and
    the column, and for a value also where it has none for the row.
    """
    bits, row_bits = max((columns - 1).bit_length(), 1), max(rows - 1, 1).bit_length()
    row = max(entries - 1, 1).bit_length() if low is None else low
    has_rows = row + row_bits + bits <= WORD_BITS
    if row + bits > WORD_BITS or (low is not None and not has_rows):
        return None
    digits = -(-bits // min(DIGIT_BITS, max(entries.bit_length() - 2, 8)))
    width = -(-bits // digits)
    streams = min(2 + (parts - 1).bit_length(), width)
    return Word(digits, width, streams, row, row + (row_bits if has_rows else 0))


def bits_of(values: np.ndarray | None, kind: np.dtype) -> np.ndarray:
    """The bits of values that may go along in the place of places of that type, uint32; `NO_VALUES` where none may."""
    if values is None or values.dtype != np.float32 or kind != np.int32:
        return NO_VALUES
    return values.view(np.uint32)
