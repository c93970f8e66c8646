"""The layout of a text file of columns: separator, header, quotes, titles; stated, else guessed from its first rows.

The separator splits most of the first rows into as many fields as the first one. Lines of one field
above a row of several, as spreadsheets begin with, are titles. The first row is a header when none of its fields is a
number and something tells it from the rows below: a column of numbers under its text, or names that are all different
and do not come again below. Numbers are names if they count on, as years do, or the 0, 1, ... that pandas writes. Where
rows have one field more than the header, the first is the name of the row, as R writes it, or the last one is empty.
"""

import csv
import io
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, final

from workbench.data.errors import DataError, reader_option_advice
from workbench.data.files.opened import LONGEST_LINE, open_text
from workbench.data.files.types import RARE_SIGNS, SAID_SEPARATOR
from workbench.data.labels import number_named
from workbench.data.tables.texts import MISSING_WORDS

SEPARATORS = ("\t", ";", "|", ",")
"""Separators that are guessed; of two that split as evenly the first, since numbers and text may hold commas."""
NAMED = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "} | {
    name: sign for sign, name in RARE_SIGNS.items()
}
"""Words for separators that are hard to write as an option."""
BLANKS = "blanks"
"""The separator of columns that blanks and tabs align: any number of them is one."""
DECIMALS = (".", ",")
NAMED_DECIMALS = {"point": ".", "comma": ","}
_WITH_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+")
_GROUPS_AND_COMMA = re.compile(r"[^0-9.,]*[0-9]{1,3}(\.[0-9]{3})+,[0-9]+[^0-9.,]*")
ROWS_SEEN = 100
MOST_TITLES = 20
"""Lines above a header that are titles, at most."""
FEWEST_NUMBERED, MANY_NUMBERED = 4, 10
"""Numbers that count on in a first row, from which on they are names where fractions, or whole numbers, are below."""
ROW_NAMES = "row_names"
"""What the column of the names of rows is called, which R writes without a name."""
BYTES_SEEN = 1 << 20
"""First rows and their bytes that a guess is made from; the first row counts whole."""

ENCODING = f"say which encoding it is.\n{reader_option_advice(encoding='latin-1')[:-1]}"
"""What to do with bytes that are not UTF-8."""

Record = tuple[int, list[str]]
"""The number of a line, from 1, and the fields of the row that begins, or ends, on it."""

_END = "\x1fend of the file"


@final
@dataclass(frozen=True)
class Dialect:
    """The layout of a text file: `separator`, whether it has a `header`, whether double quotes enclose fields.

    Where `are_aligned`, columns stand between any number of blanks, read as one. `decimal` is the sign before the
    fraction of a number, `encoding` that of the text.
    `names` are those of the columns; without a header c0, c1, ... `comments` is the number of lines before the header
    or the first row, and `rows_skipped` that of rows between these lines and the first row, blank ones counted.
    `titles` are the lines above the header that are no comments, and `repeated` the names that several columns have.
    """

    separator: str
    header: bool
    quotes: bool
    names: tuple[str, ...]
    rows_skipped: int
    comments: int = 0
    are_aligned: bool = False
    decimal: str = "."
    encoding: str = "utf-8"
    titles: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()


def dialect_of(
    path: str | os.PathLike,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool = True,
    decimal: str | None = None,
    encoding: str = "utf-8",
) -> Dialect:
    """Return the layout of a separated text file; `separator`, `header` and `decimal` are guessed if they are None.

    Lines that begin with # before the first row are comments, unless they have as many fields as that row. Of columns
    with the same name the later ones get a number, as `numbered` gives it. Raises DataError if there is no row, or a
    parameter is invalid.
    """
    are_aligned, separator = separator == BLANKS, " " if separator == BLANKS else separator
    decimal = None if decimal is None else NAMED_DECIMALS.get(decimal, decimal)
    if decimal not in (None, *DECIMALS):
        known = ", ".join((*DECIMALS, *NAMED_DECIMALS))
        raise DataError(f"decimal is {decimal!r}; it is the sign before a fraction, one of: {known}")
    start = _start(path, are_aligned, encoding)
    said = SAID_SEPARATOR.fullmatch(start[0].strip("\ufeff\r\n")) if start else None
    if said:
        separator, start = separator or said[1], start[1:]
    uncommented = [line for line in start if not line.startswith("#")]
    separator = _separator(uncommented or start, quotes) if separator is None else checked_separator(separator)
    comments = _comments(start, separator, quotes)
    start, comments = start[comments:], comments + bool(said)
    titles = [] if header is False else _titles(start, separator, quotes)
    start, comments = start[len(titles) :], comments + len(titles)
    rows = [fields for _, fields in _split(start, separator, quotes)]
    if not any(rows):
        raise DataError(f"{path} holds no rows; a table has a row of names or values at least.")
    blank = next(number for number, row in enumerate(rows) if row)
    rows = [row for row in rows if row]
    has_header = is_header(rows[0], rows[1:]) if header is None else header
    fields = _names(rows[0], rows[1:]) if has_header else [""] * len(rows[0])
    names = numbered(fields)
    repeated = tuple(name for name in dict.fromkeys(fields) if name and fields.count(name) > 1)
    skipped = blank + 1 if has_header else 0
    decimal = decimal or (_decimal(rows[int(has_header) :]) if separator == ";" else ".")
    shown = tuple(filter(None, (title.strip().strip(separator).strip() for title in titles)))
    return Dialect(
        separator, has_header, quotes, names, skipped, comments, are_aligned, decimal, encoding, shown, repeated
    )


def _decimal(rows: list[list[str]]) -> str:
    """Return the decimal sign of the values in `rows` of a file separated by semicolons: "," or ".".

    It is a comma if numbers are written with one, not only as thousands, and none has a decimal point.
    """
    values = [value.strip() for row in rows for value in row]
    if any(map(_GROUPS_AND_COMMA.fullmatch, values)):
        return ","
    with_comma = [value for value in values if _WITH_COMMA.fullmatch(value)]
    are_fractions = any(not _THOUSANDS.fullmatch(value) for value in with_comma)
    has_points = any("." in value and number_named(value) is not None for value in values)
    return "," if with_comma and are_fractions and not has_points else "."


def opened(path: str | os.PathLike, are_aligned: bool = False, encoding: str = "utf-8") -> io.BufferedReader:
    """Open a text file as `open_text` does; if `are_aligned`, runs of blanks become one and lines are stripped."""
    file = open_text(path, encoding, advice=ENCODING)
    return io.BufferedReader(_Squeezed(file)) if are_aligned else file


@final
class _Squeezed(io.RawIOBase):
    """Lines of a file with one blank in place of several, and none around."""

    def __init__(self, file: BinaryIO) -> None:
        """Wrap a binary file whose lines are to be read with single blanks."""
        super().__init__()
        self._file, self._rest = file, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with bytes of the next squeezed lines, and return their number, 0 at the end of the file."""
        while not self._rest:
            lines = self._file.readlines(len(buffer))
            if not lines:
                return 0
            self._rest = b"".join(b" ".join(line.split()) + b"\n" for line in lines)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        """Close this stream and the wrapped file."""
        self._file.close()
        super().close()


def _comments(lines: list[str], separator: str, quotes: bool) -> int:
    """Return the number of comment and blank lines before the first row, or before a header that begins with #."""

    def fields(line: str) -> int:
        """Return how many fields the separator splits a line into."""
        return max((len(row) for _, row in _split([line], separator, quotes)), default=0)

    before = list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
    if not any(line.startswith("#") for line in before) or len(before) == len(lines):
        return 0
    width = fields(lines[len(before)])
    return next((number for number, line in enumerate(before) if fields(line) == width > 1), len(before))


def checked_separator(separator: str) -> str:
    """Return the separator character for a name such as "tab", or the character itself.

    Raises DataError unless it is a single ASCII character other than quote, line end and NUL.
    """
    sign = NAMED.get(separator, separator)
    if not (isinstance(sign, str) and len(sign) == 1 and sign.isascii() and sign not in '"\r\n\0'):
        raise DataError(f"separator is {separator!r}; it is one sign, or one of {', '.join((*NAMED, BLANKS))}.")
    return sign


def records(path: str | os.PathLike, dialect: Dialect) -> Iterator[Record]:
    """Yield (line number from 1 on which it begins, fields) of each row, the header included, blank rows left out.

    Slow (pure Python), meant for error messages. Raises DataError for a quote that is never closed.
    """
    with opened(path, dialect.are_aligned, dialect.encoding) as file:
        texts = itertools.islice((line.decode() for line in _lines(file)), dialect.comments, None)
        lines = itertools.chain(texts, [_END])
        begins = 1 + dialect.comments
        for ends, fields in _split(lines, dialect.separator, dialect.quotes):
            if fields and fields != [_END]:
                if fields[-1].endswith(_END):
                    raise DataError(f"{path}:{begins}: {_unclosed_message()}")
                yield begins, fields
            begins = ends + dialect.comments + 1


def _unclosed_message() -> str:
    """Return the error message for a quoted field without an end."""
    advice = "Close it, or say quotes = false if double quotes are signs like others in this file"
    return f"a double quote opens a field of the row that begins here, and none closes it. {advice}."


def refuse_fault(path: str | os.PathLike, dialect: Dialect) -> None:
    """Raise DataError for the first row with too many or too few fields, or a quote never closed; return if none.

    A header may have one field less than the rows.
    """
    expected, has_short_header = len(dialect.names), dialect.header
    for line, fields in records(path, dialect):
        is_header, has_short_header = has_short_header, False
        if len(fields) != expected and not (is_header and len(fields) == expected - 1):
            if fields[0].startswith("#"):
                advice = "Take such lines out, as grep -v '^#' FILE > NEW does"
                raise DataError(f"{path}:{line}: a comment between the rows. {advice}.")
            by = next((word for word, sign in NAMED.items() if sign == dialect.separator), dialect.separator)
            counts = f"this row has {len(fields):,} fields and the first {expected:,}, separated by {by}"
            raise DataError(f"{path}:{line}: {counts}. Fix the row; fields that hold a separator stand in quotes.")


def _lines(file: Iterator[bytes]) -> Iterator[bytes]:
    r"""Yield the lines of a binary file, with \n in place of \r\n or \r at their end."""
    for text in file:
        yield from (line + b"\n" for line in text.rstrip(b"\r\n").split(b"\r"))


def _start(path: str | os.PathLike, are_aligned: bool = False, encoding: str = "utf-8") -> list[str]:
    """Return the first lines of a file, decoded: at most `ROWS_SEEN`, and about `BYTES_SEEN` bytes."""
    lines: list[str] = []
    count = 0
    with opened(path, are_aligned, encoding) as file:
        for line in itertools.islice(_lines(file), ROWS_SEEN):
            lines.append(line.decode())
            count += len(line)
            if count > BYTES_SEEN:
                break
    return lines


def _split(lines: Iterable[str], separator: str, quotes: bool) -> Iterator[Record]:
    """Yield (number of the line, from 1, on which the row ends, fields) of each row, as the csv module splits `lines`.

    Sets the csv module's global field size limit until it is exhausted or closed.
    """
    limit = csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    try:
        for fields in reader:
            yield reader.line_num, fields
    finally:
        csv.field_size_limit(limit)


def _separator(start: list[str], quotes: bool) -> str:
    """Return the separator in `SEPARATORS` that splits the first lines most evenly; a comma if none splits them."""

    def evenness(sign: str) -> float:
        """Return the share of lines with as many fields as the first (or the last, below a title).

        0 if they have one.
        """
        counts = [len(fields) for _, fields in _split(start, sign, quotes) if fields] or [1]
        expected = counts[0] if counts[0] > 1 else counts[-1]
        return counts.count(expected) / len(counts) if expected > 1 else 0.0

    shares = {sign: evenness(sign) for sign in SEPARATORS}
    return max(SEPARATORS, key=shares.__getitem__) if any(shares.values()) else ","


def is_header(first: list[str], rest: list[list[str]]) -> bool:
    """Return whether the row `first` is a header: no numbers, but some below, or texts that do not recur."""
    names = [field.strip() for field in first]
    if not any(names):
        return False
    below = [[row[place].strip() for row in rest if len(row) > place] for place in range(len(names))]
    if any(number_named(name) is not None for name in names):
        return _are_numbered(names, below)
    if any(_are_numbers(column) for column in below):
        return True
    is_new = all(name not in column for name, column in zip(names, below, strict=True) if name)
    return len(set(names)) == len(names) and is_new


def _are_numbered(names: list[str], below: list[list[str]]) -> bool:
    """Return whether fields with numbers among them are names: years, or 0, 1, ... that pandas gives columns.

    The numbers are whole and rise by the same step, and a text stands above numbers, or is new above texts if there are
    `FEWEST_NUMBERED` numbers. Without a text they count from 0, and there are fractions below, or `MANY_NUMBERED`.
    """
    numbers = [int(name) for name in names if re.fullmatch("[0-9]{1,9}", name)]
    texts = [place for place, name in enumerate(names) if name and number_named(name) is None]
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    is_other = len(numbers) + len(texts) < len(list(filter(None, names)))
    if is_other or len(steps) != 1 or min(steps) < 1 or any(names[place] in MISSING_WORDS for place in texts):
        return False
    if not texts:
        are_fractions = any("." in value for column in below for value in column)
        is_many = (are_fractions and len(numbers) >= FEWEST_NUMBERED) or len(numbers) >= MANY_NUMBERED
        rows_count = [column[:1] for column in below] == [[str(len(numbers) + number)] for number in numbers]
        return is_many and numbers == [*range(len(numbers))] and not rows_count
    are_new = len(numbers) >= FEWEST_NUMBERED and all(names[place] not in below[place] for place in texts)
    return are_new or any(_are_numbers(below[place]) for place in texts)


def _are_numbers(column: list[str]) -> bool:
    """Return whether all values of a column that are not missing are numbers, and at least one is."""
    values = [value for value in column if value not in MISSING_WORDS]
    return bool(values) and all(number_named(value) is not None for value in values)


def _titles(lines: list[str], separator: str, quotes: bool) -> list[str]:
    """Return the lines above the table that are titles: at most one value each, above two rows or more of one width.

    Title lines may have as many (empty) fields as the rows only if these have at least three columns. [] if there are
    none.
    """
    rows = [next((fields for _, fields in _split([line], separator, quotes)), []) for line in lines]
    values = [sum(bool(field.strip()) for field in fields) for fields in rows]
    count = next((number for number, many in enumerate(values) if many > 1), 0)
    below = [fields for fields in rows[count:] if fields]
    if not 0 < count <= MOST_TITLES or len(below) < 3 or len({len(fields) for fields in below}) > 1:
        return []
    width = len(below[0])
    return lines[:count] if all(len(fields) < 2 or (len(fields) == width > 2) for fields in rows[:count]) else []


def _names(fields: list[str], rows: list[list[str]]) -> list[str]:
    """Return the column names of a header, stripped; one more if all rows have a field more.

    The extra name is first, for names of rows, unless the last field of all rows is empty. A leading # and single
    quotes around all names are removed.
    """
    named = [fields[0].strip().removeprefix("#"), *(field.strip() for field in fields[1:])]
    if all(re.fullmatch("'[^']*'", name) for name in named):
        named = [name[1:-1] for name in named]
    if rows and all(len(row) == len(fields) + 1 for row in rows):
        is_first = any(row[-1].strip() for row in rows)
        named = [ROW_NAMES, *named] if is_first else [*named, ""]
    return named


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return distinct names: c0, c1, ... for empty ones; repeated ones get a number as in pandas.

    >>> numbered(["price", "", "price", "price.1"])
    ('price', 'c1', 'price.2', 'price.1')
    """
    taken, found = set(names), list[str]()
    for place, name in enumerate(names):
        wanted = name or f"c{place}"
        if wanted in (found if name else taken):
            wanted = next(other for count in itertools.count(1) if (other := f"{wanted}.{count}") not in taken)
        taken.add(wanted)
        found.append(wanted)
    return tuple(found)


def refuse_repeated(path: str | os.PathLike, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name."""
    places: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if (other := places.setdefault(name, number)) != number:
            where = f"columns {other} and {number} are both called {name!r}"
            raise DataError(f"{path}: {where}; give each a name of its own.")
