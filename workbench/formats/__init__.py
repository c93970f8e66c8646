"""What a matrix is held in: `dense`, `csr`, `csc`, `coo` and `row_sparse`.

Dense matrices are NumPy arrays, csr, csc and coo are SciPy's sparse arrays (matrix classes are accepted and become
arrays), row_sparse is `RowSparse`. Values are float32 or float64, indices int32 or int64.

What each format may hold, as `check(x, full=True)` sees it:

| format     | dimensions | unsorted | duplicates | explicit zeros |
|------------|------------|----------|------------|----------------|
| dense      | any        | -        | -          | -              |
| csr, csc   | 2          | refused* | refused*   | allowed        |
| coo        | 2          | allowed  | allowed    | allowed        |
| row_sparse | 1 and more | refused  | refused    | allowed        |

`*` allowed with `check(x, full=True, canonical=False)`: our products read them rightly and sum the duplicates.

How to add a format: write one file in this folder that ends in `register(Format(...))`; `csc.py` is the one to copy.
It then takes part in `convert`, `check`, `nbytes` and in the tests.

>>> import numpy as np
>>> names()
('dense', 'csr', 'csc', 'coo', 'row_sparse')
>>> x = convert(np.float32([[0, 2], [0, 0]]), "csr")
>>> format_of(x), x.nnz, nbytes(x), predicted_bytes("csr", 2, 2, 1, np.float32, np.int32)
('csr', 1, 20, 20)
"""

import importlib
import pkgutil
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from workbench.formats.contract import Format, FormatError, admit, get, names, register

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from workbench.formats.row_sparse import RowSparse  # noqa: E402 - the scan above fixes the order of registration

__all__ = [
    "Format",
    "FormatError",
    "RowSparse",
    "check",
    "convert",
    "format_of",
    "get",
    "names",
    "nbytes",
    "predicted_bytes",
    "register",
]


def format_of(x: Any) -> str:
    """Name of the format that `x` is held in; what is in none of them is refused (`FormatError`)."""
    return admit(x)[0].name


def check(x: Any, full: bool = False, canonical: bool = True) -> Any:
    """`x` itself, or `FormatError` with what came, where, what is allowed and what to do.

    Cheap checks, O(rows) at most, are always made: types, shapes, lengths, row pointers. `full` adds O(nnz): range,
    order and uniqueness of the indices, finite values. `canonical=False` allows unsorted and duplicated indices in csr
    and csc. A SciPy matrix is returned as the array that shares its memory.
    """
    format, x = admit(x)
    format.check(x, full, canonical)
    return x


def convert(x: Any, to: str) -> Any:
    """`x` in the format named `to`; `x` is never changed, and is returned itself when it already is in that format.

    Type of the values is kept. Indices keep their type too, unless shape or nnz needs 64 bits; dense gives int32 where
    that suffices. csr, csc and coo keep duplicates, order and explicit zeros of each other as far as they can; dense
    and row_sparse sum duplicates, and lose explicit zeros on the way back. csr, csc and coo take two dimensions only.
    O(nnz + rows + columns), and O(size) to or from dense. Errors: `FormatError`.

    >>> import scipy.sparse
    >>> x = scipy.sparse.coo_array((np.ones(2, np.float32), ([0, 1], [1, 0])), shape=(2, 3))
    >>> convert(x, "row_sparse")
    RowSparse(shape=(2, 3), stored_rows=2, dtype=float32)
      row 0: [0. 1. 0.]
      row 1: [1. 0. 0.]
    """
    target = get(to)
    source, x = admit(x)
    source.check(x, False, False)
    if source is target:
        return x
    source.check_indices(x)
    if to in source.direct:
        return source.direct[to](x)
    return target.from_coo(source.to_coo(x))


def nbytes(x: Any) -> int:
    """Bytes held by the arrays of `x`: values and indices."""
    format, x = admit(x)
    return format.nbytes(x)


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
