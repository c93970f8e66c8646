"""The format of everything that is saved: arrays of every format and what they are, in one file without pickle.

It is an .npz of plain arrays. The member `contents` is a JSON table: name, format and shape of each array, the members
with its components, and `about`, a JSON object that says what the arrays are (the graph of a checkpoint, its position).
Members are numbered, so array names may have any characters.
"""

import json
import math
import os
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from workbench import atomic_files
from workbench.formats.contract import FormatError, as_shape, check_values, get, validate
from workbench.json_text import parsed

# NumPy arrays in untrusted files, whose headers are checked before they are read: what they claim must be there.
#
# NumPy takes memory for what a header claims, and reads afterwards; a few bytes can claim more than any machine has.


MOST_PACKED = 1032
"""Bytes that one byte of a deflated member can stand for at most, by the form of the format."""

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def check_members(file: BinaryIO, is_compressed: bool = True) -> dict[str, "Header"]:
    """Validate an .npz file without unpacking more than headers; return the header of each array by member name.

    Raises ValueError if members overlap or occur twice, claim more bytes than their compressed size or this machine's
    memory allow, differ in size from their header, or contain Python objects. Unless it `is_compressed`, members that
    are compressed are refused too, so that no array is larger than the file.
    """
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if twice := sorted({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()):
            raise ValueError(f"it has the member {twice[0]!r} twice")
        if sum(member.compress_size for member in members) > size:
            raise ValueError("its members overlap")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED and not is_compressed:
                raise ValueError(f"{member.filename!r} is compressed; expected as it was saved")
            packed = 1 if member.compress_type == zipfile.ZIP_STORED else MOST_PACKED
            if member.file_size > packed * member.compress_size:
                raise ValueError(f"{member.filename!r} claims {member.file_size} bytes and has {member.compress_size}")
        if (claimed := sum(member.file_size for member in members)) > (memory := bytes_memory()):
            raise ValueError(f"it would take {claimed} bytes, and this machine has {memory}")
        headers = {}
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as stream:
                    headers[member.filename] = _check_array(stream, member.filename, member.file_size)
    file.seek(0)
    return headers


class Header(NamedTuple):
    """Header of an .npy file: dtype, shape, memory order and the byte offset of the first element."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    start: int


def check_array(file: BinaryIO) -> Header:
    """Validate an open .npy file and return its header. Raises ValueError for a wrong size or for Python objects."""
    header = _check_array(file, "the array", os.fstat(file.fileno()).st_size)
    file.seek(0)
    return header


def _check_array(file: IO[bytes], name: str, size: int) -> Header:
    """Return the header of the .npy member `name` of `size` bytes, read from `file`.

    Raises ValueError if it is invalid. It also is if the size does not fit or the array has Python objects.
    """
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
    """Return the bytes of physical memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


KIND = "sparse-workbench arrays"
VERSION = 2


def save(path: str | os.PathLike, arrays: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> None:
    """Write arrays of any format into one file, atomically: the file appears complete or not at all.

    Formats, dtypes, shapes and sparsity patterns are kept, including explicit zeros, unsorted and duplicated entries.

    Parameters
    ----------
    path : str or os.PathLike
        File to write; its extension is not changed.
    arrays : mapping of str to array
        Arrays by name.
    about : mapping, optional
        What the arrays are, as values of JSON; `load_about` returns it.

    Raises
    ------
    FormatError
        If `arrays` is no mapping, a name is no string or an array is invalid.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/x.npz", {"x": np.zeros(2, np.float32)})
    ...     os.listdir(folder)
    ['x.npz']
    """
    if not isinstance(arrays, Mapping):
        raise FormatError(f"A {type(arrays).__name__} came. Allowed: arrays by name. Call save(path, {{'x': x}}).")
    members: dict[str, np.ndarray] = {}
    contents = []
    for number, (name, x) in enumerate(arrays.items()):
        if not isinstance(name, str):
            raise FormatError(f"An array was named {name!r}. Allowed: text. Call save(path, {{str(name): array}}).")
        format, x = validate(x)
        check_values(x, f"The {format.name} array")
        parts = {part: f"{number}.{part}" for part in format.parts(x)}
        contents.append({"name": name, "format": format.name, "shape": list(x.shape), "parts": parts})
        members |= {parts[part]: array for part, array in format.parts(x).items()}
    table = json.dumps({"kind": KIND, "version": VERSION, "arrays": contents, "about": about})
    members["contents"] = np.array(table)
    with atomic_files.replacing(path, durable=True) as new, new.open("wb") as file:
        np.savez(file, allow_pickle=False, **members)


def load(path: str | os.PathLike | BinaryIO) -> dict[str, Any]:
    """Read the arrays of a file written by `save`. Nothing in the file is executed.

    Parameters
    ----------
    path : str, os.PathLike or file
        File to read, or an open one.

    Returns
    -------
    dict of str to array
        Arrays by name, in the order in which they were saved.

    Raises
    ------
    FormatError
        If the file was not written by `save` or is damaged, including indices out of range.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/x.npz", {"x": np.eye(2, dtype=np.float32)})
    ...     load(f"{folder}/x.npz")
    {'x': array([[1., 0.],
           [0., 1.]], dtype=float32)}
    """
    return load_about(path)[1]


def load_about(path: str | os.PathLike | BinaryIO) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Read the arrays of a file and what it says about them.

    Parameters
    ----------
    path : str, os.PathLike or file
        File to read, or an open one.

    Returns
    -------
    about : dict or None
        What `save` was given.
    arrays : dict of str to array
        Arrays by name, as `load` returns them.

    Raises
    ------
    FormatError
        As `load` does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/x.npz", {"x": np.zeros(1)}, about={"step": 3})
    ...     load_about(f"{folder}/x.npz")
    ({'step': 3}, {'x': array([0.])})
    """
    broken = (ValueError, EOFError, OSError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError)
    with Path(path).open("rb") if isinstance(path, str | os.PathLike) else nullcontext(path) as file:
        try:
            check_members(file, is_compressed=False)
            with np.load(file, allow_pickle=False) as members:
                about, entries = _contents(members)
                return about, {entry["name"]: _one(entry, members) for entry in entries}
        except FormatError as error:
            raise FormatError(f"{path} cannot be read: {error}") from None
        except (*broken, MemoryError, zipfile.BadZipFile, zlib.error) as error:
            raise _foreign(path, str(error)) from None


def _foreign(path: object, reason: str) -> FormatError:
    """Return, without raising it, the FormatError of a file that `save` did not write; `reason` is in the message."""
    return FormatError(
        f"{path} is no file of arrays, or is damaged ({reason}). Allowed: files written by formats.save. "
        "Read others with numpy.load or scipy.sparse.load_npz."
    )


def _contents(members: Any) -> tuple[dict[str, Any] | None, list[dict]]:
    """Return (about, entries) of the table of contents of an open .npz.

    Raises ValueError if it is invalid or names repeat, FormatError for another version.
    """
    if not isinstance(members, np.lib.npyio.NpzFile) or "contents" not in members:
        raise ValueError("it has no table of contents")
    contents = parsed(str(members["contents"]))
    if contents.get("kind") != KIND:
        raise ValueError("its table of contents is another program's")
    if contents["version"] != VERSION:
        raise FormatError(f"it has version {contents['version']}; this program reads version {VERSION}.")
    names = [entry["name"] for entry in contents["arrays"]]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("its table of contents names an array twice, or by no text")
    members = [member for entry in contents["arrays"] for member in entry["parts"].values()]
    if len(set(members)) < len(members):
        raise ValueError("its table of contents has a member in two places")
    if not isinstance(about := contents["about"], dict | None):
        raise ValueError("its table of contents says about the arrays what is no object")
    return about, contents["arrays"]


def _one(entry: dict, members: Any) -> Any:
    """Return the validated array that an entry of the table of contents describes. Raises ValueError or FormatError."""
    format, shape = get(entry["format"]), as_shape(entry["shape"])
    x = format.build({part: members[member] for part, member in entry["parts"].items()}, shape)
    if x.shape != shape:
        raise ValueError(f"{entry['name']!r} is not of the shape {shape}")
    x = validate(x)[1]
    check_values(x, f"The {format.name} array")
    return x
