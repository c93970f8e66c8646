"""Compiled reading of Vowpal Wabbit text: a block of lines into the arrays of its rows, in one pass over the bytes."""

from typing import NamedTuple, final

import numpy as np

from workbench.data.files.decimal_numbers import COLON, EXACT, NEWLINE, ZERO, compiled, read_number
from workbench.data.files.line_blocks import codes_of

BAR, QUOTE = 124, 39
LARGEST = 2**31 - 1
"""Largest whole number that is taken as the number of a column."""
MOST_NAME_DIGITS = 18
"""Digits of names that are taken as the number of a column, at most."""
MOST_HASHED_DIGITS = 4000
"""Digits from which on a name is hashed, as Python's integers end there."""
NO_NAMESPACE = -1

_ONE, _BYTE = np.uint32(1), np.uint32(8)
_FIRST, _SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


@final
class BlockRows(NamedTuple):
    """Rows of a block: `labels` float64 [rows], `starts` int64 [rows + 1], `values` float64 [entries].

    `hashes` uint32 [entries] are those of the names; `numbers` int64 [entries] the names themselves, None if a name is
    no number up to `LARGEST`. `namespace` is the first one that has names, None without; `has_several` tells of others.
    """

    lines: int
    labels: np.ndarray
    starts: np.ndarray
    hashes: np.ndarray
    numbers: np.ndarray | None
    values: np.ndarray
    namespace: bytes | None
    has_several: bool


@compiled
def _rotated(value, bits):
    """Return uint32 `value` rotated left by `bits`."""
    return (value << np.uint32(bits)) | (value >> np.uint32(32 - bits))


@compiled
def _mixed(value):
    """Return one block mixed for murmur3: multiplied, rotated, multiplied; uint32."""
    return np.uint32(_rotated(np.uint32(value * _FIRST), 15) * _SECOND)


@compiled
def murmur_hash(text, start, stop, seed):
    """MurmurHash3 (x86, 32 bit) of the bytes from `start` to `stop`, seed and hash uint32."""
    value, at = np.uint32(seed), start
    while at + 4 <= stop:
        word = np.uint32(0)
        for place in range(4):
            word |= np.uint32(text[at + place]) << np.uint32(8 * place)
        value = np.uint32(_rotated(np.uint32(value ^ _mixed(word)), 13) * np.uint32(5) + np.uint32(0xE6546B64))
        at += 4
    if at < stop:
        word = np.uint32(0)
        for place in range(stop - at):
            word |= np.uint32(text[at + place]) << np.uint32(8 * place)
        value ^= _mixed(word)
    value ^= np.uint32(stop - start)
    value = np.uint32((value ^ (value >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    value = np.uint32((value ^ (value >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(value ^ (value >> np.uint32(16)))


@compiled
def _hash_of(text, start, stop, seed):
    """Return (hash, name as a column or -1) of a name: a whole number is added to the seed, another name is hashed."""
    number, has_digits, total = np.uint32(0), True, np.int64(0)
    for at in range(start, stop):
        digit = np.int64(text[at]) - ZERO
        if not 0 <= digit <= 9:
            has_digits = False
            break
        number = np.uint32(number * np.uint32(10) + np.uint32(digit))
        total = min(total * 10 + digit, LARGEST + 1)
    if start == stop:
        return np.uint32(seed), np.int64(-1)
    if not has_digits or stop - start >= MOST_HASHED_DIGITS:
        return murmur_hash(text, start, stop, seed), np.int64(-1)
    is_column = stop - start <= MOST_NAME_DIGITS and total <= LARGEST
    return np.uint32(number + seed), total if is_column else np.int64(-1)


@compiled
def _is_blank(code):
    """Return whether a byte is a blank within a line: space, tab, or a code from 11 to 13."""
    return code == 32 or code == 9 or 11 <= code <= 13


@compiled
def _behind_blanks(text, at):
    """Return the position of the first byte of text[at:] that is not a blank."""
    while _is_blank(text[at]):
        at += 1
    return at


@compiled
def _ends_word(code):
    """Return whether a byte ends a word: a blank, a bar or a line break."""
    return _is_blank(code) or code in (BAR, NEWLINE)


@compiled
def _behind_word(text, at):
    """Return the position of the first byte of text[at:] that ends a word."""
    while not _ends_word(text[at]):
        at += 1
    return at


@compiled
def _read_held(text, at, weight):
    """Return (scaled number, position behind it, whether it fits float32 and ends its word)."""
    value, at, state = read_number(text, at)
    value *= weight
    is_right = state == EXACT and _ends_word(text[at]) and np.isfinite(np.float32(value))
    return value, at, is_right


@compiled
def _read_label(text, at, ignores_importance):
    """Return (label, position of the first bar, whether all is right) of what stands before the bar."""
    label, count = 0.0, 0
    while True:
        at = _behind_blanks(text, at)
        if text[at] == BAR:
            return label, at, count > 0
        stop = _behind_word(text, at)
        if text[stop] == NEWLINE:
            return label, at, False
        is_last = text[_behind_blanks(text, stop)] == BAR
        if text[stop] == BAR or (text[at] == QUOTE and is_last):  # a tag
            at = stop
            continue
        value, at, is_right = _read_held(text, at, 1.0)
        usual = value if count == 0 or ignores_importance else (1.0 if count == 1 else 0.0)
        if not is_right or count == 3 or value != usual:
            return label, at, False
        label = value if count == 0 else label
        count += 1


@compiled
def _is_same(text, start, stop, first, length):
    """Return whether the bytes from `start` to `stop` are the `length` ones from `first` on."""
    if stop - start != length:
        return False
    for place in range(length):  # noqa: SIM110 - a generator does not compile
        if text[start + place] != text[first + place]:
            return False
    return True


@compiled
def _read_section(text, at, entry, hashes, numbers, values):
    """Return (position behind a section, entries so far, start and stop of its namespace, whether all is right).

    `at` is behind the bar of the section, which ends before the next bar or the line end.
    """
    start = stop = at
    weight, seed = 1.0, np.uint32(0)
    if not _ends_word(text[at]):
        while not _ends_word(text[stop]) and text[stop] != COLON:
            stop += 1
        at, is_right = stop, True
        if text[stop] == COLON:
            weight, at, is_right = _read_held(text, stop + 1, 1.0)
        if not is_right:
            return at, entry, start, stop, False
        seed, _ = _hash_of(text, start, stop, np.uint32(0))
    at = _behind_blanks(text, at)
    while text[at] != BAR and text[at] != NEWLINE:
        first = at
        while not _ends_word(text[at]) and text[at] != COLON:
            at += 1
        if at == first:
            return at, entry, start, stop, False
        hashes[entry], numbers[entry] = _hash_of(text, first, at, seed)
        value, is_right = weight, True
        if text[at] == COLON:
            value, at, is_right = _read_held(text, at + 1, weight)
        if not is_right or not np.isfinite(np.float32(value)):
            return at, entry, start, stop, False
        values[entry] = value
        entry += 1
        at = _behind_blanks(text, at)
    return at, entry, start, stop, True


@compiled
def _read_rows(text, ignores_importance, labels, starts, hashes, numbers, values):
    """Return (rows, entries, start and length of the first namespace with names, whether there are others).

    Rows are -1 if a line is wrong or holds a number that only Python reads.
    """
    at = row = entry = 0
    namespace, length, has_several = np.int64(NO_NAMESPACE), np.int64(0), False
    starts[0] = 0
    while at < text.size:
        at = _behind_blanks(text, at)
        if text[at] != NEWLINE:
            labels[row], at, is_right = _read_label(text, at, ignores_importance)
            while is_right and text[at] == BAR:
                before = entry
                at, entry, start, stop, is_right = _read_section(text, at + 1, entry, hashes, numbers, values)
                if entry > before and namespace == NO_NAMESPACE:
                    namespace, length = start, stop - start
                elif entry > before:
                    has_several |= not _is_same(text, start, stop, namespace, length)
            if not is_right:
                return -1, entry, namespace, length, has_several
            row += 1
            starts[row] = entry
        at += 1
    return row, entry, namespace, length, has_several


@compiled
def _counts(text):
    """Return (lines, names at most) of a text."""
    lines = words = 0
    for at in range(text.size):
        code = text[at]
        lines += code == NEWLINE
        words += _ends_word(code)
    return lines, words


@compiled
def _are_columns(numbers):
    """Return whether no column index is negative."""
    for number in numbers:  # noqa: SIM110 - a generator does not compile
        if number < 0:
            return False
    return True


def read_rows(text: bytes, ignores_importance: bool) -> BlockRows | int:
    """Read the rows of a block of lines, which ends with a line end; its number of lines if Python is to read it.

    That is so if a line is wrong, and for numbers that are too small or too long for compiled code.
    """
    codes = codes_of(text)
    lines, words = _counts(codes)
    labels, starts = np.empty(lines), np.empty(lines + 1, np.int64)
    hashes, numbers, values = np.empty(words, np.uint32), np.empty(words, np.int64), np.empty(words)
    rows, entries, start, length, has_several = _read_rows(
        codes, ignores_importance, labels, starts, hashes, numbers, values
    )
    if rows < 0:
        return lines
    columns = numbers[:entries] if _are_columns(numbers[:entries]) else None
    namespace = None if start == NO_NAMESPACE else text[start : start + length]
    arrays = labels[:rows], starts[: rows + 1], hashes[:entries], columns, values[:entries]
    return BlockRows(lines, *arrays, namespace, has_several)
