"""Sums over sparse arrays and their way back: in the stored rows alone, or dense with a warning, never dense unseen."""

import tracemalloc

import numpy as np
import pytest

from workbench import autodiff, executor, formats, graph, ops

D = 10**7
BYTES = 2**20
"""Bytes that a pass may hold beyond its arguments; a row for each of the D features would be 80 million."""

W = graph.variable("w", "row_sparse", dtype="float64")
V = graph.variable("v", "row_sparse", dtype="float64")
ON_STORED_ROWS = {
    "squares": ops.sum(ops.square(W)),
    "mean of squares": ops.mean(ops.square(W)) * 2,
    "absolute values": ops.sum(ops.abs(W)),
    "negated on both sides": -ops.sum(-ops.abs(W)),
    "halved": ops.sum(ops.square(W) * 0.5) / 3,
    "along rows": ops.sum(ops.square(W), axis=0),
    "kept axes": ops.sum(ops.square(W), axis=0, keepdims=True),
    "product with itself": ops.sum(W * W),
    "product of two": ops.sum(W * V),
    "power": ops.sum(W**3),
    "elastic net in one sum": ops.sum(ops.square(W) + ops.abs(W) * 0.1),
    "elastic net in two": ops.sum(ops.square(W)) + 0.1 * ops.sum(ops.abs(W)),
    "difference": ops.sum(ops.square(W) - ops.square(V)),
    "rectified": ops.sum(ops.relu(W)),
    "square_sum": ops.square_sum(W),
    "sum of square_sum": ops.sum(ops.square_sum(W, axis=1, keepdims=True)),
    "norm": ops.norm(W),
}


def rows_of(count, places, seed):
    values = np.random.default_rng(seed).uniform(0.5, 2, (len(places), 2)) * np.array([1, -1])
    return formats.RowSparse(values, places, (count, 2))


def bound(symbol, count, places=(1, 4, 5)):
    args = {"w": rows_of(count, [*places], 0), "v": rows_of(count, [*places[1:], 7], 1)}
    return executor.bind(symbol, {name: args[name] for name in symbol.arguments()}, grad_req="write")


def heads_of(made):
    return [np.ones(output.shape) for output in made.outputs.values()]


@pytest.mark.parametrize("name", ON_STORED_ROWS)
def test_the_gradient_has_stored_rows_and_is_that_of_the_dense_array(name):
    made = bound(ON_STORED_ROWS[name], 9)
    dense = executor.bind(
        made.graph,
        {key: array.toarray() for key, array in made.args.items()},
        formats=dict.fromkeys(made.args, "dense"),
        grad_req="write",
    )
    for executed in (made, dense):
        executed.forward(training=True)
    with ops.recording() as densified:
        found = made.backward(heads_of(made))
    assert not densified
    assert "densifies" not in made.explain().text()
    for key, expected in dense.backward(heads_of(dense)).items():
        gradient = found[key]
        assert formats.format_of(gradient) == "row_sparse"
        stored = gradient.indices
        assert set(stored) <= {1, 4, 5, 7}
        np.testing.assert_allclose(gradient.values, expected[stored], rtol=1e-12)
        at_rows = made.args[key].indices
        np.testing.assert_allclose(gradient.toarray()[at_rows], expected[at_rows], rtol=1e-12)


@pytest.mark.parametrize("name", ON_STORED_ROWS)
def test_it_costs_nothing_for_features_that_are_not_stored(name):
    tracemalloc.start()
    try:
        made = bound(ON_STORED_ROWS[name], D)
        made.forward(training=True)
        made.backward(heads_of(made))
        assert tracemalloc.get_traced_memory()[1] < BYTES
    finally:
        tracemalloc.stop()
    assert made.bytes_buffers < BYTES


@pytest.mark.parametrize("held", ["csr", "csc", "coo"])
def test_matrices_keep_their_pattern(held):
    x = formats.to_format(np.array([[0, 2.0, 0], [-1, 0, 0], [0, 0, 0]]), held)
    made = executor.bind(ops.sum(ops.square(graph.variable("x", held, dtype="float64"))), {"x": x}, grad_req="write")
    made.forward(training=True)
    with ops.recording() as densified:
        gradient = made.backward()["x"]
    assert not densified
    assert formats.format_of(gradient) == held
    np.testing.assert_array_equal(gradient.toarray(), 2 * x.toarray())


def test_what_is_dense_by_nature_is_dense_with_a_warning():
    made = bound(ops.sum(W), 8)
    made.forward(training=True)
    with pytest.warns(ops.DensifyWarning, match=r"spread has no rule for dense, row_sparse. Making .*\(8, 2\) dense"):
        assert isinstance(made.backward()["w"], np.ndarray)
    assert [line.name for line in made.explain().densified] == ["spread0"]
    with (
        ops.settings(strict=True),
        pytest.raises(ops.DensifyError, match="spread0 has no rule for its inputs' formats"),
    ):
        bound(ops.sum(W), 8)


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.parametrize(
    "symbol", [ops.sum(W), ops.mean(ops.sin(W)), ops.sum(ops.tanh(W) * 2), ops.max(W), ops.prod(W)]
)
def test_every_array_that_is_made_dense_is_recorded(symbol):
    made = bound(symbol, 8)
    made.forward(training=True)
    with ops.recording() as densified:
        gradient = made.backward()["w"]
    assert isinstance(gradient, np.ndarray)
    assert densified
    assert densified[0].bytes == 8 * 2 * 8


def test_the_gradient_of_a_gradient_of_squares_stays_on_stored_rows():
    first = autodiff.gradients(ops.sum(ops.square(W)), ["w"], heads=[graph.constant(np.ones(()))])["w"]
    head = graph.variable("head", "row_sparse", dtype="float64")
    second = autodiff.gradients(first, ["w"], heads=[head])["w"]
    args = {"w": rows_of(9, [1, 4], 0), "head": rows_of(9, [1, 4], 2)}
    made = executor.bind(second, args)
    with ops.recording() as densified:
        (found,) = made.forward()
    assert not densified
    assert formats.format_of(found) == "row_sparse"
    np.testing.assert_allclose(found.toarray(), 2 * args["head"].toarray())


def test_a_factor_that_is_broadcast_gives_the_gradient_of_the_whole():
    """The other factor is smaller than the product, so nothing can stay unspread for it alone."""
    x, y = graph.variable("x", dtype="float64"), graph.variable("y", dtype="float64")
    rng = np.random.default_rng(0)
    args = {"x": rng.standard_normal((4, 3)), "y": rng.standard_normal(3)}
    made = executor.bind(ops.sum(x * y, axis=1), args, grad_req="write")
    made.forward(training=True)
    head = rng.standard_normal(4)
    found = made.backward([head])
    np.testing.assert_allclose(found["x"], head[:, None] * args["y"])
    np.testing.assert_allclose(found["y"], head @ args["x"])
