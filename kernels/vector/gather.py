"""Row loops: a row's work, written with `kernels.vector.lanes`, made into one compiled function for each shape of row.

    _rows = gather.RowLoop(_row)

    def cpu(indptr, indices, data, x, out):
        width = x.shape[1]
        bounds = gather.cut_rows(indptr, indices.size, width)
        _rows[width, x.itemsize, is_far(x.nbytes)](bounds, width, indptr, indices, data, x, out)

A compiled function has one body for one thread and for many, so that both give the same bits, and is kept on disk: a
new shape costs 0.15 s once, 4 ms in later processes. Numba's own `prange` makes the body twice, once for one thread and
once behind two more functions, which takes four times as long.
"""

import functools
import hashlib
from collections.abc import Callable

import numpy as np

from kernels.code_cache import digest_of, digest_of_files, njit
from kernels.private.of_numba import layer
from kernels.threads import ROW_COST, equal_cost, equal_count, is_serial, parts
from kernels.vector import lanes
from kernels.vector.lanes import emit
from kernels.vector.tiles import Cut, cut_sums

ENTRY_COST = 8
"""What taking up an entry costs, in columns of its row."""

SPEED = 5
"""Columns of a row that are added in the time of a multiply-add of `threads.is_serial`."""

ROW_WORK = 12
"""Multiply-adds in the time that a row of a sum takes to begin and to end: no processor guesses how long it is."""

_compiled = njit(nogil=True, error_model="numpy")

made: list = []
"""The compiled functions of this process."""


@functools.cache
def _make(name: str) -> Callable:
    def run(bounds, width, *arguments):
        emit(name, bounds, width, arguments)

    # Its own name gives it an index of its own on disk: one index for all 850 takes 30 ms to read, for each of them.
    run.__qualname__ = f"{name.split()[0]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    layer()  # code is linked with its functions
    made.append(_compiled(run))
    return made[-1]


class RowLoop(dict[tuple, Callable]):
    """`row(lane, u, *arguments)` made into code that does it for many rows, cut into tiles by `cut` of
    `kernels.vector.tiles`: a compiled function for each shape of row, made when it is first asked for.

    `loop[shape](bounds, width, *arguments)` does the rows from `bounds[0]` to `bounds[-1]`, in parts that end at
    `bounds`. `shape` is what `cut` takes: the columns of a row, which are `width`, the bytes of an element, and what is
    far. It is a dictionary because finding the function is part of every call, however small.
    """

    def __init__(self, row: Callable, *, cut: Callable[..., Cut] = cut_sums, name: str = "") -> None:
        super().__init__()
        self.row, self.cut = row, cut
        self.name = name or f"{row.__module__}.{row.__qualname__}"

    def __missing__(self, shape: tuple) -> Callable:
        self[shape] = function = self._function(self.cut(*shape)) if shape[0] else _no_columns
        return function

    def _function(self, cut: Cut) -> Callable:
        return _make(self.code(cut))

    def code(self, cut: Cut) -> str:
        """The name by which `lanes.emit_row` writes the work on a row of that cut, within any compiled function."""
        name = f"{self.name} {cut} {self.digest}"
        lanes.programs[name] = lanes.Program(self.row, cut)
        return name

    @functools.cached_property
    def digest(self) -> str:
        """What tells versions of the sources apart: those of lanes, and of all that the row's work refers to."""
        texts = digest_of(self.row) + digest_of_files(lanes.__name__)
        return hashlib.sha256(texts.encode()).hexdigest()[:16]


def _no_columns(bounds: np.ndarray, width: int, *arguments: np.ndarray | float) -> None:
    """Rows without columns: there is nothing to do."""


def work_of(entries: int, width: int) -> int:
    """The work of entries of a row loop in the measure of `threads.is_serial`.

    Measured on one core of an EPYC 9004, 31,000 entries in 1,024 rows, of N = 1, 16, 64: 15, 26, 75 us; by this and
    `ROW_WORK` 12, 29, 82. In 7,000 columns: 30, 42 us with N = 1, 16; by this 25, 42.
    """
    return entries * (width + ENTRY_COST) // SPEED


@functools.lru_cache(256)
def _one_part(rows: int) -> np.ndarray:
    """The bounds of one part, kept, for making them takes as long as many a small call; nobody writes to them."""
    return np.array((0, rows))


def cut_rows(starts: np.ndarray, entries: int, width: int, more: int = 0, per_row: int = ROW_COST) -> np.ndarray:
    """Parts of equal cost of the rows that `starts` describes, one where the work of a sum over `entries` rows of
    `width` columns, and `more` beside it, is little."""
    rows = starts.size - 1
    work = entries * (width + ENTRY_COST) // SPEED + ROW_WORK * rows + more  # `work_of` without a call
    return _one_part(rows) if is_serial(work, timed=True) else equal_cost(starts, parts(), per_row)


def cut_evenly(rows: int, work: int) -> np.ndarray:
    """Parts of as many rows each, one where the work is little."""
    return _one_part(rows) if is_serial(work, timed=True) else equal_count(rows, parts())
