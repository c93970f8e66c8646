"""Matrix Market text into an array, by SciPy's reader; what it would take without a word is refused before.

The form is that of https://math.nist.gov/MatrixMarket/formats.html: a banner, comments, sizes, then an entry a line,
rows and columns counted from 1. SciPy's reader stops in the middle of what is no number (1_0 is 1, 1D2 is 1) and takes
memory for what a header claims, so the header and the form of each line are checked first.
"""

import codecs
import io
import os
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, final

import numpy as np
import scipy.io
import scipy.sparse

from workbench.data.errors import DataError, quoted
from workbench.data.files.opened import NotTextError, line_blocks, open_text, read_head
from workbench.formats.files import bytes_memory

BANNER = b"%%MatrixMarket"
LONGEST_LINE = 2**20
"""Bytes of a line before the entries, at most."""
LONGEST_ENTRY = 128
"""Bytes that an entry may take on the average, blanks and empty lines included."""
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
AT_ONCE = 1 << 18
"""Bytes of a block of lines."""
MOST_PLACE_BYTES, MOST_WHOLE_BYTES = 19, 18
"""Bytes of a row or column, and of a whole value, at most: 64 bits hold them."""

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PLACE = rb"[+]?+[0-9]{1,18}+"
_VALUES = {
    "real": rb"[+-]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+",
    "integer": rb"[+-]?+[0-9]{1,17}+",
}
_PLUS = re.compile(rb"(?<![eE])\+")
"""A sign that SciPy's reader does not take."""


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
    def kind(self) -> str:
        """The field by SciPy's name of its values, which have at most 64 bits."""
        return "real" if self.is_real else "pattern" if self.field == "pattern" else "integer"

    @property
    def bytes_most(self) -> int:
        """Upper limit for the bytes of all entry lines; a longer file is refused."""
        return LONGEST_LINE + LONGEST_ENTRY * self.entries


class _InvalidEntriesError(Exception):
    """Invalid entries after a header."""


@final
class _CheckedLines(io.RawIOBase):
    """Text of a Matrix Market file for SciPy's reader: its header, written anew, and blocks of lines of entries."""

    def __init__(self, file: BinaryIO, header: Header) -> None:
        """Set up reading from `file`, which stands at the first entry."""
        super().__init__()
        sizes = (header.rows, header.columns, header.entries)[: 3 if header.form == "coordinate" else 2]
        banner = f"%%MatrixMarket matrix {header.form} {header.kind} {header.symmetry}\n{' '.join(map(str, sizes))}\n"
        self._blocks = self._checked(line_blocks(file, AT_ONCE), header)
        self._first = [banner.encode()]

    def read(self, size: int = -1) -> bytes:
        """Return the next block whatever `size` is, b"" at the end; _InvalidEntriesError if a line is invalid."""
        return self._first.pop() if self._first else next(self._blocks, b"")

    def _checked(self, blocks: Iterator[bytes], header: Header) -> Iterator[bytes]:
        """Yield the blocks; _InvalidEntriesError if a line has not the form of an entry, or there are too many."""
        words = [_PLACE] * 2 if header.form == "coordinate" else []
        words += [_VALUES[header.kind]] if header.kind != "pattern" else []
        entry = rb"[ \t]++".join(words)
        lines, read = re.compile(rb"(?:[ \t\r]*+(?:" + entry + rb"[ \t\r]*+)?+\n)*+"), 0
        for block in blocks:
            read += len(block)
            if read > header.bytes_most or not lines.fullmatch(block):
                raise _InvalidEntriesError("there is what is no entry, or there are too many")
            yield _PLUS.sub(b"", block) if b"+" in block else block


def read_market(path: str | os.PathLike) -> np.ndarray | scipy.sparse.coo_array:
    """Read a Matrix Market file: a dense array [rows, columns] for "array", else COO with duplicates and zeros kept.

    Symmetric files give the entries of both triangles, patterns ones. Values are int64 or float64. Raises DataError,
    with file and line, for entries that are invalid or complex, or another number of them than the header says. 40 MB
    per million entries.
    """
    try:
        with open_text(path) as file:
            header = _header(file, path)
            made = scipy.io.mmread(_CheckedLines(file, header), spmatrix=False)
    except NotTextError as error:  # it began as Matrix Market text
        raise DataError(str(error)) from None
    except DataError:
        raise
    except (_InvalidEntriesError, ValueError, OverflowError) as error:
        _refuse_first_error(path, header)
        raise DataError(f"{path} cannot be read as a Matrix Market matrix: {error}.") from None
    if not np.isfinite(made if header.form == "array" else made.data).all():
        _refuse_first_error(path, header)
    return made


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


def _refuse_first_error(path: str | os.PathLike, header: Header) -> None:
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
            if problem := _line_error(line.split(), header):
                raise DataError(f"{path}:{number}: {problem}")
            seen += 1
            if seen > header.entries:
                raise DataError(f"{path}:{number}: the header claims {header.entries:,} entries, and this is one more.")
    if seen < header.entries:
        claimed = f"its header claims {header.entries:,} entries"
        raise DataError(f"{path} is cut off or its header is wrong: {claimed}, and it has {seen:,}.")


def _line_error(words: list[bytes], header: Header) -> str:
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
