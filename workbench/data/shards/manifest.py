"""The manifest of a folder of shards, `manifest.json`: sizes, types, the meaning of labels, and a hash of every file.

It is written when all else is there, so a folder that has one is whole. `version` is that of this form; each shard has
a descriptor of the binsparse specification 0.1, whose arrays pointers_to_1, indices_1 and values are in the files
`indptr`, `indices` and `data`.
"""

import dataclasses
import hashlib
import json
import math
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench import atomic_files
from workbench.data.errors import DataError
from workbench.data.files.reading import reading
from workbench.data.labels import Labels
from workbench.formats.files import check_array
from workbench.json_text import Fields, are_whole, check_fields, is_object, is_optional, is_text, is_whole

# The `.npy` files of a shard: written in parts, hashed, and read in parts after a look at their headers.


WHAT = "an array of a shard"


@dataclass(frozen=True)
class FileEntry:
    """Manifest entry of one file: its size in bytes and the SHA-256 of its content."""

    bytes: int
    sha256: str


def write_array(path: Path, dtype: np.dtype, shape: tuple[int, ...], parts: Iterable[np.ndarray]) -> FileEntry:
    """Write an array of `shape` as a new .npy file from parts along its first axis, cast to `dtype`.

    Return size and hash. The file is not synced: one shortened by a power cut is detected by its size, others by
    their hash. OSError if it exists or the disk is full.
    """
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with path.open("xb") as file:  # not by numpy.save, which says nothing of a disk that is full at the end
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype).data.cast("B") if part.size else b"")
        size = file.tell()
    return FileEntry(size, sha256_of(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content as 64 hexadecimal digits; DataError if it cannot be read."""
    with reading(path, WHAT), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@final
class ArrayFile:
    """An array in a file, of which parts are read when they are asked for; its header is looked at when it is opened.

    It is not mapped into memory: touching a part of a map that another program has cut off ends the process (SIGBUS),
    where a read that ends too soon is refused. Threads may share it, and so may a process and its forks.

    Refused (`DataError`): a file that is missing, cut short, or of another type or shape than `dtype` and `shape`; at
    the first read, a file whose SHA-256 is not `sha256`. `verified` are the files whose hash was compared, shared with
    those who open the file again.
    """

    def __init__(
        self, path: Path, dtype: np.dtype, shape: tuple[int, ...], sha256: str = "", verified: set[Path] | None = None
    ) -> None:
        """Open the .npy file and compare its header with `dtype` and `shape`.

        DataError if it does not match or is missing. The file descriptor is closed when this object is collected.
        """
        self.path, self.dtype, self.shape = path, dtype, shape
        self.sha256, self.verified = sha256, set[Path]() if verified is None else verified
        with reading(path, WHAT), path.open("rb") as file:
            header = check_array(file)
            found = f"{path} holds {header.dtype} {list(header.shape)}"
            if header.dtype != dtype or header.shape != shape or (header.fortran and len(shape) > 1):
                raise DataError(f"{found}; the manifest says {dtype} {list(shape)}. Convert the data again.")
            self.handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.handle)
        self.start = header.start
        self.bytes_row = dtype.itemsize * math.prod(shape[1:])

    def verify(self) -> None:
        """Compare the file's SHA-256 with the stated one, once per path in `verified`; DataError if it differs."""
        if self.sha256 and self.path not in self.verified:
            if sha256_of(self.path) != self.sha256:
                raise DataError(f"{self.path} does not hold what was written: its SHA-256 is another one. {AGAIN}.")
            self.verified.add(self.path)

    def read(self, first: int, last: int) -> np.ndarray:
        """Read elements `first` to `last` (exclusive) along the first axis as a new array.

        DataError if the file is damaged.
        """
        part = np.empty((last - first, *self.shape[1:]), self.dtype)
        self.read_into(part, first)
        return part

    def element(self, number: int) -> int:
        """Return element `number` of a 1-d integer array; DataError if the file is damaged."""
        return int(self.read(number, number + 1)[0])

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fill `out`, contiguous, with the elements from `first` on; another dtype of the same kind is cast.

        Verifies the file's hash at the first read. Raises DataError if it differs or the file ends too early.
        """
        if out.dtype != self.dtype:
            np.copyto(out, self.read(first, first + len(out)), casting="same_kind")
            return
        self.verify()
        wanted, at = out.reshape(-1).view(np.uint8).data, 0
        while at < len(wanted):
            count = os.preadv(self.handle, [wanted[at:]], self.start + first * self.bytes_row + at)
            if not count:
                text = f"{self.path} ends before its element {first + at // self.bytes_row} of {self.shape[0]}"
                raise DataError(f"{text}: another program cut it while it was read. Convert the data again.")
            at += count


NAME = "manifest.json"
FORM = "sparse-workbench shards"
VERSION = 1
BINSPARSE = "0.1"
INDICES = ("uint8", "uint16", "int32", "int64")
"""Types that indices may have on disk, narrowest first."""
VALUES = ("float32", "float64")
LABELS = ("int64", "float32", "float64", "uint8")
MOST_FEATURES = 2**47
"""Largest number of features: a byte for each is the address space of a process."""
AGAIN = "Convert the data again"


@dataclass(frozen=True)
class Shard:
    """Rows `first_row` on: how many, their stored entries, type of the indices, whether values are stored, files."""

    first_row: int
    rows: int
    nnz: int
    indices: str
    files: Mapping[str, FileEntry]

    @property
    def has_values(self) -> bool:
        """Whether values are stored; they are not if all are 1."""
        return "data" in self.files

    def descriptor(self, features: int, dtype: str) -> dict[str, Any]:
        """Return the binsparse descriptor of the shard as JSON values.

        Values that are all 1 are declared `iso[dtype]`.
        """
        values = dtype if self.has_values else f"iso[{dtype}]"
        return {
            "version": BINSPARSE,
            "format": "CSR",
            "shape": [self.rows, features],
            "number_of_stored_values": self.nnz,
            "data_types": {"pointers_to_1": "int64", "indices_1": self.indices, "values": values},
        }


@dataclass(frozen=True)
class Manifest:
    """All of a manifest.

    `dtype` is that of values, `y_dtype` and `y_width` that of labels and their columns, None for one a row. `shuffle`
    is the seed of the order of the rows, None if they stand as they came. `origin_sha256` is a hash of the rows as
    they came, the same for any shuffle and any size of shards.
    """

    name: str
    shape: tuple[int, int]
    dtype: str
    y_dtype: str
    y_width: int | None
    labels: Labels
    source: str
    licence: str
    facts: Mapping[str, Any]
    shuffle: int | None
    origin_sha256: str
    shards: tuple[Shard, ...]

    @property
    def nnz(self) -> int:
        """Number of stored entries of all shards together."""
        return sum(shard.nnz for shard in self.shards)

    @property
    def has_groups(self) -> bool:
        """Whether the shards store the group of each row."""
        return bool(self.shards) and "groups" in self.shards[0].files

    def arrays(self, shard: Shard) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
        """Return dtype and shape of each array file of a shard, by name."""
        width = () if self.y_width is None else (self.y_width,)
        known: dict[str, tuple[str, tuple[int, ...]]] = {
            "indptr": ("int64", (shard.rows + 1,)),
            "indices": (shard.indices, (shard.nnz,)),
            "data": (self.dtype, (shard.nnz,)),
            "y": (self.y_dtype, (shard.rows, *width)),
            "groups": ("int64", (shard.rows,)),
        }
        return {name: (np.dtype(dtype), shape) for name, (dtype, shape) in known.items() if name in shard.files}


def folder_of(folder: Path, number: int) -> Path:
    """Return the folder of shard `number` below `folder`, such as folder/00003."""
    return folder / f"{number:05d}"


def write(folder: Path, manifest: Manifest) -> None:
    """Write a folder's manifest atomically: to a temporary file that is synced and renamed. OSError if that fails."""
    table = {name: getattr(manifest, name) for name in _FIELDS}
    table |= {"form": FORM, "version": VERSION, "nnz": manifest.nnz}
    table |= {"labels": dataclasses.asdict(manifest.labels), "facts": dict(manifest.facts)}
    table["shards"] = [
        {
            "first_row": shard.first_row,
            "rows": shard.rows,
            "nnz": shard.nnz,
            "binsparse": shard.descriptor(manifest.shape[1], manifest.dtype),
            "files": {name: dataclasses.asdict(entry) for name, entry in shard.files.items()},
        }
        for shard in manifest.shards
    ]
    atomic_files.write(folder / NAME, json.dumps(table, indent=1, default=dict), durable=True)


_FIELDS = ("name", "shape", "dtype", "y_dtype", "y_width", "source", "licence", "shuffle", "origin_sha256")


def read(folder: Path) -> Manifest:
    """Read and validate the manifest of a folder.

    Raises DataError if it is missing, damaged, inconsistent, or of an unknown or newer version.
    """
    path = folder / NAME
    if folder.is_dir() and not path.exists():
        raise DataError(f"{folder} has no {NAME}: it holds no shards, or its conversion did not end. {AGAIN}.")
    with reading(path if folder.is_dir() else folder, "a folder of shards"):
        table = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    if not isinstance(table, dict) or table.get("form") != FORM:
        raise DataError(f"{path} is no manifest of shards: its form is not {FORM!r}.")
    if not isinstance(table.get("version"), int) or table["version"] > VERSION:
        raise DataError(f"{path} is of version {table.get('version')}; up to {VERSION} is read. Update the workbench.")
    try:
        manifest = _decode_manifest(table)
    except ValueError as error:
        raise DataError(f"{path} is damaged: {str(error).removesuffix('.')}. {AGAIN}.") from None
    if fault := _manifest_error(manifest, table):
        raise DataError(f"{path} is damaged: {fault}. {AGAIN}.")
    return manifest


def _refuse_constant(text: str) -> None:
    """Raise ValueError: `text` is NaN or Infinity, which JSON does not have."""
    raise ValueError(f"{text} is no number of JSON")


def _decode_manifest(table: dict[str, Any]) -> Manifest:
    """Return the manifest from its parsed JSON; ValueError, which names the field, if the form is wrong."""
    check_fields(table, FIELDS)
    rows, features = table["shape"]
    fields: dict[str, Any] = {name: table[name] for name in _FIELDS}
    fields |= {"shape": (rows, features), "labels": Labels.of_json(table["labels"])}
    return Manifest(**fields, facts=dict(table["facts"]), shards=tuple(map(_shard, table["shards"])))


def _shard(table: dict[str, Any]) -> Shard:
    """Return a `Shard` from its parsed JSON; ValueError if the form is wrong."""
    check_fields(table, SHARD, "shard")
    for name, entry in table["files"].items():
        check_fields(entry, FILE, f"files.{name}")
    check_fields(table["binsparse"], {"data_types": (is_object, "an object")}, "binsparse")
    check_fields(table["binsparse"]["data_types"], {"indices_1": _one_of(INDICES)}, "data_types")
    files = {name: FileEntry(entry["bytes"], entry["sha256"]) for name, entry in table["files"].items()}
    types = table["binsparse"]["data_types"]
    return Shard(table["first_row"], table["rows"], table["nnz"], types["indices_1"], files)


def _manifest_error(manifest: Manifest, table: dict[str, Any]) -> str:
    """Return what is inconsistent in a manifest, as text; "" if nothing is. `table` is its parsed JSON."""
    reached = 0
    for number, shard in enumerate(manifest.shards):
        if shard.first_row != reached or not {"indptr", "indices", "y"} <= set(shard.files):
            return f"shard {number} starts at row {shard.first_row} after {reached} rows, or lacks a file"
        reached += shard.rows
    if reached != manifest.shape[0] or manifest.nnz != table["nnz"]:
        text = f"{manifest.shape[0]} and {table['nnz']}"
        return f"its shards have {reached} rows and {manifest.nnz} entries, not {text}"
    return ""


def _one_of(names: tuple[str, ...]) -> tuple[Callable[[Any], bool], str]:
    """Return the field of a JSON object that is one of these texts."""
    return lambda value: value in names, f"one of {', '.join(names)}"


_COUNT = is_whole, "a whole number from 0"
FIELDS: Fields = {
    "shape": (
        lambda value: are_whole(value) and len(value) == 2 and value[1] <= MOST_FEATURES,
        "rows and features, at most 2**47",
    ),
    "nnz": _COUNT,
    "dtype": _one_of(VALUES),
    "y_dtype": _one_of(LABELS),
    "y_width": (is_optional(is_whole), "a whole number or null"),
    "labels": (is_object, "an object"),
    "facts": (is_object, "an object"),
    "shuffle": (is_optional(lambda value: is_whole(value, 0, 2**64)), "a whole number or null"),
    "shards": (lambda value: isinstance(value, list), "a list of objects"),
    **dict.fromkeys(("name", "source", "licence", "origin_sha256"), (is_text, "a text")),
}
SHARD: Fields = {"first_row": _COUNT, "rows": _COUNT, "nnz": _COUNT} | dict.fromkeys(
    ("files", "binsparse"), (is_object, "an object")
)
FILE: Fields = {"bytes": _COUNT, "sha256": (is_text, "a text")}
