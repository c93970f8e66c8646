"""Rows that a reader makes part by part, stacked to one CSR array in memory that grows."""

import os
from collections.abc import Iterable
from typing import Any, final

import numpy as np

from workbench.data.errors import DataError
from workbench.formats.compressed import assemble, index_dtype

GROWTH = 1.25
"""Factor by which arrays grow that are too short; the system moves pages of large ones and copies nothing."""


@final
class Growing:
    """Indices and values of entries that come part by part."""

    def __init__(self) -> None:
        """Start without entries."""
        self.count = 0
        self._arrays: list[np.ndarray] = []

    def add(self, indices: np.ndarray, values: np.ndarray) -> None:
        """Append a part's indices and values, [n] each.

        Dtypes are those of the first part, indices are widened if needed.
        """
        if not self._arrays:
            self._arrays = [np.empty(0, indices.dtype), np.empty(0, values.dtype)]
        if indices.dtype.itemsize > self._arrays[0].itemsize:
            self._arrays[0] = self._arrays[0].astype(indices.dtype)
        start, self.count = self.count, self.count + len(indices)
        if self.count > len(self._arrays[0]):
            self._resize(max(self.count, int(GROWTH * len(self._arrays[0]))))
        for array, added in zip(self._arrays, (indices, values), strict=True):
            array[start : self.count] = added

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, values) of all entries, trimmed to their length; nothing may be added afterwards."""
        self._resize(self.count)
        return self._arrays[0], self._arrays[1]

    def _resize(self, size: int) -> None:
        """Resize both arrays in place to `size` entries."""
        for array in self._arrays:
            array.resize(size, refcheck=False)


def stack_with_labels(parts: Iterable[tuple[Any, Any]], path: str | os.PathLike) -> tuple[Any, Any]:
    """Return (CSR array of all rows, their labels) of an iterable of (CSR array, labels) parts.

    Labels are arrays, or lists of tuples, which are concatenated. Raises DataError, naming `path`, if there is no part.
    Memory holds one part in addition to the result, if the parts are made one by one.
    """
    labels: list[Any] = []
    starts, width, stacked = [np.zeros(1, np.int64)], 0, Growing()
    for x, of_part in parts:
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
