"""Calls before their turn, and what does not fit a module: each has its message."""

import numpy as np
import pytest

from tests.support import small_modules as small
from workbench import data, formats, graph, metrics, ops
from workbench.graph import GraphError
from workbench.module import Module, ModuleError, initialisers
from workbench.optimizers import Updater


def unbound() -> Module:
    return Module(small.linear())


def bound() -> Module:
    return unbound().bind(small.batches())


def started() -> Module:
    return bound().initialise()


def ready() -> Module:
    return started().set_optimizer("sgd", learning_rate=0.1)


def batch() -> data.Batch:
    return next(small.batches().epoch())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unbound().initialise(), r"not bound yet; call bind\(batches\) first"),
        (lambda: unbound().forward(batch()), r"not initialised yet; call initialise\(...\) first"),
        (lambda: unbound().prepare(batch()), r"not bound yet; call bind\(batches\) first"),
        (lambda: bound().forward(batch()), r"not initialised yet; call initialise\(...\) first"),
        (lambda: bound().set_optimizer("sgd"), r"not initialised yet; call initialise\(...\) first"),
        (lambda: bound().weights(), r"not initialised yet; call initialise\(...\) first"),
        (lambda: bound().save("x"), r"not initialised yet; call initialise\(...\) first"),
        (lambda: bound().bind(small.batches()), "bound already; batches with other numbers of rows need no"),
        (
            lambda: started().fit(small.batches(), epochs=1),
            r"fit needs an optimizer; call set_optimizer\('sgd', learning_rate=0.1\)",
        ),
        (lambda: started().update(), "update needs an optimizer"),
        (lambda: ready().update(), r"update needs gradients, and uses them up; call backward\(\) first"),
        (lambda: ready().backward(), r"call forward\(batch, training=True\) first"),
        (lambda: bound().predict(small.batches()), "not initialised yet"),
        (lambda: started().score(small.batches(), None), "score needs a metric, such as 'accuracy'"),
    ],
)
def test_a_call_before_its_turn_says_what_to_call_first(call, message):
    with pytest.raises(ModuleError, match=message):
        call()


def test_gradients_are_used_up():
    module = ready()
    module.forward(batch())
    module.backward()
    with pytest.raises(ModuleError, match="backward needs what a forward pass leaves"):
        module.backward()
    module.update()
    with pytest.raises(ModuleError, match="update needs gradients"):
        module.update()
    module.forward(batch(), training=False)
    with pytest.raises(ModuleError, match="backward needs"):
        module.backward()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Module(small.linear(), ["x"]),
            "data_names has x; the graph's arguments are data, weight, bias, label",
        ),
        (lambda: Module(small.linear(), label_names=["y"]), "label_names has y; the graph's arguments are"),
        (lambda: Module(small.linear(), ["data", "label"]), "'label' is among data_names and label_names"),
        (lambda: Module(small.linear(), fixed=["v"]), "fixed has v; the parameters are weight, bias"),
        (lambda: Module(small.linear(), workers=0), "workers is 0; it is the number of slices"),
        (lambda: Module(small.linear(), slices="max"), "slices is 'max'; it is one of mean, sum"),
        (lambda: Module(small.linear(), prediction=1), "prediction is 1; the graph has 1 outputs"),
        (lambda: bound().initialise(values={"v": np.zeros(2)}), "values has v; the parameters are weight, bias"),
        (
            lambda: bound().initialise(values={"bias": np.zeros(3)}),
            r"The value of bias has the shape \(3,\); the param",
        ),
        (
            lambda: Module(small.linear(init="he")).bind(small.batches()).initialise(),
            "weight starts as 'he'; write one of",
        ),
        (lambda: initialisers.draw(("zeros", 1), "w", (2,), "f4", 0), "zeros takes no number"),
        (lambda: initialisers.draw(("normal", np.inf), "w", (2,), "f4", 0), "the others a finite one"),
        (
            lambda: initialisers.draw("constant", "w", (2,), "f4", 0),
            r"a constant needs its number: \('constant', 0.5\)",
        ),
        (lambda: initialisers.draw("xavier", "w", (2,), "f4", 0), r"xavier is for matrices; the shape \(2,\) came"),
        (lambda: initialisers.draw("normal", "w", (2,), "f4", -1), "The seed is -1; it is a whole number from 0"),
        (lambda: initialisers.draw((), "w", (2,), "f4", 0), r"w starts as \(\); write one of zeros"),
        (
            lambda: started().set_optimizer(Updater("sgd", learning_rate=1), learning_rate=2),
            r"cannot be given here: \['learning_rate'\]",
        ),
        (
            lambda: started().forward(next(data.Batches({"a": np.ones((2, 2))}, np.ones(2)).epoch())),
            "The batch has the data a; the module takes data. Name them alike",
        ),
        (
            lambda: started().forward(next(data.Batches({"data": small.batches().x, "b": np.ones(53)}).epoch())),
            "The batch has the data data, b; the module takes data",
        ),
        (
            lambda: started().forward(next(data.Batches(small.batches().x, {"y": np.ones((53, 2))}).epoch())),
            "The batch has the labels y; the module takes label",
        ),
        (
            lambda: ready().score(data.Batches(small.batches().x), "mse"),
            "A metric compares with the label 'label'; the batch has the labels none",
        ),
        (
            lambda: ready().fit(data.Batches(small.batches().x), epochs=1),
            r"Training reads the labels label; the batch has none. forward\(..., training=False\)",
        ),
        (lambda: started().initialise(), "initialised already; make another one to start over"),
        (
            lambda: small.module(graph.group([small.linear(output="loss").heads[1]])).predict(small.batches()),
            "The prediction is output 0, mean0, which has no row for each row of a batch; name another one",
        ),
        (lambda: ready().fit(small.batches(), epochs=1, metric="f1"), "Unknown metric 'f1'"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(call, message):
    with pytest.raises((ModuleError, metrics.MetricError), match=message):
        call()


def test_a_batch_of_other_width_is_refused():
    narrow = data.Batches(formats.to_format(np.ones((4, 3)), "csr"), np.ones((4, 2)))
    with pytest.raises(GraphError, match=r"data has the shape .*30\); \(4, 3\) came"):
        started().forward(next(narrow.epoch()))


def test_dense_data_for_csr_is_refused_where_rows_catch_up_too():
    module = small.module(optimizer="momentum", settings={"learning_rate": 0.1, "lazy": "exact"})
    module.fit(small.batches(), epochs=1)
    with pytest.raises(GraphError, match="data is csr float64; dense float64 came"):
        module.forward(next(data.Batches(small.DENSE, small.TARGETS).epoch()))


def test_a_module_says_how_far_it_is():
    states = [repr(made()) for made in (unbound, bound, started, ready)]
    assert states == [
        f"<Module weight, bias: {state}>"
        for state in (
            "not bound, epoch 0",
            "bound, epoch 0",
            "initialised, epoch 0",
            "initialised, epoch 0, <Updater sgd, lazy=on, rate 0.1>",
        )
    ]


def test_a_parameter_without_a_shape_is_refused_at_bind():
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    symbol = ops.linear_regression_output(ops.dot(x, graph.variable("weight")), label)
    with pytest.raises(GraphError, match="The shape is missing of: weight"):
        Module(symbol).bind(small.batches())
