"""Categories into columns of 0 and 1: one for each value, or hashed into buckets."""

import dataclasses
from typing import final

import numpy as np

from workbench.data.tables.arrow import Texts
from workbench.data.tables.encoding import Encoded, Vocabulary, WrongValueError, first_row, hashed, of_rows
from workbench.data.tables.schema import Column

MOST_VALUES = 1 << 20
"""Values of a column, at most, that have a column of the matrix each."""


@final
class OneHot:
    """A column of the matrix for each value, in the order of code points, and a last one for values missing or unknown.

    Values that are given stand in their order, and others are unknown.
    """

    def __init__(self, column: Column) -> None:
        self.column, self.is_learned = column, column.values is not None
        self.vocabulary = Vocabulary(column.values or ())

    def learn(self, texts: Texts, row: int) -> None:
        """Take in some rows. O(rows + values)."""
        numbers = self.vocabulary.add(texts.distinct)
        if len(self.vocabulary) > MOST_VALUES:
            advice = 'say encoding = "hashed" in a file of column kinds, or hashed = 65536'
            at, _ = first_row(texts, numbers >= MOST_VALUES)
            raise WrongValueError(
                row + at, f"column {self.column.name!r} has more than {MOST_VALUES:,} values; {advice}."
            )

    def learned(self) -> Column:
        """The column with its values."""
        return dataclasses.replace(self.column, values=self.vocabulary.in_order())

    def encode(self, texts: Texts, row: int) -> Encoded:
        """One entry a row."""
        numbers, count = self.vocabulary.find(texts.distinct), len(self.vocabulary)
        numbers = np.where(numbers < 0, np.int32(count), numbers)
        return Encoded(count + 1, of_rows(numbers, count, texts.numbers))


@final
class Hashed:
    """Encoder with one column of the matrix for each bucket, and a last one for missing values."""

    is_learned = True

    def __init__(self, column: Column) -> None:
        self.column, self.buckets = column, column.buckets or 0

    def learn(self, texts: Texts, row: int) -> None:
        """Nothing is learned."""

    def learned(self) -> Column:
        """The column as it is."""
        return self.column

    def encode(self, texts: Texts, row: int) -> Encoded:
        """One entry a row. O(rows + characters of distinct texts)."""
        return Encoded(self.buckets + 1, of_rows(hashed(texts.distinct, self.buckets), self.buckets, texts.numbers))
