"""Minimum of the penalized loss of a linear model by L-BFGS, for many rows of few columns.

The objective is the sum of count * loss over the rows / `total` + decay / 2 * |W|^2, without a penalty of the
intercept, as dual ascent has it. A step reads the rows twice: for what it changes the scores by, and, from a copy by
columns, for the gradient; in between the length of the step is found from scores alone. The first guess of the inverse
Hessian is its diagonal, so that columns of any scale converge alike; after some steps, if columns are few, it is that
of a sample of the rows. Vectors of one decay are kept for the next, whose Hessian differs by a known multiple of the
identity (Nocedal 1980; Byrd, Nocedal and Schnabel 1994 for the limited memory).

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array(np.eye(4))
>>> descent = Descent(x, np.float64([[1], [2], [3], [4]]), None, "squared", 1, has_intercept=False, total=4)
>>> descent.minimize(0.25, 1e-9) > 0, descent.weights.round(3).ravel().tolist()
(True, [0.5, 1.0, 1.5, 2.0])
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from kernels.products import csr_dense
from kernels.threads import compiled, compiled_part
from kernels.vector.elementary import exp_of_negative, log1p_of_unit

PAIRS = 8
"""Steps that the inverse Hessian is made from."""
MOST_STEPS = 60
"""Steps of a minimization at most."""
MOST_SHORTER, SHORTEST, DECREASE = 12, 0.1, 1e-4
"""How often a step is shortened at most, to which share of it at least each time, and the share of the decrease that
the gradient promises with which a step is long enough (Armijo)."""

FACTOR_AFTER, FACTOR_ROWS, FACTOR_COST, MOST_FACTOR, RIDGE = 5, 4, 8, 500, 1e-6
"""Passes at least before a Hessian of all columns is factored, rows for each column that it is made from, the D**3 for
each entry that take as long as a pass, columns at most, and what is added to the diagonal, relative to its mean."""
MOST_COPIED = 2**20
"""Entries up to which rows are copied by columns: of more, the copy takes longer than what it saves in a few passes."""
LINE_STEPS, LONGEST = 3, 2.0
"""Steps of Newton's method along a line, and the most that one changes the length by."""


@compiled
def _write_logistic(scores: np.ndarray, targets: np.ndarray, losses: np.ndarray, means: np.ndarray) -> None:
    """Overwrite losses and means [n] by the logistic losses and probabilities of scores [n], for targets [n]."""
    one = scores.dtype.type(1)
    for k in range(scores.size):
        s = scores[k]
        e = exp_of_negative(-abs(s))
        larger = one / (one + e)
        losses[k] = ((s if s > 0 else one - one) - s * targets[k]) + log1p_of_unit(e)
        means[k] = larger if s >= 0 else e * larger


def _logistic(scores: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return logistic losses and probabilities of scores [T, N], of targets [T, N]; both [T, N]."""
    losses, means = np.empty_like(scores), np.empty_like(scores)
    _write_logistic(scores.reshape(-1), targets.reshape(-1), losses.reshape(-1), means.reshape(-1))
    return losses, means


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
GLANCES, GLANCE = 32, 2048
"""Pieces of the entries, and entries of each, that tell of large data whether columns may differ so: to add up all
entries by column takes as long as an epoch of dual ascent."""


def unlike_square(x: Any) -> float | None:
    """Return a sum of squares that stands for a row of CSR x [R, D] if two columns have very different scales.

    It is the entries of a row times the geometric mean of the columns' mean squares, which a single large column does
    not rule. None if the root mean squares differ by at most `UNLIKE` times, or D > R: a minimum of few
    rows that the decay hardly holds back, as it does columns of large entries, predicts worse than dual ascent.
    Of more entries than the `GLANCES`, None also if the columns of these do not differ.
    """
    if x.shape[1] > x.shape[0] or not x.nnz:
        return None
    sizes = np.abs(x.data)
    if sizes.max() <= UNLIKE * sizes.min():
        return None
    if x.nnz > 2 * GLANCES * GLANCE and not _are_unlike(_mean_squares(*_glances(x))):
        return None
    means = _mean_squares(x.indices, x.data)
    return float(x.nnz / x.shape[0] * np.exp(np.log(means).mean())) if _are_unlike(means) else None


def _mean_squares(columns: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Return the mean square of the entries `data` [z] in each of their `columns` [z], without columns of zeros."""
    squares, counts = np.bincount(columns, weights=np.square(data, dtype=np.float64)), np.bincount(columns)
    return squares[squares > 0] / counts[squares > 0]


def _are_unlike(means: np.ndarray) -> bool:
    """Return whether two of the mean squares differ by more than the square of `UNLIKE`."""
    return bool(len(means)) and means.max() > UNLIKE**2 * means.min()


def _glances(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and data of `GLANCES` pieces of CSR x, `GLANCE` entries each, at equal distances."""
    starts = np.linspace(0, x.nnz - GLANCE, GLANCES).astype(np.int64)
    places = (starts[:, None] + np.arange(GLANCE)).reshape(-1)
    return x.indices[places], x.data[places]


def of_active_columns(x: Any) -> tuple[Any, np.ndarray | None]:
    """Return (CSR x with only the columns that have entries, their indices); (x, None) if most columns have entries."""
    rows, features = x.shape
    if features <= rows:
        return x, None
    is_active = np.zeros(features, np.bool_)
    is_active[x.indices] = True
    active = np.flatnonzero(is_active)
    if 2 * len(active) > features or not len(active):
        return x, None
    place = np.zeros(features, x.indices.dtype)
    place[active] = np.arange(len(active))
    return type(x)((x.data, place[x.indices], x.indptr), shape=(rows, len(active))), active


NEAR = 5
"""Losses that the polynomial goes through: with decays a factor of 7 apart, a parabola through three losses, which rise
far more steeply towards weak decays, has its minimum at 1.4 times the best decay."""


def minimum_decay(decays: np.ndarray, losses: np.ndarray) -> float:
    """Return the decay at the minimum of a polynomial over log decay, between the neighbours of the best loss.

    The polynomial goes through the `NEAR` losses around the best. The best decay itself if it is the first or last.
    """
    best = int(losses.argmin())
    if not 0 < best < len(decays) - 1:
        return float(decays[best])
    first = max(0, min(best - NEAR // 2, len(decays) - NEAR))
    near = losses[first : first + NEAR]
    powers = np.vander(np.arange(len(near)) - (best - first), increasing=True)
    shifts = np.linspace(-1, 1, 201)
    values = np.vander(shifts, len(near), increasing=True) @ np.linalg.solve(powers, near)
    shift = float(shifts[values.argmin()])
    return float(decays[best] * (decays[best + 1] / decays[best]) ** shift)


def promising(losses: np.ndarray, kept: slice, count: int) -> slice:
    """Return `count` of the decay indices `kept` around the least of `losses` [K], more on the side with lower ones.

    `kept` itself if it has no more.
    """
    if kept.stop - kept.start <= count:
        return kept
    best = kept.start + int(losses[kept].argmin())
    firsts = [min(max(best - before, kept.start), kept.stop - count) for before in ((count - 1) // 2, count // 2)]
    first = min(firsts, key=lambda first: losses[first : first + count].sum())
    return slice(first, first + count)


def update_losses(losses: np.ndarray, kept: slice, now: np.ndarray) -> None:
    """Write `now`, the losses of the decay indices `kept`, into `losses` [K], and change the others in place.

    Each of the others changes by as much as the nearest kept loss, but not below the least of `now`.
    """
    first, last = now[0] - losses[kept.start], now[-1] - losses[kept.stop - 1]
    losses[: kept.start] = np.maximum(losses[: kept.start] + first, now.min())
    losses[kept.stop :] = np.maximum(losses[kept.stop :] + last, now.min())
    losses[kept] = now


def shares(rows: Any) -> np.ndarray:
    """Return the share of the rows [N] in each class, or with each of the labels."""
    if rows.loss == "softmax":
        return np.bincount(rows.y, minlength=rows.outputs) / len(rows.y)
    return rows.y.mean(axis=0, dtype=np.float64)


def rarity(rows: Any) -> float:
    """Return 4 p (1 - p), from 0 to 1, of the share p of the rarest class or label; 1 for targets that are numbers."""
    if rows.loss == "squared":
        return 1.0
    classes = shares(rows)
    return 4 * float((classes * (1 - classes)).min())


def constant_loss(rows: Any) -> float:
    """Return the mean loss of the best constant scores, of classes: the entropy of their shares."""
    classes = np.clip(shares(rows), 1e-30, 1)
    entropy = -float((classes * np.log(classes)).sum())
    if rows.loss == "softmax":
        return entropy
    others = np.clip(1 - classes, 1e-30, 1)
    return entropy - float((others * np.log(others)).sum())


Guess = Callable[[np.ndarray], np.ndarray]
"""First guess of the inverse Hessian times a gradient [D + 1, N]."""


class State(NamedTuple):
    """Point [D + 1, N], scores [T, N], decay, and kept steps [2, steps, D + 1, N] of a descent."""

    point: np.ndarray
    scores: np.ndarray
    decay: float
    pairs: np.ndarray


class Reached(NamedTuple):
    """Objective, expected targets [T, N], gradient [D + 1, N] and first guess at the end of a minimization."""

    value: float
    means: np.ndarray
    gradient: np.ndarray
    divide: Guess


@final
class Descent:
    """Weights and intercept of a linear model on its way to the minimum.

    `point` float64 [D + 1, N] are the weights and, as its last row, the intercept; `scores` [T, N] those of the rows;
    `pairs` [2, steps, D + 1, N] the changes of the point in up to `PAIRS` steps, and the differences of its gradients.
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
        """Begin at zero weights and the best intercept for csr x [T, D] and targets y as the loss takes them.

        `counts` [T] are what the loss of each row counts for, None for 1, 0 to leave it out; `total` is what the sum of
        the losses is divided by.
        """
        self.x, self.loss = x, LOSSES[loss]
        self.y = np.eye(outputs, dtype=x.dtype)[y] if loss == "softmax" else y
        self.counts = None if counts is None else counts[:, None]
        self.decay = 0.0
        self.weight = float(x.shape[0] if counts is None else counts.sum())
        self.is_curved, self.has_intercept, self.total = loss != "squared", has_intercept, total
        self.point, self.scores = np.zeros((x.shape[1] + 1, outputs)), np.zeros((x.shape[0], outputs), x.dtype)
        if has_intercept:
            self.point[-1] = self._best_intercept(loss)
            self.scores += self.intercept
        self.reached: Reached | None = None
        self.pairs = np.zeros((2, 0, *self.point.shape))

    @cached_property
    def columns(self) -> tuple[Any, Any]:
        """Return x.T [D, T] and it with squared entries: csr copies up to `MOST_COPIED` entries, else csc views."""
        columns = self.x.T.tocsr() if self.x.nnz <= MOST_COPIED else self.x.T
        return columns, type(columns)((columns.data**2, columns.indices, columns.indptr), shape=columns.shape)

    @property
    def weights(self) -> np.ndarray:
        """Return the weights [D, N] in the dtype of x."""
        return self.point[:-1].astype(self.x.dtype)

    @property
    def intercept(self) -> np.ndarray:
        """Return the intercept [N] in the dtype of x."""
        return self.point[-1].astype(self.x.dtype)

    def move_to(self, point: np.ndarray) -> None:
        """Set weights and intercept `point` [D + 1, N], and the scores of the rows."""
        self.point, self.scores, self.reached = point, self.scores_of(self.x, point), None

    def state(self) -> State:
        """Return what `restore` and `extrapolate` take."""
        return State(self.point, self.scores, self.decay, self.pairs.copy())

    def restore(self, state: State) -> None:
        """Go back to what `state` returned."""
        self.point, self.scores, self.decay, self.reached = state.point, state.scores, state.decay, None
        self.pairs = state.pairs.copy()

    def go_on_from(self, other: "Descent") -> "Descent":
        """Take the point and the pairs of `other`, of the same objective on some of the rows; return this descent.

        Gradients of its loss are scaled by the ratio of what the rows count for.
        """
        if other.x is self.x:
            self.columns = other.columns
        self.move_to(other.point)
        self.decay = other.decay
        ratio = self.weight / max(other.weight, 1e-30)
        self.pairs = other.pairs.copy()
        changes, differences = self.pairs
        differences *= ratio
        differences[:, :-1] += (1 - ratio) * self.decay * changes[:, :-1]
        return self

    def extrapolate(self, before: State, decay: float) -> None:
        """Move on along the line from the minimum `before` to this one, to the least objective of another decay on it.

        The length is found from scores alone, by Newton's method; nothing moves unless the objective falls.
        """
        line, moves = self.point - before.point, self.scores - before.scores
        bend, slope = (decay * float(np.vdot(line[:-1], other[:-1])) for other in (line, self.point))
        old, length, scores = self.decay, 0.0, self.scores
        self.decay = decay
        value, means = first = self._value(scores, self.point)
        for _ in range(LINE_STEPS):
            rises = float(np.vdot(self._slopes(means), moves)) / self.total + slope + length * bend
            curvature = float((self._curvature(means) * moves**2).sum(dtype=np.float64)) / self.total + bend
            if not curvature > 0:
                break
            length += min(max(-rises / curvature, -LONGEST), LONGEST)
            scores = self.scores + self.x.dtype.type(length) * moves
            value, means = self._value(scores, self.point + length * line)
        self.decay = old
        if value < first[0]:
            self.point, self.scores, self.reached = self.point + length * line, scores, None

    def _best_intercept(self, loss: str) -> np.ndarray:
        """Return the intercept [N] of the least loss without weights; finite if a label is on all rows, or on none."""
        means = (self.y if self.counts is None else self.counts * self.y).sum(axis=0, dtype=np.float64)
        means /= max(self.weight, 1e-30)
        if loss == "squared":
            return means
        least = 1 / (2 + self.weight)
        return np.log(np.maximum(means, least) / (np.maximum(1 - means, least) if loss == "logistic" else 1))

    def scores_of(self, x: Any, point: np.ndarray) -> np.ndarray:
        """Return the scores [R, N] of csr x [R, D] for weights and intercept `point` [D + 1, N]."""
        return multiply(x.indptr, x.indices, x.data, point[:-1].astype(x.dtype)) + point[-1].astype(x.dtype)

    def minimize(self, decay: float, tolerance: float, most: int = MOST_STEPS) -> int:
        """Set `point` to the minimum for `decay`, and `scores`; return the passes over the rows, 1 and each step's.

        It ends when the decrease that the next step promises is below `tolerance` times the objective.
        """
        if self.reached is None or decay != self.decay:
            self.pairs[1, :, :-1] += (decay - self.decay) * self.pairs[0, :, :-1]
            self.decay = decay
            value, means = self._value(self.scores, self.point)
            gradient, divide = self._gradient(means, self.point), self._diagonal(means)
        else:
            value, means, gradient, divide = self.reached
        worth = max(FACTOR_AFTER, self._passes_worth_a_factor())
        for passes in range(1, most + 1):
            if passes == worth:
                divide, worth = self._factor(means) or divide, 3 * worth
            direction = self._direction(gradient, divide)
            promised = float(np.vdot(gradient, direction))
            if not promised > 2 * tolerance * value:
                break
            moves = self.scores_of(self.x, direction)
            length = 1.0 if self.pairs.size else self._newton_length(means, moves, direction, promised)
            for _ in range(MOST_SHORTER):
                point = self.point - length * direction
                scores = self.scores - self.x.dtype.type(length) * moves
                new_value, new_means = self._value(scores, point)
                if new_value <= value - DECREASE * length * promised:
                    break
                bend = 2 * (new_value - value + length * promised)
                length *= min(max(length * promised / bend, SHORTEST), 0.5) if np.isfinite(bend) else SHORTEST
            else:
                break  # a decrease is below what the dtype can tell
            new_gradient = self._gradient(new_means, point)
            pair = np.stack([point - self.point, new_gradient - gradient])
            if np.vdot(*pair) > 0:
                self.pairs = np.concatenate([self.pairs[:, 1 - PAIRS :], pair[:, None]], axis=1)
            self.point, self.scores, gradient = point, scores, new_gradient
            value, means = new_value, new_means
        else:
            passes = most + 1
        self.reached = Reached(value, means, gradient, divide)
        return passes

    def gradient_scores(self) -> np.ndarray:
        """Return the gradient of each row's count * loss with respect to its scores, [T, N], after a minimization."""
        return self._slopes(self.loss(self.scores, self.y)[1])

    def _value(self, scores: np.ndarray, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and the expected targets [T, N] for scores [T, N] of `point` [D + 1, N]."""
        losses, means = self.loss(scores, self.y)
        if self.counts is not None:
            losses = losses * (self.counts if losses.ndim > 1 else self.counts[:, 0])
        penalty = float(np.vdot(point[:-1], point[:-1])) * self.decay / 2
        return float(losses.sum(dtype=np.float64)) / self.total + penalty, means

    def _gradient(self, means: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Return the gradient [D + 1, N] of the objective for expected targets [T, N] of `point`."""
        slopes = self._slopes(means)
        gradient = self.decay * point
        gradient[:-1] += _sum_columns(self.columns[0], slopes) / self.total
        gradient[-1] = slopes.sum(axis=0, dtype=np.float64) / self.total if self.has_intercept else 0
        return gradient

    def _slopes(self, means: np.ndarray) -> np.ndarray:
        """Return the gradient [T, N] of the rows' losses with respect to each score, for expected targets [T, N]."""
        slopes = means - self.y
        return slopes if self.counts is None else slopes * self.counts

    def _curvature(self, means: np.ndarray) -> np.ndarray:
        """Return the second derivative [T, N] of the rows' losses with respect to each score, for expected targets."""
        curvature = means * (1 - means) if self.is_curved else np.ones_like(means)
        return curvature if self.counts is None else curvature * self.counts

    def _diagonal(self, means: np.ndarray) -> Guess:
        """Return a function that divides by the Hessian's diagonal for expected targets [T, N], by 1 if that is 0."""
        curvature = self._curvature(means)
        diagonal = np.empty_like(self.point)
        diagonal[:-1] = _sum_columns(self.columns[1], curvature) / self.total + self.decay
        diagonal[-1] = curvature.sum(axis=0, dtype=np.float64) / self.total
        diagonal = np.where(diagonal > 0, diagonal, 1)
        return lambda gradient: gradient / diagonal

    def _passes_worth_a_factor(self) -> int:
        """Return how many passes over the rows take as long as `_factor`; a large number for several outputs."""
        features = self.x.shape[1]
        is_possible = self.point.shape[1] == 1 and features <= MOST_FACTOR
        return features**3 // (FACTOR_COST * max(self.x.nnz, 1)) if is_possible else MOST_STEPS + 1

    def _factor(self, means: np.ndarray) -> Guess | None:
        """Return a function that solves by the Hessian [D + 1, D + 1] of some rows for expected targets [T, 1].

        Rows are taken as often as their curvature is large. None if that cannot be factored.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        ends = np.cumsum(self._curvature(means)[:, 0], dtype=np.float64)
        count = FACTOR_ROWS * len(self.point)
        some = np.searchsorted(ends, (np.arange(count) + 0.5) / count * ends[-1])
        rows = np.full((count, len(self.point)), float(self.has_intercept), self.x.dtype)
        rows[:, :-1] = self.x[np.minimum(some, len(ends) - 1)].toarray()
        hessian = (rows.T @ rows).astype(np.float64) * (ends[-1] / count / self.total)
        diagonal = np.arange(len(hessian))
        hessian[diagonal, diagonal] += self.decay + RIDGE * hessian[diagonal, diagonal].mean()
        if not self.has_intercept:
            hessian[-1, -1] = 1
        try:
            factor = cho_factor(hessian, lower=True, overwrite_a=True)
        except (LinAlgError, ValueError):  # rounded to an indefinite matrix, or not finite
            return None
        return lambda gradient: cho_solve(factor, gradient, check_finite=False)

    def _newton_length(self, means: np.ndarray, moves: np.ndarray, direction: np.ndarray, promised: float) -> float:
        """Return the step length at which the derivative along the direction would be 0 if its slope stayed."""
        bend = float((self._curvature(means) * moves**2).sum(dtype=np.float64)) / self.total
        bend += self.decay * float(np.vdot(direction[:-1], direction[:-1]))
        return min(1.0, promised / bend) if bend > 0 else 1.0

    def _direction(self, gradient: np.ndarray, divide: Guess) -> np.ndarray:
        """Return the approximate inverse Hessian times `gradient`, both [D + 1, N], by the two loops of L-BFGS.

        `divide` applies the first guess of it.
        """
        direction, shares = gradient.copy(), np.empty(self.pairs.shape[1])
        flat, (changes, differences) = direction.reshape(-1), self.pairs.reshape(2, len(shares), direction.size)
        _subtract_differences(changes, differences, flat, shares)
        direction = divide(direction)
        if len(shares):
            difference = self.pairs[1, -1]
            direction *= np.vdot(changes[-1], difference) / np.vdot(difference, divide(difference))
            _add_changes(changes, differences, direction.reshape(-1), shares)
        return direction


@compiled_part
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return the dot product of a and b [n]; four sums in turn, as each would wait for the one before."""
    total = 0.0
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = a.size // 4 * 4
    for k in range(0, whole, 4):
        first += a[k] * b[k]
        second += a[k + 1] * b[k + 1]
        third += a[k + 2] * b[k + 2]
        fourth += a[k + 3] * b[k + 3]
    for k in range(whole, a.size):
        total += a[k] * b[k]
    return total + ((first + second) + (third + fourth))


@compiled
def _subtract_differences(
    changes: np.ndarray, differences: np.ndarray, direction: np.ndarray, shares: np.ndarray
) -> None:
    """Do the first loop of L-BFGS, from the last pair [steps, n] on: change direction [n] and write shares [steps]."""
    for step in range(len(shares) - 1, -1, -1):
        shares[step] = _dot(changes[step], direction) / _dot(changes[step], differences[step])
        for k in range(direction.size):
            direction[k] -= shares[step] * differences[step, k]


@compiled
def _add_changes(changes: np.ndarray, differences: np.ndarray, direction: np.ndarray, shares: np.ndarray) -> None:
    """Do the second loop of L-BFGS, from the first pair [steps, n] on: change direction [n] by what `shares` tell."""
    for step in range(len(shares)):
        share = shares[step] - _dot(differences[step], direction) / _dot(changes[step], differences[step])
        for k in range(direction.size):
            direction[k] += share * changes[step, k]


def multiply(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the product [R, N], of their dtype, of a matrix [R, D] in CSR form and factors [D, N]."""
    out = np.empty((len(indptr) - 1, factors.shape[1]), factors.dtype)
    csr_dense.cpu(indptr, indices, data, factors, out)
    return out


def _sum_columns(columns: Any, factors: np.ndarray) -> np.ndarray:
    """Return columns [D, T] in csr or csc @ factors [T, N]; of csc by SciPy's faster code for a vector if N is 1."""
    if columns.format == "csr":
        return multiply(columns.indptr, columns.indices, columns.data, factors)
    return (columns @ factors[:, 0])[:, None] if factors.shape[1] == 1 else columns @ factors
