"""Mini-batches of rows that are stored: read as they are asked for, in stored order or shuffled in a buffer."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import DTypeLike

from workbench.data.batches.feed import Batch, BlockOrder, Feed, check_last, check_position, count_batches
from workbench.data.batches.in_memory import Batches
from workbench.data.batches.slicing import Buffers, gather_rows
from workbench.data.dataset.record import StoredRows
from workbench.data.errors import DataError
from workbench.formats.compressed import stack_csr

BYTES_INDEX = 4
"""Bytes of the index of an entry that was read."""


class _Chunk(NamedTuple):
    """Rows that follow each other in an epoch: their numbers, and the csr array that they are rows `places` of."""

    rows: np.ndarray
    held: Any = None
    places: np.ndarray | None = None


@final
@dataclass(frozen=True, eq=False)
class StoredBatches(Feed):
    """Mini-batches of `rows` rows of stored `x`, csr, with their targets `y`: an array with one entry a row, or None.

    In stored order a batch is read when it is asked for. With `shuffle` the order is another one each epoch, the same
    for the same `seed` and epoch: blocks of consecutive rows are read in random order into a buffer of `buffer_rows`
    rows, which are shuffled (`block_order`). Memory holds a buffer, twice while it is filled, never `x`. `last` is as
    in `Batches`. With `dense`, a type, batches are made dense in it as those are. Refused (`DataError`): wrong
    arguments, files that changed or are damaged.
    """

    x: StoredRows
    y: np.ndarray | None = None
    rows: int = 256
    shuffle: bool = False
    seed: int = 0
    last: str = "keep"
    buffer_rows: int = 2**14
    dense: DTypeLike | None = None
    total: int = field(init=False)
    """Rows of the data."""
    buffers: Buffers | None = field(init=False, repr=False)
    """Memory of batches that are made dense."""

    def __post_init__(self) -> None:
        """Validate the settings and set up buffers for dense batches.

        DataError for rows, lengths or settings that do not fit.
        """
        check_last(self.last, self.rows)
        object.__setattr__(self, "total", self.x.shape[0])
        buffers = None if self.dense is None else Buffers(self.x.shape[1], self.dense)
        object.__setattr__(self, "buffers", buffers)
        if self.buffer_rows < 1:
            raise DataError(f"buffer_rows is {self.buffer_rows}; it is how many rows are shuffled at once, 1 or more.")
        if not self.total:
            raise DataError(f"{self.x.place} has no rows here, so there are no mini-batches.")
        if self.y is not None and len(self.y) != self.total:
            raise DataError(f"y has {len(self.y)} entries for {self.total} rows of x; it needs one for each.")
        if self.last == "discard" and not len(self):
            raise DataError(f"rows={self.rows} with last='discard' leaves no batch of {self.total} rows; use 'keep'.")

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self.count(0)

    def count(self, number: int = 0) -> int:
        """Return the number of batches of epoch `number`."""
        return count_batches(self.total, self.rows, self.last)

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings that decide a batch's rows: total, rows, last, shuffle, seed and buffer_rows."""
        shared: dict[str, int | str | bool] = {"total": self.total, "rows": self.rows, "last": self.last}
        shared["shuffle"] = self.shuffle
        return shared | ({"seed": self.seed, "buffer_rows": self.buffer_rows} if self.shuffle else {})

    @property
    def nbytes(self) -> int:
        """Estimated memory in bytes: targets, a buffer of mean rows while it is filled, and dense batches."""
        held = min(self.buffer_rows, self.total) if self.shuffle else min(self.rows, self.total)
        made = self.buffers.nbytes if self.buffers else 0
        return (0 if self.y is None else self.y.nbytes) + buffer_bytes(self.x, held) + made

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of epoch `number` from batch `first` on, both counted from 0; rows before are not read.

        Raises DataError if files are missing, changed in size, or damaged.
        """
        check_position(number, first)
        self.x.check_unchanged()
        yield from self._one_pass(number, first)

    def _one_pass(self, number: int, first: int) -> Iterator[Batch]:
        """Yield the batches of epoch `number` from batch `first` on.

        The last is short, dropped or padded, by `last`.
        """
        rows = _Rows(self._chunks(number, first * self.rows), self.x)
        for at in range(first, self.count(number)):
            real = min(self.rows, self.total - at * self.rows)
            parts, pad = rows.take(real), self.rows - real if self.last == "pad" else 0
            if pad:
                opening = itertools.chain.from_iterable(self._chunks(number, 0) for _ in itertools.count())
                parts += _Rows(opening, self.x).take(pad)
            yield self._batch(parts, pad)

    def _chunks(self, number: int, first: int) -> Iterator[_Chunk]:
        """Yield the rows of epoch `number` in order as chunks, without the `first` ones.

        Shuffled chunks are read whole.
        """
        if not self.shuffle:
            for start in range(first, self.total, self.rows):
                yield _Chunk(np.arange(start, min(start + self.rows, self.total)))
            return
        order = BlockOrder(self.total, self.buffer_rows)
        for blocks, within in order.buffers(self.seed, number, first):
            held = self.x.read_runs(order.runs(blocks))
            yield _Chunk(order.rows_of(blocks)[within], held, within)
            del held

    def _batch(self, parts: list[tuple[np.ndarray, Any]], pad: int) -> Batch:
        """Return a batch of parts (row indices, CSR array), dense in a pooled buffer if `dense` is their dtype.

        Its last `pad` rows repeat others.
        """
        rows = np.concatenate([numbers for numbers, _ in parts])
        labels = {} if self.y is None else {"label": self.y[rows]}
        x, is_made = stack_csr([x for _, x in parts]), self.buffers is not None and self.x.dtype == self.dense
        if self.buffers is not None and is_made:
            x = self.buffers.of_csr(x)
        return Batch({"data": x}, labels, rows, pad, is_copy=is_made)


class _Rows:
    """Rows taken in order from consecutive chunks."""

    def __init__(self, chunks: Iterator[_Chunk], x: StoredRows) -> None:
        """Set up taking rows from the iterator of chunks; rows of chunks not in memory are read from `x`."""
        self.chunks, self.x = chunks, x
        self.chunk = _Chunk(np.empty(0, np.int64))
        self.at = 0

    def take(self, count: int) -> list[tuple[np.ndarray, Any]]:
        """Return the next `count` rows as a list of (row indices int64, CSR array).

        StopIteration if the chunks end before.
        """
        parts = []
        while count:
            if self.at == len(self.chunk.rows):
                self.chunk, self.at = _Chunk(np.empty(0, np.int64)), 0  # a buffer goes before the next one comes
                self.chunk = next(self.chunks)
            stop = min(self.at + count, len(self.chunk.rows))
            parts.append(self._cut(self.at, stop))
            count, self.at = count - (stop - self.at), stop
        return parts

    def _cut(self, start: int, stop: int) -> tuple[np.ndarray, Any]:
        """Return (row indices, CSR array) of rows start to stop - 1 of the current chunk."""
        rows, held, places = self.chunk
        if places is None:
            return rows[start:stop], self.x.read(int(rows[start]), int(rows[stop - 1]) + 1)
        return rows[start:stop], gather_rows("csr", held, places[start:stop])


def buffer_bytes(x: StoredRows, rows: int) -> int:
    """Return the bytes that `rows` rows of mean length take in memory."""
    entries = x.nnz / max(x.shape[0], 1) * rows
    return int(entries * (BYTES_INDEX + x.dtype.itemsize)) + 16 * rows


def batches_of(x: Any, y: Any = None, rows: int = 256, **options: Any) -> Batches | StoredBatches:
    """Return mini-batches of `x`: `Batches` for an array in memory, `StoredBatches` for stored rows.

    `y` are the targets or None; `options` are those of the class.
    """
    kind = StoredBatches if isinstance(x, StoredRows) else Batches
    return kind(x, y, rows, **options)
