"""Mini-batches read from svmlight text as they are asked for: the file may be larger than the memory."""

import functools
import itertools
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, final

import numpy as np
import scipy.sparse

from workbench.data.batches.feed import Batch, BlockOrder, Feed, check_last, check_position, count_batches
from workbench.data.errors import DataError
from workbench.data.files.opened import open_text
from workbench.data.files.reading import fingerprint, reading
from workbench.data.text.svmlight import Line, holds_row, parse

# The rows of a text file in a random order, without holding the file: random blocks, shuffled together in a buffer.


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """Starts of the blocks of an `order` in a file: `starts` in bytes and `numbers` of lines, int64.

    A file that was cut short is a `DataError`.
    """

    starts: np.ndarray
    numbers: np.ndarray
    order: BlockOrder

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]], buffer_rows: int) -> "Blocks":
        """Return the block starts given (byte, line number) of every row in file order; one pass, O(rows).

        `buffer_rows` is the number of rows of a shuffle buffer.
        """
        length, starts, numbers, total = BlockOrder(0, buffer_rows).length, [], [], 0
        for total, (start, number) in enumerate(places, 1):
            if (total - 1) % length == 0:
                starts.append(start)
                numbers.append(number)
        return cls(np.array(starts, np.int64), np.array(numbers, np.int64), BlockOrder(total, buffer_rows))

    def lines(self, file: BinaryIO, seed: int, epoch: int, first: int = 0) -> Iterator[tuple[int, Line]]:
        """Yield (row index in the file, its line) in the shuffled order of an epoch, without its `first` rows.

        Reads a buffer of blocks at a time from the seekable `file`. Raises DataError if the file has become shorter.
        """
        for blocks, within in self.order.buffers(seed, epoch, first):
            rows = self.order.rows_of(blocks)
            lines = [line for block in blocks.tolist() for line in self._block(file, block)]
            for place in within.tolist():
                yield int(rows[place]), lines[place]

    def _block(self, file: BinaryIO, block: int) -> Iterator[Line]:
        """Yield (line number, text) of the rows of one block; DataError if the file has become shorter."""
        file.seek(self.starts[block])
        left, number = min(self.order.length, self.order.total - block * self.order.length), int(self.numbers[block])
        while left:
            text = file.readline()
            if not text:
                raise DataError(f"{file.name} was cut short while it was read; set these batches up anew.")
            if holds_row(text):
                left -= 1
                yield number, text
            number += 1


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SvmlightBatches(Feed):
    """Mini-batches of `rows` lines of the file at `path`, csr [rows, features], with their labels [rows].

    Both are of type `dtype`. Columns count from 0 in batches; `zero_based` says whether they do so in the file, and is
    never guessed. Each line is checked as it is read: `svmlight_text.parse` says what is refused, with file and line.
    Memory holds one batch, never the file. `last` is as in `Batches`.

    Without `shuffle` the order is that of the file. With it every epoch has another one, the same for the same `seed`
    and epoch: blocks of consecutive rows are read in random order into a buffer of `buffer_rows` rows, which are
    shuffled (`block_order`). That costs the memory of so many lines, 16 bytes more for each block, one pass over the
    file before the first epoch, and a seek for each block, of `buffer_rows` / 256 rows. A file of up to `buffer_rows`
    rows is shuffled fully; a larger `buffer_rows` shuffles better.

    With `parts` only the lines that begin in the `part`-th of `parts` equal chunks of bytes are read: all parts
    together have every row once, and are shuffled each for itself. A compressed file (`open_text`) has one part, in the
    order of the file. Missing, empty and changed files are refused (`DataError`).
    """

    path: str | os.PathLike
    features: int
    zero_based: bool
    rows: int = 256
    last: str = "keep"
    shuffle: bool = False
    seed: int = 0
    buffer_rows: int = 2**14
    part: int = 0
    parts: int = 1
    dtype: str = "float32"
    data_name: str = "data"
    label_name: str = "label"
    state: str = field(init=False, repr=False)
    """Name, size and time of the file when it was first looked at."""

    def __post_init__(self) -> None:
        """Validate the settings and the file, and keep its state to notice changes.

        DataError if something is invalid.
        """
        check_last(self.last, self.rows)
        if self.features < 1:
            raise DataError(f"features is {self.features}; it is the number of columns of every batch, 1 or more.")
        if not 0 <= self.part < self.parts:
            raise DataError(f"part is {self.part} of parts={self.parts}; parts are counted from 0.")
        self._check_shuffle()
        if not isinstance(self.zero_based, bool):
            raise DataError(f"zero_based is {self.zero_based!r}; say True or False: columns are not guessed here.")
        if self.dtype not in ("float32", "float64"):
            raise DataError(f"dtype is {self.dtype!r}; it is float32 or float64.")
        object.__setattr__(self, "state", fingerprint(self.path))
        with self._open() as file, reading(self.path, "svmlight text"):
            self._check_packing(file)
            if not any(holds_row(text) for text in file):
                raise DataError(f"{self.path} holds no rows; a file has at least one.")

    def _check_shuffle(self) -> None:
        """Raise DataError if `buffer_rows` or `seed` is out of range."""
        if self.buffer_rows < 1:
            raise DataError(f"buffer_rows is {self.buffer_rows}; it is how many rows are shuffled at once, 1 or more.")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise DataError(f"seed is {self.seed!r}; it is a whole number from 0 on.")

    def _check_packing(self, file: BinaryIO) -> None:
        """Raise DataError if a compressed file is to be read in parts or shuffled, which needs seeking."""
        if self.parts > 1 and not file.seekable():
            raise DataError(f"{self.path} is compressed and cannot be entered at a part; unpack it, or use parts=1.")
        if self.shuffle and not file.seekable():
            raise DataError(f"{self.path} is compressed and has one order; unpack it, or use shuffle=False.")

    def _open(self) -> BinaryIO:
        """Return the open file as checked text; DataError if it is missing or not text."""
        with reading(self.path, "svmlight text"):
            return open_text(self.path)

    @functools.cached_property
    def total(self) -> int:
        """Number of rows of the part, cached; the first access reads through it."""
        return self._blocks.order.total if self.shuffle else sum(1 for _ in self._lines())

    @functools.cached_property
    def _blocks(self) -> Blocks:
        """Starts of the shuffle blocks of the part, cached; the first access reads through it."""
        return Blocks.of(((place, number) for place, number, _ in self._places()), self.buffer_rows)

    def count(self, number: int = 0) -> int:
        """Return the number of batches of epoch `number`."""
        return count_batches(self.total, self.rows, self.last, number)

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings that decide which rows a batch has; seed and buffer_rows only if shuffled."""
        shared: dict[str, int | str | bool] = {"total": self.total, "rows": self.rows, "last": self.last}
        shared |= {"part": self.part, "parts": self.parts}
        return shared | ({"seed": self.seed, "buffer_rows": self.buffer_rows} if self.shuffle else {})

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of epoch `number` from batch `first` on, both counted from 0; rows before are not parsed.

        Raises DataError, with the line, for invalid text, and if the file has changed since these batches were set up.
        """
        check_position(number, first)
        if fingerprint(self.path) != self.state:
            raise DataError(f"{self.path} has changed since these batches were set up; set them up anew.")
        if self.last == "roll_over":
            yield from self._rolling(number, first)
        else:
            yield from self._one_pass(number, first)

    def _ordered(self, number: int, first: int = 0) -> Iterator[tuple[int, Line]]:
        """Yield (row index, its line) in the order of epoch `number`, without the `first` rows."""
        if not self.shuffle:
            yield from itertools.islice(enumerate(self._lines()), first, None)
            return
        with self._open() as file, reading(self.path, "svmlight text"):
            yield from self._blocks.lines(file, self.seed, number, first)

    def _one_pass(self, number: int, first: int) -> Iterator[Batch]:
        """Yield the batches of epoch `number` from batch `first` on.

        The last is short, dropped or padded, by `last`.
        """
        rows = self._ordered(number, first * self.rows)
        while batch_rows := list(itertools.islice(rows, self.rows)):
            missing = self.rows - len(batch_rows)
            if missing and self.last == "discard":
                return
            pad = missing if self.last == "pad" else 0
            if pad:
                opening = list(itertools.islice(self._ordered(number), pad))
                batch_rows += itertools.islice(itertools.cycle(opening), pad)
            yield self._batch(batch_rows, pad)

    def _rolling(self, number: int, first: int) -> Iterator[Batch]:
        """Yield the batches of epoch `number` from batch `first` on.

        Rows that fill no batch are left to the next epoch.
        """
        if not self.total:
            return
        begin = (number * self.total // self.rows + first) * self.rows
        epoch, within = divmod(begin, self.total)
        later = itertools.chain.from_iterable(map(self._ordered, itertools.count(epoch + 1)))
        rows = itertools.chain(self._ordered(epoch, within), later)
        for _ in range(first, self.count(number)):
            rolled = max(min(number * self.total - begin, self.rows), 0)
            yield self._batch(list(itertools.islice(rows, self.rows)), 0, rolled)
            begin += self.rows

    def _batch(self, rows: list[tuple[int, Line]], pad: int, rolled: int = 0) -> Batch:
        """Return the batch of rows (index, line), with `pad` and `rolled` stored in it.

        Raises DataError, with the line in the file, for invalid text or labels beyond `dtype`.
        """
        places, lines = np.array([place for place, _ in rows], np.int64), [line for _, line in rows]
        try:
            x, y = self._parse(lines, 0)
        except DataError:
            self._parse(lines, self._lines_before())
            raise
        with np.errstate(over="ignore"):
            labels = y.astype(self.dtype)
        if not np.isfinite(labels).all():
            label = y[int(np.argmin(np.isfinite(labels)))]
            raise DataError(f"{self.path} has the label {label:g}, beyond {self.dtype}; read it with dtype='float64'.")
        return Batch({self.data_name: x}, {self.label_name: labels}, places, pad, rolled)

    def _parse(self, lines: list[Line], before: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Return (CSR array, labels float64) of lines; `before` is added to their numbers in error messages."""
        if before:
            lines = [(number + before, text) for number, text in lines]
        return parse(lines, os.fspath(self.path), self.features, self.zero_based, self.dtype)

    def _borders(self, file: BinaryIO) -> tuple[int, float]:
        """Return (first byte of the part, first byte behind it); the latter is infinite for a single part."""
        if self.parts == 1:
            return 0, math.inf
        size = os.fstat(file.fileno()).st_size
        return size * self.part // self.parts, size * (self.part + 1) // self.parts

    def _lines(self) -> Iterator[Line]:
        """Return an iterator over (line number from the part's first line, text) of lines that contain a row."""
        return ((number, text) for _, number, text in self._places())

    def _places(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (first byte, line number from the part's first line, text) of each line with a row."""
        with self._open() as file, reading(self.path, "svmlight text"):
            place, stop = self._borders(file)
            if place:
                file.seek(place - 1)
                place += len(file.readline()) - 1
            for number, text in enumerate(file, 1):
                if place >= stop:
                    return
                if holds_row(text):
                    yield place, number, text
                place += len(text)

    def _lines_before(self) -> int:
        """Return the number of lines before the part, counted by reading, for error messages."""
        with self._open() as file, reading(self.path, "svmlight text"):
            start, _ = self._borders(file)
            place = number = 0
            while place < start:
                place += len(file.readline())
                number += 1
            return number
