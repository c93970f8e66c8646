"""Row loops: a row's work, written with `kernels.vector.lanes`, made into one compiled function for each shape of row.

    _rows = gather.RowLoop(_row)

    def cpu(indptr, indices, data, x, out):
        width = x.shape[1]
        bounds = gather.cut_rows(indptr, gather.work_of(indices.size, width))
        _rows(bounds, (width, x.itemsize, is_far(x.nbytes)), indptr, indices, data, x, out)

A compiled function has one body for one thread and for many, so that both give the same bits, and is kept on disk: a
new shape costs a quarter of a second once, 4 ms in later processes.
"""

import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import prange

from kernels.code_cache import njit
from kernels.threads import ROW_COST, equal_cost, equal_count, is_serial, parts
from kernels.vector import lanes, operands, tiles, values
from kernels.vector.lanes import emit
from kernels.vector.tiles import Cut, cut_sums

ENTRY_COST = 12
"""What taking up an entry costs, in columns of its row."""

SPEED = 4
"""Multiply-adds that vector code does in the time of one."""

_compiled = njit(nogil=True, error_model="numpy", parallel=True)

made: list = []
"""The compiled functions of this process."""


@functools.cache
def _make(name: str) -> Callable:
    def run(bounds, width, *arguments):
        """The program for the rows from `bounds[0]` to `bounds[-1]`, each part on one thread."""
        if bounds.size == 2:  # a region of one part would wake the other threads
            for u in range(bounds[0], bounds[1]):
                emit(name, u, width, arguments)
        else:
            for part in prange(bounds.size - 1):
                for u in range(bounds[part], bounds[part + 1]):
                    emit(name, u, width, arguments)

    # Its own name gives it an index of its own on disk: one index for all 850 takes 30 ms to read, for each of them.
    run.__qualname__ = f"{name.split()[0]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    made.append(_compiled(run))
    return made[-1]


class RowLoop:
    """`row(lane, u, *arguments)` made into code that does it for many rows, cut into tiles by `cut` of
    `kernels.vector.tiles`.

    `uses` are modules beside the row's own that its code is made from: where one changes, code is made anew.
    """

    def __init__(self, row: Callable, *uses, cut: Callable[..., Cut] = cut_sums, name: str = "") -> None:
        self.row, self.uses, self.cut = row, uses, cut
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
        name = f"{self.name} {cut} {self._digest()}"
        lanes.programs[name] = lanes.Program(self.row, cut)
        return _make(name)

    def _digest(self) -> str:
        """What tells versions of the sources apart: Numba looks only at this file when it takes code from disk."""
        modules = (lanes, operands, tiles, values, inspect.getmodule(self.row), *self.uses)
        return hashlib.sha256(b"".join(Path(module.__file__).read_bytes() for module in modules)).hexdigest()[:16]


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
