"""Data sets into folders of shards, in bounded memory; what is interrupted leaves no folder of that name."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from workbench import formats
from workbench.data import contract
from workbench.data.batches.cut import ranged
from workbench.data.dataset.record import Dataset
from workbench.data.dataset.row_blocks import RowBlock, RowBlocks
from workbench.data.dataset.stored import StoredRows
from workbench.data.errors import DataError
from workbench.data.labels.meaning import Labels, Wanted
from workbench.data.shards import manifest as manifests
from workbench.data.shards.digest import Digest
from workbench.data.shards.manifest import Manifest
from workbench.data.shards.meaning import LabelCollector, Understood
from workbench.data.shards.shuffling import Shuffle, hashes
from workbench.data.shards.whole import beside
from workbench.data.shards.writing import Rows, ShardWriter

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

    `origin` is a data set, its blocks, or the name of a source with its parameters: one that has `blocks` is read block
    by block, others are made whole first. Of blocks `kind`, `positive`, `classes` and `unseen` say what labels mean, as
    for a file.

    With `shuffle`, a seed, the rows are in a random order that depends on the seed and their number alone; rows of one
    group stay together, in the order they had. That takes as much disk again while it runs. With None they keep their
    order, and no part can be held out. Shards have about `shard_bytes` bytes each; memory holds about three of them and
    the distinct labels, whatever the size of the set. `progress` is told after each block.

    All is written beside the folder, and moved there when it is whole. What a killed conversion left is no data set;
    the next one into that folder removes it and begins anew, since shuffled rows stand in no shard before all are read.
    Refused (`DataError`): a folder that exists or is being written, a disk that is full or may not be written to, a
    file that changes while it is read, and whatever the source refuses.
    """
    folder = Path(folder)
    _check(shuffle, shard_bytes)
    with beside(folder) as partial:
        blocks, wanted, check_unchanged = _opened(origin, parameters)
        conversion = _Conversion(blocks, wanted, partial, shuffle, shard_bytes, progress)
        made = conversion.run()
        check_unchanged()
        manifests.write(partial, made)
    return made


def _check(shuffle: int | None, shard_bytes: int) -> None:
    if shuffle is not None and (type(shuffle) is not int or shuffle < 0):
        raise DataError(f"shuffle is {shuffle!r}; it is a seed, a whole number from 0 on, or None to keep the order.")
    if type(shard_bytes) is not int or shard_bytes < LEAST_SHARD_BYTES:
        raise DataError(f"shard_bytes is {shard_bytes!r}; it is a number of bytes, {LEAST_SHARD_BYTES} or more.")


def _opened(
    origin: str | Dataset | RowBlocks, parameters: Mapping[str, Any]
) -> tuple[RowBlocks, Wanted, Callable[[], None]]:
    """The blocks of an origin, what is said of their labels, and what refuses files that changed meanwhile."""
    if isinstance(origin, str):
        return _of_source(contract.get(origin), dict(parameters))
    if wrong := [name for name in parameters if name not in OF_LABELS or isinstance(origin, Dataset)]:
        known = "none for a data set" if isinstance(origin, Dataset) else ", ".join(OF_LABELS)
        raise DataError(f"convert has no parameter {wrong[0]!r} here; there is: {known}.")
    if isinstance(origin, Dataset):
        return blocks_of(origin), Wanted(), lambda: None
    if not isinstance(origin, RowBlocks):
        kinds = "the name of a data set, a data.Dataset or data.RowBlocks"
        raise DataError(f"There is a {type(origin).__name__} to convert; give {kinds}.")
    return origin, Wanted(**parameters), lambda: None


def _of_source(source: contract.Source, given: dict[str, Any]) -> tuple[RowBlocks, Wanted, Callable[[], None]]:
    complete = source.complete(given)
    before = source.fingerprint(**complete)

    def check_unchanged() -> None:
        if source.fingerprint(**complete) != before:
            named = complete.get("path", source.name)
            raise DataError(f"{named} has changed while it was read; convert it when nothing writes to it.")

    if source.blocks is None:
        return blocks_of(source.make(**complete)), Wanted(), check_unchanged
    wanted = Wanted(**{name: complete[name] for name in OF_LABELS if name in complete})
    return source.blocks(**complete), wanted, check_unchanged


def blocks_of(dataset: Dataset) -> RowBlocks:
    """The blocks of a data set, also of one that is stored; one with a graph is refused (`DataError`)."""
    if dataset.graph is not None:
        raise DataError(f"{dataset.source} has a graph, which blocks of rows do not have; take it as it is, in memory.")
    return RowBlocks(
        _cut(dataset), dataset.name, dataset.source, dataset.licence, dataset.features, dataset.labels, dataset.facts
    )


def _cut(dataset: Dataset) -> Iterator[RowBlock]:
    x, start = dataset.x, 0
    mean = max(x.nnz / max(dataset.rows, 1), 1.0)
    while start < dataset.rows:
        stop = min(start + max(int(ENTRIES_OF_BLOCK / mean), 1), dataset.rows)
        part = x.read(start, stop) if isinstance(x, StoredRows) else ranged("csr", x, start, stop)
        groups = None if dataset.groups is None else dataset.groups[start:stop]
        yield RowBlock(part, dataset.y[start:stop], groups)
        start = stop


@final
class _Conversion:
    """One conversion: blocks are checked, their labels collected, dealt out where they are shuffled, and written."""

    def __init__(
        self, origin: RowBlocks, wanted: Wanted, folder: Path, shuffle: int | None, shard_bytes: int, progress: Tell
    ) -> None:
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
        """All of it but for the manifest, which says that it is whole."""
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
        """Check a block and pass it on."""
        x = self.checked(block)
        kept = block.labels if self.origin.labels is not None else self.labels.add(block.labels)
        self.digest.add(x, block.labels)
        rows = Rows(x, kept, block.groups)
        if self.spool is None:
            self.writer.add(rows)
        else:
            units = np.arange(self.rows, self.rows + len(kept)) if block.groups is None else block.groups
            self.spool.add(hashes(units, self.shuffle or 0), rows)
        self.rows, self.entries, self.y = self.rows + len(kept), self.entries + x.nnz, kept[:1] if len(kept) else self.y

    def checked(self, block: RowBlock) -> Any:
        """The matrix of a block; `DataError` for one that does not go with those before."""
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
        """Meaning of the labels, once all have come; a set with no rows, or no entry, is refused."""
        if not self.rows:
            raise DataError(f"{self.origin.source} holds no rows; a data set has at least one.")
        if not self.entries:
            raise DataError(f"{self.origin.source} has labels without features: no row stores an entry to learn from.")
        return (self.origin.labels, lambda y: y) if self.origin.labels is not None else self.labels.meaning()
