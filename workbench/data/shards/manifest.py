"""The manifest of a folder of shards, `manifest.json`: sizes, types, the meaning of labels, and a hash of every file.

It is written when all else is there, so a folder that has one is whole. `version` is that of this form; each shard has
a descriptor of the binsparse specification 0.1, whose arrays pointers_to_1, indices_1 and values are in the files
`indptr`, `indices` and `data`.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.errors import DataError
from workbench.data.files.reading import reading
from workbench.data.labels.meaning import Labels
from workbench.data.shards.arrays import FileEntry

NAME = "manifest.json"
FORM = "sparse-workbench shards"
VERSION = 1
BINSPARSE = "0.1"
INDICES = ("uint8", "uint16", "int32", "int64")
"""Types that indices may have on disk, narrowest first."""
VALUES = ("float32", "float64")
LABELS = ("int64", "float32", "float64", "uint8")
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
        """Whether there is a file of values: there is none where all of them are one."""
        return "data" in self.files

    def descriptor(self, features: int, dtype: str) -> dict[str, Any]:
        """The binsparse descriptor: of values that are all one, those are not stored (`iso`)."""
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
    is the seed of the order of the rows, None where they stand as they came. `origin_sha256` is a hash of the rows as
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
        """Stored entries of all shards."""
        return sum(shard.nnz for shard in self.shards)

    @property
    def has_groups(self) -> bool:
        """Whether rows have groups."""
        return bool(self.shards) and "groups" in self.shards[0].files

    def arrays(self, shard: Shard) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
        """Type and shape of each file of a shard, by name."""
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
    """The folder of a shard by its number."""
    return folder / f"{number:05d}"


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, in one move, and sync it."""
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
    beside = folder / f".{NAME}"
    with beside.open("w", encoding="utf-8") as file:
        json.dump(table, file, indent=1, default=dict)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(folder / NAME)


_FIELDS = ("name", "shape", "dtype", "y_dtype", "y_width", "source", "licence", "shuffle", "origin_sha256")


def read(folder: Path) -> Manifest:
    """The manifest of a folder.

    Refused (`DataError`): a folder without one, another form, one from a newer version, and one that does not add up.
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
        manifest = _decoded(table)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"{path} is damaged: {type(error).__name__} {error}. {AGAIN}.") from None
    if fault := _fault(manifest, table):
        raise DataError(f"{path} is damaged: {fault}. {AGAIN}.")
    return manifest


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _decoded(table: dict[str, Any]) -> Manifest:
    labels: dict[str, Any] = dict(table["labels"])
    labels = {name: tuple(value) if isinstance(value, list) else value for name, value in labels.items()}
    rows, features = table["shape"]
    fields: dict[str, Any] = {name: table[name] for name in _FIELDS}
    fields |= {"shape": (rows, features), "labels": Labels(**labels)}
    return Manifest(**fields, facts=dict(table["facts"]), shards=tuple(map(_shard, table["shards"])))


def _shard(table: dict[str, Any]) -> Shard:
    files = {name: FileEntry(entry["bytes"], entry["sha256"]) for name, entry in table["files"].items()}
    types = table["binsparse"]["data_types"]
    return Shard(table["first_row"], table["rows"], table["nnz"], types["indices_1"], files)


def _fault(manifest: Manifest, table: dict[str, Any]) -> str:
    """Describe the part of a manifest that does not add up; "" where all does."""
    if wrong := _wrong_types(manifest):
        return f"{wrong[0]} is of another type"
    counts = [*manifest.shape, *(number for one in manifest.shards for number in (one.first_row, one.rows, one.nnz))]
    counts += [] if manifest.y_width is None else [manifest.y_width]
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
        return "its sizes are no counts"
    for name, value, allowed in (
        ("dtype", manifest.dtype, VALUES),
        ("y_dtype", manifest.y_dtype, LABELS),
        *(("the type of indices", shard.indices, INDICES) for shard in manifest.shards),
    ):
        if value not in allowed:
            return f"{name} is {value!r}, which is none of {', '.join(allowed)}"
    reached = 0
    for number, shard in enumerate(manifest.shards):
        if shard.first_row != reached or not {"indptr", "indices", "y"} <= set(shard.files):
            return f"shard {number} starts at row {shard.first_row} after {reached} rows, or lacks a file"
        reached += shard.rows
    if reached != manifest.shape[0] or manifest.nnz != table.get("nnz"):
        told = f"{manifest.shape[0]} and {table.get('nnz')}"
        return f"its shards have {reached} rows and {manifest.nnz} entries, not {told}"
    return ""


def _wrong_types(manifest: Manifest) -> list[str]:
    """Names of fields about labels or in words whose types are not those that are written."""
    labels, span = manifest.labels, manifest.labels.span
    texts = {name: getattr(manifest, name) for name in ("name", "source", "licence", "origin_sha256")}
    wrong = [name for name, value in {**texts, "guess": labels.guess}.items() if not isinstance(value, str)]
    for name in ("classes", "merged"):
        names = getattr(labels, name)
        if not (isinstance(names, tuple) and all(isinstance(one, str) for one in names)):
            wrong.append(name)
    is_span = isinstance(span, tuple) and len(span) == 2 and all(isinstance(end, int | float) for end in span)
    wrong += ["positive"] if not isinstance(labels.positive, str | None) else []
    wrong += ["span"] if span is not None and not is_span else []
    return wrong + (["shuffle"] if not isinstance(manifest.shuffle, int | None) else [])
