"""Optimizers by name, and `Updater`, which applies one to named parameters.

How to add one: write the update rule (copy `kernels/updates/adagrad.py`) and add an entry to `rules.toml`. Its text
gives the dense and the lazy rule as formulas, a line "Equal when", and a line "Exact" that says how rows catch up. It
is then one of the values of `optimizer` in sweeps.

Weights w, gradient g, learning rate r, decay l; d = clip(rescale * g), where clip limits each element to
[-clip, clip] after `rescale`. `lazy` states how a gradient that stores only some rows is applied:

off    dense rule: an absent row has gradient zero, and decay and momentum act on it
on     lazy rule: only rows that the gradient stores are updated; a stored row of zeros counts as stored
exact  deferred rule: as lazy, but each row first catches up on the steps that it missed, so that training equals that
       of the dense rule

>>> import numpy as np
>>> from workbench import formats
>>> w = np.ones((4, 2), np.float32)
>>> updater = Updater("sgd", learning_rate=0.5)
>>> updater.update({"w": w}, {"w": formats.RowSparse([[1.0, 2.0]], [2], (4, 2))})
>>> w.tolist()
[[1.0, 1.0], [1.0, 1.0], [0.5, 0.0], [1.0, 1.0]]
"""

from workbench.optimizers.contract import (
    LAZY,
    Multiplier,
    Optimizer,
    OptimizerError,
    by_rule,
    get,
    names,
    register,
    unavailable,
)
from workbench.optimizers.updater import Updater

__all__ = [
    "LAZY",
    "Multiplier",
    "Optimizer",
    "OptimizerError",
    "Updater",
    "by_rule",
    "get",
    "names",
    "register",
    "unavailable",
]
