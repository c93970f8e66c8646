"""Rows cut from an array in the format that it has: a range of them as a view, or any of them as a copy."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from kernels import reused
from workbench import formats
from workbench.data.batches.made_dense import MadeDense
from workbench.data.errors import DataError
from workbench.formats import RowSparse, moves
from workbench.formats.compressed import assemble

FORMATS = ("csr", "dense", "row_sparse")


def admit(x: Any, name: str) -> tuple[str, Any]:
    """The format of `x` and `x` as rows are cut from it; dense arrays may hold numbers of any type (`DataError`)."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "biu" and type(x) is np.ndarray:
        format = "dense"  # numbers of classes, users, words
    else:
        entry, x = formats.enter(x)
        format = entry.name
    if format not in FORMATS:
        advice = f"formats.to_format({name}, 'csr')"
        raise DataError(f"{name} is {format}; mini-batches are cut from {', '.join(FORMATS)}: {advice}.")
    if isinstance(x, np.ndarray) and (not x.ndim or x.dtype.kind not in "biuf"):
        raise DataError(f"{name} is {x.dtype} of {x.ndim} dimensions; mini-batches are cut from rows of numbers.")
    return format, x


def check(x: Any, name: str) -> None:
    """Refuse sparse data that was written to since it was admitted: rows cannot be cut of it (`FormatError`)."""
    if isinstance(x, np.ndarray):
        return
    if isinstance(x, MadeDense):
        x.forget()
        check(x.x, name)
        return
    try:
        formats.enter(x)
    except formats.FormatError as error:
        error.add_note(f"This is {name} of the batches.")
        raise


def ranged(format: str, x: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop`, sharing the memory of `x` but for row numbers and pointers; a copy where
    it is made dense."""
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


def each(format: str, x: Any, rows: int) -> list[Any]:
    """Cut `x` into parts of `rows` rows, the last ones perhaps fewer; the parts of `ranged`, in a third of the time."""
    total = x.shape[0]
    if format == "dense":
        return [x[start : start + rows] for start in range(0, total, rows)]
    if format == "csr":
        whole = _each_of_csr(x, rows)
        return [*whole, ranged(format, x, rows * len(whole), total)] if total % rows else whole
    return [ranged(format, x, start, min(start + rows, total)) for start in range(0, total, rows)]


def _each_of_csr(x: Any, rows: int) -> list[Any]:
    """The parts that have all their rows."""
    count, shape = x.shape[0] // rows, (rows, x.shape[1])
    edges = x.indptr[: count * rows + 1 : rows]
    starts = x.indptr[rows * np.arange(count)[:, None] + np.arange(rows + 1)] - edges[:-1, None]  # [count, rows + 1]
    spans = zip(starts, itertools.pairwise(edges.tolist()), strict=True)
    return [assemble("csr", own, x.indices[a:b], x.data[a:b], shape) for own, (a, b) in spans]


def gathered(format: str, x: Any, rows: np.ndarray) -> Any:
    """The rows of those numbers, int64 [R], in that order, any of them again; a copy."""
    if isinstance(x, MadeDense):
        return x.gathered(rows)
    if format == "dense":
        return _taken(x, rows)
    if format == "csr":
        parts = kernels.get("slice_rows").trusted(x.indptr, x.indices, x.data, rows)
        return assemble("csr", *parts, (len(rows), x.shape[1]))
    places = np.searchsorted(x.indices, rows)
    stored = np.flatnonzero(np.append(x.indices, -1)[places] == rows)
    return RowSparse.assemble(_taken(x.values, places[stored]), stored, (len(rows), *x.shape[1:]))


def bind_copy(x: np.ndarray | MadeDense, rows: np.ndarray, out: np.ndarray) -> Callable[[], Any]:
    """Give a call that copies the rows of a dense `x` whose indices `rows` int64 [R] then holds to `out`."""
    if isinstance(x, MadeDense):
        return x.bind(rows, out)
    if _goes_by_kernel(x, rows) and (call := kernels.get("take_rows").bind(x, rows, out)):
        return call
    return functools.partial(np.take, x, rows, 0, out, "clip")  # numbers are in range; to raise takes another copy


FEW = 4096
"""Numbers below which NumPy takes rows, in a third of the time of a call of the kernel."""


def _goes_by_kernel(x: np.ndarray, rows: np.ndarray) -> bool:
    return x.ndim == 2 and x.dtype.kind == "f" and len(rows) * x.shape[1] >= FEW


def _taken(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    if not _goes_by_kernel(x, rows):
        return x.take(rows, axis=0)
    out = reused.empty(len(rows) * x.shape[1], x.dtype).reshape(len(rows), x.shape[1])
    moves.get("take_rows", x.dtype)(x, rows, out)
    return out
