"""Categories into columns of 0 and 1: one for each value, or hashed into buckets."""

import dataclasses
from typing import final

import numpy as np

from workbench.data.tables.arrow import Texts
from workbench.data.tables.encoding import Encoded, Vocabulary, WrongValueError, first_row, hashed, joined, of_rows
from workbench.data.tables.schema import Column

MOST_VALUES = 1 << 20
"""Values of a column, at most, that have a column of the matrix each."""


@final
class OneHot:
    """A column of the matrix for each value, in the order of code points, and a last one for values missing or unknown.

    Values that are given stand in their order, and others are unknown.
    """

    def __init__(self, column: Column) -> None:
        self.column = column
        self.vocabulary = Vocabulary(column.values or ())
        self.numbers: list[np.ndarray] = []

    def add(self, texts: Texts, row: int) -> None:
        """Take in some rows. O(rows + values)."""
        known = self.vocabulary
        numbers = known.find(texts.distinct) if self.column.values is not None else known.add(texts.distinct)
        if len(known) > MOST_VALUES:
            advice = 'say encoding = "hashed" in a file of column kinds, or hashed = 65536'
            at, _ = first_row(texts, numbers >= MOST_VALUES)
            raise WrongValueError(
                row + at, f"column {self.column.name!r} has more than {MOST_VALUES:,} values; {advice}."
            )
        self.numbers.append(of_rows(numbers, -1, texts.numbers))

    def finish(self) -> Encoded:
        """One entry a row."""
        numbers, count = joined(self.numbers, np.int32), len(self.vocabulary)
        if self.column.values is not None:
            numbers[numbers < 0] = count
            return Encoded(self.column, count + 1, numbers)
        order = self.vocabulary.order()
        place = np.empty(count, np.int32)
        place[order] = np.arange(count)
        values = tuple(self.vocabulary.texts.take(order).to_pylist())
        column = dataclasses.replace(self.column, values=values)
        return Encoded(column, count + 1, of_rows(place, count, numbers))


@final
class Hashed:
    """As many columns of the matrix as buckets, and a last one for missing values."""

    def __init__(self, column: Column) -> None:
        self.column, self.buckets = column, column.buckets or 0
        self.indices: list[np.ndarray] = []

    def add(self, texts: Texts, row: int) -> None:
        """Take in some rows. O(rows + characters of distinct texts)."""
        self.indices.append(of_rows(hashed(texts.distinct, self.buckets), self.buckets, texts.numbers))

    def finish(self) -> Encoded:
        """One entry a row."""
        return Encoded(self.column, self.buckets + 1, joined(self.indices, np.int32))
