"""Gradients of graphs, given and random: against finite differences in several formats, and what is refused."""

import collections

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import random_graphs
from tests.support.toy_losses import joint_loss, plain_loss
from workbench import autodiff, executor, formats, graph, ops
from workbench.autodiff import AutodiffError


def variables(*names, **formats_of):
    return [graph.variable(name, formats_of.get(name, "dense"), dtype="float64") for name in names]


def sparse(shape, format, seed):
    """An array of that format, half of it zeros, one row empty, no value near a kink."""
    random = np.random.default_rng(seed)
    dense = random.uniform(0.2, 1.5, shape) * random.choice([-1, 1], shape) * (random.random(shape) < 0.5)
    dense[shape[0] // 2] = 0
    dense[0, 0] = 0.7
    return formats.to_format(dense, format)


def stored(array):
    """The array of the stored values, to be changed in place."""
    name = {"dense": None, "row_sparse": "values"}.get(formats.format_of(array), "data")
    return array if name is None else getattr(array, name)


def at_stored(gradient, array):
    """The entries of a gradient where the array stores values, in its order."""
    dense = formats.to_format(gradient, "dense")
    if isinstance(array, np.ndarray):
        return dense
    if formats.format_of(array) == "row_sparse":
        return dense[array.indices]
    coo = array.tocoo()
    return dense[coo.coords[0], coo.coords[1]]


def composed():
    """Name, graph, shapes: several operators, uses of a variable in more than one place, several outputs."""
    x, w, b, c = variables("x", "w", "b", "c")
    yield "product", ops.dot(x, w), "xw"
    yield "two layers", ops.dot(ops.tanh(ops.dot(x, w)), c, transpose_b=True), "xwc"
    yield "used twice", ops.multiply(ops.dot(x, w), ops.sin(ops.dot(x, w))), "xw"
    yield "thrice", ops.dot(x, w) + ops.square(ops.dot(x, w)) + ops.dot(ops.square(x), w), "xw"
    yield "bias", ops.add(ops.dot(x, w), b), "xwb"
    yield "numbers", 2 / (3 + ops.square(1 - 4 * ops.dot(x, w))), "xw"
    yield "group", graph.group([ops.sin(ops.dot(x, w)), ops.dot(x, w) * 3]), "xw"
    yield "regularised", graph.group([ops.dot(x, w), ops.square(w), ops.sin(x)]), "xw"


SHAPES = {"x": (5, 4), "w": (4, 3), "b": (1, 3), "c": (2, 3)}
GRAPHS = {name: (made, used) for name, made, used in composed()}


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.parametrize("w_format", ["dense", "row_sparse"])
@pytest.mark.parametrize("x_format", ["dense", "csr", "csc", "coo", "row_sparse"])
@pytest.mark.parametrize("name", GRAPHS)
def test_against_finite_differences(name, x_format, w_format):
    made, used = GRAPHS[name]
    held = {"x": x_format, "w": w_format, "b": "dense", "c": "dense"}
    args = {key: sparse(SHAPES[key], held[key], seed) for seed, key in enumerate(used)}
    kinds = {key: held[key] for key in used}
    bound = executor.bind(made, args, formats=kinds, grad_req=dict.fromkeys(used, "write"))
    outputs = bound.forward(training=True)
    random = np.random.default_rng(9)
    heads = [random.uniform(0.5, 1.5, o.shape) for o in outputs]
    for place, output in enumerate(outputs):  # a head in the format of a sparse output has that output's pattern
        if not isinstance(output, np.ndarray):
            heads[place] = heads[place] * (formats.to_format(output, "dense") != 0)
    gradients = dict(bound.backward(heads))
    for key in used:
        again = {other: formats.copy(value) for other, value in args.items()}
        expected = differences(made, again, kinds, key, heads)
        np.testing.assert_allclose(at_stored(gradients[key], args[key]), expected, rtol=1e-6, atol=1e-7, err_msg=key)


def differences(made, args, kinds, key, heads):
    bound = executor.bind(made, args, formats=kinds)
    values = stored(bound.args[key])
    found = np.empty(values.shape)
    for place in np.ndindex(values.shape):
        kept, sums = values[place], []
        for step in (1e-6, -1e-6):
            values[place] = kept + step
            sums.append(
                sum(
                    float((formats.to_format(output, "dense") * head).sum())
                    for output, head in zip(bound.forward(), heads, strict=True)
                )
            )
        values[place] = kept
        found[place] = (sums[0] - sums[1]) / 2e-6
    return found


@pytest.mark.parametrize("loss", [joint_loss, plain_loss], ids=["joint", "apart"])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_loss_needs_no_head_and_may_go_on(loss, scaled):
    x, w = variables("x", "w", x="csr")
    made = loss(ops.dot(x, w), graph.variable("y", dtype="int64"))
    made = ops.square(made) * 3 if scaled else made
    args = {"x": sparse((5, 4), "csr", 0), "w": sparse((4, 3), "dense", 1), "y": np.array([0, 1, 2, 1, 0])}
    bound = executor.bind(made, args, grad_req={"w": "write"})
    bound.forward(training=True)
    found = formats.to_format(bound.backward()["w"], "dense")
    expected = differences(made, args, {}, "w", [np.float64(1)])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("operator", ["square", "negative", "relu", "abs"])
def test_arrays_of_three_dimensions(operator):
    value = formats.RowSparse(np.random.default_rng(0).uniform(0.5, 1, (2, 3, 2)), [1, 4], (6, 3, 2))
    made = ops.get(operator)(graph.variable("v", "row_sparse", dtype="float64"))
    bound = executor.bind(made, {"v": value}, grad_req="write")
    bound.forward(training=True)
    head = np.random.default_rng(1).random((6, 3, 2))
    found = bound.backward(head)["v"]
    expected = differences(made, {"v": formats.copy(value)}, {}, "v", [head])
    np.testing.assert_allclose(at_stored(found, value), expected, rtol=1e-6)


def test_gradients_are_ordinary_symbols():
    x, w = variables("x", "w", x="csr")
    made = ops.dot(x, w)
    found = autodiff.gradients(made, [w, "x"], heads=[graph.variable("head", dtype="float64")])
    assert list(found) == ["w", "x"]
    both = graph.group([made, *found.values()])
    facts = both.infer({"x": (5, 4), "w": (4, 3), "head": (5, 3)})
    assert [entry.format for entry in facts.outputs] == ["dense", "row_sparse", "csr"]
    assert graph.from_json(both.to_json()).to_json() == both.to_json()
    assert found["w"].attributes["backward_of"] == "dot0"
    assert "row_sparse [4, 3] float64" in both.explain({"x": (5, 4), "w": (4, 3), "head": (5, 3)}).text()


def test_uses_are_added_once():
    w = graph.variable("w", shape=(2,))
    head = graph.variable("head", shape=(2,))
    assert autodiff.gradients(w + w, ["w"], [head])["w"].kind == "add"
    thrice = autodiff.gradients(ops.add_n(w, w, w), ["w"], [head])["w"]
    assert thrice.kind == "add_n"
    assert len(thrice.inputs) == 3


def test_only_what_is_needed_is_in_the_graph():
    x, w = variables("x", "w")
    found = autodiff.gradients(ops.dot(ops.tanh(x), w), ["w"], [graph.variable("head")])["w"]
    assert [node.kind for node in found.nodes()] == ["variable", "tanh", "variable", "dot"]


def test_stop_gradient_cuts():
    w, v = variables("w", "v")
    head = graph.variable("head", dtype="float64")
    made = ops.multiply(ops.stop_gradient(ops.square(w)), v)
    found = autodiff.gradients(made, ["w", "v"], [head])
    bound = executor.bind(
        graph.group([*found.values()]), {"w": np.array([3.0]), "v": np.array([2.0]), "head": np.array([1.0])}
    )
    assert [value.tolist() for value in bound.forward()] == [[0.0], [9.0]]


def test_a_variable_that_is_the_output():
    w = graph.variable("w", shape=(3,))
    head = graph.variable("head", shape=(3,))
    assert autodiff.gradients(w, ["w"], [head])["w"] is head


def test_an_operator_without_gradient_on_the_way_is_named():
    from workbench.ops.contract import Op, same_shape

    floor_like = Op("no_slope", ("x",), lambda x, out=None: np.floor(x, out=out), same_shape)
    w, v = variables("w", "v")
    made = ops.add(floor_like(ops.square(w), name="step"), v)
    head = graph.variable("head", dtype="float64")
    with pytest.raises(AutodiffError, match="no gradient towards w: step on the way is no_slope, which has none"):
        autodiff.gradients(made, ["w"], [head])
    assert autodiff.gradients(made, ["v"], [head])["v"].arguments()  # not on the way to v
    with pytest.raises(AutodiffError, match="no gradient towards w"):  # in part is not at all
        autodiff.gradients(ops.add(made, w), ["w"], [head])


def test_labels_have_no_gradient():
    x, y = graph.variable("x", shape=(2, 3)), graph.variable("y", shape=(2,), dtype="int64")
    with pytest.raises(AutodiffError, match=r"towards y: toy_loss \(toy_loss0\) has none towards its input 1"):
        autodiff.gradients(joint_loss(x, y), ["x", "y"])


def test_heads_are_asked_for_where_they_matter():
    x, w = graph.variable("x", shape=(2, 3)), graph.variable("w", shape=(3, 1))
    with pytest.raises(AutodiffError, match="The output scores is no loss and not known to hold one number"):
        autodiff.gradients(ops.dot(x, w, name="scores"), ["w"])
    one = ops.dot(graph.variable("x", shape=(1, 3)), w)
    assert autodiff.gradients(one, ["w"])["w"].kind == "dot"
    with pytest.raises(AutodiffError, match=r"There are 1 outputs, \['dot0'\]; 2 heads came"):
        autodiff.gradients(one, ["w"], [None, None])


def test_unknown_variables_are_refused():
    x = graph.variable("x")
    with pytest.raises(AutodiffError, match=r"no variable y; its variables are \['x'\]"):
        autodiff.gradients(ops.square(x), ["y"])
    with pytest.raises(AutodiffError, match="a list of variables"):
        autodiff.gradients(ops.square(x), "x")


def test_deep_graphs():
    node = graph.variable("v", shape=(2,), dtype="float64")
    for _ in range(400):
        node = ops.negative(node)
    found = autodiff.gradients(node, ["v"], [graph.variable("head", shape=(2,), dtype="float64")])["v"]
    assert len(found.nodes()) == 401


FEW = 250
"""Graphs in the suite: about five seconds."""


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@settings(max_examples=FEW, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_gradients_are_those_of_the_dense_meaning(data):
    case = random_graphs.grown(lambda options: data.draw(st.sampled_from(options)), data.draw(st.integers(0, 2**32)))
    random_graphs.check(case)


@pytest.mark.parametrize("wrong", ["negative", "multiply", "dot"])
@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
def test_a_wrong_gradient_is_noticed(wrong, monkeypatch):
    right = ops.get(wrong).gradient

    def halved(head, output, inputs, params):
        return tuple(
            None if part is None else ops.multiply_scalar(part, scalar=0.5)
            for part in right(head, output, inputs, params)
        )

    monkeypatch.setitem(vars(ops.get(wrong)), "gradient", halved)
    with pytest.raises(AssertionError):
        collections.deque(map(random_graphs.check, map(random_graphs.of_seed, range(150))), maxlen=0)
