"""A table into a matrix and labels, block by block; what a block needs of all rows is learned in a pass before."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError
from workbench.data.labels.meaning import Wanted
from workbench.data.tables.arrow import MISSING_WORDS, cleaned
from workbench.data.tables.blocks import Block, Table
from workbench.data.tables.categories import Hashed, OneHot
from workbench.data.tables.encoding import Encoded, Encoder, WrongValueError
from workbench.data.tables.label_column import LabelColumn
from workbench.data.tables.numbers import Numbers
from workbench.data.tables.schema import Column
from workbench.data.tables.words import Words
from workbench.formats.compressed import assemble
from workbench.formats.indices import INT32_LIMIT, index_dtype

ENCODERS: dict[tuple[str, str], Callable[[Column], Encoder]] = {
    ("category", "one-hot"): OneHot,
    ("category", "hashed"): Hashed,
    ("number", "binned"): Numbers,
    ("number", "keep"): Numbers,
    ("number", "log"): Numbers,
    ("text", "hashed"): Words,
}
"""What encodes a column of each kind and encoding."""


class Part(NamedTuple):
    """Some rows of a table: `x` csr [rows, features] float32, canonical; labels as they stand, an array or tuples."""

    x: scipy.sparse.csr_array
    labels: Any


@final
@dataclass(frozen=True)
class Learned:
    """A table of which all is known that its rows are encoded by: `columns` in order, with values, edges, divisors."""

    table: Table
    columns: tuple[Column, ...]
    labels: LabelColumn

    def parts(self) -> Iterator[Part]:
        """All rows, in order; memory holds a block (`DataError`)."""
        encoders = {column.name: _encoder(column) for column in features_of(self.columns)}
        label = self.labels.column
        words = _words([*features_of(self.columns), label])
        try:
            for block, row in _blocks(self.table, words):
                encoded = [encoder.encode(block[name], row) for name, encoder in encoders.items()]
                yield Part(matrix(encoded, len(block[label.name].numbers)), self.labels.labels(block[label.name]))
        except WrongValueError as error:
            raise DataError(f"{self.table.place(error.row)}: {error}") from None


def learn(table: Table, columns: tuple[Column, ...], wanted: Wanted) -> Learned:
    """The table by its columns, one of which is the label; others that are not ignored stand in the matrix, in order.

    `DataError` says where a value is wrong. A pass over the file; memory holds a block, the values of categories, and
    what `quantiles.Quantiles` holds of numbers.
    """
    label = next(column for column in columns if column.kind == "label")
    if not (features := features_of(columns)):
        why = f"'workbench data columns {table.path}' says why, and with --out writes a file to change it in"
        raise DataError(f"{table.path} has no column to learn from: all but {label.name!r} are ignored. {why}.")
    open_ones = {column.name: encoder for column in features if not (encoder := _encoder(column)).is_learned}
    labels = LabelColumn(label, wanted)
    words = _words([*(column for column in features if column.name in open_ones), label])
    try:
        for block, row in _blocks(table, words):
            labels.learn(block[label.name], row)
            for name, encoder in open_ones.items():
                encoder.learn(block[name], row)
        labels.check()
    except WrongValueError as error:
        raise DataError(f"{table.place(error.row)}: {error}") from None
    known = (open_ones[column.name].learned() if column.name in open_ones else column for column in columns)
    return Learned(table, tuple(known), labels)


def features_of(columns: tuple[Column, ...]) -> list[Column]:
    """The columns that stand in the matrix."""
    return [column for column in columns if column.kind not in ("label", "ignored")]


def _encoder(column: Column) -> Encoder:
    return ENCODERS[column.kind, column.encoding](column)


def _words(columns: list[Column]) -> dict[str, tuple[str, ...]]:
    """Texts that stand for a missing value, by the name of the column."""
    return {one.name: ("", *one.missing) if one.kind == "label" else missing_words(one) for one in columns}


def _blocks(table: Table, words: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Block, int]]:
    """Blocks of those columns with the number of their first row, missing values found."""
    row = 0
    for block in table.blocks(list(words)):
        yield {name: cleaned(texts, words[name]) for name, texts in block.items()}, row
        row += len(next(iter(block.values())).numbers)


def missing_words(column: Column) -> tuple[str, ...]:
    """Words that mean a missing value in that column: the usual ones and its own, but for values that it names."""
    return tuple(word for word in (*MISSING_WORDS, *column.missing) if word not in (column.values or ()))


def matrix(encoded: list[Encoded], rows: int) -> scipy.sparse.csr_array:
    """The columns side by side, csr [rows, sum of widths] float32, canonical. O(entries)."""
    width = sum(one.width for one in encoded)
    if width > INT32_LIMIT:
        raise DataError(f"The columns make {width:,} features; at most 2**31 - 1 are held: hash into fewer buckets.")
    lengths = np.zeros(rows, np.int64)
    for one in encoded:
        lengths += one.indices >= 0 if one.lengths is None else one.lengths
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    dtype = index_dtype(rows, width, int(indptr[-1]))
    indices, data = np.empty(indptr[-1], dtype), np.ones(indptr[-1], np.float32)
    free, first = indptr[:-1].copy(), 0  # the next free place of each row
    for one in encoded:
        taken, places = _places(one, free)
        indices[places] = one.indices[taken] + dtype.type(first)
        if one.values is not None:
            data[places] = one.values[taken]
        first += one.width
    return assemble("csr", indptr.astype(dtype), indices, data, (rows, width))


def _places(one: Encoded, free: np.ndarray) -> tuple[Any, np.ndarray]:
    """Mask of the entries that there are, and the places that they go to; `free` moves on by them."""
    if one.lengths is None:
        taken = one.indices >= 0
        places = free[taken]
        free += taken
        return taken, places
    before = np.cumsum(one.lengths, dtype=np.int64) - one.lengths
    places = np.arange(len(one.indices)) + np.repeat(free - before, one.lengths)
    free += one.lengths
    return slice(None), places
