"""The `.npy` files of a shard: written in parts, hashed, and mapped into memory after a look at their headers."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files import reading
from workbench.formats.members import check_array

WHAT = "an array of a shard"


@dataclass(frozen=True)
class FileEntry:
    """What a manifest says of a file: its size in bytes and the SHA-256 of what it holds."""

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


def mapped(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The array in a file, mapped into memory: read from disk where it is touched.

    Refused (`DataError`): a file that is missing, cut short, or of another type or shape.
    """
    with reading(path, WHAT):
        with path.open("rb") as file:
            check_array(file)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype != dtype or array.shape != shape:
        found = f"{path} holds {array.dtype} {list(array.shape)}"
        raise DataError(f"{found}; the manifest says {dtype} {list(shape)}. Convert the data again.")
    return array.view(np.ndarray)
