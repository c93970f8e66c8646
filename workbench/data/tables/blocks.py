"""Tables block by block, so that memory holds some thousand rows and not the file: CSV and its kin, JSON, and Parquet.

Each gives its columns as texts; a number that Parquet or JSON holds is the text that it is written as.
"""

import csv
import functools
import io
import itertools
import os
import re
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO, Protocol, final

from workbench.data.errors import DataError
from workbench.data.files.opened import compression_of, map_blocks, open_text, place_at, read_head
from workbench.data.files.reading import reading
from workbench.data.tables.arrow import Texts, arrow, each_number, texts_of
from workbench.data.tables.dialect import BLANKS, Dialect, dialect_of, opened, records, refuse_fault, refuse_repeated
from workbench.data.tables.json_lines import JsonTable, starts_as_json
from workbench.data.tables.splitting import OF_NUMBERS, PADDING, Scratch, split

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
        self._is_plain = dialect.separator not in OF_NUMBERS

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        if not names:
            return
        blocks = self._blocks(names)
        yield from map(_with_points, blocks) if self.dialect.decimal == "," else blocks

    def _blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the blocks of compiled code as long as they are plain, and then those of pyarrow."""
        rows = 0
        if self._is_plain:
            for block in self._plain_blocks(names):
                if block is None:
                    self._is_plain = False
                    break
                rows += len(block[names[0]].numbers)
                yield block
        if not self._is_plain:
            yield from self._blocks_of_pyarrow(names, rows)

    def _plain_blocks(self, names: Sequence[str]) -> Iterator[Block | None]:
        """Yield the blocks; None, and no more, at one that is not plain."""
        dialect = self.dialect
        with reading(self.path, TABLE), opened(self.path, dialect.are_aligned, dialect.encoding) as file:
            pieces, scratches = _pieces(file, dialect), list[Scratch]()
            for first in itertools.islice(pieces, 1):
                block = _split(first, dialect, names, (), scratches)
                yield block
                if block is not None:
                    known: dict[str, Any] = {"dialect": dialect, "names": names, "scratches": scratches}
                    known["differing"] = _differing(block)
                    yield from map_blocks(functools.partial(_split, **known), pieces)

    def _blocks_of_pyarrow(self, names: Sequence[str], rows: int) -> Iterator[Block]:
        """Yield the blocks that pyarrow splits, without so many rows of the first ones."""
        pa = arrow()
        dialect = self.dialect
        with reading(self.path, TABLE), opened(self.path, dialect.are_aligned, dialect.encoding) as file:
            counting = _Counting(file)
            try:
                batches = counting.taken(_batches(pa, counting, self.dialect, names))
                yield from _encoded(batches, rows)
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


def _differing(block: Block) -> set[str]:
    """Return the names of the columns of the first block that are not deduplicated in others."""
    return {name for name, texts in block.items() if len(texts) > DIFFERING * len(texts.numbers)}


Piece = tuple[bytes, int]
"""Whole lines with `PADDING` behind them, and the place at which their first row begins."""


def _pieces(file: io.BufferedReader, dialect: Dialect) -> Iterator[Piece | None]:
    """Yield the lines of a file, cut where pyarrow cuts them; None, and no more, where they cannot be cut so.

    Lines of a header and blank lines at the end are left out.
    """
    padding, size = bytes(PADDING), _block_bytes(dialect)
    rest, begin, block = b"", -1, file.read(size)
    while block:
        is_last = not file.peek(1)
        is_cut = not is_last and block.endswith(b"\r")  # pyarrow takes it for the end of the line
        end = len(block) if is_cut or is_last else block.rfind(b"\n") + 1
        if not end and rest:  # a row of more than a block
            yield None
            return
        text = b"".join((rest, memoryview(block)[:end], b"\n" if is_cut else b"", b"" if is_last else padding))
        rest, block = block[end:], b""
        if is_last:
            text = text.rstrip(b"\r\n")
            text += b"\n" + padding if text else b""
        if begin < 0 and len(text) > PADDING:
            begin = _begin(text, dialect)
            if begin < 0:
                yield None
                return
        if 0 <= begin < len(text) - PADDING:
            piece, text = (text, begin), b""
            yield piece
            del piece
            begin = 0
        block = file.read(size)
        if is_cut:
            block = block.removeprefix(b"\n")


def _begin(text: bytes, dialect: Dialect) -> int:
    """Return where the first row begins, behind comments and header; -1 if other signs may end lines there, or a quoted
    name holds a line end."""
    begin = 0
    for line in range(dialect.comments + dialect.rows_skipped):
        end = text.find(b"\n", begin)
        is_open = dialect.quotes and line >= dialect.comments and text.count(b'"', begin, end) % 2
        if end < 0 or is_open:
            return -1
        begin = end + 1
    return begin if text.count(b"\r", 0, begin) == text.count(b"\r\n", 0, begin) else -1


def _split(
    piece: Piece | None, dialect: Dialect, names: Sequence[str], differing: Collection[str], scratches: list[Scratch]
) -> Block | None:
    """Return the texts of some lines, None if they are not plain; columns in `differing` are not deduplicated.

    The scratches are those that no thread uses.
    """
    if piece is None:
        return None
    place = {name: number for number, name in enumerate(dialect.names)}
    each = [place[name] for name in differing]
    wanted = [place[name] for name in names]
    try:
        scratch = scratches.pop()
    except IndexError:
        scratch = Scratch()
    texts = split(*piece, dialect.separator, dialect.quotes, len(place), wanted, each, scratch)
    scratches.append(scratch)
    if texts is None:
        return None
    return {
        name: Texts(fields, each_number(len(fields)) if numbers is None else numbers)
        for name, (fields, numbers) in zip(names, texts, strict=True)
    }


def _encoded(batches: Iterator[Any], rows: int) -> Iterator[Block]:
    """Yield the texts of record batches, some computed ahead, without the first `rows`; columns that differ in most
    rows of the first batch are not deduplicated."""
    first = next(batches, None)
    if first is None:
        return
    block = _block(first)
    differing = _differing(block)
    if rows < first.num_rows:
        yield block if not rows else _block(first.slice(rows))
    batches = _behind(batches, rows - first.num_rows)
    yield from map_blocks(lambda batch: _block(batch, differing), batches)


def _behind(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield the record batches without the first `rows`."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(max(rows, 0))
        rows -= batch.num_rows


def _block(batch: Any, differing: Collection[str] = ()) -> Block:
    """Return the texts of a record batch; columns in `differing` are not deduplicated."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {
        name: Texts(column, each_number(len(column))) if name in differing else texts_of(column)
        for name, column in columns
    }


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


# Tables in ARFF, the text format of Weka and OpenML: names and types of columns first, then a row a line.
#
# A row is values between commas, or `{place value, ...}` with the nonzero values; zero is the first name in a
# column of names.

ARFF_HEAD = 1 << 14
ARFF_VALUES = 1 << 20
ARFF = "ARFF (attributes, then a row a line)"
_ATTRIBUTE = re.compile(r"(?i)@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(.*)")


def starts_as_arff(path: str | os.PathLike) -> bool:
    """Return whether the first line that is no comment begins as one of ARFF."""
    lines = (line.strip() for line in read_head(path, ARFF_HEAD).removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first[:11].lower().startswith((b"@relation ", b"@relation\t", b"@attribute ", b"@attribute\t"))


@final
class ArffTable:
    """A file in ARFF, in UTF-8, packed or not; `names` are those of its attributes."""

    nested: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path
        self._zeros: dict[str, str] = {}
        """What stands in a column where a row names no value."""
        self._first = 0
        with open_text(path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode().strip()
                if text.casefold().startswith("@data"):
                    self._first = number + 1
                    break
                if found := _ATTRIBUTE.match(text):
                    self._add(found[1], found[2], number)
        self.names = tuple(self._zeros)
        if not (self.names and self._first):
            raise DataError(f"{path} has no {'@data' if self.names else '@attribute'}; it cannot be read as {ARFF}.")

    def _add(self, name: str, kind: str, line: int) -> None:
        """Take in an attribute; `DataError` for a name that comes twice."""
        name = name[1:-1] if name[0] in "'\"" else name
        if name in self._zeros:
            raise DataError(f"{self.path}:{line}: a second attribute is called {name!r}; give each a name of its own.")
        values = _fields(kind.strip()[1:].rpartition("}")[0]) if kind.startswith("{") else []
        self._zeros[name] = values[0] if values else "0"

    def blocks(self, names: Sequence[str]) -> Iterator[dict[str, Texts]]:
        """Yield the columns of those names, some rows at a time, in their order (`DataError`)."""
        pa = arrow()
        place = {name: at for at, name in enumerate(self.names)}
        with reading(self.path, ARFF):
            every = (row for _, row in self._rows())
            at_once = max(1, ARFF_VALUES // len(self.names))
            while names and (rows := list(itertools.islice(every, at_once))):
                yield {name: texts_of(pa.array([row[place[name]] for row in rows], pa.string())) for name in names}

    def place(self, row: int) -> str:
        """File and line of the row, from 0."""
        return place_at(self.path, (line for line, _ in self._rows()), row)

    def layout(self) -> dict[str, Any]:
        """Nothing: ARFF says itself how it is laid out."""
        return {}

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the values of each row with the number of its line (`DataError`)."""
        zeros = list(self._zeros.values())
        with open_text(self.path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode().strip()
                if number < self._first or not text or text.startswith("%"):
                    continue
                if text.startswith("{"):
                    yield number, self._of_pairs(text, zeros.copy(), number)
                    continue
                row = _fields(text)
                if len(row) != len(zeros):
                    counts = f"this row has {len(row):,} values and the file {len(zeros):,} attributes"
                    raise DataError(f"{self.path}:{number}: {counts}.")
                yield number, row

    def _of_pairs(self, text: str, row: list[str], line: int) -> list[str]:
        """Return the values of a row whose pairs of place and value stand between braces (`DataError`)."""
        for pair in _fields(text[1:].rpartition("}")[0]):
            place, _, value = pair.partition(" ")
            if not place.isdecimal() or int(place) >= len(row) or not value.strip():
                what = f"{pair[:40]!r} is no place from 0 to {len(row) - 1} with its value"
                raise DataError(f"{self.path}:{line}: {what}.")
            row[int(place)] = value.strip().strip("'\"")
        return row


def _fields(text: str) -> list[str]:
    """Return what stands between commas, quotes of either kind taken off.

    >>> _fields("1.5, 'a, b',?")
    ['1.5', 'a, b', '?']
    """
    quote = '"' if '"' in text and "'" not in text else "'"
    row = next(csv.reader([text], quotechar=quote, skipinitialspace=True, escapechar="\\"), [])
    return [value.strip() for value in row]
