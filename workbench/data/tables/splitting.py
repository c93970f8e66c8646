"""Text of a table into columns by compiled code: where its fields stand, which are the same, and their numbers.

A block of whole lines is plain if each line has as many fields as there are columns, and quotes enclose whole fields
without a quote, separator or line end in them. What is not plain is left to pyarrow.

Texts are `starts` and `stops`, int32 [texts], in `text`, uint8, behind which `PADDING` bytes follow.
"""

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.files.decimal_numbers import (
    BAD,
    HARD,
    MINUS,
    NINE,
    PLUS,
    TENS,
    ZERO,
    compiled,
    compiled_inline,
    marked,
    read_number,
)

NEWLINE, RETURN, QUOTE, TAB, BLANK = 10, 13, 34, 9, 32
FIRST_PRINTED, LAST_PRINTED = 33, 126
PADDING = 8
"""Bytes behind a block, so that a word of eight can be loaded from each place of it."""
OF_NUMBERS = "+-.eE0123456789"
"""Signs of numbers; where columns stand between such a sign, pyarrow splits."""
MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Bits of the first bytes of a word, by their count."""
TENS_WHOLE = np.array([10**power for power in range(9)], np.uint64)
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
BYTES_FIELD = 4
"""Bytes of a field and its end, on average, for which there is room at first."""
BYTES_AT_ONCE = 1 << 10
"""Bytes after which it is looked whether there is room for more fields."""
COLUMNS_AT_ONCE = 8
"""Columns whose tables are in the cache together."""
ROWS_AT_ONCE = 64
"""Rows of which all columns are looked up before the next ones: their fields stay in the cache."""


@compiled_inline
def word_at(text, place):
    """Return the eight bytes from a place on, as a uint64, the first one lowest."""
    at = np.uint64(place)  # of an unsigned index no compiler has to ask whether it counts from the end
    word = np.uint64(text[at]) | np.uint64(text[at + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(text[at + np.uint64(2)]) << np.uint64(16) | np.uint64(text[at + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(text[at + np.uint64(4)]) << np.uint64(32) | np.uint64(text[at + np.uint64(5)]) << np.uint64(40)
    return word | (
        np.uint64(text[at + np.uint64(6)]) << np.uint64(48) | np.uint64(text[at + np.uint64(7)]) << np.uint64(56)
    )


@compiled
def find_ends(text, begin, stop, separator, ends):
    """Write the places of separators and line ends between `begin` and `stop` into `ends`, behind the one before them.

    Returns how many there are, and how many of them are line ends; -1 if `ends` int32, which changes, is too short.
    """
    count, lines = np.uint64(1), 0
    ends[0] = begin - 1
    for first in range(begin, stop, BYTES_AT_ONCE):
        if np.int64(count) + BYTES_AT_ONCE > len(ends):
            return -1, 0
        for at in range(first, min(first + BYTES_AT_ONCE, stop)):
            letter = text[np.uint64(at)]
            is_line = letter == NEWLINE
            ends[count] = at
            count += np.uint64(is_line | (letter == separator))
            lines += is_line
    return np.int64(count) - 1, lines


@compiled
def take_off(text, starts, stops, columns, has_returns, has_quotes):
    """Move `starts` and `stops` so that line ends of two signs and quotes around fields are left out.

    Returns whether all quotes enclose whole fields, and no line of a single column is empty.
    """
    for field in range(len(starts)):
        start, stop = starts[field], stops[field]
        if has_returns and (field + 1) % columns == 0 and stop > start and text[stop - 1] == RETURN:
            stop -= 1
        if columns == 1 and stop == start:
            return False
        if has_quotes and stop > start and text[start] == QUOTE:
            start, stop = start + 1, stop - 1
            if stop < start or text[stop] != QUOTE:
                return False
            for at in range(start, stop):
                if text[at] == QUOTE:
                    return False
        starts[field], stops[field] = start, stop
    return True


@compiled_inline
def _key(text, start, length):
    """Return a text of up to eight bytes itself, of others a hash, uint64."""
    if length <= 8:
        return word_at(text, start) & MASKS[length]
    key = word_at(text, start + length - 8)
    for at in range(start, start + length - 8, 8):
        key = (key ^ (key >> np.uint64(29))) * MULTIPLIER ^ word_at(text, at)
    return (key ^ (key >> np.uint64(32))) * MULTIPLIER


@compiled_inline
def _is_same(text, start, other, length):
    """Return whether two texts of more than eight bytes are the same."""
    for at in range(0, length - 8, 8):
        if word_at(text, start + at) != word_at(text, other + at):
            return False
    return word_at(text, start + length - 8) == word_at(text, other + length - 8)


@compiled
def number_texts(text, starts, stops, columns, wanted, numbers, found, counts, tables):
    """Number the texts of the `wanted` columns, of each in the order in which they appear. O(fields).

    `numbers` int32 [wanted, rows] become those of the rows; `found` uint64 [wanted, rows, 2] for each text its key, and
    its start and length in the two halves of a word; `counts` int64 [wanted] how many there are. `tables` int32
    [wanted, a power of two above the rows] are zeros, and change.
    """
    rows, mask, half = len(starts) // columns, np.uint64(tables.shape[1] - 1), np.uint64(32)
    for first in range(0, rows, ROWS_AT_ONCE):
        for one in range(len(wanted)):
            count = counts[one]
            for row in range(first, min(first + ROWS_AT_ONCE, rows)):
                at = row * columns + wanted[one]
                start, length = np.int64(starts[at]), np.int64(stops[at]) - np.int64(starts[at])
                key = _key(text, start, length)
                slot = ((key * MULTIPLIER) >> half) & mask
                while True:
                    held = np.int64(tables[one, slot]) - 1
                    if held < 0:
                        held = count
                        found[one, held, 0] = key
                        found[one, held, 1] = np.uint64(start) << half | np.uint64(length)
                        count += 1
                        tables[one, slot] = count
                        break
                    if found[one, held, 0] == key:
                        place = found[one, held, 1]
                        if np.int64(place & np.uint64(0xFFFFFFFF)) == length and (
                            length <= 8 or _is_same(text, start, np.int64(place >> half), length)
                        ):
                            break
                    slot = (slot + np.uint64(1)) & mask
                numbers[one, row] = held
            counts[one] = count


@compiled
def gather(text, starts, stops, offsets, letters):
    """Put the texts one after the other into `letters`; `offsets` [texts + 1] are where they begin."""
    total = np.int64(0)
    offsets[0] = 0
    for one in range(len(starts)):
        for at in range(np.int64(starts[one]), np.int64(stops[one])):
            letters[total] = text[at]
            total += 1
        offsets[one + 1] = total


@compiled_inline
def _digits(word, count):
    """Return the integer of the first `count` bytes, up to eight, of a word, how many of them follow a point, and
    whether they are digits with at most one point; without a point -1 digits follow it.

    Digits are added up in pairs, fours and eights (D. Lemire, 2018, https://lemire.me/blog/2018/10/03/quickly-parsing-eight-digits/).
    """
    eight = np.uint64(8)
    word &= MASKS[count]
    others = word ^ np.uint64(0x2E2E2E2E2E2E2E2E)
    points = (others - np.uint64(0x0101010101010101)) & ~others & np.uint64(0x8080808080808080)
    first = points & (~points + np.uint64(1))
    behind = np.int64(-1)
    if first:
        place = ((first >> np.uint64(7)) * np.uint64(0x0001020304050607)) >> np.uint64(56)
        bits = place * eight
        word = (word & ((np.uint64(1) << bits) - np.uint64(1))) | (((word >> bits) >> eight) << bits)
        count -= 1
        behind = count - np.int64(place)
    zeros = np.uint64(0x3030303030303030)
    if not count:
        return np.uint64(0), behind, True
    word = (word << (eight * np.uint64(8 - count))) | (zeros & MASKS[8 - count])
    are_digits = not ((word + np.uint64(0x4646464646464646)) | (word - zeros)) & np.uint64(0x8080808080808080)
    word -= zeros
    word = word * np.uint64(10) + (word >> eight)
    half = np.uint64(0x000000FF000000FF)
    pairs = (word & half) * np.uint64(0x000F424000000064)
    pairs += ((word >> np.uint64(16)) & half) * np.uint64(0x0000271000000001)
    return pairs >> np.uint64(32), behind, are_digits


@compiled_inline
def _short_number(text, start, stop):
    """Return the number in up to sixteen bytes behind its sign, and whether it is one that is read so.

    An integer below 2**53 over a power of ten up to 10**15 is the double next to the quotient.
    """
    is_negative = text[start] == MINUS
    start += np.int64(is_negative | (text[start] == PLUS))
    length = stop - start
    if not 0 < length <= 16:
        return 0.0, False
    first = min(length, 8)
    whole, behind, is_read = _digits(word_at(text, start), first)
    digits = length - np.int64(behind >= 0)
    if length > 8:
        rest, behind_rest, is_rest = _digits(word_at(text, start + 8), length - 8)
        count = length - 8 - np.int64(behind_rest >= 0)
        whole = whole * TENS_WHOLE[count] + rest
        is_read &= is_rest & ((behind < 0) | (behind_rest < 0))
        digits -= np.int64(behind_rest >= 0)
        behind = behind + count if behind >= 0 else behind_rest
    value = np.float64(np.int64(whole)) / TENS[max(behind, 0)]
    return (-value if is_negative else value), is_read & (digits > 0) & (whole <= np.uint64(1 << 53))


@compiled
def read_numbers(text, starts, stops, values):
    """Write the number that each text is, NaN for others; return whether some are left to Python (`marked`)."""
    has_hard = False
    for one in range(len(starts)):
        value, is_read = _short_number(text, np.int64(starts[one]), np.int64(stops[one]))
        if is_read:
            values[one] = value
            continue
        value, behind, state = read_number(text, np.int64(starts[one]))
        if state == BAD or behind != stops[one]:
            values[one] = np.nan
        elif state == HARD:
            values[one] = marked(one)
            has_hard = True
        else:
            values[one] = value
    return has_hard


@compiled
def are_whole(text, starts, stops):
    """Return whether all texts are whole numbers of at most 15 digits as they are printed, so that a double tells them.

    Without texts there are none.
    """
    for one in range(len(starts)):
        start, stop = np.int64(starts[one]), np.int64(stops[one])
        start += np.int64(start < stop and text[start] == MINUS)
        if not 0 < stop - start <= 15 or (text[start] == ZERO and (stop - start > 1 or start > starts[one])):
            return False
        for at in range(start, stop):
            if not ZERO <= text[at] <= NINE:
                return False
    return len(starts) > 0


@compiled
def strip(text, starts, stops, word_offsets, word_letters, is_absent):
    """Take blanks off the texts, and write which of them are one of the words.

    Returns False if a text then begins or ends with a sign that is not printed ASCII: it may be another kind of blank.
    """
    longest = 0
    for word in range(len(word_offsets) - 1):
        longest = max(longest, word_offsets[word + 1] - word_offsets[word])
    for one in range(len(starts)):
        start, stop = np.int64(starts[one]), np.int64(stops[one])
        while start < stop and (text[start] == BLANK or text[start] == TAB):
            start += 1
        while start < stop and (text[stop - 1] == BLANK or text[stop - 1] == TAB):
            stop -= 1
        starts[one], stops[one] = start, stop
        if start < stop and not (
            FIRST_PRINTED <= text[start] <= LAST_PRINTED and FIRST_PRINTED <= text[stop - 1] <= LAST_PRINTED
        ):
            return False
        is_absent[one] = stop - start <= longest and _is_word(text, start, stop, word_offsets, word_letters)
    return True


@compiled
def _is_word(text, start, stop, offsets, letters):
    """Return whether a text is one of the words."""
    for word in range(len(offsets) - 1):
        begin = offsets[word]
        if offsets[word + 1] - begin == stop - start:
            is_same = True
            for at in range(stop - start):
                is_same &= text[start + at] == letters[begin + at]
            if is_same:
                return True
    return False


@final
class Fields:
    """Texts that stand in a block of text: `starts` and `stops` int32 [texts] in `text`, uint8, which is padded."""

    def __init__(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> None:
        self.text, self.starts, self.stops = text, starts, stops

    def __len__(self) -> int:
        return len(self.starts)

    def gathered(self, pa: Any) -> Any:
        """Return the texts as a pyarrow array of strings. O(bytes)."""
        offsets = np.empty(len(self) + 1, np.int32)
        letters = np.empty(int(self.stops.sum(dtype=np.int64) - self.starts.sum(dtype=np.int64)), np.uint8)
        gather(self.text, self.starts, self.stops, offsets, letters)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(letters))

    def numbers(self) -> np.ndarray:
        """Return the numbers that the texts stand for, float64; NaN for a text that is none."""
        values = np.empty(len(self))
        if read_numbers(self.text, self.starts, self.stops, values):
            is_hard = values.view(np.int64) >> 48 == 0x7FFC
            for one in np.flatnonzero(is_hard):
                values[one] = float(self.text[self.starts[one] : self.stops[one]].tobytes())
        return values

    def stripped(self, words: tuple[np.ndarray, np.ndarray]) -> tuple["Fields", np.ndarray] | None:
        """Return the texts without blanks around them, and which are one of the words (offsets and letters).

        None if there may be other blanks than spaces and tabs.
        """
        texts, is_absent = Fields(self.text, self.starts.copy(), self.stops.copy()), np.empty(len(self), np.bool_)
        is_known = strip(self.text, texts.starts, texts.stops, *words, is_absent)
        return (texts, is_absent) if is_known else None

    def taken(self, chosen: np.ndarray) -> "Fields":
        """Return some of the texts, by a mask."""
        return Fields(self.text, self.starts[chosen], self.stops[chosen])


@final
class Scratch:
    """Memory that one block after the other is split in, so that the system does not hand out new pages for each."""

    def __init__(self) -> None:
        self._held: dict[str, np.ndarray] = {}

    def take(self, name: str, dtype: DTypeLike, *shape: int) -> np.ndarray:
        """Return an array of that shape, of any content."""
        size, held = math.prod(shape), self._held.get(name)
        if held is None or len(held) < size:
            held = self._held[name] = np.empty(size + size // 8, dtype)
        return held[:size].reshape(shape)


def _numbered(
    text: np.ndarray, starts: np.ndarray, stops: np.ndarray, columns: int, wanted: Sequence[int], scratch: Scratch
) -> dict[int, tuple[Fields, np.ndarray | None]]:
    """Return the different texts of some columns, and the number of each row's, int32 [rows], by column."""
    rows, several = len(starts) // columns, len(wanted)
    numbers, counts = np.empty((several, rows), np.int32), np.zeros(several, np.int64)
    found = scratch.take("found", np.uint64, several, rows, 2)
    tables = scratch.take("tables", np.int32, several, 1 << (rows + rows // 2).bit_length())
    tables[:] = 0
    number_texts(text, starts, stops, columns, np.array(wanted, np.int64), numbers, found, counts, tables)
    texts: dict[int, tuple[Fields, np.ndarray | None]] = {}
    for one, place in enumerate(wanted):
        places = found[one, : counts[one], 1]
        begins = (places >> np.uint64(32)).astype(np.int32)
        fields = Fields(text, begins, begins + (places & np.uint64(0xFFFFFFFF)).astype(np.int32))
        texts[place] = fields, numbers[one]
    return texts


def split(
    block: bytes,
    begin: int,
    separator: str,
    quotes: bool,
    columns: int,
    wanted: Sequence[int],
    differing: Sequence[int],
    scratch: Scratch,
) -> list[tuple[Fields, np.ndarray | None]] | None:
    """Return the texts of the `wanted` columns of whole lines, and the number of each row's, int32 [rows].

    Of columns in `differing` each row has its own text, and the numbers are None. The lines stand in `block` between
    `begin` and the `PADDING`. None if they are not plain. O(bytes).
    """
    text, stop = np.frombuffer(block, np.uint8), len(block) - PADDING
    returns = block.count(b"\r", begin) if block.find(b"\r", begin) >= 0 else 0
    if returns and returns != block.count(b"\r\n", begin):
        return None
    has_quotes = quotes and block.find(b'"', begin, stop) >= 0
    count, rows = -1, 0
    for each in (BYTES_FIELD, 1):  # bytes of a field, at least
        if count < 0:
            ends = scratch.take("ends", np.int32, (stop - begin) // each + 2 * BYTES_AT_ONCE)
            count, rows = find_ends(text, begin, stop, ord(separator), ends)
    ends = ends[: count + 1]
    if count != rows * columns or (text[ends[columns::columns]] != NEWLINE).any():
        return None
    starts, stops = np.add(ends[:-1], 1, out=scratch.take("starts", np.int32, count)), ends[1:]
    if (returns or has_quotes or columns == 1) and not take_off(text, starts, stops, columns, returns > 0, has_quotes):
        return None
    texts: dict[int, tuple[Fields, np.ndarray | None]] = {}
    numbered = [place for place in wanted if place not in differing]
    for first in range(0, len(numbered), COLUMNS_AT_ONCE):
        some = numbered[first : first + COLUMNS_AT_ONCE]
        texts |= _numbered(text, starts, stops, columns, some, scratch)
    for place in differing:
        texts[place] = Fields(text, starts[place::columns].copy(), stops[place::columns].copy()), None
    return [texts[place] for place in wanted]
