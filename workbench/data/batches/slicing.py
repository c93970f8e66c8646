"""Rows cut from an array in the format that it has: a range of them as a view, or any of them as a copy."""

import functools
import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

import kernels
from kernels import aligned, reused
from workbench import formats
from workbench.data.errors import DataError
from workbench.formats import RowSparse, numpy_conversions
from workbench.formats.compressed import assemble

# Batches made dense from rows that are held otherwise: as CSR, or dense in a smaller type.
#
# A batch is made in memory that earlier ones had, once nobody holds a part of it. New memory would come page by page,
# at 2 us a page on a virtual machine: a batch of 256 x 2048 took 1 ms so, of which the work is 25 us at 1 % density.


MOST = 3
"""Buffers that are remembered: of the batch that is trained on, of the next one, and of the one that is predicted."""


@functools.cache
def _kernel(name: str) -> Callable:
    """Return the CPU implementation of the kernel `name` that does not validate its arrays; cached."""
    trusted: Any = kernels.get(name).trusted
    return trusted


class _Buffer:
    """Memory of a batch: `table` [rows, columns], and for each of its rows the row of the data that it holds, or -1."""

    def __init__(self, rows: int, columns: int, dtype: np.dtype) -> None:
        """Allocate an aligned table [rows, columns] and mark all its rows as holding no data row (-1).

        The current number of references to its memory is kept, to detect when somebody uses it.
        """
        self.table = aligned.empty((rows, columns), dtype)
        self.held = np.full(rows, -1)
        self.memory: Any = self.table.base  # what every view of the table refers to
        self.alone = self.references()

    def references(self) -> int:
        """Return the reference count of the memory, which is higher while a view of it exists."""
        return sys.getrefcount(self.memory)


@final
class Buffers:
    """Memory in which batches of `columns` columns are made dense, one after the other or on two threads."""

    def __init__(self, columns: int, dtype: DTypeLike) -> None:
        """Set up an empty pool of dense buffers with `columns` columns of `dtype`, safe for two threads."""
        self.columns, self.dtype = columns, np.dtype(dtype)
        self.buffers: list[_Buffer] = []
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Memory of the pooled buffers in bytes."""
        return sum(buffer.table.nbytes for buffer in self.buffers)

    def empty(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return an unused table [rows, columns] and the data row in each of its rows, int64 [rows], -1 for none.

        A buffer is reused, with its content, once nobody refers to it, else a new one is made. Thread-safe.
        """
        with self.lock:
            large = [buffer for buffer in self.buffers if len(buffer.held) >= rows]
            buffer = next((each for each in large if each.references() == each.alone), None)
            if buffer is None:  # in place of those that are too small, or the oldest
                buffer = _Buffer(rows, self.columns, self.dtype)
                self.buffers = [*large[-(MOST - 1) :], buffer]
            return buffer.table[:rows], buffer.held[:rows]

    def forget(self) -> None:
        """Mark all rows of all buffers as unknown, since the data may have been changed."""
        for buffer in self.buffers:
            buffer.held[:] = -1

    def of_csr(self, x: Any) -> np.ndarray:
        """Return a CSR array as a dense one in a pooled buffer; FormatError if its structure is invalid."""
        _, x = formats.validate(x)
        out, held = self.empty(x.shape[0])
        held[:] = -1  # these are no rows of the data
        _kernel("csr_to_dense")(x.indptr, x.indices, x.data, out)
        return out


@final
class MadeDense:
    """Rows of which batches are made dense in that type: of a csr array, or of a dense one of uint8 or float16."""

    def __init__(self, x: Any, dtype: DTypeLike) -> None:
        """Wrap `x`, CSR or dense [rows, columns], whose rows are returned dense in `dtype`; sets up empty buffers."""
        self.x, self.dtype, self.shape = x, np.dtype(dtype), x.shape
        self.buffers = Buffers(x.shape[1], dtype)

    @property
    def nbytes(self) -> int:
        """Memory of the data and of all buffers made of it, in bytes."""
        return formats.nbytes(self.x) + self.buffers.nbytes

    def forget(self) -> None:
        """Mark the rows of all buffers as unknown, since the data may have been changed."""
        self.buffers.forget()

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with indices `rows`, int64 [R], dense [R, columns] in that order; repeats are allowed.

        The array is a pooled buffer, which is reused once nobody refers to it.
        """
        out, held = self.buffers.empty(len(rows))
        self._write(rows, held, out)
        return out

    def _write(self, rows: np.ndarray, held: np.ndarray, out: np.ndarray) -> None:
        """Write the rows of `x` with these indices to `out` [R, columns].

        `held` names the rows in `out` and is updated. For CSR only entries of the old rows are cleared; for dense data
        `held` is not used.
        """
        if isinstance(self.x, np.ndarray):
            reused.widen_rows(self.x, rows, out)
        else:
            _kernel("rows_to_dense")(self.x.indptr, self.x.indices, self.x.data, rows, held, out)


def is_made(format: str, x: Any, dtype: DTypeLike) -> bool:
    """Return whether batches of `dtype` are made dense from `x`: CSR of that dtype, or dense uint8 or float16.

    Other arrays are cut in their own format.
    """
    if format == "csr":
        return x.dtype == dtype
    return format == "dense" and x.ndim == 2 and x.dtype != dtype and x.dtype in reused.TYPES


FORMATS = ("csr", "dense", "row_sparse")


def coerce_for_slicing(x: Any, name: str) -> tuple[str, Any]:
    """Return (format name, array) of `x` validated for row slicing; `name` stands for it in messages.

    Raises DataError unless it is CSR, row-sparse, or a dense array of numbers, FormatError if it is invalid.
    """
    if isinstance(x, np.ndarray) and x.dtype.kind in "biu" and type(x) is np.ndarray:
        format = "dense"  # numbers of classes, users, words
    else:
        entry, x = formats.validate(x)
        format = entry.name
    if format not in FORMATS:
        advice = f"formats.to_format({name}, 'csr')"
        raise DataError(f"{name} is {format}; mini-batches are cut from {', '.join(FORMATS)}: {advice}.")
    if isinstance(x, np.ndarray) and (not x.ndim or x.dtype.kind not in "biuf"):
        raise DataError(f"{name} is {x.dtype} of {x.ndim} dimensions; mini-batches are cut from rows of numbers.")
    return format, x


def require_unchanged(x: Any, name: str) -> None:
    """Raise FormatError if the sparse array `x`, called `name`, was changed since it was validated.

    Forget dense buffers.
    """
    if isinstance(x, np.ndarray):
        return
    if isinstance(x, MadeDense):
        x.forget()
        require_unchanged(x.x, name)
        return
    try:
        formats.validate(x)
    except formats.FormatError as error:
        error.add_note(f"This is {name} of the batches.")
        raise


def slice_range(format: str, x: Any, start: int, stop: int) -> Any:
    """Return rows `start` to `stop` (exclusive) of `x`, which has format `format`; values and indices are views.

    Row pointers and row indices are new arrays; `MadeDense` gives a dense buffer.
    """
    if isinstance(x, MadeDense):
        return x.gathered(np.arange(start, stop))
    if format == "dense":
        return x[start:stop]
    if format == "csr":
        indptr = x.indptr[start : stop + 1]
        entries = slice(indptr[0], indptr[-1])
        return assemble("csr", indptr - indptr[0], x.indices[entries], x.data[entries], (stop - start, x.shape[1]))
    first, last = np.searchsorted(x.indices, (start, stop))
    return RowSparse.assemble(x.values[first:last], x.indices[first:last] - start, (stop - start, *x.shape[1:]))


def slice_each(format: str, x: Any, rows: int) -> list[Any]:
    """Return `x` cut into parts of `rows` rows, the last perhaps fewer, each as `slice_range` gives it, but faster."""
    total = x.shape[0]
    if format == "dense":
        return [x[start : start + rows] for start in range(0, total, rows)]
    if format == "csr":
        whole = _each_of_csr(x, rows)
        return [*whole, slice_range(format, x, rows * len(whole), total)] if total % rows else whole
    return [slice_range(format, x, start, min(start + rows, total)) for start in range(0, total, rows)]


def _each_of_csr(x: Any, rows: int) -> list[Any]:
    """Return the CSR parts of exactly `rows` rows, as views; rows left at the end are in none."""
    count, shape = x.shape[0] // rows, (rows, x.shape[1])
    edges = x.indptr[: count * rows + 1 : rows]
    starts = x.indptr[rows * np.arange(count)[:, None] + np.arange(rows + 1)] - edges[:-1, None]  # [count, rows + 1]
    spans = zip(starts, itertools.pairwise(edges.tolist()), strict=True)
    return [assemble("csr", own, x.indices[a:b], x.data[a:b], shape) for own, (a, b) in spans]


def gather_rows(format: str, x: Any, rows: np.ndarray) -> Any:
    """Return a copy of the rows of `x`, in its format, with indices `rows`, int64 [R], in this order, repeats allowed.

    `MadeDense` gives a dense buffer.
    """
    if isinstance(x, MadeDense):
        return x.gathered(rows)
    if format == "dense":
        return _take_dense_rows(x, rows)
    if format == "csr":
        indptr, indices, values = _kernel("slice_rows")(x.indptr, x.indices, x.data, rows)
        return assemble("csr", indptr, indices, values, (len(rows), x.shape[1]))
    places = np.searchsorted(x.indices, rows)
    stored = np.flatnonzero(np.append(x.indices, -1)[places] == rows)
    return RowSparse.assemble(_take_dense_rows(x.values, places[stored]), stored, (len(rows), *x.shape[1:]))


FEW = 4096
"""Numbers below which NumPy takes rows, in a third of the time of a call of the kernel."""


def _take_dense_rows(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a copy of the rows of a dense array with indices `rows`, int64 [R]."""
    if x.ndim != 2 or x.dtype.kind != "f" or len(rows) * x.shape[1] < FEW:
        return x.take(rows, axis=0)
    out = reused.empty(len(rows) * x.shape[1], x.dtype).reshape(len(rows), x.shape[1])
    numpy_conversions.get("take_rows", x.dtype)(x, rows, out)
    return out
