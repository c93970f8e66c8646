"""The recorded linear regressions, trained by a module on the graph: error, weights and bias after every epoch."""

import numpy as np

from tests.support.golden_cases import STYPES, dense, read
from tests.support.golden_models import compare, compare_grad_formats, updater
from workbench import data, graph, ops
from workbench.module import Module

MOST_OF_SINGLE_ROWS = 1
"""Epochs that are compared of batches of one row, a thousand steps each; with `--exhaustive` all ten."""


def run(case, arrays, differs):
    """Train as recorded and compare every epoch."""
    epochs = case["epochs"] if case["batch_size"] > 1 else min(case["epochs"], MOST_OF_SINGLE_ROWS)
    x, label = read(arrays, case["data"]), read(arrays, case["label"])
    module, batches = regression(case, arrays, x, label)
    seen = []
    history = module.fit(
        batches,
        epochs=epochs,
        metric="mse",
        average="batches",
        epoch_end=lambda event: seen.append(event.module.weights()),
    )
    compare(case, [epoch.metric for epoch in history], case["mse_per_epoch"][:epochs], differs, "mse")
    for name in ("weight", "bias"):
        came = np.stack([dense(weights[name]) for weights in seen])
        compare(case, came, read(arrays, case[f"{name}_per_epoch"])[:epochs], differs, name)
    compare_grad_formats(module, {"weight": case["weight_grad_stype"]}, differs)


def regression(case, arrays, x, label):
    """The module as recorded, ready to train, and its batches."""
    width = case["features"]
    weight = graph.variable("weight", format=STYPES[case["weight_stype"]], shape=(width, 1))
    bias = graph.variable("bias", shape=(1,))
    scores = ops.dot(graph.variable("data", format="csr"), weight) + bias
    batches = data.Batches(x, label, rows=case["batch_size"], last="discard")
    module = Module(ops.linear_regression_output(scores, graph.variable("label"))).bind(batches)
    module.initialise(values={name: read(arrays, case[f"{name}0"]) for name in ("weight", "bias")})
    hyper = {**case["hyper"], "lazy_update": case["lazy_update"]}
    return module.set_optimizer(updater(case["optimizer"], hyper)), batches
