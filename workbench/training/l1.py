"""Linear models with an L1 penalty, by coordinate descent on working sets, for one alpha after the other.

The objective is the mean over the rows of weight * loss + alpha * (l1_ratio * sum|w| + (1 - l1_ratio) / 2 * sum w^2),
without a penalty of the intercept; the weights are those of the columns as they are given. That is scikit-learn's
ElasticNet for the squared loss (half the squared error), and its LogisticRegression with C = 1 / (alpha * rows).

Columns whose pull is near the penalty, and those with a weight, are the working set (strong rule of Tibshirani et al.
2012). On it, each Newton step of the loss is a quadratic that sweeps over columns minimize (`kernels.epochs.l1_csc`),
extrapolated from the last sweeps (Anderson; Bertrand and Massias 2021). All columns are then looked at: this gives the
duality gap, and the columns that have to join. The gap is measured, not estimated: the dual variables are the gradient
of the losses, shrunk until they are feasible (Massias et al. 2018; Bertrand et al. 2022).

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csc_array(np.eye(4))
>>> descent = L1Descent(x, np.float64([1, 2, 3, 4]), None, "squared", has_intercept=False)
>>> descent.minimize(alpha=0.5, l1_ratio=1.0) < 1e-4, descent.weights.round(3).tolist()
(True, [0.0, 0.0, 1.0, 2.0])
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numba import prange

from kernels.epochs.l1_csc import CscColumns
from kernels.epochs.l1_dense import DenseColumns
from kernels.epochs.l1_products import ProductsOfColumns
from kernels.threads import BLOCK, call_parallel, compiled_parallel
from kernels.vector.elementary import exp_of_negative, log1p_of_unit
from workbench.models.scaling import linear_scaling
from workbench.training.descent import minimum_decay
from workbench.training.search import FEW_ROWS, FOLDS, LEAST_ROWS, LOSSES, TENTH, Choice, Found
from workbench.training.setup import SetupError

COORDINATES = "coordinate descent"
"""Name of the method in `Choice`."""
COUNT, WEAKEST, PATIENCE = 20, 1e-3, 3
"""Values of alpha of a search, the least one by the largest that has all weights 0, and how many may gain nothing
before weaker ones are left out."""
UNSEARCHED = 0.1
"""Alpha if none is given and rows are too few for a search, by the largest that has all weights 0."""
TOLERANCE = 1e-4
"""Duality gap, by the loss of zero weights, at which a minimum counts as reached."""
MOST_SWEEPS = 100_000
"""Sweeps over columns for one alpha at most."""
LEAST_STEP, ROUGH = 0.6, 1e-2
"""Share of the penalty before that one alpha may be after another, and the gap of those between that nobody asked for:
a far smaller penalty would have most columns in its first working set."""
NEAR, NEARER = 0.7, 0.98
"""Share of the penalty that the pull of a column has, to be in the first working set, and in those after it."""
LEFT, FEW = 0.85, 8
"""Share of the gap that a working set may leave, and sweeps after which they are extrapolated."""
INNER, CLOSER = 0.3, 0.1
"""What sweeps may leave of the first one's decrease before the next Newton step, and what multiplies that if the gap
is not reached."""
LEAST_CURVATURE = 1e-8
"""Second derivative of a logistic loss at least: of rows that are sure it would be 0."""
MOST_SETS, MOST_HALVED = 100, 40
"""Working sets of one alpha, and how often a step is halved, at most."""
MOST_COMPRESSED, MOST_COMPRESSED_ONCE, TALL, ROWS_AT_ONCE = 1024, 96, 4, 2**18
"""Dense columns, with `TALL` times as many rows, up to which the squared loss is minimized on products of columns, for
many alphas and for one; and values of a block of rows that these are made of."""
ROUNDING = 1e-14
"""Share of an objective that its sums are known to: near the minimum a step that lowers the gap lowers it by less."""
FLAT = 1e-12
"""Share of a column's sum of squares below which what is left without its mean is rounding: its weight stays 0."""


@compiled_parallel
def _write_logistic(
    scores: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    slopes: np.ndarray,
    curvature: np.ndarray,
    losses: np.ndarray,
) -> None:
    """Write the negative gradient and curvature of weighted logistic losses [T], and sums of blocks of rows."""
    for block in prange(losses.size):
        first, total = block * BLOCK, 0.0
        for k in range(first, min(first + BLOCK, scores.size)):
            score, weight, target = scores[k], weights[k], targets[k]
            e = exp_of_negative(-abs(score))
            larger = 1.0 / (1.0 + e)
            smaller = e * larger
            # of a target of 0 or 1 the difference is a probability itself, which does not cancel
            chance = larger if score >= 0 else smaller
            against = smaller if score >= 0 else larger
            slopes[k] = weight * (target * against - (1.0 - target) * chance)
            curvature[k] = weight * max(larger * smaller, LEAST_CURVATURE)
            total += weight * ((score if score > 0 else 0.0) - score * target + log1p_of_unit(e))
        losses[block] = total


@compiled_parallel
def _write_losses(
    scores: np.ndarray,
    moves: np.ndarray,
    length: float,
    targets: np.ndarray,
    weights: np.ndarray,
    losses: np.ndarray,
) -> None:
    """Write sums over blocks of rows of the weighted logistic losses of scores + length * moves [T]."""
    for block in prange(losses.size):
        first, total = block * BLOCK, 0.0
        for k in range(first, min(first + BLOCK, scores.size)):
            score = scores[k] + length * moves[k]
            loss = (score if score > 0 else 0.0) - score * targets[k] + log1p_of_unit(exp_of_negative(-abs(score)))
            total += weights[k] * loss
        losses[block] = total


@compiled_parallel
def _write_entropies(
    dual: np.ndarray, factor: float, targets: np.ndarray, weights: np.ndarray, entropies: np.ndarray
) -> None:
    """Write sums over blocks of rows of -weight * conjugate(loss)(-factor * dual / weight) of logistic losses."""
    for block in prange(entropies.size):
        first, total = block * BLOCK, 0.0
        for k in range(first, min(first + BLOCK, dual.size)):
            if weights[k] > 0.0:
                q = abs(factor * dual[k] / weights[k])  # of a target of 0 or 1 the entropy is the same
                if 0.0 < q < 1.0:
                    total -= weights[k] * (q * np.log(q) + (1.0 - q) * np.log1p(-q))
        entropies[block] = total


class _Squared:
    """Half the squared error of each row: its slopes, curvature and dual objective."""

    is_quadratic = True

    def __init__(self, targets: np.ndarray, weights: np.ndarray, has_intercept: bool) -> None:
        """Keep targets [T] and weights [T] of rows."""
        self.targets, self.weights, self.has_intercept = targets, weights, has_intercept
        self.curvature, self.slopes = weights, np.empty_like(targets)

    def best_constant(self) -> float:
        """Return the scores with the least loss among those that are equal for all rows."""
        return float(np.average(self.targets, weights=self.weights))

    def take(self, scores: np.ndarray) -> float:
        """Write slopes, the negative gradient by scores [T]; return the loss, summed over the rows."""
        errors = self.targets - scores
        np.multiply(self.weights, errors, out=self.slopes)
        return _inner(self.slopes, errors) / 2

    def dual(self) -> np.ndarray:
        """Return dual variables [T], which sum up to 0 with an intercept."""
        if not self.has_intercept:
            return self.slopes
        return self.slopes - self.weights * (self.slopes.sum() / self.weights.sum())

    def best_factor(self, dual: np.ndarray, most: float) -> float:
        """Return the factor, up to `most`, of the dual variables at which the objective without penalty is largest."""
        along, bent = self._along(dual)
        return min(max(along / bent, 0.0), most) if bent > 0 else 0.0

    def dual_value(self, dual: np.ndarray, factor: float) -> float:
        """Return the dual objective without penalty at factor * dual."""
        along, bent = self._along(dual)
        return factor * along - factor**2 * bent / 2

    def _along(self, dual: np.ndarray) -> tuple[float, float]:
        """Return the linear and the quadratic part of the dual objective along `dual`."""
        is_counted = self.weights > 0
        squares = np.divide(dual, self.weights, out=np.zeros_like(dual), where=is_counted)
        return _inner(dual, self.targets), _inner(dual, squares)


class _Products:
    """Half the squared error of rows of the curvature 1, by products of their columns: what has [T] elsewhere has [D].

    Scores are the products of the columns and the scores, slopes those of the columns and the errors.
    """

    is_quadratic = True

    def __init__(self, targets: np.ndarray, square: float, weights: np.ndarray) -> None:
        """Keep the products of columns and targets [D], of targets, and the array of weights [D] that will change."""
        self.targets, self.square, self.weights = targets, square, weights
        self.curvature, self.slopes, self.along, self.bent = np.ones_like(targets), np.empty_like(targets), 0.0, 0.0

    def take(self, scores: np.ndarray) -> float:
        """Write slopes at the scores [D], which are those of the weights; return the loss, summed over the rows."""
        np.subtract(self.targets, scores, out=self.slopes)
        self.along = self.square - _inner(self.weights, self.targets)
        self.bent = self.along - _inner(self.weights, self.slopes)
        return max(self.bent, 0.0) / 2

    def dual(self) -> np.ndarray:
        """Return the products [D] of the columns and the dual variables, which are the errors."""
        return self.slopes

    def best_factor(self, dual: np.ndarray, most: float) -> float:
        """Return the factor, up to `most`, of the dual variables at which the objective without penalty is largest."""
        return min(max(self.along / self.bent, 0.0), most) if self.bent > 0 else 0.0

    def dual_value(self, dual: np.ndarray, factor: float) -> float:
        """Return the dual objective without penalty at factor * dual."""
        return factor * self.along - factor**2 * self.bent / 2


class _Logistic:
    """Logistic loss of each row for targets of 0 and 1: its slopes, curvature and dual objective."""

    is_quadratic = False

    def __init__(self, targets: np.ndarray, weights: np.ndarray, has_intercept: bool) -> None:
        """Keep targets [T] and weights [T] of rows."""
        self.targets, self.weights, self.has_intercept = targets, weights, has_intercept
        self.slopes, self.curvature = np.empty_like(targets), np.empty_like(targets)
        self.sums = np.empty(-(-len(targets) // BLOCK))

    def best_constant(self) -> float:
        """Return the scores with the least loss among those that are equal for all rows."""
        share = float(np.average(self.targets, weights=self.weights))
        return float(np.log(share) - np.log1p(-share)) if 0 < share < 1 else np.inf

    def take(self, scores: np.ndarray) -> float:
        """Write slopes and curvature [T] at the scores [T]; return the loss, summed over the rows."""
        operands = scores, self.targets, self.weights, self.slopes, self.curvature, self.sums
        call_parallel(_write_logistic, 32 * len(scores), *operands)
        return float(self.sums.sum())

    def at(self, scores: np.ndarray, moves: np.ndarray, length: float) -> float:
        """Return the loss of scores + length * moves [T], summed over the rows."""
        operands = scores, moves, length, self.targets, self.weights, self.sums
        call_parallel(_write_losses, 32 * len(scores), *operands)
        return float(self.sums.sum())

    def dual(self) -> np.ndarray:
        """Return dual variables [T], which sum up to 0 with an intercept: the larger side is shrunk."""
        if not self.has_intercept:
            return self.slopes
        is_up = self.slopes > 0
        up, down = float(self.slopes[is_up].sum()), -float(self.slopes[~is_up].sum())
        if not (up > 0 and down > 0):
            return np.zeros_like(self.slopes)
        return self.slopes * np.where(is_up, min(down / up, 1.0), min(up / down, 1.0))

    def best_factor(self, dual: np.ndarray, most: float) -> float:
        """Return the factor of the dual variables, up to `most`, that is in the domain: at most 1."""
        return min(most, 1.0)

    def dual_value(self, dual: np.ndarray, factor: float) -> float:
        """Return the dual objective without penalty at factor * dual."""
        call_parallel(_write_entropies, 32 * len(dual), dual, factor, self.targets, self.weights, self.sums)
        return float(self.sums.sum())


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """Return the sum of a * b [n] on one thread: those of BLAS wait for each other for longer than they add."""
    return float(np.einsum("i,i->", a, b))


def _excess(pulled: np.ndarray, l1: float) -> float:
    """Return the sum of squares of what products [M] exceed the L1 penalty by."""
    over = np.maximum(np.abs(pulled) - l1, 0)
    return _inner(over, over)


def products_of(
    x: DenseColumns, targets: np.ndarray, counts: np.ndarray, means: np.ndarray, constant: float
) -> np.ndarray:
    """Return the products [D + 1, D + 1] of the columns of weighted dense X [T, D] about their means, and the targets.

    The targets, about `constant`, are the last one.
    """
    (turned,), size = x.parts, x.columns + 1
    gram, step = np.zeros((size, size)), max(ROWS_AT_ONCE // size, 1)
    is_plain = turned.dtype == np.float64 and not constant and not means.any() and bool((counts == 1).all())
    if is_plain:  # without a copy
        gram[:-1, :-1], gram[-1, -1] = turned @ turned.T, targets @ targets
        gram[:-1, -1] = gram[-1, :-1] = turned @ targets
    for first in range(0, 0 if is_plain else x.rows, step):
        rows = slice(first, min(first + step, x.rows))
        block = np.empty((size, rows.stop - first))
        np.subtract(turned[:, rows], means[:, None], out=block[:-1])
        np.subtract(targets[rows], constant, out=block[-1])
        block *= np.sqrt(counts[rows])
        gram += block @ block.T
    return gram


def columns_of(x: Any) -> CscColumns | DenseColumns:
    """Return X [T, D] as the descent reads it: csc and dense arrays in Fortran order as they are, others are copied."""
    if isinstance(x, np.ndarray):
        return DenseColumns(np.asfortranarray(x).T)
    x = x.tocsc()
    if not x.has_canonical_format:  # the sum of squares of a column is that of its summed duplicates
        x = x.copy()
        x.sum_duplicates()
    return CscColumns(x.indptr, x.indices, x.data, x.shape[0])


@final
class L1Descent:
    """Weights and intercept of a linear model of one output, on their way to the minimum for one alpha after another.

    `weights` float64 [D] have exact zeros; `intercept` is a number; `gap` is the duality gap of the last minimization
    by the loss of zero weights, `gap_of_mean` that of the objective; `sweeps` is what it did.
    """

    def __init__(
        self,
        x: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        loss: str,
        *,
        has_intercept: bool,
        is_path: bool = False,
    ) -> None:
        """Begin at zero weights and the best intercept, for X [T, D] and targets y [T], 0 and 1 for logistic.

        `x` is csc or dense, float32 or float64, or what `columns_of` returned; `weights` [T] are those of the rows.
        `is_path` is whether many alphas follow, which pays for products of more dense columns.
        """
        self.rows = x if isinstance(x, CscColumns | DenseColumns) else columns_of(x)
        self.x: CscColumns | DenseColumns | ProductsOfColumns = self.rows
        targets = np.ascontiguousarray(y, np.float64)
        counts = np.ones(len(targets)) if weights is None else np.ascontiguousarray(weights, np.float64)
        made = (_Squared if loss == "squared" else _Logistic)(targets, counts, has_intercept)
        self.loss: _Squared | _Logistic | _Products = made
        self.has_intercept, self.total, self._every = has_intercept, float(counts.sum()), np.arange(self.x.columns)
        self.intercept = made.best_constant() if has_intercept else 0.0
        self.is_decided = not np.isfinite(self.intercept)  # all rows that count have one class
        self.intercept = float(np.nan_to_num(self.intercept, posinf=40.0))
        self._center: tuple[float, np.ndarray] | None = None
        self.weights, self.sweeps = np.zeros(self.x.columns), 0
        most = MOST_COMPRESSED if is_path else MOST_COMPRESSED_ONCE
        is_tall = len(targets) >= TALL * self.x.columns <= TALL * most
        if isinstance(self.x, DenseColumns) and is_tall and loss == "squared" and self.total > 0:
            means = self.x.pulled(self._every, counts) / self.total if has_intercept else np.zeros(self.x.columns)
            self._center = self.intercept, means
            products = products_of(self.x, targets, counts, means, self.intercept)
            self.x, targets = ProductsOfColumns(np.ascontiguousarray(products[:-1, :-1])), products[:-1, -1].copy()
            self.loss, self.has_intercept = _Products(targets, float(products[-1, -1]), self.weights), False
        self._sums, self._squares = np.zeros((2, self.x.columns))
        self._has_squares = np.zeros(self.x.columns, bool)  # of the squared loss they never change
        self.scores = np.full(len(targets), self.intercept if self._center is None else 0.0)
        self.value = self.start = self.loss.take(self.scores)
        self.gap = self.gap_of_mean = 0.0
        self._look()
        self._last = float(np.abs(self._pulled).max(initial=0.0))
        self.alpha_max = self._last / max(self.total, 1e-300)

    def predict(self) -> np.ndarray:
        """Return the scores [T] of the rows."""
        if self._center is None:
            return self.scores
        active, scores = np.flatnonzero(self.weights), np.full(self.rows.rows, self.intercept)
        self.rows.add_scores(active, self.weights[active], scores)
        return scores

    def _look(self) -> None:
        """Take the dual variables of the current scores, and their products with all columns."""
        self._dual = self.loss.dual()
        self._pulled = self.x.pulled(self._every, self._dual)

    def minimize(self, alpha: float, l1_ratio: float, tolerance: float = TOLERANCE, most: int = MOST_SWEEPS) -> float:
        """Move to the minimum for `alpha`, from where the descent is; return the duality gap by the loss at zero.

        `l1_ratio` is above 0, `alpha` too. After `most` sweeps over columns it ends, with whatever gap there is.
        """
        penalty, self.sweeps = alpha * l1_ratio * self.total, 0
        if self.is_decided or not self.start > 0:
            return 0.0
        steps = int(np.ceil(np.log(max(self._last / penalty, 1.0)) / -np.log(LEAST_STEP))) if self._last > 0 else 1
        for between in np.geomspace(self._last, penalty, steps + 1)[1:-1] if steps > 1 else ():
            self._minimize(float(between), float(between) * (1 - l1_ratio) / l1_ratio, max(tolerance, ROUGH), most)
        return self._minimize(penalty, penalty * (1 - l1_ratio) / l1_ratio, tolerance, most)

    def _minimize(self, l1: float, decay: float, tolerance: float, most: int) -> float:
        """Move to the minimum for penalties of the sums over the rows; return the gap by the loss at zero."""
        target, best = tolerance * self.start, -np.inf
        near = max(2 * l1 - self._last, NEAR * l1) if self._last > l1 else l1
        for _ in range(MOST_SETS):
            best = max(best, self._bound(self._dual, self._pulled, l1, decay))
            gap = self.value + self._penalty(self.weights, l1, decay) - best
            if gap <= target or self.sweeps >= most:
                break
            columns = np.flatnonzero((np.abs(self._pulled) >= near) | (self.weights != 0))
            self._minimize_on(columns, l1, decay, LEFT * target, most)
            near = NEARER * l1
            self._look()
        self._last, self.gap, self.gap_of_mean = l1, max(gap, 0.0) / self.start, max(gap, 0.0) / self.total
        if self._center is not None:
            constant, means = self._center
            self.intercept = constant - float(means @ self.weights)
        return self.gap

    def _penalty(self, weights: np.ndarray, l1: float, decay: float) -> float:
        """Return the penalty of some weights [M]."""
        penalty = l1 * float(np.abs(weights).sum())
        return penalty + decay / 2 * _inner(weights, weights) if decay else penalty

    def _bound(self, dual: np.ndarray, pulled: np.ndarray, l1: float, decay: float) -> float:
        """Return a lower bound of the objective from dual variables [T] and their products [M] with the columns."""
        largest = float(np.abs(pulled).max(initial=0.0))
        factor = self.loss.best_factor(dual, l1 / largest if largest > 0 else np.inf)
        value = self.loss.dual_value(dual, factor)
        if not decay:
            return value
        return max(value, self.loss.dual_value(dual, 1.0) - _excess(pulled, l1) / (2 * decay))

    def _minimize_on(self, columns: np.ndarray, l1: float, decay: float, target: float, most: int) -> None:
        """Minimize over the weights of some columns [M] until their duality gap is `target`."""
        share, best = INNER, -np.inf
        while self.sweeps < most:
            before, loss = self.weights[columns], self.value
            self._sweep(columns, l1, decay, share, most)
            moves = np.zeros_like(self.scores)
            changes = self.weights[columns] - before
            self.x.add_scores(columns, changes, moves)
            moves -= self._shift
            length, is_lower = 1.0, True
            if isinstance(self.loss, _Logistic):
                old = loss + self._penalty(before, l1, decay)
                for _ in range(MOST_HALVED):
                    new = self.loss.at(self.scores, moves, length)
                    new += self._penalty(before + length * changes, l1, decay)
                    if is_lower := new <= old + ROUNDING * abs(old):
                        break
                    length /= 2
                length = length if is_lower else 0.0
                self.weights[columns] = before + length * changes if length < 1 else self.weights[columns]
            self.scores += length * moves
            self.intercept -= length * self._shift
            self.value = self.loss.take(self.scores)
            dual = self.loss.dual()
            best = max(best, self._bound(dual, self.x.pulled(columns, dual), l1, decay))
            if self.value + self._penalty(self.weights[columns], l1, decay) - best <= target or not is_lower:
                break
            share *= CLOSER if self.loss.is_quadratic else 1

    def _sweep(self, columns: np.ndarray, l1: float, decay: float, share: float, most: int) -> None:
        """Minimize the quadratic at the current scores over some weights, in place, to `share` of the first decrease.

        Sets `_shift`, by which the intercept has to fall.
        """
        curvature, total = self.loss.curvature, float(self.loss.curvature.sum()) if self.has_intercept else 0.0
        self._take_curvature(columns, curvature, total)
        pulls = self.loss.slopes.copy()
        shift = np.array([-pulls.sum() / total]) if self.has_intercept else np.zeros(0)
        state = curvature, pulls, self._sums, self._squares, self.weights, shift
        steps, x = self.x.kernel.trusted, self.x.parts
        first, done = None, 0
        while self.sweeps < most:
            history = np.empty((1, len(columns)))
            _, moved = steps(*x, columns, *state, history, l1, decay, total, 0.0)
            self.sweeps, done = self.sweeps + 1, done + 1
            if first is None:
                first = moved
            if not moved > share * first or (done > 1 and moved == 0):
                break
            active = columns[self.weights[columns] != 0]
            while self.sweeps < most:
                start, history = self.weights[active], np.empty((FEW, len(active)))
                count, moved = steps(*x, active, *state, history, l1, decay, total, share * first / 2)
                self.sweeps += count
                if moved <= share * first / 2 or not moved > 0:
                    break
                self._extrapolate(active, np.vstack([start, history]), state, l1, decay, total)
        self._shift = float(shift[0]) if self.has_intercept else 0.0

    def _take_curvature(self, columns: np.ndarray, curvature: np.ndarray, total: float) -> None:
        """Write the sums of curvature * x and, about the mean, of curvature * x**2 of the columns that change."""
        if self.loss.is_quadratic:
            columns = columns[~self._has_squares[columns]]
            self._has_squares[columns] = True
        if not len(columns):
            return
        self.x.write_curvature(columns, curvature, self._sums, self._squares)
        if self.has_intercept:
            whole = self._squares[columns]
            left = whole - self._sums[columns] ** 2 / total
            self._squares[columns] = np.where(left > FLAT * whole, left, 0.0)

    def _extrapolate(
        self, columns: np.ndarray, history: np.ndarray, state: tuple, l1: float, decay: float, total: float
    ) -> None:
        """Move to the Anderson extrapolation of the weights [K + 1, M] after the last sweeps, if that is lower."""
        curvature, pulls, sums, _, weights, shift = state
        steps = np.diff(history, axis=0)
        products = np.einsum("ij,kj->ik", steps, steps)
        products[np.diag_indices(len(products))] += 1e-10 * np.trace(products)
        try:
            shares = np.linalg.solve(products, np.ones(len(products)))
        except np.linalg.LinAlgError:
            return
        if not abs(whole := shares.sum()) > 0:
            return
        own = history[-1]
        new = np.einsum("i,ij->j", shares / whole, history[1:])
        new = np.where(new * own > 0, new, 0.0)
        changes, moves = new - own, np.zeros_like(pulls)
        self.x.add_scores(columns, changes, moves)
        fall = _inner(changes, sums[columns]) / total if shift.size else 0.0
        centred, slopes = moves - fall if shift.size else moves, pulls
        bent = curvature * centred
        if isinstance(self.x, ProductsOfColumns):  # of which moves and pulls are products with columns
            bent, centred, slopes = moves[columns], changes, pulls[columns]
        linear = _inner(slopes, centred) + (float(shift[0]) * float(bent.sum()) if shift.size else 0.0)
        change = _inner(bent, centred) / 2 - linear
        change += self._penalty(new, l1, decay) - self._penalty(own, l1, decay)
        if change < 0:
            weights[columns] = new
            pulls -= curvature * moves
            if shift.size:
                shift[0] += fall


def targets_of(y: np.ndarray, loss: str, outputs: int) -> list[tuple[np.ndarray, str]]:
    """Return (targets [T], loss) of each output: of several classes those of each one against the rest."""
    if loss == "softmax":
        return [((y == k).astype(np.float64), "logistic") for k in range(outputs)]
    return [(np.ascontiguousarray(column, np.float64), loss) for column in y.reshape(len(y), -1).T]


def fit_l1(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: str,
    *,
    outputs: int,
    has_intercept: bool,
    l1_ratio: float,
    alpha: float | None = None,
    count: int = COUNT,
    folds: int | None = None,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    most: int = MOST_SWEEPS,
) -> Found:
    """Return weights and intercept at the minimum for one alpha, which is chosen on held-out rows if it is None.

    Parameters
    ----------
    x : csr, csc or dense array of shape [rows, features]
        float32 or float64. Csr arrays are copied by columns, dense ones in C order to Fortran order.
    y : array
        Targets as the loss takes them: [rows, outputs], or int64 [rows] for softmax, whose classes are trained one
        against the rest, with the logistic loss.
    weights : array of shape [rows] or None
        What the loss of each row counts for.
    loss : str
        logistic, squared or softmax.
    outputs : int
        Columns of the scores.
    has_intercept : bool
        Whether a value for each output, without a penalty, is added to the scores.
    l1_ratio : float
        Share of the L1 norm in the penalty, above 0 and up to 1.
    alpha : float, optional
        What multiplies the penalty, above 0. By default the one with the least held-out loss of `count` values.
    count, folds, seed
        As of `search_decay`.
    tolerance : float
        Duality gap, by the loss of zero weights, at which a minimum counts as reached.
    most : int
        Sweeps over columns of each minimization at most.

    Returns
    -------
    Found
        Weights with exact zeros, intercept, and the choice.

    Raises
    ------
    SetupError
        For an alpha that is not above 0.
    """
    if alpha is not None and not 0 < alpha < np.inf:
        raise SetupError(
            f"alpha is {alpha} with l1_ratio={l1_ratio:g}; expected a finite number above 0.\n"
            "Leave alpha out to have it chosen, or leave l1_ratio out to train without an L1 penalty."
        )
    scaling = linear_scaling(x, y, weights, loss, has_intercept=has_intercept, scales=False)
    columns, parts, choice = columns_of(scaling.rows(x)), targets_of(y, loss, outputs), None
    descents = [L1Descent(columns, target, weights, of, has_intercept=has_intercept) for target, of in parts]
    largest = max(descent.alpha_max for descent in descents) / l1_ratio
    if alpha is None and columns.rows >= LEAST_ROWS and largest > 0:
        alphas = np.geomspace(largest, largest * WEAKEST, count)
        choice = _choose(columns, parts, weights, has_intercept, l1_ratio, alphas, folds, seed, tolerance, most)
    chosen = choice.decay if choice is not None else alpha or UNSEARCHED * largest or 1.0
    for descent in descents:
        descent.minimize(chosen, l1_ratio, tolerance, most)
    point = np.zeros((columns.columns + 1, len(parts)))
    for k, descent in enumerate(descents):
        point[:-1, k], point[-1, k] = descent.weights, descent.intercept
    if scaling.center is not None:
        point[-1] -= scaling.center @ point[:-1]
    dtype, sweeps = np.dtype(x.dtype), max(descent.sweeps for descent in descents)
    is_minimum = all(descent.gap <= tolerance for descent in descents)
    if choice is not None:
        choice = replace(choice, epochs_final=sweeps)
        sweeps += choice.epochs
    intercept = point[-1].astype(dtype) if has_intercept else None
    gap = float(sum(descent.gap_of_mean for descent in descents))
    return Found(point[:-1].astype(dtype), intercept, chosen, max(sweeps, 1), is_minimum, 0.0, choice, gap)


def _choose(
    columns: CscColumns | DenseColumns,
    parts: Sequence[tuple[np.ndarray, str]],
    weights: np.ndarray | None,
    has_intercept: bool,
    l1_ratio: float,
    alphas: np.ndarray,
    folds: int | None,
    seed: int,
    tolerance: float,
    most: int,
) -> Choice:
    """Choose one of `alphas` [K], strong ones first, by the loss of rows that are held out: their weight is 0."""
    total = columns.rows
    folds = folds or (FOLDS if total <= FEW_ROWS else 1)
    part = np.empty(total, np.int64)
    part[np.random.default_rng(seed).permutation(total)] = np.arange(total) % (TENTH if folds == 1 else folds)
    counts = np.ones(total) if weights is None else weights.astype(np.float64)
    runs = []
    for fold in range(folds):
        out = np.flatnonzero((part == fold) & (counts > 0))
        kept = counts * (part != fold)
        kept *= counts.sum() / max(kept.sum(), 1e-300)
        given: dict[str, Any] = {"has_intercept": has_intercept, "is_path": True}
        made = [L1Descent(columns, target, kept, loss, **given) for target, loss in parts]
        runs.append((out, made))
    losses, best, sweeps = np.full(len(alphas), np.nan), 0, 0
    for k, alpha in enumerate(alphas):
        loss, counted = 0.0, 0.0
        for out, made in runs:
            for descent, (target, name) in zip(made, parts, strict=True):
                descent.minimize(float(alpha), l1_ratio, max(tolerance, 1e-3), most)
                sweeps += descent.sweeps
                each = LOSSES[name](descent.predict()[out][None, :, None], target[out][:, None])[0]
                loss += float(each @ counts[out])
            counted += float(counts[out].sum())
        losses[k] = loss / max(counted, 1e-300)
        best = k if losses[k] < losses[best] else best
        if k - best >= PATIENCE:
            break
    known = np.flatnonzero(~np.isnan(losses))
    decay = minimum_decay(alphas[known], losses[known])
    held_out = int(sum(len(out) for out, _ in runs))
    return Choice(decay, alphas, losses, held_out, folds, -(-sweeps // max(folds * len(parts), 1)), method=COORDINATES)
