"""Head gradients, and what becomes of gradients: written, added, left out, held apart."""

import itertools

import numpy as np
import pytest

from tests.support.executor_case import batch, bound, expected_gradient, model
from workbench import executor, formats, graph, ops
from workbench.executor import BindError, program


def test_outputs_that_are_no_loss_need_heads():
    x, _ = batch()
    made = executor.bind(model().inputs[0], {"x": x}, grad_req={"w": "write"})
    made.forward(training=True)
    with pytest.raises(BindError, match=r"scores has the shape \(6, 3\), so backward needs"):
        made.backward()
    with pytest.raises(BindError, match=r"head of scores has the shape \(3, 6\); the output's is \(6, 3\)"):
        made.backward(np.ones((3, 6), np.float32))
    with pytest.raises(BindError, match="2 heads came for 1 outputs"):
        made.backward([None, None])
    head = np.arange(18, dtype=np.float64).reshape(6, 3)  # another type is cast
    found = made.backward(head)["w"]
    np.testing.assert_allclose(found.toarray(), x.toarray().T @ head, rtol=1e-5)


@pytest.mark.parametrize("head_format", ["dense", "csr", "row_sparse"])
def test_heads_are_converted_to_the_format_of_their_output(head_format):
    x, _ = batch()
    made = executor.bind(ops.multiply_scalar(graph.variable("x", "csr"), scalar=3), {"x": x}, grad_req="write")
    made.forward(training=True)
    head = formats.to_format((x.toarray() != 0).astype(np.float32), head_format)
    found = made.backward(head)["x"]
    assert formats.format_of(found) == "csr"
    np.testing.assert_allclose(found.toarray(), 3 * (x.toarray() != 0))


def test_a_head_given_to_a_loss_scales_its_gradient():
    made = bound()
    made.forward(training=True)
    once = made.backward()["w"].toarray()
    made.forward(training=True)
    np.testing.assert_allclose(made.backward(3)["w"].toarray(), 3 * once, rtol=1e-6)


def test_heads_of_ones_come_back_with_the_shapes_that_they_had():
    made = bound()
    x, y = batch()
    made.args["w"][:] = 0.5
    turns = list(itertools.product((6, 4), (None, None, 3, None)))
    for number in (0, 4, 1, 5, 2, 6, 3, 7, 0, 7, 2, 5, 4, 4):
        rows, head = turns[number]
        made.forward(training=True, x=x[:rows], y=y[:rows])
        found = made.backward(head)["w"].toarray()
        expected = (head or 1) * expected_gradient(x[:rows], y[:rows], made.args["w"])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_several_outputs():
    x, y = batch()
    loss = model()
    made = executor.bind(graph.group([loss, loss.inputs[0]]), {"x": x, "y": y}, grad_req={"w": "write"})
    made.args["w"][:] = 0.5
    assert list(made.outputs) == ["loss", "scores"]
    head = np.ones((6, 3), np.float32)
    made.forward(training=True)
    found = made.backward([None, head])["w"].toarray()
    expected = expected_gradient(x, y, made.args["w"]) + x.toarray().T @ head
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("grad_format", ["dense", "row_sparse", "csr"])
def test_add_sums_over_batches_in_every_format(grad_format):
    made = bound(grad_req={"w": "add"}, grad_formats={"w": grad_format})
    total = 0
    for seed in range(3):
        x, y = batch(seed=seed)
        made.forward(training=True, x=x, y=y)
        found = made.backward()["w"]
        total = total + expected_gradient(x, y, made.args["w"])
        assert formats.format_of(found) == grad_format
        np.testing.assert_allclose(formats.to_format(found, "dense"), total, rtol=1e-4, atol=1e-6)


def test_added_row_sparse_gradients_hold_the_union_of_rows():
    made = bound(grad_req={"w": "add"})
    rows = set()
    for seed in range(2):
        x, y = batch(seed=seed)
        made.forward(training=True, x=x, y=y)
        rows |= set(x.indices.tolist())
        assert made.backward()["w"].indices.tolist() == sorted(rows)


def test_write_replaces():
    made = bound()
    for seed in range(2):
        x, y = batch(seed=seed)
        made.forward(training=True, x=x, y=y)
        made.backward()
    np.testing.assert_allclose(made.grads["w"].toarray(), expected_gradient(x, y, made.args["w"]), rtol=1e-4, atol=1e-6)


def test_null_computes_nothing():
    made = bound(grad_req="null")
    assert made.grads == {}
    made.forward(training=True)
    assert made.backward() == {}


@pytest.mark.parametrize("request_", ["write", "add"])
def test_gradients_that_are_one_array_are_held_apart(request_):
    a, b = graph.variable("a", shape=(3,)), graph.variable("b", shape=(3,))
    made = executor.bind(ops.add(a, b), grad_req=request_)
    head = np.float32([1, 2, 3])
    made.forward(training=True)
    found = made.backward(head)
    found["a"][:] = 9
    assert found["b"].tolist() == [1, 2, 3]
    assert head.tolist() == [1, 2, 3]


def test_a_gradient_that_is_an_output_as_well():
    w = graph.variable("w", shape=(3,))
    made = executor.bind(w, {"w": np.float32([1, 2, 3])}, grad_req="write")
    head = np.float32([4, 5, 6])
    assert made.forward(training=True)[0].tolist() == [1, 2, 3]
    found = made.backward(head)["w"]
    assert found.tolist() == [4, 5, 6]
    assert found is not head


@pytest.mark.parametrize("format", ["dense", "csr", "row_sparse"])
def test_what_is_handed_on_is_not_copied_but_gradients_and_outputs_are_their_own(format):
    value = formats.to_format(np.eye(3, dtype=np.float32), format)
    a, b = (graph.variable(name, format, (3, 3)) for name in "ab")
    made = executor.bind(ops.identity(ops.add(ops.identity(a), b)), {"a": value, "b": value}, grad_req="write")
    output = made.forward(training=True)[0]
    assert {step.name: step.call is program.identity for step in made.program.forward} == {
        "identity0": True,
        "add0": False,
        "identity1": False,
    }
    found = made.backward(value)
    held = [value, output, found["a"], found["b"]]
    for one, other in itertools.combinations(held, 2):
        assert one is not other
        assert not np.shares_memory(data_of(one), data_of(other))
    np.testing.assert_array_equal(formats.to_format(found["b"], "dense"), np.eye(3))


def data_of(array):
    """The array of the values."""
    return next(iter(formats.get(formats.format_of(array)).parts(array).values()))
