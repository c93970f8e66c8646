"""Predictions compute the prediction and nothing else: no loss on labels that are not there, nor on those that are."""

import numpy as np
import pytest

from tests.support import small_modules as small
from workbench import data, executor, formats, graph, ops
from workbench.executor import BindError
from workbench.module import Module, ModuleError


def unlabelled():
    """Batches without labels."""
    return data.Batches(small.batches().x, None, 10)


def two_outputs():
    """Scores, and a loss on them that is not zero for labels of zero."""
    return small.linear(output="loss")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_batch_without_labels_has_no_loss(workers):
    module = small.module(two_outputs(), workers=workers)
    batch = next(unlabelled().epoch())
    scores, loss = module.forward(batch, training=False)
    assert loss is None
    labelled = module.forward(next(small.batches().epoch()), training=False)
    np.testing.assert_array_equal(labelled[0], scores)
    assert labelled[1] > 0
    assert module.forward(batch, training=False)[1] is None


@pytest.mark.parametrize("workers", [1, 3])
def test_predictions_and_scores_compute_no_loss(workers):
    module = small.module(two_outputs(), workers=workers)
    wanted = module.forward(next(small.batches(rows=small.ROWS).epoch()), training=False)[0].copy()
    np.testing.assert_allclose(module.predict(unlabelled()), wanted, rtol=1e-12)
    assert module.outputs[1] is None
    np.testing.assert_allclose(module.predict(small.batches()), wanted, rtol=1e-12)
    assert module.outputs[1] is None
    assert module.score(small.batches(), "mse") == pytest.approx(((wanted - small.TARGETS) ** 2).mean())
    assert module.outputs[1] is None


@pytest.mark.parametrize("workers", [1, 2])
def test_training_goes_on_as_if_nothing_had_been_predicted(workers):
    weights = []
    for asks in (False, True):
        module = small.module(two_outputs(), workers=workers, settings={"learning_rate": 0.05})
        for _ in range(2):
            for batch in small.batches().epoch():
                if asks:
                    module.predict(data.Batches(small.batches().x, None, 7))
                module.forward(batch)
                module.backward()
                module.update()
        weights.append(module.weights())
    assert small.same(*weights)


def test_output_layers_predict_without_labels():
    module = small.module()
    assert module.layout.without_labels == [0]
    came = module.forward(next(unlabelled().epoch()), training=False)[0]
    assert came.shape == (10, 2)


def test_a_prediction_that_is_made_of_labels_needs_them():
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    error = ops.dot(x, graph.variable("w", shape=(small.FEATURES, 2), init="normal")) - label
    module = small.module(error)
    assert module.predict(small.batches()).shape == small.TARGETS.shape
    with pytest.raises(ModuleError, match=r"output 0, subtract0, which is computed from labels; the batch has none"):
        module.predict(unlabelled())
    with pytest.raises(ModuleError, match="A metric compares with the label 'label'; the batch has the labels none"):
        small.module(two_outputs()).score(unlabelled(), "mse")
    with pytest.raises(ModuleError, match="not initialised yet"):
        Module(two_outputs()).predict(unlabelled())


# the executor's part


def bound():
    x, y = graph.variable("x", dtype="float64"), graph.variable("y", dtype="float64")
    scores = ops.tanh(x)
    made = graph.group([scores, ops.sum(ops.square(scores - y)), ops.exp(y)])
    args = {"x": np.linspace(-1, 1, 6).reshape(3, 2), "y": np.ones((3, 2))}
    return executor.bind(made, args, grad_req="write")


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [([0], ["tanh0"]), ([2], ["exp0"]), ([1], ["tanh0", "subtract0", "square0", "sum0"]), ([], []), ([2, 0], None)],
)
def test_the_steps_that_outputs_need_are_run_and_no_others(wanted, steps):
    made, run = bound(), []
    whole = [output.copy() for output in made.forward()]
    came = made.forward(wanted=wanted, on_step=lambda step: run.append(step.name))
    assert run == (["tanh0", "exp0"] if steps is None else steps)
    for place, (one, other) in enumerate(zip(came, whole, strict=True)):
        if place in wanted:
            np.testing.assert_array_equal(one, other)
        else:
            assert one is None or f"{made.output_names[place]}" in run
    for one, other in zip(made.forward(), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_training_computes_all_outputs():
    made = bound()
    with pytest.raises(BindError, match=r"wanted chooses outputs of forward\(training=False\)"):
        made.forward(training=True, wanted=[0])
    made.forward(wanted=[0])
    with pytest.raises(BindError, match="backward needs the values of a forward pass"):
        made.backward([np.ones((3, 2)), None, np.ones((3, 2))])


def test_outputs_that_share_a_node_are_both_there():
    x = graph.variable("x", dtype="float64")
    square = ops.square(x)
    made = executor.bind(graph.group([square, x, square]), {"x": np.eye(2)})
    first, given, second = made.forward(wanted=[0])
    np.testing.assert_array_equal(first, np.eye(2))
    assert second is first
    np.testing.assert_array_equal(given, np.eye(2))
    made.args["x"] = np.full((2, 2), 3.0)
    assert formats.to_format(made.forward(wanted=[2])[0], "dense")[0, 0] == 9
