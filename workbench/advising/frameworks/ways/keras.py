"""Keras: model.fit with a Dense layer on dense rows and on CSR rows; our layer and optimizer."""

from functools import partial
from typing import Any, final

import numpy as np

from workbench.advising.frameworks.training import LoopTrainer, Problem, State
from workbench.advising.frameworks.ways import register_way, why_no_dense


@final
class KerasTrainer(LoopTrainer):
    """`model.fit` on the rows of an order; `kind` is how they come, dense or sparse, `is_ours` the layer and step."""

    def __init__(self, problem: Problem, kind: str, is_ours: bool) -> None:
        """Make and compile a one-layer Keras model with zero weights and plain SGD.

        `kind` is "dense" or "sparse" rows; `is_ours` uses this project's layer and optimizer.
        """
        import keras

        super().__init__(problem)
        self.kind = kind
        rows = keras.Input((problem.features,), sparse=kind == "sparse")
        layer, optimizer = self._ours(problem) if is_ours else self._theirs(keras, problem)
        self.model = keras.Model(rows, layer(rows))
        loss = keras.losses.BinaryCrossentropy if problem.outputs == 1 else keras.losses.SparseCategoricalCrossentropy
        self.model.compile(optimizer, loss(from_logits=True))
        self.layer = layer

    @staticmethod
    def _theirs(keras: Any, problem: Problem) -> tuple[Any, Any]:
        """Return Keras' (Dense layer with zero weights, SGD)."""
        zeros = {"kernel_initializer": "zeros", "bias_initializer": "zeros"}
        return keras.layers.Dense(problem.outputs, **zeros), keras.optimizers.SGD(problem.rate)

    @staticmethod
    def _ours(problem: Problem) -> tuple[Any, Any]:
        """Return this project's (`SparseDense` with zero weights, `LazySGD`)."""
        from workbench.bridges.keras import LazySGD, SparseDense

        zeros: dict[str, Any] = {"kernel_initializer": "zeros", "bias_initializer": "zeros"}
        return SparseDense(problem.outputs, **zeros), LazySGD(problem.rate)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` by `model.fit`, in place.

        `losses` is not written, as Keras reports none per batch.
        """
        one = self.problem
        x = one.csr[order] if self.kind == "sparse" else one.dense[order]
        y = one.labels[order] if one.outputs > 1 else one.labels[order].astype(np.float32)[:, None]
        self.model.fit(x, y, batch_size=one.batch_rows, shuffle=False, verbose=0)

    def state(self) -> State:
        """Return weights [D, N] and intercept [N]; losses are unknown."""
        weights, intercept = (np.asarray(value) for value in self.layer.get_weights())
        return State(weights, intercept)


def _register(name: str, kind: str, way: str, side: str = "independent", **more: Any) -> None:
    """Register a Keras way, with the name that the template of its code has for it.

    `kind` is "dense" or "sparse", `side` "independent" or "project"; `more` are further fields.
    """
    make = partial(KerasTrainer, kind=kind, is_ours=side == "project")
    register_way("keras", name, kind, make, way, side, **more)


_register("Keras Dense, dense rows", "dense", "dense", why_not=why_no_dense)
_register("Keras Dense, CSR rows", "sparse", "sparse")
_register("SparseDense and LazySGD", "sparse", "bridge", side="project")
