"""Mini-batches: slices of a matrix and its labels, epoch after epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernels
from workbench import formats
from workbench.data.dataset import DataError
from workbench.formats.compressed import assemble

LAST = ("keep", "drop", "pad")


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Some rows of the data: `x` [R, features], `y` [R] or [R, N], `rows_index` int64 [R], their numbers in the data.

    `real_rows` is R, or less when the last batch was padded: the rows from there on repeat the epoch's first ones.
    """

    x: Any
    y: np.ndarray
    rows_index: np.ndarray
    real_rows: int


@dataclass(frozen=True, eq=False)
class Batches:
    """Mini-batches of `rows` rows of `x` (csr or dense) with their `y` [rows] or [rows, N].

    In stored order a batch shares its values and indices with `x`: nothing but `rows` + 1 row pointers is made. With
    `shuffle` the order is random, another one each epoch, the same for the same `seed` and epoch; rows are then copied.
    `last` says what becomes of a last batch that is not full: `keep` it smaller, `drop` it, or `pad` it with the first
    rows of the epoch. Wrong arguments, and a set without rows, are refused (`DataError`).

    >>> x, y = np.eye(5, dtype=np.float32), np.arange(5)
    >>> [batch.y.tolist() for batch in Batches(x, y, rows=2).epoch(0)]
    [[0, 1], [2, 3], [4]]
    >>> [(batch.y.tolist(), batch.real_rows) for batch in Batches(x, y, rows=2, last="pad").epoch(0)]
    [([0, 1], 2), ([2, 3], 2), ([4, 0], 1)]
    """

    x: Any
    y: np.ndarray
    rows: int = 256
    shuffle: bool = False
    seed: int = 0
    last: str = "keep"

    def __post_init__(self) -> None:
        if (format := formats.format_of(self.x)) not in ("csr", "dense"):
            raise DataError(f"x is {format}; mini-batches are cut from csr or dense: formats.convert(x, 'csr').")
        object.__setattr__(self, "x", formats.check(self.x))
        formats.get(format).check_indices(self.x)
        total = self.x.shape[0]
        if len(self.y) != total:
            raise DataError(f"y has {len(self.y)} entries for {total} rows of x; it needs one for each.")
        if not total:
            raise DataError("x has no rows, so there are no mini-batches; use a data set with at least one row.")
        if self.rows < 1:
            raise DataError(f"rows is {self.rows}; it is the number of rows of a mini-batch, 1 or more.")
        if self.last not in LAST:
            raise DataError(f"last is {self.last!r}; it is one of {', '.join(LAST)}.")
        if not len(self):
            raise DataError(f"rows={self.rows} with last='drop' leaves no batch of {total} rows; use last='keep'.")

    def __len__(self) -> int:
        """Batches in an epoch."""
        total = self.x.shape[0]
        return total // self.rows if self.last == "drop" else -(-total // self.rows)

    def epoch(self, number: int = 0) -> Iterator[Batch]:
        """The batches of that epoch, one by one."""
        total = self.x.shape[0]
        order = np.random.default_rng((self.seed, number)).permutation(total) if self.shuffle else None
        for at in range(len(self)):
            start, stop = at * self.rows, min((at + 1) * self.rows, total)
            missing = self.rows - (stop - start) if self.last == "pad" else 0
            if order is None and not missing:
                yield self._contiguous(start, stop)
                continue
            places = np.concatenate([np.arange(start, stop), np.arange(missing) % total])
            yield self._gathered(places if order is None else order[places], stop - start)

    def _contiguous(self, start: int, stop: int) -> Batch:
        x = self.x
        if isinstance(x, np.ndarray):
            part = x[start:stop]
        else:
            indptr = x.indptr[start : stop + 1]
            entries = slice(indptr[0], indptr[-1])
            part = assemble("csr", indptr - indptr[0], x.indices[entries], x.data[entries], (stop - start, x.shape[1]))
        return Batch(part, self.y[start:stop], np.arange(start, stop), stop - start)

    def _gathered(self, rows: np.ndarray, real_rows: int) -> Batch:
        x = self.x
        if isinstance(x, np.ndarray):
            part = np.empty((len(rows), *x.shape[1:]), x.dtype)
            kernels.get("take_rows").cpu(x, rows, part)
        else:
            parts = kernels.get("slice_rows").cpu(x.indptr, x.indices, x.data, rows)
            part = assemble("csr", *parts, (len(rows), x.shape[1]))
        return Batch(part, self.y[rows], rows, real_rows)
