"""Lines of Vowpal Wabbit's text, `label [importance] [tag]|namespace[:weight] name[:value] ... |...`, into rows.

Compiled code reads them. A block that it refuses is read once more by Python, line by line, which says what is wrong.

Names become columns by the hash of that program: MurmurHash3 (x86, 32 bit) of the name, with the hash of its namespace
as the seed; a name that is a whole number is the sum of the two instead. The default namespace has the hash 0.
Source: https://github.com/VowpalWabbit/vowpal_wabbit/wiki/Input-format, and `hashstring` there.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np

from workbench.data.errors import DataError, quoted, reader_option_advice
from workbench.data.files.decimal_numbers import (
    BAD,
    COLON,
    INEXACT,
    NEWLINE,
    ZERO,
    behind_blanks,
    compiled,
    compiled_part,
    is_blank,
    parse_placeholders,
    placeholder,
    read_number,
)
from workbench.data.files.opened import codes_of, line_blocks, map_blocks, open_text
from workbench.data.files.types import file_type_hint

# Compiled reading of Vowpal Wabbit text: a block of lines into the arrays of its rows, in one pass over the bytes.

BAR, QUOTE = 124, 39
LARGEST = 2**31 - 1
"""Largest whole number that is taken as the number of a column."""
MOST_NAME_DIGITS = 18
"""Digits of names that are taken as the number of a column, at most."""
MOST_HASHED_DIGITS = 4000
"""Digits from which on a name is hashed, as Python's integers end there."""
NO_NAMESPACE = -1
SEEN, PARSED = 0, 1
"""Counts of numbers that need exact conversion: how many a pass over a block met, and how many are converted."""

_ONE = np.uint32(1)
_FIRST, _SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


@final
class BlockRows(NamedTuple):
    """Rows of a block: `labels` float64 [rows], `starts` int64 [rows + 1], `values` float64 [entries].

    `hashes` uint32 [entries] are those of the names; `numbers` int64 [entries] the names themselves, None if a name is
    no number up to `LARGEST`. `namespace` is the first with names, or None; `has_several` is whether there are others.
    """

    lines: int
    labels: np.ndarray
    starts: np.ndarray
    hashes: np.ndarray
    numbers: np.ndarray | None
    values: np.ndarray
    namespace: bytes | None
    has_several: bool


@compiled_part
def _rotated(value, bits):
    """Return uint32 `value` rotated left by `bits`."""
    return (value << np.uint32(bits)) | (value >> np.uint32(32 - bits))


@compiled_part
def _mixed(value):
    """Return one block mixed for murmur3: multiplied, rotated, multiplied; uint32."""
    return np.uint32(_rotated(np.uint32(value * _FIRST), 15) * _SECOND)


@compiled_part
def murmur_hash(text, start, stop, seed):
    """Return the MurmurHash3 (x86, 32 bit) of text[start:stop], uint8, with a uint32 seed; uint32."""
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


@compiled_part
def _hash_of(text, start, stop, seed):
    """Return (uint32 hash, name as a column index or -1) of the name text[start:stop], uint8.

    A name of digits is hashed as its number + `seed`, modulo 2**32, an empty one as `seed`, another by MurmurHash3. The
    column index is -1 unless the name is a number up to `LARGEST`.
    """
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


@compiled_part
def _ends_word(code):
    """Return whether a byte code ends a word: a blank, a bar or a line end."""
    return is_blank(code) or code in (BAR, NEWLINE)


@compiled_part
def _behind_word(text, at):
    """Return the first index from `at` on at which a word of `text` (uint8) ends; a line end must follow."""
    while not _ends_word(text[at]):
        at += 1
    return at


@compiled_part
def _read_held(text, at, weight, inexact, counts):
    """Return (number at text[at:] times `weight`, index behind it, whether it is valid).

    Valid means that it ends its word and the product fits float32. An inexact number is `inexact[counts[SEEN]]` if as
    many are parsed, else a `placeholder` there and taken for 0; `counts[SEEN]` is increased.
    """
    first = at
    value, at, state = read_number(text, at)
    is_number = state != BAD and _ends_word(text[at])
    if is_number and state == INEXACT:
        seen = counts[SEEN]
        value = 0.0
        if seen < counts[PARSED]:
            value = inexact[seen]
        else:
            inexact[seen] = placeholder(first)
        counts[SEEN] = seen + 1
    value *= weight
    return value, at, is_number and np.isfinite(np.float32(value))


@compiled_part
def _read_label(text, at, ignores_importance, inexact, counts):
    """Return (label, index of the first bar, whether it is valid) of the text from `at` up to the first bar of a line.

    Invalid are a missing label, more than three numbers, and, unless `ignores_importance`, an importance other than 1
    or a start other than 0. A tag before the bar is skipped. `inexact` and `counts` are as in `_read_held`.
    """
    label, count = 0.0, 0
    while True:
        at = behind_blanks(text, at)
        if text[at] == BAR:
            return label, at, count > 0
        stop = _behind_word(text, at)
        if text[stop] == NEWLINE:
            return label, at, False
        is_last = text[behind_blanks(text, stop)] == BAR
        if text[stop] == BAR or (text[at] == QUOTE and is_last):  # a tag
            at = stop
            continue
        value, at, is_right = _read_held(text, at, 1.0, inexact, counts)
        usual = value if count == 0 or ignores_importance else (1.0 if count == 1 else 0.0)
        if not is_right or count == 3 or value != usual:
            return label, at, False
        label = value if count == 0 else label
        count += 1


@compiled_part
def _is_same(text, start, stop, first, length):
    """Return whether text[start:stop] equals text[first:first + length], uint8."""
    if stop - start != length:
        return False
    for place in range(length):  # noqa: SIM110 - a generator does not compile
        if text[start + place] != text[first + place]:
            return False
    return True


@compiled_part
def _read_section(text, at, entry, hashes, numbers, values, inexact, counts):
    """Read the features of one namespace, and return where it ends and whether it is valid.

    `at` is behind the bar; the section ends at the next bar or line end. The entries are written to `hashes` uint32,
    `numbers` int64 (column index or -1) and `values` float64 from index `entry` on; `inexact` and `counts` are as in
    `_read_held`. Returns (index behind the section, number of entries so far, start and stop of the namespace in
    `text`, whether it is valid).
    """
    start = stop = at
    weight, seed = 1.0, np.uint32(0)
    if not _ends_word(text[at]):
        while not _ends_word(text[stop]) and text[stop] != COLON:
            stop += 1
        at, is_right = stop, True
        if text[stop] == COLON:
            weight, at, is_right = _read_held(text, stop + 1, 1.0, inexact, counts)
        if not is_right:
            return at, entry, start, stop, False
        seed, _ = _hash_of(text, start, stop, np.uint32(0))
    at = behind_blanks(text, at)
    while text[at] != BAR and text[at] != NEWLINE:
        first = at
        while not _ends_word(text[at]) and text[at] != COLON:
            at += 1
        if at == first:
            return at, entry, start, stop, False
        hashes[entry], numbers[entry] = _hash_of(text, first, at, seed)
        value, is_right = weight, True
        if text[at] == COLON:
            value, at, is_right = _read_held(text, at + 1, weight, inexact, counts)
        if not is_right or not np.isfinite(np.float32(value)):
            return at, entry, start, stop, False
        values[entry] = value
        entry += 1
        at = behind_blanks(text, at)
    return at, entry, start, stop, True


@compiled
def _read_rows(text, ignores_importance, labels, starts, hashes, numbers, values, inexact, counts):
    """Parse a block of lines into its arrays.

    Return (rows, entries, namespace start, its length, has other namespaces). `text` is uint8 of whole lines. Written:
    `labels` float64 [rows], `starts` int64 [rows + 1], `hashes` uint32, `numbers` int64 and `values` float64 [entries].
    Rows are -1 if a line is invalid. The namespace is the first with names, -1 if there is none.
    `inexact` and `counts` are as in `_read_held`.
    """
    at = row = entry = np.int64(0)  # a literal 0 would have functions compiled once more
    namespace, length, has_several = np.int64(NO_NAMESPACE), np.int64(0), False
    starts[0] = 0
    while at < text.size:
        at = behind_blanks(text, at)
        if text[at] != NEWLINE:
            labels[row], at, is_right = _read_label(text, at, ignores_importance, inexact, counts)
            while is_right and text[at] == BAR:
                before = entry
                at, entry, start, stop, is_right = _read_section(
                    text, at + 1, entry, hashes, numbers, values, inexact, counts
                )
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
    """Return (line ends, bytes that end a word) of a uint8 array: upper bounds for its rows and names."""
    lines = words = 0
    for at in range(text.size):
        code = text[at]
        lines += code == NEWLINE
        words += _ends_word(code)
    return lines, words


def read_rows(text: bytes, ignores_importance: bool) -> BlockRows | None:
    """Parse a block of whole lines; return its rows, or None if a line is invalid.

    With `ignores_importance` importance and start of a row are skipped, else they must be 1 and 0. Numbers equal those
    of Python's `float`: a block with inexact ones is parsed again when these are parsed.
    """
    codes = codes_of(text)
    lines, words = _counts(codes)
    labels, starts = np.empty(lines), np.empty(lines + 1, np.int64)
    hashes, numbers, values = np.empty(words, np.uint32), np.empty(words, np.int64), np.empty(words)
    inexact, counts = np.empty(words), np.zeros(2, np.int64)
    arrays = labels, starts, hashes, numbers, values, inexact, counts
    rows, entries, start, length, has_several = _read_rows(codes, ignores_importance, *arrays)
    while counts[SEEN] > counts[PARSED]:
        parse_placeholders(inexact[: counts[SEEN]], text)
        counts[:] = 0, counts[SEEN]
        rows, entries, start, length, has_several = _read_rows(codes, ignores_importance, *arrays)
    if rows < 0:
        return None
    columns = numbers[:entries] if numbers[:entries].min(initial=0) >= 0 else None
    namespace = None if start == NO_NAMESPACE else text[start : start + length]
    kept = labels[:rows], starts[: rows + 1], hashes[:entries], columns, values[:entries]
    return BlockRows(lines, *kept, namespace, has_several)


AT_ONCE = 1 << 22
"""Bytes of lines that are turned into arrays at once."""


class Rows(NamedTuple):
    """Some rows of a file: `labels` float64 [rows], `indptr` int64 [rows + 1], `values` float64 [entries].

    `columns` [entries] are the names: int64, as numbered, where all are whole numbers up to `LARGEST` in one namespace
    (`are_numbers`), else their hashes, uint32.
    """

    labels: np.ndarray
    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    are_numbers: bool


def read(path: str | os.PathLike, hashed: bool, ignores_importance: bool) -> Iterator[Rows]:
    """Yield the rows of a Vowpal Wabbit text file in blocks, in order, parsed on several threads.

    If not `hashed`, names that are integers are column indices; the first block with other names is then the last one
    yielded, with hashes, and the caller reads again. `ignores_importance` skips importance and start of rows. Raises
    DataError with file and line for an invalid line. Memory holds some blocks, 12 to 16 bytes an entry.
    """

    def parse(text: bytes) -> tuple[bytes, BlockRows | None]:
        """Return (text, its rows, or None if a line is invalid)."""
        return text, read_rows(text, ignores_importance)

    namespaces: set[bytes] = set()
    with open_text(path) as file:
        first = 1
        for text, block in map_blocks(parse, line_blocks(file, AT_ONCE)):
            if block is None:
                raise _first_error(text, os.fspath(path), first, ignores_importance)
            namespaces |= set() if block.namespace is None else {block.namespace}
            columns = None if hashed or len(namespaces) > 1 or block.has_several else block.numbers
            is_numbered = columns is not None
            yield Rows(
                block.labels, block.starts, block.hashes if columns is None else columns, block.values, is_numbered
            )
            if not (hashed or is_numbered):
                return
            first += block.lines


def _first_error(text: bytes, path: str, first: int, ignores_importance: bool) -> DataError:
    """Return the error, with file and line, of the first invalid line of a block; `first` is the number of its first.

    One without a line if all are valid.
    """
    for number, line in enumerate(text.split(b"\n"), first):
        if line.strip():
            try:
                _check_row(line, path, ignores_importance)
            except ValueError as error:
                return DataError(f"{path}:{number}: {error}")
    return DataError(f"{path} cannot be read as Vowpal Wabbit text.")


def _check_row(text: bytes, path: str, ignores_importance: bool) -> None:
    """Raise ValueError with the reason if a line is invalid."""
    before, *parts = text.rstrip(b"\r\n").split(b"|")
    if not parts:
        other = file_type_hint(path, "Vowpal Wabbit text")
        raise ValueError(f"there is no '|' before the features; a line is: label | name:value ...{other}")
    _check_label(before, ignores_importance)
    for part in parts:
        _check_section(part)


def _check_label(before: bytes, ignores_importance: bool) -> None:
    """Raise ValueError with the reason if the bytes before the first bar of a line are invalid.

    The label may be missing or not a finite number, costs may be given, or an importance and start other than 1 and 0,
    unless these are ignored.
    """
    words = before.split()
    if words and (words[-1].startswith(b"'") or not before[-1:].isspace()):
        tag = words.pop()
        if not words:
            advice = "a label has a blank between it and the bar: '1 | name:value'"
            raise ValueError(f"the row has no label, {quoted(tag)} is a tag; {advice}.")
    if not words:
        raise ValueError("the row has no label, which training needs; a line is: label | name:value name:value ...")
    if len(words) > 3 or b":" in words[0]:
        raise ValueError(
            f"{quoted(before.strip())} is more than a label, an importance and a start; costs are not read."
        )
    for word, what in zip(words, ("label", "importance", "start"), strict=False):
        if not _is_number(word):
            raise ValueError(f"the {what} {quoted(word)} is no finite number that float32 holds.")
    if not ignores_importance and any(float(word) != usual for word, usual in zip(words[1:], (1, 0), strict=False)):
        advice = reader_option_advice("to leave out what stands there", importance="ignored")
        given = f"the row has the importance {quoted(b' '.join(words[1:]))}, and rows count equally here"
        raise ValueError(f"{given}.\n{advice}")


def _check_section(text: bytes) -> None:
    """Raise ValueError with the reason if the text between two bars is invalid.

    It is a namespace, perhaps with a weight, then names, perhaps with values.
    """
    tokens, weight = text.split(), 1.0
    if tokens and not text[:1].isspace():
        namespace, colon, given = tokens.pop(0).partition(b":")
        if colon and not _is_number(given):
            raise ValueError(f"the weight {quoted(given)} of the namespace {quoted(namespace)} is no finite number.")
        weight = float(given) if colon else 1.0
    for token in tokens:
        name, colon, value = token.partition(b":")
        if not name:
            raise ValueError(f"{quoted(token)} has no name; a feature is name or name:value.")
        if colon and not _is_number(value, weight):
            raise ValueError(f"the value in {quoted(token)} is no finite number that float32 holds.")


def _is_number(text: bytes, weight: float = 1.0) -> bool:
    """Return whether `text` is a finite number, without underscores, whose product with `weight` fits float32."""
    try:
        number = float(text) * weight
    except ValueError:
        return False
    return b"_" not in text and abs(number) <= float(np.finfo(np.float32).max)
