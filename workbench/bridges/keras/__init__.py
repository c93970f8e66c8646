"""Keras 3 on TensorFlow: a layer for sparse batches, our lazy optimizers, and what makes a model dense reported
beforehand.

>>> import keras
>>> from workbench import data
>>> from workbench.bridges.keras import LazyAdam, SparseDense, check_model
>>> from workbench.bridges.tensorflow import batches
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> rows = keras.Input((train.features,), sparse=True)
>>> model = keras.Model(rows, SparseDense(1, activation="sigmoid")(rows))
>>> model.compile(LazyAdam(0.05), "binary_crossentropy")
>>> check_model(model, train.features)
[]
>>> history = model.fit(batches(train, rows=50, shuffle=True), epochs=2, shuffle=False, verbose=0)
>>> losses = history.history["loss"]
>>> losses[1] < losses[0]
True

`SparseDense` has a row-sparse gradient; `LazyAdam` and its like, one for each of `workbench.optimizers`, step the rows
that a gradient holds, those of keras.layers.Dense on sparse rows and of Embedding too. `check_model` says where a model
would make its sparse rows dense, before it is trained.
"""

from typing import Any

from workbench.bridges.keras.layers import SparseDense, check_model
from workbench.bridges.keras.optimizers import CLASSES, LazyOptimizer

__all__ = ["LazyOptimizer", "SparseDense", "check_model"]


def __getattr__(name: str) -> Any:
    """Return the optimizer class of that name, such as LazyAdam."""
    if name not in CLASSES:
        classes = f"; lazy optimizers are {', '.join(CLASSES)}" if name.startswith("Lazy") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{classes}")
    return CLASSES[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *CLASSES])
