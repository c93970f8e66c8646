"""Tables block by block, so that memory holds some thousand rows and not the file: CSV and its kin, JSON, and Parquet.

Each gives its columns as texts; a number that Parquet or JSON holds is the text that it is written as.
"""

import csv
import functools
import io
import itertools
import mmap
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
from workbench.data.tables.splitting import NEWLINE, OF_NUMBERS, PADDING, RETURN, Buffers, Piece, Scratch, split

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
        """Yield the rows in blocks, in file order: a dict from each column name in `names` to its `Texts`.

        A block holds some thousand rows; all columns of it have the same rows. Nothing is yielded if `names` is empty.
        Raises DataError for rows that cannot be read.
        """

    def place(self, row: int) -> str:
        """Return where a row (index from 0) stands in the file, as text for error messages, such as "clicks.csv:12"."""

    def layout(self) -> dict[str, Any]:
        """Return the `table_of` parameters that split another file alike, by name; {} if the format fixes them."""


def table_of(
    path: str | os.PathLike,
    optional: Sequence[str] = (),
    separator: str | None = None,
    header: bool | None = None,
    quotes: bool = True,
    decimal: str | None = None,
    encoding: str = "utf-8",
) -> Table:
    """Open the table file at `path` and return its reader; the format is recognised by its first bytes.

    `optional` are names of columns that JSON may lack. Parquet, Feather, JSON lines and ARFF need no layout; all other
    files are separated text. There `separator`, `header` and `decimal` are guessed from the first rows if None, and
    `quotes` says whether double quotes enclose fields. With a `separator` the file is always read as separated text,
    unless it is Parquet or Feather. Raises DataError if the file cannot be read, pyarrow is not installed, or a Parquet
    or Feather file is compressed as a whole.
    """
    arrow()
    with reading(path, TABLE):
        first = read_head(path, 6)
        if first.startswith((b"PAR1", b"ARROW1")):
            is_parquet = first.startswith(b"PAR1")
            if packed := compression_of(path):
                what = f"{path} is a {'Parquet' if is_parquet else 'Feather'} file packed by {packed}"
                raise DataError(f"{what}; unpack it, its columns are packed by themselves.")
            return ColumnarTable(path, is_parquet)
        if separator is None and starts_as_json(path):
            return (table := JsonTable(path, optional)).by_fields() or table
        if separator is None and starts_as_arff(path):
            return ArffTable(path)
        return TextTable(path, dialect_of(path, separator, header, quotes, decimal, encoding))


@final
class TextTable:
    """A text file of columns, in UTF-8, packed or not."""

    nested: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike, dialect: Dialect) -> None:
        """Store path and layout of a separated text file; nothing is read."""
        self.path, self.dialect = path, dialect
        self.names = dialect.names
        self._is_plain = dialect.separator not in OF_NUMBERS

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the rows in blocks, in file order: a dict of column name to `Texts` for each column in `names`.

        With a decimal comma, numbers are yielded with a point in its place. Nothing is yielded if `names` is empty.
        Raises DataError with file and line for malformed rows.
        """
        if not names:
            return
        blocks = self._blocks(names)
        yield from map(_with_points, blocks) if self.dialect.decimal == "," else blocks

    def _blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield blocks of the columns `names`, split by compiled code as long as it can, then by pyarrow.

        The first block it refuses clears `_is_plain`, so that later passes use pyarrow at once.
        """
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
        """Yield the blocks that compiled code splits; None, as the last item, at the first block that it cannot split.

        Later blocks are split on several threads; columns whose texts differ in most rows of the first are not
        deduplicated.
        """
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
        """Yield the blocks that pyarrow splits, leaving out the first `rows` rows of the file.

        Raises DataError for a malformed row, a row longer than a block, or a double quote that is never closed.
        """
        pa = arrow()
        dialect = self.dialect
        with reading(self.path, TABLE), opened(self.path, dialect.are_aligned, dialect.encoding) as file:
            counting = _Counting(file)
            try:
                batches = counting.taken(_batches(pa, counting, self.dialect, names))
                yield from _encode_batches(batches, rows)
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
        """Return "path:line" of a row, counted from 0 without the header. Reads the file up to there."""
        lines = (line for line, _ in records(self.path, self.dialect))
        return place_at(self.path, lines, row + int(self.dialect.header))

    def layout(self) -> dict[str, Any]:
        """Return separator, header and quotes by name, with decimal and encoding if not "." and "utf-8"."""
        dialect = self.dialect
        layout = {"separator": dialect.separator, "header": dialect.header, "quotes": dialect.quotes}
        layout |= {"separator": BLANKS} if dialect.are_aligned else {}
        layout |= {"decimal": dialect.decimal} if dialect.decimal != "." else {}
        return layout | ({"encoding": dialect.encoding} if dialect.encoding != "utf-8" else {})


def _with_points(block: Block) -> Block:
    """Return a new block in which numbers have a decimal point in place of the comma: "1.234,5" becomes "1234.5"."""
    return {name: Texts(_with_point(texts.distinct), texts.numbers) for name, texts in block.items()}


def _with_point(distinct: Any) -> Any:
    """Return a pyarrow string array with decimal points: "3,5" becomes "3.5", "1.234,5" becomes "1234.5".

    Texts that do not look like such a number are left as they are.
    """
    pa = arrow()
    grouped = pa.compute.match_substring_regex(distinct, r"^[^0-9.,]*[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?[^0-9.,]*$")
    if pa.compute.any(grouped).as_py():
        plain = pa.compute.replace_substring(distinct.filter(grouped), ".", "")
        distinct = pa.compute.replace_with_mask(distinct, grouped, plain)
    pattern = r"^([^0-9.,]*[0-9]*),([0-9]+[^0-9.,]*)$"
    return pa.compute.replace_substring_regex(distinct, pattern=pattern, replacement=r"\1.\2")


def _differing(block: Block) -> set[str]:
    """Return the names of columns whose texts differ in most rows: later blocks do not deduplicate them."""
    return {name for name, texts in block.items() if len(texts) > DIFFERING * len(texts.numbers)}


def _pieces(file: io.BufferedReader, dialect: Dialect) -> Iterator[Piece | None]:
    """Yield consecutive blocks of whole lines of a file, None, as the last item, if it cannot be cut.

    `begin` of the first piece is where its first row begins, behind comments and header. The file cannot be cut if a
    row exceeds a block, or lines above the rows have quoted line ends or lone carriage returns. The memory of a piece
    is taken again once its text is gone.
    """
    size, buffers = _block_bytes(dialect), Buffers()
    rest, begin, is_cut, is_last = b"", -1, False, False
    while not is_last:
        letters, text, _ = buffers.take(len(rest) + size + PADDING + 1)
        letters[: len(rest)] = rest
        with memoryview(letters) as view:
            stop = len(rest) + file.readinto(view[len(rest) : len(rest) + size])
        if is_cut and stop and letters[0] == NEWLINE:
            letters[: stop - 1] = letters[1:stop]
            stop -= 1
        if stop == len(rest):
            return
        is_last = not file.peek(1)
        is_cut = not is_last and letters[stop - 1] == RETURN  # pyarrow takes it for the end of the line
        end = stop if is_cut or is_last else letters.rfind(b"\n", len(rest), stop) + 1
        if not end and rest:  # a row of more than a block
            yield None
            return
        rest = letters[end:stop]
        while is_last and end and letters[end - 1] in (RETURN, NEWLINE):
            end -= 1
        if is_cut or (is_last and end):
            letters[end], end = NEWLINE, end + 1
        letters[end : end + PADDING] = bytes(PADDING)
        if begin < 0 < end and (begin := _begin(letters, end, dialect)) < 0:
            yield None
            return
        piece = Piece(letters, text[: end + PADDING], begin)
        del text
        if 0 <= begin < end:
            yield piece
            begin = 0
        del piece


def _begin(text: mmap.mmap, stop: int, dialect: Dialect) -> int:
    """Return the byte offset of the first row in text[:stop], behind comments and header; -1 if it is unknown.

    That is so if `text` has fewer lines, a quoted name contains a line end, or a carriage return stands alone before
    the first row.
    """
    begin = 0
    for line in range(dialect.comments + dialect.rows_skipped):
        end = text.find(b"\n", begin, stop)
        is_open = dialect.quotes and line >= dialect.comments and text[begin:end].count(b'"') % 2
        if end < 0 or is_open:
            return -1
        begin = end + 1
    return begin if text[:begin].count(b"\r") == text[:begin].count(b"\r\n") else -1


def _split(
    piece: Piece | None, dialect: Dialect, names: Sequence[str], differing: Collection[str], scratches: list[Scratch]
) -> Block | None:
    """Split one piece into the columns `names`; return {name: Texts}, or None if the piece is not plain.

    Columns in `differing` are not deduplicated: each row has its own text. `scratches` is a pool of work buffers shared
    by threads: one is popped (or created) and returned to the pool afterwards. A `piece` of None gives None.
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
    texts = split(piece, dialect.separator, dialect.quotes, len(place), wanted, each, scratch)
    scratches.append(scratch)
    if texts is None:
        return None
    return {
        name: Texts(fields, each_number(len(fields)) if numbers is None else numbers)
        for name, (fields, numbers) in zip(names, texts, strict=True)
    }


def _encode_batches(batches: Iterator[Any], rows: int) -> Iterator[Block]:
    """Yield blocks made of pyarrow record batches, leaving out the first `rows` rows.

    Later batches are converted on several threads; columns that differ in most rows of the first are not deduplicated.
    """
    first = next(batches, None)
    if first is None:
        return
    block = _block(first)
    differing = _differing(block)
    if rows < first.num_rows:
        yield block if not rows else _block(first.slice(rows))
    batches = _skip_rows(batches, rows - first.num_rows)
    yield from map_blocks(lambda batch: _block(batch, differing), batches)


def _skip_rows(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield pyarrow record batches without their first `rows` rows in total; a batch is sliced, not copied."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(max(rows, 0))
        rows -= batch.num_rows


def _block(batch: Any, differing: Collection[str] = ()) -> Block:
    """Return {column name: Texts} of a pyarrow record batch; columns in `differing` are not deduplicated."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return {
        name: Texts(column, each_number(len(column))) if name in differing else texts_of(column)
        for name, column in columns
    }


def _batches(pa: Any, file: Any, dialect: Dialect, names: Sequence[str]) -> Iterator[Any]:
    """Yield the pyarrow record batches of a CSV stream, the columns `names` as strings, empty fields as "".

    `pa` is the pyarrow package, `file` a binary stream. Nothing is yielded for a file without rows. Raises
    pyarrow.ArrowInvalid for malformed rows.
    """
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
    """Return the block size in bytes, 4 MiB to 256 MiB, growing with the columns; a row must be shorter."""
    return max(BLOCK_BYTES, min(BLOCK_BYTES_COLUMN * len(dialect.names), LARGEST_BLOCK))


@final
class _Counting:
    """A file that counts the double quotes that are read, and is read not far ahead: pyarrow would, by 32 blocks."""

    def __init__(self, file: BinaryIO) -> None:
        """Wrap `file`; a semaphore allows `BLOCKS_AHEAD` reads before the first block is consumed."""
        self._file, self.quotes, self.closed = file, 0, False
        self._ahead = threading.Semaphore(BLOCKS_AHEAD)
        self.is_awaited = True
        """Whether nothing goes on before there is another block: none comes of some, as of blank lines."""

    def taken(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """Yield `blocks`, made from this file by another thread; each consumed block allows one more read."""
        for block in blocks:
            self.is_awaited = False
            yield block
            self.is_awaited = True
            self._ahead.release()

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes of the file (all if -1) and count their double quotes in `quotes`.

        Blocks while `BLOCKS_AHEAD` reads are unconsumed, except when the consumer waits for a block (`is_awaited`).
        """
        while not self._ahead.acquire(timeout=0.1) and not self.is_awaited:
            pass
        text = self._file.read(size)
        self.quotes += text.count(b'"')
        return text

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Set `closed`; the wrapped file stays open, as its owner closes it."""
        self.closed = True


def _plain(pa: Any, column: Any) -> Any:
    """Return a pyarrow array with a dictionary-encoded one decoded: its dictionary may hold values that no row has."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


@final
class ColumnarTable:
    """A Parquet file, or an Arrow file (Feather of version 2)."""

    def __init__(self, path: str | os.PathLike, is_parquet: bool) -> None:
        """Read column names and nested columns of the schema; DataError if two columns have one name."""
        self.path, self.is_parquet = path, is_parquet
        pa = arrow()
        with pa.OSFile(os.fspath(path)) as file:
            schema = pa.parquet.read_schema(file) if is_parquet else pa.ipc.open_file(file).schema
        self.names = tuple(schema.names)
        refuse_repeated(path, self.names)
        self.nested = frozenset(field.name for field in schema if pa.types.is_nested(field.type))

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield {name: Texts} of the columns `names`, block by block, values as text; DataError if damaged."""
        pa = arrow()
        with reading(self.path, TABLE), pa.OSFile(os.fspath(self.path)) as file:
            for batch in self._batches(file, names):
                yield {name: texts_of(_plain(pa, batch.column(name))) for name in names}

    def _batches(self, file: Any, names: Sequence[str]) -> Iterator[Any]:
        """Yield the record batches of the opened file; of an Arrow file those with rows, ArrowInvalid if damaged."""
        pa = arrow()
        if self.is_parquet:
            rows = max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(len(names), 1)))
            yield from pa.parquet.ParquetFile(file).iter_batches(batch_size=rows, columns=list(names))
            return
        batches = pa.ipc.open_file(file)
        for number in range(batches.num_record_batches if names else 0):
            batch = batches.get_batch(number)
            batch.validate(full=True)
            if batch.num_rows:
                yield batch

    def place(self, row: int) -> str:
        """Return "path, row N" for the row index N, counted from 0."""
        return f"{self.path}, row {row}"

    def layout(self) -> dict[str, Any]:
        """Return an empty dict: such a file has no layout parameters."""
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
    """Return whether the file begins with @relation or @attribute, blank lines and % comments skipped."""
    lines = (line.strip() for line in read_head(path, ARFF_HEAD).removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first[:11].lower().startswith((b"@relation ", b"@relation\t", b"@attribute ", b"@attribute\t"))


@final
class ArffTable:
    """A file in ARFF, in UTF-8, packed or not; `names` are those of its attributes."""

    nested: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike) -> None:
        """Read the header: attribute names, the value of each that sparse rows leave out, and the data line.

        That value is the first name of a nominal attribute, else "0". Raises DataError if the header has no @attribute
        or no @data line, or two attributes of one name.
        """
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
        """Add an attribute to `_zeros`; `kind` is the text behind its name, such as "numeric" or "{a, b}".

        Raises DataError with file and `line` if the name, quotes removed, has occurred before.
        """
        name = name[1:-1] if name[0] in "'\"" else name
        if name in self._zeros:
            raise DataError(f"{self.path}:{line}: a second attribute is called {name!r}; give each a name of its own.")
        values = _fields(kind.strip()[1:].rpartition("}")[0]) if kind.startswith("{") else []
        self._zeros[name] = values[0] if values else "0"

    def blocks(self, names: Sequence[str]) -> Iterator[dict[str, Texts]]:
        """Yield the rows in blocks, in file order: {name: Texts} of the columns `names`; nothing if `names` is empty.

        Raises DataError with file and line for a row with too few or too many values.
        """
        pa = arrow()
        place = {name: at for at, name in enumerate(self.names)}
        with reading(self.path, ARFF):
            every = (row for _, row in self._rows())
            at_once = max(1, ARFF_VALUES // len(self.names))
            while names and (rows := list(itertools.islice(every, at_once))):
                yield {name: texts_of(pa.array([row[place[name]] for row in rows], pa.string())) for name in names}

    def place(self, row: int) -> str:
        """Return "path:line" of a row, counted from 0. Reads the file up to there."""
        return place_at(self.path, (line for line, _ in self._rows()), row)

    def layout(self) -> dict[str, Any]:
        """Return an empty dict: an ARFF file has no layout parameters."""
        return {}

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number from 1, values as text in the order of `names`) of each row, sparse rows filled up.

        Raises DataError with file and line if a row has another number of values than the file has attributes.
        """
        zeros = list(self._zeros.values())
        with open_text(self.path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode().strip()
                if number < self._first or not text or text.startswith("%"):
                    continue
                if text.startswith("{"):
                    yield number, self._fill_from_pairs(text, zeros.copy(), number)
                    continue
                row = _fields(text)
                if len(row) != len(zeros):
                    counts = f"this row has {len(row):,} values and the file {len(zeros):,} attributes"
                    raise DataError(f"{self.path}:{number}: {counts}.")
                yield number, row

    def _fill_from_pairs(self, text: str, row: list[str], line: int) -> list[str]:
        """Fill `row` in place from the text "{index value, ...}" of a sparse row, and return it.

        `row` holds the default of each column on entry. Raises DataError with file and `line` for an index out of range
        or without a value.
        """
        for pair in _fields(text[1:].rpartition("}")[0]):
            place, _, value = pair.partition(" ")
            if not place.isdecimal() or int(place) >= len(row) or not value.strip():
                what = f"{pair[:40]!r} is no place from 0 to {len(row) - 1} with its value"
                raise DataError(f"{self.path}:{line}: {what}.")
            row[int(place)] = value.strip().strip("'\"")
        return row


def _fields(text: str) -> list[str]:
    """Split a line at commas into stripped values; single quotes (or double ones, if there are no single) are removed.

    >>> _fields("1.5, 'a, b',?")
    ['1.5', 'a, b', '?']
    """
    quote = '"' if '"' in text and "'" not in text else "'"
    row = next(csv.reader([text], quotechar=quote, skipinitialspace=True, escapechar="\\"), [])
    return [value.strip() for value in row]
