"""Models by name, one file each. How to add one: copy `softmax.py`.

The models here are linear in their weights: scores = X @ W with W [D, N], and with an intercept + b with b [N]; what
differs is the loss on the scores, the targets and the measure of quality.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.registry import Registry
from workbench import ops
from workbench.graph import Symbol, variable


class ModelError(ValueError):
    """A model is not known; the message lists those that are."""


@dataclass(frozen=True)
class Model:
    """`loss` names the kernel of the mean loss and its gradient; `quality(scores, targets)` is a number to compare.

    `widths` says which widths N it has, in words; `allows(width)` decides.
    """

    name: str
    loss: str
    quality_name: str
    quality: Callable[[np.ndarray, np.ndarray], float]
    widths: str
    allows: Callable[[int], bool]

    def graph(self, engine: str = "ours", intercept: bool = False) -> tuple[Symbol, Symbol]:
        """The symbols of the scores [R, N] = x @ w, plus b where there is an intercept, and of the mean loss on y."""
        scores = ops.get("dot")(variable("x"), variable("w"), engine=engine, name="products" if intercept else "scores")
        if intercept:
            scores = ops.get("add")(scores, variable("b"), name="scores")
        return scores, ops.get(f"{self.loss}_loss")(scores, variable("y"), name="loss")


_models: Registry[Model] = Registry("model", (__name__,), ModelError)
register, names, get, unavailable = _models.register, _models.names, _models.get, _models.unavailable
