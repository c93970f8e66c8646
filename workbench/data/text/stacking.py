"""Rows that a reader makes part by part, stacked to one CSR array in memory that grows."""

import os
from collections.abc import Iterable
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.errors import DataError
from workbench.formats.compressed import assemble, index_dtype

GROWTH = 1.25
"""Factor by which arrays grow that are too short; the system moves pages of large ones and copies nothing."""
MARGIN = 1.02
"""Share of entries for which memory is reserved of those that are expected."""
MOST_RESERVED = 1 << 26
"""Entries, at most, for which memory is reserved: the system hands it out when it is first written to."""


@final
class Growing:
    """Indices and values of entries that come part by part."""

    def __init__(self, rows: int | None = None) -> None:
        """Start without entries; `rows` is how many rows there are presumably.

        The first part reserves memory for the entries of so many, which the system clears once.
        """
        self.count, self._rows = 0, rows
        self._arrays: list[np.ndarray] = []

    def add(self, indices: np.ndarray, values: np.ndarray) -> None:
        """Append a part's indices and values, [n] each.

        Dtypes are those of the first part, indices are widened if needed.
        """
        held = self.take(0, len(indices), indices.dtype, values.dtype)
        for place, added in zip(held, (indices, values), strict=True):
            place[:] = added

    def take(
        self, rows: int, count: int, dtype: DTypeLike, of_values: DTypeLike = np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the memory of indices and values of `count` more entries, of a part of `rows` rows, to be written.

        Dtypes are those of the first part; indices are wider than `dtype` if those of a part before were. What was
        taken before must not be used any more, as its memory may move.
        """
        if not self._arrays:
            expected = int(MARGIN * count * max(self._rows, rows) / max(rows, 1)) if self._rows is not None else 0
            self._arrays = [np.empty(min(expected, MOST_RESERVED), kind) for kind in (dtype, of_values)]
        if np.dtype(dtype).itemsize > self._arrays[0].itemsize:
            self._arrays[0] = self._arrays[0].astype(dtype)
        start, self.count = self.count, self.count + count
        if self.count > len(self._arrays[0]):
            self._resize(max(self.count, int(GROWTH * len(self._arrays[0]))))
        indices, values = self._arrays
        return indices[start : self.count], values[start : self.count]

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, values) of all entries, trimmed to their length; nothing may be added afterwards."""
        self._resize(self.count)
        return self._arrays[0], self._arrays[1]

    def _resize(self, size: int) -> None:
        """Resize both arrays in place to `size` entries."""
        for array in self._arrays:
            array.resize(size, refcheck=False)


def stack_with_labels(
    parts: Iterable[tuple[Any, Any]], path: str | os.PathLike, entries: Growing | None = None
) -> tuple[Any, Any]:
    """Return (CSR array of all rows, their labels) of an iterable of (CSR array, labels) parts.

    Labels are arrays, or lists of tuples, which are concatenated. Raises DataError, naming `path`, if there is no part.
    Memory holds one part in addition to the result, if the parts are made one by one. `entries` is what the parts have
    their entries in, one after the other, if they were made so; else these are copied.
    """
    labels: list[Any] = []
    starts, width, stacked = [np.zeros(1, np.int64)], 0, Growing() if entries is None else entries
    for x, of_part in parts:
        if entries is None:
            stacked.add(x.indices, x.data)
        starts.append(x.indptr[1:] + np.int64(stacked.count - len(x.indices)))
        labels.append(of_part)
        width = max(width, x.shape[1])
    if not labels:
        raise DataError(f"{path} holds no rows; a data set has at least one.")
    indptr = np.concatenate(starts)
    dtype = index_dtype(len(indptr) - 1, width, stacked.count)
    indices, values = stacked.arrays()
    x = assemble("csr", indptr.astype(dtype), indices.astype(dtype, copy=False), values, (len(indptr) - 1, width))
    is_array = isinstance(labels[0], np.ndarray)
    joined = np.concatenate(labels) if is_array else [of_row for of_part in labels for of_row in of_part]
    return x, joined
