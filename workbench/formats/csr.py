"""CSR, compressed rows: column indices and values of each row, one row after the other. `scipy.sparse.csr_array`."""

import functools
from typing import Any

import numpy as np
import scipy.sparse

from workbench.formats import compressed, numpy_conversions
from workbench.formats.contract import (
    SCIPY_VALUES,
    Coo,
    Format,
    check_compressed,
    check_compressed_indices,
    is_sound_compressed,
    register,
)


def _to_dense(x: Any) -> np.ndarray:
    """Return a csr array as a new dense array [rows, cols] of its dtype; duplicates are summed."""
    out = np.empty(x.shape, x.dtype)
    numpy_conversions.get("csr_to_dense", x.dtype)(x.indptr, x.indices, x.data, out)
    return out


def _from_coo(coo: Coo) -> scipy.sparse.csr_array:
    """Return COO entries as a csr array; order within a row and duplicates are kept."""
    return compressed.assemble("csr", *compressed.coo_to_csr(coo), coo.shape)


register(
    Format(
        name="csr",
        is_instance=lambda x: isinstance(x, scipy.sparse.csr_array),
        is_sound=is_sound_compressed,
        check=check_compressed,
        check_indices=check_compressed_indices,
        to_coo=compressed.csr_to_coo,
        from_coo=_from_coo,
        parts=compressed.parts,
        build=functools.partial(compressed.build, "csr"),
        replace=compressed.replace,
        dtypes=SCIPY_VALUES,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: nnz * (value + index) + (rows + 1) * index,
        direct={"dense": _to_dense, "csc": lambda x: compressed.assemble("csc", *compressed.transposed(x), x.shape)},
    )
)
