"""Rows of a folder of shards: mapped into memory, checked as they are read, never held whole."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from kernels import structure
from workbench import formats
from workbench.data.errors import DataError
from workbench.data.shards import manifest as manifests
from workbench.data.shards.arrays import mapped, sha256_of
from workbench.data.shards.manifest import AGAIN, Manifest, Shard, folder_of
from workbench.data.stored import StoredRows
from workbench.formats.compressed import assemble
from workbench.formats.indices import index_dtype

MOST_MAPPED = 64
"""Shards that are mapped at a time: each takes a handle for every one of its files."""


@final
class Shards:
    """An open folder of shards. Files are looked at when it is opened, and again when they are mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: Manifest = manifests.read(folder)
        self.first_rows = np.array([shard.first_row for shard in self.manifest.shards], np.int64)
        self.mapped = functools.lru_cache(MOST_MAPPED)(self._map)
        self.check_sizes()

    def __reduce__(self) -> tuple:
        """Another process, such as a worker that is spawned, opens the folder anew."""
        return Shards, (self.folder,)

    def _path(self, number: int, name: str) -> Path:
        return folder_of(self.folder, number) / f"{name}.npy"

    def files(self) -> Iterator[tuple[int, str, Path]]:
        """Number of the shard, name of the array and path of every file."""
        for number, shard in enumerate(self.manifest.shards):
            yield from ((number, name, self._path(number, name)) for name in shard.files)

    def check_sizes(self) -> None:
        """Refuse files that are missing or of another size than the manifest says (`DataError`)."""
        for number, name, path in self.files():
            expected = self.manifest.shards[number].files[name].bytes
            try:
                size = path.stat().st_size
            except OSError as error:
                raise DataError(f"{path} is part of {self.folder} and not there: {error.strerror}. {AGAIN}.") from None
            if size != expected:
                raise DataError(f"{path} has {size} bytes; the manifest says {expected}. {AGAIN}.")

    def _map(self, number: int) -> dict[str, np.ndarray]:
        """The arrays of a shard by name."""
        known = self.manifest.arrays(self.manifest.shards[number])
        return {name: mapped(self._path(number, name), dtype, shape) for name, (dtype, shape) in known.items()}

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """(shard, first row in it, row behind the last one in it) of rows `start` to `stop`, one for each shard."""
        number = int(np.searchsorted(self.first_rows, start, side="right")) - 1
        while start < stop:
            shard = self.manifest.shards[number]
            end = min(stop, shard.first_row + shard.rows)
            if end > start:
                yield number, start - shard.first_row, end - shard.first_row
            start, number = end, number + 1

    def column(self, name: str, start: int, stop: int) -> np.ndarray:
        """`y` or `groups` of rows `start` to `stop`, in memory."""
        parts = [self.mapped(number)[name][first:last] for number, first, last in self.parts(start, stop)]
        return np.concatenate(parts) if parts else self._empty(name)

    def _empty(self, name: str) -> np.ndarray:
        width = () if self.manifest.y_width is None or name != "y" else (self.manifest.y_width,)
        return np.empty((0, *width), self.manifest.y_dtype if name == "y" else np.int64)

    def verify(self, tell: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Read every file: its hash, and that indices are sorted and in range and values finite (`DataError`)."""
        self.check_sizes()
        files = list(self.files())
        for done, (number, name, path) in enumerate(files):
            if sha256_of(path) != self.manifest.shards[number].files[name].sha256:
                raise DataError(f"{path} does not hold what was written: its SHA-256 is another one. {AGAIN}.")
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
        """The folder."""
        return str(self.shards.folder)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features)."""
        return self.stop - self.start, self.shards.manifest.shape[1]

    @functools.cached_property
    def nnz(self) -> int:
        """Stored entries: of whole shards by the manifest, of a part by its row pointers."""
        return sum(
            shard.nnz if last - first == shard.rows else int(indptr[last] - indptr[first])
            for shard, indptr, first, last in self._pointers()
        )

    def _pointers(self) -> Iterator[tuple[Shard, np.ndarray, int, int]]:
        for number, first, last in self.shards.parts(self.start, self.stop):
            yield self.shards.manifest.shards[number], self.shards.mapped(number)["indptr"], first, last

    @property
    def dtype(self) -> np.dtype:
        """Type of the values that reading gives."""
        return self.value_type

    @property
    def is_shuffled(self) -> bool:
        """Whether they were shuffled when they were converted."""
        return self.shards.manifest.shuffle is not None

    def astype(self, dtype: np.dtype) -> "ShardRows":
        """The same rows with values of another type."""
        return dataclasses.replace(self, value_type=np.dtype(dtype))

    def between(self, start: int, stop: int) -> "ShardRows":
        """Rows `start` to `stop` of these."""
        return dataclasses.replace(self, start=self.start + start, stop=self.start + stop)

    def row_lengths(self) -> np.ndarray:
        """Stored entries of each row, int64 [rows]."""
        lengths = [np.diff(indptr[first : last + 1]) for _, indptr, first, last in self._pointers()]
        return np.concatenate(lengths) if lengths else np.empty(0, np.int64)

    def check_unchanged(self) -> None:
        """Look at the sizes of all files."""
        self.shards.check_sizes()

    def read_runs(self, runs: Sequence[tuple[int, int]]) -> Any:
        """Copied from the maps in one pass, and every row pointer and index checked: kernels follow them."""
        lengths, indices, values = [np.zeros(1, np.int64)], [], []
        for start, stop in runs:
            for number, first, last in self.shards.parts(self.start + start, self.start + stop):
                arrays = self.shards.mapped(number)
                indptr = arrays["indptr"][first : last + 1]
                entries = slice(int(indptr[0]), int(indptr[-1]))
                lengths.append(np.diff(indptr))
                indices.append(arrays["indices"][entries])
                values.append(arrays["data"][entries] if "data" in arrays else _ones(len(indices[-1]), self.dtype))
        starts = np.cumsum(np.concatenate(lengths))
        return self._checked(starts, indices, values)

    def _checked(self, starts: np.ndarray, indices: list[np.ndarray], values: list[np.ndarray]) -> Any:
        rows, features, stored = len(starts) - 1, self.shape[1], sum(map(len, indices))
        dtype = index_dtype(rows, features, stored)
        columns = np.concatenate([np.empty(0, dtype), *indices], dtype=dtype, casting="same_kind")
        data = np.concatenate([np.empty(0, self.dtype), *values], dtype=self.dtype, casting="same_kind")
        if not structure.rises(starts, stored):
            raise DataError(f"{self.place} is damaged: its row pointers fall, or do not end at its entries. {AGAIN}.")
        x = assemble("csr", starts.astype(dtype), columns, data, (rows, features))
        if not structure.in_range(columns, features) or len(data) != stored:
            try:
                formats.enter(x)
            except formats.FormatError as error:
                raise DataError(f"{self.place} is damaged: {error} {AGAIN}.") from None
        return x


def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    """Ones without the memory of so many."""
    return np.broadcast_to(np.ones(1, dtype), count)
