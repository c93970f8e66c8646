"""Numbers into columns of the matrix: ranges of equally many rows, the number itself, or its logarithm."""

import dataclasses
from typing import final

import numpy as np

from workbench.data.tables.arrow import LARGEST_FLOAT32, Texts, numbers_of
from workbench.data.tables.encoding import Encoded, WrongValueError, first_row, of_rows
from workbench.data.tables.quantiles import Counted, Quantiles, Spread
from workbench.data.tables.schema import Column


@final
class Numbers:
    """Ranges by quantiles, or numbers by their spread, where edges or the divisor are not given."""

    def __init__(self, column: Column) -> None:
        self.column, self.is_binned = column, column.encoding == "binned"
        is_scaled = column.divisor is not None or column.scaling == "none"
        self.is_learned = column.edges is not None if self.is_binned else is_scaled
        self._quantiles, self._spread = Quantiles(), Spread()
        self._edges = np.array(column.edges or (), np.float64)

    def learn(self, texts: Texts, row: int) -> None:
        """Take in some rows; a text that is no finite number is refused (`WrongValueError`)."""
        counts = np.bincount(texts.numbers[texts.numbers >= 0], minlength=len(texts.distinct))
        some = Counted(self._numbers(texts, row)[counts > 0], counts[counts > 0])
        if self.is_binned:
            self._quantiles.add(some)
        else:
            self._spread.add(some)

    def learned(self) -> Column:
        """The column with its edges, or its divisor."""
        if self.is_binned:
            return dataclasses.replace(self.column, edges=tuple(self._quantiles.cuts(self.column.bins or 1).tolist()))
        divisor = self._spread.largest if self.column.scaling == "largest" else self._spread.deviation()
        return dataclasses.replace(self.column, divisor=divisor or 1.0)

    def encode(self, texts: Texts, row: int) -> Encoded:
        """One entry a row; none for a 0 that is kept."""
        numbers = self._numbers(texts, row)
        return self._binned(numbers, texts) if self.is_binned else self._kept(numbers, texts, row)

    def _numbers(self, texts: Texts, row: int) -> np.ndarray:
        """Number that each text stands for, float64 [texts], its logarithm where that is kept."""
        numbers = numbers_of(texts.distinct)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            wrong[np.setdiff1d(np.flatnonzero(wrong), texts.numbers)] = False  # texts that no row has
            if wrong.any():
                at, text = first_row(texts, wrong)
                raise WrongValueError(row + at, self._refusal(text))
        return np.sign(numbers) * np.log1p(np.abs(numbers)) if self.column.encoding == "log" else numbers

    def _refusal(self, text: str) -> str:
        shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
        advice = f'In a file of column kinds say missing = [{shown}] if it stands for none, or kind = "category"'
        return f"column {self.column.name!r} holds numbers, and {shown} is no finite one. {advice}."

    def _binned(self, numbers: np.ndarray, texts: Texts) -> Encoded:
        edges = self._edges
        ranges = np.searchsorted(edges, numbers, side="right").astype(np.int32)  # edges[i - 1] <= number < edges[i]
        return Encoded(len(edges) + 2, of_rows(ranges, len(edges) + 1, texts.numbers))

    def _kept(self, numbers: np.ndarray, texts: Texts, row: int) -> Encoded:
        with np.errstate(over="ignore"):  # refused below
            values = numbers / (self.column.divisor or 1.0)
        if (beyond := np.abs(values) > LARGEST_FLOAT32).any():
            at, _ = first_row(texts, beyond)
            advice = 'take encoding = "log" or "binned"'
            what = f"column {self.column.name!r} holds {values[beyond][0]:g}, which float32 does not"
            raise WrongValueError(row + at, f"{what}; {advice}.")
        values = of_rows(values.astype(np.float32), 1, texts.numbers)
        indices = (texts.numbers < 0).astype(np.int32)
        indices[values == 0] = -1  # zeros are not stored
        return Encoded(2, indices, values)
