"""One parameter of an updater: its step count, its states, and the application of a gradient in any form.

Kernels take tables [rows, N]: dense weights of any rank with trailing axes merged, or the stored rows of row_sparse
weights, whose states store the same rows. A row that a gradient has and the weights do not store is inserted as zeros
in weights and states.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import kernels
from kernels import aligned
from kernels.rules.missed import STEPS
from workbench import formats
from workbench.formats import RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import schedules
from workbench.optimizers.contract import Optimizer, OptimizerError, spread

if TYPE_CHECKING:
    from workbench.optimizers.deferred_updates import Missed
    from workbench.optimizers.updater import Updater

# Numbers of rows that are held, and how others come to them.


def unite_sorted(indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the sorted union of two sorted unique index arrays [n]; `indices` itself if it contains `rows`. O(n)."""
    if not rows.size or not indices.size:
        return rows.copy() if rows.size else indices
    places = np.searchsorted(indices, rows)
    is_new = indices[np.minimum(places, indices.size - 1)] != rows
    return np.insert(indices, places[is_new], rows[is_new]) if is_new.any() else indices


Weights: TypeAlias = np.ndarray | RowSparse
Gradient: TypeAlias = np.ndarray | RowSparse | Unsummed


def table(array: np.ndarray, rows: int, width: int) -> np.ndarray:
    """Return `array` as [rows, width]: a view if its rank is 1 or 2 or it is contiguous, else a copy."""
    return array if array.shape == (rows, width) else array.reshape(rows, width)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are the same object or equal in shape and values."""
    return one is other or np.array_equal(one, other)


def unite(x: RowSparse, rows: np.ndarray) -> None:
    """Make `x` store `rows` (sorted, a superset of its own), new ones as zeros; replaces its arrays. O(stored)."""
    values = np.zeros((rows.size, *x.shape[1:]), x.dtype)
    values[np.searchsorted(rows, x.indices)] = x.values
    formats.get("row_sparse").replace(x, {"values": values, "indices": rows})


def _set_read_only(rows: np.ndarray) -> np.ndarray:
    """Set the array `rows` read-only, in place, and return it."""
    rows.setflags(write=False)
    return rows


def _is_same_memory(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays have the same address, strides and shape; dtypes are not compared."""
    if one is other:
        return True
    start, there = (array.__array_interface__["data"][0] for array in (one, other))
    return start == there and one.strides == other.strides and one.shape == other.shape


def _zeros(shape: tuple[int, ...], format: str, dtype: np.dtype) -> Weights:
    """Return an array of zeros of `shape` in `format`, "dense" or "row_sparse" (no stored rows)."""
    return aligned.zeros(shape, dtype) if format == "dense" else formats.zeros(shape, format, dtype)


def _new_record(parameter: "Parameter", way: str) -> "Missed":
    """Return a new record of missed steps of a parameter that catches up by `way`; no row has missed any yet."""
    from workbench.optimizers.deferred_updates import Missed  # late: most updates defer nothing

    return Missed(parameter.optimizer.rule, way, parameter.rows, parameter.dtype, parameter.step)


class Parameter:
    """Step count and states of one parameter; states are zero unless `states` is given.

    Weights are checked when they are first passed and whenever they are another array than in the previous step;
    indices of row_sparse weights are then made read-only, so that they stay valid.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lazy: str,
        way: str,
        shape: tuple[int, ...],
        dtype: np.dtype,
        format: str,
        states: Sequence[Weights] | None = None,
    ) -> None:
        """Create the record of a parameter with zero steps; `way` is its catch-up strategy, "" if rows miss nothing.

        `states` None: zeros in the shape (or one value per row), dtype and format of the weights.
        """
        self.optimizer, self.lazy = optimizer, lazy
        self.shape, self.dtype, self.format = shape, np.dtype(dtype), format
        self.rows = shape[0] if shape else 1
        self.width = math.prod(shape[1:])
        self.is_table = format == "dense" and len(shape) == 2
        self.has_states_by_row = optimizer.states_by_row
        self.step = 0
        state_shape = shape[:1] if optimizer.states_by_row else shape
        zeros = (_zeros(state_shape, format, self.dtype) for _ in optimizer.states)
        self.states: list[Weights] = list(zeros if states is None else states)
        self.missed = _new_record(self, way) if way else None
        self.calls: dict[str, Callable] = {}
        self.buffer: np.ndarray | None = None
        self.nothing: np.ndarray | None = None  # a gradient of zeros, which code that does many steps fills and clears
        self.seen: np.ndarray | None = None
        """The weights of the last step, of row_sparse ones the values: kept where rows may have missed something."""
        self.stored_rows: np.ndarray | None = None
        """The rows that row_sparse weights held after the last step: the array itself, read-only."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of states, of the record of missed steps, and of the buffer for gradients made dense."""
        arrays = [*self.states, *(array for array in (self.buffer, self.nothing) if array is not None)]
        return sum(array.nbytes for array in arrays) + (self.missed.nbytes if self.missed else 0)

    # Weights as they come

    def is_settled(self, weights: object) -> bool:
        """Return whether `weights` need no checks: dense, contiguous, writable, of the known shape and dtype.

        False for parameters whose rows may have missed steps.
        """
        return (
            type(weights) is np.ndarray
            and self.missed is None
            and self.format == "dense"
            and weights.shape == self.shape
            and weights.dtype == self.dtype
            and weights.flags.carray
        )

    def check_replaced(self, name: str, weights: Weights) -> None:
        """Raise OptimizerError for weights in another array than in the last step while rows of that one are behind."""
        if self._is_replaced(weights) and self._lags():
            raise OptimizerError(
                f"The weights {name} are another array than in the last step, some of whose rows have still to catch "
                "up. Call catch_up with the weights of the last step before you put others in their place, or "
                "replace() with the new ones if the old are gone."
            )

    def take_weights(self, weights: Weights) -> None:
        """Record validated weights for a step; rows that are new, or all of another array, count as up to date.

        Indices of row_sparse weights are replaced by a read-only copy.
        """
        if isinstance(weights, RowSparse) and weights.indices is not self.stored_rows:
            formats.get("row_sparse").replace(
                weights, {"values": weights.values, "indices": _set_read_only(weights.indices.copy())}
            )
            if self.missed is not None:
                behind = self.missed.last[weights.indices] < self.missed.base
                self.missed.last[weights.indices[behind]] = self.step
        if self.missed is not None and self._is_replaced(weights):
            self.missed.last[:] = self.step
        self._remember(weights)

    def replace(self, weights: Weights) -> None:
        """Continue with other weights, whose rows count as up to date; the old ones catch up first, in place."""
        if self.missed is not None and self.seen is not None:
            self.catch_up(
                self.seen if self.stored_rows is None else RowSparse.assemble(self.seen, self.stored_rows, self.shape)
            )
            self.seen = None
        self.take_weights(weights)
        self.hold(weights, weights.indices if isinstance(weights, RowSparse) else None)
        if self.missed is not None:
            self.missed.last[:] = self.step
        self._remember(weights)

    def _is_replaced(self, weights: Weights) -> bool:
        """Return whether `weights` is another array than in the last step; False if nothing is recorded."""
        if self.missed is None or self.seen is None:
            return False
        if isinstance(weights, np.ndarray):
            return not _is_same_memory(weights, self.seen)
        same_rows = self.stored_rows is not None and _same(weights.indices, self.stored_rows)
        return not (same_rows and _is_same_memory(weights.values, self.seen))

    def _lags(self) -> bool:
        """Return whether a row of the weights of the last step has yet to catch up."""
        if self.missed is None:
            return False
        last = self.missed.last if self.stored_rows is None else self.missed.last[self.stored_rows]
        return bool((last < self.step).any())

    def _remember(self, weights: Weights) -> None:
        """Keep a reference to these weights as those of the last step."""
        if isinstance(weights, RowSparse):
            self.stored_rows = weights.indices
        if self.missed is not None:
            self.seen = weights if isinstance(weights, np.ndarray) else weights.values

    def set_way(self, way: str) -> None:
        """Use the catch-up strategy `way` from the next step on; requires `can_set_way(way)`."""
        if way and (self.missed is None or self.missed.way != way):
            self.missed = _new_record(self, way)

    def can_set_way(self, way: str) -> bool:
        """Return whether the strategy may change: no row has steps to catch up, or the strategy stays the same."""
        return not way or self.missed is None or self.missed.way == way or not self._lags()

    # Tables

    def tables(self, weights: Weights) -> list[np.ndarray]:
        """Return [weights, *states] as kernels take them: [rows, N], or [rows] for one state per row.

        Views if possible.
        """
        if self.is_table:
            return [weights, *self.states]  # type: ignore[list-item]  # tables are arrays
        arrays: list[Any] = [weights, *self.states]
        if self.format != "dense":
            arrays = [array if isinstance(array, np.ndarray) else array.values for array in arrays]
        rows = len(arrays[0]) if self.shape else 1
        if self.has_states_by_row:
            return [table(arrays[0], rows, self.width), *[state.reshape(rows) for state in arrays[1:]]]
        return [array.reshape(rows, self.width) for array in arrays]

    def hold(self, weights: Weights, rows: np.ndarray | None) -> None:
        """Make row_sparse weights and states store `rows` (sorted; None: all rows) in place.

        New rows count as up to date.
        """
        if isinstance(weights, np.ndarray):
            return
        states = [state for state in self.states if isinstance(state, RowSparse)]
        arrays, indices = [weights, *states], weights.indices
        indices = np.arange(self.rows) if rows is None else unite_sorted(indices, rows)
        for state in states:
            indices = indices if _same(state.indices, indices) else unite_sorted(indices, state.indices)
        if self.missed is not None and indices is not weights.indices:
            self.missed.last[np.setdiff1d(indices, weights.indices, assume_unique=True)] = self.step
        indices = _set_read_only(indices)
        for array in arrays:
            if not _same(array.indices, indices):
                unite(array, indices)
            elif array.indices is not indices:  # one array for all of them: a comparison costs nothing then
                formats.get("row_sparse").replace(array, {"values": array.values, "indices": indices})

    def places(self, weights: Weights, rows: np.ndarray) -> np.ndarray:
        """Return the positions of the rows `rows` int64 [U], which must be stored, in the tables of `weights`."""
        if isinstance(weights, np.ndarray) or rows.size == self.rows:
            return rows
        return np.searchsorted(weights.indices, rows)

    # Steps

    def apply(self, weights: Weights, gradient: Gradient, numbers: list[float]) -> None:
        """Do one optimizer step by `gradient` (dense, row_sparse or factored); weights and states change in place.

        `numbers` are the scalars that the rule's kernels take. Inactive rows are treated as `lazy` says.
        """
        is_plain = self.missed is None and self.format == "dense"
        if not is_plain:
            self.take_weights(weights)
        if isinstance(gradient, np.ndarray):
            if not is_plain:
                self.hold(weights, None)
                self._catch_up(weights, None, self.step + 1)
            self._run("dense", weights, [table(gradient, self.rows, self.width)], numbers)
        elif self.lazy == "off":
            rows_alone = summed(gradient)
            if isinstance(rows_alone, np.ndarray):
                self._run("dense", weights, [table(rows_alone, self.rows, self.width)], numbers)
            else:
                self._apply_to_all(weights, rows_alone, numbers)
        else:
            places = rows = gradient.indices if isinstance(gradient, RowSparse) else gradient.plan.columns
            if self.format != "dense":
                self.hold(weights, rows)
                places = self.places(weights, rows)
            if self.missed is not None:
                self._catch_up(weights, rows, self.step + 1)
            self._apply_to_rows(weights, places, gradient, numbers)
        self.step += 1
        if is_plain:
            return
        if self.missed is not None:
            self.missed.add(numbers)
        self._remember(weights)
        if self.missed is not None and self.missed.is_full:
            self.catch_up(weights)

    def _apply_to_all(self, weights: Weights, gradient: RowSparse, numbers: list[float]) -> None:
        """Do a dense step by a row_sparse gradient, spread to the dense buffer first.

        Weights and states change in place.
        """
        self.hold(weights, gradient.indices)
        rows = self.places(weights, gradient.indices)
        row_count = self.rows if isinstance(weights, np.ndarray) else weights.indices.size
        if self.buffer is None or len(self.buffer) != row_count:
            self.buffer = np.empty((row_count, self.width), self.dtype)
        values = gradient.values.reshape(rows.size, self.width)
        self._run("dense", weights, [spread(rows, values, self.buffer)], numbers)

    def _apply_to_rows(
        self, weights: Weights, places: np.ndarray, gradient: RowSparse | Unsummed, numbers: list[float]
    ) -> None:
        """Do a lazy step on the rows at positions `places` int64 [U]; weights and states change in place.

        By a row_sparse gradient, or fused by a factored one. `numbers` are the scalars of the optimizer's kernel.
        """
        if isinstance(gradient, RowSparse):
            values = gradient.values.reshape(places.size, self.width)
            self._run("lazy", weights, [places, values], numbers)
            return
        grad_scores = (
            gradient.grad_scores
            if self.is_table
            else table(gradient.grad_scores, len(gradient.grad_scores), self.width)
        )
        plan = gradient.plan
        batch = plan.segments, plan.rows, plan.in_order(gradient.x.data), grad_scores
        self._run("fused", weights, [places, *batch], numbers)

    def _run(self, kind: str, weights: Weights, gradient: list[np.ndarray], numbers: list[float]) -> None:
        """Call the kernel `<optimizer>_<kind>` ("dense", "lazy" or "fused"); weights and states change in place.

        `gradient` are the arrays that it takes after these, `numbers` the scalars.
        """
        if kind not in self.calls:
            self.calls[kind] = kernels.get(f"{self.optimizer.name}_{kind}").trusted
        self.calls[kind](*self.tables(weights), *gradient, *numbers)

    # Catching up

    def catch_up(self, weights: Weights, rows: np.ndarray | None = None) -> None:
        """Apply missed steps to `rows` int64 (None: every row) in place.

        With all rows the record of them is cleared.
        """
        if self.missed is None:
            return
        self.take_weights(weights)
        if isinstance(weights, RowSparse):
            self.hold(weights, weights.indices)
            self._remember(weights)
            if rows is not None:
                rows = rows[np.isin(rows, weights.indices)]
        self._catch_up(weights, rows, self.step)
        if rows is None:
            self.missed.clear()

    def _catch_up(self, weights: Weights, rows: np.ndarray | None, mark: int) -> None:
        """Apply missed steps to stored rows (None: all) in place and set their last step to `mark`."""
        if self.missed is None:
            return
        if isinstance(weights, np.ndarray):
            rows = np.arange(self.rows) if rows is None else rows
            self.missed.catch_up(self.tables(weights), rows, None, mark)
            return
        stored_rows = weights.indices
        rows = stored_rows if rows is None else rows
        self.missed.catch_up(self.tables(weights), rows, functools.partial(np.searchsorted, stored_rows), mark)


def summed(gradient: Gradient) -> np.ndarray | RowSparse:
    """Return a gradient as an array: a factored one is multiplied out to row_sparse, others are returned unchanged."""
    return gradient.compute() if isinstance(gradient, Unsummed) else gradient


# Several steps of one parameter in one compiled call (whole epochs): the arrays and settings that such a call takes.


@dataclass(frozen=True)
class Ahead:
    """The next `count` steps of a parameter. `begin` creates it; call `end` after the steps were done.

    `tables` are weights and states [rows, N] (states with one value per row: [rows]); `settings` the settings of the
    steps [count or 1, numbers]. `way` names the treatment of inactive rows (lazy, standard or a catch-up strategy) and
    `update_arrays` the arrays for it, as in `kernels.epochs`.
    """

    parameter: Parameter
    weights: np.ndarray
    count: int
    tables: list[np.ndarray]
    settings: np.ndarray
    way: str
    update_arrays: tuple
    numbers_last: list[float]
    whole: bool

    def has_settings(self, updater: "Updater", numbers_last: list[float], count: int, dtype: np.dtype) -> bool:
        """Return whether `count` steps whose last has these scalars have this settings table, in `dtype`."""
        is_constant = isinstance(updater.schedule, schedules.Constant)
        return is_constant and (self.numbers_last, self.count, self.settings.dtype) == (numbers_last, count, dtype)

    def end(self) -> None:
        """Count the steps as done and record what inactive rows have missed; they catch up if the record is full."""
        parameter, missed = self.parameter, self.parameter.missed
        parameter.step += self.count
        if missed is not None and self.whole:
            missed.pass_by(self.count)
        elif missed is not None:
            missed.done(self.count, self.numbers_last)
            if missed.is_full:
                parameter.catch_up(self.weights)


def begin(
    updater: "Updater",
    name: str,
    parameter: Parameter,
    weights: np.ndarray,
    count: int,
    whole: bool = False,
    other: Ahead | None = None,
) -> Ahead:
    """Prepare the next `count` steps (at most `STEPS`) of dense weights for a compiled call.

    `whole` states that each step updates all rows. Rows that cannot wait catch up first, in place. The steps of
    `other`, of the same updater, share their table of settings if these are the same. Raises OptimizerError for
    `clip_global_norm`, row_sparse weights or too many steps.
    """
    if updater.clip_global_norm is not None or parameter.format != "dense" or count > STEPS:
        raise OptimizerError(
            f"Many steps of {name} in one call take dense weights, no clip_global_norm, and are up to {STEPS}; "
            f"{count} were asked for."
        )
    missed = parameter.missed
    if missed is not None:
        parameter.take_weights(weights)
        if missed.count + count > STEPS:
            parameter.catch_up(weights)
    last = updater.numbers(name, parameter.step + count, updater.options["rescale"])
    if other is not None and other.has_settings(updater, last, count, weights.dtype):
        table = other.settings
    else:
        table = settings(updater, name, parameter.step + 1, count, weights.dtype)
    way: str = "lazy"
    update_arrays: tuple[Any, ...] = ()
    if missed is not None and not whole:
        way, update_arrays = missed.foresee(_matrices(updater, name, parameter, count), table, count)
    elif parameter.lazy == "off" and not whole:
        way, update_arrays = "standard", (_nothing(parameter),)
    return Ahead(parameter, weights, count, parameter.tables(weights), table, way, update_arrays, last, whole)


def _nothing(parameter: Parameter) -> np.ndarray:
    """Return an array of zeros [rows, N] that the parameter keeps for later calls; users must leave it zero."""
    if parameter.nothing is None:
        parameter.nothing = aligned.zeros((parameter.rows, parameter.width), parameter.dtype)
    return parameter.nothing


def _matrices(updater: "Updater", name: str, parameter: Parameter, count: int) -> list[tuple[float, ...]]:
    """Return the matrix of each of the next `count` zero-gradient steps of `parameter`, or one if all are equal.

    [] unless rows catch up by "closed_form". `updater` gives the scalars of the steps of the parameter `name`.
    """
    if parameter.missed is None or parameter.missed.way != "closed_form":
        return []
    from workbench.optimizers.deferred_updates import matrix_of

    rule, first = updater.optimizer.rule, parameter.step + 1
    is_one = isinstance(updater.schedule, schedules.Constant) and "step" not in rule.numbers
    steps = range(first, first + (1 if is_one else count))
    rescale = updater.options["rescale"]
    return [matrix_of(rule, updater.numbers(name, step, rescale)) for step in steps]


def settings(updater: "Updater", name: str, first: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Return the rule's settings in `count` steps from `first` on: [count, settings], or [1, settings] if constant.

    Of parameter `name`, in `dtype`. The schedule is evaluated for each step. O(count).
    """
    rule, rescale = updater.optimizer.rule, updater.options["rescale"]
    if not isinstance(updater.schedule, schedules.Constant):
        steps = range(first, first + count)
        return np.array([rule.settings(*updater.numbers(name, step, rescale)) for step in steps], dtype)
    numbers: list = updater.numbers(name, first, rescale)
    if "step" not in rule.numbers:
        return np.array([rule.settings(*numbers)], dtype)
    numbers[rule.numbers.index("step")] = np.arange(first, first + count)
    columns = rule.settings(*numbers)
    table = np.empty((count, len(columns)), dtype)
    for place, column in enumerate(columns):
        table[:, place] = column
    return table
