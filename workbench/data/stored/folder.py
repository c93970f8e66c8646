"""A folder of stored rows, opened: its rows are read in parts when needed."""

import dataclasses
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from kernels import structure
from workbench import formats
from workbench.data.dataset.record import StoredRows
from workbench.data.errors import DataError
from workbench.data.stored.arrays import AGAIN, ArrayFile
from workbench.data.stored.meta import META, Meta, read_meta
from workbench.formats.compressed import assemble, index_dtype


@final
class Folder:
    """An open folder of stored rows; pickled as its path, so that another process opens it again."""

    def __init__(self, path: Path, meta: Meta | None = None) -> None:
        """Open each array that `meta`, by default read from `meta.json`, describes.

        DataError if one is missing or has another size, shape or type than stated.
        """
        self.path, self.meta = path, meta or read_meta(path)
        self.check_sizes()
        self.arrays = {name: ArrayFile(path / f"{name}.npy", self.meta.checksums.get(name)) for name in self.meta.bytes}
        rows, nnz = self.meta.shape[0], self.meta.nnz
        integer = ("int32", "int64")
        expected = {"indptr": (rows + 1, integer), "indices": (nnz, integer), "data": (nnz, (self.meta.dtype,))}
        for name, array in self.arrays.items():
            length, types = expected.get(name, (rows, (array.dtype.name,)))
            if array.shape[:1] != (length,) or array.dtype.name not in types:
                found = f"{array.dtype} {list(array.shape)}"
                raise DataError(f"{array.path} holds {found}; {META} says {' or '.join(types)} [{length}]. {AGAIN}.")

    def __reduce__(self) -> tuple:
        """Pickle as the path alone."""
        return Folder, (self.path,)

    def check_sizes(self) -> None:
        """Raise DataError if a file is missing or has another size than `meta.json` states."""
        for name, expected in self.meta.bytes.items():
            file = self.path / f"{name}.npy"
            try:
                size = file.stat().st_size
            except OSError as error:
                raise DataError(f"{file} is missing: {error.strerror}. {AGAIN}.") from None
            if size != expected:
                raise DataError(f"{file} has {size} bytes; {META} says {expected}. {AGAIN}.")

    def rows(self) -> "FolderRows":
        """Return all rows."""
        return FolderRows(self, 0, self.meta.shape[0], np.dtype(self.meta.dtype))


@final
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FolderRows(StoredRows):
    """Rows `start` to `stop` of an open folder."""

    folder: Folder
    start: int
    stop: int
    value_type: np.dtype

    @property
    def place(self) -> str:
        """Path of the folder, for messages."""
        return str(self.folder.path)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of these rows: (rows, features)."""
        return self.stop - self.start, self.folder.meta.shape[1]

    @cached_property
    def nnz(self) -> int:
        """Number of stored entries, from the row pointers."""
        first, last = (int(self.folder.arrays["indptr"].read(row, row + 1)[0]) for row in (self.start, self.stop))
        return last - first

    @property
    def dtype(self) -> np.dtype:
        """Type of the values that reading returns."""
        return self.value_type

    @property
    def is_shuffled(self) -> bool:
        """Whether the rows were shuffled when they were converted."""
        return self.folder.meta.shuffle is not None

    def astype(self, dtype: np.dtype) -> "FolderRows":
        """Return the same rows with values converted to `dtype` when they are read."""
        return dataclasses.replace(self, value_type=np.dtype(dtype))

    def between(self, start: int, stop: int) -> "FolderRows":
        """Return rows `start` to `stop` (exclusive) of these; nothing is read."""
        return dataclasses.replace(self, start=self.start + start, stop=self.start + stop)

    def row_lengths(self) -> np.ndarray:
        """Return the number of stored entries of each row, int64 [rows], read from the row pointers."""
        return np.diff(self.folder.arrays["indptr"].read(self.start, self.stop + 1))

    def check_unchanged(self) -> None:
        """Raise DataError if a file of the folder is missing or has another size than stated."""
        self.folder.check_sizes()

    def read_runs(self, runs: Iterable[tuple[int, int]]) -> Any:
        """Read rows `start` to `stop` (exclusive) of each run, one after the other, as one CSR array.

        Row pointers and column indices are validated, as kernels rely on them. Raises DataError if a file is damaged.
        """
        arrays, features = self.folder.arrays, self.shape[1]
        pointers = [arrays["indptr"].read(self.start + start, self.start + stop + 1) for start, stop in runs]
        lengths = np.concatenate([np.zeros(1, np.int64), *map(np.diff, pointers)])
        starts = np.cumsum(lengths)
        stored = self.folder.meta.nnz
        if lengths.min() < 0 or any(part[0] < 0 or part[-1] > stored for part in pointers):
            raise DataError(f"{self.place} is damaged: its row pointers fall, or do not end at its entries. {AGAIN}.")
        columns = np.empty(starts[-1], index_dtype(len(starts) - 1, features, starts[-1]))
        data = np.empty(starts[-1], self.dtype)
        at = 0
        for part in pointers:
            end = at + part[-1] - part[0]
            arrays["indices"].read_into(columns[at:end], part[0])
            if "data" in arrays:
                arrays["data"].read_into(data[at:end], part[0])
            else:
                data[at:end] = 1
            at = end
        x = assemble("csr", starts.astype(columns.dtype), columns, data, (len(starts) - 1, features))
        if not structure.in_range(columns, features):
            try:
                formats.validate(x)
            except formats.FormatError as error:
                raise DataError(f"{self.place} is damaged: {error} {AGAIN}.") from None
        return x
