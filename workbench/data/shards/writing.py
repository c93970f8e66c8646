"""Rows into shards: blocks are gathered until a shard is full, then its arrays are written."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from workbench.data.batches.slicing import slice_range
from workbench.data.shards.manifest import INDICES, FileEntry, Shard, folder_of, write_array

RAW = "raw.npy"
"""The labels of a shard as they came, until all are known and what they mean is decided."""


class Rows(NamedTuple):
    """Some rows: x csr [R, features], labels [R] or [R, N], groups int64 [R] or None."""

    x: Any
    y: np.ndarray
    groups: np.ndarray | None = None

    def between(self, start: int, stop: int) -> "Rows":
        """Return rows `start` to `stop`, sharing memory."""
        groups = None if self.groups is None else self.groups[start:stop]
        return Rows(slice_range("csr", self.x, start, stop), self.y[start:stop], groups)

    def bytes_until(self) -> np.ndarray:
        """Return the bytes of all rows up to each one, as int32 indices, int64 [R]."""
        each = 8 + self.y.itemsize * (self.y.shape[1] if self.y.ndim > 1 else 1) + (8 if self.groups is not None else 0)
        entries = (self.x.indptr[1:] - self.x.indptr[0]).astype(np.int64)
        return each * np.arange(1, len(self.y) + 1) + entries * (4 + self.x.data.itemsize)


@final
class ShardWriter:
    """Writes the rows it is given into shards of about `shard_bytes` bytes, at most one row more; holds one shard."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        self.folder, self.shard_bytes = folder, shard_bytes
        self.shards: list[Shard] = []
        self.rows = 0
        self._pending: list[Rows] = []
        self._bytes_left = shard_bytes

    def add(self, block: Rows) -> None:
        """Write the block behind the others."""
        start, sizes = 0, block.bytes_until()
        while start < len(block.y):
            before = int(sizes[start - 1]) if start else 0
            stop = int(np.searchsorted(sizes, before + self._bytes_left, side="right"))
            stop = max(stop, start + (not self._pending))  # a row larger than a shard has one of its own
            if stop > start:
                self._pending.append(block.between(start, stop))
                self._bytes_left -= int(sizes[stop - 1]) - before
                start = stop
            if start < len(block.y):
                self._write_shard()

    def _write_shard(self) -> None:
        """Write what is pending as a shard."""
        pending, self._pending, self._bytes_left = self._pending, [], self.shard_bytes
        folder = folder_of(self.folder, len(self.shards))
        folder.mkdir()
        rows, nnz = sum(len(part.y) for part in pending), sum(part.x.nnz for part in pending)
        largest = max((int(part.x.indices.max(initial=0)) for part in pending), default=0)
        narrow = next(name for name in INDICES if largest <= np.iinfo(name).max)
        columns = (part.x.indices for part in pending)
        files = {
            "indptr": write_array(folder / "indptr.npy", np.dtype(np.int64), (rows + 1,), _pointers(pending)),
            "indices": write_array(folder / "indices.npy", np.dtype(narrow), (nnz,), columns),
        }
        if not all((part.x.data == 1).all() for part in pending):
            dtype = pending[0].x.dtype
            files["data"] = write_array(folder / "data.npy", dtype, (nnz,), (one.x.data for one in pending))
        if pending[0].groups is not None:
            groups = (part.groups for part in pending if part.groups is not None)
            files["groups"] = write_array(folder / "groups.npy", np.dtype(np.int64), (rows,), groups)
        y = pending[0].y
        write_array(folder / RAW, y.dtype, (rows, *y.shape[1:]), (one.y for one in pending))
        self.shards.append(Shard(self.rows, rows, nnz, narrow, files))
        self.rows += rows

    def finish(self, understood: Callable[[np.ndarray], np.ndarray]) -> tuple[Shard, ...]:
        """Write the last shard and the labels of all shards, converted by `understood`."""
        if self._pending:
            self._write_shard()
        self.shards = [
            replace(shard, files={**shard.files, "y": self._label(number, understood)})
            for number, shard in enumerate(self.shards)
        ]
        return tuple(self.shards)

    def _label(self, number: int, understood: Callable[[np.ndarray], np.ndarray]) -> FileEntry:
        """Replace the raw labels of shard `number` by the encoded ones on disk; return the entry for the manifest."""
        folder = folder_of(self.folder, number)
        y = understood(np.load(folder / RAW, allow_pickle=False))
        (folder / RAW).unlink()
        return write_array(folder / "y.npy", y.dtype, y.shape, [y])


def _pointers(pending: list[Rows]) -> Iterator[np.ndarray]:
    """Yield the row pointers of all parts, one after the other."""
    yield np.zeros(1, np.int64)
    before = 0
    for part in pending:
        yield part.x.indptr[1:].astype(np.int64) - int(part.x.indptr[0]) + before
        before += part.x.nnz
