"""The column of labels into what the meaning of labels is read from: numbers, texts, or several texts a row."""

from typing import Any, final

import numpy as np

from workbench.data.labels.meaning import Wanted
from workbench.data.tables.arrow import MISSING_WORDS, Texts, arrow, numbers_of
from workbench.data.tables.encoding import WrongValueError, first_row, of_rows
from workbench.data.tables.schema import Column

LONGEST = 200
"""Characters of a label, at most."""
MOSTLY = 0.9
"""Share of rows with numbers from which on other labels are taken to be mistakes."""


@final
class LabelColumn:
    """Learns of all rows whether labels are numbers, whole ones, or text, and then gives those of each block.

    A label that is missing is refused (`WrongValueError`) unless rows have several.
    """

    def __init__(self, column: Column, wanted: Wanted) -> None:
        self.column, self.wanted = column, wanted
        self.are_whole = True
        self.rows = self.rows_of_text = 0
        self.first_text: tuple[int, str] | None = None
        self.are_words_for_missing = True

    def learn(self, texts: Texts, row: int) -> None:
        """Take in some rows; labels that are missing or too long are refused."""
        if self.wanted.kind == "multilabel":
            return
        if (texts.numbers < 0).any():
            missing = f"column {self.column.name!r} has no label here; each row needs one: take such rows out."
            raise WrongValueError(row + int(np.argmin(texts.numbers)), missing)
        self._refuse_long(texts, row)
        is_text = np.isnan(numbers_of(texts.distinct))
        row_is_text = of_rows(is_text, False, texts.numbers)
        if row_is_text.any():
            at, text = first_row(texts, is_text)
            self.first_text = self.first_text or (row + at, text)
            words = texts.distinct.filter(arrow().array(is_text)).to_pylist()
            self.are_words_for_missing &= set(words) <= set(MISSING_WORDS)
        self.rows += len(texts.numbers)
        self.rows_of_text += int(row_is_text.sum())
        self.are_whole = self.are_whole and _whole(texts.distinct) is not None

    def check(self) -> None:
        """Refuse text among numbers that looks like a mistake (`WrongValueError`), when all rows were learned of."""
        if self.first_text is None or self.rows_of_text == self.rows:
            return
        is_said = self.wanted.kind is not None or self.wanted.classes is not None
        if not is_said and (self.are_words_for_missing or self.rows_of_text <= (1 - MOSTLY) * self.rows):
            row, text = self.first_text
            advice = "Mend it, or say kind = 'classes' if labels are names"
            what = f"the label in column {self.column.name!r} is {text!r}, and others are numbers"
            raise WrongValueError(row, f"{what}. {advice}.")

    def labels(self, texts: Texts) -> np.ndarray | list[tuple]:
        """Labels of some rows: whole numbers, numbers, or text; of several a row, between commas, a tuple for each."""
        if self.wanted.kind == "multilabel":
            names = [tuple(filter(None, map(str.strip, text.split(",")))) for text in texts.distinct.to_pylist()]
            return [() if number < 0 else names[number] for number in texts.numbers]
        if self.first_text is not None:
            return np.array(texts.distinct.to_pylist(), str)[texts.numbers]
        numbers = _whole(texts.distinct) if self.are_whole else numbers_of(texts.distinct)
        assert numbers is not None, "blocks came twice, and differ"
        return numbers[texts.numbers]

    def _refuse_long(self, texts: Texts, row: int) -> None:
        lengths = arrow().compute.utf8_length(texts.distinct).to_numpy(zero_copy_only=False)
        if (lengths > LONGEST).any():
            at = int(np.argmax(lengths[texts.numbers] > LONGEST))
            advice = "name the column of labels: label = ..."
            raise WrongValueError(row + at, f"the label has {lengths.max():,} characters, at most {LONGEST}; {advice}.")


def _whole(distinct: Any) -> np.ndarray | None:
    """The numbers as int64; None where some are not whole, or written otherwise."""
    pa = arrow()
    try:
        return distinct.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
