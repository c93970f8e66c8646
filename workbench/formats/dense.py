"""Dense format: a NumPy array of any rank and memory layout. Every element is stored."""

from typing import Any

import numpy as np

from kernels import aligned
from workbench.formats import compressed, numpy_conversions
from workbench.formats.compressed import index_dtype
from workbench.formats.contract import Coo, Format, check_finite, check_two_dimensions, check_values, register
from workbench.formats.row_sparse import RowSparse


def _check(x: np.ndarray, full: bool, canonical: bool) -> None:
    """Raise FormatError if the dtype is not supported or, with `full`, a value is not finite; `canonical` is unused."""
    check_values(x, "The dense array")
    if full:
        check_finite(x, "x")


def _to_csr(x: np.ndarray) -> Any:
    """Return the nonzero elements of a dense matrix as a new csr array, columns sorted, int32 indices if they suffice.

    Raises FormatError unless it has two dimensions.
    """
    check_two_dimensions(x.shape, "dense")
    indptr, indices, data = numpy_conversions.get("dense_to_csr", x.dtype)(x)
    dtype = index_dtype(*x.shape, len(data))
    parts = indptr.astype(dtype, copy=False), indices.astype(dtype, copy=False), data
    return compressed.assemble("csr", *parts, x.shape)


def _from_coo(coo: Coo) -> np.ndarray:
    """Return COO entries as a dense matrix; duplicates are summed."""
    indptr, indices, data = compressed.coo_to_csr(coo)
    out = np.empty(coo.shape, data.dtype)
    numpy_conversions.get("csr_to_dense", data.dtype)(indptr, indices, data, out)
    return out


register(
    Format(
        name="dense",
        is_instance=lambda x: isinstance(x, np.ndarray),
        is_sound=lambda x: True,
        check=_check,
        check_indices=lambda x: None,
        to_coo=lambda x: compressed.csr_to_coo(_to_csr(x)),
        from_coo=_from_coo,
        parts=lambda x: {"values": x},
        build=lambda parts, shape: parts["values"],
        replace=lambda x, parts: np.copyto(np.asarray(x), parts["values"], casting="unsafe"),
        predicted_bytes=lambda rows, columns, nnz, stored, value, index: rows * columns * value,
        zeros=aligned.zeros,
        direct={"csr": _to_csr, "row_sparse": RowSparse.from_dense},
    )
)
