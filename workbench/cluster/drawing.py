"""Rows of a shard that are drawn when they are first read or pushed to, so that the others cost nothing."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench import formats
from workbench.cluster.partition import Partition
from workbench.formats import RowSparse
from workbench.kvstore import Drawn, Key, StoreError
from workbench.optimizers import Updater
from workbench.optimizers.rows import united


class Source(NamedTuple):
    """Source of the rows of one shard of a value."""

    drawn: Drawn
    partition: Partition
    shard: int

    @property
    def nothing(self) -> RowSparse:
        """The value before any row was touched."""
        shape = (self.partition.count(self.shard), *self.drawn.shape[1:])
        return formats.zeros(shape, "row_sparse", np.dtype(self.drawn.dtype))

    def draw(self, value: RowSparse, rows: np.ndarray | None) -> None:
        """Let `value` hold these rows of the shard, sorted and unique, or all; O(stored) where one is new."""
        wanted = np.arange(value.shape[0]) if rows is None else rows
        indices = united(value.indices, wanted)
        if indices.size == value.indices.size:
            return
        is_new = np.ones(indices.size, bool)
        is_new[np.searchsorted(indices, value.indices)] = False
        new = indices[is_new]
        values = np.empty((indices.size, *value.shape[1:]), value.dtype)
        values[~is_new] = value.values
        values[is_new] = self.drawn.rows(self.partition.numbers(self.shard, new))
        formats.get("row_sparse").replace(value, {"values": values, "indices": indices})


def sources(listed: Sequence[Sequence[Any]], spread: str, shard: int, shards: int) -> dict[Key, Source]:
    """Sources by key, from `[key, Drawn.about]` of each drawn value; none where the shard has no row of it."""
    made = {key: Source(drawn, Partition(drawn.shape[0], shards, spread), shard) for key, drawn in _read(listed)}
    return {key: source for key, source in made.items() if source.partition.count(shard)}


def check_lazy(updater: Updater | None, keys: Iterable[Key]) -> None:
    """Refuse an update that changes rows which no gradient touched, where those are drawn later (`StoreError`)."""
    if updater is not None and updater.lazy != "on" and (named := ", ".join(map(repr, keys))):
        raise StoreError(
            f"Rows of {named} are drawn when they are first touched, which a lazy update leaves as they are; this one "
            f"is lazy={updater.lazy!r}. Take lazy='on', or give all rows: drawn.whole()."
        )


def _read(listed: Sequence[Sequence[Any]]) -> list[tuple[Key, Drawn]]:
    return [(key, Drawn.of(about)) for key, about in listed]
