"""Blocks of rows as a compact copy on the disk, for the passes after the first: text is parsed once.

Column numbers of a row are differences from one to the next, seven bits a byte; values are left out if all of a block
are 1, and have a byte each if they are whole numbers up to 255. The copy is an open file without a name: the system
removes it with the process, however that ends. It is given up if it would take more than half of what is free.

>>> import tempfile, numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array(np.float32([[0, 1, 1], [0, 0, 1]]))
>>> cache = BlockCache(Path(tempfile.gettempdir()))
>>> cache.keep(StreamedBlock(x, np.array([0, 1]), 8))
>>> [(block.x.toarray().tolist(), block.labels.tolist(), block.position) for block in cache.blocks(0)]
[([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]], [0, 1], 8)]
>>> cache.close()
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from kernels.threads import compiled
from workbench.data.dataset.record import StreamedBlock
from workbench.data.files.lent_lines import one_ahead
from workbench.formats.compressed import assemble

MOST_BYTES_COLUMN = 10
"""Bytes of a difference of two 64-bit numbers at most."""
LENT = 3
"""Blocks whose memory is used in turn: one that is trained on, one that waits, and one that is read."""
ONES, BYTES, NUMBERS = range(3)
"""How the values of a block are kept."""


@compiled
def _encode(indptr: np.ndarray, indices: np.ndarray, out: np.ndarray) -> int:
    """Write the differences of the column numbers of each row of csr to out, uint8; return how many bytes it took."""
    at = 0
    for row in range(indptr.size - 1):
        before = np.int64(0)
        for k in range(indptr[row], indptr[row + 1]):
            step = np.int64(indices[k]) - before
            before += step
            number = np.uint64((step << 1) ^ (step >> 63))  # small for columns that fall, too
            while number >= np.uint64(128):
                out[at] = np.uint8(number & np.uint64(127)) | np.uint8(128)
                number >>= np.uint64(7)
                at += 1
            out[at] = np.uint8(number)
            at += 1
    return at


@compiled
def _pack(values: np.ndarray, out: np.ndarray) -> int:
    """Write values to out, uint8, if they are whole numbers up to 255; return how they are kept."""
    are_ones = True
    for k in range(values.size):
        value = values[k]
        small = np.uint8(value) if value >= 0 and value < 256 else np.uint8(0)
        if small != value or (value == 0 and np.signbit(value)):
            return NUMBERS
        out[k] = small
        are_ones = are_ones and small == 1
    return ONES if are_ones else BYTES


@compiled
def _decode(indptr: np.ndarray, coded: np.ndarray, indices: np.ndarray) -> None:
    """Write the column numbers of each row of csr, of which `coded` has the differences, to indices."""
    at = 0
    for row in range(indptr.size - 1):
        column = np.int64(0)
        for k in range(indptr[row], indptr[row + 1]):
            number, shift = np.uint64(0), np.uint64(0)
            while coded[at] >= 128:
                number |= np.uint64(coded[at] & np.uint8(127)) << shift
                shift += np.uint64(7)
                at += 1
            number |= np.uint64(coded[at]) << shift
            at += 1
            column += np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1))
            indices[k] = column


class _Kept(NamedTuple):
    """What is known of a block in the file: where it begins, its sizes and types, and where to go on behind it."""

    start: int
    coded: int
    how: int
    shape: tuple[int, int]
    entries: int
    types: tuple[np.dtype, np.dtype, np.dtype, np.dtype]
    position: int


class _Memory:
    """Arrays that grow and are used again, by name."""

    def __init__(self) -> None:
        """Start without any."""
        self.arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, count: int, dtype: Any) -> np.ndarray:
        """Return an array [count] over this memory, with whatever is in it."""
        needed = count * np.dtype(dtype).itemsize
        if name not in self.arrays or self.arrays[name].size < needed:
            self.arrays[name] = np.empty(needed + needed // 4, np.uint8)
        return self.arrays[name][:needed].view(dtype)


@final
class BlockCache:
    """Blocks of a pass in a file without a name: `keep` each in turn, then `blocks` gives them as often as asked for.

    OSError if there is no room for it, or the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        """Open a file in the folder, which is made if it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self.file: Any = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the cache
        self.most, self.size, self.kept, self.memory = shutil.disk_usage(folder).free // 2, 0, list[_Kept](), _Memory()

    def keep(self, block: StreamedBlock) -> None:
        """Append a block to the file."""
        x, labels = block.x, np.ascontiguousarray(block.labels)
        out = self.memory.array("coded", x.nnz * MOST_BYTES_COLUMN, np.uint8)
        coded = _encode(x.indptr, x.indices, out)
        small = self.memory.array("small", x.nnz, np.uint8)
        how = _pack(x.data, small)
        values = {ONES: small[:0], BYTES: small, NUMBERS: np.ascontiguousarray(x.data)}[how]
        parts = (np.diff(x.indptr), out[:coded], values, labels)
        if self.size + sum(part.nbytes for part in parts) > self.most:
            raise OSError("there is too little room on the disk")
        types = x.indptr.dtype, x.indices.dtype, x.data.dtype, labels.dtype
        self.kept.append(_Kept(self.size, coded, how, x.shape, x.nnz, types, block.position))
        for part in parts:
            self.file.write(part.data if part.size else b"")
            self.size += part.nbytes

    def blocks(self, position: int) -> Iterator[StreamedBlock]:
        """Yield the blocks from a position on, read and decoded one ahead; their memory is used again."""
        self.file.flush()
        memories = [_Memory() for _ in range(LENT)]
        rest = [one for one in self.kept if one.position > position]
        yield from one_ahead(self._read(one, memories[place % LENT]) for place, one in enumerate(rest))

    def _read(self, one: _Kept, memory: _Memory) -> StreamedBlock:
        """Return a block over lent memory."""
        rows, kinds = one.shape[0], one.types
        kind = {BYTES: np.dtype(np.uint8), NUMBERS: kinds[2]}.get(one.how)
        values_of = (one.entries, kind) if kind is not None else (0, kinds[2])
        counts = (rows, kinds[0]), (one.coded, np.uint8), values_of, (rows, kinds[3])
        parts = [memory.array(str(place), *count) for place, count in enumerate(counts)]
        self.file.seek(one.start)
        for part in parts:
            if self.file.readinto(part.view(np.uint8)) != part.nbytes:
                raise OSError("the copy of the rows on the disk was cut")
        lengths, coded, values, labels = parts
        starts = memory.array("starts", rows + 1, kinds[0])
        starts[0] = 0
        np.cumsum(lengths, out=starts[1:])
        indices, data = (memory.array(name, one.entries, kinds[place]) for place, name in ((1, "columns"), (2, "data")))
        _decode(starts, coded, indices)
        data[:] = 1 if one.how == ONES else values
        return StreamedBlock(assemble("csr", starts, indices, data, one.shape), labels, one.position)

    def close(self) -> None:
        """Remove the file."""
        self.file.close()
