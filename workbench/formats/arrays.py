"""Functions on arrays in any format: make, convert, copy, cast, assign.

>>> narrowed(np.float32([[0, 3], [255, 1]]), np.dtype(np.uint8)).tolist()
[[0, 3], [255, 1]]
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernels import aligned
from workbench.formats.checks import as_shape, check_two_dimensions, check_values
from workbench.formats.compressed import index_dtype
from workbench.formats.contract import Coo, Format, admit, enter, get, refuse


def zeros(shape: tuple[int, ...], format: str = "dense", dtype: DTypeLike = np.float32) -> Any:
    """An array of zeros, of which sparse formats store nothing. O(rows), dense O(size).

    csr, csc and coo take two dimensions, row_sparse one and more, dense any number. Errors: `FormatError`.

    >>> zeros((3, 2), "csr").indptr.tolist(), zeros((3, 2, 4), "row_sparse").nnz
    ([0, 0, 0, 0], 0)
    """
    target, shape = get(format), as_shape(shape)
    dtype = value_type(dtype, target)
    if target.zeros is not None:
        return target.zeros(shape, dtype)
    check_two_dimensions(shape, format)
    row = np.empty(0, index_dtype(*shape))
    return target.from_coo(Coo(row, row.copy(), np.empty(0, dtype), shape))


def to_format(x: Any, format: str) -> Any:
    """`x` in the format named `format`; `x` is never changed, and is returned itself when it already is in that format.

    Type of the values is kept. Indices keep their type too, unless shape or nnz needs 64 bits; dense gives int32 where
    that suffices. csr, csc and coo keep duplicates, order and explicit zeros of each other as far as they can; dense
    and row_sparse sum duplicates, and lose explicit zeros on the way back. csr, csc and coo take two dimensions only.
    Kernels convert float32 and float64, NumPy the other types; SciPy's formats hold no float16.
    O(nnz + rows + columns), and O(size) to or from dense. Errors: `FormatError`.

    >>> import scipy.sparse
    >>> x = scipy.sparse.coo_array((np.ones(2, np.float32), ([0, 1], [1, 0])), shape=(2, 3))
    >>> to_format(x, "row_sparse")
    RowSparse(shape=(2, 3), stored_rows=2, dtype=float32)
      row 0: [0. 1. 0.]
      row 1: [1. 0. 0.]
    """
    target = get(format)
    source, x = enter(x)
    check_values(x, f"The {source.name} array", source.dtypes)
    if source is target:
        return x
    value_type(x.dtype, target)
    if format in source.direct:
        return source.direct[format](x)
    return target.from_coo(source.to_coo(x))


def copy(x: Any) -> Any:
    """Copy an array, over memory of its own: values, pattern, format and types. A SciPy matrix gives the array."""
    format, x = enter(x)
    return format.build({name: aligned.copy(part) for name, part in format.parts(x).items()}, x.shape)


def astype(x: Any, dtype: DTypeLike, copy: bool = True) -> Any:
    """`x` with values of another type, cast as NumPy casts: towards zero to whole numbers. The pattern stays.

    A value that becomes zero stays stored. The result has memory of its own; with `copy=False` it may share indices,
    and is `x` itself where the type is the same. A type that the format does not hold is refused (`FormatError`).

    >>> astype(zeros((2, 2), "csc"), np.int64).dtype
    dtype('int64')
    """
    format, x = enter(x)
    dtype = value_type(dtype, format)
    if not copy and x.dtype == dtype:
        return x
    (name, values), *indices = format.parts(x).items()
    parts = {name: values.astype(dtype)} | {name: part.copy() if copy else part for name, part in indices}
    return format.build(parts, x.shape)


def assign(destination: Any, source: Any) -> Any:
    """Give `destination` the values of `source`, an array of the same shape in any format, or a number; returned.

    `destination` keeps its format and the type of its values; what it held is replaced, and a sparse one then stores
    what `to_format` of the source would, in memory of its own. A number fills dense and row_sparse, all of whose rows
    are then stored; csr, csc and coo refuse it. Casts are NumPy's. Errors: `FormatError`.

    >>> x = np.zeros((2, 2), np.float32)
    >>> assign(x, to_format(np.eye(2), "csr"))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    target, view = admit(destination)
    if isinstance(source, int | float | np.number):
        result = _filled(target.name, view.shape, view.dtype, source)
    else:
        _, source = admit(source)
        if source.shape != view.shape:
            fault = f"An array of shape {source.shape} was assigned to one of shape {view.shape}"
            raise refuse(fault, "arrays of the same shape, and numbers", "Take a part of it or reshape it")
        result = to_format(source, target.name)
        if target.name != "dense":
            result = astype(result, view.dtype)
    target.replace(destination, target.parts(result))
    return destination


def _filled(format: str, shape: tuple[int, ...], dtype: np.dtype, number: Any) -> Any:
    if format not in ("dense", "row_sparse"):
        advice = "Assign np.full(x.shape, number, x.dtype) if every entry is to be stored"
        raise refuse(f"The number {number} was assigned to a {format} array", "arrays", advice)
    dense = np.full(shape, number, dtype)
    if format == "dense":
        return dense
    return get(format).build({"values": dense, "indices": np.arange(shape[0])}, shape)


def value_type(dtype: DTypeLike, format: Format) -> np.dtype:
    """`dtype` as a type of values that the format holds (`FormatError`)."""
    dtype = np.dtype(dtype)
    if dtype not in format.dtypes:
        allowed = ", ".join(map(str, format.dtypes))
        raise refuse(f"A {format.name} array of {dtype} was asked for", allowed, "Choose one of these types")
    return dtype


# Dense arrays of a smaller type, if it has every value exactly.


VALUES_AT_ONCE = 1 << 20
"""Values that are converted at once: a few MB beside the result."""


def narrowed(x: Any, dtype: np.dtype) -> np.ndarray:
    """The matrix x [rows, columns], of any format, as a dense array of that type; x itself if it is one.

    A value that the type does not have exactly is refused (`FormatError`). O(size), beside the result a few MB.
    """
    _, x = admit(x)
    if isinstance(x, np.ndarray) and x.dtype == dtype:
        return x
    rows, columns = x.shape
    out = np.empty((rows, columns), dtype)
    step = max(VALUES_AT_ONCE // max(columns, 1), 1)
    source = x if isinstance(x, np.ndarray) else to_format(x, "csr")
    for start in range(0, rows, step):
        part = to_format(source[start : start + step], "dense")
        with np.errstate(invalid="ignore", over="ignore"):  # what does not fit is told below
            out[start : start + step] = part
        _refuse_inexact(part, out[start : start + step], start)
    return out


def _refuse_inexact(part: np.ndarray, out: np.ndarray, first: int) -> None:
    """Refuse values that were changed: `part` are rows from `first` on, `out` is what became of them."""
    if (wrong := np.argwhere(out != part)).size:
        row, column = wrong[0].tolist()
        raise refuse(
            f"The value {part[row, column]:.9g} at row {first + row}, column {column} is not exact in {out.dtype}",
            "whole numbers from 0 to 255 in uint8, numbers of 11 binary digits up to 65504 in float16",
            "Hold the data as csr or in the format's own type: hold = csr or hold = format",
        )
