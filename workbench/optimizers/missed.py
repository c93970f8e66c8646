"""Steps that rows of one parameter have missed, for lazy="exact", and how they catch up on them.

Three ways. `coast`: a step without gradient is a matrix, and a row takes the product of those it missed; `settle`: the
last missed step alone matters; `replay`: the missed steps are repeated, one by one, in registers.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import kernels
from kernels.rules.missed import STEPS, Spans, take_stale
from kernels.rules.rule import Rule
from workbench.optimizers.contract import OptimizerError, numbers_of


def way(rule: Rule, options: Mapping[str, float]) -> str:
    """Way in which rows catch up under these options: coast, settle, replay, or "" where a row misses nothing."""
    if rule.settles:
        return "settle"
    if rule.coast is None:
        return "replay"
    matrix = rule.coast(*rule.settings(*numbers_of(rule, {**options, "learning_rate": 1.0}, 1)))
    if matrix is None:
        return "replay"
    return "" if matrix == (1.0,) else "coast"


def ways(rule: Rule) -> list[str]:
    """All ways that rows of the rule catch up in, under whatever options."""
    could = {"settle": rule.settles, "coast": rule.coast is not None, "replay": rule.replays}
    return [name for name, can in could.items() if can]


COASTING = {"decay": 0.0, "clip_weights": math.inf}
"""Numbers with which a rule coasts that can: what it then multiplies by has a size, whatever the numbers."""


def numbers_kept(rule: Rule, way: str) -> int:
    """Count of the numbers that are kept of a step."""
    if way == "settle":
        return len(rule.numbers)
    example = dict(zip(rule.numbers, rule.example, strict=True))
    settings = rule.settings(*(COASTING.get(name, value) for name, value in example.items()))
    return len(_matrix(rule, settings)) if way == "coast" else len(settings)


def matrix_of(rule: Rule, numbers: Sequence[float]) -> tuple[float, ...]:
    """Return the matrix, row by row, that a step without gradient multiplies weights and states by.

    `numbers` are those that the rule's kernels take. Raises OptimizerError if the rule has no such matrix.
    """
    return _matrix(rule, rule.settings(*numbers))


def _matrix(rule: Rule, settings: Sequence[float]) -> tuple[float, ...]:
    matrix = None if rule.coast is None else rule.coast(*settings)
    if matrix is None:
        raise OptimizerError(f"A step of {rule.name} without gradient is no multiplication under these options.")
    return matrix


class Missed:
    """The last step of each row, int64 [rows], and what is needed of the steps after `base`: `record`.

    A new one has rows that have missed nothing up to `base`.
    """

    def __init__(self, rule: Rule, way: str, rows: int, dtype: np.dtype, base: int = 0) -> None:
        self.rule, self.way, self.dtype = rule, way, dtype
        self.last = np.full(rows, base, np.int64) if base else np.zeros(rows, np.int64)
        self.base, self.count = base, 0
        self._spans = Spans() if way == "coast" else None
        self.columns = numbers_kept(rule, way)
        self.table = np.empty((0, self.columns if way == "replay" else 0), dtype)
        self.numbers: tuple[float, ...] = ()

    @property
    def spans(self) -> Spans:
        """Products of the matrices of recorded steps. Raises OptimizerError unless `way` is "coast"."""
        if self._spans is None:
            raise OptimizerError(f"Rows of {self.rule.name} catch up by {self.way!r}, which records no matrices.")
        return self._spans

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another step: all rows must catch up first."""
        return self.count == STEPS

    @property
    def nbytes(self) -> int:
        """Bytes of the rows' last steps and of the numbers kept of the steps."""
        return self.last.nbytes + self.table.nbytes

    def add(self, numbers: list[float]) -> None:
        """Record that the next step was done with these numbers."""
        if self.way == "coast":
            self.spans.append(matrix_of(self.rule, numbers))
        elif self.way == "replay":
            self._make_room(1)
            self.table[self.count] = self.rule.settings(*numbers)
        else:
            self.numbers = tuple(numbers)
        self.count += 1

    def _make_room(self, steps: int) -> None:
        """Let the table have room for so many more steps."""
        if (lacking := self.count + steps - len(self.table)) > 0:
            room = np.empty((max(64, self.count, lacking), self.table.shape[1]), self.dtype)
            self.table = np.concatenate((self.table, room))

    # Many steps at once, by code that lets rows catch up itself

    def foresee(self, matrices: Sequence[tuple[float, ...]], settings: np.ndarray, steps: int) -> tuple[str, tuple]:
        """(the way, what it takes: last, missed, first, now) of `kernels.epochs` for `steps` more; `done` counts them.

        Of these `settings` [steps or 1, numbers] are the formula's, `matrices`, as many, what each does alone.
        """
        now = self.base + self.count
        if self.way == "coast":
            self.spans.foresee(matrices, steps)
            return ("coast" if self.columns == 1 else "coast_pair"), (self.last, self.spans.tree, self.base, now)
        if self.way == "replay":
            self._make_room(steps)
            self.table[self.count : self.count + steps] = settings
            return "replay", (self.last, self.table, self.base, now)
        table = np.empty((steps + 1, settings.shape[1]), self.dtype)
        table[0] = self.rule.settings(*self.numbers) if self.numbers else settings[0]
        table[1:] = settings
        return "settle", (self.last, table, now - 1, now)

    def done(self, steps: int, numbers: list[float]) -> None:
        """Count steps that were foreseen; the last had these numbers."""
        self.count += steps
        if self._spans is not None:
            self._spans.count += steps
        if self.way == "settle":
            self.numbers = tuple(numbers)

    def pass_by(self, steps: int) -> None:
        """Count steps that all rows had."""
        self.count += steps
        self.clear()
        self.last[:] = self.base

    def catch_up(self, arrays: list[np.ndarray], rows: np.ndarray, places: Callable | None, mark: int) -> None:
        """Bring `rows` int64 [U] up to date, in `arrays`, the tables of weights and states; their last step is `mark`.

        `places(rows)` tells where rows stand in the tables, by default at their own number.
        """
        stale, since = take_stale(self.last, rows, self.base + self.count, mark)
        if stale.size:
            self._apply(arrays, stale if places is None else places(stale), since - self.base)

    def _apply(self, arrays: list[np.ndarray], at: np.ndarray, since: np.ndarray) -> None:
        if self.way == "coast":
            matrix = self.spans.products(since, self.columns).astype(self.dtype, copy=False)
            if self.columns == 1:
                kernels.get("coast").trusted(arrays[0], at, matrix[:, 0])
            else:
                kernels.get("coast_pair").trusted(*arrays, at, matrix)
        elif self.way == "replay":
            first = int(since.min())
            kernels.get(f"{self.rule.name}_replay").trusted(*arrays, at, since - first, self.table[first : self.count])
        else:
            nothing = np.zeros((at.size, arrays[0].shape[1]), self.dtype)
            kernels.get(f"{self.rule.name}_lazy").trusted(*arrays, at, nothing, *self.numbers)

    def clear(self) -> None:
        """Forget the steps, after all rows have caught up."""
        self.base, self.count = self.base + self.count, 0
        if self._spans is not None:
            self._spans.count = 0

    @property
    def record(self) -> np.ndarray:
        """The steps since `base`, as an array to save: [count, ...]; of `settle` the last one, [0 or 1, numbers]."""
        if self.way == "coast":
            return self.spans.leaves[:, : self.columns].copy()
        if self.way == "replay":
            return self.table[: self.count].copy()
        return np.array(self.numbers, np.float64).reshape(-1, len(self.rule.numbers))

    def restore(self, last: np.ndarray, base: int, count: int, record: np.ndarray) -> None:
        """Go on from what was saved, which fits: `saved` has checked it."""
        self.last, self.base, self.count = last, base, count
        if self.way == "coast":
            self.spans.count = 0
            for matrix in record.tolist():
                self.spans.append(tuple(matrix))
        elif self.way == "replay":
            self.table = record
        else:
            self.numbers = tuple(record.ravel().tolist())
