"""Numbers into columns of the matrix: ranges of equally many rows, the number itself, or its logarithm."""

import dataclasses
from typing import final

import numpy as np

from workbench.data.tables.arrow import LARGEST_FLOAT32, Texts, numbers_of
from workbench.data.tables.encoding import Encoded, WrongValueError, first_row, joined, of_rows
from workbench.data.tables.schema import Column


@final
class Numbers:
    """Collects the numbers of a column as float64; `finish` encodes them as the column says."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.parts: list[np.ndarray] = []

    def add(self, texts: Texts, row: int) -> None:
        """Take in some rows; a text that is no finite number is refused (`WrongValueError`)."""
        numbers = numbers_of(texts.distinct)
        wrong = ~np.isfinite(numbers)
        wrong[np.setdiff1d(np.flatnonzero(wrong), texts.numbers)] = False  # texts that no row has
        if wrong.any():
            at, text = first_row(texts, wrong)
            raise WrongValueError(row + at, self._refusal(text))
        self.parts.append(of_rows(numbers, np.nan, texts.numbers))

    def finish(self) -> Encoded:
        """One entry a row; none for a 0 that is kept."""
        numbers = joined(self.parts, np.float64)
        return _binned(self.column, numbers) if self.column.encoding == "binned" else _kept(self.column, numbers)

    def _refusal(self, text: str) -> str:
        shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
        advice = f'In a file of column kinds say missing = [{shown}] if it stands for none, or kind = "category"'
        return f"column {self.column.name!r} holds numbers, and {shown} is no finite one. {advice}."


def _binned(column: Column, numbers: np.ndarray) -> Encoded:
    edges = np.array(quantiles(numbers, column.bins or 1) if column.edges is None else column.edges, np.float64)
    indices = np.searchsorted(edges, numbers, side="right").astype(np.int32)  # edges[i - 1] <= number < edges[i]
    indices[np.isnan(numbers)] = len(edges) + 1
    return Encoded(dataclasses.replace(column, edges=tuple(edges.tolist())), len(edges) + 2, indices)


def quantiles(numbers: np.ndarray, bins: int) -> np.ndarray:
    """The numbers, at most bins - 1 and increasing, that cut the others into ranges of about equally many; no NaN.

    Each is a number that occurs and above the smallest, so that no range is empty. O(n log n).

    >>> quantiles(np.array([0.0, 0, 0, 1, 2, 3, 4, np.nan]), 4)
    array([1., 3.])
    """
    present = np.sort(numbers[~np.isnan(numbers)])
    cuts = np.unique(present[np.arange(1, bins) * len(present) // bins]) if len(present) else present
    return cuts[cuts > present[0]] if len(present) else cuts


def _kept(column: Column, numbers: np.ndarray) -> Encoded:
    if column.encoding == "log":
        numbers = np.sign(numbers) * np.log1p(np.abs(numbers))
    divisor = _divisor(numbers, column.scaling) if column.divisor is None else column.divisor
    with np.errstate(over="ignore"):  # refused below
        values = numbers / divisor
    if (beyond := np.abs(values) > LARGEST_FLOAT32).any():
        row = int(np.argmax(beyond))
        advice = 'take encoding = "log" or "binned"'
        raise WrongValueError(row, f"column {column.name!r} holds {values[row]:g}, which float32 does not; {advice}.")
    is_missing = np.isnan(values)
    indices = is_missing.astype(np.int32)
    indices[values.astype(np.float32) == 0] = -1  # zeros are not stored
    values[is_missing] = 1
    column = dataclasses.replace(column, divisor=float(divisor))
    return Encoded(column, 2, indices, values.astype(np.float32))


def _divisor(numbers: np.ndarray, scaling: str | None) -> float:
    largest = float(np.nanmax(np.abs(numbers), initial=0)) if scaling != "none" else 0.0
    if not largest:
        return 1.0
    return largest if scaling == "largest" else largest * float(np.nanstd(numbers / largest)) or 1.0
