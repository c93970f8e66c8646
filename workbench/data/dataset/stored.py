"""Rows of a data set that stay on disk and are read when they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from workbench.data.errors import DataError


class StoredRows(ABC):
    """Rows of a matrix [rows, features] that is never held whole; `read` and `read_runs` make CSR arrays of some.

    It has no `indptr`, `indices` and `data`: what needs them says so by `DataError`.
    """

    @property
    @abstractmethod
    def place(self) -> str:
        """Place where the rows are stored, for messages."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(rows, features)."""

    @property
    @abstractmethod
    def nnz(self) -> int:
        """Stored entries of these rows."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of the values that reading gives."""

    @property
    @abstractmethod
    def is_shuffled(self) -> bool:
        """Whether the rows stand in random order, so that some in a row are like all."""

    @abstractmethod
    def astype(self, dtype: np.dtype) -> "StoredRows":
        """The same rows with values of another type."""

    @abstractmethod
    def between(self, start: int, stop: int) -> "StoredRows":
        """Rows `start` to `stop` alone; nothing is read."""

    @abstractmethod
    def read_runs(self, runs: Sequence[tuple[int, int]]) -> Any:
        """Rows `start` to `stop` of each run, one after the other, csr in memory; what is damaged is a `DataError`."""

    @abstractmethod
    def row_lengths(self) -> np.ndarray:
        """Stored entries of each row, int64 [rows]."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Refuse files that were cut, replaced by ones of another size, or taken away (`DataError`)."""

    def read(self, start: int, stop: int) -> Any:
        """Rows `start` to `stop`, csr in memory."""
        return self.read_runs([(start, stop)])

    def _refuse(self) -> NoReturn:
        advice = "Load it with whole=True (reading: whole=true) where it fits in memory"
        raise DataError(f"{self.place} is read row by row as it is trained on, and this needs it in memory. {advice}.")

    @property
    def indptr(self) -> np.ndarray:
        """Refuse: stored rows have no `indptr` in memory (`DataError`)."""
        self._refuse()

    @property
    def indices(self) -> np.ndarray:
        """Refuse: stored rows have no `indices` in memory (`DataError`)."""
        self._refuse()

    @property
    def data(self) -> np.ndarray:
        """Refuse: stored rows have no `data` in memory (`DataError`)."""
        self._refuse()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.place}: csr {list(self.shape)}, {self.nnz:,} entries, {self.dtype}>"


def row_lengths(x: Any) -> np.ndarray:
    """Stored entries of each row of a csr array or of stored rows, int64 [rows]."""
    return x.row_lengths() if isinstance(x, StoredRows) else np.diff(x.indptr).astype(np.int64)
