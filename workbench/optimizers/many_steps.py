"""Steps that other code does by itself, many in one call: what it is to be given of an updater."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from workbench.optimizers import schedules
from workbench.optimizers.contract import OptimizerError
from workbench.optimizers.parameter import Parameter

if TYPE_CHECKING:
    from workbench.optimizers.updater import Updater


def begin(
    updater: "Updater", name: str, parameter: Parameter, weights: np.ndarray, count: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """(weights and states as tables [rows, N], states of a number a row as [rows], `settings` of the steps).

    Where a step depends on more than the gradient of its rows, an `OptimizerError`.
    """
    if updater.clip_global_norm is not None or parameter.missed is not None or parameter.format != "dense":
        raise OptimizerError(
            f"Many steps of {name} in one call take dense weights, no clip_global_norm, and lazy on, or exact with "
            "options by which rows miss nothing."
        )
    return parameter.tables(weights), settings(updater, name, parameter.step + 1, count, weights.dtype)


def count(parameters: Iterable[Parameter], steps: int) -> None:
    """Count steps that were done of the parameters."""
    for parameter in parameters:
        parameter.step += steps


def settings(updater: "Updater", name: str, first: int, count: int, dtype: np.dtype) -> np.ndarray:
    """What the rule's formula takes in `count` steps of a parameter from `first` on, of that type [count, numbers], or
    [1, numbers] where all steps have the same. O(count); a schedule is asked for each step."""
    rule, rescale = updater.optimizer.rule, updater.options["rescale"]
    if not isinstance(updater.schedule, schedules.Constant):
        steps = range(first, first + count)
        return np.array([rule.settings(*updater.numbers(name, step, rescale)) for step in steps], dtype)
    numbers: list = updater.numbers(name, first, rescale)
    if "step" not in rule.numbers:
        return np.array([rule.settings(*numbers)], dtype)
    numbers[rule.numbers.index("step")] = np.arange(first, first + count)
    return np.stack([np.broadcast_to(column, count) for column in rule.settings(*numbers)], axis=1).astype(dtype)
