"""Rows in a random order by way of the disk: dealt to files by a hash of their number, and each file sorted by it.

The order is that of the hashes, so it depends on the seed alone, and not on how many files there are or how the rows
came. Rows of one group have one hash and stay next to each other, in the order in which they came.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, final

import numpy as np
from numpy.typing import DTypeLike

from kernels import structure
from workbench.data.batches.slicing import gather_rows, slice_range
from workbench.data.errors import DataError
from workbench.data.shards.manifest import INDICES, FileEntry, Shard, folder_of, write_array
from workbench.formats.compressed import assemble, index_dtype, stack_csr

# Rows into shards: blocks are gathered until a shard is full, then its arrays are written.

RAW = "raw.npy"
"""The labels of a shard as they came, until all are known and what they mean is decided."""


class Rows(NamedTuple):
    """Some rows: x csr [R, features], labels [R] or [R, N], groups int64 [R] or None."""

    x: Any
    y: np.ndarray
    groups: np.ndarray | None = None

    def between(self, start: int, stop: int) -> "Rows":
        """Return rows `start` to `stop` (exclusive), as views."""
        groups = None if self.groups is None else self.groups[start:stop]
        return Rows(slice_range("csr", self.x, start, stop), self.y[start:stop], groups)

    def bytes_until(self) -> np.ndarray:
        """Return the cumulative size in bytes of the rows up to each one, int64 [R], with indices counted as int32."""
        each = 8 + self.y.itemsize * (self.y.shape[1] if self.y.ndim > 1 else 1) + (8 if self.groups is not None else 0)
        entries = (self.x.indptr[1:] - self.x.indptr[0]).astype(np.int64)
        return each * np.arange(1, len(self.y) + 1) + entries * (4 + self.x.data.itemsize)


@final
class ShardWriter:
    """Writes the rows it is given into shards of about `shard_bytes` bytes, at most one row more; holds one shard."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        """Start without rows; shards of about `shard_bytes` bytes are written below `folder`."""
        self.folder, self.shard_bytes = folder, shard_bytes
        self.shards: list[Shard] = []
        self.rows = 0
        self._pending: list[Rows] = []
        self._bytes_left = shard_bytes

    def add(self, block: Rows) -> None:
        """Append the rows of a block, and write each shard that is full.

        The block is kept, as views, until its shard is written.
        """
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
        """Write the pending rows as the next shard, in the narrowest index type; values that are all 1 are not stored.

        Labels are written as they came, to be converted by `finish`. OSError if that fails.
        """
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
        """Write the last shard, convert the labels of all shards on disk by `understood`, and return the shards."""
        if self._pending:
            self._write_shard()
        self.shards = [
            replace(shard, files={**shard.files, "y": self._label(number, understood)})
            for number, shard in enumerate(self.shards)
        ]
        return tuple(self.shards)

    def _label(self, number: int, understood: Callable[[np.ndarray], np.ndarray]) -> FileEntry:
        """Replace the raw labels of shard `number` on disk by `understood(raw)`; return the manifest entry."""
        folder = folder_of(self.folder, number)
        y = understood(np.load(folder / RAW, allow_pickle=False))
        (folder / RAW).unlink()
        return write_array(folder / "y.npy", y.dtype, y.shape, [y])


def _pointers(pending: list[Rows]) -> Iterator[np.ndarray]:
    """Yield arrays that concatenate to the row pointers of all parts one below the other, int64, beginning with [0]."""
    yield np.zeros(1, np.int64)
    before = 0
    for part in pending:
        yield part.x.indptr[1:].astype(np.int64) - int(part.x.indptr[0]) + before
        before += part.x.nnz


BITS = 6
FILES = 1 << BITS
MOST_LEVELS = 64 // BITS
BYTES_PENDING = 1 << 25
"""Bytes that are held before they are dealt out: some hundred kilobytes to each file."""


def hash_numbers(numbers: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return a uint64 hash of each integer, same shape, one-to-one per seed (SplitMix64, Steele, Lea, Flood 2014)."""
    return structure.mix_bits(numbers.astype(np.uint64) + np.uint64((seed + 1) * int(structure.PLACE) % 2**64))


@final
class Shuffle:
    """Rows that are added in any blocks and come back in the order of their hashes; memory holds `most_bytes` of them.

    They are in the files of a folder meanwhile, which is made, and removed as they come back.
    """

    def __init__(self, folder: Path, most_bytes: int, level: int = 0) -> None:
        """Create `folder` for the temporary files; `level` counts how often rows were distributed before."""
        self.folder, self.most_bytes, self.level = folder, most_bytes, level
        folder.mkdir()
        self._pending: list[tuple[np.ndarray, Rows]] = []
        self._bytes = 0
        self.types = np.dtype(np.float32), np.dtype(np.float64)
        """Of values and of labels, the same in all rows."""

    def add(self, keys: np.ndarray, rows: Rows) -> None:
        """Add rows with their hashes, uint64 [R]; they are written to files when enough are pending.

        No copy is made before.
        """
        if len(keys):
            self.types = rows.x.dtype, rows.y.dtype
            self._pending.append((keys, rows))
            self._bytes += int(rows.bytes_until()[-1])
        if self._bytes >= min(BYTES_PENDING, self.most_bytes):
            self._deal()

    def _deal(self) -> None:
        """Append the pending rows to temporary files by `BITS` bits of their hash, and drop them from memory."""
        if not self._pending:
            return
        keys, rows = _join_parts(self._pending)
        self._pending, self._bytes = [], 0
        shift = np.uint64(64 - BITS * (self.level + 1))
        files = ((keys >> shift) & np.uint64(FILES - 1)).astype(np.int64)
        order = np.argsort(files, kind="stable")
        keys, rows = keys[order], _take_rows(rows, order)
        ends = np.cumsum(np.bincount(files, minlength=FILES)).tolist()
        for number, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
            if start < stop:
                with self._path(number).open("ab") as file:
                    _append(file, keys[start:stop], rows.between(start, stop))

    def _path(self, number: int) -> Path:
        """Return the path of temporary file `number`."""
        return self.folder / f"{number:02d}"

    def ordered(self) -> Iterator[Rows]:
        """Yield all rows in blocks, sorted by hash; files too large for memory are distributed once more.

        Temporary files and the folder are deleted on the way.
        """
        self._deal()
        for path in sorted(self.folder.iterdir()):
            if path.stat().st_size <= self.most_bytes or self.level + 1 == MOST_LEVELS:
                keys, rows = _join_parts(list(_chunks(path, self.types)))
                path.unlink()
                yield _take_rows(rows, np.argsort(keys, kind="stable"))
                del keys, rows
            else:
                finer = Shuffle(path.with_suffix(".finer"), self.most_bytes, self.level + 1)
                for keys, rows in _chunks(path, self.types):
                    finer.add(keys, rows)
                path.unlink()
                yield from finer.ordered()
        shutil.rmtree(self.folder)


def _append(file: BinaryIO, keys: np.ndarray, rows: Rows) -> None:
    """Write one chunk to `file`: six int64 sizes, then the bytes of hashes, CSR arrays, labels and groups."""
    x, width = rows.x, rows.y.shape[1] if rows.y.ndim > 1 else -1
    sizes = [len(keys), x.nnz, x.shape[1], x.indices.itemsize, width, rows.groups is not None]
    arrays = [np.array(sizes, np.int64), keys, x.indptr, x.indices, x.data, rows.y]
    for array in arrays if rows.groups is None else [*arrays, rows.groups]:
        file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")


def _chunks(path: Path, types: tuple[np.dtype, np.dtype]) -> Iterator[tuple[np.ndarray, Rows]]:
    """Yield (hashes, rows) of each chunk of a file as `_append` wrote it; `types` are the dtypes of values and labels.

    Raises OSError if the file is truncated.
    """
    size = path.stat().st_size
    with path.open("rb") as file:

        def take(dtype: DTypeLike, count: int) -> np.ndarray:
            """Read the next `count` values of `dtype` as a read-only array; OSError if the file ends before."""
            if len(read := file.read(count * np.dtype(dtype).itemsize)) < count * np.dtype(dtype).itemsize:
                raise OSError(f"{path} was cut short while it was read")
            return np.frombuffer(read, dtype)

        while file.tell() < size:
            count, nnz, features, itemsize, width, has_groups = take(np.int64, 6).tolist()
            keys, index = take(np.uint64, count), np.dtype(f"i{itemsize}")
            x = assemble("csr", take(index, count + 1), take(index, nnz), take(types[0], nnz), (count, features))
            y = take(types[1], count) if width < 0 else take(types[1], count * width).reshape(count, width)
            yield keys, Rows(x, y, take(np.int64, count) if has_groups else None)


def _join_parts(parts: list[tuple[np.ndarray, Rows]]) -> tuple[np.ndarray, Rows]:
    """Return (hashes, rows) of all parts concatenated; matrices become as wide as the widest."""
    if len(parts) == 1:
        return parts[0]
    blocks = [rows for _, rows in parts]
    groups = [rows.groups for rows in blocks if rows.groups is not None]
    rows = Rows(stack_csr([block.x for block in blocks]), np.concatenate([block.y for block in blocks]))
    return np.concatenate([keys for keys, _ in parts]), rows._replace(groups=np.concatenate(groups) if groups else None)


def stack_with_labels(
    parts: Iterable[tuple[Any, Any]], path: str | os.PathLike, entries: "Growing | None" = None
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


def _take_rows(rows: Rows, order: np.ndarray) -> Rows:
    """Return the rows with indices `order`, int64 [R], copied, with their labels and groups."""
    return Rows(gather_rows("csr", rows.x, order), rows.y[order], None if rows.groups is None else rows.groups[order])
