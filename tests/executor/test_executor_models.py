"""Whole models through the executor: against finite differences, in the formats that the tables say."""

import sys

import numpy as np
import pytest
import scipy.sparse

from tests.graph.test_autodiff import at_stored, differences
from workbench import executor, formats, graph, ops
from workbench.ops.contract import Op, same_shape

R, D = 7, 9


def data(format="csr", dtype=np.float64):
    random = np.random.default_rng(3)
    dense = random.uniform(0.5, 1.5, (R, D)) * (random.random((R, D)) < 0.4)
    dense[2] = 0
    return formats.to_format(dense.astype(dtype), format)


def weights(shape, format="dense", seed=0):
    return formats.to_format(np.random.default_rng(seed).standard_normal(shape), format)


def symbols(args):
    return {
        name: graph.variable(name, formats.format_of(value), dtype=value.dtype.name) for name, value in args.items()
    }


def regression(loss, width, label):
    args = {"x": data(), "w": weights((D, width)), "b": weights((1, width), seed=1), "y": label}
    v = symbols(args)
    return ops.get(loss)(ops.add(ops.dot(v["x"], v["w"]), v["b"]), v["y"]), args, {"w": "row_sparse", "b": "dense"}


def factorization_machine():
    """logistic(w0 + X w + (sum((X v)^2 - X^2 v^2)) / 2)."""
    random = np.random.default_rng(5)
    args = {"x": data(), "v": weights((D, 3), "row_sparse"), "w": weights((D, 1), "row_sparse", 1)}
    args |= {"w0": weights((1, 1), seed=2), "y": random.integers(0, 2, (R, 1)).astype(np.float64)}
    v = symbols(args)
    crossed = ops.square(ops.dot(v["x"], v["v"])) - ops.dot(ops.square(v["x"]), ops.square(v["v"]))
    scores = ops.dot(v["x"], v["w"]) + 0.5 * ops.sum(crossed, axis=1, keepdims=True) + v["w0"]
    return ops.logistic_loss(scores, v["y"]), args, {"v": "row_sparse", "w": "row_sparse", "w0": "dense"}


def matrix_factorization():
    """Scores of users and items as sums of products of their embeddings, an id more than once."""
    args = {"user": np.array([0, 3, 3, 1]), "item": np.array([4, 4, 0, 2]), "y": weights((4,), seed=3)}
    args |= {"u": weights((5, 3)), "i": weights((6, 3), seed=1)}
    v = symbols(args)
    rows = (ops.embedding(v[ids], v[table], sparse_grad=True) for ids, table in (("user", "u"), ("item", "i")))
    scores = ops.sum(ops.multiply(*rows), axis=1, keepdims=True)
    return ops.squared_loss(scores, v["y"]), args, {"u": "row_sparse", "i": "row_sparse"}


def two_layers():
    args = {"x": data(), "w": weights((4, D)), "b": weights((4,), seed=1), "v": weights((3, 4), seed=2)}
    args["y"] = np.array([0, 1, 2, 0, 1, 2, 0])
    v = symbols(args)
    hidden = ops.tanh(ops.fully_connected(v["x"], v["w"], v["b"]))
    made = ops.softmax_loss(ops.fully_connected(hidden, v["v"]), v["y"])
    return made + 0.01 * ops.sum(ops.square(v["w"])), args, {"w": "dense", "b": "dense", "v": "dense"}


REAL = np.random.default_rng(4).standard_normal((R, 2))
MODELS = {
    "squared": lambda: regression("squared_loss", 2, REAL),
    "squared, flat labels": lambda: regression("squared_loss", 1, REAL[:, 0]),
    "logistic": lambda: regression("logistic_loss", 1, (REAL[:, 0] > 0).astype(np.float64)),
    "softmax": lambda: regression("softmax_loss", 3, np.array([0, 1, 2, 0, 1, 2, 0])),
    "factorization machine": factorization_machine,
    "matrix factorization": matrix_factorization,
    "two layers": two_layers,
}


@pytest.mark.parametrize("fused_loss", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_models(name, fused_loss, monkeypatch):
    made, args, expected = MODELS[name]()
    if not fused_loss:
        monkeypatch.setattr("workbench.executor.binding.slopes_of", lambda graph, facts: {})
    with ops.recording() as log:
        bound = executor.bind(made, args, grad_req=dict.fromkeys(expected, "write"))
        bound.forward(training=True)
        found = dict(bound.backward())
    assert not log, "a model of sparse operators makes nothing dense"
    assert {key: formats.format_of(gradient) for key, gradient in found.items()} == expected
    for key, gradient in found.items():
        again = {other: formats.copy(value) for other, value in args.items()}
        slopes = differences(made, again, {}, key, [np.float64(1)])
        np.testing.assert_allclose(at_stored(gradient, args[key]), slopes, rtol=1e-6, atol=1e-8, err_msg=key)


@pytest.mark.parametrize("grad_format", ["dense", "row_sparse"])
def test_an_embedding_is_asked_for_its_gradients_format(grad_format):
    made, args, _ = matrix_factorization()
    bound = executor.bind(made, args, grad_req={"u": "write"}, grad_formats={"u": grad_format})
    bound.forward(training=True)
    assert formats.format_of(bound.backward()["u"]) == grad_format
    assert bound.training.gradients["u"].kind == "embedding_gradient"


@pytest.mark.parametrize("layer", ["linear_regression_output", "logistic_regression_output", "mae_regression_output"])
def test_output_layers_need_no_head_and_ignore_one(layer):
    args = {"x": data(), "w": weights((D, 2)), "y": REAL}
    v = symbols(args)
    made = ops.get(layer)(ops.dot(v["x"], v["w"]), v["y"])
    bound = executor.bind(made, args, grad_req={"w": "write"})
    found = []
    for head in (None, np.full((R, 2), 7.0)):
        predictions = bound.forward(training=True)[0].copy()
        found.append(bound.backward(head)["w"].toarray())
    np.testing.assert_array_equal(*found)
    difference = (np.sign if layer.startswith("mae") else np.positive)(predictions - REAL) / 2
    np.testing.assert_allclose(found[0], args["x"].toarray().T @ difference)


def test_softmax_output_trains_as_the_loss_does():
    made, args, _ = MODELS["softmax"]()
    scores, labels = made.inputs
    layer = ops.softmax_output(scores, labels, normalization="batch")
    found = []
    for head in (made, layer):
        bound = executor.bind(head, args, grad_req={"w": "write"})
        bound.forward(training=True)
        found.append(bound.backward()["w"].toarray())
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("request_", ["write", "add"])
def test_the_gradient_of_sparse_data_has_its_format_and_pattern(format, request_):
    args = {"x": data(format), "w": weights((D, 2))}
    v = symbols(args)
    bound = executor.bind(ops.dot(v["x"], v["w"]), args, grad_req={"x": request_})
    head = np.random.default_rng(8).standard_normal((R, 2))
    for _ in range(2):
        bound.forward(training=True)
        found = bound.backward(head)["x"]
    pattern = args["x"].toarray() != 0
    times = 2 if request_ == "add" else 1
    assert found.format == format
    np.testing.assert_allclose(found.toarray(), times * pattern * (head @ args["w"].T))


def test_added_gradients_keep_their_shape():
    bound = executor.bind(
        ops.dot(graph.variable("x", shape=(None, 3)), graph.variable("w", shape=(3, 2))),
        {"x": np.ones((4, 3), np.float32)},
        grad_req={"x": "add"},
    )
    bound.forward(training=True, x=np.ones((1, 3), np.float32))
    with pytest.raises(executor.BindError, match=r"shape \(1, 3\) came to one of \(4, 3\).*Request write"):
        bound.backward(np.ones((1, 2), np.float32))


def test_training_learns():
    """A linear model on sparse data, by hand-made descent, reaches the weights that made the labels."""
    random = np.random.default_rng(0)
    x = scipy.sparse.random_array((200, 10), density=0.3, format="csr", dtype=np.float64, random_state=random)
    truth = np.arange(1.0, 11).reshape(10, 1)
    v = graph.variable("x", "csr", dtype="float64"), graph.variable("w", shape=(10, 1), dtype="float64")
    loss = ops.squared_loss(ops.dot(*v), graph.variable("y", dtype="float64"))
    bound = executor.bind(loss, {"x": x, "y": x @ truth}, grad_req={"w": "write"})
    for _ in range(300):
        bound.forward(training=True)
        gradient = bound.backward()["w"]
        bound.args["w"][gradient.indices] -= 5 * gradient.values
    np.testing.assert_allclose(bound.args["w"], truth, rtol=1e-6)


def calls_in_a_forward(nodes: int) -> int:
    """Calls of Python functions in the second `forward` of a graph of operators that do nothing."""
    nothing = Op("nothing", ("x",), lambda x, out=None: out, same_shape)
    node = graph.variable("x", shape=(4,))
    for _ in range(nodes):
        node = nothing(node)
    bound = executor.bind(node)
    bound.forward()
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    try:
        bound.forward()
    finally:
        sys.setprofile(None)
    return seen.count("call")


def test_a_node_costs_the_call_of_its_operator_and_a_list_of_its_inputs():
    assert calls_in_a_forward(200) - calls_in_a_forward(100) <= 2 * 100
