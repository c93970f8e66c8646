"""Tables block by block, so that memory holds some thousand rows and not the file: CSV and its kin, JSON, and Parquet.

Each gives its columns as texts; a number that Parquet or JSON holds is the text that it is written as.
"""

import csv
import io
import itertools
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, final

from workbench.data.errors import DataError, reader_option_advice
from workbench.data.files.opened import LONGEST_LINE, compression_of, map_blocks, open_text, place_at, read_head
from workbench.data.files.reading import reading
from workbench.data.files.types import RARE_SIGNS, SAID_SEPARATOR
from workbench.data.labels import number_named
from workbench.data.tables.arff import ArffTable, starts_as_arff
from workbench.data.tables.arrow import MISSING_WORDS, Texts, arrow, each_of, texts_of
from workbench.data.tables.json_lines import JsonTable, starts_as_json

# Layout of a text file of columns: separator, header and quotes; stated, else guessed from its first rows.
#
# The separator is the one that splits most of the first rows into as many fields as the first one. The first row is a
# header when none of its fields is a number and something tells it from the rows below: a column of numbers under its
# text, or names that are all different and do not come again below.


SEPARATORS = ("\t", ";", "|", ",")
"""Separators that are guessed; of two that split as evenly the first, since numbers and text may hold commas."""
NAMED = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "} | {
    name: sign for sign, name in RARE_SIGNS.items()
}
"""Words for separators that are hard to write as an option."""
BLANKS = "blanks"
"""The separator of columns that blanks and tabs align: any number of them is one."""
DECIMALS = (".", ",")
_WITH_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+")
_GROUPS_AND_COMMA = re.compile(r"[^0-9.,]*[0-9]{1,3}(\.[0-9]{3})+,[0-9]+[^0-9.,]*")
ROWS_SEEN = 100
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


def dialect_of(
    path: str | os.PathLike,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool = True,
    decimal: str | None = None,
    encoding: str = "utf-8",
) -> Dialect:
    """Return the layout of the file, what is None guessed; `DataError` if there is no row, or a name comes twice.

    Lines that begin with # before the first row are comments, unless they have as many fields as that row.
    """
    are_aligned, separator = separator == BLANKS, " " if separator == BLANKS else separator
    if decimal not in (None, *DECIMALS):
        raise DataError(f"decimal is {decimal!r}; it is the sign before a fraction, one of: {', '.join(DECIMALS)}")
    start = _start(path, are_aligned, encoding)
    said = SAID_SEPARATOR.fullmatch(start[0].strip("\ufeff\r\n")) if start else None
    if said:
        separator, start = separator or said[1], start[1:]
    uncommented = [line for line in start if not line.startswith("#")]
    separator = _separator(uncommented or start, quotes) if separator is None else checked_separator(separator)
    comments = _comments(start, separator, quotes)
    start, comments = start[comments:], comments + bool(said)
    rows = [fields for _, fields in _split(start, separator, quotes)]
    if not any(rows):
        raise DataError(f"{path} holds no rows; a table has a row of names or values at least.")
    blank = next(number for number, row in enumerate(rows) if row)
    rows = [row for row in rows if row]
    has_header = _is_header(rows[0], rows[1:]) if header is None else header
    names = _names(path, rows[0]) if has_header else tuple(f"c{number}" for number in range(len(rows[0])))
    skipped = blank + 1 if has_header else 0
    decimal = decimal or (_decimal(rows[int(has_header) :]) if separator == ";" else ".")
    return Dialect(separator, has_header, quotes, names, skipped, comments, are_aligned, decimal, encoding)


def _decimal(rows: list[list[str]]) -> str:
    """Return the decimal sign of a file whose columns stand between semicolons: a comma if numbers are written so, and
    none with a point but between groups of digits.
    """
    values = [value.strip() for row in rows for value in row]
    if any(map(_GROUPS_AND_COMMA.fullmatch, values)):
        return ","
    with_comma = [value for value in values if _WITH_COMMA.fullmatch(value)]
    are_fractions = any(not _THOUSANDS.fullmatch(value) for value in with_comma)
    has_points = any("." in value and number_named(value) is not None for value in values)
    return "," if with_comma and are_fractions and not has_points else "."


def opened(path: str | os.PathLike, are_aligned: bool = False, encoding: str = "utf-8") -> BinaryIO:
    """Return the text of the file as `open_text` does; where columns `are_aligned`, with one blank between them."""
    file = open_text(path, encoding, advice=ENCODING)
    return io.BufferedReader(_Squeezed(file)) if are_aligned else file


@final
class _Squeezed(io.RawIOBase):
    """Lines of a file with one blank in place of several, and none around."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file, self._rest = file, b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Return the bytes of the next lines, 0 at the end of the file."""
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
        """Close the file."""
        self._file.close()
        super().close()


def _comments(lines: list[str], separator: str, quotes: bool) -> int:
    """Return the number of lines before the first row, or before a header that begins with #."""

    def fields(line: str) -> int:
        """Return how many fields the separator splits a line into."""
        return max((len(row) for _, row in _split([line], separator, quotes)), default=0)

    before = list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
    if not any(line.startswith("#") for line in before) or len(before) == len(lines):
        return 0
    width = fields(lines[len(before)])
    return next((number for number, line in enumerate(before) if fields(line) == width > 1), len(before))


def checked_separator(separator: str) -> str:
    """Return the separator of a word such as tab, or itself; what is no single sign is refused (`DataError`)."""
    sign = NAMED.get(separator, separator)
    if not (isinstance(sign, str) and len(sign) == 1 and sign.isascii() and sign not in '"\r\n\0'):
        raise DataError(f"separator is {separator!r}; it is one sign, or one of {', '.join((*NAMED, BLANKS))}.")
    return sign


def records(path: str | os.PathLike, dialect: Dialect) -> Iterator[Record]:
    """Yield the rows of the file with the lines that they begin on, blank ones left out, the header among them.

    O(characters), slow: for a message. A quote that is never closed is a `DataError`.
    """
    with opened(path, dialect.are_aligned, dialect.encoding) as file:
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
    """Return the message for a quoted field without an end."""
    advice = "Close it, or say quotes = false if double quotes are signs like others in this file"
    return f"a double quote opens a field of the row that begins here, and none closes it. {advice}."


def refuse_fault(path: str | os.PathLike, dialect: Dialect) -> None:
    """`DataError` at the first row with more or fewer fields than columns, or a quote that is never closed."""
    expected = len(dialect.names)
    for line, fields in records(path, dialect):
        if len(fields) != expected:
            by = next((word for word, sign in NAMED.items() if sign == dialect.separator), dialect.separator)
            counts = f"this row has {len(fields):,} fields and the first {expected:,}, separated by {by}"
            raise DataError(f"{path}:{line}: {counts}. Mend the row; fields that hold a separator stand in quotes.")


def _lines(file: Iterator[bytes]) -> Iterator[bytes]:
    r"""Yield the lines that end in \n, whichever of the three ends they had."""
    for text in file:
        yield from (line + b"\n" for line in text.rstrip(b"\r\n").split(b"\r"))


def _start(path: str | os.PathLike, are_aligned: bool = False, encoding: str = "utf-8") -> list[str]:
    """Return the first lines of a file, at most `ROWS_SEEN` and about `BYTES_SEEN` bytes."""
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
    """Yield the fields of each row, and the number of the line that it ends on."""
    limit = csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
    try:
        for fields in reader:
            yield reader.line_num, fields
    finally:
        csv.field_size_limit(limit)


def _separator(start: list[str], quotes: bool) -> str:
    """Return the separator that splits the first lines most evenly, a comma if none does."""

    def evenness(sign: str) -> float:
        """Return the share of lines with as many fields as the first; 0 if that has one."""
        counts = [len(fields) for _, fields in _split(start, sign, quotes) if fields]
        return counts.count(counts[0]) / len(counts) if counts and counts[0] > 1 else 0.0

    shares = {sign: evenness(sign) for sign in SEPARATORS}
    return max(SEPARATORS, key=shares.__getitem__) if any(shares.values()) else ","


def _is_header(first: list[str], rest: list[list[str]]) -> bool:
    """Return whether the first row is a header: texts above numbers, or texts that no column repeats."""
    names = [field.strip() for field in first]
    if not any(names) or any(number_named(name) is not None for name in names):
        return False
    below = [[row[place].strip() for row in rest if len(row) > place] for place in range(len(names))]
    if any(_are_numbers(column) for column in below):
        return True
    is_new = all(name not in column for name, column in zip(names, below, strict=True) if name)
    return len(set(names)) == len(names) and is_new


def _are_numbers(column: list[str]) -> bool:
    """Return whether all values of a column that are not missing are numbers, and at least one is."""
    values = [value for value in column if value not in MISSING_WORDS]
    return bool(values) and all(number_named(value) is not None for value in values)


def _names(path: str | os.PathLike, fields: list[str]) -> tuple[str, ...]:
    """Return the column names of a header, c0, c1, ... for empty ones; raise DataError if one repeats."""
    fields = [fields[0].strip().removeprefix("#"), *fields[1:]]
    names = tuple(field.strip() or f"c{number}" for number, field in enumerate(fields))
    refuse_repeated(path, names)
    return names


def refuse_repeated(path: str | os.PathLike, names: Sequence[str]) -> None:
    """`DataError` if two columns have one name."""
    places: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if (other := places.setdefault(name, number)) != number:
            where = f"columns {other} and {number} are both called {name!r}"
            raise DataError(f"{path}: {where}; give each a name of its own.")


BLOCK_BYTES, BLOCK_BYTES_COLUMN, LARGEST_BLOCK = 1 << 22, 1 << 12, 1 << 28
"""Bytes of text that are split into columns at once: of wide tables more, since each column of a block costs 0.1 ms."""
DIFFERING = 0.75
"""Share of the rows of a block, above which looking for texts that come again takes longer than it saves."""
BLOCKS_AHEAD = 4
"""Blocks that are read before they are taken."""
BLOCK_ROWS, BLOCK_VALUES = 1 << 15, 1 << 23
"""Rows of a Parquet file, and values, that are read at once, at most."""
TABLE = "a table (CSV, TSV, JSON lines, ARFF, Parquet or Feather)"

Block = dict[str, Texts]
"""Columns of some rows, by name."""


class Table(Protocol):
    """A file of named columns; `nested` names columns of lists or structures, which hold no plain values."""

    path: str | os.PathLike
    names: tuple[str, ...]
    nested: frozenset[str]

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Return the columns of those names, some rows at a time, in their order (`DataError`)."""

    def place(self, row: int) -> str:
        """Place of the row, counted from 0, in the file, in words."""

    def layout(self) -> dict[str, Any]:
        """Return the parameters by which another file is split as this one is."""


def table_of(
    path: str | os.PathLike,
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool = True,
    decimal: str | None = None,
    encoding: str = "utf-8",
) -> Table:
    """Return the table in the file; of text, separator, header and decimal sign are guessed where they are None
    (`DataError`).
    """
    arrow()
    with reading(path, TABLE):
        first = read_head(path, 6)
        for signature, table in ((b"PAR1", ParquetTable), (b"ARROW1", ArrowTable)):
            if not first.startswith(signature):
                continue
            if packed := compression_of(path):
                what = f"{path} is a {table.KIND} file packed by {packed}"
                raise DataError(f"{what}; unpack it, its columns are packed by themselves.")
            return table(path)
        if separator is None and starts_as_json(path):
            return JsonTable(path)
        if separator is None and starts_as_arff(path):
            return ArffTable(path)
        return TextTable(path, dialect_of(path, separator, header, quotes, decimal, encoding))


@final
class TextTable:
    """A text file of columns, in UTF-8, packed or not."""

    nested: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike, dialect: Dialect) -> None:
        self.path, self.dialect = path, dialect
        self.names = dialect.names

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        if not names:
            return
        pa = arrow()
        dialect = self.dialect
        with reading(self.path, TABLE), opened(self.path, dialect.are_aligned, dialect.encoding) as file:
            counting = _Counting(file)
            try:
                batches = counting.taken(_batches(pa, counting, self.dialect, names))
                yield from map(_with_points, _encoded(batches)) if dialect.decimal == "," else _encoded(batches)
            except pa.ArrowInvalid as error:
                refuse_fault(self.path, self.dialect)
                if "straddling" in str(error):
                    raise DataError(
                        f"{self.path} has a row of more than {_block_bytes(self.dialect):,} bytes; is it a table?"
                    ) from None
                raise
            finally:
                counting.is_awaited = True
        if self.dialect.quotes and counting.quotes % 2:  # a quote that is never closed makes one row of all that follow
            refuse_fault(self.path, self.dialect)

    def place(self, row: int) -> str:
        """File and line of the row, from 0."""
        lines = (line for line, _ in records(self.path, self.dialect))
        return place_at(self.path, lines, row + int(self.dialect.header))

    def layout(self) -> dict[str, Any]:
        """Return the layout of the text, by name: separator, header and quotes, and what is not usual of it."""
        dialect = self.dialect
        layout = {"separator": dialect.separator, "header": dialect.header, "quotes": dialect.quotes}
        layout |= {"separator": BLANKS} if dialect.are_aligned else {}
        layout |= {"decimal": dialect.decimal} if dialect.decimal != "." else {}
        return layout | ({"encoding": dialect.encoding} if dialect.encoding != "utf-8" else {})


def _with_points(block: Block) -> Block:
    """Return the block with a point in place of the comma of numbers, and without the points between their groups of
    digits.
    """
    return {name: Texts(_with_point(texts.distinct), texts.numbers) for name, texts in block.items()}


def _with_point(distinct: Any) -> Any:
    """Return the texts with a point in numbers that have a comma; numbers such as 1.234,5 and 1.234 lose the others."""
    pa = arrow()
    grouped = pa.compute.match_substring_regex(distinct, r"^[^0-9.,]*[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?[^0-9.,]*$")
    if pa.compute.any(grouped).as_py():
        plain = pa.compute.replace_substring(distinct.filter(grouped), ".", "")
        distinct = pa.compute.replace_with_mask(distinct, grouped, plain)
    pattern = r"^([^0-9.,]*[0-9]*),([0-9]+[^0-9.,]*)$"
    return pa.compute.replace_substring_regex(distinct, pattern=pattern, replacement=r"\1.\2")


def _encoded(batches: Iterator[Any]) -> Iterator[Block]:
    """Yield the texts of record batches, some computed ahead; columns that differ in most rows of the first are not
    deduplicated."""
    first = next(batches, None)
    if first is None:
        return
    block = _block(first)
    differing = {name for name, texts in block.items() if len(texts.distinct) > DIFFERING * len(texts.numbers)}
    yield block
    yield from map_blocks(lambda batch: _block(batch, differing), batches)


def _block(batch: Any, differing: Collection[str] = ()) -> Block:
    """Return the texts of a record batch; columns in `differing` are not deduplicated."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {name: each_of(column) if name in differing else texts_of(column) for name, column in columns}


def _batches(pa: Any, file: Any, dialect: Dialect, names: Sequence[str]) -> Iterator[Any]:
    """Yield the record batches of a CSV file, all columns as strings; DataError for malformed rows."""
    csv = pa.csv
    read = csv.ReadOptions(
        column_names=dialect.names,
        skip_rows=dialect.comments,
        skip_rows_after_names=dialect.rows_skipped,
        block_size=_block_bytes(dialect),
    )
    parse = csv.ParseOptions(
        delimiter=dialect.separator, quote_char='"' if dialect.quotes else False, newlines_in_values=dialect.quotes
    )
    # types are fixed here: pyarrow would guess them from the first block and fail at a later one
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), include_columns=names, strings_can_be_null=False
    )
    try:
        yield from csv.open_csv(pa.PythonFile(file, mode="r"), read, parse, convert)
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise


def _block_bytes(dialect: Dialect) -> int:
    """Return the bytes of a block; a row is shorter."""
    return max(BLOCK_BYTES, min(BLOCK_BYTES_COLUMN * len(dialect.names), LARGEST_BLOCK))


@final
class _Counting:
    """A file that counts the double quotes that are read, and is read not far ahead: pyarrow would, by 32 blocks."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.quotes, self.closed = file, 0, False
        self._ahead = threading.Semaphore(BLOCKS_AHEAD)
        self.is_awaited = True
        """Whether nothing goes on before there is another block: none comes of some, as of blank lines."""

    def taken(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """Yield the blocks that are made of the file; for each that was taken another one may be read."""
        for block in blocks:
            self.is_awaited = False
            yield block
            self.is_awaited = True
            self._ahead.release()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, when few blocks wait to be taken."""
        while not self._ahead.acquire(timeout=0.1) and not self.is_awaited:
            pass
        text = self._file.read(size)
        self.quotes += text.count(b'"')
        return text

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No."""
        return False

    def close(self) -> None:
        """Leave the file to who opened it."""
        self.closed = True


def _plain(pa: Any, column: Any) -> Any:
    """Return the column without a dictionary that may hold values which no row has."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


@final
class ParquetTable:
    """A Parquet file."""

    KIND = "Parquet"

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path
        pa = arrow()
        with pa.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
        self.names = tuple(schema.names)
        refuse_repeated(path, self.names)
        self.nested = frozenset(field.name for field in schema if pa.types.is_nested(field.type))

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        pa = arrow()
        with reading(self.path, TABLE), pa.parquet.ParquetFile(self.path) as file:
            rows = max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(len(names), 1)))
            for batch in file.iter_batches(batch_size=rows, columns=list(names)):
                yield {name: texts_of(_plain(pa, batch.column(name))) for name in names}

    def place(self, row: int) -> str:
        """File and number of the row, both from 0."""
        return f"{self.path}, row {row}"

    def layout(self) -> dict[str, Any]:
        """Nothing: a Parquet file says itself how it is laid out."""
        return {}


@final
class ArrowTable:
    """An Arrow file (Feather of version 2)."""

    KIND = "Feather"

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path
        pa = arrow()
        with pa.OSFile(os.fspath(path)) as file, pa.ipc.open_file(file) as batches:
            schema = batches.schema
        self.names = tuple(schema.names)
        refuse_repeated(path, self.names)
        self.nested = frozenset(field.name for field in schema if pa.types.is_nested(field.type))

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        pa = arrow()
        with reading(self.path, TABLE), pa.OSFile(os.fspath(self.path)) as file, pa.ipc.open_file(file) as batches:
            for number in range(batches.num_record_batches if names else 0):
                batch = batches.get_batch(number)
                batch.validate(full=True)
                if batch.num_rows:
                    yield {name: texts_of(_plain(pa, batch.column(name))) for name in names}

    def place(self, row: int) -> str:
        """File and number of the row, both from 0."""
        return f"{self.path}, row {row}"

    def layout(self) -> dict[str, Any]:
        """Nothing: an Arrow file says itself how it is laid out."""
        return {}
