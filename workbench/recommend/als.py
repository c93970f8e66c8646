"""Factors of users and items by alternating least squares, of implicit feedback (Hu, Koren, Volinsky 2008) or ratings.

With Y fixed each row x of the other side is a least-squares problem with the matrix Y'Y + ridge I + sum of w y y' over
the row's entries. The loss depends on products of X and Y alone, so both may be turned by any rotation: here by the
eigenvectors of Y'Y, which becomes diagonal. A step of conjugate gradients then takes no product by it, and it is the
preconditioner (kernel `als_conjugate`): three steps reach a lower loss than three plain ones.
"""

from typing import Any, NamedTuple

import numpy as np

import kernels
from kernels import Sizes
from kernels.blas import matmul

ROWS = 8192
"""Rows of a block of factors in dense products, so that sums of floats stay short and temporary arrays small."""

LARGEST = 0.01
"""Factors at the start are uniform from 0 to this, as in the library implicit."""


SLOWER = 4
"""Time of an operation of a Cholesky factorization, in that of a step of conjugate gradients, 16 to 128 factors."""


class Weights(NamedTuple):
    """What an entry r weighs: w = weight_scale * r + weight_shift in the matrix, v = target_scale * r + target_shift.

    `has_gram` says whether pairs without an entry count, with weight 1 and target 0.
    """

    weight_scale: float
    weight_shift: float
    target_scale: float
    target_shift: float
    has_gram: bool


def weights_of(feedback: str, confidence: str, alpha: float) -> Weights:
    """Return the weights of implicit feedback with confidence 1 + alpha r or as given (alpha r), or of ratings.

    With confidence "log" r is the logarithm of 1 + the value.
    """
    if feedback == "explicit":
        return Weights(0.0, 1.0, 1.0, 0.0, has_gram=False)
    if confidence == "given":
        return Weights(alpha, -1.0, alpha, 0.0, has_gram=True)
    return Weights(alpha, 0.0, alpha, 1.0, has_gram=True)


def ridges(indptr: np.ndarray, regularization: float, scaling: float) -> np.ndarray:
    """Return the ridge float32 [rows] of each row: regularization * entries ** scaling, of one entry at least."""
    if not scaling:
        return np.full(len(indptr) - 1, regularization, np.float32)
    return (regularization * np.maximum(np.diff(indptr), 1.0) ** scaling).astype(np.float32)


def is_cholesky_cheaper(matrix: Any, factors: int, steps: int) -> bool:
    """Return whether Cholesky factorizations are estimated to be faster than `steps` of conjugate gradients.

    By the operations of the two kernels for a CSR matrix [users, items] and its transpose, and their rates.
    """
    rows, entries = sum(matrix.shape), 2 * matrix.nnz
    sizes = Sizes(rows, entries, rows, factors, rows)
    cost = {name: kernels.get(name).cost(sizes).flops for name in ("als_cholesky", "als_conjugate")}
    return cost["als_cholesky"] * SLOWER < cost["als_conjugate"] * (steps + 1) / 4


def gram(y: np.ndarray) -> np.ndarray:
    """Return Y'Y float64 [factors, factors], summed over blocks of rows."""
    total = np.zeros((y.shape[1], y.shape[1]))
    for first in range(0, len(y), ROWS):
        block = y[first : first + ROWS]
        total += matmul(block.T, block)
    return total


def rotate(table: np.ndarray, rotation: np.ndarray) -> None:
    """Multiply a table [rows, factors] from the right by a rotation, in place, a block of rows after the other."""
    for first in range(0, len(table), ROWS):
        block = table[first : first + ROWS]
        block[...] = matmul(block, rotation)


def make_diagonal(y: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Rotate `y` [rows, factors], in place, so that its Gram matrix is diagonal, and `others` with it.

    Returns the diagonal float32 [factors], rising.
    """
    values, vectors = np.linalg.eigh(gram(y))
    rotation = vectors.astype(np.float32)
    for table in (y, *others):
        rotate(table, rotation)
    return np.maximum(values, 0).astype(np.float32)


def solve(
    matrix: Any, y: np.ndarray, diagonal: np.ndarray, ridge: np.ndarray, w: Weights, steps: int, x: np.ndarray
) -> None:
    """Improve x [rows, factors], in place, for the rows of a CSR matrix [rows, len(y)] and fixed factors `y`.

    By `steps` of conjugate gradients from x, or by Cholesky factorizations if 0.

    `diagonal` is that of y's Gram matrix, which must be diagonal; `ridge` float32 [rows].
    """
    entries = matrix.indptr, matrix.indices, matrix.data
    if steps:
        kernels.get("als_conjugate").trusted(*entries, y, diagonal, ridge, *w[:4], steps, x)
    else:
        kernels.get("als_cholesky").trusted(*entries, y, diagonal, ridge, *w[:4], x)


def squared_error(matrix: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean squared difference of the entries of a CSR matrix and the products of factors x and y."""
    dots = np.empty(matrix.nnz, np.float32)
    kernels.get("sddmm").trusted(matrix.indptr, matrix.indices, x, y, dots)
    return float(np.mean(np.square(dots - matrix.data, dtype=np.float64)))


class Factors:
    """Factors of users and items, float32, in training: `iterate` improves both, `finish` sorts them."""

    def __init__(
        self, matrix: Any, factors: int, regularization: float, scaling: float, weights: Weights, steps: int, seed: Any
    ) -> None:
        """Draw initial factors for a CSR matrix [users, items]; it is transposed once."""
        random = np.random.default_rng(seed)
        self.sides = matrix, matrix.T.tocsr()
        self.ridges = [ridges(side.indptr, regularization, scaling) for side in self.sides]
        self.tables = [random.random((n, factors), np.float32) * np.float32(LARGEST) for n in matrix.shape]
        self.weights, self.steps = weights, steps

    def iterate(self) -> None:
        """Improve the users' factors for fixed items, then the items' for fixed users."""
        for side in (0, 1):
            x, y = self.tables[side], self.tables[1 - side]
            diagonal = np.zeros(y.shape[1], np.float32)
            if self.weights.has_gram:
                diagonal = make_diagonal(y, x)
            solve(self.sides[side], y, diagonal, self.ridges[side], self.weights, self.steps, x)

    def finish(self) -> np.ndarray:
        """Rotate both sides so that the items' Gram matrix is diagonal; return its diagonal, the largest last.

        Zeros if it plays no part.
        """
        diagonal = make_diagonal(self.tables[1], self.tables[0])
        return diagonal if self.weights.has_gram else np.zeros_like(diagonal)

    def loss(self) -> float:
        """Return the loss, in float64: weighted squares of the errors plus ridges times the squares of the factors."""
        (matrix, _), (x, y) = self.sides, self.tables
        total = float(np.sum(gram(x) * gram(y))) if self.weights.has_gram else 0.0
        w = self.weights
        for first in range(0, len(x), ROWS):
            block = matrix[first : first + ROWS]
            dots = np.empty(block.nnz, np.float32)
            kernels.get("sddmm").trusted(block.indptr, block.indices, x[first : first + ROWS], y, dots)
            dot, r = dots.astype(float), block.data.astype(float)
            weight, target = w.weight_scale * r + w.weight_shift, w.target_scale * r + w.target_shift
            total += float(np.sum(weight * dot * dot - 2 * target * dot))
            total += float(np.sum(target if w.has_gram else r * r))
        for table, ridge in zip(self.tables, self.ridges, strict=True):
            total += float(np.einsum("ij,ij,i->", table.astype(float), table, ridge))
        return total
