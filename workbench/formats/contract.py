"""The Format record, its registry, and the validation of every array that users pass in."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from kernels import structure
from kernels.registry import Registry

ORDER = ("dense", "csr", "csc", "coo", "row_sparse")
"""Order in lists and menus; formats added later follow by name."""

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""Types of values that kernels compute in."""

SCIPY_VALUES: tuple[np.dtype, ...] = (*FLOATS, np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8))
"""Types of values that SciPy's sparse arrays hold, of those that are held here."""

VALUES: tuple[np.dtype, ...] = (*SCIPY_VALUES, np.dtype(np.float16))
"""Types of values that are held here at all: dense and row_sparse hold all of them."""


class FormatError(ValueError):
    """An array is invalid or in no known format; the message says what was found, what is allowed and how to correct
    it.

    `sentences` is a tuple of these three sentences, if `refuse` raised the error.
    """

    sentences: tuple[str, str, str] | None = None


class Coo(NamedTuple):
    """Entries of a matrix in any order, duplicates allowed: the format that conversions go through.

    `row` and `col` are int32 or int64 [nnz], `data` [nnz].
    """

    row: np.ndarray
    col: np.ndarray
    data: np.ndarray
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Format:
    """A format: functions to recognise, validate, convert, take apart and build its arrays.

    Parameters
    ----------
    name : str
        Name of the format.
    is_instance : callable
        `is_instance(x) -> bool`: whether `x` is of this format.
    is_sound : callable
        `is_sound(x) -> bool`: whether kernels may read `x`: plain arrays, every index in range. One compiled pass.
    check : callable
        `check(x, full, canonical)`: raise FormatError if `x` is invalid.
    check_indices : callable
        `check_indices(x)`: raise FormatError for an index out of range.
    to_coo, from_coo : callable
        Conversions from and to `Coo`.
    parts : callable
        `parts(x) -> dict`: the component arrays by name, values first.
    build : callable
        `build(parts, shape)`: an array over these components, unchecked.
    replace : callable
        `replace(x, parts)`: put other components of the same shape and dtype into `x`, in place.
    predicted_bytes : callable
        `predicted_bytes(rows, columns, nnz, stored_rows, bytes_value, bytes_index) -> int`.
    zeros : callable, optional
        `zeros(shape, dtype)` for formats that support other than two dimensions.
    dtypes : sequence of numpy.dtype
        Value dtypes that the format supports.
    direct : mapping
        Conversions to other formats, by name, that do not go through COO.

    Examples
    --------
    >>> get("csr").predicted_bytes(2, 2, 1, 1, 4, 4)
    20
    """

    name: str
    is_instance: Callable[[Any], bool]
    is_sound: Callable[[Any], bool]
    check: Callable[[Any, bool, bool], None]
    check_indices: Callable[[Any], object]
    to_coo: Callable[[Any], Coo]
    from_coo: Callable[[Coo], Any]
    parts: Callable[[Any], dict[str, np.ndarray]]
    build: Callable[[Mapping[str, np.ndarray], tuple[int, ...]], Any]
    replace: Callable[[Any, Mapping[str, np.ndarray]], None]
    predicted_bytes: Callable[[int, int, int, int, int, int], int]
    zeros: Callable[[tuple[int, ...], np.dtype], Any] | None = None
    dtypes: Sequence[np.dtype] = VALUES
    direct: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


_formats: Registry[Format] = Registry("format", ("workbench.formats",), FormatError, ORDER)
register, names, get, scan = _formats.register, _formats.names, _formats.get, _formats.scan
unavailable = _formats.unavailable


def refuse(problem: str, allowed: str, advice: str) -> FormatError:
    """Return, without raising it, the FormatError "fault. Allowed: allowed. advice." with these three sentences."""
    error = FormatError(f"{problem}. Allowed: {allowed}. {advice}.")
    error.sentences = problem, allowed, advice
    return error


_of_type: dict[type, Format] = {}
"""Formats by the types of arrays that came as they are: the second array of a type is known at once."""


def validate(x: Any) -> tuple[Format, Any]:
    """Validate an array that comes from outside: return its format and the array, converted by `coerce`. O(stored).

    Dtypes, lengths, row pointers and every index are checked each time, since the caller may have changed the array.
    Subclasses of ndarray, such as memory maps, become plain arrays over the same memory.

    Parameters
    ----------
    x : array_like
        NumPy array, SciPy sparse array or matrix, or `RowSparse`.

    Returns
    -------
    format : Format
        The format of the array.
    x : array
        The array, over the same memory.

    Raises
    ------
    FormatError
        If the array is invalid or in none of the formats.

    Examples
    --------
    >>> validate(np.zeros(2))[0].name
    'dense'
    """
    format = _of_type.get(type(x))
    if format is not None and format.is_sound(x):  # in as few calls as can be, for each is paid for in every step
        return format, x
    format, x = coerce(x)
    if not format.is_sound(x):
        x = with_plain_parts(format, x)
        format.check(x, False, False)
        format.check_indices(x)
    return format, x


def with_plain_parts(format: Format, x: Any) -> Any:
    """Return `x`, or an array over the same memory if its components are subclasses of ndarray.

    Raises FormatError if a component is not an ndarray or is masked.
    """
    parts = format.parts(x)
    if all(type(part) is np.ndarray for part in parts.values()):
        return x
    return format.build({name: _plain_part(name, part) for name, part in parts.items()}, x.shape)


def _plain_part(name: str, part: Any) -> np.ndarray:
    """Return the component `part` as a plain ndarray; FormatError if it is not an ndarray or is masked."""
    if not isinstance(part, np.ndarray) or isinstance(part, np.ma.MaskedArray):
        problem = f"{name} is a {type(part).__name__}"
        raise refuse(problem, "NumPy arrays", f"Build the array again from its parts, with np.asarray({name})")
    return np.asarray(part)


def coerce(x: Any) -> tuple[Format, Any]:
    """Return the format of `x` and `x` itself, SciPy matrices converted to arrays over the same memory. O(1).

    Parameters
    ----------
    x : array_like
        NumPy array, SciPy sparse array or matrix, or `RowSparse`. Indices are not checked; see `validate`.

    Returns
    -------
    format : Format
        The format of the array.
    x : array
        The array, over the same memory.

    Raises
    ------
    FormatError
        If `x` is in none of the formats.

    Examples
    --------
    >>> coerce(np.zeros(2))[0].name
    'dense'
    """
    if (known := _of_type.get(type(x))) is not None:
        return known, x
    original, x = x, _as_array(x)
    for format in _formats.entries.values():
        if format.is_instance(x):
            if x is original:
                _of_type[type(x)] = format
            return format, x
    kind = f"{type(x).__module__}.{type(x).__name__}".removeprefix("builtins.")
    problem = f"SciPy's {x.format!r} format" if scipy.sparse.issparse(x) else f"A {kind}"
    advice = "Call x.tocsr()" if scipy.sparse.issparse(x) else "Call np.asarray(x, np.float32)"
    raise refuse(
        f"{problem} is none of the formats here",
        f"NumPy arrays, SciPy arrays and RowSparse: {', '.join(names())}",
        advice,
    )


def _as_array(x: Any) -> Any:
    """Return a SciPy matrix as a sparse array and a subclass of ndarray as an ndarray; others unchanged.

    Raises FormatError for a masked array.
    """
    if isinstance(x, scipy.sparse.spmatrix):
        return getattr(scipy.sparse, f"{x.format}_array")(x)
    if isinstance(x, np.ma.MaskedArray):
        raise refuse("A masked array came", "plain NumPy arrays", "Call x.filled(0)")
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        return np.asarray(x)
    return x


# Checks of indices and values. Each raises FormatError with the invalid value, its position and the correction.

INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))


def check_values(values: np.ndarray, name: str, allowed: Sequence[np.dtype] = VALUES) -> None:
    """Raise FormatError unless the dtype of `values`, called `name` in the message, is one of `allowed`."""
    if values.dtype not in allowed:
        *first, last = map(str, allowed)
        raise refuse(f"{name} has dtype {values.dtype}", f"{', '.join(first)} and {last}", "Call x.astype(np.float32)")


def check_finite(values: np.ndarray, name: str) -> None:
    """Raise FormatError if `values`, called `name`, has NaN or infinity; the message names the first position."""
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
    """Raise FormatError if `values` and `indices` differ in length; `names` are theirs in the message."""
    if len(values) != len(indices):
        problem = f"{names[0]} has {len(values)} entries and {names[1]} has {len(indices)}"
        raise refuse(problem, "the same number in both", "Build the matrix again from its parts")


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return `shape` as a tuple of non-negative int; raises FormatError for anything else."""
    try:
        shape = tuple(operator.index(length) for length in shape)
    except TypeError:
        raise refuse(f"shape is {shape!r}", "a tuple of whole numbers", "Write (rows, columns)") from None
    if min(shape, default=0) < 0:
        raise refuse(f"shape is {shape}", "lengths of which none is negative", "Write (rows, columns)")
    return shape


def check_one_dimension(data: np.ndarray) -> None:
    """Raise FormatError unless the stored values `data` are a one-dimensional array."""
    if data.ndim != 1:
        raise refuse(f"data has {data.ndim} dimensions", "1 dimension", "Call data.ravel()")


def is_sound_compressed(x: Any) -> bool:
    """Return whether a csr or csc array is valid for kernels: dtypes, lengths, pointers, index range. O(rows + nnz)."""
    indptr, indices, data, shape = x.indptr, x.indices, x.data, x.shape
    if not (type(indptr) is type(indices) is type(data) is np.ndarray and len(shape) == 2):
        return False
    count, limit = shape if x.format == "csr" else shape[::-1]
    kind, stored = indices.dtype, indices.shape
    is_equal_type = indptr.dtype == kind and kind in INTEGERS and data.dtype in SCIPY_VALUES
    whole = indptr.shape == (count + 1,) and len(stored) == 1 and data.shape == stored
    return is_equal_type and whole and structure.is_compressed(indptr, indices, limit)


def check_two_dimensions(shape: tuple[int, ...], name: str) -> None:
    """Raise FormatError unless `shape` has two dimensions; `name` is the format in the message."""
    if len(shape) != 2:
        advice = "Call x.reshape(rows, columns)"
        raise refuse(f"The {name} matrix has shape {tuple(shape)}", "two dimensions, (rows, columns)", advice)


def check_compressed(x: Any, full: bool, canonical: bool) -> None:
    """Raise FormatError if a csr or csc array is invalid. O(rows).

    With `full` also index range and finite values, O(nnz). With `full` and `canonical` also unsorted and duplicated
    indices.
    """
    check_two_dimensions(x.shape, x.format)
    check_values(x.data, "data", SCIPY_VALUES)
    check_index_types(indptr=x.indptr, indices=x.indices)
    check_one_dimension(x.data)
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
    """Raise FormatError unless `indptr` [count + 1] rises from 0 to `stored`. O(count).

    `major` is "rows" or "columns", for the message.
    """
    if len(indptr) != count + 1:
        problem = f"indptr has {len(indptr)} entries for {count} {major}"
        raise refuse(problem, f"{count + 1}, one more than {major}", "Correct shape or indptr")
    if indptr[0] != 0 or indptr[-1] != stored:
        problem = f"indptr goes from {indptr[0]} to {indptr[-1]}"
        raise refuse(problem, f"0 to {stored}, the number of stored entries", "Call x.prune(), or correct indptr")
    falling = indptr[1:] < indptr[:-1]
    if falling.any():
        at = int(np.argmax(falling))
        problem = f"indptr falls from {indptr[at]} to {indptr[at + 1]} at {major[:-1]} {at}"
        raise refuse(problem, "numbers that never fall", "Build the matrix again from its parts")


def _check_order(indptr: np.ndarray, indices: np.ndarray, major: str, minor: str) -> None:
    """Raise FormatError unless `indices` [nnz] rise strictly within each row (or column) that `indptr` bounds.

    The message names the first violation. `major` and `minor` are "row" and "column", or the reverse.
    """
    rising = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # the first of a row follows nothing
    if rising.all():
        return
    at = int(np.argmin(rising))
    line = int(np.searchsorted(indptr, at, side="right")) - 1
    before, after = indices[at], indices[at + 1]
    if before == after:
        problem = (
            f"{minor} {after} is stored twice in {major} {line} (indices[{at}] and indices[{at + 1}]), a duplicate"
        )
        raise refuse(problem.capitalize(), "each once", "Call x.sum_duplicates()")
    problem = f"{major} {line} is unsorted: {minor} {after} (indices[{at + 1}]) comes after {minor} {before}"
    raise refuse(problem.capitalize(), "ascending order", "Call x.sort_indices()")
