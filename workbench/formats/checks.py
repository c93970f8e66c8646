"""Checks of indices and values. Each raises FormatError with the invalid value, its position and the correction."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels import structure
from workbench.formats.contract import SCIPY_VALUES, VALUES, refuse

INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


def check_values(values: np.ndarray, name: str, allowed: Sequence[np.dtype] = VALUES) -> None:
    """Raise FormatError unless the dtype of `values` is one of `allowed`."""
    if values.dtype not in allowed:
        *first, last = map(str, allowed)
        raise refuse(f"{name} has dtype {values.dtype}", f"{', '.join(first)} and {last}", "Call x.astype(np.float32)")


def check_finite(values: np.ndarray, name: str) -> None:
    """Raise FormatError if `values` has NaN or infinity; the message names the first position."""
    finite = np.isfinite(values)
    if not finite.all():
        where = np.unravel_index(np.argmin(finite), values.shape)
        place = ", ".join(map(str, where))
        raise refuse(f"{name}[{place}] is {values[where]}", "finite values", f"Call np.nan_to_num on {name}")


def check_index_types(**arrays: np.ndarray) -> None:
    """Raise FormatError unless all index arrays are one-dimensional, int32 or int64, and of the same dtype."""
    for name, array in arrays.items():
        if array.ndim != 1:
            raise refuse(f"{name} has {array.ndim} dimensions", "1 dimension", f"Call {name}.ravel()")
        if array.dtype not in INTEGERS:
            raise refuse(f"{name} has dtype {array.dtype}", "int32 and int64", f"Call {name}.astype(np.int32)")
    dtypes = {name: array.dtype for name, array in arrays.items()}
    if len(set(dtypes.values())) > 1:
        types = " and ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise refuse(f"The index types differ: {types}", "one type for all of them", "Turn both into int64")


def check_range(indices: np.ndarray, limit: int, name: str, axis: str) -> None:
    """Raise FormatError if an index is outside [0, limit); `name` and `axis` are used in the message."""
    if not indices.size or (indices.min() >= 0 and indices.max() < limit):
        return
    allowed = f"0 to {limit - 1}, as there are {limit} {axis}" if limit else f"none, as there are no {axis}"
    if indices.min() < 0:
        position = int(np.argmax(indices < 0))
        advice = "Negative numbers do not count from the end here; write the index itself"
        raise refuse(f"{name}[{position}] is {indices[position]}, a negative index", allowed, advice)
    position = int(np.argmax(indices >= limit))
    raise refuse(
        f"{name}[{position}] is {indices[position]}, out of range", allowed, "Correct it, or make shape larger"
    )


def check_same_length(values: np.ndarray, indices: np.ndarray, names: tuple[str, str]) -> None:
    """Raise FormatError if the arrays called `names` differ in length."""
    if len(values) != len(indices):
        fault = f"{names[0]} has {len(values)} entries and {names[1]} has {len(indices)}"
        raise refuse(fault, "the same number in both", "Build the matrix again from its parts")


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return `shape` as a tuple of non-negative int; raises FormatError for anything else."""
    try:
        shape = tuple(operator.index(length) for length in shape)
    except TypeError:
        raise refuse(f"shape is {shape!r}", "a tuple of whole numbers", "Write (rows, columns)") from None
    if min(shape, default=0) < 0:
        raise refuse(f"shape is {shape}", "lengths of which none is negative", "Write (rows, columns)")
    return shape


def check_one_dimension(values: np.ndarray, name: str) -> None:
    """Raise FormatError unless the stored values are a one-dimensional array."""
    if values.ndim != 1:
        raise refuse(f"{name} has {values.ndim} dimensions", "1 dimension", f"Call {name}.ravel()")


def is_sound_compressed(x: Any) -> bool:
    """Return whether a csr or csc array is valid for kernels: dtypes, lengths, pointers and index range. O(rows +
    nnz).
    """
    indptr, indices, data, shape = x.indptr, x.indices, x.data, x.shape
    if not (type(indptr) is type(indices) is type(data) is np.ndarray and len(shape) == 2):
        return False
    count, limit = shape if x.format == "csr" else shape[::-1]
    kind, stored = indices.dtype, indices.shape
    alike = indptr.dtype == kind and kind in INTEGERS and data.dtype in SCIPY_VALUES
    whole = indptr.shape == (count + 1,) and len(stored) == 1 and data.shape == stored
    return alike and whole and structure.is_compressed(indptr, indices, limit)


def check_two_dimensions(shape: tuple[int, ...], name: str) -> None:
    """Raise FormatError unless `shape` has two dimensions; `name` is the format in the message."""
    if len(shape) != 2:
        advice = "Call x.reshape(rows, columns)"
        raise refuse(f"The {name} matrix has shape {tuple(shape)}", "two dimensions, (rows, columns)", advice)


def check_compressed(x: Any, full: bool, canonical: bool) -> None:
    """Validate a csr or csc array, O(rows); with `full` also index range, order (if `canonical`) and finite values,
    O(nnz).
    """
    check_two_dimensions(x.shape, x.format)
    check_values(x.data, "data", SCIPY_VALUES)
    check_index_types(indptr=x.indptr, indices=x.indices)
    check_one_dimension(x.data, "data")
    check_same_length(x.data, x.indices, ("data", "indices"))
    major, minor = ("rows", "columns") if x.format == "csr" else ("columns", "rows")
    check_pointers(x.indptr, x.shape[0] if x.format == "csr" else x.shape[1], len(x.indices), major)
    if full:
        check_compressed_indices(x)
        if canonical:
            _check_order(x.indptr, x.indices, major[:-1], minor[:-1])
        check_finite(x.data, "data")


def check_compressed_indices(x: Any) -> None:
    """Raise FormatError if a csr or csc array has an index out of range. O(nnz)."""
    limit, axis = (x.shape[1], "columns") if x.format == "csr" else (x.shape[0], "rows")
    check_range(x.indices, limit, "indices", axis)


def check_pointers(indptr: np.ndarray, count: int, stored: int, major: str) -> None:
    """Raise FormatError unless `indptr` [count + 1] rises from 0 to `stored`; `major` is "rows" or "columns".
    O(count).
    """
    if len(indptr) != count + 1:
        fault = f"indptr has {len(indptr)} entries for {count} {major}"
        raise refuse(fault, f"{count + 1}, one more than {major}", "Correct shape or indptr")
    if indptr[0] != 0 or indptr[-1] != stored:
        fault = f"indptr goes from {indptr[0]} to {indptr[-1]}"
        raise refuse(fault, f"0 to {stored}, the number of stored entries", "Call x.prune(), or correct indptr")
    falling = indptr[1:] < indptr[:-1]
    if falling.any():
        at = int(np.argmax(falling))
        fault = f"indptr falls from {indptr[at]} to {indptr[at + 1]} at {major[:-1]} {at}"
        raise refuse(fault, "numbers that never fall", "Build the matrix again from its parts")


def _check_order(indptr: np.ndarray, indices: np.ndarray, major: str, minor: str) -> None:
    """Raise FormatError unless indices rise strictly within each row (or column); equal neighbours are duplicates."""
    rising = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # the first of a row follows nothing
    if rising.all():
        return
    at = int(np.argmin(rising))
    line = int(np.searchsorted(indptr, at, side="right")) - 1
    before, after = indices[at], indices[at + 1]
    if before == after:
        fault = f"{minor} {after} is stored twice in {major} {line} (indices[{at}] and indices[{at + 1}]), a duplicate"
        raise refuse(fault.capitalize(), "each once", "Call x.sum_duplicates()")
    fault = f"{major} {line} is unsorted: {minor} {after} (indices[{at + 1}]) comes after {minor} {before}"
    raise refuse(fault.capitalize(), "ascending order", "Call x.sort_indices()")
