"""Minimum of the penalized loss of a linear model by Newton's method with conjugate gradients.

The objective is the sum of count * loss over the rows / `total` + decay / 2 * the sum of penalty * w**2, without a
penalty of the intercept. A step of conjugate gradients reads the rows twice: for what it changes the scores by, and,
from a copy by columns, for the product with the Hessian; the length of a Newton step is found from scores alone. They
are preconditioned by the Hessian's diagonal, so that columns of any scale converge alike; after some steps, if columns
are few, by the Hessian of a sample of the rows. Half the Newton decrement is the distance to the minimum of the
quadratic model (Boyd and Vandenberghe 2004, 9.5): the minimization ends when it, or the duality gap |g|**2 / (2 decay),
is below a share of the objective.

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array(np.eye(4))
>>> descent = Descent(x, np.float64([[1], [2], [3], [4]]), None, "squared", 1, has_intercept=False, total=4)
>>> descent.minimize(0.25, 1e-9) > 0, descent.weights.round(3).ravel().tolist(), descent.is_minimum
(True, [0.5, 1.0, 1.5, 2.0], True)
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from kernels.products import csr_dense
from kernels.threads import compiled
from kernels.vector.elementary import exp_of_negative, log1p_of_unit
from workbench.watching import tell

MOST_PASSES = 2000
"""Passes over the rows of a minimization at most."""
ROUNDED = 1e-10
"""Distance to the minimum, relative, below which it is rounding if it falls no further."""
LOOSE, MOST_CHECKED = 1e-3, 200
"""Distance to the minimum, relative, at which it counts as reached after the last pass, and steps to measure it."""
MOST_SHORTER, SHORTEST, DECREASE = 30, 0.1, 1e-4
"""How often a step is shortened at most, to which share of it at least each time, and the share of the decrease that
the gradient promises with which a step is long enough (Armijo)."""
INEXACT, REST = 0.3, 0.5
"""Share of the Newton decrement that conjugate gradients may leave far from the minimum, and near to it, there as a
share of what the minimization may leave."""
FLOOR, ROUNDING, FLOOR_UNBOUNDED = 1e-18, 1e-15, 1e-6
"""Share of the first objective below which a distance is none, by which rounding may raise it, and, of classes without
a penalty, whose objective may have no minimum, below which they are separated."""

FACTOR_AFTER, FACTOR_COST, MOST_FACTOR, MOST_CLASSES = 16, 3, 500, 100
"""Passes at least before a Hessian of all columns is factored, the D**3 for each entry that take as long as a pass, and
columns, and columns times classes of softmax, at most: with 650 the factors take longer than what they save."""
FACTOR_ROWS, FACTOR_ENTRIES, RARE = 2, 2**22, 0.1
"""Rows for each column that the Hessian is made from, or all rows up to so many products; and the share of a column's
diagonal below which they have missed it."""
WELL = 1e3
"""Condition of the Hessian divided by its diagonal, up to which that alone tells the distance to the minimum."""
RIDGE, WIDER = 1e-11, 1e5
"""What is added to the Hessian's diagonal, relatively, and how many times that in float32."""
MOST_COPIED = 2**20
"""Entries up to which rows are copied by columns: of more, the copy takes longer than what it saves in a few passes."""
MOST_FACTORS = 60
"""Hessians of a minimization at most: Newton's method needs more only if rounding of float32 scores decides where its
steps go, as with weights of rows that differ by 1e18."""
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


def columns_of(x: Any) -> Any:
    """Return the transpose [D, T] of csr x: a csr copy up to `MOST_COPIED` entries, else a csc view."""
    return x.T.tocsr() if x.nnz <= MOST_COPIED else x.T


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


def decays_near_best(losses: np.ndarray, kept: slice, count: int) -> slice:
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


def class_shares(rows: Any) -> np.ndarray:
    """Return the share of the rows [N] in each class, or with each of the labels."""
    if rows.loss == "softmax":
        return np.bincount(rows.y, minlength=rows.outputs) / len(rows.y)
    return rows.y.mean(axis=0, dtype=np.float64)


def rarest_balance(rows: Any) -> float:
    """Return 4 p (1 - p), from 0 (absent) to 1 (half of the rows), of the share p of the rarest class or label.

    1 for targets that are numbers.
    """
    if rows.loss == "squared":
        return 1.0
    classes = class_shares(rows)
    return 4 * float((classes * (1 - classes)).min())


def constant_loss(rows: Any) -> float:
    """Return the mean loss of the best constant scores, of classes: the entropy of their shares."""
    classes = np.clip(class_shares(rows), 1e-30, 1)
    entropy = -float((classes * np.log(classes)).sum())
    if rows.loss == "softmax":
        return entropy
    others = np.clip(1 - classes, 1e-30, 1)
    return entropy - float((others * np.log(others)).sum())


Inverse = Callable[[np.ndarray], np.ndarray]
"""Approximate inverse of the Hessian times a gradient [D + 1, N]."""


class State(NamedTuple):
    """Point [D + 1, N] and scores [T, N] of a descent."""

    point: np.ndarray
    scores: np.ndarray


@final
class Descent:
    """Weights and intercept of a linear model on its way to the minimum.

    `point` float64 [D + 1, N] are the weights and, as its last row, the intercept; `scores` [T, N] those of the rows;
    `is_minimum` is whether the last minimization reached its tolerance.
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
        penalty: np.ndarray | None = None,
        columns: Any = None,
    ) -> None:
        """Begin at zero weights and the best intercept for csr x [T, D] and targets y as the loss takes them.

        `counts` [T] are what the loss of each row counts for, None for 1, 0 to leave it out; `total` is what the sum of
        the losses is divided by; `penalty` [D] multiplies the decay of each column, None for 1; `columns` is what
        `columns_of(x)` returned, if it is known.
        """
        self.x, self.loss = x, LOSSES[loss]
        if columns is not None:
            self.columns = columns
        self.y = np.eye(outputs, dtype=x.dtype)[y] if loss == "softmax" else y
        self.counts = None if counts is None else counts[:, None]
        self.penalty = np.append(np.ones(x.shape[1]) if penalty is None else penalty, 0.0)[:, None]
        self.weight = float(x.shape[0] if counts is None else counts.sum())
        self.kind, self.has_intercept, self.total = loss, has_intercept, total
        self.point, self.scores = np.zeros((x.shape[1] + 1, outputs)), np.zeros((x.shape[0], outputs), x.dtype)
        if has_intercept:
            self.point[-1] = self._best_intercept(loss)
            self.scores += self.point[-1].astype(x.dtype)
        self.start, self.is_minimum = self._value(self.scores, self.point, 0.0)[0], False

    @cached_property
    def columns(self) -> Any:
        """Return x.T [D, T], as `columns_of` does."""
        return columns_of(self.x)

    @cached_property
    def squares(self) -> Any:
        """Return `columns` with squared entries."""
        columns = self.columns
        return type(columns)((columns.data**2, columns.indices, columns.indptr), shape=columns.shape)

    @property
    def weights(self) -> np.ndarray:
        """Return the weights [D, N] in the dtype of x."""
        return self.point[:-1].astype(self.x.dtype)

    @property
    def intercept(self) -> np.ndarray:
        """Return the intercept [N] in the dtype of x."""
        return self.point[-1].astype(self.x.dtype)

    def move_to(self, point: np.ndarray) -> "Descent":
        """Set weights and intercept `point` [D + 1, N], and the scores of the rows; return this descent."""
        self.point, self.scores = point, self.scores_of(self.x, point)
        return self

    def state(self) -> State:
        """Return what `extrapolate` takes."""
        return State(self.point, self.scores)

    def extrapolate(self, before: State, decay: float) -> None:
        """Move on along the line from the minimum `before` to this one, to the least objective of another decay on it.

        The length is found from scores alone, by Newton's method; nothing moves unless the objective falls.
        """
        line, moves, length, scores = self.point - before.point, self.scores - before.scores, 0.0, self.scores
        bend, slope = (decay * _inner(self.penalty * line, other) for other in (line, self.point))
        value, means = first = self._value(scores, self.point, decay)
        for _ in range(LINE_STEPS):
            rises = _inner(self._slopes(means), moves) / self.total + slope + length * bend
            curvature = _inner(self._curved(means, moves), moves) / self.total + bend
            if not curvature > 0:
                break
            length += min(max(-rises / curvature, -LONGEST), LONGEST)
            scores = self.scores + self.x.dtype.type(length) * moves
            value, means = self._value(scores, self.point + length * line, decay)
        if value < first[0]:
            self.point, self.scores = self.point + length * line, scores

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

    def minimize(self, decay: float, tolerance: float, most: int = MOST_PASSES, is_last: bool = False) -> int:
        """Set `point` to the minimum for `decay`, `scores` and `is_minimum`; return the passes over the rows.

        It ends when the distance to the minimum is below `tolerance` times the objective, after `most` passes, or after
        `MOST_FACTORS` Hessians. If
        columns are few, the distance `is_last` measured by the Hessian of all columns: by its diagonal alone, it may be
        far too small.
        """
        value, means = self._value(self.scores, self.point, decay)
        floor = self.start * (FLOOR_UNBOUNDED if self.kind != "squared" and not decay else FLOOR)
        passes, self.is_minimum, worth = 0, False, max(FACTOR_AFTER, self._passes_worth_a_factor())
        before, divide, preconditioned, is_sure = np.inf, None, np.inf, not is_last or self.x.shape[1] > MOST_FACTOR
        factors = 0
        while True:
            gradient = self._pulled(self._slopes(means)) + decay * self.penalty * self.point
            enough = tolerance * value + floor
            if (self.kind != "squared" and not decay and value <= floor) or self._gap(gradient, means, decay) <= enough:
                self.is_minimum = True
                break
            if passes >= worth and (factor := self._factor(means, decay)):
                divide, preconditioned, is_sure = factor, value, True
                factors += 1
            elif divide is None or value < preconditioned / 2:
                divide, preconditioned = self._diagonal(means, decay), value
            if passes >= most or factors >= MOST_FACTORS:
                enough = LOOSE * value + floor
                *_, promised, _, is_exact = self._solve(gradient, means, divide, decay, enough, MOST_CHECKED)
                self.is_minimum = is_exact and promised <= 2 * enough
                break
            left = worth - passes if passes < worth < MOST_PASSES else MOST_PASSES
            solved = self._solve(gradient, means, divide, decay, enough, min(left, most - passes))
            direction, moves, promised, steps, is_exact = solved
            passes += steps
            if not steps and not is_sure and worth > passes:  # by the diagonal it is there: the Hessian of all tells
                worth = passes
                continue
            if not steps:  # by rounding the objective has no curvature along the gradient, and would stay so for ever
                distance = _inner(gradient, divide(gradient)) / 2
                self.is_minimum = distance <= max(enough, LOOSE * value)
                break
            is_rounding = is_exact and before / 4 < promised <= ROUNDED * value  # it falls no further
            before = promised
            length, point, scores = 1.0, self.point - direction, self.scores - moves
            for _ in range(MOST_SHORTER):
                new_value, new_means = self._value(scores, point, decay)
                if new_value <= value - DECREASE * length * promised + ROUNDING * self.start:
                    break
                bend = 2 * (new_value - value + length * promised)
                length *= min(max(length * promised / bend, SHORTEST), 0.5) if np.isfinite(bend) else SHORTEST
                point, scores = self.point - length * direction, self.scores - self.x.dtype.type(length) * moves
            else:
                self.is_minimum = is_exact and promised <= 2 * max(enough, LOOSE * value)
                break  # a decrease is below what the dtype can tell
            self.point, self.scores, value, means = point, scores, new_value, new_means
            if is_last:
                tell("pass", passes, losses={"loss and penalty": value})
            if is_rounding or (is_exact and (self.kind == "squared" or promised <= 2 * enough)):
                if is_sure or self._condition(means, decay) <= WELL:
                    self.is_minimum = True
                    break
                worth = passes
        return passes

    def objective(self, decay: float) -> float:
        """Return the objective at `point`."""
        return self._value(self.scores, self.point, decay)[0]

    def _gap(self, gradient: np.ndarray, means: np.ndarray, decay: float) -> float:
        """Return the duality gap at the gradients of the rows' losses, the dual variables; infinity without decay."""
        if not decay:
            return np.inf
        of_weights = _inner(gradient[:-1], gradient[:-1] / self.penalty[:-1]) / (2 * decay)
        curvature = self._curvature(means).sum(axis=0, dtype=np.float64) / self.total
        return of_weights + float((gradient[-1] ** 2 / np.maximum(curvature, 1e-30)).sum()) / 2

    def _solve(
        self, gradient: np.ndarray, means: np.ndarray, divide: Inverse, decay: float, enough: float, most: int
    ) -> tuple[np.ndarray, np.ndarray, float, int, bool]:
        """Solve Hessian @ direction = gradient by conjugate gradients, preconditioned by `divide`.

        Return (direction [D + 1, N], its scores [T, N], gradient @ direction, steps, whether it solves to what `enough`
        of the objective needs). Far from the minimum it ends earlier, and after `most` steps.
        """
        direction, moves, residual = np.zeros_like(gradient), np.zeros_like(self.scores), gradient.copy()
        step = divide(residual)
        rest = first = _inner(residual, step)
        promised, search, done = 0.0, step, 0
        least = 2 * REST * enough / (self.point.shape[1] if self.kind == "softmax" else 1)
        while rest > least and done < most:
            along = self.scores_of(self.x, search)
            bent = self._pulled(self._curved(means, along)) + decay * self.penalty * search
            curvature = _inner(search, bent)
            if not curvature > 0:
                break
            length = rest / curvature
            direction += length * search
            moves += self.x.dtype.type(length) * along
            residual -= length * bent
            promised, done = promised + length * rest, done + 1
            step = divide(residual)
            before, rest = rest, _inner(residual, step)
            if self.kind != "squared" and rest <= INEXACT**2 * first and promised > 2 * enough:
                break
            search = step + rest / before * search
        return direction, moves, promised, done, rest <= least

    def _value(self, scores: np.ndarray, point: np.ndarray, decay: float) -> tuple[float, np.ndarray]:
        """Return the objective and the expected targets [T, N] for scores [T, N] of `point` [D + 1, N]."""
        losses, means = self.loss(scores, self.y)
        if self.counts is not None:
            losses = losses * (self.counts if losses.ndim > 1 else self.counts[:, 0])
        penalty = _inner(self.penalty * point, point) * decay / 2
        return float(losses.sum(dtype=np.float64)) / self.total + penalty, means

    def _pulled(self, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient [D + 1, N] with respect to the point, for `slopes` [T, N] with respect to the scores."""
        gradient = np.empty_like(self.point)
        gradient[:-1] = _sum_columns(self.columns, slopes)
        gradient[-1] = slopes.sum(axis=0, dtype=np.float64) if self.has_intercept else 0
        gradient /= self.total
        return gradient

    def _slopes(self, means: np.ndarray) -> np.ndarray:
        """Return the gradient [T, N] of the rows' losses with respect to each score, for expected targets [T, N]."""
        slopes = means - self.y
        return slopes if self.counts is None else slopes * self.counts

    def _curvature(self, means: np.ndarray) -> np.ndarray:
        """Return the second derivative [T, N] of the rows' losses with respect to each score, for expected targets."""
        curvature = np.ones_like(means) if self.kind == "squared" else means * (1 - means)
        return curvature if self.counts is None else curvature * self.counts

    def _curved(self, means: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Return the change [T, N] of the gradient by scores when these change by `along` [T, N]."""
        if self.kind == "squared":
            return along if self.counts is None else along * self.counts
        if self.kind == "softmax":
            change = means * (along - (means * along).sum(axis=1, keepdims=True))
        else:
            change = means * (1 - means) * along
        return change if self.counts is None else change * self.counts

    def _condition(self, means: np.ndarray, decay: float) -> float:
        """Return a bound of the condition of the Hessian divided by its diagonal: what the penalty leaves of it."""
        least = decay * self.penalty[:-1]
        if not len(least) or not least.min() > 0:
            return np.inf
        return float((self._diagonal_of(self._curvature(means), decay)[:-1] / least).max())

    def _diagonal(self, means: np.ndarray, decay: float) -> Inverse:
        """Return a function that divides by the Hessian's diagonal for expected targets [T, N], by 1 if that is 0."""
        diagonal = self._diagonal_of(self._curvature(means), decay)
        return lambda gradient: gradient / diagonal

    def _diagonal_of(self, curvature: np.ndarray, decay: float) -> np.ndarray:
        """Return the Hessian's diagonal [D + 1, N] for curvatures [T, N] of the rows' losses, 1 if that is 0."""
        diagonal = np.empty_like(self.point)
        diagonal[:-1] = _sum_columns(self.squares, curvature)
        diagonal[-1] = curvature.sum(axis=0, dtype=np.float64) if self.has_intercept else 0
        diagonal = diagonal / self.total + decay * self.penalty
        return np.where(diagonal > 0, diagonal, 1)

    def _passes_worth_a_factor(self) -> int:
        """Return how many passes over the rows take as long as `_factor`; a large number if columns are many."""
        features, outputs = self.x.shape[1], self.point.shape[1]
        if features > MOST_FACTOR:
            return MOST_PASSES + 1
        return features**3 * outputs // (FACTOR_COST * max(self.x.nnz * outputs, 1))

    def _factor(self, means: np.ndarray, decay: float) -> Inverse | None:
        """Return a function that solves by the Hessian of some rows, of each output by itself unless classes are few.

        Rows are taken as often as their curvature is large; columns that they miss have their diagonal of all rows.
        None if that cannot be factored.
        """
        curvature = self._curvature(means)
        diagonal, penalty = self._diagonal_of(curvature, decay), decay * self.penalty
        if self.kind == "softmax" and self.point.size <= MOST_CLASSES:
            every = np.broadcast_to(penalty, self.point.shape).reshape(-1)
            solve = _solver(self._hessian_of_classes(means), every, diagonal.reshape(-1), self.ridge)
            return solve and (lambda gradient: solve(gradient.reshape(-1, 1)).reshape(gradient.shape))
        count = 1 if self.kind == "squared" else curvature.shape[1]
        solvers = []
        for output in range(count):
            hessian = self._sampled_hessian(curvature[:, output])
            solvers.append(_solver(hessian, penalty[:, 0], diagonal[:, output], self.ridge))
            if solvers[-1] is None:
                return None
        if count == 1:
            return solvers[0]
        return lambda gradient: np.hstack([solve(gradient[:, [n]]) for n, solve in enumerate(solvers) if solve])

    @property
    def ridge(self) -> float:
        """Return what is added to the diagonal of a Hessian, relatively."""
        return RIDGE * (1 if self.x.dtype == np.float64 else WIDER)

    def _sampled_hessian(self, curvature: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss [D + 1, D + 1] from rows by their curvature [T] of one output."""
        size, total = len(self.point), len(curvature)
        count = min(total, max(FACTOR_ROWS * size, FACTOR_ENTRIES // size**2))
        some, weights = np.arange(total), curvature.astype(np.float64)
        if count < total:
            ends = np.cumsum(weights)
            some = np.minimum(np.searchsorted(ends, (np.arange(count) + 0.5) / count * ends[-1]), total - 1)
            weights = np.full(count, ends[-1] / count)
        rows = self._rows_with_one(some, np.dtype(np.float64) if count == total else self.x.dtype)
        rows *= np.sqrt(weights / self.total)[:, None].astype(rows.dtype)
        return (rows.T @ rows).astype(np.float64)

    def _hessian_of_classes(self, means: np.ndarray) -> np.ndarray:
        """Return the Hessian of the softmax loss [(D + 1) * N, (D + 1) * N] from rows at equal distances."""
        (total, outputs), size = means.shape, len(self.point)
        some = np.linspace(0, total - 1, min(total, max(FACTOR_ROWS * self.point.size, FACTOR_ENTRIES // size**2)))
        some = some.astype(np.int64)
        rows, shares = self._rows_with_one(some, np.dtype(np.float64)), means[some].astype(np.float64)
        counts = np.ones(len(some)) if self.counts is None else self.counts[some, 0]
        counts = counts * (total / len(some) / self.total)
        hessian = np.empty((size, outputs, size, outputs))
        for one in range(outputs):
            for other in range(one + 1):
                weights = counts * shares[:, one] * ((one == other) - shares[:, other])
                hessian[:, one, :, other] = hessian[:, other, :, one] = (rows * weights[:, None]).T @ rows
        return hessian.reshape(size * outputs, size * outputs)

    def _rows_with_one(self, some: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return the rows `some` of x, dense [n, D + 1], with a last column of ones, or of zeros without intercept."""
        rows = np.full((len(some), len(self.point)), float(self.has_intercept), dtype)
        rows[:, :-1] = self.x[some].toarray()
        return rows


def _solver(hessian: np.ndarray, penalty: np.ndarray, diagonal: np.ndarray, ridge: float) -> Inverse | None:
    """Return a function that solves by hessian [n, n] + penalty [n] for [n, K]; None if that cannot be factored.

    `hessian` is overwritten; where its diagonal is far below `diagonal` [n], this takes its place.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    places = np.arange(len(hessian))
    hessian[places, places] += penalty
    is_missing = RARE * diagonal > hessian[places, places]
    hessian[places[is_missing], places[is_missing]] = diagonal[is_missing]
    scale = 1 / np.sqrt(hessian[places, places])[:, None]
    hessian *= scale * scale.T
    hessian[places, places] += ridge
    try:
        factor = cho_factor(hessian, lower=True, overwrite_a=True)
    except (LinAlgError, ValueError):  # rounded to an indefinite matrix, or not finite
        return None
    return lambda gradient: scale * cho_solve(factor, scale * gradient, check_finite=False)


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """Return the sum of a * b [.., N] on one thread: those of BLAS wait for each other for longer than they add."""
    return float(np.einsum("ij,ij->", a, b))


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
