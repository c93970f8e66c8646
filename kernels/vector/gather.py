"""Row loops: a row's work, written with `kernels.vector.lanes`, made into one compiled function for each shape of row.

    _rows = gather.RowLoop(_row)

    def cpu(indptr, indices, data, x, out):
        width = x.shape[1]
        bounds = gather.cut_rows(indptr, gather.work_of(indices.size, width))
        _rows(bounds, (width, x.itemsize, is_far(x.nbytes)), indptr, indices, data, x, out)

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

ENTRY_COST = 12
"""What taking up an entry costs, in columns of its row."""

SPEED = 4
"""Multiply-adds that vector code does in the time of one."""

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


class RowLoop:
    """`row(lane, u, *arguments)` made into code that does it for many rows, cut into tiles by `cut` of
    `kernels.vector.tiles`.
    """

    def __init__(self, row: Callable, *, cut: Callable[..., Cut] = cut_sums, name: str = "") -> None:
        self.row, self.cut = row, cut
        self.name = name or f"{row.__module__}.{row.__qualname__}"
        self.functions: dict[tuple, Callable] = {}

    def __call__(self, bounds: np.ndarray, shape: tuple, *arguments: np.ndarray | float) -> None:
        """Do the rows from `bounds[0]` to `bounds[-1]`, in parts that end at `bounds`.

        `shape` is what `cut` takes: the columns of a row, the bytes of an element, and what is far.
        """
        if shape[0] == 0:
            return
        function = self.functions.get(shape)
        if function is None:
            function = self.functions[shape] = self._function(self.cut(*shape))
        function(bounds, shape[0], *arguments)

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


def work_of(entries: int, width: int) -> int:
    """The work of a row loop in the measure of `threads.is_serial`: an entry costs its columns and `ENTRY_COST`, and
    vector code does `SPEED` multiply-adds in the time that the measure has for one."""
    return entries * (width + ENTRY_COST) // SPEED


@functools.lru_cache(256)
def _one_part(rows: int) -> np.ndarray:
    """The bounds of one part, kept, for making them takes as long as many a small call; nobody writes to them."""
    return np.array((0, rows))


def cut_rows(starts: np.ndarray, work: int, per_row: int = ROW_COST) -> np.ndarray:
    """Parts of equal cost of the rows that `starts` describes, one where the work is little."""
    return _one_part(starts.size - 1) if is_serial(work) else equal_cost(starts, parts(), per_row)


def cut_evenly(rows: int, work: int) -> np.ndarray:
    """Parts of as many rows each, one where the work is little."""
    return _one_part(rows) if is_serial(work) else equal_count(rows, parts())
