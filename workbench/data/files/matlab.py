"""Variables of a MATLAB file (version 5, as `save -v7` and `-v6` write): listed first, then only those wanted are read.

What holds no numbers or text, structures, cells, objects, functions, is never read; nothing in a file is executed.
"""

import os
import struct
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse
from scipy.io.matlab import MatReadError, MatReadWarning, matfile_version

from workbench.data.errors import DataError
from workbench.data.files.types import looks_like, starts_with
from workbench.formats.files import MOST_PACKED, bytes_memory

# Data elements of a MATLAB file of version 5, checked before SciPy reads them.
#
# SciPy looks the type of an element up in an array without a check of its bounds, so that a type which the format does
# not have ends the process. The layout is that of "MAT-File Format" (MathWorks, MAT-File Level 5).


FIRST = 128
"""Byte at which the elements begin, behind the header of the file."""
MATRIX, PACKED = 14, 15
TYPES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})
"""Types of elements that hold numbers or text."""
LEADING = (6, 5, 1)
"""Types of the elements before the values of every variable: flags, lengths of its sides, name."""
BYTES_FLAGS = 8
"""Bytes of the flags, which SciPy takes for granted whatever their element says."""
SPARSE = 5
CLASSES = frozenset(range(4, 16))
"""Classes of arrays that are read: text, sparse, numbers; cells, structures and objects are not."""
BLOCK = 1 << 16

Read = Callable[[int], bytes]
"""Reads that many bytes of an element; `ValueError` if it ends before."""


def check_elements(file: BinaryIO, names: Collection[str]) -> None:
    """Raise `ValueError` if a variable of those names has an element of an unknown type, or of more bytes than it has.

    O(bytes) for packed variables, which are unpacked a block at a time; else O(variables).
    """
    file.seek(0, os.SEEK_END)
    size, place = file.tell(), FIRST
    file.seek(FIRST - 2)
    order = "<" if file.read(2) == b"IM" else ">"
    while place + 8 <= size:
        file.seek(place)
        kind, count = struct.unpack(f"{order}II", file.read(8))
        place += 8 + count
        if place > size:
            raise ValueError(f"a variable claims {count:,} bytes, and the file ends {place - size:,} bytes before")
        if kind == MATRIX:
            _check_variable(_plain_of_elements(file, count), count, order, names)
        elif kind == PACKED:
            read = _unpacked(file, count)
            kind, count = struct.unpack(f"{order}II", read(8))
            if kind == MATRIX:
                _check_variable(read, count, order, names)


def _check_variable(read: Read, left: int, order: str, names: Collection[str]) -> None:
    """Check the elements of one variable: flags, lengths of its sides, name, and then what it holds."""
    number, needed = 0, len(LEADING)
    while number < needed:
        if left < 8:
            raise ValueError(f"a variable has {number} elements and needs {needed}")
        kind, content, taken = _element(read, left, order, is_kept=number < len(LEADING))
        if kind not in ((LEADING[number],) if number < len(LEADING) else TYPES):
            raise ValueError(f"element {number} of a variable has the type {kind}, which it never has")
        left, number = left - taken, number + 1
        if number == 1:
            if len(content) != BYTES_FLAGS:
                raise ValueError(f"the flags of a variable have {len(content)} bytes, not {BYTES_FLAGS}")
            flags = struct.unpack(f"{order}II", content)[0]
            if flags & 0xFF not in CLASSES:
                return
            needed += (3 if flags & 0xFF == SPARSE else 1) + (flags >> 11 & 1)
        elif number == len(LEADING) and content.decode("latin-1") not in names:
            return


def _element(read: Read, left: int, order: str, is_kept: bool) -> tuple[int, bytes, int]:
    """Return the type of the next element, its content if it is kept, and the bytes that it takes with its tag."""
    tag = read(8)
    kind, count = struct.unpack(f"{order}II", tag)
    if kind >> 16:  # a small element has its bytes in its tag
        if (count := kind >> 16) > 4:
            raise ValueError(f"an element claims {count:,} bytes in a tag that has 4")
        return kind & 0xFFFF, tag[4 : 4 + count], 8
    if count > left - 8:
        raise ValueError(f"an element claims {count:,} bytes, and its variable has {left - 8:,} left")
    padded = min(-(-count // 8) * 8, left - 8)
    if is_kept:
        return kind, read(padded)[:count], 8 + padded
    for start in range(0, padded, BLOCK):
        read(min(BLOCK, padded - start))
    return kind, b"", 8 + padded


def _plain_of_elements(file: BinaryIO, left: int) -> Read:
    """Return a function that reads `count` bytes of an uncompressed variable; ValueError beyond its `left` bytes."""

    def read(count: int) -> bytes:
        nonlocal left
        if count > left:
            raise ValueError(f"a variable ends {count - left:,} bytes before its elements")
        left -= count
        return file.read(count)

    return read


def _unpacked(file: BinaryIO, left: int) -> Read:
    """Return a function that reads `count` decompressed bytes of a variable stored in `left` bytes; ValueError at
    the end.
    """
    unpacker, ready = zlib.decompressobj(), b""

    def read(count: int) -> bytes:
        nonlocal left, ready
        parts, missing = [], count
        while missing:
            if not ready:
                packed = unpacker.unconsumed_tail or file.read(min(BLOCK, left))
                left -= 0 if unpacker.unconsumed_tail else len(packed)
                ready = unpacker.decompress(packed, BLOCK)
                if not ready and not packed:
                    raise ValueError("a packed variable ends before its elements")
            parts.append(ready[:missing])
            ready, missing = ready[missing:], missing - len(parts[-1])
        return b"".join(parts)

    return read


WHAT = "a MATLAB file of version 5"
HDF5 = b"\x89HDF"
NUMBERS = frozenset(
    {"double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
READ = NUMBERS | {"sparse", "char"}
"""Classes of variables that are read."""


class Variable(NamedTuple):
    """A variable as the file's list has it: name, shape, and MATLAB's class."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def is_matrix(self) -> bool:
        """Whether it is sparse, or an array of numbers with rows and columns."""
        return self.kind == "sparse" or (self.kind in NUMBERS and len(self.shape) == 2 and min(self.shape) > 1)

    @property
    def size(self) -> int:
        """Rows * columns."""
        return int(np.prod(self.shape, dtype=object))

    def __str__(self) -> str:
        return f"{self.name} ({' x '.join(map(str, self.shape))} {self.kind})"


@contextmanager
def opened_matlab(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """The file, once it is known to be one of version 5; others and damaged ones are refused (`DataError`)."""
    if starts_with(path, HDF5) or starts_with(path, b"MATLAB 7.3"):
        advice = "In MATLAB: save('file.mat', '-v7') writes one that is read"
        raise DataError(f"{path} is a MATLAB file of version 7.3, which is HDF5. {advice}.")
    with open(path, "rb") as file, warnings.catch_warnings():
        warnings.simplefilter("error", MatReadWarning)
        try:
            if not starts_with(path, b"MATLAB") or matfile_version(file)[0] != 1:
                looks, advice = looks_like(path)
                raise DataError(f"{path} cannot be read as {WHAT}: it looks like {looks}. {advice}.")
            yield file
        except (MatReadError, MatReadWarning) as error:
            raise DataError(f"{path} cannot be read as {WHAT}: {error}") from None


def variables(file: BinaryIO) -> list[Variable]:
    """Return all variables of the file; raises ValueError if one claims more bytes than the file has."""
    found = [Variable(name, tuple(map(int, shape)), kind) for name, shape, kind in scipy.io.whosmat(file)]
    size = os.fstat(file.fileno()).st_size
    for one in found:
        if one.kind in NUMBERS | {"char"} and one.size > MOST_PACKED * size:
            raise ValueError(f"{one} is more than a file of {size:,} bytes can hold")
        if one.kind in READ - {"sparse"} and 8 * one.size > (memory := bytes_memory()):
            raise ValueError(f"{one} would take {8 * one.size:,} bytes, and this machine has {memory:,}")
    return found


def values(file: BinaryIO, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of the variables of those names: arrays of numbers, text [rows], or csc arrays of floats."""
    names = list(names)
    check_elements(file, names)
    file.seek(0)
    read = scipy.io.loadmat(file, variable_names=names, verify_compressed_data_integrity=True)
    return {name: _plain(name, value) for name, value in read.items() if not name.startswith("__")}


def _plain(name: str, value: Any) -> Any:
    """Return a variable as a NumPy array or csc_array of float64; raise DataError for other types."""
    if scipy.sparse.issparse(value):
        data = value.data.astype(np.float64, copy=False) if value.dtype.kind in "biuf" else value.data
        return scipy.sparse.csc_array((data, value.indices, value.indptr), shape=value.shape)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUc":
        raise DataError(f"The variable {name} holds {type(value).__name__}; arrays of numbers and text are read.")
    return np.asarray(value)
