"""Search of the decay of a linear model on held-out rows, and its training at the minimum of its objective.

Each of K decays is a block of columns of one weight matrix, so that each row is read once for all of them
(`kernels.epochs.dual_decays`), and dual ascent needs no learning rate. Decays are spaced evenly in the logarithm of
q / (decay * rows), q the mean sum of squares of a row, which does not change when features are scaled together. A tenth
of the rows is held out, or of few rows each fifth in turn, again as columns of the same matrix. Epochs go on until the
best held-out loss gains no more.

With many more rows than columns, steps of all rows converge sooner (`workbench.training.descent`): the strongest decay
is trained first, and weaker ones from its weights, until the loss of held-out rows gains no more: a tenth, or a third
of up to 5,000 rows or where a class is rare, with its share of each class. Each begins on the line through the last two
minima, and those far from the best one are trained less precisely. Classes are searched on a sample of these rows,
unless they turn out easy. The weights of the decay with the least expected loss are then trained on with all rows.

>>> import numpy as np, scipy.sparse
>>> generator = np.random.default_rng(0)
>>> x = scipy.sparse.random_array((400, 20), density=0.3, rng=generator, dtype=np.float32, format="csr")
>>> y = (x.sum(axis=1) > x.sum(axis=1).mean())[:, None].astype(np.float32)
>>> found = search_decay(x, y, None, "logistic", outputs=1, has_intercept=True, count=8, seed=0)
>>> found.weights.shape, len(found.choice.losses), found.choice.folds
((20, 1), 8, 5)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from kernels import aligned
from kernels.epochs import dual_decays
from kernels.permutation import permutation_of_rows
from workbench.models.scaling import Scaling, linear_scaling
from workbench.training.descent import (
    MOST_PASSES,
    Descent,
    columns_of,
    constant_loss,
    decays_near_best,
    minimum_decay,
    multiply,
    of_active_columns,
    rarest_balance,
    update_losses,
)
from workbench.training.epoch_calls import SHARE, column_sums
from workbench.training.setup import SetupError
from workbench.watching import losses_times, tell

COUNT = 8
"""Decays of a search if their count is not given."""
WEAKEST, STRONGEST = 1e-1, 1e5
"""Range of q / (decay * rows): its C of scikit-learn times the mean sum of squares of a row."""
FOLDS, FEW_ROWS, TENTH = 5, 5000, 10
"""Folds for at most so many rows, each held out in turn; of more rows one of `TENTH` parts is held out."""
FOLD_BYTES = 2**28
"""Bytes of weights and dual variables up to which the folds are trained at once."""
MOST_EPOCHS, MOST_WITHOUT_GAIN, GAIN, LEAST_GAIN, AHEAD = 40, 3, 2e-3, 5e-4, 2
"""Epochs at most, how many may pass without a gain of the best held-out loss, and what is one: relative, and absolute
for classes, in nats, by which a search on rows that can be separated ends; and how many times the rise of a held-out
loss since its minimum is expected after it, of fewer rows than columns and no given count: weak ones converge last."""
LOOK, LEAST_KEPT = 3, 4
"""Epochs between two looks at the held-out losses if their count was given, and after which only so many decays around
the best one are trained on if one part is held out; otherwise twice as many, when most searches have ended."""
LEAST_FINAL = 6
"""Epochs of dual ascent on all rows after those of the search, before Newton's method: its first ones cost less for
what they gain. After a search of a given count of epochs half as many, of either method, but at least these."""
LEAST_SAMPLE, ROWS_COLUMN, EASY = 1500, 8, 0.5
"""Rows of a sample at least, and for each column, if the classes are equally frequent (more if not). A held-out loss
below `EASY` times that of a constant tells that few rows decide which decay is best: all rows are searched then."""
LEAST_NARROW, NARROW, THIRD = 1500, 16, 3
"""Rows at least, and for each column, that are searched by Newton's method; and parts of which one is held out of few
rows."""
FAR_OFF, NEAR_ENOUGH, CLOSE, CLOSER, CLOSEST, STEEP, RISEN = 1e-2, 2e-3, 5e-4, 1e-6, 1e-17, 0.3, 0.03
"""Distance to the minimum of the objective, relative, below which Newton's method ends: in a search, if the held-out
loss is below the best one before by more than the share `STEEP` or above by more than `RISEN`; in a search otherwise;
for all rows after a search; for few entries or a decay that is given; and for that in float64."""
MOST_BYTES = 2**30
"""Bytes of weights and dual variables of a search that nobody asked for, at most."""
FEW_ENTRIES = 2**14
"""Entries up to which all rows are trained on as closely after a search: it takes a millisecond more."""
NEWTON = "Newton's method"
"""Name of the method in `Choice`, in place of dual ascent."""
MOST_UNLIKE = 2**18
"""Entries up to which columns of very different scales that are more than rows are searched by Newton's method."""
MANY_UNLIKE, LIKE = 2**20, 10.0
"""Entries from which on dual ascent searches columns of different scales too, if what it does not scale makes the mean
sum of squares of a row at most `LIKE` times as large. Of counts up to 99, 63 million entries in 500,000 columns, it
takes 13 s; Newton's method, whose passes are many where a decay is weak, over 180 s. 2.5 to 11 million entries in
20,000 to 100,000 columns take 0.2 to 0.8 of the time, and the held-out loss is at most 0.3 % higher."""
UNSEARCHED = 1e-3
"""Decay if none is given and none is searched, by the mean sum of squares of a row."""
LEAST_ROWS, FEWEST_ROWS = 20, 100
"""Rows that a search needs, and rows up to which nothing is searched that nobody asked for."""


@final
@dataclass(frozen=True)
class Choice:
    """Result of a search: the decay chosen and the alternatives.

    `decays` [K] and the held-out `losses` [K] of each, NaN of those left out as weaker ones gained nothing. Dual ascent
    trains some decays no further: their losses are assumed to change by as much as the nearest one that is trained.
    `rows` were held out in `folds` turns; `epochs` of the search, and `epochs_final` of the training on all rows after
    it, or that are left to do; `method` is dual ascent or Newton's method.
    """

    decay: float
    decays: np.ndarray
    losses: np.ndarray
    rows: int
    folds: int
    epochs: int
    epochs_final: int = 0
    method: str = "dual ascent"

    def __str__(self) -> str:
        """Return decay, method, number of settings and kind of validation as one phrase."""
        held_out = f"{self.rows:,} held-out rows" if self.folds == 1 else f"{self.folds} folds of all rows"
        return f"{self.decay:.3g}, chosen by {self.method} from {len(self.decays)} settings on {held_out}"


@final
@dataclass(frozen=True)
class Found:
    """Weights [D, N] and intercept [N] (None without one) at the end of `epochs` passes over the rows.

    `is_minimum` is whether the objective is at its minimum, to the share `CLOSE` of it; `gained` by which share of it
    it was higher where Newton's method began; `choice` what a search chose; `gap` the duality gap, if it was computed.
    """

    weights: np.ndarray
    intercept: np.ndarray | None
    decay: float
    epochs: int
    is_minimum: bool
    gained: float
    choice: Choice | None = None
    gap: float | None = None

    @property
    def warning(self) -> str:
        """Return a sentence with what to do if the objective is not at its minimum; "" if it is."""
        return "" if self.is_minimum else why_not_minimum(self.epochs)


def why_not_minimum(epochs: int) -> str:
    """Return the sentence that `epochs` passes over the rows did not reach the minimum, and what to do."""
    return (
        f"Training ended after {epochs:,} passes over the rows, before the minimum of its objective.\n"
        "Raise max_iter or alpha, leave max_iter out, or scale the columns, as sklearn.preprocessing.MaxAbsScaler does."
    )


def _logistic(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the logistic loss of each row, [K, R], of scores [K, R, N] and targets [R, N], summed over N."""
    losses = np.log(1 + np.exp(-np.abs(scores)))  # vector code, which NumPy has none of for logaddexp
    losses += np.maximum(scores, 0)
    losses -= scores * targets
    return losses[..., 0] if losses.shape[-1] == 1 else losses.sum(axis=-1)


def _squared(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return half the squared error of each row, [K, R], of scores [K, R, N] and targets [R, N], summed over N."""
    squares = (scores - targets) ** 2
    return squares[..., 0] / 2 if squares.shape[-1] == 1 else squares.sum(axis=-1) / 2


def _softmax(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the cross-entropy of each row, [K, R], of scores [K, R, N] and class indices int [R]."""
    largest = scores.max(axis=-1, keepdims=True)
    logs = np.log(np.exp(scores - largest).sum(axis=-1)) + largest[..., 0]
    return logs - scores[:, np.arange(len(targets)), targets]


LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "logistic": _logistic,
    "squared": _squared,
    "softmax": _softmax,
}
"""Losses of rows [K, R] of scores [K, R, N] and targets [R] or [R, N], by the name of the kernel."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows to search on: csr x [T, D], targets, weights [T] with the mean 1 or None, name of the loss, outputs N,
    whether there is an intercept, and what multiplies the decay of each column [D], None for 1."""

    x: Any
    y: np.ndarray
    weights: np.ndarray | None
    loss: str
    outputs: int
    has_intercept: bool
    penalty: np.ndarray | None = None

    @cached_property
    def columns(self) -> Any:
        """The transpose of x, for all descents on it."""
        return columns_of(self.x)


class _DualState:
    """State of dual ascent: weights [D, W], dual variables [T, W], intercepts [W]; each of K decays has N columns."""

    def __init__(self, rows: _Rows, decays: np.ndarray, square: float) -> None:
        """Create zero weights, dual variables and intercepts for `decays` [K].

        `square` is the mean sum of squares of a row.
        """
        x, width, dtype = rows.x, decays.size * rows.outputs, rows.x.dtype
        self.rows, self.decays, self.square = rows, decays.astype(dtype), SHARE * square
        self.weights, self.dual = aligned.zeros((x.shape[1], width), dtype), aligned.zeros((x.shape[0], width), dtype)
        self.intercept = np.zeros(width if rows.has_intercept else 0, dtype)
        self.squares = np.full(x.shape[0], -1, dtype)

    def do_epoch(self, order: np.ndarray, counts: np.ndarray) -> None:
        """Train an epoch over the rows `order` int64, in place; `counts` are row weights [T, K], or [0, K] for none.

        The intercept's decay is centred at its last value.
        """
        if self.intercept.size:
            scales = self.square / (np.repeat(self.decays, self.rows.outputs) * len(self.dual))
            self.intercept += column_sums(self.dual) * scales
        x, kernel = self.rows.x, dual_decays.get(self.rows.loss)
        operands = self.rows.y, counts, self.squares, order, self.weights, self.dual, self.intercept, self.square
        kernel.trusted(x.indptr, x.indices, x.data, *operands, self.decays)

    def score(self, x: Any, active: np.ndarray | None, fold: int, count: int) -> np.ndarray:
        """Return the scores [K, rows, N] of CSR x, of the columns `active` or all, by K = `count` decays of a fold."""
        width = count * self.rows.outputs
        folds, blocks = self.weights.shape[1] // width, self.weights.reshape(-1, width)
        factors = np.ascontiguousarray(blocks[fold::folds]) if active is None else blocks.take(active * folds + fold, 0)
        scores = multiply(x.indptr, x.indices, x.data, factors)
        if self.intercept.size:
            scores += self.intercept[fold * width : (fold + 1) * width]
        return np.ascontiguousarray(scores.reshape(x.shape[0], count, self.rows.outputs).transpose(1, 0, 2))

    def point(self, k: int) -> np.ndarray:
        """Return the weights and intercept [D + 1, N] of decay index k, float64."""
        columns = slice(k * self.rows.outputs, (k + 1) * self.rows.outputs)
        intercept = self.intercept[columns] if self.intercept.size else np.zeros(self.rows.outputs)
        return np.vstack([self.weights[:, columns], intercept]).astype(np.float64)

    def train_on_all(self, decay: float, epochs: int, generator: np.random.Generator) -> None:
        """Train the only decay that is left, changed to `decay`, for some epochs over all rows, in place."""
        self.weights *= float(self.decays[0]) / decay  # so that the dual variables fit
        self.decays[:] = decay
        weights = self.rows.weights
        counts = np.zeros((0, 1), self.weights.dtype) if weights is None else weights[:, None]
        for order in _orders(len(self.dual), epochs, generator):
            self.do_epoch(order, counts)

    def part(self, kept: slice) -> "_DualState":
        """Return a copy of the columns of the decay indices `kept`."""
        columns = slice(kept.start * self.rows.outputs, kept.stop * self.rows.outputs)
        other = _DualState(self.rows, self.decays[kept], self.square / SHARE)
        other.weights[...], other.dual[...] = self.weights[:, columns], self.dual[:, columns]
        other.intercept[...] = self.intercept[columns] if self.intercept.size else self.intercept
        other.squares = self.squares
        return other


def refuse_count(count: Any) -> None:
    """Raise SetupError unless `count`, the number of settings of a search, is an integer of 2 or more."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 2:
        raise SetupError(
            f"A search over {count!r} settings; expected an integer of 2 or more.\n"
            f"Give search={COUNT}, or 0 to train one setting without a search."
        )


def why_no_search(loss: str, is_product: bool, rows: int) -> str:
    """Return why dual ascent cannot search settings of a model, as a sentence without full stop; "" if it can."""
    if not is_product or loss not in LOSSES:
        return "A search is for models whose scores are X @ W, with the loss " + ", ".join(LOSSES)
    return "" if rows >= LEAST_ROWS else f"A search needs {LEAST_ROWS} rows or more; there are {rows}"


def is_small(shape: tuple[int, ...], outputs: int, itemsize: int) -> bool:
    """Return whether weights and dual variables of `COUNT` decays take at most 1 GiB for X of this shape."""
    return sum(shape) * outputs * COUNT * itemsize <= MOST_BYTES


def search_decay(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: str,
    *,
    outputs: int,
    has_intercept: bool,
    count: int = COUNT,
    seed: int = 0,
    epochs: int | None = None,
    folds: int | None = None,
) -> Found:
    """Choose the decay on held-out rows, then train on all.

    Parameters
    ----------
    x : csr array of shape [rows, features]
        float32 or float64; duplicates are summed in a copy.
    y : array
        Targets as the loss takes them, of the type of x: [rows, outputs], or int64 [rows] for softmax.
    weights : array of shape [rows] or None
        What the loss of each row counts for, with the mean 1, of the type of x.
    loss : str
        logistic, squared or softmax.
    outputs : int
        Columns of the scores, N.
    has_intercept : bool
        Whether a value for each output is added to the scores.
    count : int
        Settings to choose from, 2 or more.
    seed : int
        Seed of the rows held out and the order of rows.
    epochs : int, optional
        Epochs of the search at most, which ends when the held-out losses settle; the training after it goes on from
        its weights and has half as many, or `LEAST_FINAL`. By default as many as the losses take to settle.
    folds : int, optional
        Folds that are held out in turn, 2 or more; by default `FOLDS` of few rows, else a tenth is held out once.

    Returns
    -------
    Found
        Weights, intercept, and the choice.

    Raises
    ------
    SetupError
        For too few rows, settings or folds.
    """
    refuse_count(count)
    if folds is not None and not 2 <= folds <= x.shape[0]:
        raise SetupError(f"There are {folds} folds of {x.shape[0]} rows; expected 2 to {x.shape[0]}.")
    if reason := why_no_search(loss, True, x.shape[0]):
        raise SetupError(f"{reason}.")
    task, generator = _task_of(x, y, weights, loss, outputs, has_intercept), np.random.default_rng(seed)
    decays = task.square / (np.geomspace(WEAKEST, STRONGEST, count) * x.shape[0])
    most = MOST_PASSES if epochs is None else max(min(epochs, LEAST_FINAL), -(-epochs // 2))
    is_unlike, first = task.rows.penalty is not None, 0
    is_descent = epochs is None and folds is None and _is_narrow(task.rows)
    if is_unlike and (x.shape[1] <= x.shape[0] or x.nnz <= MOST_UNLIKE):
        is_descent = is_descent or x.nnz <= MANY_UNLIKE or task.unlikeness > LIKE
    unit = float(np.mean(np.square(task.scaling.target_scale)))
    with losses_times(lambda: unit):
        if is_descent and (epochs or folds):
            choice, point = _descend_folds(task.rows, decays, generator, epochs or MOST_PASSES, folds)
        elif is_descent:
            choice, point = _descend(task.rows, decays, generator, count if is_unlike else 1)
        else:
            columns, choice = _search(task.shifted, decays, generator, epochs, folds)
            first = LEAST_FINAL if epochs is None else most
            columns.train_on_all(choice.decay, first, generator)
            point = columns.point(0)
            point[:-1] *= 1 if task.scaling.scale is None else task.scaling.scale[:, None]
        tolerance = CLOSER if x.nnz <= FEW_ENTRIES else CLOSE
        descent, done, gained = _minimum(task.rows, choice.decay, point, most, tolerance)
    choice = replace(choice, epochs_final=first + done, losses=choice.losses * unit)
    return task.found(descent, choice.epochs + first + done, choice.decay, gained, choice)


def find_minimum(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: str,
    *,
    outputs: int,
    has_intercept: bool,
    decay: float | None,
    epochs: int | None = None,
    start: np.ndarray | None = None,
    before: int = 0,
) -> Found:
    """Return weights and intercept at the minimum of the objective for one decay.

    The other arguments are those of `search_decay`. `decay` None takes a weak one for rows of this size, `epochs` are
    the passes over the rows at most, None for as many as it takes, and `start` [D + 1, N] are the weights and intercept
    to begin at, None for zeros, which `before` passes led to.
    """
    task = _task_of(x, y, weights, loss, outputs, has_intercept)
    decay = UNSEARCHED * task.square if decay is None else decay
    point = None
    if start is not None:
        chosen = np.arange(x.shape[1]) if task.active is None else task.active
        point = task.scaling.inside(start[np.append(chosen, x.shape[1])])
    with losses_times(lambda: float(np.mean(np.square(task.scaling.target_scale)))):
        descent, done, gained = _minimum(task.rows, decay, point, MOST_PASSES if epochs is None else epochs, CLOSER)
    return task.found(descent, before + done, decay, gained)


class _Task(NamedTuple):
    """Rows to train on: standardized `rows`, and `shifted` ones that are not scaled, for dual ascent; how they were
    made; D and the columns with entries among them, None for all; and the mean sum of squares of a row."""

    rows: _Rows
    shifted: _Rows
    scaling: Scaling
    features: int
    active: np.ndarray | None
    square: float

    @property
    def unlikeness(self) -> float:
        """Mean sum of squares of a row that is not scaled, over that of a scaled one."""
        values = self.shifted.x.data
        with np.errstate(over="ignore"):
            return float(np.dot(values, values)) / self.shifted.x.shape[0] / self.square

    def found(self, descent: Descent, epochs: int, decay: float, gained: float, choice: Choice | None = None) -> Found:
        """Return the result at the end of a descent on `rows`, for the columns and targets that came."""
        point, dtype = self.scaling.outside(descent.point), self.rows.x.dtype
        if self.rows.loss == "softmax":  # whose probabilities do not depend on it
            point[-1] -= point[-1].mean()
        weights = np.zeros((self.features, point.shape[1]), dtype)
        weights[slice(None) if self.active is None else self.active] = point[:-1]
        intercept = point[-1].astype(dtype) if self.rows.has_intercept else None
        return Found(weights, intercept, decay, max(epochs, 1), descent.is_minimum, gained, choice)


def _task_of(x: Any, y: np.ndarray, weights: np.ndarray | None, loss: str, outputs: int, has_intercept: bool) -> _Task:
    """Return the rows to train on, for the arguments of `search_decay`."""
    if not x.has_canonical_format:  # the sum of squares of a row is that of its summed duplicates
        x = x.copy()
        x.sum_duplicates()
    features, (x, active) = x.shape[1], of_active_columns(x)
    scaling = linear_scaling(x, y, weights, loss, has_intercept=has_intercept)
    targets = scaling.targets(y) if loss == "squared" else y
    shifted = replace(scaling, scale=None).rows(x)
    rows = _Rows(shifted, targets, weights, loss, outputs, has_intercept)
    if (scale := scaling.scale) is None:
        values = shifted.data if weights is None else shifted.data * np.repeat(weights, np.diff(shifted.indptr))
        square = float(np.dot(values, shifted.data)) / x.shape[0] or 1.0
        return _Task(rows, rows, scaling, features, active, square)
    with np.errstate(over="ignore"):
        square = x.nnz / x.shape[0] * float(np.exp(2 * np.log(scale).mean()))
    if not np.isfinite(square):
        raise SetupError(
            f"The squares of values of X, up to {scale.max():.3g}, exceed what float64 holds.\n"
            "Scale the values, as sklearn.preprocessing.MaxAbsScaler does."
        )
    scaled = replace(rows, x=scaling.rows(x), penalty=scaling.penalty)
    return _Task(scaled, rows, scaling, features, active, square)


def _minimum(
    rows: _Rows, decay: float, point: np.ndarray | None, most: int, tolerance: float
) -> tuple[Descent, int, float]:
    """Return (descent at the minimum, passes, share of the objective by which `point`, where it began, was above it).

    Few entries are trained on in float64, and others if float32 cannot tell the minimum.
    """
    is_wide = rows.x.dtype == np.float64
    if not is_wide and rows.x.nnz <= FEW_ENTRIES:
        rows, is_wide = _widened(rows), True
    tolerance = CLOSEST if is_wide and tolerance == CLOSER else tolerance
    descent = _descent_of(rows, None)
    if point is not None:
        constant = descent.point
        descent.move_to(point)
        if not descent.objective(decay) <= descent.start:  # as of rows without those of a rare class
            descent.move_to(constant)
    first = descent.objective(decay)
    done = descent.minimize(decay, tolerance, most, is_last=True)
    if not descent.is_minimum and done < most and not is_wide:
        descent = _descent_of(_widened(rows), None).move_to(descent.point)
        done += descent.minimize(decay, tolerance, most - done, is_last=True)
    return descent, done, first / max(descent.objective(decay), np.finfo(np.float64).tiny) - 1


def _widened(rows: _Rows) -> _Rows:
    """Return the rows in float64."""
    y = rows.y if rows.loss == "softmax" else rows.y.astype(np.float64)
    weights = None if rows.weights is None else rows.weights.astype(np.float64)
    return replace(rows, x=rows.x.astype(np.float64), y=y, weights=weights)


# Many rows of few columns: one decay after the other by Newton's method, strong ones first, each from the last weights.


def _is_narrow(rows: _Rows) -> bool:
    """Return whether there are so many rows for each column that Newton's method is faster than dual ascent."""
    total, features = rows.x.shape
    return total >= LEAST_NARROW and total >= NARROW * features


def _descend(
    rows: _Rows, decays: np.ndarray, generator: np.random.Generator, patience: int
) -> tuple[Choice, np.ndarray]:
    """Choose one of `decays` [K], strong ones first, by held-out loss, on a sample if that may do.

    After more than `patience` decays in a row that gain nothing, weaker ones are not trained. Return (choice, weights
    and intercept [D + 1, N] of the best decay).
    """
    sample, point, passes, best, is_done = _sample_parts(rows, generator), None, 0, 0, False
    if sample is not None:
        part, easy = sample, EASY * constant_loss(rows)
        losses, point, passes = _path(rows, part, decays, 0, None, patience, easy)
        best = int(np.nanargmin(losses))
        is_done = losses[best] >= easy
    if not is_done:
        part = _parts(rows, generator)
        losses, point, more = _path(rows, part, decays, best, point, patience)
        passes += more
    known = np.flatnonzero(~np.isnan(losses))
    decay, held_out = minimum_decay(decays[known], losses[known]), int(np.count_nonzero(part == 0))
    assert point is not None
    return Choice(decay, decays, losses, held_out, 1, passes, method=NEWTON), point


def _descend_folds(
    rows: _Rows, decays: np.ndarray, generator: np.random.Generator, most: int, folds: int | None
) -> tuple[Choice, np.ndarray]:
    """Choose one of `decays` [K] by the mean loss of `folds` of `_split`, `most` passes at once; then as `_descend`."""
    part, folds = _split(rows, len(decays), generator, folds)
    losses, passes = np.zeros(len(decays)), 0
    for fold in range(folds):
        is_trained = (part != fold).astype(np.int64)
        of_fold, point, more = _path(rows, is_trained, decays, 0, None, len(decays), most=most)
        losses, passes = losses + of_fold / folds, passes + more
    held_out, decay = int(np.count_nonzero(part < folds)), minimum_decay(decays, losses)
    return Choice(decay, decays, losses, held_out, folds, -(-passes // folds), method=NEWTON), point


def _parts(rows: _Rows, generator: np.random.Generator) -> np.ndarray:
    """Return parts of rows, int64 [T], of which part 0 is held out: a tenth, a third of few rows or of a rare class.

    Each part has its share of the rows of each class, or of positive ones: of a rare class chance would hold out too
    few to tell two decays apart.
    """
    total = len(rows.y)
    order = generator.permutation(total)
    if rows.loss != "squared" and rows.y.size == total:
        order = order[np.argsort(rows.y.reshape(-1)[order], kind="stable")]
    part = np.empty(total, np.int64)
    part[order] = np.arange(total) % (THIRD if total * rarest_balance(rows) <= FEW_ROWS else TENTH)
    return part


def _descent_of(rows: _Rows, part: np.ndarray | None) -> Descent:
    """Return a descent on the rows of `part` above 0, on all for None.

    Rows are copied unless at most a fifth would be left out, which then count for nothing.
    """
    x, y, counts = rows.x, rows.y, rows.weights
    if part is not None:
        some = np.flatnonzero(part > 0)
        if 5 * len(some) >= 4 * len(part):
            counts = (part > 0).astype(x.dtype) if counts is None else counts * (part > 0)
        else:
            x, y, counts = x[some], y[some], None if counts is None else counts[some]
    given: dict = {"has_intercept": rows.has_intercept, "total": rows.x.shape[0], "penalty": rows.penalty}
    given["columns"] = rows.columns if x is rows.x else None
    return Descent(x, y, counts, rows.loss, rows.outputs, **given)


def _path(
    rows: _Rows,
    part: np.ndarray,
    decays: np.ndarray,
    first: int,
    point: np.ndarray | None,
    patience: int,
    enough: float = -np.inf,
    most: int = MOST_PASSES,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Train decays from `first` on, weaker and weaker, on the rows of `part` above 0, and score those of part 0.

    It begins at weights and intercept `point` [D + 1, N], None for zeros, and ends when the held-out loss is below
    `enough`, gains nothing by more than `patience` decays in a row, or rises with a patience of 1. A decay whose loss
    is not near the best one is trained no further than `FAR_OFF`, and none by more than `most` passes at once.
    Return (held-out loss of each decay [K], NaN if it was not trained; the point at the best one; passes).
    """
    out, losses, passes, without_gain = np.flatnonzero(part == 0), np.full(len(decays), np.nan), 0, 0
    descent = _descent_of(rows, part)
    if point is not None:
        descent.move_to(point)
    x, y = None if descent.x is rows.x else rows.x[out], rows.y[out]
    weights = None if rows.weights is None else rows.weights[out]
    best, best_state = np.inf, descent.state()
    before, last = None, None
    for k in range(first, len(decays)):
        if before is not None:
            descent.extrapolate(before, float(decays[k]))
        for tolerance in (NEAR_ENOUGH,) if rows.loss == "squared" else (FAR_OFF, NEAR_ENOUGH):
            passes += descent.minimize(float(decays[k]), tolerance, most)
            scores = descent.scores[out] if x is None else descent.scores_of(x, descent.point)
            losses[k] = np.average(LOSSES[rows.loss](scores[None], y)[0], weights=weights)
            if not best * (1 - STEEP) < losses[k] < best * (1 + RISEN) or losses[k] < enough:
                break
        without_gain = 0 if losses[k] < best * (1 - GAIN) else without_gain + 1
        has_risen = patience == 1 and losses[k] > best * (1 + GAIN)
        before, last = last, descent.state()
        if losses[k] < best:
            best, best_state = float(losses[k]), last
        tell("search, decay", k + 1, len(decays), {"held-out loss": best})
        if has_risen or losses[k] < enough or without_gain > patience:
            break
    return losses, best_state.point, passes


def _search(
    rows: _Rows,
    decays: np.ndarray,
    generator: np.random.Generator,
    epochs: int | None,
    folds: int | None,
    samples: bool = True,
) -> tuple[_DualState, Choice]:
    """Train decays on the rows that are not held out; return (columns of the one nearest to the choice, the choice).

    `epochs` is None for as many as the best held-out loss gains by;
    `samples` is whether a sample of the rows may do.
    """
    total, count = rows.x.shape[0], decays.size
    sample = _sample_parts(rows, generator) if samples and folds is None else None
    part, folds = _split(rows, count, generator, folds) if sample is None else (sample, 1)
    easy = -np.inf if sample is None else EASY * constant_loss(rows)
    square = float(np.dot(rows.x.data, rows.x.data)) / total or 1.0
    columns = _DualState(rows, np.tile(decays, folds), square)
    trained = np.flatnonzero(part > 0) if folds == 1 else np.arange(total)
    counts = np.zeros((0, count * folds), rows.x.dtype)
    if folds > 1 or rows.weights is not None:
        counts = np.ones((total, count * folds), rows.x.dtype)
        counts *= 1 if rows.weights is None else rows.weights[:, None]
        counts *= np.repeat(part[:, None] != np.arange(folds), count, axis=1)
    held_out = _held_out(rows, part, folds)
    best, gained, kept = float(np.finfo(np.float64).max), 0, slice(0, count)
    losses, lowest, least = *np.full((2, count), np.inf), 0.0 if rows.loss == "squared" else LEAST_GAIN
    ahead = AHEAD if epochs is None and rows.x.shape[1] > total else 0
    for epoch, order in enumerate(_orders(len(trained), epochs or MOST_EPOCHS, generator), 1):
        columns.do_epoch(trained[order], counts)
        if epochs and epoch % LOOK and epoch < epochs:
            continue
        now = _held_out_losses(columns, held_out, kept.stop - kept.start)
        if now.min() < easy:
            return _search(rows, decays, generator, epochs, None, samples=False)
        update_losses(losses, kept, now)
        gained = epoch if now.min() < best - max(GAIN * best, least) else gained
        best, lowest = min(best, float(now.min())), np.minimum(lowest, losses)
        tell("search, pass", epoch, epochs, {"held-out loss": best})
        if epoch == (epochs or MOST_EPOCHS) or (epochs is None and epoch - gained >= MOST_WITHOUT_GAIN):
            break
        fewer = decays_near_best(losses + ahead * (losses - lowest), kept, LEAST_KEPT)
        if folds == 1 and epoch >= LOOK * (1 if epochs else 2) and fewer != kept:  # few columns of folds are no faster
            columns = columns.part(slice(fewer.start - kept.start, fewer.stop - kept.start))
            counts, kept = counts[:, : fewer.stop - fewer.start].copy(), fewer
    rows_held_out = sum(held.x.shape[0] for held in held_out)
    decay = minimum_decay(decays, losses + ahead * (losses - lowest))
    near = int(np.abs(np.log(decays[kept] / decay)).argmin())
    return columns.part(slice(near, near + 1)), Choice(decay, decays, losses, rows_held_out, folds, epoch)


def _orders(total: int, count: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield `count` random orders of `total` rows, int64 [total], by generators that `generator` seeds."""
    for seed in generator.integers(2**63, size=count).tolist():
        yield permutation_of_rows(np.random.default_rng(seed), total)


def _sample_parts(rows: _Rows, generator: np.random.Generator) -> np.ndarray | None:
    """Return parts of rows, int64 [T]: 1 of a sample to train on, 0 of up to twice as many to hold out, -1 of the rest.

    None if half the rows are no sample of that size, or rows have weights, or targets are numbers.
    """
    total, features = rows.x.shape
    if rows.weights is not None or rows.loss == "squared" or max(LEAST_SAMPLE, ROWS_COLUMN * features) > total / 2:
        return None
    size = max(LEAST_SAMPLE, ROWS_COLUMN * features) / max(rarest_balance(rows), 1e-30)
    if size > total / 2:
        return None
    train, used = int(size), min(total, 3 * int(size))
    part, sample = np.full(total, -1), generator.choice(total, used, replace=False)
    part[sample[:train]], part[sample[train:]] = 1, 0
    return part


def _split(rows: _Rows, count: int, generator: np.random.Generator, folds: int | None) -> tuple[np.ndarray, int]:
    """Return (part of each row, int64 [T], number of parts held out in turn); random by `generator`.

    `folds` None takes `FOLDS` for few rows, else holds out one part of `TENTH` once.
    """
    total, features = rows.x.shape
    if folds is None:
        size = (total + features) * count * FOLDS * rows.outputs * rows.x.dtype.itemsize
        folds = FOLDS if total <= FEW_ROWS and size <= FOLD_BYTES else 1
    part = np.empty(total, np.int64)
    part[generator.permutation(total)] = np.arange(total) % (TENTH if folds == 1 else folds)
    return part, folds


class _HeldOut(NamedTuple):
    """Rows that one fold holds out: csr x [H, D], indices of its columns or None for all, targets, weights or None."""

    x: Any
    active: np.ndarray | None
    y: np.ndarray
    weights: np.ndarray | None


def _held_out(rows: _Rows, part: np.ndarray, folds: int) -> list[_HeldOut]:
    """Return the rows that each fold holds out: those of its part."""
    held_out = []
    for fold in range(folds):
        out = np.flatnonzero(part == fold)
        weights = None if rows.weights is None else rows.weights[out]
        x, active = of_active_columns(rows.x[out])
        held_out.append(_HeldOut(x, active, rows.y[out], weights))
    return held_out


def _held_out_losses(columns: _DualState, held_out: list[_HeldOut], count: int) -> np.ndarray:
    """Return the mean held-out loss of each decay, float64 [K]; each row is scored by the columns of its fold."""
    sums, total = np.zeros(count), 0.0
    for fold, (x, active, y, weights) in enumerate(held_out):
        losses = LOSSES[columns.rows.loss](columns.score(x, active, fold, count), y)
        sums += losses.sum(axis=1, dtype=np.float64) if weights is None else losses @ weights
        total += x.shape[0] if weights is None else float(weights.sum())
    return sums / max(total, 1e-30)
