"""CSR, compressed rows: column indices and values of each row, one row after the other. `scipy.sparse.csr_array`."""

from typing import Any

import numpy as np
import scipy.sparse

from workbench.formats import compressed, numpy_conversions
from workbench.formats.contract import Coo, register


def _to_dense(x: Any) -> np.ndarray:
    """Return a csr array as a new dense array [rows, cols] of its dtype; duplicates are summed."""
    out = np.empty(x.shape, x.dtype)
    numpy_conversions.get("csr_to_dense", x.dtype)(x.indptr, x.indices, x.data, out)
    return out


def _from_coo(coo: Coo) -> scipy.sparse.csr_array:
    """Return COO entries as a csr array; order within a row and duplicates are kept."""
    return compressed.assemble("csr", *compressed.coo_to_csr(coo), coo.shape)


register(
    compressed.compressed_format(
        "csr",
        to_coo=compressed.csr_to_coo,
        from_coo=_from_coo,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: nnz * (value + index) + (rows + 1) * index,
        direct={"dense": _to_dense, "csc": lambda x: compressed.assemble("csc", *compressed.transposed(x), x.shape)},
    )
)
