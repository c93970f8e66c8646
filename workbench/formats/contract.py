"""The Format record, its registry, and the validation of every array that users pass in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse

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

    `told` is a tuple of these three sentences, if `refuse` raised the error.
    """

    told: tuple[str, str, str] | None = None


SparseArray: TypeAlias = scipy.sparse.csr_array | scipy.sparse.csc_array | scipy.sparse.coo_array
"""SciPy's sparse arrays that formats hold."""


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


def refuse(fault: str, allowed: str, advice: str) -> FormatError:
    """Build the FormatError of an invalid array from a fault, what is allowed and advice."""
    error = FormatError(f"{fault}. Allowed: {allowed}. {advice}.")
    error.told = fault, allowed, advice
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
        fault = f"{name} is a {type(part).__name__}"
        raise refuse(fault, "NumPy arrays", f"Build the array again from its parts, with np.asarray({name})")
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
    fault = f"SciPy's {x.format!r} format" if scipy.sparse.issparse(x) else f"A {kind}"
    advice = "Call x.tocsr()" if scipy.sparse.issparse(x) else "Call np.asarray(x, np.float32)"
    raise refuse(
        f"{fault} is none of the formats here",
        f"NumPy arrays, SciPy arrays and RowSparse: {', '.join(names())}",
        advice,
    )


def _as_array(x: Any) -> Any:
    """Convert a SciPy matrix to a sparse array and a subclass of ndarray to an ndarray; FormatError for a masked
    array.
    """
    if isinstance(x, scipy.sparse.spmatrix):
        return getattr(scipy.sparse, f"{x.format}_array")(x)
    if isinstance(x, np.ma.MaskedArray):
        raise refuse("A masked array came", "plain NumPy arrays", "Call x.filled(0)")
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        return np.asarray(x)
    return x
