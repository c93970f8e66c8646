"""Steps that rows of a parameter have missed (lazy="exact") and how rows catch up.

Three strategies. `closed_form`: a step without gradient is a linear map, and a row is multiplied by the product of
the maps it missed. `last_step`: only the last missed step matters. `step_by_step`: missed steps are repeated one by
one, in registers; rows at rest, whose states are zero because no step has had a gradient for them, are multiplied by
the product of their factors, or left as they are, so that the time goes with the others.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import kernels
from kernels.rules.missed import STEPS, Spans, mark_not_zero, take_stale
from kernels.rules.rule import Rule
from workbench.optimizers.contract import OptimizerError, numbers_of


def catch_up_strategy(rule: Rule, options: Mapping[str, float]) -> str:
    """Return the catch-up strategy: "closed_form", "last_step", "step_by_step", or "" if rows miss nothing."""
    if rule.last_step:
        return "last_step"
    if rule.closed_form is None:
        return "step_by_step"
    matrix = rule.closed_form(*rule.settings(*numbers_of(rule, {**options, "learning_rate": 1.0}, 1)))
    if matrix is None:
        return "step_by_step"
    return "" if matrix == (1.0,) else "closed_form"


def catch_up_strategies(rule: Rule) -> list[str]:
    """Return those of the catch-up strategies "last_step", "closed_form", "step_by_step" that the rule may use."""
    has_closed_form = rule.closed_form is not None
    could = {"last_step": rule.last_step, "closed_form": has_closed_form, "step_by_step": rule.step_by_step}
    return [name for name, can in could.items() if can]


FINITE = {"decay": 0.0, "clip_weights": math.inf}
"""Scalars with which a rule has its closed form if it can have one; the size of its matrix does not depend on them."""


def numbers_kept(rule: Rule, way: str) -> int:
    """Return how many floats of `rule` are recorded per step under the catch-up strategy `way`, never ""."""
    if way == "last_step":
        return len(rule.numbers)
    example = dict(zip(rule.numbers, rule.example, strict=True))
    settings = rule.settings(*(FINITE.get(name, value) for name, value in example.items()))
    return len(_matrix(rule, settings)) if way == "closed_form" else len(settings)


def matrix_of(rule: Rule, numbers: Sequence[float]) -> tuple[float, ...]:
    """Return the matrix, in row-major order, by which a step without gradient multiplies (weight, state).

    `numbers` are the scalars that the rule's kernels take. Raises OptimizerError if the rule has no such matrix.
    """
    return _matrix(rule, rule.settings(*numbers))


def _matrix(rule: Rule, settings: Sequence[float]) -> tuple[float, ...]:
    """Return the matrix of a zero-gradient step, (a,) or (a, b, c, d), from the settings of the formula.

    Raises OptimizerError if the step is not linear.
    """
    matrix = None if rule.closed_form is None else rule.closed_form(*settings)
    if matrix is None:
        raise OptimizerError(f"A step of {rule.name} without gradient is no multiplication under these options.")
    return matrix


MANY_MISSED = 1 << 20
"""Missed steps, summed over rows, from which on rows at rest are looked for: to repeat them takes 5 ms and more."""


class Missed:
    """The last step of each row, int64 [rows], and the record of the steps since `base` that rows may have missed.

    A new instance has rows that are up to date at step `base`.
    """

    def __init__(self, rule: Rule, way: str, rows: int, dtype: np.dtype, base: int = 0) -> None:
        """Create the record for `rows` rows that are up to date at step `base`.

        `way` is "closed_form", "last_step" or "step_by_step".
        """
        self.rule, self.way, self.dtype = rule, way, dtype
        self.last = np.full(rows, base, np.int64) if base else np.zeros(rows, np.int64)
        self.base, self.count = base, 0
        self._spans = Spans() if way == "closed_form" else None
        self.columns = numbers_kept(rule, way)
        self.table = np.empty((0, self.columns if way == "step_by_step" else 0), dtype)
        self.numbers: tuple[float, ...] = ()

    @property
    def spans(self) -> Spans:
        """Products of the matrices of the recorded steps, by which a row catches up over any range of them.

        Raises OptimizerError unless the strategy is "closed_form".
        """
        if self._spans is None:
            raise OptimizerError(f"Rows of {self.rule.name} catch up by {self.way!r}, which records no matrices.")
        return self._spans

    @property
    def is_full(self) -> bool:
        """Return whether no further step can be recorded, so that all rows must catch up first."""
        return self.count == STEPS

    @property
    def nbytes(self) -> int:
        """Return the bytes of the last steps and of the recorded settings."""
        return self.last.nbytes + self.table.nbytes

    def add(self, numbers: list[float]) -> None:
        """Record a step that inactive rows miss, done with `numbers`, the scalars that its kernels took."""
        if self.way == "closed_form":
            self.spans.append(matrix_of(self.rule, numbers))
        elif self.way == "step_by_step":
            self._make_room(1)
            self.table[self.count] = self.rule.settings(*numbers)
        else:
            self.numbers = tuple(numbers)
        self.count += 1

    def _make_room(self, steps: int) -> None:
        """Enlarge the table so that `steps` more steps can be recorded; recorded ones are kept."""
        if (lacking := self.count + steps - len(self.table)) > 0:
            room = np.empty((max(64, self.count, lacking), self.table.shape[1]), self.dtype)
            self.table = np.concatenate((self.table, room))

    # Many steps at once, by code that lets rows catch up itself

    def foresee(self, matrices: Sequence[tuple[float, ...]], settings: np.ndarray, steps: int) -> tuple[str, tuple]:
        """Return (strategy, (last, missed, first, now)) for `steps` further steps in one call of `kernels.epochs`.

        `settings` [steps or 1, numbers] are those of the formula, `matrices`, as many, the zero-gradient maps; they are
        written ahead to the table or tree of this object. last [rows] is each row's last step, `missed` the table or
        tree of steps from `first` on, `now` the current step. Call `done` afterwards.
        """
        now = self.base + self.count
        if self.way == "closed_form":
            self.spans.foresee(matrices, steps)
            name = "closed_form" if self.columns == 1 else "closed_form_pair"
            return name, (self.last, self.spans.tree, self.base, now)
        if self.way == "step_by_step":
            self._make_room(steps)
            self.table[self.count : self.count + steps] = settings
            return "step_by_step", (self.last, self.table, self.base, now)
        table = np.empty((steps + 1, settings.shape[1]), self.dtype)
        table[0] = self.rule.settings(*self.numbers) if self.numbers else settings[0]
        table[1:] = settings
        return "last_step", (self.last, table, now - 1, now)

    def done(self, steps: int, numbers: list[float]) -> None:
        """Count `steps` steps announced by `foresee`; `numbers` are the scalars of the last one."""
        self.count += steps
        if self._spans is not None:
            self._spans.count += steps
        if self.way == "last_step":
            self.numbers = tuple(numbers)

    def pass_by(self, steps: int) -> None:
        """Count `steps` steps that updated every row; all rows are marked as up to date and records are cleared."""
        self.count += steps
        self.clear()
        self.last[:] = self.base

    def catch_up(self, arrays: list[np.ndarray], rows: np.ndarray, places: Callable | None, mark: int) -> None:
        """Apply missed steps to `rows` int64 [U] of the tables `arrays` (weights, states) in place.

        Set their last step to `mark`. `places(rows)` maps rows to positions in the tables; None if they are the same.
        """
        stale, since = take_stale(self.last, rows, self.base + self.count, mark)
        if stale.size:
            self._apply(arrays, stale if places is None else places(stale), since - self.base)

    def _apply(self, arrays: list[np.ndarray], at: np.ndarray, since: np.ndarray) -> None:
        """Apply the steps after since[u] (counted from `base`) to the table rows at positions at[u], in place."""
        if self.way == "closed_form":
            matrix = self.spans.products(since, self.columns).astype(self.dtype, copy=False)
            if self.columns == 1:
                kernels.get("closed_form").trusted(arrays[0], at, matrix[:, 0])
            else:
                kernels.get("closed_form_pair").trusted(*arrays, at, matrix)
        elif self.way == "step_by_step":
            if self.count * since.size - int(since.sum()) >= MANY_MISSED:
                at, since = self._apply_at_rest(arrays, at, since)
            if at.size:
                first = int(since.min())
                table = self.table[first : self.count]
                kernels.get(f"{self.rule.name}_step_by_step").trusted(*arrays, at, since - first, table)
        else:
            nothing = np.zeros((at.size, arrays[0].shape[1]), self.dtype)
            kernels.get(f"{self.rule.name}_lazy").trusted(*arrays, at, nothing, *self.numbers)

    def _apply_at_rest(
        self, arrays: list[np.ndarray], at: np.ndarray, since: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Apply missed steps to those of the rows at[u] that are at rest, in place; return (at, since) of the others.

        They are those whose states are zero, if their steps are factors of the weights, else those whose weights are
        zero as well. O(rows * N).
        """
        first, rule = int(since.min()), self.rule
        settings = self.table[first : self.count].tolist()
        factors = [None if rule.at_rest is None else rule.at_rest(*numbers) for numbers in settings]
        moves, weighs = np.zeros((2, at.size), np.bool_)
        for state in arrays[1:]:
            mark_not_zero(state, at, moves)
        mark_not_zero(arrays[0], at, weighs)
        if None in factors:
            moves |= weighs
        elif (rests := np.flatnonzero(weighs & ~moves)).size and any(factor != 1 for factor in factors):
            products = np.cumprod(np.array([1.0, *factors[::-1]], np.float64))[::-1]
            kernels.get("closed_form").trusted(arrays[0], at[rests], products[since[rests] - first].astype(self.dtype))
        return at[moves], since[moves]

    def clear(self) -> None:
        """Forget the recorded steps; all rows must have caught up."""
        self.base, self.count = self.base + self.count, 0
        if self._spans is not None:
            self._spans.count = 0

    @property
    def record(self) -> np.ndarray:
        """Return the steps since `base` as an array to save, [count, ...].

        For "last_step" only the last, [0 or 1, numbers].
        """
        if self.way == "closed_form":
            return self.spans.leaves[:, : self.columns].copy()
        if self.way == "step_by_step":
            return self.table[: self.count].copy()
        return np.array(self.numbers, np.float64).reshape(-1, len(self.rule.numbers))

    def restore(self, last: np.ndarray, base: int, count: int, record: np.ndarray) -> None:
        """Replace the content by saved, validated state: last steps of the rows [rows], `base`, `count`, `record`."""
        self.last, self.base, self.count = last, base, count
        if self.way == "closed_form":
            self.spans.count = 0
            for matrix in record.tolist():
                self.spans.append(tuple(matrix))
        elif self.way == "step_by_step":
            self.table = record
        else:
            self.numbers = tuple(record.ravel().tolist())
