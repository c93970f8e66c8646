"""`meta.json` of a folder of stored rows, written last: what the rows are, sizes and checksums of the arrays."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import atomic_files
from workbench.data.errors import DataError
from workbench.data.files.reading import reading
from workbench.data.labels import Labels
from workbench.data.stored.arrays import AGAIN, checksums, count_chunks
from workbench.json_text import are_whole, check_fields, is_object, is_optional, is_text, is_whole

META, FORMER_META = "meta.json", "manifest.json"
FORM, VERSION = "sparse-workbench rows", 2
MOST_FEATURES = 2**47
"""Largest number of features: a byte for each is the address space of a process."""
WHAT = "a folder of stored rows"


@dataclasses.dataclass(frozen=True)
class Meta:
    """Content of `meta.json`.

    `dtype` is that of values, `shuffle` the seed of the order of the rows, None if they stand as they came. `bytes` and
    `checksums` have the size of each array file, and the CRC-32 of each `CHUNK` of it, by its name.
    """

    name: str
    shape: tuple[int, int]
    nnz: int
    dtype: str
    labels: Labels
    source: str
    licence: str
    facts: Mapping[str, Any]
    shuffle: int | None
    bytes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    checksums: Mapping[str, Sequence[int]] = dataclasses.field(default_factory=dict)


def write_meta(folder: Path, meta: Meta) -> Meta:
    """Write `meta.json` with the sizes and checksums of all arrays of the folder, and return it."""
    sums = {name: list(checksums(folder / f"{name}.npy")) for name in sizes(folder)}
    meta = dataclasses.replace(meta, bytes=sizes(folder), checksums=sums)
    table = {"form": FORM, "version": VERSION, **dataclasses.asdict(meta)}
    atomic_files.write(folder / META, json.dumps(table, default=dict), durable=True)
    return meta


def sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of each array file of a folder by its name."""
    return {path.stem: path.stat().st_size for path in sorted(folder.glob("*.npy"))}


def read_meta(folder: Path) -> Meta:
    """Return the validated content of `meta.json`; DataError if it is missing, invalid or of another version."""
    path = folder / META
    if (folder / FORMER_META).is_file() and not path.exists():
        raise DataError(f"{folder} is a folder of shards, as version 1.0 wrote it; expected {META}. {AGAIN}.")
    if folder.is_dir() and not path.exists():
        raise DataError(f"{folder} has no {META}: it holds no rows, or its conversion did not end. {AGAIN}.")
    with reading(path if folder.is_dir() else folder, WHAT):
        table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict) or table.get("form") != FORM:
        raise DataError(f"{path} does not describe stored rows: its form is not {FORM!r}.")
    if table.get("version") != VERSION:
        raise DataError(f"{path} is of version {table.get('version')!r:.80}; expected {VERSION}. {AGAIN}.")
    try:
        check_fields(table, FIELDS)
        counts = {name: count_chunks(size) for name, size in table["bytes"].items()}
        if counts != {name: len(listed) for name, listed in table["checksums"].items()}:
            raise ValueError("it lacks checksums")
        given = {field.name: table[field.name] for field in dataclasses.fields(Meta)}
        return Meta(**given | {"shape": tuple(table["shape"]), "labels": Labels.of_json(table["labels"])})
    except ValueError as error:
        raise DataError(f"{path} is damaged: {str(error).removesuffix('.')}. {AGAIN}.") from None


FIELDS = {
    "shape": (
        lambda value: are_whole(value) and len(value) == 2 and value[1] <= MOST_FEATURES,
        "rows and features, at most 2**47",
    ),
    "nnz": (is_whole, "a whole number from 0"),
    "dtype": (lambda value: value in ("float32", "float64"), "float32 or float64"),
    "labels": (is_object, "an object"),
    "facts": (is_object, "an object"),
    "shuffle": (is_optional(lambda value: is_whole(value, 0, 2**64)), "a whole number or null"),
    "bytes": (
        lambda value: is_object(value) and {"indptr", "indices", "y"} <= {*value} and are_whole([*value.values()]),
        "the size of each array",
    ),
    "checksums": (lambda value: is_object(value) and all(map(are_whole, value.values())), "lists of checksums"),
    **dict.fromkeys(("name", "source", "licence"), (is_text, "a text")),
}
