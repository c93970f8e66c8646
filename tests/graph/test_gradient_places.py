"""Which places a gradient has: those that formats and stored places say, whatever the values, on every path."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support import op_arrays
from workbench import executor, formats, graph, ops

MATRICES = ("csr", "csc", "coo")


def gradient_of(symbol, args, name, **formats_of):
    held = {key: formats.format_of(value) for key, value in args.items()} | formats_of
    bound = executor.bind(symbol, args, formats=held, grad_req={name: "write"})
    outputs = bound.forward(training=True)
    return bound.backward([np.ones(output.shape) for output in outputs])[name]


def symbols(*names):
    return [graph.variable(name, dtype="float64") for name in names]


X, Y, Z, W = symbols("x", "y", "z", "w")
ONE_TWO, ONE_FIVE = (np.array([[1.0, second]]) for second in (2, 5))
WEIGHTS = np.array([[3.0], [4.0]])


@pytest.mark.parametrize("form", MATRICES)
@pytest.mark.parametrize("combined", [ops.subtract(X, Y), ops.add(X, -Y), ops.add_n(X, -Y)])
def test_where_values_cancel_the_gradient_stays(form, combined):
    args = {"x": formats.to_format(ONE_TWO, form), "y": formats.to_format(ONE_FIVE, form), "w": WEIGHTS}
    np.testing.assert_array_equal(gradient_of(ops.sum(ops.dot(combined, W)), args, "x").toarray(), [[3, 4]])


@pytest.mark.parametrize("form", MATRICES)
@pytest.mark.parametrize(
    ("symbol", "stored"),
    [
        (ops.sum(Z @ W), 3.0),
        (ops.sum(Z), 1.0),
        (ops.sum(Z @ W) + ops.sum(Z), 4.0),
        (ops.sum(Z) + ops.sum(Z @ W) + ops.sum(ops.square(Z)), 6.0),
        (ops.sum(ops.sin(Z)), np.cos(1)),
        (ops.sum(ops.sin(Z) @ W), 3 * np.cos(1)),
        (ops.mean(ops.exp(Z)), np.e / 2),
        (ops.sum(ops.floor(Z)), 0.0),
        (ops.sum(ops.stop_gradient(Z)), 0.0),
        (ops.squared_loss(ops.to_format(Z, format="dense"), graph.constant(np.zeros((1, 2)))), 1.0),
        (ops.max(Z), 1.0),
    ],
)
@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_the_places_of_a_gradient_are_those_of_the_array_however_it_is_used(form, symbol, stored):
    value = formats.to_format(np.array([[1.0, 0.0]]), form)
    args = {name: array for name, array in {"z": value, "w": WEIGHTS}.items() if name in symbol.arguments()}
    slope = gradient_of(symbol, args, "z")
    assert formats.format_of(slope) == form
    np.testing.assert_array_equal(op_arrays.stored_places(slope), [[True, False]])
    np.testing.assert_allclose(slope.toarray(), [[stored, 0]])


@pytest.mark.parametrize("value", [1.0, 0.0], ids=["stored", "stored zero"])
def test_a_stored_zero_is_a_place(value):
    z = sp.csr_array((np.array([value]), np.array([0]), np.array([0, 1])), shape=(1, 2))
    slope = gradient_of(ops.sum(ops.dot(ops.multiply(Z, Z) + Z, W)), {"z": z, "w": WEIGHTS}, "z")
    assert (slope.indices.tolist(), slope.data.tolist()) == ([0], [3 * (2 * value + 1)])


@pytest.mark.parametrize("form", MATRICES)
@pytest.mark.parametrize("chain", [lambda x: x, ops.negative, lambda x: x * 2 + ops.sin(x), ops.transpose])
@pytest.mark.parametrize("held", ["dense", "row_sparse"])
def test_what_is_converted_has_the_gradient_of_the_whole_array(held, chain, form):
    """The places of a converted array are made from its values; its gradient must not be."""
    random = np.random.default_rng(0)
    dense = np.where(random.random((4, 3)) < 0.5, 0, random.standard_normal((4, 3)))
    converted, straight = (chain(to(X)) for to in (lambda x: ops.to_format(x, format=form), lambda x: x))
    w = random.standard_normal((straight.infer({"x": (4, 3)})[straight].shape[1], 2))
    slopes = [
        formats.to_format(gradient_of(ops.sum(ops.dot(s, W)), {"x": value, "w": w}, "x"), "dense")
        for s, value in ((converted, formats.to_format(dense, held)), (straight, dense))
    ]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-12)


def test_a_sampled_product_has_no_gradient_outside_its_pattern():
    pattern = sp.csr_array(np.array([[1.0, 0], [0, 2]]))
    a, b = np.array([[2.0], [3]]), np.array([[5.0, 7]])
    symbol = ops.sum(ops.sampled_dot(graph.constant(pattern), X, Y))
    np.testing.assert_array_equal(gradient_of(symbol, {"x": a, "y": b}, "x"), [[5], [7]])
    np.testing.assert_array_equal(gradient_of(symbol, {"x": a, "y": b}, "y"), [[2, 3]])


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_operators_on_stored_values_have_no_gradient_elsewhere():
    x = formats.RowSparse(np.array([[1.0, 2]]), [1], (3, 2))
    for symbol in (ops.stored_add_scalar(X, scalar=2.0), ops.stored_divide(X, graph.constant(np.ones((3, 2))))):
        slope = formats.to_format(gradient_of(ops.sum(ops.square(symbol) + symbol), {"x": x}, "x"), "dense")
        assert slope[1].all()
        assert not slope[[0, 2]].any()


def test_the_sum_over_a_large_sparse_array_is_not_spread_over_all_of_it():
    x = sp.csr_array((np.ones(2), np.array([3, 10**9]), np.array([0, 1, 2])), shape=(2, 2 * 10**9))
    with ops.settings(strict=True):
        slope = gradient_of(ops.sum(2 * X - X * X), {"x": x}, "x")
    assert slope.data.tolist() == [0, 0]


def test_rows_of_a_product_follow_what_is_stored_not_what_cancels():
    x, y = (sp.csr_array(np.array([[1.0, value, 0]])) for value in (2, 5))
    slope = gradient_of(ops.sum(ops.dot(X - Y, W)), {"x": x, "y": y, "w": np.ones((3, 1))}, "w")
    assert (slope.format, slope.indices.tolist(), slope.values.ravel().tolist()) == ("row_sparse", [0, 1], [0, -3])


@pytest.mark.parametrize(("left", "right"), [("dense", "dense"), ("csr", "dense"), ("dense", "csr"), ("csr", "csr")])
def test_a_product_asked_for_as_csr_stores_what_its_operands_say(left, right):
    x, y = np.array([[1.0, 1], [0, 2]]), np.array([[1.0, 2], [-1, 0]])
    product = ops.dot(formats.to_format(x, left), formats.to_format(y, right), result="csr")
    assert product.nnz == (3 if (left, right) == ("csr", "csr") else 4)  # of which one has a sum of zero
    np.testing.assert_array_equal(product.toarray(), x @ y)


def test_sparse_factors_of_zero_and_infinity():
    """What is not stored stays zero, in row_sparse as in csr."""
    for form in ("csr", "coo", "row_sparse"):
        x, y = (formats.to_format(np.array(rows), form) for rows in ([[np.inf], [0.0]], [[0.0], [np.inf]]))
        assert not ops.multiply(x, y).toarray().any()
