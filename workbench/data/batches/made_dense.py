"""Batches made dense from rows that are held otherwise: as CSR, or dense in a smaller type.

A batch is made in memory that earlier ones had, once nobody holds a part of it. New memory would come page by page, at
2 us a page on a virtual machine: a batch of 256 x 2048 took 1 ms so, of which the work is 25 us at 1 % density.
"""

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

import kernels
from kernels import aligned, widening
from workbench import formats

MOST = 3
"""Buffers that are remembered: of the batch that is trained on, of the next one, and of the one that is predicted."""


def _kernel(name: str) -> Callable:
    """The CPU implementation of a kernel, for arrays whose contents were checked."""
    trusted: Any = kernels.get(name).trusted
    return trusted


class _Buffer:
    """Memory of a batch: `table` [rows, columns], and for each of its rows the row of the data that it holds, or -1."""

    def __init__(self, rows: int, columns: int, dtype: np.dtype) -> None:
        self.table = aligned.empty((rows, columns), dtype)
        self.held = np.full(rows, -1)
        self.room: Any = self.table.base  # what every view of the table refers to
        self.alone = self.references()

    def references(self) -> int:
        """References to the memory, which are more while somebody holds a view of it."""
        return sys.getrefcount(self.room)


@final
class Buffers:
    """Memory in which batches of `columns` columns are made dense, one after the other or on two threads."""

    def __init__(self, columns: int, dtype: DTypeLike) -> None:
        self.columns, self.dtype = columns, np.dtype(dtype)
        self.buffers: list[_Buffer] = []
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return sum(buffer.table.nbytes for buffer in self.buffers)

    def empty(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """An array [rows, columns] that nobody else holds, and the row of the data that each of its rows holds."""
        with self.lock:
            buffer = next((one for one in self.buffers if self._is_free(one, rows)), None) or self._made(rows)
            return buffer.table[:rows], buffer.held[:rows]

    def _is_free(self, buffer: _Buffer, rows: int) -> bool:
        return rows <= len(buffer.held) and buffer.references() == buffer.alone

    def _made(self, rows: int) -> _Buffer:
        """A new buffer, in the place of one that is too small, or of the oldest if there are many."""
        kept = [one for one in self.buffers if len(one.held) >= rows]
        self.buffers = [*kept[-(MOST - 1) :], buffer := _Buffer(rows, self.columns, self.dtype)]
        return buffer

    def forget(self) -> None:
        """Take no buffer to hold any row: the data may have been written to."""
        for buffer in self.buffers:
            buffer.held[:] = -1

    def of_csr(self, x: Any) -> np.ndarray:
        """A csr array, dense; one whose indices are wrong is refused (`FormatError`)."""
        _, x = formats.enter(x)
        out, held = self.empty(x.shape[0])
        held[:] = -1  # these are no rows of the data
        _kernel("csr_to_dense")(x.indptr, x.indices, x.data, out)
        return out


@final
class MadeDense:
    """Rows of which batches are made dense in that type: of a csr array, or of a dense one of uint8 or float16."""

    def __init__(self, x: Any, dtype: DTypeLike) -> None:
        self.x, self.dtype, self.shape = x, np.dtype(dtype), x.shape
        self.buffers = Buffers(x.shape[1], dtype)
        self.bound: list[tuple[np.ndarray, np.ndarray]] = []
        """Memory to which rows are copied by `bind`, and the rows that it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes of what is held, and of the batches that are made of it."""
        return formats.nbytes(self.x) + self.buffers.nbytes + sum(out.nbytes for out, _ in self.bound)

    def forget(self) -> None:
        """Take no memory of a batch to hold any row: the data may have been written to."""
        self.buffers.forget()
        for _, held in self.bound:
            held[:] = -1

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """The rows of those numbers, int64 [R], in that order, any of them again."""
        out, held = self.buffers.empty(len(rows))
        self._write(rows, held, out)
        return out

    def bind(self, rows: np.ndarray, out: np.ndarray) -> Callable[[], None]:
        """Give a call that writes to `out` the rows whose numbers `rows` int64 [R] then holds."""
        held = np.full(len(rows), -1)
        self.bound = [(out, held)]
        return functools.partial(self._write, rows, held, out)

    def _write(self, rows: np.ndarray, held: np.ndarray, out: np.ndarray) -> None:
        if isinstance(self.x, np.ndarray):
            widening.widen_rows(self.x, rows, out)
        else:
            _kernel("rows_to_dense")(self.x.indptr, self.x.indices, self.x.data, rows, held, out)


def is_made(format: str, x: Any, dtype: DTypeLike) -> bool:
    """Whether dense batches of that type are made of rows held so; others are cut in the format that they have."""
    if format == "csr":
        return x.dtype == dtype
    return format == "dense" and x.ndim == 2 and x.dtype != dtype and x.dtype in widening.TYPES
