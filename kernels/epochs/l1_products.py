"""Columns one by one, each by its step on a squared loss with an L1 penalty that is known by products of columns alone.

Arguments  products float64 [D, D], symmetric, those of all columns; pulls float64 [D], the product of each column and
           the negative gradient by the scores; all others as in `kernels.epochs.l1_csc`, of which curvature, sums and
           total are not read: rows have the curvature 1, and there is no intercept
Writes     pulls, weights and history[k], the weights of the columns after sweep k; returns (sweeps done, the sum of
           squares * change**2 over the last one). K sweeps are done, or fewer if that sum is at most `enough`
Assumes    squares are the diagonal of products; shift has length 0
Cost       a sweep: 6 flops for each column, 2*D more for each whose weight changes; reads a row of products for that
Parallel   not: each column reads what the one before it wrote; same bits on every run
Limits     D**2 < 2**63
Source     Friedman, Hastie and Tibshirani 2010, "Regularization paths for generalized linear models via coordinate
           descent", covariance updates
"""

import functools

import numpy as np

from kernels.code_cache import inlined
from kernels.contract import Case, Cost, Kernel, Sizes
from kernels.epochs.l1_csc import STATE, WRITES, make_steps
from kernels.threads import compiled


def reference(products, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough):
    """Compute the sweeps in plain loops. Writes pulls, weights, history; returns (sweeps, moved by the last)."""
    moved, sweep = 0.0, 0
    for sweep in range(1, len(history) + 1):
        moved = 0.0
        for place, j in enumerate(columns):
            own, pull = weights[j], pulls[j] + squares[j] * weights[j]
            if squares[j] > 0:
                weights[j] = np.sign(pull) * max(abs(pull) - l1, 0.0) / (squares[j] + decay)
            pulls -= (weights[j] - own) * products[j]
            moved += squares[j] * (weights[j] - own) ** 2
            history[sweep - 1, place] = weights[j]
        if moved <= enough:
            break
    return sweep, float(moved)


@inlined
def dot(products, j, pulls):
    """Return the product, float64, of column j and the negative gradient: it is kept."""
    return pulls[j]


@inlined
def add_weighted(products, j, factor, curvature, pulls):
    """Add factor * row j of products [D, D] to pulls [D], in place."""
    row = products[j]
    for k in range(pulls.size):
        pulls[k] += factor * row[k]


_steps = make_steps(dot, add_weighted, "products")


def cpu(products, columns, curvature, pulls, sums, squares, weights, shift, history, l1, decay, total, enough):
    """Run the sweeps on one core. Writes pulls, weights and history; returns (sweeps, moved by the last)."""
    counts, numbers = np.zeros(2), (float(l1), float(decay), float(total), float(enough))
    _steps(products, columns, curvature, pulls, sums, squares, weights, shift, history, *numbers, counts)
    return int(counts[0]), float(counts[1])


@compiled
def _add_scores(products, columns, changes, scores):
    """Add the rows of products of the columns times changes [M] to scores [D], in place."""
    for place in range(columns.size):
        row, change = products[np.uint64(columns[place])], changes[place]
        if change != 0.0:
            for k in range(scores.size):
                scores[k] += change * row[k]


class ProductsOfColumns:
    """Products [D, D] of all columns, as coordinate descent on a squared loss reads them in place of X.

    What has a number for each row of X has one for each column here: its product with that.
    """

    def __init__(self, products: np.ndarray) -> None:
        """Keep the array."""
        self.parts, self.rows, self.columns, self.kernel = (products,), len(products), len(products), get()

    def pulled(self, columns: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the products [M] of the columns and slopes, which are known: slopes [D] has them."""
        return slopes[columns]

    def write_curvature(
        self, columns: np.ndarray, curvature: np.ndarray, sums: np.ndarray, squares: np.ndarray
    ) -> None:
        """Write the sums of squares of the columns to squares [D]."""
        squares[columns] = self.parts[0].diagonal()[columns]

    def add_scores(self, columns: np.ndarray, changes: np.ndarray, scores: np.ndarray) -> None:
        """Add the products with columns times changes [M] to scores [D], in place."""
        _add_scores(*self.parts, columns, changes, scores)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a sweep over s.D columns in which all weights change."""
    return Cost((2 * s.D + 6) * s.D, 8 * s.D * s.D + 4 * 8 * s.D)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: products of columns of random numbers, of which one is empty."""
    generator = np.random.default_rng(case.seed)
    x = generator.standard_normal((case.D + 3, case.D))
    x[:, case.D // 2 : case.D // 2 + 1] = 0
    columns = np.sort(generator.permutation(case.D)[: max(case.D - 1, 0)])
    products, numbers = x.T @ x, [generator.standard_normal(case.D) for _ in range(4)]
    curvature, pulls, sums, weights = numbers
    state = columns, curvature, pulls, sums, products.diagonal().copy(), weights / 9, np.zeros(0)
    return products, *state, np.zeros((3, len(columns))), 0.05, 0.1, 1.0, 0.0


@functools.cache
def get() -> Kernel:
    """Return the kernel `l1_steps_products`, cached."""
    state = STATE.replace("d[T]", "d[D]")
    return Kernel("l1_steps_products", f"products:d[D,D] {state}", reference, cpu, None, cost, arguments, WRITES)
