"""Tables block by block, so that memory holds some thousand rows and not the file: CSV and its kin, and Parquet.

Both give each column as texts; a number that Parquet holds is the text that it is written as.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Protocol, final

from workbench.data.errors import DataError
from workbench.data.files.opened import head, opened, packing
from workbench.data.files.reading import reading
from workbench.data.tables import dialect as dialects
from workbench.data.tables.arrow import Texts, arrow, each_of, texts_of
from workbench.data.tables.dialect import Dialect

BLOCK_BYTES, BLOCK_BYTES_COLUMN, LARGEST_BLOCK = 1 << 22, 1 << 12, 1 << 28
"""Bytes of text that are split into columns at once: of wide tables more, since each column of a block costs 0.1 ms."""
DIFFERING = 0.75
"""Share of the rows of a block, above which looking for texts that come again takes longer than it saves."""
BLOCKS_AHEAD = 4
"""Blocks that are read before they are taken."""
BLOCK_ROWS, BLOCK_VALUES = 1 << 15, 1 << 23
"""Rows of a Parquet file, and values, that are read at once, at most."""
TABLE = "a table (CSV, TSV or Parquet)"

Block = dict[str, Texts]
"""Columns of some rows, by name."""


class Table(Protocol):
    """A file of named columns. `nested` names those that hold lists or structures, which are no values."""

    path: str | os.PathLike
    names: tuple[str, ...]
    nested: frozenset[str]

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """The columns of those names, some rows at a time, in their order (`DataError`)."""

    def place(self, row: int) -> str:
        """Place of the row, counted from 0, in the file, in words."""

    def layout(self) -> dict[str, Any]:
        """Parameters by which another file is split as this one is."""


def table_of(
    path: str | os.PathLike, separator: str | None = None, header: bool | None = None, quotes: bool = True
) -> Table:
    """The table in the file; of text, `separator` and `header` are guessed where they are None (`DataError`)."""
    arrow()
    with reading(path, TABLE):
        if head(path, 4) == b"PAR1":
            if packed := packing(path):
                raise DataError(
                    f"{path} is a Parquet file packed by {packed}; unpack it, its columns are packed by themselves."
                )
            return ParquetTable(path)
        return TextTable(path, dialects.dialect_of(path, separator, header, quotes))


@final
class TextTable:
    """A text file of columns, in UTF-8, packed or not."""

    nested: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike, dialect: Dialect) -> None:
        self.path, self.dialect = path, dialect
        self.names = dialect.names

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """The columns of those names, some rows at a time, in their order (`DataError`)."""
        if not names:
            return
        pa = arrow()
        with reading(self.path, TABLE), opened(self.path) as file:
            counting, differing = _Counting(file), set[str]()
            try:
                for batch in _batches(pa, counting, self.dialect, names):
                    counting.is_awaited = False
                    yield {
                        name: _texts(name, column, differing) for name, column in zip(names, batch.columns, strict=True)
                    }
                    counting.take()
            except pa.ArrowInvalid as error:
                dialects.refuse_fault(self.path, self.dialect)
                if "straddling" in str(error):
                    raise DataError(
                        f"{self.path} has a row of more than {_block_bytes(self.dialect):,} bytes; is it a table?"
                    ) from None
                raise
            finally:
                counting.is_awaited = True
        if self.dialect.quotes and counting.quotes % 2:  # a quote that is never closed makes one row of all that follow
            dialects.refuse_fault(self.path, self.dialect)

    def place(self, row: int) -> str:
        """File and line of the row, from 0."""
        return f"{self.path}:{dialects.line_of(self.path, self.dialect, row)}"

    def layout(self) -> dict[str, Any]:
        """Layout of the text, by name: separator, header and quotes."""
        return {name: getattr(self.dialect, name) for name in ("separator", "header", "quotes")}


def _texts(name: str, column: Any, differing: set[str]) -> Texts:
    """The texts of a column; of those that are `differing`, nearly each row another, same ones are not looked for."""
    if name in differing:
        return each_of(column)
    texts = texts_of(column)
    if len(texts.distinct) > DIFFERING * len(texts.numbers):
        differing.add(name)
    return texts


def _batches(pa: Any, file: Any, dialect: Dialect, names: Sequence[str]) -> Iterator[Any]:
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
    """Bytes of a block; a row is shorter."""
    return max(BLOCK_BYTES, min(BLOCK_BYTES_COLUMN * len(dialect.names), LARGEST_BLOCK))


@final
class _Counting:
    """A file that counts the double quotes that are read, and is read not far ahead: pyarrow would, by 32 blocks."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.quotes, self.closed = file, 0, False
        self._ahead = threading.Semaphore(BLOCKS_AHEAD)
        self.is_awaited = True
        """Whether nothing goes on before there is another block: none comes of some, as of blank lines."""

    def take(self) -> None:
        """Say that a block was taken, and another one may be read."""
        self.is_awaited = True
        self._ahead.release()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, when few blocks wait to be taken."""
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
    """The column without a dictionary that may hold values which no row has."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


@final
class ParquetTable:
    """A Parquet file."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = path
        pa = arrow()
        with pa.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
        self.names = tuple(schema.names)
        dialects.refuse_repeated(path, self.names)
        self.nested = frozenset(field.name for field in schema if pa.types.is_nested(field.type))

    def blocks(self, names: Sequence[str]) -> Iterator[Block]:
        """The columns of those names, some rows at a time, in their order (`DataError`)."""
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
