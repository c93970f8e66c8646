"""Models by name, one file each. How to add one: copy `softmax.py`.

The models here are linear in their weights: scores = X @ W with W [D, N]; what differs is the loss on the scores, the
targets and the measure of quality. There is no intercept: where one is wanted, X gets a column of ones.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import kernels
from kernels.registry import Registry


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

    def evaluate(self, scores: np.ndarray, targets: np.ndarray, gradient: np.ndarray) -> float:
        """Mean loss of scores [R, N]; its gradient goes to `gradient` [R, N]."""
        return float(kernels.get(self.loss).cpu(scores, targets, gradient))


_models: Registry[Model] = Registry("model", (__name__,), ModelError)
register, names, get = _models.register, _models.names, _models.get
