"""Partition of the rows of a value among shards: ranges of equal length, of row indices as they are, or hashed.

A row has a place, from 0 to rows - 1, and shard s of S holds the places from s * rows // S to (s + 1) * rows // S. With
`contiguous` the place is the number: neighbours are together, and ids that are ordered by frequency would give shard 0
most of the work. With `hashed` it is number * m mod rows, m without a common divisor with rows and near rows / 1.618:
the rows of any range are then spread evenly (Fibonacci hashing), and both ways are a few operations, without a table.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from workbench import formats
from workbench.formats import RowSparse
from workbench.kvstore import Key, LazyRandomRows, StoreError
from workbench.optimizers import Updater
from workbench.optimizers.parameter import unite_sorted

SPREADS = ("contiguous", "hashed")
MOST_HASHED = 3_000_000_000
"""Rows whose product of number and multiplier fits in 63 bits."""

GOLDEN = (math.sqrt(5) - 1) / 2


class Cut(NamedTuple):
    """The rows of a list that one shard holds: `at`, their positions in the list; `rows`, their local indices there."""

    at: slice | np.ndarray
    rows: np.ndarray


@final
@dataclass(frozen=True)
class Partition:
    """The rows of one value among shards; `spread` is contiguous or hashed.

    >>> four = Partition(10, 4)
    >>> four.borders.tolist(), [part.rows.tolist() for part in four.cut(np.array([0, 4, 5, 9]))]
    ([0, 2, 5, 7, 10], [[0], [2], [0], [2]])
    >>> Partition(10, 2, "hashed").owned(0).tolist()
    [0, 3, 6, 9, 2]
    """

    rows: int
    shards: int
    spread: str = "contiguous"

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown spread, less than one shard, or more rows than can be hashed."""
        if self.spread not in SPREADS:
            raise ValueError(f"spread is {self.spread!r}; it is one of {', '.join(SPREADS)}.")
        if self.shards < 1:
            raise ValueError(f"There are {self.shards} shards; there is 1 or more.")
        if self.spread == "hashed" and self.rows > MOST_HASHED:
            raise ValueError(f"{self.rows} rows cannot be hashed, up to {MOST_HASHED} can; take spread='contiguous'.")

    @functools.cached_property
    def borders(self) -> np.ndarray:
        """First position of each shard, then the number of rows: int64 `[shards + 1]`; computed once.

        Positions are row indices, permuted by `multiplier` if hashed.
        """
        return np.array([shard * self.rows // self.shards for shard in range(self.shards + 1)], np.int64)

    @functools.cached_property
    def multiplier(self) -> int:
        """Factor that maps row indices to positions (times it, modulo the rows), coprime to the number of rows.

        1 if rows stay in order.
        """
        if self.spread == "contiguous" or self.rows < 3:
            return 1
        near = round(self.rows * GOLDEN)
        return next(m for m in range(near, self.rows) if math.gcd(m, self.rows) == 1)

    @functools.cached_property
    def order(self) -> np.ndarray:
        """Indices of all rows in the order of the shards and of their local indices: int64 `[rows]`."""
        return np.concatenate([self.owned(shard) for shard in range(self.shards)])

    def count(self, shard: int) -> int:
        """Return the number of rows that the shard (from 0) has."""
        return int(self.borders[shard + 1] - self.borders[shard])

    def owned(self, shard: int) -> np.ndarray:
        """Return the indices of the rows that a shard has, in its local order: int64 `[count]`. O(count)."""
        return self.numbers(shard, np.arange(self.count(shard)))

    def numbers(self, shard: int, rows: np.ndarray) -> np.ndarray:
        """Return the global row indices (int64) of the local row indices `rows` of a shard."""
        places = rows + self.borders[shard]
        if self.multiplier == 1:
            return places
        return places * pow(self.multiplier, -1, self.rows) % self.rows

    def cut(self, numbers: np.ndarray) -> list[Cut]:
        """Split sorted, unique row indices (int64) by shard, with local indices sorted. O(n), hashed O(n log n).

        One `Cut` for each shard, also for those without a row.
        """
        order, places = None, numbers
        if self.multiplier > 1:
            places = self.places(numbers)
            order = np.argsort(places)
            places = places[order]
        ends = np.searchsorted(places, self.borders).tolist()
        spans = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        return [
            Cut(at if order is None else order[at], places[at] - border)
            for at, border in zip(spans, self.borders[:-1], strict=True)
        ]

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Return the positions (int64, from 0 to rows - 1) of global row indices; a shard has a range of positions."""
        return numbers * self.multiplier % self.rows if self.multiplier > 1 else numbers


@final
@dataclass(frozen=True)
class Move:
    """Places of the rows of shards of an `old` partition on one `shard` of a `new` one: -1 for those of others.

    >>> move = Move(Partition(10, 2), Partition(10, 3), 1)
    >>> move.rows, move.owned(0).tolist(), move.owned(1).tolist()
    (3, [-1, -1, -1, 0, 1], [2, -1, -1, -1, -1])
    """

    old: Partition
    new: Partition
    shard: int

    @property
    def rows(self) -> int:
        """Number of rows of the new shard."""
        return self.new.count(self.shard)

    def count(self, shard: int) -> int:
        """Return the number of rows that a shard of the old partition has."""
        return self.old.count(shard)

    def numbers(self, shard: int, rows: np.ndarray) -> np.ndarray:
        """Return the local indices on the new shard of local rows of an old shard, int64.

        -1 for rows of other shards.
        """
        places = self.new.places(self.old.numbers(shard, rows)) - self.new.borders[self.shard]
        return np.where((places >= 0) & (places < self.rows), places, -1)

    def owned(self, shard: int) -> np.ndarray:
        """Return the local indices on the new shard of all rows of an old shard, in order; -1 for rows of others."""
        return self.numbers(shard, np.arange(self.count(shard)))

    def needs(self, shard: int) -> bool:
        """Return whether an old shard may have rows of the new one, so that its file must be read."""
        if not self.rows or not self.old.count(shard):
            return False
        first, last = self.new.borders[self.shard : self.shard + 2]
        begins, ends = self.old.borders[shard : shard + 2]
        return self.old.spread != self.new.spread or bool(begins < last and first < ends)


# Knowledge of a trainer about a value that shards hold.


class Held(NamedTuple):
    """Value that shards hold, as a trainer knows it: its shape and which shard has which of its rows."""

    shape: tuple[int, ...]
    dtype: np.dtype
    partition: Partition
    is_dense: bool = True

    @property
    def index_dtype(self) -> np.dtype:
        """Type of local row indices: int32 if they fit, else int64."""
        return np.dtype(np.int32 if self.partition.rows < 2**31 else np.int64)

    def part_shape(self, shard: int) -> tuple[int, ...]:
        """Return the shape of a shard's part of the value; () for a scalar value."""
        return (self.partition.count(shard), *self.shape[1:]) if self.shape else ()


# Values and states, whole or as the parts that shards hold: cut, and joined again, bit for bit.


def cut(array: Any, partition: Partition) -> list[Any]:
    """Return the part of an array or RowSparse for each shard, None for a shard without rows.

    A scalar goes to the last shard. Parts of RowSparse have local row indices.
    """
    if not array.ndim:
        return [None] * (partition.shards - 1) + [array]
    parts: list[Any] = [None] * partition.shards
    pieces = partition.cut(array.indices) if isinstance(array, RowSparse) else None
    for shard in range(partition.shards):
        if not (count := partition.count(shard)):
            continue
        if pieces is None:
            parts[shard] = array[partition.owned(shard)]
        else:
            at, rows = pieces[shard]
            parts[shard] = RowSparse.assemble(array.values[at], rows, (count, *array.shape[1:]))
    return parts


def joined(parts: Mapping[int, Any], partition: Partition | Move) -> Any:
    """Return the whole array of the parts by shard, or its rows that move; the inverse of `cut`.

    A new array or RowSparse. O(size), for RowSparse O(stored log stored).
    """
    first = next(iter(parts.values()))
    if not first.ndim:
        return first
    shape = (partition.rows, *first.shape[1:])
    if isinstance(first, RowSparse):
        numbers = np.concatenate([partition.numbers(shard, part.indices) for shard, part in parts.items()])
        order = np.argsort(numbers)
        order = order[np.searchsorted(numbers, 0, sorter=order) :]
        values = np.concatenate([part.values for part in parts.values()])
        return RowSparse.assemble(values[order], numbers[order], shape)
    whole = np.empty(shape, first.dtype)
    for shard, part in parts.items():
        numbers = partition.owned(shard)
        is_there = numbers >= 0
        whole[numbers if is_there.all() else numbers[is_there]] = part if is_there.all() else part[is_there]
    return whole


# Rows of a shard that are drawn when they are first read or pushed to, so that the others cost nothing.


class Source(NamedTuple):
    """Source of the rows of one shard of a value."""

    drawn: LazyRandomRows
    partition: Partition
    shard: int

    @property
    def nothing(self) -> RowSparse:
        """RowSparse with the shape of the shard's part and no stored rows, the value before any row was used."""
        shape = (self.partition.count(self.shard), *self.drawn.shape[1:])
        return formats.zeros(shape, "row_sparse", np.dtype(self.drawn.dtype))

    def draw(self, value: RowSparse, rows: np.ndarray | None) -> None:
        """Add to `value`, in place, those of the local `rows` (sorted, unique.

        None for all) that it does not store yet. O(stored rows) if one is new.
        """
        wanted = np.arange(value.shape[0]) if rows is None else rows
        indices = unite_sorted(value.indices, wanted)
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
    """Return {key: source of the rows of shard `shard` of `shards`} for each lazily generated value.

    `listed` has [key, `LazyRandomRows.about`] of each; `spread` is how rows are divided. Keys without rows here are
    left out.
    """
    made = {key: Source(drawn, Partition(drawn.shape[0], shards, spread), shard) for key, drawn in _read(listed)}
    return {key: source for key, source in made.items() if source.partition.count(shard)}


def check_lazy(updater: Updater | None, keys: Iterable[Key]) -> None:
    """Raise StoreError if `updater` changes rows without a gradient while values of `keys` are generated lazily."""
    if updater is not None and updater.lazy != "on" and (named := ", ".join(map(repr, keys))):
        raise StoreError(
            f"Rows of {named} are generated when a batch first uses them, which needs a lazy update; this one is "
            f"lazy={updater.lazy!r}. Pass lazy='on', or give all rows: rows.whole()."
        )


def _read(listed: Sequence[Sequence[Any]]) -> list[tuple[Key, LazyRandomRows]]:
    """Return [(key, LazyRandomRows)] of the [key, description] pairs of a message."""
    return [(key, LazyRandomRows.of(about)) for key, about in listed]
