"""A folder of stored rows: `meta.json` with sizes and checksums, and arrays that are read in parts when needed."""

import dataclasses
import json
import os
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from kernels import structure
from workbench import atomic_files, formats
from workbench.data.dataset.record import StoredRows
from workbench.data.errors import DataError
from workbench.data.files.reading import reading
from workbench.data.labels import Labels
from workbench.formats.compressed import assemble, index_dtype
from workbench.formats.files import check_array
from workbench.json_text import are_whole, check_fields, is_object, is_optional, is_text, is_whole

META, FORMER_META = "meta.json", "manifest.json"
FORM, VERSION = "sparse-workbench rows", 2
CHUNK = 1 << 20
"""Bytes of a file that have one checksum."""
MOST_FEATURES = 2**47
"""Largest number of features: a byte for each is the address space of a process."""
AGAIN = "Convert the data again: workbench data convert FILE FOLDER"
WHAT = "a folder of stored rows"


@final
class ArrayFile:
    """An array in a `.npy` file, of which parts are read when needed.

    It is not mapped into memory: pages of a map count as memory of the process, and touching a part that another
    program has cut off ends the process (SIGBUS). Each `CHUNK` of the file is compared with its checksum in `checksums`
    when it is first read; None checks nothing. Threads may share it. Raises DataError if the file is invalid.
    """

    def __init__(self, path: Path, checksums: Sequence[int] | None = None) -> None:
        """Open the file and read its header; the file descriptor is closed when this object is collected."""
        self.path, self.checksums = path, checksums
        with reading(path, "a stored array"), path.open("rb") as file:
            header = check_array(file)
            self.handle = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.handle)
        self.dtype, self.shape, self.start = header.dtype, header.shape, header.start
        self.bytes_row = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        self.unchecked = set(range(len(checksums or ())))

    def read(self, first: int, last: int) -> np.ndarray:
        """Return elements `first` to `last` (exclusive) along the first axis; DataError if the file is damaged."""
        out = np.empty((last - first, *self.shape[1:]), self.dtype)
        self.read_into(out, first)
        return out

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fill `out`, contiguous, with the elements from `first` on, converted to its type; DataError if damaged."""
        if out.dtype != self.dtype:
            out[:] = self.read(first, first + len(out))
            return
        begin = self.start + first * self.bytes_row
        self.check(begin, begin + out.nbytes)
        self._read_bytes(out.reshape(-1).view(np.uint8), begin)

    def check(self, begin: int = 0, end: int | None = None) -> None:
        """Compare the chunks of bytes `begin` to `end` with their checksums; DataError if one differs."""
        last = len(self.checksums or ()) if end is None else -(-end // CHUNK)
        for number in sorted(self.unchecked.intersection(range(begin // CHUNK, last))) if self.unchecked else ():
            size = self.start + self.shape[0] * self.bytes_row
            chunk = np.empty(min(CHUNK, size - number * CHUNK), np.uint8)
            self._read_bytes(chunk, number * CHUNK)
            if self.checksums and zlib.crc32(chunk.data) != self.checksums[number]:
                raise DataError(f"{self.path} does not hold what was written: its checksum differs. {AGAIN}.")
            self.unchecked.discard(number)

    def _read_bytes(self, out: np.ndarray, begin: int) -> None:
        """Fill `out` (uint8 [n]) with the bytes of the file from `begin` on; DataError if it ends before."""
        at = 0
        while at < len(out):
            count = os.preadv(self.handle, [out[at:].data], begin + at)
            if not count:
                raise DataError(f"{self.path} ends at byte {begin + at}: another program cut it. {AGAIN}.")
            at += count


@final
class ArrayWriter:
    """A `.npy` file to which parts of an array are appended; its header is completed by `close`."""

    def __init__(self, path: Path, dtype: Any, width: tuple[int, ...] = ()) -> None:
        """Create the file for rows of shape `width`; OSError if it exists."""
        self.path, self.dtype, self.width, self.rows = path, np.dtype(dtype), width, 0
        self._write_header("xb")

    def _write_header(self, mode: str) -> None:
        """Write the header, which has the same size for any number of rows."""
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        with open(self.path, mode) as file:
            np.lib.format.write_array_header_1_0(file, header | {"shape": (self.rows, *self.width)})

    def append(self, part: np.ndarray) -> None:
        """Append rows, cast to the type of the file; OSError if the disk is full."""
        with self.path.open("ab") as file:
            file.write(np.ascontiguousarray(part, self.dtype).reshape(-1).view(np.uint8).data)
        self.rows += len(part)

    def close(self) -> None:
        """Write the final header."""
        self._write_header("r+b")


@final
class MatrixWriter:
    """Rows appended to the files indptr, indices and data of a folder."""

    def __init__(self, folder: Path, index: Any, dtype: Any) -> None:
        """Create the files in `folder`, which is made if it does not exist."""
        folder.mkdir(exist_ok=True)
        self.folder, self.nnz, self.is_binary = folder, 0, True
        types = {"indptr": np.int64, "indices": index, "data": dtype}
        self.files = {name: ArrayWriter(folder / f"{name}.npy", kind) for name, kind in types.items()}
        self.files["indptr"].append(np.zeros(1))

    def add(self, x: Any) -> None:
        """Append the rows of a CSR array; DataError if a column does not fit the type of the indices."""
        if x.indices.max(initial=0) > np.iinfo(self.files["indices"].dtype).max:
            raise DataError(f"Column {x.indices.max()} comes after narrower rows; type features={x.shape[1]}.")
        self.files["indptr"].append(x.indptr[1:].astype(np.int64) - int(x.indptr[0]) + self.nnz)
        self.files["indices"].append(x.indices)
        self.files["data"].append(x.data)
        self.nnz += x.nnz
        self.is_binary = self.is_binary and bool((x.data == 1).all())

    def close(self) -> None:
        """Complete the files; values that are all 1 are not kept."""
        for file in self.files.values():
            file.close()
        if self.is_binary:
            (self.folder / "data.npy").unlink()


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


def write_array(folder: Path, name: str, array: np.ndarray) -> None:
    """Write the array `name` of a folder; OSError if it exists."""
    file = ArrayWriter(folder / f"{name}.npy", array.dtype, array.shape[1:])
    file.append(array)
    file.close()


def write_meta(folder: Path, meta: Meta) -> Meta:
    """Write `meta.json` with the sizes and checksums of all arrays of the folder, and return it."""
    checksums = {name: list(_checksums(folder / f"{name}.npy")) for name in sizes(folder)}
    meta = dataclasses.replace(meta, bytes=sizes(folder), checksums=checksums)
    table = {"form": FORM, "version": VERSION, **dataclasses.asdict(meta)}
    atomic_files.write(folder / META, json.dumps(table, default=dict), durable=True)
    return meta


def sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of each array file of a folder by its name."""
    return {path.stem: path.stat().st_size for path in sorted(folder.glob("*.npy"))}


def _checksums(path: Path) -> Iterator[int]:
    """Yield the CRC-32 of each `CHUNK` of a file."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield zlib.crc32(chunk)


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
        counts = {name: -(-size // CHUNK) for name, size in table["bytes"].items()}
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


@final
class Folder:
    """An open folder of stored rows; pickled as its path, so that another process opens it again."""

    def __init__(self, path: Path, meta: Meta | None = None) -> None:
        """Open each array that `meta`, by default read from `meta.json`, describes.

        DataError if one is missing or has another size, shape or type than stated.
        """
        self.path, self.meta = path, meta or read_meta(path)
        self.check_sizes()
        self.arrays = {name: ArrayFile(path / f"{name}.npy", self.meta.checksums.get(name)) for name in self.meta.bytes}
        rows, nnz = self.meta.shape[0], self.meta.nnz
        integer = ("int32", "int64")
        expected = {"indptr": (rows + 1, integer), "indices": (nnz, integer), "data": (nnz, (self.meta.dtype,))}
        for name, array in self.arrays.items():
            length, types = expected.get(name, (rows, (array.dtype.name,)))
            if array.shape[:1] != (length,) or array.dtype.name not in types:
                found = f"{array.dtype} {list(array.shape)}"
                raise DataError(f"{array.path} holds {found}; {META} says {' or '.join(types)} [{length}]. {AGAIN}.")

    def __reduce__(self) -> tuple:
        """Pickle as the path alone."""
        return Folder, (self.path,)

    def check_sizes(self) -> None:
        """Raise DataError if a file is missing or has another size than `meta.json` states."""
        for name, expected in self.meta.bytes.items():
            file = self.path / f"{name}.npy"
            try:
                size = file.stat().st_size
            except OSError as error:
                raise DataError(f"{file} is missing: {error.strerror}. {AGAIN}.") from None
            if size != expected:
                raise DataError(f"{file} has {size} bytes; {META} says {expected}. {AGAIN}.")

    def rows(self) -> "FolderRows":
        """Return all rows."""
        return FolderRows(self, 0, self.meta.shape[0], np.dtype(self.meta.dtype))


@final
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FolderRows(StoredRows):
    """Rows `start` to `stop` of an open folder."""

    folder: Folder
    start: int
    stop: int
    value_type: np.dtype

    @property
    def place(self) -> str:
        """Path of the folder, for messages."""
        return str(self.folder.path)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of these rows: (rows, features)."""
        return self.stop - self.start, self.folder.meta.shape[1]

    @cached_property
    def nnz(self) -> int:
        """Number of stored entries, from the row pointers."""
        first, last = (int(self.folder.arrays["indptr"].read(row, row + 1)[0]) for row in (self.start, self.stop))
        return last - first

    @property
    def dtype(self) -> np.dtype:
        """Type of the values that reading returns."""
        return self.value_type

    @property
    def is_shuffled(self) -> bool:
        """Whether the rows were shuffled when they were converted."""
        return self.folder.meta.shuffle is not None

    def astype(self, dtype: np.dtype) -> "FolderRows":
        """Return the same rows with values converted to `dtype` when they are read."""
        return dataclasses.replace(self, value_type=np.dtype(dtype))

    def between(self, start: int, stop: int) -> "FolderRows":
        """Return rows `start` to `stop` (exclusive) of these; nothing is read."""
        return dataclasses.replace(self, start=self.start + start, stop=self.start + stop)

    def row_lengths(self) -> np.ndarray:
        """Return the number of stored entries of each row, int64 [rows], read from the row pointers."""
        return np.diff(self.folder.arrays["indptr"].read(self.start, self.stop + 1))

    def check_unchanged(self) -> None:
        """Raise DataError if a file of the folder is missing or has another size than stated."""
        self.folder.check_sizes()

    def read_runs(self, runs: Iterable[tuple[int, int]]) -> Any:
        """Read rows `start` to `stop` (exclusive) of each run, one after the other, as one CSR array.

        Row pointers and column indices are validated, as kernels rely on them. Raises DataError if a file is damaged.
        """
        arrays, features = self.folder.arrays, self.shape[1]
        pointers = [arrays["indptr"].read(self.start + start, self.start + stop + 1) for start, stop in runs]
        lengths = np.concatenate([np.zeros(1, np.int64), *map(np.diff, pointers)])
        starts = np.cumsum(lengths)
        stored = self.folder.meta.nnz
        if lengths.min() < 0 or any(part[0] < 0 or part[-1] > stored for part in pointers):
            raise DataError(f"{self.place} is damaged: its row pointers fall, or do not end at its entries. {AGAIN}.")
        columns = np.empty(starts[-1], index_dtype(len(starts) - 1, features, starts[-1]))
        data = np.empty(starts[-1], self.dtype)
        at = 0
        for part in pointers:
            end = at + part[-1] - part[0]
            arrays["indices"].read_into(columns[at:end], part[0])
            if "data" in arrays:
                arrays["data"].read_into(data[at:end], part[0])
            else:
                data[at:end] = 1
            at = end
        x = assemble("csr", starts.astype(columns.dtype), columns, data, (len(starts) - 1, features))
        if not structure.in_range(columns, features):
            try:
                formats.validate(x)
            except formats.FormatError as error:
                raise DataError(f"{self.place} is damaged: {error} {AGAIN}.") from None
        return x
