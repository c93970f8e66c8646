"""EASE (Steck 2019): a linear model of items by items, B = I - P / diag(P) with P = (X'X + regularization I)^-1.

It is the dense side of the question: X'X is a product of sparse matrices, its inverse a dense matrix [items, items].
"""

from typing import Any

import numpy as np

import kernels
from kernels.registry import format_size
from workbench.data.errors import DataError

BLOCK = 1024
"""Rows and columns that are mirrored at once."""


def bytes_of(items: int) -> int:
    """Return the bytes that EASE allocates for so many items: one float32 matrix, in which all is computed."""
    return 4 * items * items


def require_memory(items: int) -> None:
    """Raise DataError if the matrix of EASE does not fit into the memory that is free now."""
    import psutil  # slow to import

    needed, free = bytes_of(items), psutil.virtual_memory().available
    if needed > free:
        most = int((free / 4) ** 0.5)
        raise DataError(
            f"EASE needs {format_size(needed)} for {items:,} items, a dense matrix [items, items], and "
            f"{format_size(free)} are free: at most {most:,} items.\n"
            'Type model="als", whose memory grows with users + items, or leave out rare items.'
        )


def fit(matrix: Any, regularization: float) -> np.ndarray:
    """Return B float32 [items, items], with a zero diagonal, for a CSR matrix X [users, items]: scores are X @ B.

    One such array is allocated; the Gram matrix is computed, factorized and inverted in it. Raises DataError if it does
    not fit into memory, or is singular.
    """
    import scipy.linalg  # 40 modules, which no other command needs

    items = matrix.shape[1]
    require_memory(items)
    weights = np.empty((items, items), np.float32)
    columns = matrix.T.tocsr()
    kernels.get("csr_csr_dense").trusted(
        columns.indptr, columns.indices, columns.data, matrix.indptr, matrix.indices, matrix.data, weights
    )
    weights.flat[:: items + 1] += np.float32(regularization)
    factor, info = scipy.linalg.lapack.spotrf(weights.T, lower=0, clean=0, overwrite_a=1)
    if info == 0:
        inverse, info = scipy.linalg.lapack.spotri(factor, lower=0, overwrite_c=1)
    if info:
        raise DataError(
            f"The Gram matrix of the items plus {regularization:g} on its diagonal is singular in float32; expected a "
            "larger regularization, such as 500."
        )
    weights = inverse.T  # in C order its lower triangle is the inverse
    _mirror(weights)
    weights /= -weights.diagonal().copy()
    weights.flat[:: items + 1] = 0
    return weights


def _mirror(square: np.ndarray) -> None:
    """Copy the lower triangle of a square matrix to the upper one, in place, block by block."""
    for first in range(0, len(square), BLOCK):
        rows = slice(first, first + BLOCK)
        own = square[rows, rows]
        own[...] = np.tril(own) + np.tril(own, -1).T
        square[rows, first + BLOCK :] = square[first + BLOCK :, rows].T
