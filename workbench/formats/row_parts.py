"""Components of a RowSparse: conversion of values, indices and shape, their checks, and rows selected by a key."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernels import structure
from workbench.formats import numpy_conversions
from workbench.formats.contract import VALUES, as_shape, check_range, check_same_length, check_values, refuse


def as_values(values: ArrayLike) -> np.ndarray:
    """Return values as a plain array; lists become float32, arrays are not copied.

    Raises FormatError for a masked array.
    """
    _refuse_masked(values, "values")
    return np.asarray(values) if isinstance(values, np.ndarray) else np.asarray(values, np.float32)


def _refuse_masked(part: ArrayLike, name: str) -> None:
    """Raise FormatError if `part`, called `name` in the message, is a masked array."""
    if isinstance(part, np.ma.MaskedArray):
        raise refuse(f"{name} is a masked array", "plain NumPy arrays", f"Call {name}.filled(0)")


def as_indices(indices: ArrayLike) -> np.ndarray:
    """Return indices as an int64 array, not copied if it is one. Raises FormatError unless all are whole numbers."""
    _refuse_masked(indices, "indices")
    indices = np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise refuse(f"indices has dtype {indices.dtype}", "whole numbers, int64 best", "Call indices.astype(np.int64)")
    return indices.astype(np.int64, copy=False)


def row_shape(shape: tuple[int, ...] | None, values: np.ndarray, indices: np.ndarray) -> tuple[int, ...]:
    """Return `shape` as a tuple; None: (largest index + 1, *shape of one row). Raises FormatError if it is invalid."""
    if shape is None:
        if not indices.size or not values.ndim:
            raise refuse("There is no shape, and no index to infer it from", "a shape", "Write shape=(rows, columns)")
        return (int(indices.max()) + 1, *values.shape[1:])
    shape = as_shape(shape)
    if not shape:
        raise refuse(f"shape is {shape}", "1 or more lengths", "Write (rows, columns)")
    return shape


def row_numbers(rows: ArrayLike, limit: int) -> np.ndarray:
    """Return sorted unique row indices int64 from indices in any order and of any dtype that holds them exactly.

    Raises FormatError for indices outside [0, limit), fractions, and floats too large to be exact integers.
    """
    rows = np.asarray(rows)
    if rows.ndim != 1:
        raise refuse(f"rows has {rows.ndim} dimensions", "1 dimension", "Call rows.ravel()")
    if rows.dtype.kind == "f":
        exact = 2.0 ** (np.finfo(rows.dtype).nmant + 1)
        if not (np.abs(rows) < exact).all() or (rows != np.trunc(rows)).any():
            allowed = f"whole numbers below {exact:.0f}, up to which {rows.dtype} is exact"
            raise refuse(f"rows has dtype {rows.dtype} and holds other than row numbers", allowed, "Pass int64")
        rows = rows.astype(np.int64)
    rows = as_indices(rows)
    check_range(rows, limit, "rows", "rows")
    return rows if (rows[1:] > rows[:-1]).all() else np.unique(rows)


def is_sound(values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Return whether values, indices and shape of a RowSparse are valid for kernels. O(stored)."""
    if not (type(values) is type(indices) is np.ndarray and values.dtype in VALUES and indices.dtype == np.int64):
        return False
    whole = indices.ndim == 1 and values.shape == (indices.size, *shape[1:])
    return whole and structure.is_rising(indices, shape[0])


def check_parts(values: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise FormatError unless values [stored, *shape[1:]] and indices int64 [stored] fit each other and `shape`.

    Also for masked arrays and dtypes that are not supported; the range and order of indices are not checked.
    """
    _refuse_masked(values, "values")
    _refuse_masked(indices, "indices")
    check_values(values, "values")
    if indices.dtype != np.int64:
        raise refuse(f"indices has dtype {indices.dtype}", "int64", "Call indices.astype(np.int64)")
    if indices.ndim != 1:
        raise refuse(f"indices has {indices.ndim} dimensions", "1 dimension", "Call indices.ravel()")
    if values.ndim != len(shape) or values.shape[1:] != shape[1:]:
        allowed = f"({', '.join(['stored', *map(str, shape[1:])])}) for the shape {shape}"
        raise refuse(f"values has shape {values.shape}", allowed, "Correct shape, or reshape the values")
    check_same_length(values, indices, ("values", "indices"))


def check_indices(indices: np.ndarray, rows: int) -> None:
    """Raise FormatError for indices that are not in [0, rows), unsorted or repeated."""
    check_range(indices, rows, "indices", "rows")
    rising = indices[1:] > indices[:-1]
    if rising.all():
        return
    at = int(np.argmin(rising))
    before, after = indices[at], indices[at + 1]
    advice = "Call RowSparse.from_rows(indices, values, shape), which sorts and sums"
    if before == after:
        problem = f"Row {after} is stored twice (indices[{at}] and indices[{at + 1}]), a duplicate"
        raise refuse(problem, "each row once", advice)
    problem = f"indices is unsorted: {after} (indices[{at + 1}]) comes after {before}"
    raise refuse(problem, "ascending order", advice)


def flat(values: np.ndarray) -> np.ndarray:
    """Return values of any rank as a matrix [indices, N], one row per index; a view if contiguous."""
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))


def rows_of(source: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return `source[index]` along the first axis, for any rank; a copy."""
    matrix = flat(source)
    out = np.empty((len(index), matrix.shape[1]), source.dtype)
    numpy_conversions.get("take_rows", source.dtype)(matrix, index, out)
    return out.reshape(len(index), *source.shape[1:])


def spread(values: np.ndarray, index: np.ndarray, rows: int) -> np.ndarray:
    """Return an array of `rows` rows in which the rows `index` int64 [U] are `values` [U, ...], others zero."""
    out = np.zeros((rows, *values.shape[1:]), values.dtype)
    numpy_conversions.get("scatter_rows", values.dtype)(flat(values), index, flat(out))
    return out


def row_number(key: Any, rows: int) -> int:
    """Return the row that `x[key]` selects, from 0 to rows - 1; a negative key counts from the end.

    Raises IndexError.
    """
    try:
        if isinstance(key, bool | np.bool_):
            raise TypeError
        number = operator.index(key)
    except TypeError:
        raise IndexError(
            f"A RowSparse was indexed with {key!r}. Allowed: a row number or a slice. "
            "Call x.retain(rows) to keep certain rows, or x.toarray()."
        ) from None
    if not -rows <= number < rows:
        raise IndexError(f"Row {number} is out of range. Allowed: {-rows} to {rows - 1}, as there are {rows} rows.")
    return number % rows


def slice_rows(values: np.ndarray, indices: np.ndarray, named: range) -> tuple[np.ndarray, np.ndarray]:
    """Return (values, indices) of the stored rows that a slice selects; indices are those in the result.

    values [stored, ...] and indices int64 [stored] are the components of a RowSparse, `named` is the range of rows. The
    values returned are a view unless the step exceeds one.
    """
    if not named:
        return values[:0], indices[:0]
    rising = named if named.step > 0 else named[::-1]
    first, last = np.searchsorted(indices, (rising[0], rising[-1] + 1))
    values, indices = values[first:last], indices[first:last] - rising[0]
    if rising.step > 1:
        kept = np.flatnonzero(indices % rising.step == 0)
        values, indices = rows_of(values, kept), indices[kept] // rising.step
    if named.step < 0:
        values, indices = values[::-1], (len(named) - 1 - indices)[::-1]
    return values, indices
