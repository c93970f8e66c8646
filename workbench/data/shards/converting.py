"""Data sets into folders of shards, in bounded memory; what is interrupted leaves no folder of that name."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from workbench import formats
from workbench.data import contract
from workbench.data.batches.slicing import slice_range
from workbench.data.dataset.record import Dataset, RowBlock, RowBlocks, StoredRows
from workbench.data.errors import DataError
from workbench.data.files.reading import fingerprint
from workbench.data.labels import MOST_CLASSES, Labels, Wanted, read_labels
from workbench.data.shards import manifest as manifests
from workbench.data.shards.manifest import Manifest
from workbench.data.shards.shuffling import Rows, ShardWriter, Shuffle, hash_numbers

# Folders that are whole or not there: written next to their place, under a lock, and moved there at the end.


LOCK = "lock"
ADVICE = {
    errno.ENOSPC: "The disk is full; free some of it, or choose a folder on another one",
    errno.EACCES: "Choose a folder that you may write to",
    errno.EROFS: "Choose a folder on a disk that can be written to",
}


@contextlib.contextmanager
def replacement_folder(folder: Path) -> Iterator[Path]:
    """Create a locked temporary folder in a `with` block, renamed to `folder` at the end or removed after an error.

    The lock distinguishes what a killed process left, which is cleared, from what another process is writing. Raises
    DataError if `folder` exists, is being written by another process, or cannot be written.
    """
    if folder.exists():
        raise DataError(f"There is already {folder}; remove it, or choose another name.")
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        with (partial / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(f"{folder} is being written by another process; wait for it, or stop it.") from None
            try:
                _clear(partial)
                yield partial
                partial.rename(folder)  # with its lock: without it another process could clear what is whole
                (folder / LOCK).unlink()
                _sync(folder.parent)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, "Choose another folder")
        raise DataError(f"{folder} cannot be written: {error.strerror or error}. {advice}.") from error


def _clear(folder: Path) -> None:
    """Delete the content of a folder except its lock file."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _sync(folder: Path) -> None:
    """Flush the directory entries of a folder to disk; OSError if that fails."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Meaning of labels that come block by block: distinct ones are collected, and read as those of a whole file are.


Understood = Callable[[np.ndarray], np.ndarray]
"""Makes of labels as they were kept what a data set holds."""


@final
class LabelCollector:
    """The labels of blocks, kept as numbers until all have come; `what` names their origin in messages.

    Of text the number of its first appearance is kept, and every distinct one is held. Of numbers the distinct ones are
    held until there are more than classes are guessed of; where they are said to be classes, all are. Blocks with
    several labels a row have columns of them; lists of labels are refused, and labels of another type than the first.
    """

    def __init__(self, wanted: Wanted, what: str) -> None:
        """Start without labels; `wanted` states kind and classes, `what` names the origin in messages."""
        self.wanted, self.what, self.rows = wanted, what, 0
        self.kind: tuple | None = None
        self.number_of: dict[str, int] = {}
        self.distinct = np.empty(0)
        self.low, self.high = np.inf, -np.inf
        self.between: np.ndarray | None = None
        """A label, or row of labels, that is not whole, or of columns one that is not 0 and 1."""
        self.are_all_held = wanted.kind != "numbers"

    def add(self, labels: np.ndarray) -> np.ndarray:
        """Record the labels of a block, [R] or [R, N]; return them, text replaced by int64 indices.

        Raises DataError for labels that are not an array, not finite, or of another type than those before.
        """
        if not isinstance(labels, np.ndarray):
            advice = "give columns of 0 and 1 for each class, or load the set whole and convert that"
            raise DataError(f"Labels of a block of {self.what} are a {type(labels).__name__}; {advice}.")
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.dtype.kind == "S":
            labels = np.char.decode(labels, "utf-8", "backslashreplace")
        self._check_kind(labels)
        kept = self._index_texts(labels) if labels.dtype.kind == "U" else self._note_numbers(labels)
        self.rows += len(labels)
        return kept

    def _check_kind(self, labels: np.ndarray) -> None:
        """Set `kind` to the type and columns of a block's labels; DataError if earlier blocks had another.

        Also for labels that are neither numbers nor text.
        """
        kind = ("text" if labels.dtype.kind == "U" else labels.dtype.name, *labels.shape[1:])
        if labels.ndim not in (1, 2) or labels.dtype.kind not in "biufU" or (labels.ndim == 2 and kind[0] == "text"):
            raise DataError(f"Labels of {self.what} are {labels.dtype} {list(labels.shape)}; they are numbers or text.")
        if self.kind is not None and kind != self.kind:
            raise DataError(f"Labels of {self.what} are {self.kind} and from row {self.rows} on {kind}; keep to one.")
        self.kind = kind

    def _index_texts(self, labels: np.ndarray) -> np.ndarray:
        """Return text labels as indices, int64 [rows], in the order of first appearance; new texts are added."""
        names, inverse = np.unique(labels, return_inverse=True)
        numbers = [self.number_of.setdefault(str(name), len(self.number_of)) for name in names]
        return np.array(numbers, np.int64)[inverse]

    def _note_numbers(self, labels: np.ndarray) -> np.ndarray:
        """Record range, an odd value and distinct values of numeric labels, and return them.

        DataError if one is not finite. Distinct values are kept until there are more than classes are guessed of, or
        always if classes were stated.
        """
        finite = np.isfinite(labels.astype(np.float64))
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(labels), -1).all(axis=1)))
            raise DataError(f"{self.what}, row {self.rows + row}: the label {labels[row]} is no finite number.")
        if labels.size:
            self.low, self.high = min(self.low, labels.min()), max(self.high, labels.max())
        if self.between is None:
            odd = ~np.isin(labels, (0, 1)).all(1) if labels.ndim == 2 else labels != np.floor(labels)
            self.between = labels[int(np.argmax(odd))] if odd.any() else None
        if labels.ndim == 1 and self.are_all_held:
            self.distinct = np.unique(np.concatenate([self.distinct.astype(labels.dtype), labels]))
            is_said = self.wanted.kind or self.wanted.classes is not None or self.wanted.positive is not None
            self.are_all_held = bool(is_said) or len(self.distinct) <= MOST_CLASSES
        return labels

    def meaning(self) -> tuple[Labels, Understood]:
        """Return the meaning of all labels, and a function that converts what `add` returned to `y` of a data set.

        Raises DataError if there were no rows, or the labels do not fit what was stated.
        """
        if self.kind is None:
            raise DataError(f"{self.what} holds no rows; a data set has at least one.")
        if self.kind[0] == "text":
            names = np.array(list(self.number_of))
            meaning, of_name = read_labels(names, self.wanted, lambda row: self.what)
            return meaning, lambda kept: of_name[kept]
        sample = self._columns() if len(self.kind) == 2 else self._sample()
        meaning, of_sample = read_labels(sample, self.wanted, lambda row: self.what)
        if meaning.kind == "classes":
            return meaning, lambda kept: of_sample[np.searchsorted(sample, kept)]
        return meaning, lambda kept: kept.astype(of_sample.dtype)

    def _sample(self) -> np.ndarray:
        """Return a sorted sample of labels that tells their kind: distinct ones kept, least, greatest, fractional."""
        assert self.kind is not None
        some = [self.low, self.high] if self.between is None else [self.low, self.between, self.high]
        return np.unique(np.concatenate([self.distinct, some]).astype(self.kind[0]))

    def _columns(self) -> np.ndarray:
        """Return smallest and largest label, repeated over columns, and a row that is not 0/1, [2 or 3, columns]."""
        assert self.kind is not None
        ends = np.repeat([[self.low], [self.high]], self.kind[1], axis=1)
        return np.concatenate([ends, [self.between]]) if self.between is not None else ends


# A hash of the rows of a data set, by which it is known again however it is cut, shuffled or stored.


@final
class Digest:
    """A hash of rows as they come, the same however they are cut into blocks."""

    def __init__(self) -> None:
        """Start SHA-256 hashes of row lengths, indices, values and labels."""
        self.parts = {name: hashlib.sha256() for name in ("lengths", "indices", "data", "labels")}

    def add(self, x: Any, labels: np.ndarray) -> None:
        """Add rows, CSR [R, features], and their labels [R] or [R, N] to the hashes."""
        texts = "\0".join(map(str, labels.tolist())) + "\0" if labels.dtype.kind in "US" else None
        arrays: dict[str, Any] = {
            "lengths": np.diff(x.indptr).astype("<i8"),
            "indices": x.indices.astype("<i8", copy=False),
            "data": x.data,
            "labels": labels if texts is None else texts.encode("utf-8", "surrogatepass"),
        }
        for name, array in arrays.items():
            self.parts[name].update(array if isinstance(array, bytes) else np.ascontiguousarray(array).data)

    def text(self) -> str:
        """Return the SHA-256 of all rows added, as 64 hexadecimal digits."""
        return hashlib.sha256("".join(part.hexdigest() for part in self.parts.values()).encode()).hexdigest()


SHARD_BYTES = 1 << 27
LEAST_SHARD_BYTES = 1 << 10
BYTES_AT_ONCE = 1 << 26
"""Rows that are held to be sorted, at most; less where shards are smaller."""
ENTRIES_OF_BLOCK = 1 << 19
"""Stored entries of a block that is cut from a set in memory."""
OF_LABELS = ("kind", "positive", "classes", "unseen")


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
    shard_bytes: int = SHARD_BYTES,
    progress: Tell = lambda progress: None,
    **parameters: Any,
) -> Manifest:
    """Write a data set into a new folder of shards, `X.sparse`, that `load("sparse", path=folder)` opens.

    Return its manifest. `origin` is a data set, its blocks, or the name of a source with its parameters: a source with
    `blocks` is read block by block, others are made whole first. For blocks, `kind`, `positive`, `classes` and `unseen`
    say what labels mean, as for a file.

    With `shuffle`, a seed, the rows are in a random order that depends on the seed and their number alone; rows of one
    group stay together, in the order they had. That takes as much disk again while it runs. With None they keep their
    order, and no part can be held out. Shards have about `shard_bytes` bytes each; memory holds about three of them and
    the distinct labels, whatever the size of the set. `progress` is called after each block.

    All is written to a temporary folder and renamed when it is complete. What a killed conversion left is no data set;
    the next one into that folder removes it and begins anew, since shuffled rows stand in no shard before all are read.
    Raises DataError for a folder that exists or is being written, a disk that is full or not writable, a file that
    changes while it is read, and whatever the source refuses.
    """
    folder = Path(folder)
    _check(shuffle, shard_bytes)
    with replacement_folder(folder) as partial:
        blocks, wanted, check_unchanged = _open_origin(origin, parameters)
        conversion = _Conversion(blocks, wanted, partial, shuffle, shard_bytes, progress)
        made = conversion.run()
        check_unchanged()
        manifests.write(partial, made)
    return made


def _check(shuffle: int | None, shard_bytes: int) -> None:
    """Raise DataError unless `shuffle` is None or an int from 0 on, and `shard_bytes` an int of at least 1024."""
    if shuffle is not None and (type(shuffle) is not int or shuffle < 0):
        raise DataError(f"shuffle is {shuffle!r}; it is a seed, a whole number from 0 on, or None to keep the order.")
    if type(shard_bytes) is not int or shard_bytes < LEAST_SHARD_BYTES:
        raise DataError(f"shard_bytes is {shard_bytes!r}; it is a number of bytes, {LEAST_SHARD_BYTES} or more.")


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

    Hashes the files first. Raises DataError for unknown or missing parameters in `given`.
    """
    complete = source.complete(given)
    before = fingerprint(*source.files(**complete))

    def check_unchanged() -> None:
        """Raise DataError if the content of a file of the source has changed since it was hashed."""
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


@final
class _Conversion:
    """One conversion: blocks are checked, their labels collected, dealt out where they are shuffled, and written."""

    def __init__(
        self, origin: RowBlocks, wanted: Wanted, folder: Path, shuffle: int | None, shard_bytes: int, progress: Tell
    ) -> None:
        """Set up shard writer, label collector, digest, and the files for shuffling unless `shuffle` is None."""
        self.origin, self.shuffle, self.progress = origin, shuffle, progress
        self.writer = ShardWriter(folder, shard_bytes)
        self.labels = LabelCollector(wanted, origin.source)
        self.digest = Digest()
        self.spool = Shuffle(folder / "unsorted", min(shard_bytes, BYTES_AT_ONCE)) if shuffle is not None else None
        self.rows, self.entries, self.width = 0, 0, origin.features or 0
        self.y = np.empty(0)
        self.dtype: np.dtype | None = None
        self.has_groups: bool | None = None

    def run(self) -> Manifest:
        """Read, shuffle and write all rows, and return the manifest, which the caller writes last.

        Calls `progress` after each block. Raises DataError for invalid blocks or labels.
        """
        for block in self.origin.blocks:
            self.take(RowBlock(*block))
            self.progress(Progress("reading", self.rows, None))
        meaning, understood = self.meaning()
        if self.spool is not None:
            for rows in self.spool.ordered():
                self.writer.add(rows)
                self.progress(Progress("writing", self.writer.rows, self.rows))
        shards = self.writer.finish(understood)
        self.progress(Progress("writing", self.rows, self.rows))
        origin, y = self.origin, understood(self.y)
        return Manifest(
            name=origin.name,
            shape=(self.rows, self.width),
            dtype=str(self.dtype),
            y_dtype=str(y.dtype),
            y_width=y.shape[1] if y.ndim > 1 else None,
            labels=meaning,
            source=origin.source,
            licence=origin.licence,
            facts=origin.facts,
            shuffle=self.shuffle,
            origin_sha256=self.digest.text(),
            shards=shards,
        )

    def take(self, block: RowBlock) -> None:
        """Validate a block, record its labels, add it to the digest, and write it to shards or shuffle files.

        Rows are shuffled by their group, else their index. Raises DataError if the block is invalid.
        """
        x = self.checked(block)
        kept = block.labels if self.origin.labels is not None else self.labels.add(block.labels)
        self.digest.add(x, block.labels)
        rows = Rows(x, kept, block.groups)
        if self.spool is None:
            self.writer.add(rows)
        else:
            units = np.arange(self.rows, self.rows + len(kept)) if block.groups is None else block.groups
            self.spool.add(hash_numbers(units, self.shuffle or 0), rows)
        self.rows, self.entries, self.y = self.rows + len(kept), self.entries + x.nnz, kept[:1] if len(kept) else self.y

    def checked(self, block: RowBlock) -> Any:
        """Return the matrix of a block after validating it; update the width.

        Raises DataError if it does not match earlier ones. FormatError is raised for an invalid CSR array.
        """
        x = formats.check(block.x, full=True, dtypes=formats.FLOATS)
        has_groups = block.groups is not None
        counts = {x.shape[0], len(block.labels), x.shape[0] if block.groups is None else len(block.groups)}
        if len(counts) > 1:
            raise DataError(f"A block of {self.origin.source} has {sorted(counts)} rows and labels; one for each row.")
        if self.origin.features is not None and x.shape[1] > self.origin.features:
            raise DataError(f"A block has {x.shape[1]} columns, and the set {self.origin.features} features.")
        self.dtype = self.dtype or x.dtype
        self.has_groups = has_groups if self.has_groups is None else self.has_groups
        if x.dtype != self.dtype or has_groups != self.has_groups:
            raise DataError(f"Blocks of {self.origin.source} differ in the type of values, or in having groups.")
        self.width = max(self.width, x.shape[1])
        return x

    def meaning(self) -> tuple[Labels, Understood]:
        """Return the meaning of the labels, and the function that converts kept ones, once all blocks have been read.

        Raises DataError if there are no rows or no stored entries.
        """
        if not self.rows:
            raise DataError(f"{self.origin.source} holds no rows; a data set has at least one.")
        if not self.entries:
            raise DataError(f"{self.origin.source} has labels without features: no row stores an entry to learn from.")
        return (self.origin.labels, lambda y: y) if self.origin.labels is not None else self.labels.meaning()
