"""The column of labels into what the meaning of labels is read from: numbers, texts, or several texts a row."""

from typing import Any, final

import numpy as np

from workbench.data.labels import Wanted
from workbench.data.tables.arrow import MISSING_WORDS, Texts, arrow, numbers_of
from workbench.data.tables.encoding import WrongValueError
from workbench.data.tables.schema import Column

LONGEST = 200
"""Characters of a label, at most."""
MOSTLY = 0.9
"""Share of rows with numbers from which on other labels are taken to be mistakes."""


@final
class LabelColumn:
    """Collects the labels of all rows; one that is missing is refused (`WrongValueError`) unless rows have several."""

    def __init__(self, column: Column, wanted: Wanted) -> None:
        self.column, self.wanted = column, wanted
        self.parts: list[Any] = []

    def add(self, texts: Texts, row: int) -> None:
        """Take in some rows."""
        if self.wanted.kind != "multilabel" and (texts.numbers < 0).any():
            raise WrongValueError(row + int(np.argmin(texts.numbers)), self._missing())
        pa = arrow()
        lengths = pa.compute.utf8_length(texts.distinct).to_numpy(zero_copy_only=False)
        if (lengths > LONGEST).any():
            at = int(np.argmax(lengths[texts.numbers] > LONGEST))
            advice = "name the column of labels: label = ..."
            raise WrongValueError(row + at, f"the label has {lengths.max():,} characters, at most {LONGEST}; {advice}.")
        numbers = pa.array(texts.numbers, mask=texts.numbers < 0)
        self.parts.append(pa.DictionaryArray.from_arrays(numbers, texts.distinct))

    def labels(self) -> np.ndarray | list[tuple]:
        """Labels of all rows: whole numbers, numbers, or text; of several a row, between commas, a tuple for each."""
        numbers, texts = self._joined()
        if self.wanted.kind == "multilabel":
            names = [tuple(filter(None, map(str.strip, text.split(",")))) for text in texts.to_pylist()]
            return [() if number < 0 else names[number] for number in numbers]
        values = numbers_of(texts)
        is_text = np.isnan(values)
        if is_text.any() and self._is_mistake(texts, is_text, numbers):
            row = int(np.argmax(is_text[numbers]))
            raise WrongValueError(row, self._mixed(texts[int(numbers[row])].as_py()))
        if is_text.any() or not len(values):
            return np.array(texts.to_pylist(), str)[numbers]
        pa = arrow()
        try:
            return texts.cast(pa.int64()).to_numpy()[numbers]
        except pa.ArrowInvalid:
            return values[numbers]

    def _joined(self) -> tuple[np.ndarray, Any]:
        """For each row the number of its text, int32, -1 where it is missing; and the distinct texts. O(rows)."""
        pa = arrow()
        if not self.parts:
            return np.empty(0, np.int32), pa.array([], pa.string())
        # once, at the end: numbers may be different in every row, too many to be looked up block by block
        parts = pa.chunked_array(self.parts).unify_dictionaries().chunks
        self.parts.clear()
        numbers = np.concatenate([part.indices.fill_null(-1).to_numpy(zero_copy_only=False) for part in parts])
        return numbers.astype(np.int32, copy=False), parts[0].dictionary

    def _is_mistake(self, texts: Any, is_text: np.ndarray, numbers: np.ndarray) -> bool:
        """Whether those labels that are no numbers should be, as nearly all others are."""
        if self.wanted.kind is not None or self.wanted.classes is not None or is_text.all():
            return False
        words = set(texts.filter(arrow().array(is_text)).to_pylist())
        return words <= set(MISSING_WORDS) or (~is_text)[numbers].mean() >= MOSTLY

    def _missing(self) -> str:
        return f"column {self.column.name!r} has no label here; each row needs one: take such rows out."

    def _mixed(self, text: str) -> str:
        advice = "Mend it, or say kind = 'classes' if labels are names"
        return f"the label in column {self.column.name!r} is {text!r}, and others are numbers. {advice}."
