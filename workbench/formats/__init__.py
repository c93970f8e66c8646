"""Matrix formats: `dense`, `csr`, `csc`, `coo` and `row_sparse`.

Dense matrices are NumPy arrays; csr, csc and coo are SciPy's sparse arrays (matrix classes are accepted and converted
to arrays); row_sparse is `RowSparse`. Kernels compute in float32 and float64; int32, int64 and uint8 values, and
float16 in dense and row_sparse, are stored, converted and cast. Indices are int32 or int64.

Properties that `check(x, full=True)` allows in each format:

| format     | dimensions | unsorted | duplicates | explicit zeros |
|------------|------------|----------|------------|----------------|
| dense      | any        | -        | -          | -              |
| csr, csc   | 2          | refused* | refused*   | allowed        |
| coo        | 2          | allowed  | allowed    | allowed        |
| row_sparse | 1 and more | refused  | refused    | allowed        |

`*` allowed with `check(x, full=True, canonical=False)`: products handle unsorted entries and sum duplicates.

`zeros`, `to_format`, `copy`, `astype` and `assign` create, convert, copy, cast and fill arrays of any format; `save`
and `load` store them in a file. Operators in `workbench.ops` state the format of
their result in a table; Python's operators on csr, csc and coo follow SciPy's rules.

How to add a format: write one file in this folder that ends in `register(Format(...))`; `csc.py` is the one to copy.
It then takes part in all of these functions and in the tests.

>>> import numpy as np
>>> names()
['dense', 'csr', 'csc', 'coo', 'row_sparse']
>>> x = to_format(np.float32([[0, 2], [0, 0]]), "csr")
>>> format_of(x), x.nnz, nbytes(x), predicted_bytes("csr", 2, 2, 1, np.float32, np.int32)
('csr', 1, 20, 20)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from workbench.formats.arrays import assign, astype, copy, to_format, zeros
from workbench.formats.contract import (
    FLOATS,
    VALUES,
    Format,
    FormatError,
    check_values,
    coerce,
    get,
    names,
    register,
    scan,
    unavailable,
    validate,
    with_plain_parts,
)
from workbench.formats.files import load, load_about, save

scan()  # now, for it fixes the order in which formats are recognised

from workbench.formats.row_sparse import RowSparse  # noqa: E402 - after the scan

__all__ = [
    "FLOATS",
    "VALUES",
    "Format",
    "FormatError",
    "RowSparse",
    "assign",
    "astype",
    "check",
    "coerce",
    "copy",
    "format_of",
    "get",
    "load",
    "load_about",
    "names",
    "nbytes",
    "predicted_bytes",
    "register",
    "save",
    "to_format",
    "unavailable",
    "validate",
    "zeros",
]


def format_of(x: Any) -> str:
    """Return the name of the format that an array is stored in.

    Parameters
    ----------
    x : array_like
        NumPy array, SciPy sparse array or matrix, or `RowSparse`.

    Returns
    -------
    str
        One of `names()`.

    Raises
    ------
    FormatError
        If `x` is in none of the formats.

    Examples
    --------
    >>> format_of(np.zeros((2, 2), np.float32))
    'dense'
    """
    return coerce(x)[0].name


def check(x: Any, full: bool = False, canonical: bool = True, dtypes: Sequence[np.dtype] = VALUES) -> Any:
    """Validate an array: dtypes, shapes, lengths and row pointers; with `full` also indices and values.

    Parameters
    ----------
    x : array_like
        Array in any format. It is not modified.
    full : bool, default False
        Also check range, order and uniqueness of indices and that values are finite. O(nnz); else O(rows) at most.
    canonical : bool, default True
        Whether unsorted and duplicated indices of csr and csc are errors.
    dtypes : sequence of numpy.dtype, default VALUES
        Value dtypes that are allowed, for example `FLOATS`.

    Returns
    -------
    array
        `x` itself. A SciPy matrix is returned as the array over the same memory, and so are memory maps.

    Raises
    ------
    FormatError
        If a check fails; the message says what was found and where, what is allowed and how to correct it.

    Examples
    --------
    >>> x = to_format(np.float32([[0, 2], [0, 0]]), "csr")
    >>> check(x, full=True) is x
    True
    """
    format, x = coerce(x)
    x = with_plain_parts(format, x)
    format.check(x, full, canonical)
    check_values(x, "x", dtypes)
    return x


def nbytes(x: Any) -> int:
    """Return the number of bytes that the arrays of `x` occupy: values and indices.

    Parameters
    ----------
    x : array_like
        Array in any format.

    Returns
    -------
    int
        Sum of the `nbytes` of its component arrays.

    Raises
    ------
    FormatError
        If `x` is in none of the formats.

    Examples
    --------
    >>> nbytes(np.zeros((2, 3), np.float32))
    24
    """
    format, x = coerce(x)
    return sum(part.nbytes for part in format.parts(x).values())


def predicted_bytes(
    format: str,
    rows: int,
    columns: int,
    nnz: int,
    dtype: DTypeLike,
    index_dtype: DTypeLike,
    stored_rows: int | None = None,
) -> int:
    """Predict the bytes of a [rows, columns] matrix with `nnz` stored entries; exact for a matrix that has them.

    Parameters
    ----------
    format : str
        Name of the format.
    rows, columns, nnz : int
        Shape and number of stored entries.
    dtype, index_dtype : dtype_like
        Types of values and of indices.
    stored_rows : int, optional
        Stored rows of a row_sparse matrix; `min(rows, nnz)` if omitted. Other formats ignore it.

    Returns
    -------
    int
        Bytes of values and indices.

    Raises
    ------
    FormatError
        If the format is unknown.

    Examples
    --------
    >>> predicted_bytes("csr", 2, 2, 1, np.float32, np.int32)
    20
    """
    stored = min(rows, nnz) if stored_rows is None else stored_rows
    sizes = (np.dtype(dtype).itemsize, np.dtype(index_dtype).itemsize)
    return get(format).predicted_bytes(rows, columns, nnz, stored, *sizes)
