"""Rows in a random order by way of the disk: dealt to files by a hash of their number, and each file sorted by it.

The order is that of the hashes, so it depends on the seed alone, and not on how many files there are or how the rows
came. Rows of one group have one hash and stay next to each other, in the order in which they came.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.batches.slicing import gather_rows
from workbench.data.errors import DataError
from workbench.data.shards.writing import Rows
from workbench.formats.compressed import assemble, index_dtype

BITS = 6
FILES = 1 << BITS
MOST_LEVELS = 64 // BITS
BYTES_PENDING = 1 << 25
"""Bytes that are held before they are dealt out: some hundred kilobytes to each file."""


def hash_rows(units: np.ndarray, seed: int) -> np.ndarray:
    """Return a hash of each number, uint64 [R]: one to one for a seed. splitmix64, Steele, Lea and Flood 2014."""
    mixed = units.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


@final
class Shuffle:
    """Rows that are added in any blocks and come back in the order of their hashes; memory holds `most_bytes` of them.

    They are in the files of a folder meanwhile, which is made, and removed as they come back.
    """

    def __init__(self, folder: Path, most_bytes: int, level: int = 0) -> None:
        self.folder, self.most_bytes, self.level = folder, most_bytes, level
        folder.mkdir()
        self._pending: list[tuple[np.ndarray, Rows]] = []
        self._bytes = 0
        self.types = np.dtype(np.float32), np.dtype(np.float64)
        """Of values and of labels, the same in all rows."""

    def add(self, keys: np.ndarray, rows: Rows) -> None:
        """Take rows with their hashes, uint64 [R]."""
        if len(keys):
            self.types = rows.x.dtype, rows.y.dtype
            self._pending.append((keys, rows))
            self._bytes += int(rows.bytes_until()[-1])
        if self._bytes >= min(BYTES_PENDING, self.most_bytes):
            self._deal()

    def _deal(self) -> None:
        """Write what is pending to the files."""
        if not self._pending:
            return
        keys, rows = _joined(self._pending)
        self._pending, self._bytes = [], 0
        shift = np.uint64(64 - BITS * (self.level + 1))
        files = ((keys >> shift) & np.uint64(FILES - 1)).astype(np.int64)
        order = np.argsort(files, kind="stable")
        keys, rows = keys[order], _taken(rows, order)
        ends = np.cumsum(np.bincount(files, minlength=FILES)).tolist()
        for number, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
            if start < stop:
                with self._path(number).open("ab") as file:
                    _append(file, keys[start:stop], rows.between(start, stop))

    def _path(self, number: int) -> Path:
        """Return the path of temporary file `number`."""
        return self.folder / f"{number:02d}"

    def ordered(self) -> Iterator[Rows]:
        """Yield all rows, in the order of their hashes; what cannot be held at once is dealt out once more."""
        self._deal()
        for path in sorted(self.folder.iterdir()):
            if path.stat().st_size <= self.most_bytes or self.level + 1 == MOST_LEVELS:
                keys, rows = _joined(list(_chunks(path, self.types)))
                path.unlink()
                yield _taken(rows, np.argsort(keys, kind="stable"))
                del keys, rows
            else:
                finer = Shuffle(path.with_suffix(".finer"), self.most_bytes, self.level + 1)
                for keys, rows in _chunks(path, self.types):
                    finer.add(keys, rows)
                path.unlink()
                yield from finer.ordered()
        shutil.rmtree(self.folder)


def _append(file: BinaryIO, keys: np.ndarray, rows: Rows) -> None:
    """Write one chunk: its sizes and the widths of what differs, and the bytes of its arrays one after the other."""
    x, width = rows.x, rows.y.shape[1] if rows.y.ndim > 1 else -1
    sizes = [len(keys), x.nnz, x.shape[1], x.indices.itemsize, width, rows.groups is not None]
    arrays = [np.array(sizes, np.int64), keys, x.indptr, x.indices, x.data, rows.y]
    for array in arrays if rows.groups is None else [*arrays, rows.groups]:
        file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")


def _chunks(path: Path, types: tuple[np.dtype, np.dtype]) -> Iterator[tuple[np.ndarray, Rows]]:
    """Yield the chunks of a file, as they were appended; `types` are those of values and labels."""
    size = path.stat().st_size
    with path.open("rb") as file:

        def take(dtype: DTypeLike, count: int) -> np.ndarray:
            if len(read := file.read(count * np.dtype(dtype).itemsize)) < count * np.dtype(dtype).itemsize:
                raise OSError(f"{path} was cut short while it was read")
            return np.frombuffer(read, dtype)

        while file.tell() < size:
            count, nnz, features, itemsize, width, has_groups = take(np.int64, 6).tolist()
            keys, index = take(np.uint64, count), np.dtype(f"i{itemsize}")
            x = assemble("csr", take(index, count + 1), take(index, nnz), take(types[0], nnz), (count, features))
            y = take(types[1], count) if width < 0 else take(types[1], count * width).reshape(count, width)
            yield keys, Rows(x, y, take(np.int64, count) if has_groups else None)


def _joined(parts: list[tuple[np.ndarray, Rows]]) -> tuple[np.ndarray, Rows]:
    """Return the parts one after the other, as wide as the widest."""
    if len(parts) == 1:
        return parts[0]
    blocks = [rows for _, rows in parts]
    groups = [rows.groups for rows in blocks if rows.groups is not None]
    rows = Rows(stack_csr([block.x for block in blocks]), np.concatenate([block.y for block in blocks]))
    return np.concatenate([keys for keys, _ in parts]), rows._replace(groups=np.concatenate(groups) if groups else None)


def stack_csr(blocks: list[Any]) -> Any:
    """Return csr arrays one below the other, as wide as the widest, in one array."""
    if len(blocks) == 1:
        return blocks[0]
    nnz = sum(block.nnz for block in blocks)
    rows, width = sum(block.shape[0] for block in blocks), max(block.shape[1] for block in blocks)
    dtype = index_dtype(rows, width, nnz)
    before = np.cumsum([0, *(block.nnz for block in blocks[:-1])])
    starts = [block.indptr[1:].astype(dtype) + dtype.type(at) for block, at in zip(blocks, before, strict=True)]
    indptr = np.concatenate([np.zeros(1, dtype), *starts])
    indices = np.concatenate([block.indices for block in blocks], dtype=dtype, casting="same_kind")
    return assemble("csr", indptr, indices, np.concatenate([block.data for block in blocks]), (rows, width))


def stack_with_labels(parts: Sequence[tuple[Any, Any]], path: str | os.PathLike) -> tuple[Any, Any]:
    """Return csr arrays with their labels as one of each; no part is refused (`DataError`).

    Labels may be tuples, in lists.
    """
    if not parts:
        raise DataError(f"{path} holds no rows; a data set has at least one.")
    labels = [of_part for _, of_part in parts]
    is_array = isinstance(labels[0], np.ndarray)
    joined = np.concatenate(labels) if is_array else [of_row for of_part in labels for of_row in of_part]
    return stack_csr([x for x, _ in parts]), joined


def _taken(rows: Rows, order: np.ndarray) -> Rows:
    """Return the rows in the given order, with their labels and groups."""
    return Rows(gather_rows("csr", rows.x, order), rows.y[order], None if rows.groups is None else rows.groups[order])
