"""The `.npy` files of a shard: written in parts, hashed, and read in parts after a look at their headers."""

import hashlib
import math
import os
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files.reading import reading
from workbench.formats.members import check_array

WHAT = "an array of a shard"


@dataclass(frozen=True)
class FileEntry:
    """Manifest entry of one file: its size in bytes and the SHA-256 of its content."""

    bytes: int
    sha256: str


def write_array(path: Path, dtype: np.dtype, shape: tuple[int, ...], parts: Iterable[np.ndarray]) -> FileEntry:
    """Write an array [shape] that comes in parts along its first axis, which are cast; the file is new.

    It is not synced: a file that a power cut has cut short is known by its size, and others by their hash.
    """
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with path.open("xb") as file:  # not by numpy.save, which says nothing of a disk that is full at the end
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype).data.cast("B") if part.size else b"")
        size = file.tell()
    return FileEntry(size, sha256_of(path))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with reading(path, WHAT), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@final
class ArrayFile:
    """An array in a file, of which parts are read when they are asked for; its header is looked at when it is opened.

    It is not mapped into memory: touching a part of a map that another program has cut off ends the process (SIGBUS),
    where a read that ends too soon is refused. Threads may share it, and so may a process and its forks.

    Refused (`DataError`): a file that is missing, cut short, or of another type or shape than `dtype` and `shape`.
    """

    def __init__(self, path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, dtype, shape
        with reading(path, WHAT), path.open("rb") as file:
            header = check_array(file)
            found = f"{path} holds {header.dtype} {list(header.shape)}"
            if header.dtype != dtype or header.shape != shape or (header.fortran and len(shape) > 1):
                raise DataError(f"{found}; the manifest says {dtype} {list(shape)}. Convert the data again.")
            self.handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.handle)
        self.start = header.start
        self.bytes_row = dtype.itemsize * math.prod(shape[1:])

    def read(self, first: int, last: int) -> np.ndarray:
        """Elements `first` to `last` along the first axis, in memory."""
        part = np.empty((last - first, *self.shape[1:]), self.dtype)
        self.read_into(part, first)
        return part

    def element(self, number: int) -> int:
        """One of a one-dimensional array of whole numbers."""
        return int(self.read(number, number + 1)[0])

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fill contiguous `out` with elements from `first` on; cast where `out` has another type of the same kind."""
        if out.dtype != self.dtype:
            np.copyto(out, self.read(first, first + len(out)), casting="same_kind")
            return
        wanted, at = out.reshape(-1).view(np.uint8).data, 0
        while at < len(wanted):
            count = os.preadv(self.handle, [wanted[at:]], self.start + first * self.bytes_row + at)
            if not count:
                told = f"{self.path} ends before its element {first + at // self.bytes_row} of {self.shape[0]}"
                raise DataError(f"{told}: another program cut it while it was read. Convert the data again.")
            at += count
