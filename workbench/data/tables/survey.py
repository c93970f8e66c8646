"""Statistics of the columns of a table, gathered in one pass over all of it, from which their kinds are guessed."""

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
AT_ONCE = 1 << 10
"""Values that are added at once, at least, to the different ones."""


@final
class Seen:
    """Statistics of one column, gathered so far."""

    def __init__(self) -> None:
        self.rows = self.missing = self.rows_of_numbers = self.rows_of_zero = self.words = self.texts_seen = 0
        self.are_whole = self.counts_rows = True
        self.largest = -np.inf
        self.not_number: tuple[int, str] | None = None
        """The first row with a value that is no number, and that value."""
        self.distinct = 0
        """Different values, at most `MOST_DISTINCT`, when all rows were taken in and joined."""
        self.is_least = False
        self._values: list[Any] = []
        self._held = 0
        self._first: float | None = None

    @property
    def present(self) -> int:
        """Rows that have a value in the column."""
        return self.rows - self.missing

    def found(self) -> Found:
        """The figures that a guess is shown with."""
        return Found(self.rows, self.missing, self.distinct, self.is_least)

    def add(self, texts: Texts) -> None:
        """Take in some rows. O(rows + distinct values)."""
        numbers = numbers_of(texts.distinct)
        is_text = np.isnan(numbers)
        if is_text.any():
            self._note_text(texts, is_text)
        some = numbers[~is_text]
        self.are_whole = self.are_whole and bool((np.floor(some) == some).all())
        self.largest = max(self.largest, float(some.max(initial=-np.inf)))
        self._note_rows(of_rows(numbers, np.nan, texts.numbers))
        self.missing += int(np.count_nonzero(texts.numbers < 0))
        if not self.is_least:
            self.words += len(some)  # a number is one word
            self.texts_seen += len(texts.distinct)
            self._count(texts.distinct)

    def _note_text(self, texts: Texts, is_text: np.ndarray) -> None:
        pa = arrow()
        if self.not_number is None and of_rows(is_text, False, texts.numbers).any():
            at, text = first_row(texts, is_text)
            self.not_number = self.rows + at, text
        if not self.is_least:
            blanks = pa.compute.count_substring_regex(texts.distinct.filter(pa.array(is_text)), r"\S+")
            self.words += int(pa.compute.sum(blanks).as_py() or 0)

    def _note_rows(self, numbers: np.ndarray) -> None:
        """Take in what each row has, NaN for what is no number."""
        self.rows_of_numbers += len(numbers) - int(np.count_nonzero(np.isnan(numbers)))
        self.rows_of_zero += int(np.count_nonzero(numbers == 0))
        if self.counts_rows and len(numbers):
            self._first = float(numbers[0]) if self._first is None else self._first
            self.counts_rows = bool((numbers == self._first + np.arange(self.rows, self.rows + len(numbers))).all())
        self.rows += len(numbers)

    def _count(self, distinct: Any) -> None:
        self._values.append(distinct)
        self._held += len(distinct)
        if self._held > 2 * self.distinct + AT_ONCE:  # so that each value is looked at a few times only
            self.join()

    def join(self) -> None:
        """Count the different values of what was taken in since the last time. O(values held)."""
        if not self._values:
            return
        values = arrow().concat_arrays(self._values).unique()
        self._values, self._held = [values], len(values)
        self.distinct = min(self._held, MOST_DISTINCT)
        self.is_least = self._held > MOST_DISTINCT or values.nbytes > MOST_BYTES
        if self.is_least:
            self._values = []

    def are_all(self, pattern: str) -> bool:
        """Whether the different values are held, and match the pattern."""
        pa = arrow()
        return bool(self._values) and bool(
            pa.compute.all(pa.compute.match_substring_regex(self._values[0], pattern)).as_py()
        )

    @property
    def words_each(self) -> float:
        """Words of a distinct value, on average."""
        return self.words / max(self.texts_seen, 1)


def survey(table: Table, names: Sequence[str]) -> dict[str, Seen]:
    """Gather statistics of the columns of those names, in one pass (`DataError`)."""
    seen = {name: Seen() for name in names}
    for block in table.blocks(names):
        for name, texts in block.items():
            seen[name].add(cleaned(texts, MISSING_WORDS))
    for one in seen.values():
        one.join()
    return seen
