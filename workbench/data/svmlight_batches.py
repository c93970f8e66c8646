"""Mini-batches read from svmlight text as they are asked for: the file may be larger than the memory."""

import functools
import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, final

import numpy as np
import scipy.sparse

from workbench.data.dataset import DataError
from workbench.data.feed import Batch, Feed, check_last, check_position
from workbench.data.files import fingerprint, reading
from workbench.data.svmlight_text import OPENERS, Line, holds_row, opened, parse


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SvmlightBatches(Feed):
    """Mini-batches of `rows` lines of the file at `path`, csr [rows, features], with their labels [rows].

    Both are of type `dtype`. Columns count from 0 in batches; `zero_based` says whether they do so in the file, and is
    never guessed. Each line is checked as it is read: `svmlight_text.parse` says what is refused, with file and line.
    Memory holds one batch, never the file; order is that of the file. `last` is as in `Batches`.

    With `parts` only the lines that begin in the `part`-th of `parts` equal stretches of bytes are read: all parts
    together have every row once. A compressed file (.gz, .bz2) has one part. Missing, empty and changed files are
    refused (`DataError`).
    """

    path: str | os.PathLike
    features: int
    zero_based: bool
    rows: int = 256
    last: str = "keep"
    part: int = 0
    parts: int = 1
    dtype: str = "float32"
    data_name: str = "data"
    label_name: str = "label"
    state: str = field(init=False, repr=False)
    """Name, size and time of the file when it was first looked at."""

    def __post_init__(self) -> None:
        check_last(self.last, self.rows)
        if self.features < 1:
            raise DataError(f"features is {self.features}; it is the number of columns of every batch, 1 or more.")
        if not 0 <= self.part < self.parts:
            raise DataError(f"part is {self.part} of parts={self.parts}; parts are counted from 0.")
        if self.parts > 1 and Path(self.path).suffix in OPENERS:
            raise DataError(f"{self.path} is compressed and cannot be entered at a part; unpack it, or use parts=1.")
        if not isinstance(self.zero_based, bool):
            raise DataError(f"zero_based is {self.zero_based!r}; say True or False: columns are not guessed here.")
        if self.dtype not in ("float32", "float64"):
            raise DataError(f"dtype is {self.dtype!r}; it is float32 or float64.")
        object.__setattr__(self, "state", fingerprint(self.path))
        with self._open() as file:
            if not any(holds_row(text) for text in file):
                raise DataError(f"{self.path} holds no rows; a file has at least one.")

    def _open(self) -> BinaryIO:
        with reading(self.path, "svmlight text"):
            return opened(self.path)

    @functools.cached_property
    def total(self) -> int:
        """Rows of the part; the first call reads through it."""
        return sum(1 for _ in self._lines())

    def count(self, number: int = 0) -> int:
        """Batches of that epoch."""
        if self.last == "roll_over":
            return (number + 1) * self.total // self.rows - number * self.total // self.rows
        return self.total // self.rows if self.last == "discard" else -(-self.total // self.rows)

    def settings(self) -> dict[str, int | str | bool]:
        """What the rows of a batch depend on."""
        return {"total": self.total, "rows": self.rows, "last": self.last, "part": self.part, "parts": self.parts}

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """The batches of that epoch, one by one, from batch `first` on; lines before it are passed over unread."""
        check_position(number, first)
        if fingerprint(self.path) != self.state:
            raise DataError(f"{self.path} has changed since these batches were set up; set them up anew.")
        if self.last == "roll_over":
            yield from self._rolling(number, first)
        else:
            yield from self._one_pass(first)

    def _one_pass(self, first: int) -> Iterator[Batch]:
        lines = self._lines()
        opening: list[Line] = []
        for at in itertools.count():
            here = list(itertools.islice(lines, self.rows))
            if not at:
                opening = here if self.last == "pad" else []
            full = len(here) == self.rows
            if not here or (self.last == "discard" and not full):
                return
            if at >= first:
                pad = self.rows - len(here) if self.last == "pad" else 0
                filled = here + list(itertools.islice(itertools.cycle(opening), pad))
                places = np.arange(at * self.rows, at * self.rows + len(here))
                yield self._batch(filled, np.concatenate([places, np.arange(pad) % max(len(opening), 1)]), pad)

    def _rolling(self, number: int, first: int) -> Iterator[Batch]:
        if not self.total:
            return
        begin = (number * self.total // self.rows + first) * self.rows
        lines = itertools.chain.from_iterable(self._lines() for _ in itertools.count())
        lines = itertools.islice(lines, begin % self.total, None)
        for _ in range(first, self.count(number)):
            rolled = max(min(number * self.total - begin, self.rows), 0)
            places = np.arange(begin, begin + self.rows) % self.total
            yield self._batch(list(itertools.islice(lines, self.rows)), places, 0, rolled)
            begin += self.rows

    def _batch(self, lines: list[Line], places: np.ndarray, pad: int, rolled: int = 0) -> Batch:
        try:
            x, y = self._parse(lines, 0)
        except DataError:
            self._parse(lines, self._lines_before())
            raise
        return Batch({self.data_name: x}, {self.label_name: y.astype(self.dtype)}, places, pad, rolled)

    def _parse(self, lines: list[Line], before: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        if before:
            lines = [(number + before, text) for number, text in lines]
        return parse(lines, os.fspath(self.path), self.features, self.zero_based, self.dtype)

    def _borders(self, file: BinaryIO) -> tuple[int, float]:
        """First byte of the part, and the first one after it."""
        if self.parts == 1:
            return 0, math.inf
        size = os.fstat(file.fileno()).st_size
        return size * self.part // self.parts, size * (self.part + 1) // self.parts

    def _lines(self) -> Iterator[Line]:
        """Lines that begin in the part and hold a row, with their numbers counted from its first line."""
        with self._open() as file, reading(self.path, "svmlight text"):
            place, stop = self._borders(file)
            if place:
                file.seek(place - 1)
                place += len(file.readline()) - 1
            for number, text in enumerate(file, 1):
                if place >= stop:
                    return
                if holds_row(text):
                    yield number, text
                place += len(text)

    def _lines_before(self) -> int:
        """Lines of the file before the part: read through only to say where an error is."""
        with self._open() as file:
            start, _ = self._borders(file)
            place = number = 0
            while place < start:
                place += len(file.readline())
                number += 1
            return number
