"""Variables of a MATLAB file of version 4 or 5: listed, checked, and read if wanted.

What holds no numbers or text, structures, cells, objects, functions, is never read; nothing in a file is executed.
SciPy looks the type of an element up in an array without a check of its bounds, so that a type which the format does
not have ends the process: elements are checked before. The layout is that of "MAT-File Format" (MathWorks, MAT-File
Level 5).
"""

import os
import struct
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse
from scipy.io.matlab import MatReadError, MatReadWarning, matfile_version

from workbench.data.errors import DataError
from workbench.data.files.types import is_matlab_4, other_file_error, starts_with
from workbench.formats.files import MOST_PACKED, bytes_memory

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
    """Check the element headers of the variables `names` in a MATLAB 5 file, which SciPy trusts.

    Raises ValueError for an unknown element type, or for a size above the bytes that are left. Moves the file position.
    O(bytes) for compressed variables, decompressed block by block; else O(variables).
    """
    file.seek(0, os.SEEK_END)
    size, place = file.tell(), FIRST
    file.seek(FIRST - 2)
    order = "<" if file.read(2) == b"IM" else ">"
    while place + 8 <= size:
        file.seek(place)
        kind, count = struct.unpack(f"{order}II", _read_exactly(file, 8))
        place += 8 + count
        if place > size:
            raise ValueError(f"a variable claims {count:,} bytes, and the file ends {place - size:,} bytes before")
        if kind == MATRIX:
            _check_variable(partial(_read_exactly, file), count, order, names)
        elif kind == PACKED:
            read = _unpacking_reader(file, count)
            kind, count = struct.unpack(f"{order}II", read(8))
            if kind == MATRIX:
                _check_variable(read, count, order, names)


def _check_variable(read: Read, left: int, order: str, names: Collection[str]) -> None:
    """Check flags, shape, name and data elements of one variable of `left` bytes; ValueError if one is invalid.

    `read` reads its bytes, `order` is "<" or ">". Variables that are not in `names`, or of other classes, are checked
    no further.
    """
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
    """Read the next element and return (type, content, bytes taken with its tag); content is b"" unless `is_kept`.

    `left` is the number of bytes the variable has left; ValueError if the element claims more.
    """
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


def _read_exactly(file: BinaryIO, count: int) -> bytes:
    """Return the next `count` bytes; ValueError if there are fewer, as of a file that was cut while it is read."""
    if len(content := file.read(count)) < count:
        raise ValueError(f"the file ends {count - len(content):,} bytes before its elements")
    return content


def _unpacking_reader(file: BinaryIO, left: int) -> Read:
    """Return a function that reads the next `count` decompressed bytes of a variable stored in `left` bytes.

    It decompresses block by block and raises ValueError beyond the end.
    """
    unpacker, ready = zlib.decompressobj(), b""

    def read(count: int) -> bytes:
        """Return the next `count` decompressed bytes; ValueError if the variable ends before."""
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


WHAT = "a MATLAB file of version 4 or 5"
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
        """Whether it is sparse, or a numeric array with more than one row and column."""
        return self.kind == "sparse" or (self.kind in NUMBERS and len(self.shape) == 2 and min(self.shape) > 1)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    def __str__(self) -> str:
        """Return name, shape and class, such as "X (10 x 3 double)"."""
        return f"{self.name} ({' x '.join(map(str, self.shape))} {self.kind})"


@contextmanager
def open_matlab(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a MATLAB 4 or 5 file for reading in a `with` block, with SciPy's reading warnings raised as errors.

    Raises DataError for other versions and files, and for SciPy's reading errors within the block.
    """
    if starts_with(path, HDF5) or starts_with(path, b"MATLAB 7.3"):
        advice = "In MATLAB: save('file.mat', '-v7') writes one that is read"
        raise DataError(f"{path} is a MATLAB file of version 7.3, which is HDF5. {advice}.")
    # Sizes and indices of damaged files of version 4 overflow before SciPy refuses them.
    with open(path, "rb") as file, warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("error", MatReadWarning)
        try:
            if not is_matlab_4(file.read(128)) and not (starts_with(path, b"MATLAB") and matfile_version(file)[0] == 1):
                raise other_file_error(path, WHAT)
            file.seek(0)
            yield file
        except (MatReadError, MatReadWarning) as error:
            raise DataError(f"{path} cannot be read as {WHAT}: {error}") from None


def variables(file: BinaryIO) -> list[Variable]:
    """Return name, shape and class of all variables.

    ValueError if one claims more bytes than the file or memory has.
    """
    found = [Variable(name, tuple(map(int, shape)), kind) for name, shape, kind in scipy.io.whosmat(file)]
    size = os.fstat(file.fileno()).st_size
    for one in found:
        if one.kind in NUMBERS | {"char"} and one.size > MOST_PACKED * size:
            raise ValueError(f"{one} is more than a file of {size:,} bytes can hold")
        held = max(one.shape, default=0) if one.kind == "sparse" else one.size
        if one.kind in READ and 8 * held > (memory := bytes_memory()):
            raise ValueError(f"{one} would take {8 * held:,} bytes, and this machine has {memory:,}")
    return found


def values(file: BinaryIO, names: Iterable[str]) -> dict[str, Any]:
    """Return {name: value} of the variables `names`: numeric arrays, text [rows], or CSC arrays of float64.

    Raises ValueError if an element is invalid, DataError for a variable of another class.
    """
    names = list(names)
    file.seek(0)
    if not is_matlab_4(file.read(128)):
        check_elements(file, names)
    file.seek(0)
    read = scipy.io.loadmat(file, variable_names=names, verify_compressed_data_integrity=True, spmatrix=False)
    return {name: _plain(name, value) for name, value in read.items() if not name.startswith("__")}


def _plain(name: str, value: Any) -> Any:
    """Return a variable as a NumPy array of numbers or text, or a CSC array.

    DataError, with `name`, for other types.
    """
    if scipy.sparse.issparse(value):
        value = scipy.sparse.csc_array(value)  # coo of version 4
        data = value.data.astype(np.float64, copy=False) if value.dtype.kind in "biuf" else value.data
        return scipy.sparse.csc_array((data, value.indices, value.indptr), shape=value.shape)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUc":
        raise DataError(f"The variable {name} holds {type(value).__name__}; arrays of numbers and text are read.")
    return np.asarray(value)
