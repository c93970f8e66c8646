"""Steps of dense parameters by gradients that are in the same arrays each time: validated and looked up once."""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

import kernels
from workbench.optimizers.parameter import Parameter, table
from workbench.optimizers.updater import Updater

Bound = tuple[str, Parameter, np.ndarray, Callable[..., Any]]


@final
class Repeated:
    """A step of an updater on fixed weights and gradients. Created by `repeated`."""

    def __init__(self, updater: Updater, bound: list[Bound]) -> None:
        self.updater, self.bound = updater, bound

    def fits(self, updater: Updater) -> bool:
        """Return whether the step still belongs to this updater and its parameters."""
        return (
            updater is self.updater
            and updater.clip_global_norm is None
            and all(updater.parameters.get(name) is one and w.flags.carray for name, one, w, _ in self.bound)
        )

    def run(self) -> None:
        """Do the step with the current options, multipliers and schedule."""
        updater = self.updater
        updater.obey()
        rescale = updater.options["rescale"]
        numbers = [updater.numbers(name, one.step + 1, rescale) for name, one, _, _ in self.bound]
        for (_, parameter, _, step), given in zip(self.bound, numbers, strict=True):
            step(*given)
            parameter.step += 1


def repeated(updater: Updater, weights: Mapping[str, Any], gradients: Mapping[str, Any]) -> Repeated | None:
    """Prepare the step of parameters that have done at least one.

    Returns None if a parameter is not dense, has rows that catch up, or a gradient that is not dense and contiguous.
    """
    bound = []
    for name, gradient in gradients.items():
        parameter = updater.parameters.get(name)
        if parameter is None or type(gradient) is not np.ndarray or not parameter.is_settled(weights[name]):
            return None
        kernel = kernels.get(f"{parameter.optimizer.name}_dense")
        step = kernel.bind(*parameter.tables(weights[name]), table(gradient, parameter.rows, parameter.width))
        if step is None:
            return None
        bound.append((name, parameter, weights[name], step))
    return Repeated(updater, bound)
