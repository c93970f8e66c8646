"""Tables block by block, or whole in memory as pyarrow holds them: CSV and its kin, JSON, Parquet, Feather and frames.

Text stays text until a column is known to hold numbers; numbers of Parquet, Feather and frames are numbers.
"""

import csv
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, final

from kernels import threads
from workbench.data.errors import DataError
from workbench.data.files.opened import compression_of, open_text, place_at, read_head
from workbench.data.files.reading import reading
from workbench.data.tables.dialect import BLANKS, Dialect, dialect_of, opened, records, refuse_fault, refuse_repeated
from workbench.data.tables.json_lines import JsonTable, starts_as_json
from workbench.data.tables.texts import MISSING_WORDS, Texts, arrow, kind_of, texts_of

BLOCK_BYTES, BLOCK_BYTES_COLUMN, LARGEST_BLOCK = 1 << 20, 1 << 12, 1 << 28
"""Bytes of text that are split into columns at once, at most so many in a file whose rows are long."""
DIFFERING = 0.75
"""Share of the first rows, above which looking for texts that come again takes longer than it saves."""
ROWS_LOOKED_AT = 1 << 10
_DIGITS = str.maketrans("", "", "0123456789+-.,eE")
BLOCK_ROWS, BLOCK_VALUES = 1 << 15, 1 << 23
"""Rows of a Parquet file, and values, that are read at once, at most."""
TABLE = "a table (CSV, TSV, JSON lines, ARFF, Parquet or Feather)"

Block = dict[str, Texts]
"""Columns of some rows, by name."""


class Table(Protocol):
    """Named columns of a file or in memory; `kinds` are those of columns whose type tells it (`texts.kind_of`)."""

    path: str | os.PathLike
    names: tuple[str, ...]
    kinds: Mapping[str, str]

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
    unless it is Parquet or Feather. Raises DataError if the file cannot be read, or a Parquet or Feather file is
    compressed as a whole.
    """
    with reading(path, TABLE):
        first = read_head(path, 6)
        if first.startswith((b"PAR1", b"ARROW1")):
            is_parquet = first.startswith(b"PAR1")
            if packed := compression_of(path):
                what = f"{path} is a {'Parquet' if is_parquet else 'Feather'} file packed by {packed}"
                raise DataError(f"{what}; unpack it, its columns are packed by themselves.")
            return columnar_file(path, is_parquet)
        if separator is None and starts_as_json(path):
            return (table := JsonTable(path, optional)).by_fields() or table
        if separator is None and starts_as_arff(path):
            return ArffTable(path)
        return TextTable(path, dialect_of(path, separator, header, quotes, decimal, encoding))


def joined(table: Table, names: Sequence[str]) -> Block:
    """Return all rows of a table as one block, {name: Texts} of the columns `names`."""
    if isinstance(table, TextTable):
        return table.whole(names)
    pa, blocks = arrow(), list(table.blocks(names))
    if len(blocks) == 1:
        return blocks[0]
    block = {}
    for name in names:
        columns = [_column(part.pop(name)) for part in blocks] or [pa.array([], pa.string())]
        kinds = {str(column.type) for column in columns}
        if len(kinds) > 1:
            columns = [column.cast(pa.string()) for column in columns]
        block[name] = texts_of(pa.chunked_array(columns))
    return block


def _column(texts: Texts) -> Any:
    """Return a column of a block as a pyarrow array with a null for each missing value."""
    pa = arrow()
    return texts.values if texts.is_each else texts.values.take(pa.array(texts.codes, mask=texts.codes < 0))


@final
class TextTable:
    """A text file of columns, in UTF-8, packed or not."""

    def __init__(self, path: str | os.PathLike, dialect: Dialect) -> None:
        """Store path and layout of a separated text file; nothing is read."""
        self.path, self.dialect = path, dialect
        self.names = dialect.names
        self.kinds: Mapping[str, str] = {}

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield the rows in blocks, in file order: a dict of column name to `Texts` for each column in `names`.

        With a decimal comma, numbers are yielded with a point in its place. Nothing is yielded if `names` is empty.
        Raises DataError with file and line for malformed rows.
        """
        yield from self._read(names, lambda *options: arrow().csv.open_csv(*options)) if names else ()

    def whole(self, names: Sequence[str]) -> Block:
        """Return all rows as one block, split by several threads; otherwise as `blocks`."""
        none = Texts(arrow().array([], arrow().string()))
        blocks = self._read(names, lambda *options: (arrow().csv.read_csv(*options) for _ in range(1)))
        return next(blocks, dict.fromkeys(names, none))

    def _read(self, names: Sequence[str], read: Any) -> Iterator[Block]:
        """Yield the blocks of what `read` returns of a file and the options of pyarrow: batches, or tables.

        Raises DataError for a double quote that is never closed.
        """
        last = ""
        with reading(self.path, TABLE):
            for columns in self._batches(names, read):
                block = {name: self._texts(columns.pop(name)) for name in names}
                last = "".join(texts.text(len(texts) - 1) for texts in block.values() if texts.is_text and len(texts))
                yield block
            if self.dialect.quotes and "\n" in last:
                refuse_fault(
                    self.path, self.dialect
                )  # a quote that is never closed makes one value of all that follows

    def _batches(self, names: Sequence[str], read: Any) -> Iterator[dict[str, Any]]:
        """Yield the columns of batches, or of a table, as pyarrow gives them in the types of `_types`; keeps none.

        Columns that are taken for fractions and hold something else are text from the row on that was read last.
        Raises DataError for a malformed row or a row longer than a block.
        """
        pa, done = arrow(), 0
        while True:
            row = 0
            with opened(self.path, self.dialect.are_aligned, self.dialect.encoding) as file:
                try:
                    for batch in read(pa.PythonFile(file, mode="r"), *self._options(names)):
                        row += batch.num_rows
                        if row > done:
                            rest = batch.slice(max(0, batch.num_rows - row + done))
                            self._refuse_infinite(rest, names)
                            columns, done = dict(zip(names, rest.columns, strict=True)), row
                            del batch, rest  # so that a column is held no more once it is taken out
                            yield columns
                    return
                except pa.ArrowInvalid as error:
                    if found := re.match(
                        r"In CSV column #([0-9]+): (Row #[0-9]+: )?CSV conversion error to double", str(error)
                    ):
                        self._types[names[int(found[1])]] = pa.string()
                        continue
                    if "Empty CSV file" in str(error):
                        return
                    refuse_fault(self.path, self.dialect)
                    if "straddling" in str(error):
                        what = f"{self.path} has a row of more than {self._block_bytes():,} bytes; is it a table?"
                        raise DataError(what) from None
                    raise

    def _refuse_infinite(self, batch: Any, names: Sequence[str]) -> None:
        """Raise the error of pyarrow for a column with words such as inf, which it takes for numbers."""
        pa = arrow()
        for place, name in enumerate(names):
            column = batch.column(name)
            if column.type == pa.float64() and pa.compute.all(pa.compute.is_finite(column)).as_py() is False:
                raise pa.ArrowInvalid(f"In CSV column #{place}: CSV conversion error to double: infinite")

    def _texts(self, column: Any) -> Texts:
        """Return a column as `Texts`, with points for decimal commas; plain texts are not made distinct."""
        pa = arrow()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        texts = Texts(column) if column.type == pa.string() else texts_of(column)
        if self.dialect.decimal == "," and texts.is_text:
            return Texts(_with_point(texts.values), None if texts.is_each else texts.codes)
        return texts

    def _options(self, names: Sequence[str]) -> tuple[Any, Any, Any]:
        """Return the options by which pyarrow reads the columns `names`, empty texts as "".

        Types are fixed here, as pyarrow would guess them from the first block and fail at a later one.
        """
        csv, dialect = arrow().csv, self.dialect
        read = csv.ReadOptions(
            column_names=dialect.names,
            skip_rows=dialect.comments,
            skip_rows_after_names=dialect.rows_skipped,
            block_size=self._block_bytes(),
            use_threads=threads.available_threads() > 2,  # two take the time of one, and twice the memory
        )
        parse = csv.ParseOptions(
            delimiter=dialect.separator, quote_char='"' if dialect.quotes else False, newlines_in_values=dialect.quotes
        )
        convert = csv.ConvertOptions(
            column_types={name: self._types[name] for name in names},
            include_columns=names,
            null_values=MISSING_WORDS,
            strings_can_be_null=False,
            decimal_point=dialect.decimal,
        )
        return read, parse, convert

    @functools.cached_property
    def _types(self) -> dict[str, Any]:
        """The pyarrow type that each column is read as: fractions as numbers, texts that differ mostly as text.

        Others are codes of distinct texts. The first rows tell.
        """
        pa = arrow()
        rows = [row for _, row in itertools.islice(records(self.path, self.dialect), ROWS_LOOKED_AT)]
        kinds = dict.fromkeys(self.names, pa.dictionary(pa.int32(), pa.string()))
        for name, column in zip(self.names, zip(*rows[int(self.dialect.header) :], strict=False), strict=False):
            values = [value for value in column if value not in MISSING_WORDS]
            if len({*values}) > DIFFERING * len(column):
                are_numbers = "".join(values).translate(_DIGITS) == "" and any("." in value for value in values)
                kinds[name] = pa.float64() if are_numbers else pa.string()
        return kinds

    def _block_bytes(self) -> int:
        """Return the block size in bytes, 1 MiB to 256 MiB, growing with the columns; a row must be shorter."""
        return max(BLOCK_BYTES, min(BLOCK_BYTES_COLUMN * len(self.names), LARGEST_BLOCK))

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


@final
class ColumnarTable:
    """Columns with types: of a Parquet file, an Arrow file (Feather of version 2), or a frame in memory."""

    def __init__(
        self, path: str | os.PathLike, schema: Any, blocks: Callable[[Sequence[str]], Iterator[Block]]
    ) -> None:
        """Store what yields blocks of the columns that it is given, and the kinds that the schema of pyarrow tells.

        Raises DataError if two columns have one name.
        """
        self.path, self._blocks = path, blocks
        self.names, self.schema = tuple(schema.names), schema
        refuse_repeated(path, self.names)
        self.kinds: Mapping[str, str] = {field.name: kind for field in schema if (kind := kind_of(field.type))}

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """Yield {name: Texts} of the columns `names`, block by block; DataError if the file is damaged."""
        return self._blocks(names)

    def place(self, row: int) -> str:
        """Return "path, row N" for the row index N, counted from 0."""
        return f"{self.path}, row {row}"

    def layout(self) -> dict[str, Any]:
        """Return an empty dict: such a file has no layout parameters."""
        return {}


def columnar_file(path: str | os.PathLike, is_parquet: bool) -> ColumnarTable:
    """Return a Parquet or Arrow file, of which the schema is read; its blocks raise DataError if it is damaged."""
    pa = arrow()
    with pa.OSFile(os.fspath(path)) as file:
        schema = pa.parquet.read_schema(file) if is_parquet else pa.ipc.open_file(file).schema

    def blocks(names: Sequence[str]) -> Iterator[Block]:
        """Yield {name: Texts} of the columns `names`, block by block; nothing if there are none."""
        with reading(path, TABLE), pa.OSFile(os.fspath(path)) as file:
            rows = max(1, min(BLOCK_ROWS, BLOCK_VALUES // max(len(names), 1)))
            batches = (
                pa.parquet.ParquetFile(file).iter_batches(batch_size=rows, columns=list(names))
                if is_parquet
                else _record_batches(pa.ipc.open_file(file))
            )
            for batch in batches if names else ():
                yield {name: texts_of(batch.column(name)) for name in names}

    return ColumnarTable(path, schema, blocks)


def _record_batches(file: Any) -> Iterator[Any]:
    """Yield the record batches of an opened Arrow file that have rows; ArrowInvalid if damaged."""
    for number in range(file.num_record_batches):
        batch = file.get_batch(number)
        batch.validate(full=True)
        if batch.num_rows:
            yield batch


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
        self.kinds: Mapping[str, str] = {}
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
