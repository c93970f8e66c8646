"""Matrix Market text into an array; what its header claims is checked before memory is taken for it.

The form is that of https://math.nist.gov/MatrixMarket/formats.html: a banner, comments, sizes, then an entry a line,
rows and columns counted from 1. SciPy's own reader stops in the middle of what is no number (1_0 is 1, 1D2 is 1), and
some texts end the process in it; here text is looked at as a whole, by its bytes, before NumPy reads the numbers.
"""

import codecs
import os
import re
from typing import BinaryIO, NamedTuple

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError
from workbench.data.files.opened import NotTextError, head, opened
from workbench.formats.compressed import index_dtype
from workbench.formats.files import bytes_memory

BANNER = b"%%MatrixMarket"
LONGEST_LINE = 2**20
"""Bytes of a line before the entries, at most."""
LONGEST_ENTRY = 128
"""Bytes that an entry may take on the average, blanks and empty lines included."""
BLOCK = 2**20
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
INT64 = np.iinfo(np.int64)
WHOLE, REAL = b"0123456789+- \t\r\n", b"0123456789+-.eE \t\r\n"
"""What lines of entries consist of."""

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Header(NamedTuple):
    """Sizes stated before the entries: `form` is coordinate or array, `entries` are those that follow, `lines` those
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
        """Numbers that stand on the line of an entry."""
        return 1 if self.form == "array" else 2 if self.field == "pattern" else 3

    @property
    def bytes_most(self) -> int:
        """Bytes that the entries may take."""
        return LONGEST_LINE + LONGEST_ENTRY * self.entries


def read_market(path: str | os.PathLike) -> np.ndarray | scipy.sparse.coo_array:
    """The matrix: dense of the form array, else coo with the entries of both triangles, duplicates and zeros kept.

    Of a pattern every entry is 1. Values are int64 or float64. Refused (`DataError`, with file and line): what is
    malformed, complex, or of another size than its header says. Half a second and 70 MB a million entries.
    """
    header, read = _checked(path)
    if header.form == "array":
        return _dense(header, read)
    entries = read.reshape(-1, header.numbers)
    if ((entries[:, :2] < 1) | (entries[:, :2] > [header.rows, header.columns])).any():
        _refuse_first_fault(path, header)
    places = [entries[:, axis].astype(np.int64) - 1 for axis in (0, 1)]
    values = entries[:, 2].copy() if header.numbers == 3 else np.ones(len(entries))
    row, column = (place.astype(index_dtype(header.rows, header.columns, len(values)), copy=False) for place in places)
    if header.symmetry != "general":
        off = row != column
        mirrored = -values[off] if header.symmetry == "skew-symmetric" else values[off]
        values = np.append(values, mirrored)
        row, column = np.append(row, column[off]), np.append(column, row[off])
    return scipy.sparse.coo_array((values, (row, column)), shape=(header.rows, header.columns))


def _dense(header: Header, values: np.ndarray) -> np.ndarray:
    """The columns that follow each other in a file; of a symmetric matrix from the diagonal on, of a skew one below."""
    if header.symmetry == "general":
        return values.reshape(header.columns, header.rows).T
    is_skew = header.symmetry == "skew-symmetric"
    column, row = np.triu_indices(header.rows, k=int(is_skew))
    made = np.zeros((header.rows, header.columns), values.dtype)
    made[column, row] = -values if is_skew else values
    made[row, column] = values
    return made


def _checked(path: str | os.PathLike) -> tuple[Header, np.ndarray]:
    """The header, and all numbers behind it, float64 or int64 [entries * numbers]."""
    try:
        with opened(path) as file:
            header = _header(file, path)
            fault, read = _numbers(file, header)
    except NotTextError as error:  # it began as Matrix Market text
        raise DataError(str(error)) from None
    is_beyond = ~np.isfinite(read) if read.dtype.kind == "f" else (read == INT64.min) | (read == INT64.max)
    if fault or is_beyond.any():
        _refuse_first_fault(path, header)
        raise DataError(f"{path} cannot be read as a Matrix Market matrix: {fault or 'a number is too large'}.")
    return header, read


def is_market(path: str | os.PathLike) -> bool:
    """Whether the file, unpacked, begins as Matrix Market text does."""
    return head(path, len(codecs.BOM_UTF8 + BANNER)).removeprefix(codecs.BOM_UTF8).startswith(BANNER)


def read_header(path: str | os.PathLike) -> Header:
    """The banner and the sizes; `DataError` with the line for what is malformed, complex or beyond this machine."""
    with opened(path) as file:
        return _header(file, path)


def _header(file: BinaryIO, path: str | os.PathLike) -> Header:
    form, field, symmetry = _banner(file.readline(LONGEST_LINE), f"{path}:1")
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), 2):
        if line.strip() and not line.startswith(b"%"):
            return _sized(line, form, field, symmetry, path, number)
    raise DataError(f"{path} ends before the sizes of the matrix; the line after the comments holds them.")


def _banner(line: bytes, place: str) -> tuple[str, str, str]:
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


def _sized(line: bytes, form: str, field: str, symmetry: str, path: str | os.PathLike, number: int) -> Header:
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


def _numbers(file: BinaryIO, header: Header) -> tuple[str, np.ndarray]:
    """(what is wrong with the entries or "" where they may be right, the numbers they hold)."""
    is_real = header.field in ("real", "double")
    dtype, blocks = np.dtype(np.float64 if is_real else np.int64), []
    count = read = 0
    while block := file.read(BLOCK):
        block += file.readline(LONGEST_LINE)
        read += len(block)
        if read > header.bytes_most:
            return f"it is longer than its {header.entries:,} entries can be", np.zeros(0, dtype)
        here = None if block.translate(None, REAL if is_real else WHOLE) else _count(block, header.numbers)
        if here is None:
            return "there is what is no number", np.zeros(0, dtype)
        if here:
            blocks.append(np.fromstring(block, dtype, sep=" "))
            count += len(blocks[-1])
    if count != header.entries * header.numbers:
        claimed = f"its header claims {header.entries:,} entries of {header.numbers}"
        return f"it holds {count:,} numbers, and {claimed}", np.zeros(0, dtype)
    return "", np.concatenate(blocks) if blocks else np.zeros(0, dtype)


def _count(block: bytes, width: int) -> int | None:
    """Count the numbers in lines of digits, blanks, signs, points and e; None where a line is wrong for sure.

    A line holds none or `width` of them, of which only the last may have a point or a power.
    """
    codes = np.frombuffer(block, np.uint8)
    before, after = np.append(np.uint8(32), codes[:-1]), np.append(codes[1:], np.uint8(32))
    starts = np.cumsum((codes > 32) & (before <= 32))
    per_line = np.diff(starts[codes == ord("\n")], prepend=0, append=starts[-1])
    if ((per_line != 0) & (per_line != width)).any():
        return None
    is_sign, is_power = (codes == ord("+")) | (codes == ord("-")), (codes | 32) == ord("e")
    is_digit_after = (after >= ord("0")) & (after <= ord("9"))
    is_power_before = (before | 32) == ord("e")
    if (is_sign & ((before > 32) & ~is_power_before | ~is_digit_after & (after != ord(".")))).any():
        return None
    if (is_power & (before <= 32) | is_power & ~is_digit_after & (after != ord("+")) & (after != ord("-"))).any():
        return None
    is_point = codes == ord(".")
    is_digit_before = (before >= ord("0")) & (before <= ord("9"))
    if (is_point & ~is_digit_before & ~is_digit_after).any():
        return None
    marks = np.flatnonzero(is_power | is_point)
    is_same = np.diff(starts[marks]) == 0
    is_wrong = is_same & (is_power[marks[:-1]] | ~is_power[marks[1:]])  # of one number: a point, then a power
    return None if is_wrong.any() or (starts[marks] % width).any() else int(starts[-1])


def _refuse_first_fault(path: str | os.PathLike, header: Header) -> None:
    """Raise a `DataError` with the first line that is wrong, where one is."""
    seen = read = 0
    with opened(path) as file:
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
    """Describe what is wrong with the numbers of an entry; "" where nothing is."""
    if len(words) != header.numbers:
        entry = {1: "a value", 2: "row column", 3: "row column value"}[header.numbers]
        return f"the line holds {len(words)} words; an entry is: {entry}."
    places = (
        () if header.form == "array" else zip(words, (header.rows, header.columns), ("row", "column"), strict=False)
    )
    for word, limit, name in places:
        if not (_INTEGER.fullmatch(word) and len(word) < 20 and 1 <= int(word) <= limit):
            return f"the {name} {_quoted(word)} is none of 1 to {limit}."
    is_real = header.field in ("real", "double")
    if header.field not in ("pattern", "real", "double") and len(words[-1]) > 18:
        return f"the value {_quoted(words[-1])} is beyond 10**18."
    if header.field != "pattern" and not (_NUMBER if is_real else _INTEGER).fullmatch(words[-1]):
        return f"the value {_quoted(words[-1])} is no {'number' if is_real else 'whole number'}."
    if is_real and not np.isfinite(float(words[-1])):
        return f"the value {_quoted(words[-1])} is beyond the range of float64."
    return ""


def _quoted(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "backslashreplace"))
