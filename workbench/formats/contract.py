"""The Format record, its registry, and the door through which every matrix comes in."""

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
    """A matrix is malformed or in no known format; the message says what came, what is allowed and what to do.

    Where a matrix was refused, `told` holds these three apart.
    """

    told: tuple[str, str, str] | None = None


SparseArray: TypeAlias = scipy.sparse.csr_array | scipy.sparse.csc_array | scipy.sparse.coo_array
"""SciPy's sparse arrays that formats hold."""


class Coo(NamedTuple):
    """The entries of a matrix, in any order, with duplicates: what every format can be turned into and made from."""

    row: np.ndarray
    col: np.ndarray
    data: np.ndarray
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Format:
    """One format: how it is recognised, checked, converted, taken apart and weighed.

    `is_instance(x)`; `is_sound(x)` tells in one compiled pass whether x is all that kernels take it for, plain arrays
    with every index in range, which they would follow outside of their arrays; of what is not, `check(x, full,
    canonical)` and `check_indices(x)` raise `FormatError`; `to_coo(x) -> Coo`; `from_coo(Coo) -> x`;
    `parts(x)` gives the arrays that `x` is made of by name, the values first; `build(parts, shape) -> x` puts such
    arrays together, unchecked; `replace(x, parts)` gives `x` other ones of the same shape and type of values, in place;
    `predicted_bytes(rows, columns, nnz, stored_rows, bytes_value, bytes_index)`; `zeros(shape, dtype)`, where it takes
    other than two dimensions; `dtypes` of values that it holds; `direct` maps the name of another format to a
    conversion that need not go through COO.
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
    """The error for a malformed matrix, in the one form that all of them have."""
    error = FormatError(f"{fault}. Allowed: {allowed}. {advice}.")
    error.told = fault, allowed, advice
    return error


_of_type: dict[type, Format] = {}
"""Formats by the types of arrays that came as they are: the second array of a type is known at once."""


def enter(x: Any) -> tuple[Format, Any]:
    """The door for arrays from outside: `admit`, and `FormatError` for what kernels could not follow. O(stored).

    Types, lengths, starts of rows and every index are checked, each time that an array comes in: whoever made it still
    holds it, and may have changed it. Arrays of other classes, such as maps of files, become plain ones over the same
    memory.
    """
    format = _of_type.get(type(x))
    if format is not None and format.is_sound(x):  # in as few calls as can be, for each is paid for in every step
        return format, x
    format, x = admit(x)
    if not format.is_sound(x):
        x = with_plain_parts(format, x)
        format.check(x, False, False)
        format.check_indices(x)
    return format, x


def with_plain_parts(format: Format, x: Any) -> Any:
    """`x`, or the same over plain arrays where its parts are of other classes; lists and the like are refused."""
    parts = format.parts(x)
    if all(type(part) is np.ndarray for part in parts.values()):
        return x
    return format.build({name: _plain_part(name, part) for name, part in parts.items()}, x.shape)


def _plain_part(name: str, part: Any) -> np.ndarray:
    if not isinstance(part, np.ndarray) or isinstance(part, np.ma.MaskedArray):
        fault = f"{name} is a {type(part).__name__}"
        raise refuse(fault, "NumPy arrays", f"Build the array again from its parts, with np.asarray({name})")
    return np.asarray(part)


def admit(x: Any) -> tuple[Format, Any]:
    """The format of `x`, and `x` with matrix classes turned into arrays over the same memory (`FormatError`)."""
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
    if isinstance(x, scipy.sparse.spmatrix):
        return getattr(scipy.sparse, f"{x.format}_array")(x)
    if isinstance(x, np.ma.MaskedArray):
        raise refuse("A masked array came", "plain NumPy arrays", "Call x.filled(0)")
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        return np.asarray(x)
    return x
