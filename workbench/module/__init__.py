"""Modules: a graph with parameters and an optimizer, trained over epochs, checkpointed, resumed, scored and applied.

>>> import numpy as np
>>> from workbench import data, graph, ops
>>> x, label = graph.variable("data", format="csr"), graph.variable("label")
>>> weight = graph.variable("weight", shape=(20, 3), init="zeros")
>>> scores = ops.dot(x, weight)
>>> made = data.load("uniform", rows=90, features=20, density=0.3, classes=3, cache=False)
>>> batches = data.Batches(made.x, made.y, rows=30, shuffle=True)
>>> module = Module(ops.softmax_output(scores, label), label_names=["label"])
>>> module = module.bind(batches).initialise(seed=0).set_optimizer("sgd", learning_rate=0.5, rescale=1 / 30)
>>> [round(epoch.metric, 1) for epoch in module.fit(batches, epochs=3, metric="accuracy")]
[0.4, 0.8, 0.8]
"""

from workbench.module.checkpoint import Position, load_model
from workbench.module.core import Module
from workbench.module.initialisers import ModuleError
from workbench.module.training import BatchEnd, EpochEnd, Shown, StopTraining

__all__ = ["BatchEnd", "EpochEnd", "Module", "ModuleError", "Position", "Shown", "StopTraining", "load_model"]
