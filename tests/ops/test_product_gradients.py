"""sampled_dot, and the gradients of dot: those of the dense product, at the operand's own places where it is sparse."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from tests.support.operands import adversarial, canonical, close, operand, turned
from workbench import autodiff, formats, graph, ops
from workbench.ops.products.methods import SPARSE

RNG = np.random.default_rng(3)
FORMATS = ("dense", "csr", "csc", "coo", "row_sparse")
PAIRS = [*itertools.product(FORMATS, FORMATS)]
flags = (False, True)


@pytest.mark.parametrize("format", SPARSE)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_sampled_product_is_the_product_where_the_pattern_is(format, a, b):
    left, right = operand(7, 4, "usual", "float64"), operand(4, 5, "usual", "float64")
    dense = operand(7, 5, "usual", "float64")
    pattern, bad = formats.to_format(dense, format), adversarial(dense, format)
    for ta, tb in itertools.product(flags, flags):
        x, y = formats.to_format(turned(left, ta), a), formats.to_format(turned(right, tb), b)
        with ops.settings(strict=True):
            came = ops.sampled_dot(pattern, x, y, transpose_a=ta, transpose_b=tb)
            also = ops.sampled_dot(bad, x, y, transpose_a=ta, transpose_b=tb)
        assert formats.format_of(came) == format
        close(came, (left @ right) * (dense != 0))
        pattern_of_bad = np.zeros(dense.shape, bool)
        pattern_of_bad[bad.tocoo().coords] = True
        close(also, (left @ right) * pattern_of_bad)
        canonical(also)


@pytest.mark.parametrize("held", ["dense", "row_sparse"])
def test_a_pattern_that_is_none_gives_the_product(held):
    x = formats.to_format(operand(6, 4, "usual", "float32"), "csr")
    head = RNG.standard_normal((6, 3)).astype(np.float32)
    weight = formats.to_format(np.ones((4, 3), np.float32), held)
    came = ops.sampled_dot(weight, x, head, transpose_a=True)
    assert came == ops.dot(x, head, transpose_a=True)


def test_a_sampled_product_refuses_what_does_not_fit():
    x = formats.to_format(np.ones((2, 3), np.float32), "csr")
    with pytest.raises(ops.OpError, match=r"cannot take \(2, 4\) by \(4, 5\) at the places of \(2, 3\)"):
        ops.sampled_dot(x, np.ones((2, 4), np.float32), np.ones((4, 5), np.float32))
    with pytest.raises(ops.OpError, match="outer product is had with transpose_b alone"):
        ops.sampled_dot(x, np.ones(2, np.float32), np.ones(3, np.float32))


def gradients(x, y, head, **params):
    params = ops.dot.resolve(params)
    return ops.dot.gradient(head, ops.dot.compute((x, y), params), (x, y), params)


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_gradients_are_those_of_the_dense_product_where_the_operand_is(x, y):
    a, b = operand(6, 4, "usual", "float64"), operand(4, 5, "usual", "float64")
    head = RNG.standard_normal((6, 5))
    for ta, tb in itertools.product(flags, flags):
        one, other = formats.to_format(turned(a, ta), x), formats.to_format(turned(b, tb), y)
        with ops.settings(strict=True):
            by_x, by_y = gradients(one, other, head, transpose_a=ta, transpose_b=tb)
        for came, held, values, whole in ((by_x, x, turned(a, ta), head @ b.T), (by_y, y, turned(b, tb), a.T @ head)):
            whole = turned(whole, ta if came is by_x else tb)
            assert held not in SPARSE or formats.format_of(came) == held
            close(came, np.where(values != 0, whole, 0) if held in SPARSE else whole)


def test_gradient_of_a_weight_has_the_rows_that_the_batch_touches():
    x = scipy.sparse.csr_array((np.float32([0, 1]), ([0, 1], [4, 1])), shape=(2, 6))
    for weight in (np.ones((6, 3), np.float32), formats.to_format(np.eye(6, 3, dtype=np.float32), "row_sparse")):
        gradient = gradients(x, weight, np.ones((2, 3), np.float32))[1]
        assert gradient.indices.tolist() == [1, 4]


@pytest.mark.parametrize("x", FORMATS)
@pytest.mark.parametrize("transposed", flags)
def test_gradients_with_a_vector(x, transposed):
    a, b, head = operand(6, 4, "usual", "float64"), np.float64([1, 0, 2, 3]), RNG.standard_normal(6)
    by_x, by_y = gradients(formats.to_format(turned(a, transposed), x), b, head, transpose_a=transposed)
    close(by_y, a.T @ head)
    whole = turned(np.outer(head, b), transposed)
    close(by_x, np.where(turned(a, transposed) != 0, whole, 0) if x in SPARSE else whole)


def test_gradients_of_a_sampled_product():
    pattern = formats.to_format(operand(6, 5, "usual", "float64"), "csr")
    a, b, head = RNG.standard_normal((6, 3)), RNG.standard_normal((5, 3)), ops.sampled_dot
    params = {"transpose_a": False, "transpose_b": True}
    output = ops.sampled_dot(pattern, a, b, **params)
    head = formats.compressed.assemble("csr", output.indptr, output.indices, RNG.standard_normal(output.nnz), (6, 5))
    none, by_a, by_b = ops.sampled_dot.gradient(head, output, (pattern, a, b), params)
    assert none is None
    close(by_a, head.toarray() @ b)
    close(by_b, head.toarray().T @ a)


def test_a_graph_gives_a_sparse_variable_a_gradient_of_its_pattern():
    x = graph.variable("x", shape=(6, 4))
    y = graph.variable("y", format="csr", shape=(4, 3))
    w = graph.variable("w", format="row_sparse", shape=(4, 3))
    found = autodiff.gradients(ops.dot(x, y, result="dense"), ["x", "y"], heads=[graph.variable("head", shape=(6, 3))])
    assert [found[name].kind for name in "xy"] == ["sampled_dot", "sampled_dot"]
    heads = [graph.variable("head", shape=(6, 3))]
    assert autodiff.gradients(ops.dot(x, w), ["w"], heads=heads)["w"].kind == "dot"
