"""Optimizers by name: the dense rule and the lazy rule side by side, one file each.

How to add one: copy `adagrad.py`. The docstring gives both rules as formulas and a line "Equal when"; `dense`, `lazy`
and `fused` change the weights and the state in place; `register` makes it an axis value of every sweep.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from kernels.plan import BatchPlan
from kernels.registry import Registry
from workbench.formats import RowSparse


class OptimizerError(ValueError):
    """An optimizer or one of its options is not known, or an update does not fit; the message lists what is."""


@dataclass(frozen=True)
class Optimizer:
    """`dense(weights, states, gradient, step, **options)` and `lazy(...)` with a row_sparse gradient; both in place.

    `fused(weights, states, plan, data, slope, step, **options)` is the lazy rule by the gradient X.T @ slope of the
    batch X with that plan and those stored values, which is never held. `states` names the arrays that the rule keeps,
    of the weights' shape or, with `states_by_row`, of one number a row; `options` its settings with their defaults.
    """

    name: str
    states: tuple[str, ...]
    options: Mapping[str, float]
    dense: Callable[..., None]
    lazy: Callable[..., None]
    fused: Callable[..., None] | None = None
    states_by_row: bool = False

    def new_states(self, weights: np.ndarray) -> list[np.ndarray]:
        """Zeros of the type of `weights`, one array for each name in `states`."""
        shape = weights.shape[:1] if self.states_by_row else weights.shape
        return [np.zeros(shape, weights.dtype) for _ in self.states]

    def resolve(self, given: Mapping[str, float]) -> dict[str, float]:
        """The options with the given ones in place; unknown names are an `OptimizerError` that lists the known."""
        if unknown := sorted(set(given) - set(self.options)):
            raise OptimizerError(f"{self.name} has no option {unknown}; its options are {sorted(self.options)}.")
        return {**self.options, **given}


_optimizers: Registry[Optimizer] = Registry("optimizer", (__name__,), OptimizerError)
register, names, get = _optimizers.register, _optimizers.names, _optimizers.get


def in_column_order(plan: BatchPlan, data: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, ...]:
    """What a fused kernel takes of a batch: its plan's arrays, its values, and the slope [R, N] of the loss."""
    return plan.columns, plan.segments, plan.rows, plan.permutation, data, slope


def full(gradient: RowSparse, out: np.ndarray) -> np.ndarray:
    """Write a row_sparse gradient into the dense array `out` [D, N], zeros elsewhere: what a standard update reads."""
    out[...] = 0
    out[gradient.indices] = gradient.values
    return out
