"""Meaning of labels that come block by block: distinct ones are collected, and read as those of a whole file are."""

from collections.abc import Callable
from typing import final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.labels.meaning import Labels, Wanted
from workbench.data.labels.reading import MOST_CLASSES, read_labels

Understood = Callable[[np.ndarray], np.ndarray]
"""Makes of labels as they were kept what a data set holds."""


@final
class LabelCollector:
    """The labels of blocks, kept as numbers until all have come; `what` names their origin in messages.

    Of text the number of its first appearance is kept, and every distinct one is held. Of numbers the distinct ones are
    held until there are more than classes are guessed of; where they are said to be classes, all are. Blocks with
    several labels a row have columns of them; lists of labels are refused, and labels of another type than the first.
    """

    def __init__(self, wanted: Wanted, what: str) -> None:
        self.wanted, self.what, self.rows = wanted, what, 0
        self.kind: tuple | None = None
        self.number_of: dict[str, int] = {}
        self.distinct = np.empty(0)
        self.low, self.high = np.inf, -np.inf
        self.between: np.ndarray | None = None
        """A label, or row of labels, that is not whole, or of columns one that is not 0 and 1."""
        self.are_all_held = wanted.kind != "numbers"

    def add(self, labels: np.ndarray) -> np.ndarray:
        """Take the labels of a block, [R] or [R, N]; gives what is kept of them."""
        if not isinstance(labels, np.ndarray):
            advice = "give columns of 0 and 1 for each class, or load the set whole and convert that"
            raise DataError(f"Labels of a block of {self.what} are a {type(labels).__name__}; {advice}.")
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.dtype.kind == "S":
            labels = np.char.decode(labels, "utf-8", "backslashreplace")
        self._check_kind(labels)
        kept = self._numbered(labels) if labels.dtype.kind == "U" else self._noted(labels)
        self.rows += len(labels)
        return kept

    def _check_kind(self, labels: np.ndarray) -> None:
        kind = ("text" if labels.dtype.kind == "U" else labels.dtype.name, *labels.shape[1:])
        if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufU" or (labels.ndim == 2 and kind[0] == "text"):
            raise DataError(f"Labels of {self.what} are {labels.dtype} {list(labels.shape)}; they are numbers or text.")
        if self.kind is not None and kind != self.kind:
            raise DataError(f"Labels of {self.what} are {self.kind} and from row {self.rows} on {kind}; keep to one.")
        self.kind = kind

    def _numbered(self, labels: np.ndarray) -> np.ndarray:
        names, inverse = np.unique(labels, return_inverse=True)
        numbers = [self.number_of.setdefault(str(name), len(self.number_of)) for name in names]
        return np.array(numbers, np.int64)[inverse]

    def _noted(self, labels: np.ndarray) -> np.ndarray:
        finite = np.isfinite(labels.astype(np.float64))
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(labels), -1).all(axis=1)))
            raise DataError(f"{self.what}, row {self.rows + row}: the label {labels[row]} is no finite number.")
        if labels.size:
            self.low, self.high = min(self.low, labels.min()), max(self.high, labels.max())
        if self.between is None:
            odd = ~np.isin(labels, (0, 1)).all(1) if labels.ndim == 2 else labels != np.floor(labels)
            self.between = labels[int(np.argmax(odd))] if odd.any() else None
        if labels.ndim == 1 and self.are_all_held:
            self.distinct = np.unique(np.concatenate([self.distinct.astype(labels.dtype), labels]))
            is_said = self.wanted.kind or self.wanted.classes is not None or self.wanted.positive is not None
            self.are_all_held = bool(is_said) or len(self.distinct) <= MOST_CLASSES
        return labels

    def meaning(self) -> tuple[Labels, Understood]:
        """Meaning of the labels, and the function that turns the kept ones into those of a data set."""
        if self.kind is None:
            raise DataError(f"{self.what} holds no rows; a data set has at least one.")
        if self.kind[0] == "text":
            names = np.array(list(self.number_of))
            meaning, of_name = read_labels(names, self.wanted, lambda row: self.what)
            return meaning, lambda kept: of_name[kept]
        sample = self._columns() if len(self.kind) == 2 else self._sample()
        meaning, of_sample = read_labels(sample, self.wanted, lambda row: self.what)
        if meaning.kind == "classes":
            return meaning, lambda kept: of_sample[np.searchsorted(sample, kept)]
        return meaning, lambda kept: kept.astype(of_sample.dtype)

    def _sample(self) -> np.ndarray:
        """Labels that are read as all of them are: every one of few, of many the ends and one that is not whole."""
        assert self.kind is not None
        some = [self.low, self.high] if self.between is None else [self.low, self.between, self.high]
        return np.unique(np.concatenate([self.distinct, some]).astype(self.kind[0]))

    def _columns(self) -> np.ndarray:
        assert self.kind is not None
        ends = np.repeat([[self.low], [self.high]], self.kind[1], axis=1)
        return np.concatenate([ends, [self.between]]) if self.between is not None else ends
