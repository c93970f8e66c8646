"""Several steps of one parameter in one compiled call (whole epochs): the arrays and settings that such a call
takes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import aligned
from workbench.optimizers import schedules
from workbench.optimizers.contract import OptimizerError
from workbench.optimizers.deferred_updates import STEPS, matrix_of
from workbench.optimizers.parameter import Parameter

if TYPE_CHECKING:
    from workbench.optimizers.updater import Updater


@dataclass(frozen=True)
class Ahead:
    """The next `count` steps of a parameter. `begin` creates it; call `end` after the steps were done.

    `tables` are weights and states [rows, N] (states with one value per row: [rows]); `settings` the settings of the
    steps [count or 1, numbers]. `way` names the treatment of inactive rows (lazy, standard or a catch-up strategy) and
    `beside` the arrays for it, as in `kernels.epochs`.
    """

    parameter: Parameter
    weights: np.ndarray
    count: int
    tables: list[np.ndarray]
    settings: np.ndarray
    way: str
    beside: tuple
    numbers_last: list[float]
    whole: bool

    def end(self) -> None:
        """Count the steps as done and record what inactive rows have missed."""
        parameter, missed = self.parameter, self.parameter.missed
        parameter.step += self.count
        if missed is not None and self.whole:
            missed.pass_by(self.count)
        elif missed is not None:
            missed.done(self.count, self.numbers_last)
            if missed.is_full:
                parameter.catch_up(self.weights)


def begin(
    updater: "Updater", name: str, parameter: Parameter, weights: np.ndarray, count: int, whole: bool = False
) -> Ahead:
    """Prepare the next `count` steps (at most `STEPS`) of dense weights for a compiled call.

    `whole` states that each step updates all rows. Rows that cannot wait catch up first. Raises OptimizerError for
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
    table = settings(updater, name, parameter.step + 1, count, weights.dtype)
    last = updater.numbers(name, parameter.step + count, updater.options["rescale"])
    way: str = "lazy"
    beside: tuple[Any, ...] = ()
    if missed is not None and not whole:
        way, beside = missed.foresee(_matrices(updater, name, parameter, count), table, count)
    elif parameter.lazy == "off" and not whole:
        way, beside = "standard", (_nothing(parameter),)
    return Ahead(parameter, weights, count, parameter.tables(weights), table, way, beside, last, whole)


def _nothing(parameter: Parameter) -> np.ndarray:
    """Return an array of zeros [rows, N] that is reused by the next call, which must leave it zero."""
    if parameter.nothing is None:
        parameter.nothing = aligned.zeros((parameter.rows, parameter.width), parameter.dtype)
    return parameter.nothing


def _matrices(updater: "Updater", name: str, parameter: Parameter, count: int) -> list[tuple[float, ...]]:
    """Return the matrix of each of the next steps without gradient, or one if all are equal; empty unless rows catch
    up in closed form.
    """
    if parameter.missed is None or parameter.missed.way != "coast":
        return []
    rule, first = updater.optimizer.rule, parameter.step + 1
    is_one = isinstance(updater.schedule, schedules.Constant) and "step" not in rule.numbers
    steps = range(first, first + (1 if is_one else count))
    rescale = updater.options["rescale"]
    return [matrix_of(rule, updater.numbers(name, step, rescale)) for step in steps]


def settings(updater: "Updater", name: str, first: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Return the settings of the formula in `count` steps from step `first` on: [count, numbers], or [1, numbers] if
    constant.

    The schedule is evaluated for each step. O(count).
    """
    rule, rescale = updater.optimizer.rule, updater.options["rescale"]
    if not isinstance(updater.schedule, schedules.Constant):
        steps = range(first, first + count)
        return np.array([rule.settings(*updater.numbers(name, step, rescale)) for step in steps], dtype)
    numbers: list = updater.numbers(name, first, rescale)
    if "step" not in rule.numbers:
        return np.array([rule.settings(*numbers)], dtype)
    numbers[rule.numbers.index("step")] = np.arange(first, first + count)
    return np.stack([np.broadcast_to(column, count) for column in rule.settings(*numbers)], axis=1).astype(dtype)
