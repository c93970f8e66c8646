"""Matrix Market text into an array; what its header claims is checked before memory is taken for it.

The form is that of https://math.nist.gov/MatrixMarket/formats.html: a banner, comments, sizes, then an entry a line,
rows and columns counted from 1. SciPy's own reader stops in the middle of what is no number (1_0 is 1, 1D2 is 1), and
some texts end the process in it; the compiled code here takes nothing but lines of numbers, in blocks on all threads.
"""

import codecs
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import BinaryIO, NamedTuple

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError, quoted
from workbench.data.files.decimal_numbers import (
    BAD,
    HARD,
    MINUS,
    NEWLINE,
    PLUS,
    byte_at,
    compiled,
    marked,
    read_digits,
    read_number,
    settle,
)
from workbench.data.files.opened import NotTextError, codes_of, line_blocks, map_blocks, open_text, read_head
from workbench.formats.compressed import index_dtype
from workbench.formats.files import bytes_memory

BANNER = b"%%MatrixMarket"
LONGEST_LINE = 2**20
"""Bytes of a line before the entries, at most."""
LONGEST_ENTRY = 128
"""Bytes that an entry may take on the average, blanks and empty lines included."""
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
AT_ONCE = 1 << 18
"""Bytes of a block: memory for it and its entries is used again for the next ones, and stays in a cache."""
LEAST_ENTRY = 2
"""Bytes that an entry takes at least: those of a digit and a line end."""
MOST_PLACE_BYTES, MOST_WHOLE_BYTES = 19, 18
"""Bytes of a row or column, and of a whole value, at most: 64 bits hold them."""

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Header(NamedTuple):
    """Sizes from the header: `form` is coordinate or array, `entries` the number of entries, `lines` that of the lines
    before them."""

    form: str
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    lines: int

    @property
    def numbers(self) -> int:
        """How many numbers the line of an entry has: 1 (array), 2 (pattern) or 3."""
        return 1 if self.form == "array" else 2 if self.field == "pattern" else 3

    @property
    def is_real(self) -> bool:
        """Whether values may have a decimal point or exponent (fields "real" and "double")."""
        return self.field in ("real", "double")

    @property
    def dtype(self) -> np.dtype:
        """Type of the values: float64 for real fields, else int64."""
        return np.dtype(np.float64 if self.is_real else np.int64)

    @property
    def bytes_most(self) -> int:
        """Upper limit for the bytes of all entry lines; a longer file is refused."""
        return LONGEST_LINE + LONGEST_ENTRY * self.entries


class _InvalidEntriesError(Exception):
    """Invalid entries after a header."""


class _Entries(NamedTuple):
    """Entries of a block of lines: `rows` and `columns` from 0, empty for the form array, and `values` float64 or int64
    (of a pattern empty)."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @property
    def total(self) -> int:
        """Number of entries."""
        return max(len(self.rows), len(self.values))


class _Block(NamedTuple):
    """Text of whole lines: the count of lines between the header and it, and its own."""

    text: bytes
    start: int
    lines: int


class _Part(NamedTuple):
    """Entries of a block, and where they begin in the arrays of all entries, -1 if they have arrays of their own."""

    entries: _Entries
    start: int


def read_market(path: str | os.PathLike) -> np.ndarray | scipy.sparse.coo_array:
    """Read a Matrix Market file: a dense array [rows, columns] for "array", else COO with duplicates and zeros kept.

    Symmetric files give the entries of both triangles, patterns ones. Values are int64 or float64. Raises DataError,
    with file and line, for entries that are invalid or complex, or another number of them than the header says. 40 MB
    per million entries.
    """
    header, (row, column, values) = _read_checked(path)
    if header.form == "array":
        return _dense(header, values)
    values = np.ones(len(row)) if header.field == "pattern" else values
    if header.symmetry != "general":
        off = row != column
        mirrored = -values[off] if header.symmetry == "skew-symmetric" else values[off]
        values = np.append(values, mirrored)
        row, column = np.append(row, column[off]), np.append(column, row[off])
    dtype = index_dtype(header.rows, header.columns, len(values))
    places = row.astype(dtype, copy=False), column.astype(dtype, copy=False)
    return scipy.sparse.coo_array((values, places), shape=(header.rows, header.columns))


def _dense(header: Header, values: np.ndarray) -> np.ndarray:
    """Return the values of an "array" file, stored column by column, as a 2-d array [rows, columns].

    Symmetric files store each column from the diagonal on, skew-symmetric ones below it.
    """
    if header.symmetry == "general":
        return values.reshape(header.columns, header.rows).T
    is_skew = header.symmetry == "skew-symmetric"
    column, row = np.triu_indices(header.rows, k=int(is_skew))
    made = np.zeros((header.rows, header.columns), values.dtype)
    made[column, row] = -values if is_skew else values
    made[row, column] = values
    return made


def _read_checked(path: str | os.PathLike) -> tuple[Header, _Entries]:
    """Return the header and all entries of a Matrix Market file; raise DataError naming the first invalid line."""
    try:
        with open_text(path) as file:
            header = _header(file, path)
            return header, _read_entries(file, header)
    except NotTextError as error:  # it began as Matrix Market text
        raise DataError(str(error)) from None
    except _InvalidEntriesError as error:
        _refuse_first_fault(path, header)
        raise DataError(f"{path} cannot be read as a Matrix Market matrix: {error}.") from None


def is_market(path: str | os.PathLike) -> bool:
    """Return whether the file, decompressed, begins with "%%MatrixMarket", after an optional byte order mark."""
    return read_head(path, len(codecs.BOM_UTF8 + BANNER)).removeprefix(codecs.BOM_UTF8).startswith(BANNER)


def read_header(path: str | os.PathLike) -> Header:
    """Return banner and sizes of a Matrix Market file without reading its entries.

    Raises DataError with the line if it is invalid or complex, or the matrix would exceed this machine's memory.
    """
    with open_text(path) as file:
        return _header(file, path)


def _header(file: BinaryIO, path: str | os.PathLike) -> Header:
    """Read banner, comments and size line from `file`, which then stands at the first entry, and return them.

    Raises DataError with `path` and line number if one is invalid.
    """
    form, field, symmetry = _banner(file.readline(LONGEST_LINE), f"{path}:1")
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 2):
        if line.strip() and not line.startswith(b"%"):
            return _parse_sizes(line, form, field, symmetry, path, number)
    raise DataError(f"{path} ends before the sizes of the matrix; the line after the comments holds them.")


def _banner(line: bytes, place: str) -> tuple[str, str, str]:
    """Return (format, field, symmetry) of the first line of the file, in lower case.

    Raises DataError, beginning with `place`, if it is no banner, complex, or an unsupported combination.
    """
    words = line.decode("latin-1").casefold().split()
    if len(words) != 5 or words[:2] != [BANNER.decode().casefold(), "matrix"]:
        allowed = "%%MatrixMarket matrix coordinate real general"
        raise DataError(f"{place}: the file does not begin as a Matrix Market matrix does: {allowed}.")
    form, field, symmetry = words[2:]
    if field == "complex" or symmetry == "hermitian":
        raise DataError(f"{place}: the matrix is complex; a data set holds real numbers: save its real part.")
    if form not in ("coordinate", "array") or field not in FIELDS or symmetry not in SYMMETRIES:
        allowed = f"coordinate or array, {', '.join(FIELDS)}, {', '.join(SYMMETRIES)}"
        raise DataError(f"{place}: the banner says {form} {field} {symmetry}; allowed is {allowed}.")
    if field == "pattern" and (form == "array" or symmetry == "skew-symmetric"):
        raise DataError(f"{place}: a pattern has no values; it is coordinate, and general or symmetric.")
    return form, field, symmetry


def _parse_sizes(line: bytes, form: str, field: str, symmetry: str, path: str | os.PathLike, number: int) -> Header:
    """Return the header with the sizes on `line`; for "array" the number of entries follows from the symmetry.

    Raises DataError, naming line `number`, if sizes are invalid, a symmetric matrix is not square, or the result would
    exceed this machine's memory.
    """
    words, expected = line.split(), 3 if form == "coordinate" else 2
    if len(words) != expected or not all(re.fullmatch(rb"[0-9]{1,18}", word) for word in words):
        sizes = "rows, columns and entries" if expected == 3 else "rows and columns"
        raise DataError(f"{path}:{number}: the line of sizes holds {sizes}, whole numbers; {line[:40]!r} came.")
    rows, columns, *entries = map(int, words)
    if symmetry != "general" and rows != columns:
        raise DataError(f"{path}:{number}: {rows} x {columns} is said to be {symmetry}; such a matrix is square.")
    triangle = {"general": rows * columns, "symmetric": rows * (rows + 1) // 2}.get(symmetry, rows * (rows - 1) // 2)
    count = entries[0] if entries else triangle
    stored = count * (1 if symmetry == "general" else 2)
    needed = 8 * (rows + columns) + (8 if form == "array" else 24) * stored
    if needed > (memory := bytes_memory()):
        raise DataError(f"{path}:{number}: the matrix would take {needed:,} bytes, and this machine has {memory:,}.")
    return Header(form, field, symmetry, rows, columns, count, number)


def _read_entries(file: BinaryIO, header: Header) -> _Entries:
    """Return all entries behind the header; raise _InvalidEntriesError for invalid lines or another number of entries.

    Blocks are parsed on several threads, straight into the result if the file has no blank lines, else joined.
    """
    whole = _empty_entries(header, header.entries if _may_hold(file, header) else 0)
    blocks = _number_blocks(_limit_bytes(line_blocks(file, AT_ONCE), header))
    parts = list(map_blocks(partial(_parse_block, header=header, whole=whole), blocks))
    starts = list(itertools.accumulate((part.entries.total for part in parts), initial=0))
    if starts[-1] != header.entries:
        raise _InvalidEntriesError(f"it holds {starts[-1]:,} entries, and its header claims {header.entries:,}")
    if all(part.start == start for part, start in zip(parts, starts, strict=False)):
        return whole
    return _Entries(*map(np.concatenate, zip(*(part.entries for part in parts), strict=True)))


def _empty_entries(header: Header, count: int) -> _Entries:
    """Return uninitialised arrays for `count` entries; indices are empty for "array" files, values for patterns."""
    places = index_dtype(header.rows, header.columns)
    is_coordinate, has_values = header.form == "coordinate", header.field != "pattern"
    rows, columns = (np.empty(count if is_coordinate else 0, places) for _ in range(2))
    return _Entries(rows, columns, np.empty(count if has_values else 0, header.dtype))


def _may_hold(file: BinaryIO, header: Header) -> bool:
    """Return whether the file is long enough for the entries its header claims.

    False if compressed, as size is unknown.
    """
    return file.seekable() and LEAST_ENTRY * header.entries <= os.fstat(file.fileno()).st_size


def _limit_bytes(blocks: Iterable[bytes], header: Header) -> Iterator[bytes]:
    """Yield the blocks; raise _InvalidEntriesError once they are longer than the claimed entries can be."""
    read = 0
    for block in blocks:
        read += len(block)
        if read > header.bytes_most:
            raise _InvalidEntriesError(f"it is longer than its {header.entries:,} entries can be")
        yield block


def _number_blocks(texts: Iterable[bytes]) -> Iterator[_Block]:
    """Yield each block of whole lines with its line count and the number of lines before it."""
    start = 0
    for text in texts:
        lines = int(np.count_nonzero(codes_of(text) == NEWLINE))
        yield _Block(text, start, lines)
        start += lines


def _parse_block(block: _Block, header: Header, whole: _Entries) -> _Part:
    """Parse a block into its entries, written to `whole` from index block.start on if all its lines fit there.

    Otherwise it gets its own arrays, and `start` is -1. Raises _InvalidEntriesError for invalid numbers, indices beyond
    the matrix, and values beyond float64.
    """
    is_inside = block.start + block.lines <= whole.total
    start = block.start if is_inside else -1
    rows, columns, values = (
        (part[start : start + block.lines] for part in whole) if is_inside else _empty_entries(header, block.lines)
    )
    codes = codes_of(block.text)
    if header.is_real:
        sizes = (header.rows, header.columns) if header.form == "coordinate" else (0, 0)
        count, has_hard = _read_reals(codes, *sizes, rows, columns, values)
    else:
        count, has_hard = _read_wholes(codes, header.rows, header.columns, rows, columns, values)
    if count < 0:
        raise _InvalidEntriesError("there is what is no number, or a place beyond the matrix")
    entries = _Entries(rows[:count], columns[:count], values[:count])
    if has_hard:
        settle(entries.values, block.text)
        if not np.isfinite(entries.values).all():
            raise _InvalidEntriesError("a number is too large")
    return _Part(entries, start)


@compiled
def _behind_blanks(text, at):
    """Return the first index from `at` on at which `text` (uint8) has no blank, tab or carriage return."""
    while byte_at(text, at) == 32 or byte_at(text, at) == 9 or byte_at(text, at) == 13:
        at += 1
    return at


@compiled
def _read_whole(text, at, most):
    """Return (integer, index behind it) of the optionally signed digits at text[at:], at most `most` bytes.

    The index is `at` if there is no such number or it is longer.
    """
    start = at
    is_negative = byte_at(text, at) == MINUS
    first = at + (is_negative or byte_at(text, at) == PLUS)
    digits, at = read_digits(text, first, np.uint64(0))
    number = np.int64(digits)
    return -number if is_negative else number, start if at == first or at - start > most else at


@compiled
def _read_place(text, at, row_count, column_count):
    """Return (row, column, index behind them), counted from 0, of the two numbers at text[at:], counted from 1.

    The row is -1 if they are not separated numbers, or lie outside 1..`row_count` and 1..`column_count`.
    """
    row, stop = _read_whole(text, at, MOST_PLACE_BYTES)
    behind = _behind_blanks(text, stop)
    column, end = _read_whole(text, behind, MOST_PLACE_BYTES)
    if stop == at or behind == stop or end == behind:
        return np.int64(-1), np.int64(0), end
    if not (1 <= row <= row_count and 1 <= column <= column_count):
        return np.int64(-1), np.int64(0), end
    return row - 1, column - 1, end


@compiled
def _read_reals(text, row_count, column_count, rows, columns, values):
    """Parse lines of real values into `rows`, `columns` (from 0) and `values`; return (entries, whether some are hard).

    `text` is uint8 of whole lines; blank lines are skipped. If `rows` is empty, lines have no indices. Entries are -1
    if a line is invalid. Hard numbers, which need exact arithmetic, get `marked(byte index)`, a special NaN.
    """
    at, count, has_hard = 0, 0, False
    while at < text.size:
        at = _behind_blanks(text, at)
        if byte_at(text, at) != NEWLINE:
            if rows.size:
                row, column, end = _read_place(text, at, row_count, column_count)
                at = _behind_blanks(text, end)
                if row < 0 or at == end:
                    return -1, has_hard
                rows[count], columns[count] = row, column
            first = at
            value, end, state = read_number(text, at)
            at = _behind_blanks(text, end)
            if state == BAD or byte_at(text, at) != NEWLINE:
                return -1, has_hard
            values[count] = marked(first) if state == HARD else value
            has_hard |= state == HARD
            count += 1
        at += 1
    return count, has_hard


@compiled
def _read_wholes(text, row_count, column_count, rows, columns, values):
    """Parse lines of indices, integers, or both, into `rows`, `columns` (from 0) and `values`; return (entries, False).

    `text` is uint8 of whole lines; blank lines are skipped. Empty `rows` or `values` mean that lines lack these.
    Entries are -1 if a line is invalid.
    """
    at, count = 0, 0
    while at < text.size:
        at = _behind_blanks(text, at)
        if byte_at(text, at) != NEWLINE:
            end = at
            if rows.size:
                row, column, end = _read_place(text, at, row_count, column_count)
                at = _behind_blanks(text, end)
                if row < 0 or (values.size > 0 and at == end):
                    return -1, False
                rows[count], columns[count] = row, column
            if values.size:
                values[count], end = _read_whole(text, at, MOST_WHOLE_BYTES)
                if end == at:
                    return -1, False
            at = _behind_blanks(text, end)
            if byte_at(text, at) != NEWLINE:
                return -1, False
            count += 1
        at += 1
    return count, False


def _refuse_first_fault(path: str | os.PathLike, header: Header) -> None:
    """Read the file again and raise DataError with the first invalid line, or the wrong number of entries.

    Returns if none is found, or the lines exceed `header.bytes_most`.
    """
    seen = read = 0
    with open_text(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 1):
            if number <= header.lines or not line.strip():
                read += len(line) if number > header.lines else 0
                if read > header.bytes_most:
                    return
                continue
            if fault := _fault(line.split(), header):
                raise DataError(f"{path}:{number}: {fault}")
            seen += 1
            if seen > header.entries:
                raise DataError(f"{path}:{number}: the header claims {header.entries:,} entries, and this is one more.")
    if seen < header.entries:
        claimed = f"its header claims {header.entries:,} entries"
        raise DataError(f"{path} is cut off or its header is wrong: {claimed}, and it has {seen:,}.")


def _fault(words: list[bytes], header: Header) -> str:
    """Return what is wrong with an entry line, given as its words; "" if it is valid."""
    if len(words) != header.numbers:
        entry = {1: "a value", 2: "row column", 3: "row column value"}[header.numbers]
        return f"the line holds {len(words)} words; an entry is: {entry}."
    places = (
        () if header.form == "array" else zip(words, (header.rows, header.columns), ("row", "column"), strict=False)
    )
    for word, limit, name in places:
        if not (_INTEGER.fullmatch(word) and len(word) <= MOST_PLACE_BYTES and 1 <= int(word) <= limit):
            return f"the {name} {quoted(word)} is none of 1 to {limit}."
    is_real = header.is_real
    if header.field != "pattern" and not is_real and len(words[-1]) > MOST_WHOLE_BYTES:
        return f"the value {quoted(words[-1])} is beyond 10**18."
    if header.field != "pattern" and not (_NUMBER if is_real else _INTEGER).fullmatch(words[-1]):
        return f"the value {quoted(words[-1])} is no {'number' if is_real else 'whole number'}."
    if is_real and not np.isfinite(float(words[-1])):
        return f"the value {quoted(words[-1])} is beyond the range of float64."
    return ""
