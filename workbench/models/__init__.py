"""Models by name, one file each. How to add one: copy `softmax.py`, or `factorization_machine.py` for one that is no
product X @ W alone.

A file states all that the project knows of a model: its parameters and how they start, the graph of its scores, the
loss, the kind of target that it asks of the labels, its natural width and its measure of quality. Training, checks,
sweeps, the prediction of memory, panel and report follow from that.
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
class Parameter:
    """A trained array, by its name in the graph.

    `shape` is made of numbers and of the letters D (features) and N (width). The rows of a `touched` parameter belong
    to the features: a sparse batch changes those that it has entries of, and its gradient may be row_sparse. Where the
    gradient is a `product` X.T @ slope it may be fused with the update too. Starting values are normal with that
    `deviation`, zeros for 0.
    """

    name: str
    shape: tuple[str | int, ...]
    touched: bool = False
    product: bool = False
    deviation: float = 0.0
    decays: bool = True
    """Whether weight decay is for it."""

    def lengths(self, features: int, width: int) -> tuple[int, ...]:
        """The shape at D features and width N.

        >>> Parameter("w", ("D", "N")).lengths(100, 3)
        (100, 3)
        """
        known = {"D": features, "N": width}
        return tuple(known[length] if isinstance(length, str) else length for length in self.shape)

    def gradient_format(self, asked: str) -> str:
        """The format of its gradient where `asked` is that of the training: the nearest that there is."""
        if not self.touched:
            return "dense"
        return "row_sparse" if asked == "fused" and not self.product else asked


def product(x: Symbol, engine: str) -> Symbol:
    """The scores X @ W of a model that is linear in its only parameter w."""
    return ops.get("dot")(x, variable("w"), engine=engine)


W = Parameter("w", ("D", "N"), touched=True, product=True)
"""The weights of such a model."""


@dataclass(frozen=True)
class Model:
    """One model. `scores(x, engine)` builds the symbol of its scores [R, outputs] from that of X [R, D].

    `loss` names the kernel of the mean loss of the scores on the targets, and of its slope; `target` is the kind of
    target, as `data.targets` makes it. `outputs` is the number of scores a row where that is not the width N. `width`
    is the natural width where the labels do not ask for one. `widths` says in words which widths there are, `allows`
    decides. `quality(scores, targets)` is a number, larger is better, called `quality_name`.
    """

    name: str
    loss: str
    target: str
    quality_name: str
    quality: Callable[[np.ndarray, np.ndarray], float]
    scores: Callable[[Symbol, str], Symbol] = product
    parameters: tuple[Parameter, ...] = (W,)
    widths: str = "any width from 1"
    allows: Callable[[int], bool] = lambda width: width >= 1
    outputs: int | None = None
    width: int | None = None

    @property
    def is_product(self) -> bool:
        """Whether the scores are X @ W and nothing else, which trains on a CUDA device."""
        return self.scores is product

    def trained(self, intercept: bool) -> tuple[Parameter, ...]:
        """All parameters, the intercept b [outputs] among them where there is one."""
        b = Parameter("b", (self.outputs or "N",), decays=False)
        return (*self.parameters, b) if intercept else self.parameters

    def graph(self, engine: str = "ours", intercept: bool = False) -> tuple[Symbol, Symbol]:
        """The symbols of the scores, plus b where there is an intercept, and of the mean loss on y."""
        scores = self.scores(variable("x"), engine)
        if intercept:
            scores = ops.get("add")(scores, variable("b"), name="scores")
        return scores, ops.get(f"{self.loss}_loss")(scores, variable("y"), name="loss")


_models: Registry[Model] = Registry("model", (__name__,), ModelError)
register, names, get, unavailable = _models.register, _models.names, _models.get, _models.unavailable
