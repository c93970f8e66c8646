"""Minimum of the penalized loss of a linear model by L-BFGS, for many rows of few columns.

The objective is the sum of count * loss over the rows / `total` + decay / 2 * |W|^2, without a penalty of the
intercept, as dual ascent has it. A step reads the rows twice: for what it changes the scores by, and for the gradient;
in between the length of the step is found from scores alone. The first guess of the inverse Hessian is its diagonal, so
that columns of any scale converge alike. Vectors of one decay are kept for the next, whose Hessian differs by a known
multiple of the identity (Nocedal 1980; Byrd, Nocedal and Schnabel 1994 for the limited memory).

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array(np.eye(4))
>>> descent = Descent(x, np.float64([[1], [2], [3], [4]]), None, "squared", 1, has_intercept=False, total=4)
>>> descent.minimize(0.25, 1e-9) > 0, descent.weights.round(3).ravel().tolist()
(True, [0.5, 1.0, 1.5, 2.0])
"""

from collections import deque
from collections.abc import Callable
from typing import Any, final

import numpy as np

PAIRS = 8
"""Steps that the inverse Hessian is made from."""
MOST_STEPS = 60
"""Steps of a minimization at most."""
MOST_SHORTER, SHORTEST, DECREASE = 12, 0.1, 1e-4
"""How often a step is shortened at most, to which share of it at least each time, and the share of the decrease that
the gradient promises with which a step is long enough (Armijo)."""


def _logistic(scores: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return logistic losses and probabilities of scores [T, N], of targets [T, N]; both [T, N]."""
    small = np.exp(-np.abs(scores))
    losses = np.log(1 + small)  # vector code, which NumPy has none of for log1p
    losses += np.maximum(scores, 0)
    losses -= scores * targets
    return losses, np.where(scores >= 0, 1, small) / (1 + small)


def _squared(scores: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return half the squared errors of scores [T, N], of targets [T, N], and the scores."""
    return (scores - targets) ** 2 / 2, scores


def _softmax(scores: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cross-entropies [T] and probabilities [T, N] of scores [T, N], of targets [T, N] of 0 and 1."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    return np.log(sums[:, 0]) - (shifted * targets).sum(axis=1), exponentials / sums


LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "logistic": _logistic,
    "squared": _squared,
    "softmax": _softmax,
}
"""Losses, and expected targets whose difference to the targets is the gradient, by the name of the kernel."""


UNLIKE = 30
"""Ratio of the root mean squares of two columns' entries from which on dual ascent hardly moves the smaller one."""


def unlike_square(x: Any) -> float | None:
    """Return a sum of squares that stands for a row of CSR x [R, D] if two columns have very different scales.

    It is the entries of a row times the geometric mean of the columns' mean squares, which a single large column does
    not rule. None if the root mean squares differ by at most `UNLIKE` times, or D > R.
    """
    if x.shape[1] > x.shape[0] or not x.nnz:
        return None
    squares = np.bincount(x.indices, weights=np.square(x.data, dtype=np.float64))
    means = squares[squares > 0] / np.bincount(x.indices)[squares > 0]
    if not len(means) or means.max() <= UNLIKE**2 * means.min():
        return None
    return float(x.nnz / x.shape[0] * np.exp(np.log(means).mean()))


@final
class Descent:
    """Weights and intercept of a linear model on its way to the minimum.

    `point` float64 [D + 1, N] are the weights and, as its last row, the intercept; `scores` [T, N] those of the rows.
    """

    def __init__(
        self,
        x: Any,
        y: np.ndarray,
        counts: np.ndarray | None,
        loss: str,
        outputs: int,
        *,
        has_intercept: bool,
        total: int,
    ) -> None:
        """Begin at zero for csr x [T, D], targets y as the loss takes them, what the rows count for [T], None for 1.

        `total` is what the sum of the losses is divided by.
        """
        self.x, self.transposed, self.loss = x, x.T, LOSSES[loss]
        self.y = np.eye(outputs, dtype=x.dtype)[y] if loss == "softmax" else y
        self.count(counts)
        self.is_curved, self.has_intercept, self.total = loss != "squared", has_intercept, total
        self.point, self.scores = np.zeros((x.shape[1] + 1, outputs)), np.zeros((x.shape[0], outputs), x.dtype)
        self.squares: Any = None
        self.pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=PAIRS)
        self.decay = 0.0

    @property
    def weights(self) -> np.ndarray:
        """Return the weights [D, N] in the dtype of x."""
        return self.point[:-1].astype(self.x.dtype)

    @property
    def intercept(self) -> np.ndarray:
        """Return the intercept [N] in the dtype of x."""
        return self.point[-1].astype(self.x.dtype)

    def count(self, counts: np.ndarray | None) -> None:
        """Set what the loss of each row counts for, [T], 0 to leave it out; None for 1."""
        self.counts = None if counts is None else counts[:, None]

    def scores_of(self, x: Any, point: np.ndarray) -> np.ndarray:
        """Return the scores [R, N] of csr x [R, D] for weights and intercept `point` [D + 1, N]."""
        return _product(x, point[:-1].astype(x.dtype)) + point[-1].astype(x.dtype)

    def minimize(self, decay: float, tolerance: float, most: int = MOST_STEPS) -> int:
        """Set `point` to the minimum for `decay`, and `scores`; return the passes over the rows, 1 and each step's.

        It ends when the decrease that the next step promises is below `tolerance` times the objective.
        """
        for change, difference in self.pairs:
            difference[:-1] += (decay - self.decay) * change[:-1]
        self.decay, self.scores = decay, self.scores_of(self.x, self.point)
        value, means = self._value(self.scores, self.point)
        gradient, diagonal = self._gradient(means, self.point), self._diagonal(means)
        for passes in range(1, most + 1):
            direction = self._direction(gradient, diagonal)
            promised = float(np.vdot(gradient, direction))
            if not promised > 2 * tolerance * value:
                return passes
            moves = self.scores_of(self.x, direction)
            length = 1.0 if self.pairs else self._newton_length(means, moves, direction, promised)
            for _ in range(MOST_SHORTER):
                point = self.point - length * direction
                scores = self.scores - self.x.dtype.type(length) * moves
                new_value, means = self._value(scores, point)
                if new_value <= value - DECREASE * length * promised:
                    break
                bend = 2 * (new_value - value + length * promised)
                length *= min(max(length * promised / bend, SHORTEST), 0.5) if np.isfinite(bend) else SHORTEST
            else:
                return passes  # a decrease is below what the dtype can tell
            new_gradient = self._gradient(means, point)
            change, difference = point - self.point, new_gradient - gradient
            if np.vdot(change, difference) > 0:
                self.pairs.append((change, difference))
            self.point, self.scores, gradient, value = point, scores, new_gradient, new_value
        return most + 1

    def gradient_scores(self) -> np.ndarray:
        """Return the gradient of each row's count * loss with respect to its scores, [T, N], after a minimization."""
        slopes = self.loss(self.scores, self.y)[1] - self.y
        return slopes if self.counts is None else slopes * self.counts

    def _value(self, scores: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and the expected targets [T, N] for scores [T, N] of `point` [D + 1, N]."""
        losses, means = self.loss(scores, self.y)
        if self.counts is not None:
            losses = losses * (self.counts if losses.ndim > 1 else self.counts[:, 0])
        penalty = float(np.vdot(point[:-1], point[:-1])) * self.decay / 2
        return float(losses.sum(dtype=np.float64)) / self.total + penalty, means

    def _gradient(self, means: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Return the gradient [D + 1, N] of the objective for expected targets [T, N] of `point`."""
        slopes = means - self.y
        if self.counts is not None:
            slopes *= self.counts
        gradient = self.decay * point
        gradient[:-1] += _product(self.transposed, slopes) / self.total
        gradient[-1] = slopes.sum(axis=0, dtype=np.float64) / self.total if self.has_intercept else 0
        return gradient

    def _curvature(self, means: np.ndarray) -> np.ndarray:
        """Return the second derivative [T, N] of the rows' losses with respect to each score, for expected targets."""
        curvature = means * (1 - means) if self.is_curved else np.ones_like(means)
        return curvature if self.counts is None else curvature * self.counts

    def _diagonal(self, means: np.ndarray) -> np.ndarray:
        """Return the diagonal of the Hessian [D + 1, N] for expected targets [T, N], with 1 if it is 0."""
        if self.squares is None:
            self.squares = type(self.x)((self.x.data**2, self.x.indices, self.x.indptr), shape=self.x.shape).T
        curvature = self._curvature(means)
        diagonal = np.empty_like(self.point)
        diagonal[:-1] = _product(self.squares, curvature) / self.total + self.decay
        diagonal[-1] = curvature.sum(axis=0, dtype=np.float64) / self.total
        return np.where(diagonal > 0, diagonal, 1)

    def _newton_length(self, means: np.ndarray, moves: np.ndarray, direction: np.ndarray, promised: float) -> float:
        """Return the step length at which the derivative along the direction would be 0 if its slope stayed."""
        bend = float((self._curvature(means) * moves**2).sum(dtype=np.float64)) / self.total
        bend += self.decay * float(np.vdot(direction[:-1], direction[:-1]))
        return min(1.0, promised / bend) if bend > 0 else 1.0

    def _direction(self, gradient: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """Return the approximate inverse Hessian times `gradient`, both [D + 1, N], by the two loops of L-BFGS."""
        direction, shares = gradient.copy(), []
        for change, difference in reversed(self.pairs):
            share = np.vdot(change, direction) / np.vdot(change, difference)
            direction -= share * difference
            shares.append(share)
        direction /= diagonal
        if self.pairs:
            change, difference = self.pairs[-1]
            direction *= np.vdot(change, difference) / np.vdot(difference, difference / diagonal)
        for (change, difference), share in zip(self.pairs, reversed(shares), strict=True):
            direction += (share - np.vdot(difference, direction) / np.vdot(change, difference)) * change
        return direction


def _product(x: Any, factors: np.ndarray) -> np.ndarray:
    """Return x @ factors [D, N], by SciPy's faster code for a vector if N is 1."""
    return (x @ factors[:, 0])[:, None] if factors.shape[1] == 1 else x @ factors
