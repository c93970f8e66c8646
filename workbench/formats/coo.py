"""COO, coordinate format: row, column and value of each entry, in any order; duplicates are summed.
`scipy.sparse.coo_array`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from kernels import structure
from workbench.formats import contract


def _is_sound(x: Any) -> bool:
    """Return whether dtypes, lengths and every index of a coo array are valid. O(nnz)."""
    coords, data, shape = x.coords, x.data, x.shape
    if len(coords) != 2 or len(shape) != 2:
        return False
    row, col = coords
    if not (type(row) is type(col) is type(data) is np.ndarray):
        return False
    is_equal_type = row.dtype == col.dtype and row.dtype in contract.INTEGERS and data.dtype in contract.SCIPY_VALUES
    whole = row.ndim == 1 and row.shape == col.shape == data.shape
    return is_equal_type and whole and structure.in_range(row, shape[0]) and structure.in_range(col, shape[1])


def _check(x: Any, full: bool, canonical: bool) -> None:
    """Raise FormatError if dtypes or lengths of a coo array are invalid.

    `full`: also indices out of range, NaN, infinity. `canonical` is unused: any order and duplicates are allowed.
    """
    contract.check_two_dimensions(x.shape, "coo")
    contract.check_values(x.data, "data", contract.SCIPY_VALUES)
    contract.check_one_dimension(x.data)
    contract.check_index_types(row=x.row, col=x.col)
    contract.check_same_length(x.row, x.col, ("row", "col"))
    contract.check_same_length(x.data, x.row, ("data", "row"))
    if full:
        _check_indices(x)
        contract.check_finite(x.data, "data")


def _check_indices(x: Any) -> None:
    """Raise FormatError if a coo array has an index out of range. O(nnz)."""
    contract.check_range(x.row, x.shape[0], "row", "rows")
    contract.check_range(x.col, x.shape[1], "col", "columns")


def _from_coo(coo: contract.Coo) -> scipy.sparse.coo_array:
    """Return a coo_array over the entries, not copied."""
    return scipy.sparse.coo_array((coo.data, (coo.row, coo.col)), shape=coo.shape)


def _parts(x: Any) -> dict[str, np.ndarray]:
    """Return {"data", "row", "col"} of a coo array, not copied. Raises FormatError unless it has two dimensions."""
    contract.check_two_dimensions(x.shape, "coo")
    if len(x.coords) != 2:
        raise contract.refuse(f"coords has {len(x.coords)} arrays", "2, row and column", "Set x.coords = (row, col)")
    row, col = x.coords
    return {"data": x.data, "row": row, "col": col}


def _build(parts: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> scipy.sparse.coo_array:
    """Return a coo_array over `parts` ("data", "row", "col"), not copied or checked; index dtypes are kept.

    SciPy's constructor would choose that of the indices.
    """
    x = scipy.sparse.coo_array(shape, dtype=parts["data"].dtype)
    _replace(x, parts)
    return x


def _replace(x: Any, parts: Mapping[str, np.ndarray]) -> None:
    """Replace data, row and col of a coo array in place by `parts`; SciPy's cached flag about its order is reset."""
    x.data, x.coords = parts["data"], (parts["row"], parts["col"])
    x.has_canonical_format = False


contract.register(
    contract.Format(
        name="coo",
        is_instance=lambda x: isinstance(x, scipy.sparse.coo_array),
        is_sound=_is_sound,
        check=_check,
        check_indices=_check_indices,
        to_coo=lambda x: contract.Coo(x.row, x.col, x.data, x.shape),
        from_coo=_from_coo,
        parts=_parts,
        build=_build,
        replace=_replace,
        dtypes=contract.SCIPY_VALUES,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: nnz * (value + 2 * index),
    )
)
