"""Arrays of every format in one file: an .npz of plain arrays and a table of contents, without pickle.

The table, `contents` in the file, is JSON: for each array its name, format, shape and the members that hold its parts.
Members are numbered, so names may have any characters.
"""

import contextlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.formats.checks import as_shape, check_values
from workbench.formats.contract import FormatError, enter, get
from workbench.formats.members import check_members
from workbench.json_text import parsed

KIND = "sparse-workbench arrays"
VERSION = 1


def save(path: str | os.PathLike, arrays: Mapping[str, Any]) -> None:
    """Write arrays in any format by name into one file, which appears whole or not at all.

    Formats, types, shapes and patterns are kept, explicit zeros, unsorted and duplicated entries too; `load` gives them
    back. The file is `path`, whatever its ending. Errors: `FormatError` for what is no array and no name.
    """
    if not isinstance(arrays, Mapping):
        raise FormatError(f"A {type(arrays).__name__} came. Allowed: arrays by name. Call save(path, {{'x': x}}).")
    members, contents = {}, []
    for number, (name, x) in enumerate(arrays.items()):
        if not isinstance(name, str):
            raise FormatError(f"An array was named {name!r}. Allowed: text. Call save(path, {{str(name): array}}).")
        format, x = enter(x)
        check_values(x, f"The {format.name} array")
        parts = {part: f"{number}.{part}" for part in format.parts(x)}
        contents.append({"name": name, "format": format.name, "shape": list(x.shape), "parts": parts})
        members |= {parts[part]: array for part, array in format.parts(x).items()}
    table = json.dumps({"kind": KIND, "version": VERSION, "arrays": contents})
    _write(Path(path), members | {"contents": np.array(table)})


def _write(path: Path, members: dict[str, np.ndarray]) -> None:
    """Written beside the file and moved to its place, so that a reader never sees half of it."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **members)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load(path: str | os.PathLike) -> dict[str, Any]:
    """The arrays of a file written by `save`, by name and in its order; nothing in the file is executed.

    Refused (`FormatError`): what `save` did not write, and what is damaged, with indices out of range among it.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/x.npz", {"x": np.eye(2, dtype=np.float32)})
    ...     load(f"{folder}/x.npz")
    {'x': array([[1., 0.],
           [0., 1.]], dtype=float32)}
    """
    broken = (ValueError, EOFError, OSError, LookupError, TypeError, AttributeError, RuntimeError, ArithmeticError)
    with open(path, "rb") as file:
        try:
            check_members(file)
            with np.load(file, allow_pickle=False) as members:
                entries = _contents(members)
                return {entry["name"]: _one(entry, members) for entry in entries}
        except FormatError as error:
            raise FormatError(f"{path} cannot be read: {error}") from None
        except (*broken, MemoryError, zipfile.BadZipFile, zlib.error) as error:
            raise _foreign(path, str(error)) from None


def _foreign(path: str | os.PathLike, reason: str) -> FormatError:
    return FormatError(
        f"{path} is no file of arrays, or is damaged ({reason}). Allowed: files written by formats.save. "
        "Read others with numpy.load or scipy.sparse.load_npz."
    )


def _contents(members: Any) -> list[dict]:
    """The entries of the table of contents, each with a name of its own."""
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
    return contents["arrays"]


def _one(entry: dict, members: Any) -> Any:
    format, shape = get(entry["format"]), as_shape(entry["shape"])
    x = format.build({part: members[member] for part, member in entry["parts"].items()}, shape)
    if x.shape != shape:
        raise ValueError(f"{entry['name']!r} is not of the shape {shape}")
    x = enter(x)[1]
    check_values(x, f"The {format.name} array")
    return x
