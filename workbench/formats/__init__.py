"""Formats of matrices: `dense`, `csr`, `csc`, `coo` and `row_sparse`.

Dense matrices are NumPy arrays, csr, csc and coo are SciPy's sparse arrays (matrix classes are accepted and become
arrays), row_sparse is `RowSparse`. Values are float32 or float64, which kernels compute in, or int32, int64, uint8,
and in dense and row_sparse float16, which are held, converted and cast. Indices are int32 or int64.

What each format may hold, as `check(x, full=True)` sees it:

| format     | dimensions | unsorted | duplicates | explicit zeros |
|------------|------------|----------|------------|----------------|
| dense      | any        | -        | -          | -              |
| csr, csc   | 2          | refused* | refused*   | allowed        |
| coo        | 2          | allowed  | allowed    | allowed        |
| row_sparse | 1 and more | refused  | refused    | allowed        |

`*` allowed with `check(x, full=True, canonical=False)`: our products read them rightly and sum the duplicates.

`zeros`, `to_format`, `copy`, `astype` and `assign` make, convert, copy, cast and fill arrays of any format; `save` and
`load` keep them in a file; `picture` shows their pattern. Arithmetic is that of `workbench.ops`, whose tables say which
format a result has: SciPy's own signs on csr, csc and coo follow SciPy's rules.

How to add a format: write one file in this folder that ends in `register(Format(...))`; `csc.py` is the one to copy.
It then takes part in all of these and in the tests.

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
from workbench.formats.checks import check_values
from workbench.formats.contract import (
    FLOATS,
    VALUES,
    Format,
    FormatError,
    admit,
    enter,
    get,
    names,
    register,
    scan,
    unavailable,
    with_plain_parts,
)
from workbench.formats.files import load, save
from workbench.formats.pictures import notebook, picture

scan()  # now, for it fixes the order in which formats are recognised

from workbench.formats.row_sparse import RowSparse  # noqa: E402 - after the scan

__all__ = [
    "FLOATS",
    "VALUES",
    "Format",
    "FormatError",
    "RowSparse",
    "admit",
    "assign",
    "astype",
    "check",
    "copy",
    "enter",
    "format_of",
    "get",
    "load",
    "names",
    "nbytes",
    "notebook",
    "picture",
    "predicted_bytes",
    "register",
    "save",
    "to_format",
    "unavailable",
    "zeros",
]


def format_of(x: Any) -> str:
    """Name of the format that `x` is held in; what is in none of them is refused (`FormatError`)."""
    return admit(x)[0].name


def check(x: Any, full: bool = False, canonical: bool = True, dtypes: Sequence[np.dtype] = VALUES) -> Any:
    """`x` itself, or `FormatError` with what came, where, what is allowed and what to do.

    Cheap checks, O(rows) at most, are always made: types, shapes, lengths, row pointers. `full` adds O(nnz): range,
    order and uniqueness of the indices, finite values. `canonical=False` allows unsorted and duplicated indices in csr
    and csc. `dtypes`, such as `FLOATS`, narrows the types of values. A SciPy matrix is returned as the array that
    shares its memory, and so are arrays of maps of files. All of this and more `enter` asks of what comes in from
    outside, wherever it does.
    """
    format, x = admit(x)
    x = with_plain_parts(format, x)
    format.check(x, full, canonical)
    check_values(x, "x", dtypes)
    return x


def nbytes(x: Any) -> int:
    """Bytes held by the arrays of `x`: values and indices."""
    format, x = admit(x)
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
    """Bytes that a [rows, columns] matrix with `nnz` stored entries would take; equals `nbytes` of the real one.

    `stored_rows` is read by row_sparse only; None means the most there can be, one row for each entry.
    """
    stored = min(rows, nnz) if stored_rows is None else stored_rows
    sizes = (np.dtype(dtype).itemsize, np.dtype(index_dtype).itemsize)
    return get(format).predicted_bytes(rows, columns, nnz, stored, *sizes)
