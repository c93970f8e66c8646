"""Optimizers by name: the dense rule and the lazy rule side by side, one file each.

How to add one: copy `adagrad.py`. The docstring gives both rules as formulas and a line "Equal when"; `dense` and
`lazy` change the weights and the state in place; `register` makes it an axis value of every sweep.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernels.registry import Registry
from workbench.formats import RowSparse


class OptimizerError(ValueError):
    """An optimizer or one of its options is not known, or an update does not fit; the message lists what is."""


@dataclass(frozen=True)
class Optimizer:
    """`dense(weights, states, gradient, step, **options)` and `lazy(...)` with a row_sparse gradient; both in place.

    `states` names the arrays of the weights' shape that the rule keeps; `options` its settings with their defaults.
    """

    name: str
    states: tuple[str, ...]
    options: Mapping[str, float]
    dense: Callable[..., None]
    lazy: Callable[..., None]

    def new_states(self, weights: np.ndarray) -> list[np.ndarray]:
        """Zeros of the shape and type of `weights`, one array for each name in `states`."""
        return [np.zeros_like(weights) for _ in self.states]

    def resolve(self, given: Mapping[str, float]) -> dict[str, float]:
        """The options with the given ones in place; unknown names are an `OptimizerError` that lists the known."""
        if unknown := sorted(set(given) - set(self.options)):
            raise OptimizerError(f"{self.name} has no option {unknown}; its options are {sorted(self.options)}.")
        return {**self.options, **given}


_optimizers: Registry[Optimizer] = Registry("optimizer", (__name__,), OptimizerError)
register, names, get = _optimizers.register, _optimizers.names, _optimizers.get


def full(gradient: RowSparse, out: np.ndarray) -> np.ndarray:
    """Write a row_sparse gradient into the dense array `out` [D, N], zeros elsewhere: what a standard update reads."""
    out[...] = 0
    out[gradient.indices] = gradient.values
    return out
