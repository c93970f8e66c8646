"""Optimizers by name, and `Updater`, which applies one to named parameters.

How to add one: write the rule, for which `kernels/updates/adagrad.py` is the one to copy, and copy `adagrad.py` of
this folder. Its docstring gives both rules as formulas, a line "Equal when", and a line "Exact" that says how rows
catch up; `register` makes it an axis value of every sweep.

Weights w, gradient g, rate r, decay l; d = clip(rescale * g), where clip keeps each element from -clip to clip, after
`rescale`. `lazy` says what a gradient does that holds some rows only:

off    the dense rule: a row that is absent has gradient zero, and decay and momentum act on it
on     the lazy rule: rows that the gradient holds, and no others; a row of zeros that is stored counts as held
exact  the lazy rule, after each row has caught up on what it missed, so that training is that of the dense rule

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
    Optimizer,
    OptimizerError,
    by_rule,
    get,
    names,
    register,
    unavailable,
)
from workbench.optimizers.updater import Multiplier, Updater

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
