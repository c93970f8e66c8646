"""COO, coordinates: row, column and value of each entry, in any order, duplicates summed. `scipy.sparse.coo_array`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from workbench.formats.checks import (
    check_finite,
    check_index_types,
    check_range,
    check_same_length,
    check_two_dimensions,
    check_values,
)
from workbench.formats.contract import SCIPY_VALUES, Coo, Format, register


def _check(x: Any, full: bool, canonical: bool) -> None:
    check_two_dimensions(x.shape, "coo")
    check_values(x.data, "data", SCIPY_VALUES)
    check_index_types(row=x.row, col=x.col)
    check_same_length(x.row, x.col, ("row", "col"))
    check_same_length(x.data, x.row, ("data", "row"))
    if full:
        _check_indices(x)
        check_finite(x.data, "data")


def _check_indices(x: Any) -> None:
    check_range(x.row, x.shape[0], "row", "rows")
    check_range(x.col, x.shape[1], "col", "columns")


def _from_coo(coo: Coo) -> scipy.sparse.coo_array:
    return scipy.sparse.coo_array((coo.data, (coo.row, coo.col)), shape=coo.shape)


def _parts(x: Any) -> dict[str, np.ndarray]:
    return {"data": x.data, "row": x.row, "col": x.col}


def _build(parts: Mapping[str, np.ndarray], shape: tuple[int, int]) -> scipy.sparse.coo_array:
    """Types of the parts are kept; SciPy's constructor would choose that of the indices itself."""
    x = scipy.sparse.coo_array(shape, dtype=parts["data"].dtype)
    _replace(x, parts)
    return x


def _replace(x: Any, parts: Mapping[str, np.ndarray]) -> None:
    x.data, x.coords = parts["data"], (parts["row"], parts["col"])
    x.has_canonical_format = False


register(
    Format(
        name="coo",
        is_instance=lambda x: isinstance(x, scipy.sparse.coo_array),
        check=_check,
        check_indices=_check_indices,
        to_coo=lambda x: Coo(x.row, x.col, x.data, x.shape),
        from_coo=_from_coo,
        parts=_parts,
        build=_build,
        replace=_replace,
        dtypes=SCIPY_VALUES,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: nnz * (value + 2 * index),
    )
)
