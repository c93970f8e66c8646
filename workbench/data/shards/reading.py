"""Rows of a folder of shards: read when they are asked for, checked as they are read, never held whole."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from kernels import structure
from workbench import formats
from workbench.data.dataset.record import StoredRows
from workbench.data.errors import DataError
from workbench.data.shards import manifest as manifests
from workbench.data.shards.manifest import AGAIN, ArrayFile, Manifest, Shard, folder_of, sha256_of
from workbench.formats.compressed import assemble, index_dtype

MOST_OPEN = 64
"""Shards whose files are open at a time: each takes a handle for every one of its files."""

POINTERS = "its row pointers fall, or do not end at its entries."


class _Part(NamedTuple):
    """Rows of one shard that are to be read: its arrays, entries of each row, the first entry and how many."""

    arrays: dict[str, ArrayFile]
    lengths: np.ndarray
    begin: int
    stored: int


@final
class Shards:
    """An open folder of shards. Files are looked at when it is opened, and again when they are read first."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest of `folder` and check the size of every file.

        DataError if something is missing or inconsistent.
        """
        self.folder = folder
        self.manifest: Manifest = manifests.read(folder)
        self.first_rows = np.array([shard.first_row for shard in self.manifest.shards], np.int64)
        self.verified = set[Path]()
        """Files whose hash was compared: each is when it is first read."""
        self.arrays = functools.lru_cache(MOST_OPEN)(self._open)
        self.check_sizes()

    def __reduce__(self) -> tuple:
        """Pickle as the folder alone, so that another process opens it anew."""
        return Shards, (self.folder,)

    def _path(self, number: int, name: str) -> Path:
        """Return the path of array `name` of shard `number`."""
        return folder_of(self.folder, number) / f"{name}.npy"

    def files(self) -> Iterator[tuple[int, str, Path]]:
        """Yield (shard index, array name, path) of every file."""
        for number, shard in enumerate(self.manifest.shards):
            yield from ((number, name, self._path(number, name)) for name in shard.files)

    def check_sizes(self) -> None:
        """Raise DataError if a file is missing or has another size than the manifest states."""
        for number, name, path in self.files():
            expected = self.manifest.shards[number].files[name].bytes
            try:
                size = path.stat().st_size
            except OSError as error:
                raise DataError(f"{path} is part of {self.folder} and not there: {error.strerror}. {AGAIN}.") from None
            if size != expected:
                raise DataError(f"{path} has {size} bytes; the manifest says {expected}. {AGAIN}.")

    def _open(self, number: int) -> dict[str, ArrayFile]:
        """Open the array files of shard `number` and return them by name.

        DataError if a header does not match the manifest.
        """
        known = self.manifest.arrays(self.manifest.shards[number])
        files = self.manifest.shards[number].files
        return {
            name: ArrayFile(self._path(number, name), dtype, shape, files[name].sha256, self.verified)
            for name, (dtype, shape) in known.items()
        }

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield (shard index, first row in it, last row + 1) for each shard with rows of `start` to `stop`."""
        number = int(np.searchsorted(self.first_rows, start, side="right")) - 1
        while start < stop:
            shard = self.manifest.shards[number]
            end = min(stop, shard.first_row + shard.rows)
            if end > start:
                yield number, start - shard.first_row, end - shard.first_row
            start, number = end, number + 1

    def column(self, name: str, start: int, stop: int) -> np.ndarray:
        """Read `name` ("y" or "groups") of rows `start` to `stop` (exclusive) as a new array [rows] or [rows, outputs].

        DataError if a file is damaged.
        """
        parts = [self.arrays(number)[name].read(first, last) for number, first, last in self.parts(start, stop)]
        return np.concatenate(parts) if parts else self._empty(name)

    def _empty(self, name: str) -> np.ndarray:
        """Return array `name` ("y" or "groups") of no rows, [0] or [0, outputs], with its dtype."""
        width = () if self.manifest.y_width is None or name != "y" else (self.manifest.y_width,)
        return np.empty((0, *width), self.manifest.y_dtype if name == "y" else np.int64)

    def verify(self, tell: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Read every file, compare its SHA-256, and check that indices are sorted and in range and values finite.

        `tell(done, total)` is called after each file. Raises DataError for the first mismatch.
        """
        self.check_sizes()
        files = list(self.files())
        for done, (number, name, path) in enumerate(files):
            if sha256_of(path) != self.manifest.shards[number].files[name].sha256:
                raise DataError(f"{path} does not hold what was written: its SHA-256 is another one. {AGAIN}.")
            self.verified.add(path)
            tell(done + 1, len(files))
        rows = ShardRows(self, 0, self.manifest.shape[0], np.dtype(self.manifest.dtype))
        for shard in self.manifest.shards:
            try:
                formats.check(rows.read(shard.first_row, shard.first_row + shard.rows), full=True)
            except formats.FormatError as error:
                raise DataError(f"{self.folder}, rows from {shard.first_row} on: {error}") from None


@final
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ShardRows(StoredRows):
    """Rows `start` to `stop` of open shards."""

    shards: Shards
    start: int
    stop: int
    value_type: np.dtype

    @property
    def place(self) -> str:
        """Path of the folder of shards, for messages."""
        return str(self.shards.folder)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of these rows: (rows, features)."""
        return self.stop - self.start, self.shards.manifest.shape[1]

    @functools.cached_property
    def nnz(self) -> int:
        """Number of stored entries, cached; from the manifest for whole shards, else from row pointers."""
        return sum(
            shard.nnz if last - first == shard.rows else indptr.element(last) - indptr.element(first)
            for shard, indptr, first, last in self._pointers()
        )

    def _pointers(self) -> Iterator[tuple[Shard, ArrayFile, int, int]]:
        """Yield (shard, its row pointers, first row, last row + 1) of each shard that holds rows of this range."""
        for number, first, last in self.shards.parts(self.start, self.stop):
            yield self.shards.manifest.shards[number], self.shards.arrays(number)["indptr"], first, last

    @property
    def dtype(self) -> np.dtype:
        """Type of the values that reading returns."""
        return self.value_type

    @property
    def is_shuffled(self) -> bool:
        """Whether the rows were shuffled when they were converted."""
        return self.shards.manifest.shuffle is not None

    def astype(self, dtype: np.dtype) -> "ShardRows":
        """Return the same rows with values converted to `dtype` when they are read."""
        return dataclasses.replace(self, value_type=np.dtype(dtype))

    def between(self, start: int, stop: int) -> "ShardRows":
        """Return rows `start` to `stop` (exclusive) of these; nothing is read."""
        return dataclasses.replace(self, start=self.start + start, stop=self.start + stop)

    def row_lengths(self) -> np.ndarray:
        """Return the number of stored entries of each row, int64 [rows], read from the row pointers."""
        lengths = [np.diff(indptr.read(first, last + 1)) for _, indptr, first, last in self._pointers()]
        return np.concatenate(lengths) if lengths else np.empty(0, np.int64)

    def check_unchanged(self) -> None:
        """Raise DataError if a file of the folder is missing or has another size than the manifest states."""
        self.shards.check_sizes()

    def read_runs(self, runs: Sequence[tuple[int, int]]) -> Any:
        """Read rows `start` to `stop` (exclusive) of each run, one after the other, as one CSR array.

        Row pointers and column indices are validated, as kernels rely on them. Raises DataError if a file is damaged.
        """
        parts = [
            self._part(number, first, last)
            for start, stop in runs
            for number, first, last in self.shards.parts(self.start + start, self.start + stop)
        ]
        starts = np.cumsum(np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)]))
        rows, stored = len(starts) - 1, sum(part.stored for part in parts)
        columns = np.empty(stored, index_dtype(rows, self.shape[1], stored))
        data = np.empty(stored, self.dtype)
        at = 0
        for part in parts:
            place = slice(at, at + part.stored)
            part.arrays["indices"].read_into(columns[place], part.begin)
            if "data" in part.arrays:
                part.arrays["data"].read_into(data[place], part.begin)
            else:
                data[place] = 1
            at += part.stored
        return self._assemble_checked(starts, columns, data)

    def _part(self, number: int, first: int, last: int) -> _Part:
        """Return where the entries of rows first to last - 1 of shard `number` are.

        DataError if row pointers are invalid.
        """
        arrays = self.shards.arrays(number)
        indptr = arrays["indptr"].read(first, last + 1)
        begin, end = int(indptr[0]), int(indptr[-1])
        if not 0 <= begin <= end <= arrays["indices"].shape[0]:
            raise DataError(f"{self.place} is damaged: {POINTERS} {AGAIN}.")
        return _Part(arrays, np.diff(indptr), begin, end - begin)

    def _assemble_checked(self, starts: np.ndarray, columns: np.ndarray, data: np.ndarray) -> Any:
        """Return the CSR array of row pointers `starts`, `columns` and `data`.

        DataError if its structure is invalid.
        """
        rows, features, stored = len(starts) - 1, self.shape[1], len(columns)
        if not structure.rises(starts, stored):
            raise DataError(f"{self.place} is damaged: {POINTERS} {AGAIN}.")
        x = assemble("csr", starts.astype(columns.dtype), columns, data, (rows, features))
        if not structure.in_range(columns, features):
            try:
                formats.validate(x)
            except formats.FormatError as error:
                raise DataError(f"{self.place} is damaged: {error} {AGAIN}.") from None
        return x
