"""Layout of a text file of columns: separator, header and quotes; stated, else guessed from its first rows.

The separator is the one that splits most of the first rows into as many fields as the first one. The first row is a
header when none of its fields is a number and something tells it from the rows below: a column of numbers under its
text, or names that are all different and do not come again below.
"""

import csv
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from workbench.data.errors import DataError
from workbench.data.files.opened import LONGEST_LINE, opened
from workbench.data.labels.meaning import number_named
from workbench.data.tables.arrow import MISSING_WORDS

SEPARATORS = ("\t", ";", "|", ",")
"""Separators that are guessed; of two that split as evenly the first, since numbers and text may hold commas."""
NAMED = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "}
"""Words for separators that are hard to write as an option."""
ROWS_SEEN = 100
BYTES_SEEN = 1 << 20
"""First rows and their bytes that a guess is made from; the first row counts whole."""

Record = tuple[int, list[str]]
"""The number of a line, from 1, and the fields of the row that begins, or ends, on it."""

_END = "\x1fend of the file"


@final
@dataclass(frozen=True)
class Dialect:
    """The layout of a text file: `separator`, whether it has a `header`, whether double quotes enclose fields.

    `names` are those of the columns; without a header c0, c1, ... `comments` is the number of lines before the header
    or the first row, and `rows_skipped` that of rows between these lines and the first row, blank ones counted.
    """

    separator: str
    header: bool
    quotes: bool
    names: tuple[str, ...]
    rows_skipped: int
    comments: int = 0


def dialect_of(
    path: str | os.PathLike, separator: str | None = None, header: bool | None = None, quotes: bool = True
) -> Dialect:
    """The layout of the file, what is None guessed; `DataError` where there is no row, or a name comes twice.

    Lines that begin with # before the first row are comments, unless they have as many fields as that row.
    """
    start = _start(path)
    uncommented = [line for line in start if not line.startswith("#")]
    separator = _separator(uncommented or start, quotes) if separator is None else checked_separator(separator)
    comments = _comments(start, separator, quotes)
    start = start[comments:]
    rows = [fields for _, fields in _split(start, separator, quotes)]
    if not any(rows):
        raise DataError(f"{path} holds no rows; a table has a row of names or values at least.")
    blank = next(number for number, row in enumerate(rows) if row)
    rows = [row for row in rows if row]
    has_header = _is_header(rows[0], rows[1:]) if header is None else header
    names = _names(path, rows[0]) if has_header else tuple(f"c{number}" for number in range(len(rows[0])))
    return Dialect(separator, has_header, quotes, names, blank + 1 if has_header else 0, comments)


def _comments(lines: list[str], separator: str, quotes: bool) -> int:
    """Number of lines before the first row, or before a header that begins with #."""

    def fields(line: str) -> int:
        return max((len(row) for _, row in _split([line], separator, quotes)), default=0)

    before = list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
    if not any(line.startswith("#") for line in before) or len(before) == len(lines):
        return 0
    width = fields(lines[len(before)])
    return next((number for number, line in enumerate(before) if fields(line) == width > 1), len(before))


def checked_separator(separator: str) -> str:
    """The separator of a word such as tab, or itself; what is no single sign is refused (`DataError`)."""
    sign = NAMED.get(separator, separator)
    if not (isinstance(sign, str) and len(sign) == 1 and sign.isascii() and sign not in '"\r\n\0'):
        raise DataError(f"separator is {separator!r}; it is one sign, or one of {', '.join(NAMED)}.")
    return sign


def records(path: str | os.PathLike, dialect: Dialect) -> Iterator[Record]:
    """Rows of the file with the lines that they begin on, blank ones left out, the header among them.

    O(characters), slow: for a message. A quote that is never closed is a `DataError`.
    """
    with opened(path) as file:
        texts = itertools.islice((line.decode() for line in _lines(file)), dialect.comments, None)
        lines = itertools.chain(texts, [_END])
        begins = 1 + dialect.comments
        for ends, fields in _split(lines, dialect.separator, dialect.quotes):
            if fields and fields != [_END]:
                if fields[-1].endswith(_END):
                    raise DataError(f"{path}:{begins}: {_unclosed()}")
                yield begins, fields
            begins = ends + dialect.comments + 1


def _unclosed() -> str:
    advice = "Close it, or say quotes = false if double quotes are signs like others in this file"
    return f"a double quote opens a field of the row that begins here, and none closes it. {advice}."


def line_of(path: str | os.PathLike, dialect: Dialect, row: int) -> int:
    """The number of the line, from 1, that the row of the table, from 0, begins on."""
    rows = records(path, dialect)
    return next(itertools.islice(rows, row + int(dialect.header), None))[0]


def refuse_fault(path: str | os.PathLike, dialect: Dialect) -> None:
    """`DataError` at the first row with more or fewer fields than columns, or a quote that is never closed."""
    expected = len(dialect.names)
    for line, fields in records(path, dialect):
        if len(fields) != expected:
            by = next((word for word, sign in NAMED.items() if sign == dialect.separator), dialect.separator)
            counts = f"this row has {len(fields):,} fields and the first {expected:,}, separated by {by}"
            raise DataError(f"{path}:{line}: {counts}. Mend the row; fields that hold a separator stand in quotes.")


def _lines(file: Iterator[bytes]) -> Iterator[bytes]:
    r"""Lines that end in \n, whichever of the three ends they had."""
    for text in file:
        yield from (line + b"\n" for line in text.rstrip(b"\r\n").split(b"\r"))


def _start(path: str | os.PathLike) -> list[str]:
    lines: list[str] = []
    count = 0
    with opened(path) as file:
        for line in itertools.islice(_lines(file), ROWS_SEEN):
            lines.append(line.decode())
            count += len(line)
            if count > BYTES_SEEN:
                break
    return lines


def _split(lines: Iterable[str], separator: str, quotes: bool) -> Iterator[Record]:
    """Fields of each row, and the number of the line that it ends on."""
    limit = csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    try:
        for fields in reader:
            yield reader.line_num, fields
    finally:
        csv.field_size_limit(limit)


def _separator(start: list[str], quotes: bool) -> str:
    def evenness(sign: str) -> float:
        counts = [len(fields) for _, fields in _split(start, sign, quotes) if fields]
        return counts.count(counts[0]) / len(counts) if counts and counts[0] > 1 else 0.0

    shares = {sign: evenness(sign) for sign in SEPARATORS}
    return max(SEPARATORS, key=shares.__getitem__) if any(shares.values()) else ","


def _is_header(first: list[str], rest: list[list[str]]) -> bool:
    names = [field.strip() for field in first]
    if not any(names) or any(number_named(name) is not None for name in names):
        return False
    below = [[row[place].strip() for row in rest if len(row) > place] for place in range(len(names))]
    if any(_are_numbers(column) for column in below):
        return True
    is_new = all(name not in column for name, column in zip(names, below, strict=True) if name)
    return len(set(names)) == len(names) and is_new


def _are_numbers(column: list[str]) -> bool:
    values = [value for value in column if value not in MISSING_WORDS]
    return bool(values) and all(number_named(value) is not None for value in values)


def _names(path: str | os.PathLike, fields: list[str]) -> tuple[str, ...]:
    fields = [fields[0].strip().removeprefix("#"), *fields[1:]]
    names = tuple(field.strip() or f"c{number}" for number, field in enumerate(fields))
    refuse_repeated(path, names)
    return names


def refuse_repeated(path: str | os.PathLike, names: Sequence[str]) -> None:
    """`DataError` where two columns have one name."""
    places: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if (other := places.setdefault(name, number)) != number:
            where = f"columns {other} and {number} are both called {name!r}"
            raise DataError(f"{path}: {where}; give each a name of its own.")
