"""CSC, compressed columns: row indices and values of each column, one column after the other.
`scipy.sparse.csc_array`.
"""

from typing import Any

import scipy.sparse

from workbench.formats import compressed
from workbench.formats.contract import Coo, register


def _to_csr(x: Any) -> scipy.sparse.csr_array:
    """Return a csc array as csr with sorted indices; duplicates are kept."""
    return compressed.assemble("csr", *compressed.transposed(x), x.shape)


def _from_coo(coo: Coo) -> scipy.sparse.csc_array:
    """Return COO entries as a csc array; duplicates are kept."""
    flipped = Coo(coo.col, coo.row, coo.data, coo.shape[::-1])
    return compressed.assemble("csc", *compressed.coo_to_csr(flipped), coo.shape)


register(
    compressed.compressed_format(
        "csc",
        to_coo=lambda x: compressed.csr_to_coo(_to_csr(x)),
        from_coo=_from_coo,
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: nnz * (value + index) + (columns + 1) * index,
        direct={"csr": _to_csr},
    )
)
