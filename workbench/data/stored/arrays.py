"""Arrays of a folder of stored rows: written in parts, and read in parts that are compared with their checksums."""

import os
import weakref
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files.reading import reading
from workbench.formats.files import check_array

CHUNK = 1 << 20
"""Bytes of a file that have one checksum."""
AGAIN = "Convert the data again: workbench data convert FILE FOLDER"


@final
class ArrayFile:
    """An array in a `.npy` file, of which parts are read when needed.

    It is not mapped into memory: pages of a map count as memory of the process, and touching a part that another
    program has cut off ends the process (SIGBUS). Each `CHUNK` of the file is compared with its checksum in `checksums`
    when it is first read; None checks nothing. Threads may share it. Raises DataError if the file is invalid.
    """

    def __init__(self, path: Path, checksums: Sequence[int] | None = None) -> None:
        """Open the file and read its header; the file descriptor is closed when this object is collected."""
        self.path, self.checksums = path, checksums
        with reading(path, "a stored array"), path.open("rb") as file:
            header = check_array(file)
            self.handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.handle)
        self.dtype, self.shape, self.start = header.dtype, header.shape, header.start
        self.bytes_row = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        self.unchecked = set(range(len(checksums or ())))

    def read(self, first: int, last: int) -> np.ndarray:
        """Return elements `first` to `last` (exclusive) along the first axis; DataError if the file is damaged."""
        out = np.empty((last - first, *self.shape[1:]), self.dtype)
        self.read_into(out, first)
        return out

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fill `out`, contiguous, with the elements from `first` on, converted to its type; DataError if damaged."""
        if out.dtype != self.dtype:
            out[:] = self.read(first, first + len(out))
            return
        begin = self.start + first * self.bytes_row
        self.check(begin, begin + out.nbytes)
        self._read_bytes(out.reshape(-1).view(np.uint8), begin)

    def check(self, begin: int = 0, end: int | None = None) -> None:
        """Compare the chunks of bytes `begin` to `end` with their checksums; DataError if one differs."""
        last = len(self.checksums or ()) if end is None else -(-end // CHUNK)
        for number in sorted(self.unchecked.intersection(range(begin // CHUNK, last))) if self.unchecked else ():
            size = self.start + self.shape[0] * self.bytes_row
            chunk = np.empty(min(CHUNK, size - number * CHUNK), np.uint8)
            self._read_bytes(chunk, number * CHUNK)
            if self.checksums and zlib.crc32(chunk.data) != self.checksums[number]:
                raise DataError(f"{self.path} does not hold what was written: its checksum differs. {AGAIN}.")
            self.unchecked.discard(number)

    def _read_bytes(self, out: np.ndarray, begin: int) -> None:
        """Fill `out` (uint8 [n]) with the bytes of the file from `begin` on; DataError if it ends before."""
        at = 0
        while at < len(out):
            count = os.preadv(self.handle, [out[at:].data], begin + at)
            if not count:
                raise DataError(f"{self.path} ends at byte {begin + at}: another program cut it. {AGAIN}.")
            at += count


@final
class ArrayWriter:
    """A `.npy` file to which parts of an array are appended; its header is completed by `close`."""

    def __init__(self, path: Path, dtype: Any, width: tuple[int, ...] = ()) -> None:
        """Create the file for rows of shape `width`; OSError if it exists."""
        self.path, self.dtype, self.width, self.rows = path, np.dtype(dtype), width, 0
        self._write_header("xb")

    def _write_header(self, mode: str) -> None:
        """Write the header, which has the same size for any number of rows."""
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        with open(self.path, mode) as file:
            np.lib.format.write_array_header_1_0(file, header | {"shape": (self.rows, *self.width)})

    def append(self, part: np.ndarray) -> None:
        """Append rows, cast to the type of the file; OSError if the disk is full."""
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(part, self.dtype).reshape(-1).view(np.uint8).data)
        self.rows += len(part)

    def close(self) -> None:
        """Write the final header."""
        self._write_header("r+b")


@final
class MatrixWriter:
    """Rows appended to the files indptr, indices and data of a folder."""

    def __init__(self, folder: Path, index: Any, dtype: Any) -> None:
        """Create the files in `folder`, which is made if it does not exist."""
        folder.mkdir(exist_ok=True)
        self.folder, self.nnz, self.is_binary = folder, 0, True
        types = {"indptr": np.int64, "indices": index, "data": dtype}
        self.files = {name: ArrayWriter(folder / f"{name}.npy", kind) for name, kind in types.items()}
        self.files["indptr"].append(np.zeros(1))

    def add(self, x: Any) -> None:
        """Append the rows of a CSR array; DataError if a column does not fit the type of the indices."""
        if x.indices.max(initial=0) > np.iinfo(self.files["indices"].dtype).max:
            raise DataError(f"Column {x.indices.max()} comes after narrower rows; type features={x.shape[1]}.")
        self.files["indptr"].append(x.indptr[1:].astype(np.int64) - int(x.indptr[0]) + self.nnz)
        self.files["indices"].append(x.indices)
        self.files["data"].append(x.data)
        self.nnz += x.nnz
        self.is_binary = self.is_binary and bool((x.data == 1).all())

    def close(self) -> None:
        """Complete the files; values that are all 1 are not kept."""
        for file in self.files.values():
            file.close()
        if self.is_binary:
            (self.folder / "data.npy").unlink()


def write_array(folder: Path, name: str, array: np.ndarray) -> None:
    """Write the array `name` of a folder; OSError if it exists."""
    file = ArrayWriter(folder / f"{name}.npy", array.dtype, array.shape[1:])
    file.append(array)
    file.close()


def checksums(path: Path) -> Iterator[int]:
    """Yield the CRC-32 of each `CHUNK` of a file."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield zlib.crc32(chunk)


def count_chunks(size: int) -> int:
    """Return how many checksums a file of `size` bytes has."""
    return -(-size // CHUNK)
