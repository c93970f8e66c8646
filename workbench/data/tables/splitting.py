"""Text of a table into columns by compiled code: where its fields stand, which are the same, and their numbers.

A block of whole lines is plain if each line has as many fields as there are columns, and quotes enclose whole fields
without a quote, separator or line end in them. What is not plain is left to pyarrow.

Texts are `starts` and `stops`, int32 [texts], in `text`, uint8, behind which `PADDING` bytes follow.
"""

import contextlib
import math
import mmap
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.files.decimal_numbers import (
    BAD,
    HARD,
    MINUS,
    NINE,
    PLUS,
    POINT,
    TENS,
    WHOLE_TENS,
    ZERO,
    compiled,
    compiled_inline,
    load_word,
    marked,
    read_number,
    store_word,
    zeros_behind,
)
from workbench.data.tables.compiled import have_outside, is_word

NEWLINE, RETURN, QUOTE, TAB, BLANK = 10, 13, 34, 9, 32
FIRST_PRINTED, LAST_PRINTED = 33, 126
PADDING = 8
"""Bytes behind a block, so that a word of eight can be loaded from each place of it."""
OF_NUMBERS = "+-.eE0123456789"
"""Signs of numbers; where columns stand between such a sign, pyarrow splits."""
MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Bits of the first bytes of a word, by their count."""
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
def _marks(word, repeated):
    """Return a uint64 with the highest bit of each byte set in which `word` and `repeated` are equal.

    No carry passes from one byte to the next, so that no other bit is set.
    """
    others, low = word ^ repeated, np.uint64(0x7F7F7F7F7F7F7F7F)
    return ~(((others & low) + low) | others | low)


@compiled
def find_ends(text, begin, stop, separator, ends):
    """Write the positions of separators and line ends in text[begin:stop] to `ends`, behind `begin - 1` in ends[0].

    `text` is uint8 with `PADDING` bytes behind `stop`, `separator` a byte code, `ends` int32 and overwritten. Returns
    (number of positions, how many are line ends); (-1, 0) if `ends` is too short. Eight bytes are compared at once; the
    first two ends among them are written without a branch, the second over what comes next if there is only one.
    """
    each, one = np.uint64(0x0101010101010101), np.uint64(1)
    of_lines, of_fields = each * np.uint64(NEWLINE), each * np.uint64(separator)
    count, lines = np.uint64(1), np.uint64(0)
    ends[0] = begin - 1
    for first in range(begin, stop, BYTES_AT_ONCE):
        if np.int64(count) + BYTES_AT_ONCE + 2 > len(ends):
            return -1, 0
        for at in range(first, min(first + BYTES_AT_ONCE, stop), 8):
            word = load_word(text, at)
            is_line = _marks(word, of_lines)
            found = is_line | _marks(word, of_fields)
            if at + 8 > stop:
                inside = (one << np.uint64(8 * (stop - at))) - one
                is_line &= inside
                found &= inside
            lines += ((is_line >> np.uint64(7)) * each) >> np.uint64(56)
            rest = found & (found - one)
            ends[count] = at + np.int64(zeros_behind(found) >> np.uint64(3))
            ends[count + one] = at + np.int64(zeros_behind(rest) >> np.uint64(3))
            count += np.uint64(found != 0) + np.uint64(rest != 0)
            rest &= rest - one
            while rest:
                ends[count] = at + np.int64(zeros_behind(rest) >> np.uint64(3))
                count += one
                rest &= rest - one
    return np.int64(count) - 1, np.int64(lines)


@compiled
def take_off(text, starts, stops, columns, has_returns, has_quotes):
    r"""Move `starts` and `stops` in place so that "\r" before a line end and quotes around a field are left out.

    Both are int32 [rows * columns], the bounds of the fields in `text` (uint8), row by row. `has_returns` and
    `has_quotes` say whether the text has such bytes. Returns False if a quote does not enclose a whole field, or a line
    of a single column is empty; the bounds are then undefined.
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
def keys_of(text, start, length):
    """Return two uint64 keys of text[start:start + length], which texts of up to 16 bytes share only if they are equal.

    They are the first eight bytes and the rest; of longer texts a hash and the last eight bytes. `text` is a padded
    uint8 array.
    """
    first = load_word(text, start)
    if length <= 8:
        return first & MASKS[length], np.uint64(0)
    if length <= 16:
        return first, load_word(text, start + 8) & MASKS[length - 8]
    last = load_word(text, start + length - 8)
    for at in range(start + 8, start + length - 8, 8):
        first = (first ^ (first >> np.uint64(29))) * MULTIPLIER ^ load_word(text, at)
    return first, last


@compiled_inline
def are_equal(text, start, other, begin, length):
    """Return whether text[start:start + length] and other[begin:begin + length], both uint8, are equal.

    Words of eight bytes are compared; `length` must be above 8.
    """
    for at in range(0, length - 8, 8):
        if load_word(text, start + at) != load_word(other, begin + at):
            return False
    return load_word(text, start + length - 8) == load_word(other, begin + length - 8)


@compiled
def number_texts(text, starts, stops, columns, wanted, numbers, found, counts, tables):
    """Find the distinct texts of the `wanted` columns and write the index of each row's text. O(fields).

    Fields are `starts` and `stops` int32 [rows * columns] in the padded uint8 `text`. Written: `numbers` int32 [wanted,
    rows], indices in the order of first appearance; `found` uint64 [wanted, rows, 3], for each distinct text
    start << 32 | length and its keys, by which those of up to 16 bytes are compared without another look at the text;
    `counts` int64 [wanted], zeros on entry, the number of distinct texts. `tables` int32 [wanted, a power of two above
    the rows] are hash tables, zeros on entry.
    """
    rows, mask, half = len(starts) // columns, np.uint64(tables.shape[1] - 1), np.uint64(32)
    for first in range(0, rows, ROWS_AT_ONCE):
        for one in range(len(wanted)):
            count = counts[one]
            for row in range(first, min(first + ROWS_AT_ONCE, rows)):
                at = row * columns + wanted[one]
                start, length = np.int64(starts[at]), np.int64(stops[at]) - np.int64(starts[at])
                key, more = keys_of(text, start, length)
                mixed = (key ^ (more ^ (more >> half)) * MULTIPLIER) * MULTIPLIER
                slot = (mixed >> half) & mask
                while True:
                    held = np.int64(tables[one, slot]) - 1
                    if held < 0:
                        held = count
                        found[one, held, 0] = np.uint64(start) << half | np.uint64(length)
                        found[one, held, 1] = key
                        found[one, held, 2] = more
                        count += 1
                        tables[one, slot] = count
                        break
                    place = found[one, held, 0]
                    if (
                        found[one, held, 1] == key
                        and found[one, held, 2] == more
                        and np.int64(place & np.uint64(0xFFFFFFFF)) == length
                        and (length <= 16 or are_equal(text, start, text, np.int64(place >> half), length))
                    ):
                        break
                    slot = (slot + np.uint64(1)) & mask
                numbers[one, row] = held
            counts[one] = count


@compiled
def gather(text, starts, stops, offsets, letters):
    """Copy the texts one after the other into `letters` and write where each begins to `offsets`.

    Texts are text[starts[i]:stops[i]], padded uint8. `offsets` is int32 [texts + 1], `letters` uint8 for all; both
    are overwritten. Eight bytes are copied at once where `letters` has room for them.
    """
    total = np.int64(0)
    offsets[0] = 0
    for one in range(len(starts)):
        start, length = np.int64(starts[one]), np.int64(stops[one]) - np.int64(starts[one])
        if total + length + 8 <= len(letters):
            for at in range(0, length, 8):
                store_word(letters, total + at, load_word(text, start + at))
        else:
            for at in range(length):
                letters[total + at] = text[start + at]
        total += length
        offsets[one + 1] = total


@compiled_inline
def _digits(word, count):
    """Return (integer, digits behind the point or -1 without one, whether it is valid) of the first bytes of a word.

    `word` is eight bytes as a little-endian uint64, of which the first `count` (0 to 8) are read. Valid is a run of
    digits with at most one point, also an empty one. Digits are added up in pairs, fours and eights (D. Lemire, 2018,
    https://lemire.me/blog/2018/10/03/quickly-parsing-eight-digits/).
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
    """Return (number, True) for a decimal of up to sixteen bytes, sign apart, in text[start:stop], else (any, False).

    False also for exponents and integers above 2**53. An integer up to 2**53 over a power of ten up to 10**15 is the
    double next to the quotient, so the result is correctly rounded.
    """
    is_negative = text[start] == MINUS
    start += np.int64(is_negative | (text[start] == PLUS))
    length = stop - start
    if not 0 < length <= 16:
        return 0.0, False
    first = min(length, 8)
    whole, behind, is_read = _digits(load_word(text, start), first)
    digits = length - np.int64(behind >= 0)
    if length > 8:
        rest, behind_rest, is_rest = _digits(load_word(text, start + 8), length - 8)
        count = length - 8 - np.int64(behind_rest >= 0)
        whole = whole * WHOLE_TENS[count] + rest
        is_read &= is_rest & ((behind < 0) | (behind_rest < 0))
        digits -= np.int64(behind_rest >= 0)
        behind = behind + count if behind >= 0 else behind_rest
    value = np.float64(np.int64(whole)) / TENS[max(behind, 0)]
    return (-value if is_negative else value), is_read & (digits > 0) & (whole <= np.uint64(1 << 53))


@compiled
def read_numbers(text, starts, stops, values):
    """Write the number of each text to `values`, float64 [texts], NaN if it is not a decimal number.

    Texts are text[starts[i]:stops[i]], padded uint8. Numbers that need exact arithmetic get `marked(i)`, a special NaN;
    returns whether there are any, which the caller has to parse.
    """
    has_hard = False
    for one in range(len(starts)):
        first = text[starts[one]]
        if not (ZERO <= first <= NINE or first in (MINUS, POINT, PLUS)):
            values[one] = np.nan
            continue
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
    """Return whether all texts are whole numbers of at most 15 digits in canonical form, so that float64 restores them.

    Texts are text[starts[i]:stops[i]], uint8. Leading zeros, "+" and "-0" are not canonical. Returns False without
    texts.
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
    """Strip blanks and tabs from the texts, and write to `is_absent` (bool [texts]) which are then one of the words.

    Texts are text[starts[i]:stops[i]], uint8; `starts` and `stops` are changed in place. Words are offsets into
    `word_letters`. Returns False, with the rest undefined, if a stripped text begins or ends with a byte that is not
    printable ASCII, as it may be another kind of blank.
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
        is_absent[one] = stop - start <= longest and is_word(text, start, stop, word_offsets, word_letters)
    return True


@final
class Fields:
    """Texts that stand in a block of text: `starts` and `stops` int32 [texts] in `text`, uint8, which is padded."""

    def __init__(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> None:
        """Store the padded block `text` (uint8) and the int32 bounds [texts] of each text in it; nothing is copied."""
        self.text, self.starts, self.stops = text, starts, stops
        self._least = -1  # `has_outside` was False for this `least`

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.starts)

    @staticmethod
    def copied(offsets: np.ndarray, letters: np.ndarray) -> "Fields":
        """Return the texts letters[offsets[i]:offsets[i + 1]], uint8, in a padded copy; `offsets` is int32."""
        first, last = int(offsets[0]), int(offsets[-1])
        text = np.zeros(last - first + PADDING, np.uint8)
        text[: last - first] = letters[first:last]
        text.flags.writeable = False
        offsets = offsets - np.int32(first)
        return Fields(text, offsets[:-1], offsets[1:])

    def count_bytes(self) -> int:
        """Return the number of bytes of all texts."""
        return int(self.stops.sum(dtype=np.int64) - self.starts.sum(dtype=np.int64))

    def has_outside(self, least: int) -> bool:
        """Return whether a byte of the texts is below `least`, at most 128, or beyond printable ASCII.

        That none is, is kept for the next call.
        """
        if least > self._least and not have_outside(self.text, self.starts, self.stops, least):
            self._least = least
        return least > self._least

    def gathered(self, pa: Any) -> Any:
        """Return the texts as a pyarrow string array, copied out of the block; `pa` is the pyarrow package.

        O(bytes).
        """
        offsets = np.empty(len(self) + 1, np.int32)
        letters = np.empty(self.count_bytes(), np.uint8)
        gather(self.text, self.starts, self.stops, offsets, letters)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(letters))

    def numbers(self) -> np.ndarray:
        """Return the number of each text, float64 [texts], NaN if it is not a decimal number; correctly rounded."""
        values = np.empty(len(self))
        if read_numbers(self.text, self.starts, self.stops, values):
            is_hard = values.view(np.int64) >> 48 == 0x7FFC
            for one in np.flatnonzero(is_hard):
                values[one] = float(self.text[self.starts[one] : self.stops[one]].tobytes())
        return values

    def stripped(self, words: tuple[np.ndarray, np.ndarray]) -> tuple["Fields", np.ndarray] | None:
        """Return (texts without blanks around them, bool [texts] whether it is one of the words); None if undecided.

        `words` is (offsets, uint8 letters). Undecided means that a text begins or ends with a byte beyond printable
        ASCII, which may be another kind of blank. The bounds are copied; this object is unchanged.
        """
        texts, is_absent = Fields(self.text, self.starts.copy(), self.stops.copy()), np.empty(len(self), np.bool_)
        is_known = strip(self.text, texts.starts, texts.stops, *words, is_absent)
        return (texts, is_absent) if is_known else None

    def taken(self, chosen: np.ndarray) -> "Fields":
        """Return the texts selected by `chosen`, a bool mask [texts], in the same block; this object if all are."""
        return self if chosen.all() else Fields(self.text, self.starts[chosen], self.stops[chosen])


LARGE = 1 << 21
"""Bytes of a huge page."""


def reserve(count_bytes: int) -> mmap.mmap:
    """Return `count_bytes` bytes of zeros, in huge pages where the system has them.

    The system hands out a huge page as soon as one of 4 KB, of which it takes 512.
    """
    memory = mmap.mmap(-1, count_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


@final
class Scratch:
    """Memory that one block after the other is split in, so that the system does not hand out new pages for each."""

    def __init__(self) -> None:
        """Set up an empty pool of named buffers."""
        self._held: dict[str, np.ndarray] = {}

    def take(self, name: str, dtype: DTypeLike, *shape: int) -> np.ndarray:
        """Return the buffer `name` as an uninitialised array of `shape`; it is reallocated only when it is too small.

        The memory is shared with the last array taken by that name, whose content is lost. `dtype` counts at allocation
        only.
        """
        size, held = math.prod(shape), self._held.get(name)
        if held is None or len(held) < size:
            count = size + size // 8
            is_large = count * np.dtype(dtype).itemsize >= LARGE
            held = (
                np.frombuffer(reserve(count * np.dtype(dtype).itemsize), dtype) if is_large else np.empty(count, dtype)
            )
            self._held[name] = held
        return held[:size].reshape(shape)


class Piece(NamedTuple):
    """Whole lines of a file: `letters` and `text`, uint8, are the same memory, and rows are text[begin:-PADDING].

    `PADDING` zero bytes follow the lines; `letters` may be longer than `text`.
    """

    letters: mmap.mmap
    text: np.ndarray
    begin: int


@final
class Buffers:
    """Memory for pieces of text, taken again once nothing refers to the text that was in it."""

    def __init__(self) -> None:
        """Start without memory."""
        self._held: list[tuple[mmap.mmap, weakref.ref]] = []

    def take(self, size: int) -> Piece:
        """Return memory of at least `size` bytes with any content, as a piece of its whole length.

        It is free again when its `text`, and all views of that, are gone; `letters` does not count.
        """
        self._held = [held for held in self._held if held[1]() is not None or len(held[0]) >= size]
        place = next((place for place, held in enumerate(self._held) if held[1]() is None), len(self._held))
        letters = self._held.pop(place)[0] if place < len(self._held) else reserve(size)
        text = np.frombuffer(letters, np.uint8)
        text.flags.writeable = False
        self._held.append((letters, weakref.ref(text.base)))
        return Piece(letters, text, 0)


def _index_texts(
    text: np.ndarray, starts: np.ndarray, stops: np.ndarray, columns: int, wanted: Sequence[int], scratch: Scratch
) -> dict[int, tuple[Fields, np.ndarray | None]]:
    """Return {column index: (distinct texts, index of each row's text int32 [rows])} for the columns `wanted`.

    `starts` and `stops` int32 [rows * columns] are the fields of all `columns`, row by row. The texts point into
    `text`; work arrays come from `scratch`.
    """
    rows, several = len(starts) // columns, len(wanted)
    numbers, counts = np.empty((several, rows), np.int32), np.zeros(several, np.int64)
    found = scratch.take("found", np.uint64, several, rows, 3)
    tables = scratch.take("tables", np.int32, several, 1 << (rows + rows // 2).bit_length())
    tables[:] = 0
    number_texts(text, starts, stops, columns, np.array(wanted, np.int64), numbers, found, counts, tables)
    texts: dict[int, tuple[Fields, np.ndarray | None]] = {}
    for one, place in enumerate(wanted):
        places = found[one, : counts[one], 0]
        begins = (places >> np.uint64(32)).astype(np.int32)
        fields = Fields(text, begins, begins + (places & np.uint64(0xFFFFFFFF)).astype(np.int32))
        texts[place] = fields, numbers[one]
    return texts


def split(
    piece: Piece,
    separator: str,
    quotes: bool,
    columns: int,
    wanted: Sequence[int],
    differing: Sequence[int],
    scratch: Scratch,
) -> list[tuple[Fields, np.ndarray | None]] | None:
    """Split whole lines into columns; return (texts, row indices) for each `wanted` column, or None if not plain.

    For most columns the texts are distinct, with the text
    index of each row, int32 [rows]; for columns in `differing` each row has its own text and the indices are None. Not
    plain are lone carriage returns, rows of another number of fields than `columns`, and quotes within fields. Work
    arrays come from `scratch`. O(bytes).
    """
    letters, text, begin = piece
    stop = len(text) - PADDING
    has_returns = letters.find(b"\r", begin, stop) >= 0
    if has_returns and (text[np.flatnonzero(text[begin:stop] == RETURN) + (begin + 1)] != NEWLINE).any():
        return None
    has_quotes = quotes and letters.find(b'"', begin, stop) >= 0
    count, rows = -1, 0
    for each in (BYTES_FIELD, 1):  # bytes of a field, at least
        if count < 0:
            ends = scratch.take("ends", np.int32, (stop - begin) // each + 2 * BYTES_AT_ONCE)
            count, rows = find_ends(text, begin, stop, ord(separator), ends)
    ends = ends[: count + 1]
    if count != rows * columns or (text[ends[columns::columns]] != NEWLINE).any():
        return None
    starts, stops = np.add(ends[:-1], 1, out=scratch.take("starts", np.int32, count)), ends[1:]
    if (has_returns or has_quotes or columns == 1) and not take_off(
        text, starts, stops, columns, has_returns, has_quotes
    ):
        return None
    texts: dict[int, tuple[Fields, np.ndarray | None]] = {}
    numbered = [place for place in wanted if place not in differing]
    for first in range(0, len(numbered), COLUMNS_AT_ONCE):
        some = numbered[first : first + COLUMNS_AT_ONCE]
        texts |= _index_texts(text, starts, stops, columns, some, scratch)
    for place in differing:
        texts[place] = Fields(text, starts[place::columns].copy(), stops[place::columns].copy()), None
    return [texts[place] for place in wanted]
