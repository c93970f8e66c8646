"""Compiled code over the bytes of many texts: which are decimal numbers, their hashes, and entries put into rows.

Texts are `offsets` int [texts + 1] into `letters` uint8, as pyarrow holds strings.
"""

from typing import Any

import numpy as np

from kernels.code_cache import njit, njit_part
from workbench.data.files.decimal_numbers import load_word

MINUS, PLUS, POINT, ZERO, NINE, LOWER, LETTER_E = 45, 43, 46, 48, 57, 32, 101
FIRST_PRINTED, LAST_PRINTED = 33, 126
MARKS = (32, 36, 37, 39, 40, 44)
"""Blank, dollar, percent, apostrophe, parenthesis, comma: a number with a currency or groups of digits has one."""
KEY_0, KEY_1 = (int.from_bytes(half, "little") for half in (b"01234567", b"89123456"))
"""The key of `pandas.util.hash_array`, so that buckets are those that pandas gives."""

ROWS_AT_ONCE = 64
"""Rows into which the entries of all columns are put before the next ones: their places stay in the cache."""
FEW_EDGES, NUMBERS_AT_ONCE = 32, 512

compiled = njit(nogil=True)
compiled_inline = njit_part(nogil=True, forceinline=True)
"""Decorator of a part that is called for every text: its machine code stands in place of each call."""


def buffers_of(strings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets int32 [texts + 1], bytes uint8) of a pyarrow string array without nulls, as read-only views.

    Text i is bytes[offsets[i]:offsets[i + 1]]; the first offset need not be 0.
    """
    _, offsets, letters = strings.buffers()
    held = np.zeros(1, np.int32) if not len(strings) else np.frombuffer(offsets, np.int32)
    text = np.frombuffer(b"" if letters is None or not len(strings) else letters, np.uint8)
    for view in (held, text):  # pyarrow owns some buffers and others not, for which all code would be compiled anew
        view.flags.writeable = False
    return held[strings.offset : strings.offset + len(strings) + 1] if len(strings) else held, text


@compiled_inline
def _has_outside(letters, start, stop, least):
    """Return whether a byte of letters[start:stop] is below `least`, at most 128, or above `LAST_PRINTED`.

    Eight bytes are compared at once. A byte is below n if a borrow of its own sets its highest bit, which is not set
    before, and above m if the highest bit is set when 127 - m is added; a carry or a borrow from a byte below only
    comes of one that is found itself (S. E. Anderson, https://graphics.stanford.edu/~seander/bithacks.html).
    """
    each, found = np.uint64(0x0101010101010101), np.uint64(0)
    below, above = each * np.uint64(least), each * np.uint64(127 - LAST_PRINTED)
    whole = start + (stop - start) // 8 * 8
    for at in range(start, whole, 8):
        word = load_word(letters, at)
        found |= ((word - below) & ~word) | (word + above) | word
    has_other = found & (each * np.uint64(0x80)) != 0
    for at in range(whole, stop):
        has_other |= not least <= letters[at] <= LAST_PRINTED
    return has_other


@compiled
def are_printed(offsets, letters):
    """Return whether all bytes of the texts are printable ASCII without blanks, so that nothing is to be stripped.

    Texts are letters[offsets[i]:offsets[i + 1]], uint8. True without bytes.
    """
    return not _has_outside(letters, np.int64(offsets[0]), np.int64(offsets[-1]), np.int64(FIRST_PRINTED))


@compiled
def have_outside(text, starts, stops, least):
    """Return whether a byte of the texts text[starts[i]:stops[i]], uint8, is below `least` or not printable ASCII.

    `least` is at most 128. False without bytes.
    """
    found = False
    for one in range(len(starts)):
        found |= _has_outside(text, np.int64(starts[one]), np.int64(stops[one]), least)
    return found


@compiled
def are_words(offsets, letters, word_offsets, word_letters):
    """Return bool [texts]: whether letters[offsets[i]:offsets[i + 1]] equals one of the words, stored alike.

    O(bytes * words).
    """
    found = np.zeros(len(offsets) - 1, np.bool_)
    for row in range(len(found)):
        found[row] = is_word(letters, np.int64(offsets[row]), np.int64(offsets[row + 1]), word_offsets, word_letters)
    return found


@compiled
def is_word(text, start, stop, offsets, letters):
    """Return whether text[start:stop] equals one of the words letters[offsets[i]:offsets[i + 1]], all uint8."""
    for word in range(len(offsets) - 1):
        begin = offsets[word]
        if offsets[word + 1] - begin == stop - start:
            is_same = True
            for at in range(stop - start):
                is_same &= text[start + at] == letters[begin + at]
            if is_same:
                return True
    return False


@compiled
def are_decimal(offsets, letters):
    """Return bool [texts]: whether a text is `[+-]digits[.digits][e[+-]digits]` with a digit next to the point.

    Texts are letters[offsets[i]:offsets[i + 1]], uint8.
    """
    found = np.empty(len(offsets) - 1, np.bool_)
    for row in range(len(found)):
        at, stop = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if at < stop and (letters[at] == MINUS or letters[at] == PLUS):
            at += 1
        start = at
        at = _behind_digits(letters, at, stop)
        digits = at - start
        if at < stop and letters[at] == POINT:
            start = at + 1
            at = _behind_digits(letters, start, stop)
            digits += at - start
        if digits and at < stop and letters[at] | LOWER == LETTER_E:
            at += 1
            if at < stop and (letters[at] == MINUS or letters[at] == PLUS):
                at += 1
            start = at
            at = _behind_digits(letters, start, stop)
            digits = at - start
        found[row] = digits > 0 and at == stop
    return found


@compiled
def are_dressed(offsets, letters):
    """Return bool [texts]: whether a text has a digit, and a blank, a sign of `MARKS` or a byte beyond ASCII.

    Texts are letters[offsets[i]:offsets[i + 1]], uint8. It preselects numbers with a currency or the like. Bytes are
    looked at one by one only if one is below the last of these signs or beyond ASCII at all.
    """
    found = np.zeros(len(offsets) - 1, np.bool_)
    if not _has_outside(letters, np.int64(offsets[0]), np.int64(offsets[-1]), MARKS[-1] + 1):
        return found
    for row in range(len(found)):
        has_digit = has_mark = False
        for at in range(offsets[row], offsets[row + 1]):
            letter = letters[at]
            has_digit |= ZERO <= letter <= NINE
            has_mark |= letter > LAST_PRINTED
            for mark in MARKS:
                has_mark |= letter == mark
        found[row] = has_digit and has_mark
    return found


@compiled_inline
def _behind_digits(letters, at, stop):
    """Return the first index from `at` on, at most `stop`, at which `letters` (uint8) has no digit."""
    while at < stop and ZERO <= letters[at] <= NINE:
        at += 1
    return at


@compiled_inline
def _turned(word, count):
    """Return the uint64 `word` rotated left by `count` bits, 1 to 63."""
    return (word << np.uint64(count)) | (word >> np.uint64(64 - count))


@compiled_inline
def _mixed(a, b, c, d):
    """Return the four uint64 words of the SipHash state after one round."""
    a += b
    c += d
    b = _turned(b, 13) ^ a
    d = _turned(d, 16) ^ c
    a = _turned(a, 32)
    c += b
    a += d
    b = _turned(b, 17) ^ c
    d = _turned(d, 21) ^ a
    return a, b, _turned(c, 32), d


@compiled
def hash_texts(offsets, letters):
    """Return the hash of each text that `pandas.util.hash_array` gives, uint64 [texts].

    Texts are letters[offsets[i]:offsets[i + 1]], uint8. It is SipHash-2-4 (J.-P. Aumasson and D. J. Bernstein, 2012),
    mixed once more as splitmix64 mixes.
    """
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for row in range(len(hashes)):
        start, stop = np.int64(offsets[row]), np.int64(offsets[row + 1])
        a, b = np.uint64(KEY_0 ^ 0x736F6D6570736575), np.uint64(KEY_1 ^ 0x646F72616E646F6D)
        c, d = np.uint64(KEY_0 ^ 0x6C7967656E657261), np.uint64(KEY_1 ^ 0x7465646279746573)
        whole = start + (stop - start) // 8 * 8
        for at in range(start, whole + 1, 8):
            if at < whole:
                word = load_word(letters, at)
            else:
                word = np.uint64((stop - start) & 255) << np.uint64(56)
                if at + 8 <= len(letters):
                    word |= load_word(letters, at) & ((np.uint64(1) << np.uint64(8 * (stop - whole))) - np.uint64(1))
                else:
                    for place in range(stop - whole):
                        word |= np.uint64(letters[at + place]) << np.uint64(8 * place)
            d ^= word
            a, b, c, d = _mixed(a, b, c, d)
            a, b, c, d = _mixed(a, b, c, d)
            a ^= word
        c ^= np.uint64(0xFF)
        for _ in range(4):
            a, b, c, d = _mixed(a, b, c, d)
        word = a ^ b ^ c ^ d
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes[row] = word ^ (word >> np.uint64(31))
    return hashes


@compiled
def spread(of_texts, of_missing, numbers, values):
    """Write of_texts[numbers[row]] to values[row] for each row, or `of_missing` if the index is -1.

    `numbers` is int32 [rows]; `values` [rows] is overwritten.
    """
    for row in range(len(numbers)):
        number = numbers[row]
        values[row] = of_texts[number] if number >= 0 else of_missing


@compiled
def count_rows(numbers, counts):
    """Add to counts[number] for each row of `numbers`, int32 [rows] text indices, negative ones left out; in place."""
    for row in range(len(numbers)):
        if numbers[row] >= 0:
            counts[numbers[row]] += 1


@compiled
def find_ranges(edges, numbers, ranges):
    """Write to `ranges`, int32 [n], how many of the increasing `edges` are at most each of `numbers`, float64 [n].

    Few edges are all compared, several numbers at once; else O(n log edges).
    """
    if len(edges) <= FEW_EDGES:
        for begin in range(0, len(numbers), NUMBERS_AT_ONCE):
            some = numbers[begin : begin + NUMBERS_AT_ONCE]
            found = ranges[begin : begin + NUMBERS_AT_ONCE]
            found[:] = 0
            for edge in edges:
                for one in range(len(some)):
                    found[one] += edge <= some[one]
        return
    for one in range(len(numbers)):
        number, low, count = numbers[one], 0, len(edges)
        while count > 0:
            half = (count + 1) // 2
            low += half * (edges[low + half - 1] <= number)
            count -= half
        ranges[one] = low


@compiled
def put_one_each(columns, values, firsts, places, free, indices, data):
    """Append one entry per row and column to CSR rows, at the next free position of each row.

    `columns` int32 [encoded, rows] are local column indices, none if negative; firsts[i] is added to those of column i.
    `values` float32 [some, rows] has the values of column i in row places[i], or they are 1 if that is -1. `free` int64
    [rows] are the next positions; `free`, `indices` and `data` are changed in place.
    """
    rows = columns.shape[1]
    for begin in range(0, rows, ROWS_AT_ONCE):
        for one in range(len(firsts)):
            first, place = firsts[one], places[one]
            for row in range(begin, min(begin + ROWS_AT_ONCE, rows)):
                column = columns[one, row]
                if column >= 0:
                    at = free[row]
                    indices[at] = column + first
                    data[at] = values[place, row] if place >= 0 else np.float32(1)
                    free[row] = at + 1


@compiled
def put_in_each_row(columns, firsts, indices):
    """Write one entry per row and column to CSR rows that have no other ones.

    `columns` int32 [encoded, rows] are local column indices, to which firsts[i] is added; `indices` [rows * encoded] is
    overwritten.
    """
    each, rows = columns.shape
    for begin in range(0, rows, ROWS_AT_ONCE):
        for one in range(each):
            first = indices.dtype.type(firsts[one])
            for row in range(begin, min(begin + ROWS_AT_ONCE, rows)):
                indices[row * each + one] = columns[one, row] + first


@compiled
def put_several_each(columns, values, lengths, first, free, indices, data):
    """Append lengths[row] entries to each CSR row, at its next free position.

    `columns` int32 and `values` float32 [entries] are those of the rows one after the other; `first` is added to the
    columns. `free` int64 [rows] are the next positions; `free`, `indices` and `data` are changed in place.
    """
    taken = 0
    for row in range(len(lengths)):
        for _ in range(lengths[row]):
            indices[free[row]] = columns[taken] + first
            data[free[row]] = values[taken]
            free[row] += 1
            taken += 1
