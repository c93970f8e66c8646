"""The type of indices: int32 as long as it suffices, int64 from there on."""

import numpy as np

INT32_LIMIT = 2**31 - 1
"""Largest shape or nnz that int32 indices are used for. Tests lower it to reach the 64-bit side with small matrices."""


def index_dtype(*largest: int) -> np.dtype:
    """int32, or int64 if one of the numbers (shape, nnz) is beyond `INT32_LIMIT`."""
    return np.dtype(np.int64 if max(largest) > INT32_LIMIT else np.int32)


def kept_or_widened(dtype: np.dtype, *largest: int) -> np.dtype:
    """`dtype`, or int64 if one of the numbers needs it."""
    return np.promote_types(dtype, index_dtype(*largest))
