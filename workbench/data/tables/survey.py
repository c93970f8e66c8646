"""What the columns of a table hold, seen in one pass over all of it: the ground of a guess."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from workbench.data.tables.arrow import MISSING_WORDS, Texts, arrow, cleaned, numbers_of
from workbench.data.tables.blocks import Table
from workbench.data.tables.encoding import first_row, of_rows
from workbench.data.tables.schema import Found

MOST_DISTINCT = 1 << 17
MOST_BYTES = 1 << 23
"""Distinct values of a column that are counted, and bytes of them that are held: beyond, there are "more than"."""


@final
class Seen:
    """What was seen of one column so far."""

    def __init__(self) -> None:
        self.rows = self.missing = self.rows_of_numbers = self.words = self.texts_seen = 0
        self.are_whole = True
        self.not_number: tuple[int, str] | None = None
        """The first row with a value that is no number, and that value."""
        self.distinct = 0
        self.is_least = False
        self._values: Any = None

    @property
    def present(self) -> int:
        """Rows with a value."""
        return self.rows - self.missing

    def found(self) -> Found:
        """The figures that a guess is shown with."""
        return Found(self.rows, self.missing, self.distinct, self.is_least)

    def add(self, texts: Texts) -> None:
        """Take in some rows. O(rows + distinct values)."""
        pa = arrow()
        numbers = numbers_of(texts.distinct)
        is_text = np.isnan(numbers)
        row_is_text = of_rows(is_text, False, texts.numbers)
        if row_is_text.any() and self.not_number is None:
            at, text = first_row(texts, is_text)
            self.not_number = self.rows + at, text
        self.are_whole &= bool((np.floor(numbers) == numbers)[~is_text].all())
        self.rows_of_numbers += int((texts.numbers >= 0).sum() - row_is_text.sum())
        self.rows += len(texts.numbers)
        self.missing += int((texts.numbers < 0).sum())
        if not self.is_least:
            blanks = pa.compute.count_substring_regex(texts.distinct, r"\S+")
            self.words += int(pa.compute.sum(blanks).as_py() or 0)
            self.texts_seen += len(texts.distinct)
            self._count(pa, texts.distinct)

    def _count(self, pa: Any, distinct: Any) -> None:
        both = distinct if self._values is None else pa.concat_arrays([self._values, distinct])
        self._values = both.unique()
        self.distinct = min(len(self._values), MOST_DISTINCT)
        self.is_least = len(self._values) > MOST_DISTINCT or self._values.nbytes > MOST_BYTES
        if self.is_least:
            self._values = None

    @property
    def words_each(self) -> float:
        """Words of a distinct value, on average."""
        return self.words / max(self.texts_seen, 1)


def survey(table: Table, names: Sequence[str]) -> dict[str, Seen]:
    """What the columns of those names hold (`DataError`)."""
    seen = {name: Seen() for name in names}
    for block in table.blocks(names):
        for name, texts in block.items():
            seen[name].add(cleaned(texts, MISSING_WORDS))
    return seen
