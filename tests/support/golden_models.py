"""The recorded models, built as graphs and trained by a module: losses, accuracies, final parameters, formats."""

import numpy as np

from tests.support.golden_cases import STYPES, close_to, dense, read
from tests.support.golden_optim import RULES, updater_of
from workbench import data, formats, graph, metrics, ops
from workbench.module import Module
from workbench.optimizers import Multiplier, Updater


def run(case, arrays, differs):
    """Train as recorded; compare the first prediction, every epoch, the parameters, and the formats of gradients."""
    inputs = {name: read(arrays, reference) for name, reference in case["inputs"].items()}
    label = read(arrays, case["label"])
    batches = data.Batches(inputs, {"label": label}, rows=case["batch_size"], last="discard")
    output, loss = MODELS[case["model"]](case)
    module = Module(output, list(inputs)).bind(batches)
    module.initialise(values={name: read(arrays, reference) for name, reference in case["params0"].items()})
    module.set_optimizer(updater(case["optimizer"], hyper_of(case), multipliers_of(case)))
    first = module.forward(next(batches.epoch(0)), training=False)[0]
    compare(case, first, read(arrays, case["first_batch_output"]), differs, "first_output")
    history = module.fit(batches, epochs=case["epochs"], metric=loss)
    for place, wanted in enumerate(("loss_per_epoch", "accuracy_per_epoch")):
        if case[wanted] is not None:
            compare(
                case,
                [list(epoch.metric.values())[place] for epoch in history],
                case[wanted],
                differs,
                wanted.split("_")[0],
            )
    for name, reference in case["params"].items():
        compare(case, dense(module.weights()[name]), read(arrays, reference), differs, name)
    compare_grad_formats(module, case["grad_stypes"], differs)


def parameter(case, name):
    """A parameter as it was declared."""
    shape = tuple(case["params0"][name]["shape"])
    return graph.variable(name, format=STYPES[case["param_stypes"][name]], shape=shape)


def softmax_classifier(case):
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    scores = ops.dot(x, parameter(case, "weight")) + parameter(case, "bias")
    return ops.softmax_output(scores, label), metrics.create(["cross_entropy", "accuracy"])


def factorization_machine(case):
    """w0 + x w + (the sum over factors f of (x v_f)^2 - (x * x) v_f^2) / 2, through the sigmoid."""
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    w0, w, v = (parameter(case, name) for name in ("w0", "w", "v"))
    pairs = ops.sum(ops.square(ops.dot(x, v)), axis=1, keepdims=True)
    alone = ops.dot(ops.square(x), ops.square_sum(v, axis=1, keepdims=True))
    scores = ops.dot(x, w) + w0 + (pairs - alone) * 0.5
    loss = metrics.create(["log_loss", metrics.Metric("binary_accuracy", threshold=0.5)])
    return ops.logistic_regression_output(scores, label), loss


def matrix_factorization(case):
    user, item, label = (graph.variable(name) for name in ("user", "item", "label"))
    users = ops.embedding(user, parameter(case, "user_weight"), sparse_grad=True)
    items = ops.embedding(item, parameter(case, "item_weight"), sparse_grad=True)
    return ops.linear_regression_output(ops.sum(users * items, axis=1), label), metrics.create(["mse"])


MODELS = {model.__name__: model for model in (softmax_classifier, factorization_machine, matrix_factorization)}


def hyper_of(case):
    """The arguments of the optimizer, the rescaling among them."""
    return {**case["hyper"], "rescale_grad": case["rescale_grad"]}


def multipliers_of(case):
    """Rate and decay of every parameter, relative to the optimizer's."""
    rate, decay = case["hyper"]["learning_rate"], case["hyper"].get("wd", 0.0)
    return {
        name: Multiplier(case["lr_per_param"][name] / rate, case["wd_per_param"][name] / decay if decay else 1.0)
        for name in case["params0"]
    }


def updater(name, hyper, multipliers=None) -> Updater:
    """Ours for a recorded optimizer, named in lower or mixed case; lazy wherever gradients are sparse, unless told."""
    name = {known.lower(): known for known in RULES}[name.lower()]
    lazy = hyper.get("lazy_update", True)
    hyper = {key: value for key, value in hyper.items() if key != "lazy_update"}
    made, _ = updater_of({"optimizer": name, "hyper": hyper}, "off" if lazy is False else "on")
    made.multipliers.update(multipliers or {})
    return made


def compare(case, came, wanted, differs, field):
    """Values within the case's tolerances."""
    close_to(np.asarray(came), np.asarray(wanted), case, differs, field)


def compare_grad_formats(module, wanted, differs):
    """The formats of the last gradients."""
    (found,) = module.gradients
    for name, stype in wanted.items():
        if (came := formats.format_of(found[name])) != STYPES[stype]:
            differs("grad_stypes", f"{name}: {came}")
