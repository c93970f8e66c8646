"""Mini-batches of arrays in memory: slices of matrices and their labels, epoch after epoch."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from kernels import plan
from kernels.permutation import permutation, permutation_of_rows
from kernels.plan import BatchPlan
from workbench import formats
from workbench.data.batches import slicing
from workbench.data.batches.feed import Batch, Feed, check_last, check_position, count_batches
from workbench.data.batches.slicing import MadeDense, is_made
from workbench.data.errors import DataError

Held = tuple[str, str, Any]
"""An array that is held: name, format and array."""


@final
@dataclass(frozen=True, eq=False)
class Batches(Feed):
    """Mini-batches of `rows` rows of `x` (csr, dense or row_sparse) with their labels `y`: [rows], [rows, N], or csr.

    Several arrays are given by name, `{"user": ids, "item": ids}`; a single one is called `data`, a single label
    `label`; `y` may be None. A batch has the formats of what it is cut from. In stored order it shares its values and
    indices with them: nothing but `rows` + 1 row pointers is made. With `shuffle` the order is random, another one each
    epoch, the same for the same `seed` and epoch; rows are then copied.

    `last` says what becomes of the rows at the end of an epoch that fill no batch: `keep` them as a smaller one,
    `discard` them, or `pad` them with the first rows of the epoch (again and again, where those do not suffice).
    With `dense`, a type, batches of csr data of that type, and of dense data in uint8 or float16, are made dense in
    it, in memory that serves again once nobody holds it. Wrong arguments, and a set without rows, are refused
    (`DataError`).

    >>> x, y = np.eye(5, dtype=np.float32), np.arange(5)
    >>> [batch.y.tolist() for batch in Batches(x, y, rows=2).epoch(0)]
    [[0, 1], [2, 3], [4]]
    >>> [(batch.y.tolist(), batch.pad) for batch in Batches(x, y, rows=2, last="pad").epoch(0)]
    [([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]
    """

    x: Any
    y: Any = None
    rows: int = 256
    shuffle: bool = False
    seed: int = 0
    last: str = "keep"
    dense: DTypeLike | None = None
    total: int = field(init=False)
    """Rows of the data."""
    data: tuple[Held, ...] = field(init=False, repr=False)
    labels: tuple[Held, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Validate the arrays and settings, and store the arrays as (name, format, array) in `data` and `labels`.

        Raises DataError for names or lengths that do not fit, data without rows, or settings that leave no batch.
        """
        data = _name_arrays(self.x, "data", "x")
        labels = {} if self.y is None else _name_arrays(self.y, "label", "y")
        if both := sorted(set(data) & set(labels)):
            raise DataError(f"{both[0]!r} names data and labels; every array has a name of its own.")
        if not data:
            raise DataError("x has no arrays; give at least one, as an array or by name: {'data': x}.")
        unnamed = dict.fromkeys(data, "x") if not isinstance(self.x, Mapping) else {}
        unnamed |= dict.fromkeys(labels, "y") if not isinstance(self.y, Mapping) else {}
        words = {name: unnamed.get(name, name) for name in (*data, *labels)}
        admitted = {
            name: (name, *slicing.coerce_for_slicing(array, words[name])) for name, array in {**data, **labels}.items()
        }
        first = next(iter(admitted.values()))[2]
        object.__setattr__(self, "data", tuple(admitted[name] for name in data))
        object.__setattr__(self, "labels", tuple(admitted[name] for name in labels))
        object.__setattr__(self, "total", first.shape[0])
        if not isinstance(self.x, Mapping):
            object.__setattr__(self, "x", first)
        if self.dense is not None:
            made = (
                (name, "dense", MadeDense(array, self.dense))
                if is_made(format, array, self.dense)
                else (name, format, array)
                for name, format, array in self.data
            )
            object.__setattr__(self, "data", tuple(made))
        self._check_lengths(words)
        check_last(self.last, self.rows)
        if self.last == "discard" and not len(self):
            raise DataError(f"rows={self.rows} with last='discard' leaves no batch of {self.total} rows; use 'keep'.")

    def _check_lengths(self, words: Mapping[str, str]) -> None:
        """Raise DataError if arrays differ in length or have no rows.

        `words` maps each name to the one used in messages.
        """
        first = words[self.data[0][0]]
        for name, _, array in (*self.data, *self.labels):
            if array.shape[0] != self.total:
                lengths = f"{words[name]} has {array.shape[0]} entries for {self.total} rows of {first}"
                raise DataError(f"{lengths}; it needs one for each.")
        if not self.total:
            raise DataError(f"{first} has no rows, so there are no mini-batches; use data with at least one row.")

    def __repr__(self) -> str:
        """Return name, format and shape of each array, and the settings, as one line."""
        arrays = ", ".join(f"{name} {format} {list(array.shape)}" for name, format, array in (*self.data, *self.labels))
        options = ", ".join(f"{name}={value!r}" for name, value in self.settings().items() if name != "total")
        return f"<Batches {arrays}: {options}>"

    @property
    def nbytes(self) -> int:
        """Memory of the data arrays in bytes, with the buffers for batches that are made dense.

        Labels are not counted.
        """
        return sum(array.nbytes if isinstance(array, MadeDense) else formats.nbytes(array) for _, _, array in self.data)

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self.count(0)

    def count(self, number: int = 0) -> int:
        """Return the number of batches of epoch `number`."""
        return count_batches(self.total, self.rows, self.last)

    @functools.cached_property
    def at_once(self) -> int:
        """How many batches are cut in one call: 1 without shuffling, more if batches are small."""
        return batches_per_chunk(self) if self.shuffle else 1

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings that decide a batch's rows: total, rows, last, shuffle, and the seed if shuffled."""
        shared: dict[str, int | str | bool] = {"total": self.total, "rows": self.rows, "last": self.last}
        return shared | {"shuffle": self.shuffle} | ({"seed": self.seed} if self.shuffle else {})

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of epoch `number` from batch `first` on, both counted from 0.

        Raises DataError if one is negative, FormatError if sparse data was changed since it was validated.
        """
        check_position(number, first)
        for name, _, array in (*self.data, *self.labels):
            slicing.require_unchanged(array, name)
        at, count, at_once = first, self.count(number), self.at_once
        order = _drawn(self.total, self.seed, number) if self.shuffle and at < count else None
        while at < count:
            rows = np.empty(0, np.int64)
            if order is not None and at_once > 1:
                rows = order[at * self.rows : (at + at_once) * self.rows]
                rows = rows if self.last == "keep" else rows[: rows.size // self.rows * self.rows]
            if rows.size:
                chunk = BatchChunk(self, rows)
                at += len(chunk)
                yield from chunk.batches()
            else:
                yield self._alone(at, order)
                at += 1

    def _alone(self, at: int, order: np.ndarray | None) -> Batch:
        """Return batch `at` of an epoch in the given row order (None: as stored), padded if `last` is "pad"."""
        begin, end = at * self.rows, min((at + 1) * self.rows, self.total)
        pad = self.rows - (end - begin) if self.last == "pad" else 0
        if order is None and not pad:
            data = {name: slicing.slice_range(format, array, begin, end) for name, format, array in self.data}
            labels = {name: slicing.slice_range(format, array, begin, end) for name, format, array in self.labels}
            return Batch(data, labels, np.arange(begin, end))
        places = np.concatenate([np.arange(begin, end), np.arange(pad) % self.total])
        return self.of_rows(places if order is None else order[places], pad)

    def order(self, number: int = 0, by_rows: bool = False) -> np.ndarray:
        """Return the row indices of the batches of epoch `number`, one batch after the other, int64.

        Each batch has `rows` of them, the last perhaps fewer. `by_rows` is for passes that visit single rows: of
        many, neighbours then stay together, as in `kernels.permutation.permutation_of_rows`. Raises as `epoch` does.
        """
        self._require_unchanged(number)
        draw = _drawn_of_rows if by_rows else _drawn
        order = draw(self.total, self.seed, number) if self.shuffle else np.arange(self.total)
        return order if self.last == "keep" else np.resize(order, self.count(number) * self.rows)

    def _require_unchanged(self, number: int) -> None:
        """Raise DataError for a negative epoch `number`, FormatError if sparse data changed after its validation."""
        check_position(number, 0)
        for name, _, array in (*self.data, *self.labels):
            if not isinstance(array, np.ndarray):
                slicing.require_unchanged(array, name)

    def orders(self, first: int, count: int) -> np.ndarray:
        """Return the orders of `count` epochs from `first` on, one after the other, int64 [count * total].

        For `last` "keep" alone. Raises as `epoch` does.
        """
        if count == 1:
            return self.order(first)
        if not self.shuffle:
            return np.tile(self.order(first), count)
        self._require_unchanged(first)
        return np.concatenate([_drawn(self.total, self.seed, number) for number in range(first, first + count)])

    def of_rows(self, rows: np.ndarray, pad: int = 0) -> Batch:
        """Return the batch of the rows with indices `rows`, int64 [R], copied; `pad` is stored in it."""
        data = {name: slicing.gather_rows(format, array, rows) for name, format, array in self.data}
        labels = {name: slicing.gather_rows(format, array, rows) for name, format, array in self.labels}
        return Batch(data, labels, rows, pad, is_copy=True)


def _drawn(total: int, seed: int, number: int) -> np.ndarray:
    """Return the random order of `total` rows in epoch `number`, int64, the same for the same seed."""
    return permutation(np.random.default_rng((seed, number)), total)


def _drawn_of_rows(total: int, seed: int, number: int) -> np.ndarray:
    """Return `_drawn`, with neighbours of many rows together."""
    return permutation_of_rows(np.random.default_rng((seed, number)), total)


def _name_arrays(arrays: Any, default: str, what: str) -> dict[str, Any]:
    """Return arrays as a dict by name, a single one under `default`.

    DataError, naming `what`, for names that are not str.
    """
    if not isinstance(arrays, Mapping):
        return {default: arrays}
    if wrong := [name for name in arrays if not isinstance(name, str)]:
        raise DataError(f"{what} names an array {wrong[0]!r}; names are strings.")
    return dict(arrays)


# Small batches are cut many at once, since cutting and planning one batch costs more in the call than in its work.
#
# A chunk has the rows of batches that follow each other, cut by one call; each batch is a range of it, over its
# memory. The batch plans of a chunk are made together, when the first of them is asked for.

NUMBERS = 32 * 1024
"""Values and indices of a chunk, in the mean: with their plans they fit a core's cache. Larger batches come alone."""


class BatchChunk:
    """Batches of `batches.rows` rows, the last perhaps of fewer; `order` int64 are the numbers of all their rows."""

    def __init__(self, batches: "Batches", order: np.ndarray) -> None:
        """Copy the rows `order` (int64) of all arrays at once, and split them into batches as views."""
        data, labels = (
            {name: (format, slicing.gather_rows(format, array, order)) for name, format, array in held}
            for held in (batches.data, batches.labels)
        )
        self.rows, self.numbers = batches.rows, slicing.slice_each("dense", order, batches.rows)
        self.data, self.labels = self._split_each(data), self._split_each(labels)
        self.is_planned = [format for format, _ in data.values()] == ["csr"]
        self.x: Any = next(iter(data.values()))[1]
        self.plans: list[BatchPlan] | None = None

    def __len__(self) -> int:
        """Return the number of batches in the chunk."""
        return len(self.numbers)

    def _split_each(self, whole: Mapping[str, tuple[str, Any]]) -> list[dict[str, Any]]:
        """Split arrays given as {name: (format, array)} into one {name: array} per batch."""
        parts = {name: slicing.slice_each(format, array, self.rows) for name, (format, array) in whole.items()}
        if not parts:
            return [{} for _ in range(len(self))]
        return [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]

    def batches(self) -> Iterator[Batch]:
        """Yield the batches in order; if the data is a single CSR array, each has a function that gives its plan."""
        for number, rows in enumerate(self.numbers):
            planned = functools.partial(self.plan, number) if self.is_planned else None
            yield Batch(self.data[number], self.labels[number], rows, is_copy=True, planned=planned)

    def plan(self, number: int) -> BatchPlan | None:
        """Return the plan of batch `number`, built for all batches at the first call.

        None if they could not be built together.
        """
        if self.plans is None:
            x = self.x
            self.plans = plan.build_each(x.indptr, x.indices, x.shape[1], self.rows)
        return self.plans[number] if self.plans else None


def batches_per_chunk(batches: "Batches") -> int:
    """Return how many batches are cut together so that they fit a core's cache; 1 for large batches."""
    numbers = sum(  # values and indices of a row
        array.shape[1]
        if isinstance(array, MadeDense)
        else formats.nbytes(array) / array.dtype.itemsize / max(array.shape[0], 1)
        for _, _, array in (*batches.data, *batches.labels)
    )
    return max(int(NUMBERS / max(numbers * batches.rows, 1)), 1)
