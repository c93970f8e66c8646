"""NumPy arrays in untrusted files, whose headers are checked before they are read: what they claim must be there.

NumPy takes memory for what a header claims, and reads afterwards; a few bytes can claim more than any machine has.
"""

import math
import os
import tokenize
import warnings
import zipfile
from typing import BinaryIO, NamedTuple

import numpy as np

MOST_PACKED = 1032
"""Bytes that one byte of a deflated member can stand for at most, by the form of the format."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def check_members(file: BinaryIO) -> None:
    """Refuse (`ValueError`) an .npz file whose members are not what they claim to be; nothing is unpacked but headers.

    Refused are members that overlap, that come twice, that claim more bytes than theirs can stand for or all together
    more than this machine's memory, arrays of another size than their header tells, and Python objects.
    """
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if twice := sorted({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()):
            raise ValueError(f"it has the member {twice[0]!r} twice")
        if sum(member.compress_size for member in members) > size:
            raise ValueError("its members overlap")
        for member in members:
            packed = 1 if member.compress_type == zipfile.ZIP_STORED else MOST_PACKED
            if member.file_size > packed * member.compress_size:
                raise ValueError(f"{member.filename!r} claims {member.file_size} bytes and has {member.compress_size}")
        if (claimed := sum(member.file_size for member in members)) > (memory := bytes_memory()):
            raise ValueError(f"it would take {claimed} bytes, and this machine has {memory}")
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as stream:
                    _check_array(stream, member.filename, member.file_size)
    file.seek(0)


class Header(NamedTuple):
    """Header of an .npy file, and the byte that its elements start at."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    start: int


def check_array(file: BinaryIO) -> Header:
    """Refuse (`ValueError`) an .npy file that does not have the size that its header tells, or holds Python objects."""
    header = _check_array(file, "the array", os.fstat(file.fileno()).st_size)
    file.seek(0)
    return header


def _check_array(file: BinaryIO, name: str, size: int) -> Header:
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"{name} has a header of version {version}; versions 1.0 and 2.0 are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a header that NumPy has to guess at
            shape, fortran, dtype = HEADERS[version](file)
    except (SyntaxError, MemoryError, RecursionError, TypeError, UserWarning, tokenize.TokenError) as error:
        raise ValueError(f"{name} has a header that cannot be read: {error}") from None
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are not loaded (allow_pickle=False)")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"{name} claims the shape {shape} of {dtype}, and has {size - file.tell()} bytes")
    return Header(dtype, shape, fortran, file.tell())


def bytes_memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
