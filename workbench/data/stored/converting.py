"""Data sets into folders of stored rows, in bounded memory; what is interrupted leaves no folder of that name."""

import dataclasses
import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from workbench import atomic_files, formats
from workbench.data import contract
from workbench.data.batches.feed import BlockOrder
from workbench.data.batches.slicing import gather_rows, slice_range
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, StoredRows
from workbench.data.errors import DataError
from workbench.data.files.reading import fingerprint
from workbench.data.labels import Labels, Wanted, read_labels
from workbench.data.stored.arrays import MatrixWriter, write_array
from workbench.data.stored.folder import Folder, FolderRows
from workbench.data.stored.meta import Meta, sizes, write_meta
from workbench.formats.compressed import index_dtype

ADVICE = {
    errno.ENOSPC: "The disk is full; free some of it, or choose a folder on another one",
    errno.EACCES: "Choose a folder that you may write to",
    errno.EROFS: "Choose a folder on a disk that can be written to",
}
BUFFER_BYTES = 1 << 26
"""Bytes of the rows that are shuffled at once."""
ENTRIES_OF_BLOCK = 1 << 19
"""Stored entries of a block that is cut from a set in memory."""
OF_LABELS = ("kind", "positive", "classes", "unseen")


@final
class LabelCollector:
    """Labels that come block by block; texts are kept as the order in which they first appeared."""

    def __init__(self, wanted: Wanted, what: str) -> None:
        """Start without labels; `wanted` states kind and classes, `what` names the origin in messages."""
        self.wanted, self.what = wanted, what
        self.rows = 0
        self.kind: tuple | None = None
        self.codes: dict[str, int] = {}
        self.parts: list[np.ndarray] = []

    def add(self, labels: np.ndarray) -> None:
        """Keep the labels of a block, [R] or [R, N]; DataError if they are no array or of another type than before."""
        if not isinstance(labels, np.ndarray):
            advice = "give columns of 0 and 1 for each class, or load the set whole and convert that"
            raise DataError(f"Labels of a block of {self.what} are a {type(labels).__name__}; {advice}.")
        if labels.dtype.kind == "S":
            labels = np.char.decode(labels, "utf-8", "backslashreplace")
        is_text = labels.dtype.kind == "U"
        kind = ("text" if is_text else labels.dtype.name, *labels.shape[1:])
        if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufU" or (labels.ndim == 2 and is_text):
            raise DataError(f"Labels of {self.what} are {labels.dtype} {list(labels.shape)}; they are numbers or text.")
        if self.kind not in (None, kind):
            raise DataError(f"Labels of {self.what} are {self.kind} and from row {self.rows} on {kind}; keep to one.")
        self.kind = kind
        self.rows += len(labels)
        if is_text:
            texts, inverse = np.unique(labels, return_inverse=True)
            labels = np.array([self.codes.setdefault(str(text), len(self.codes)) for text in texts], np.int64)[inverse]
        self.parts.append(labels)

    def read(self) -> tuple[Labels, np.ndarray]:
        """Return the meaning of all labels, and `y` as a data set holds it; DataError if they do not fit `wanted`."""
        joined, self.parts = np.concatenate(self.parts), []
        if not self.codes:
            return read_labels(joined, self.wanted, lambda row: f"{self.what}, row {row}")
        meaning, y = read_labels(np.array(list(self.codes)), self.wanted, lambda row: self.what)
        return meaning, y[joined]


class Progress(NamedTuple):
    """Progress of a conversion: `stage` is reading or writing, `rows` of `total`, which is None until all are read."""

    stage: str
    rows: int
    total: int | None


Tell = Callable[[Progress], None]


def convert(
    origin: str | Dataset | RowBlocks,
    folder: str | os.PathLike,
    *,
    shuffle: int | None = 0,
    progress: Tell = lambda progress: None,
    **parameters: Any,
) -> Meta:
    """Write a data set into a new folder of stored rows, `X.sparse`, that `load("sparse", path=folder)` opens.

    Return its description, with `shape`, `nnz` and `bytes` of each file. `origin` is a data set, its blocks, or the
    name of a source with its parameters: a source with `blocks` is read block by block, others are made whole first.
    For blocks, `kind`, `positive`, `classes` and `unseen` say what labels mean, as for a file.

    With `shuffle`, a seed, blocks of rows are read in random order into a buffer, whose rows are shuffled; rows of one
    group stay together, in the order they had. That takes as much disk again while it runs. With None rows keep their
    order, and no part can be held out. Memory holds labels, groups, and 64 MB of rows. `progress` is called after each
    block.

    All is written to a temporary folder and renamed when it is complete. Raises DataError for a folder that exists, a
    disk that is full or not writable, a file that changes while it is read, and whatever the source refuses.
    """
    folder = Path(folder)
    if shuffle is not None and (type(shuffle) is not int or shuffle < 0):
        raise DataError(f"shuffle is {shuffle!r}; it is a seed, a whole number from 0 on, or None to keep the order.")
    if folder.exists():
        raise DataError(f"There is already {folder}; remove it, or choose another name.")
    try:
        with atomic_files.replacing_folder(folder) as partial:
            blocks, wanted, check_unchanged = _open_origin(origin, parameters)
            made = _write(blocks, wanted, partial, shuffle, progress)
            check_unchanged()
            return write_meta(partial, made)
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, "Choose another folder")
        raise DataError(f"{folder} cannot be written: {error}. {advice}.") from error


def _write(origin: RowBlocks, wanted: Wanted, folder: Path, shuffle: int | None, progress: Tell) -> Meta:
    """Write all arrays of a folder and return its description; DataError for invalid blocks or labels."""
    labels = LabelCollector(wanted, origin.source)
    groups: list[np.ndarray] = []
    kept: list[np.ndarray] = []
    writer, rows, width = None, 0, origin.features or 0
    spool = folder if shuffle is None else folder / "unsorted"
    for given in origin.blocks:
        block = RowBlock(*given)
        x = formats.check(block.x, full=True, dtypes=formats.FLOATS)
        counts = {x.shape[0], len(block.labels), x.shape[0] if block.groups is None else len(block.groups)}
        if len(counts) > 1:
            raise DataError(f"A block of {origin.source} has {sorted(counts)} rows and labels; one for each row.")
        if origin.features is not None and x.shape[1] > origin.features:
            raise DataError(f"A block has {x.shape[1]} columns, and the set {origin.features} features.")
        if writer is None:
            dtype, has_groups = x.dtype, block.groups is not None
            writer = MatrixWriter(spool, np.promote_types(x.indices.dtype, index_dtype(width)), dtype)
        if x.dtype != dtype or has_groups != (block.groups is not None):
            raise DataError(f"Blocks of {origin.source} differ in the type of values, or in having groups.")
        (kept.append if origin.labels is not None else labels.add)(block.labels)
        groups += [] if block.groups is None else [block.groups]
        writer.add(x)
        rows, width = rows + x.shape[0], max(width, x.shape[1])
        progress(Progress("reading", rows, None))
    if writer is None or not rows:
        raise DataError(f"{origin.source} holds no rows; a data set has at least one.")
    if not writer.nnz:
        raise DataError(f"{origin.source} has labels without features: no row stores an entry to learn from.")
    writer.close()
    meaning, y = labels.read() if origin.labels is None else (origin.labels, np.concatenate(kept))
    arrays = {"y": y} | ({"groups": np.concatenate(groups)} if groups else {})
    about = origin.name, (rows, width), writer.nnz, str(dtype), meaning, origin.source, origin.licence, origin.facts
    made = Meta(*about, shuffle)
    if shuffle is not None:
        spooled = Folder(spool, dataclasses.replace(made, bytes=sizes(spool))).rows()
        writer, order = MatrixWriter(folder, index_dtype(width), dtype), []
        for part, numbers in shuffled(spooled, arrays.get("groups"), shuffle):
            writer.add(part)
            order.append(numbers)
            progress(Progress("writing", sum(map(len, order)), rows))
        writer.close()
        arrays = {name: array[np.concatenate(order)] for name, array in arrays.items()}
        shutil.rmtree(spool)
    for name, array in arrays.items():
        write_array(folder, name, array)
    progress(Progress("writing", rows, rows))
    return made


def shuffled(x: FolderRows, groups: np.ndarray | None, seed: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield all rows in random order, as CSR arrays with the indices of their rows; rows of a group are adjacent.

    Blocks of rows are read in random order into a buffer and shuffled there. Groups are shuffled as a whole, and their
    rows are read wherever they are.
    """
    rows = x.shape[0]
    buffer_rows = max(BUFFER_BYTES // (16 + x.nnz * (x.dtype.itemsize + 4) // rows), 1)
    if groups is None:
        order = BlockOrder(rows, buffer_rows)
        for blocks, within in order.buffers(seed, 0, 0):
            yield gather_rows("csr", x.read_runs(order.runs(blocks)), within), order.rows_of(blocks)[within]
        return
    units = np.unique(groups, return_inverse=True)[1]
    places = np.random.default_rng(seed).permutation(units.max() + 1)
    numbers = np.argsort(places[units], kind="stable")
    for start in range(0, rows, buffer_rows):
        part = numbers[start : start + buffer_rows]
        ascending = np.sort(part)
        first = np.flatnonzero(np.diff(ascending, prepend=-2) != 1)
        runs = zip(
            ascending[first].tolist(), (ascending[np.append(first[1:], len(part)) - 1] + 1).tolist(), strict=True
        )
        yield gather_rows("csr", x.read_runs(runs), np.searchsorted(ascending, part)), part


def _open_origin(
    origin: str | Dataset | RowBlocks, parameters: Mapping[str, Any]
) -> tuple[RowBlocks, Wanted, Callable[[], None]]:
    """Return (blocks of rows, what is stated of their labels, a check that raises DataError if files have changed).

    `origin` is a source name with `parameters`, a data set, or blocks, which take label parameters only; DataError
    otherwise.
    """
    if isinstance(origin, str):
        return _open_source(contract.get(origin), dict(parameters))
    if wrong := [name for name in parameters if name not in OF_LABELS or isinstance(origin, Dataset)]:
        known = "none for a data set" if isinstance(origin, Dataset) else ", ".join(OF_LABELS)
        raise DataError(f"convert has no parameter {wrong[0]!r} here; there is: {known}.")
    if isinstance(origin, Dataset):
        return blocks_of(origin), Wanted(), lambda: None
    if not isinstance(origin, RowBlocks):
        kinds = "the name of a data set, a data.Dataset or data.RowBlocks"
        raise DataError(f"There is a {type(origin).__name__} to convert; give {kinds}.")
    return origin, Wanted(**parameters), lambda: None


def _open_source(source: contract.Source, given: dict[str, Any]) -> tuple[RowBlocks, Wanted, Callable[[], None]]:
    """Return (blocks of rows, what is stated of their labels, a check that files have not changed) of a data source.

    Raises DataError for unknown or missing parameters in `given`.
    """
    complete = source.complete(given)
    before = fingerprint(*source.files(**complete))

    def check_unchanged() -> None:
        """Raise DataError if the content of a file of the source has changed since it was opened."""
        if fingerprint(*source.files(**complete)) != before:
            named = complete.get("path", source.name)
            raise DataError(f"{named} has changed while it was read; convert it when nothing writes to it.")

    if source.blocks is None:
        return blocks_of(source.make(**complete)), Wanted(), check_unchanged
    wanted = Wanted(**{name: complete[name] for name in OF_LABELS if name in complete})
    return source.blocks(**complete), wanted, check_unchanged


def blocks_of(dataset: Dataset) -> RowBlocks:
    """Return a data set, in memory or stored, as blocks of rows; raises DataError if it has a graph."""
    if dataset.graph is not None:
        raise DataError(f"{dataset.source} has a graph, which blocks of rows do not have; take it as it is, in memory.")
    return RowBlocks(
        _cut(dataset), dataset.name, dataset.source, dataset.licence, dataset.features, dataset.labels, dataset.facts
    )


def _cut(dataset: Dataset) -> Iterator[RowBlock]:
    """Yield the rows in order, in blocks of about `ENTRIES_OF_BLOCK` stored entries, as views if in memory."""
    x, start = dataset.x, 0
    mean = max(x.nnz / max(dataset.rows, 1), 1.0)
    while start < dataset.rows:
        stop = min(start + max(int(ENTRIES_OF_BLOCK / mean), 1), dataset.rows)
        part = x.read(start, stop) if isinstance(x, StoredRows) else slice_range("csr", x, start, stop)
        groups = None if dataset.groups is None else dataset.groups[start:stop]
        yield RowBlock(part, dataset.y[start:stop], groups)
        start = stop
