"""A whole table into a matrix and labels, in one pass over the file; memory holds codes of values, not their texts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from workbench.data.errors import DataError
from workbench.data.labels import Wanted
from workbench.data.tables.arrow import MISSING_WORDS, cleaned
from workbench.data.tables.blocks import Table
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


class Read(NamedTuple):
    """What came of a table: `x` csr [rows, features] float32, labels as they stand, columns as they were encoded."""

    x: scipy.sparse.csr_array
    labels: np.ndarray | list[tuple]
    columns: tuple[Column, ...]


def read(table: Table, columns: tuple[Column, ...], wanted: Wanted) -> Read:
    """The table by its columns, one of which is the label; others that are not ignored stand in the matrix, in order.

    `DataError` says where a value is wrong. O(values); memory holds 4 bytes a category, 8 a number, then the matrix.
    """
    features = [column for column in columns if column.kind not in ("label", "ignored")]
    label = next(column for column in columns if column.kind == "label")
    if not features:
        raise DataError(f"{table.path} has no column to learn from: all but {label.name!r} are ignored.")
    encoders = [ENCODERS[column.kind, column.encoding](column) for column in features]
    labels = LabelColumn(label, wanted)
    try:
        _add_all(table, list(zip(features, encoders, strict=True)), labels)
        found = labels.labels()
        encoded = [encoders.pop(0).finish() for _ in features]  # what an encoder has collected goes with it
    except WrongValueError as error:
        raise DataError(f"{table.place(error.row)}: {error}") from None
    learned = {one.column.name: one.column for one in encoded}
    x = matrix(encoded, len(found))
    return Read(x, found, tuple(learned.get(column.name, column) for column in columns))


def _add_all(table: Table, encoders: list[tuple[Column, Encoder]], labels: LabelColumn) -> None:
    names = [column.name for column, _ in encoders]
    words = {column.name: missing_words(column) for column, _ in encoders}
    label, row = labels.column, 0
    for block in table.blocks([*names, label.name]):
        labels.add(cleaned(block[label.name], ("", *label.missing)), row)
        for column, encoder in encoders:
            encoder.add(cleaned(block[column.name], words[column.name]), row)
        row += len(block[label.name].numbers)


def missing_words(column: Column) -> tuple[str, ...]:
    """Words that mean a missing value in that column: the usual ones and its own, but for values that it names."""
    return tuple(word for word in (*MISSING_WORDS, *column.missing) if word not in (column.values or ()))


def matrix(encoded: list[Encoded], rows: int) -> scipy.sparse.csr_array:
    """The columns side by side, csr [rows, sum of widths] float32, canonical; the list is emptied. O(entries)."""
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
    while encoded:
        one = encoded.pop(0)
        taken, places = _places(one, free)
        indices[places] = one.indices[taken] + dtype.type(first)
        if one.values is not None:
            data[places] = one.values[taken]
        first += one.width
    return assemble("csr", indptr.astype(dtype), indices, data, (rows, width))


def _places(one: Encoded, free: np.ndarray) -> tuple[Any, np.ndarray]:
    """Which entries there are, and the places that they go to; `free` moves on by them."""
    if one.lengths is None:
        taken = one.indices >= 0
        places = free[taken]
        free += taken
        return taken, places
    before = np.cumsum(one.lengths, dtype=np.int64) - one.lengths
    places = np.arange(len(one.indices)) + np.repeat(free - before, one.lengths)
    free += one.lengths
    return slice(None), places
