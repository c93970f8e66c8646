"""Symbols: order, names, groups, Python's operators; nothing here runs."""

import numpy as np
import pytest
import scipy.sparse

from workbench import formats, graph, ops
from workbench.graph import GraphError


@pytest.fixture
def x():
    return graph.variable("x", format="csr", shape=(4, 3))


@pytest.fixture
def w():
    return graph.variable("w", shape=(3, 2))


def test_arguments_come_depth_first_in_order_of_first_use(x, w):
    b, c = graph.variable("b"), graph.variable("c")
    made = ops.add(ops.add(c, ops.dot(x, w)), ops.multiply(b, c))
    assert made.arguments() == ["c", "x", "w", "b"]
    assert [*made.names().values()] == ["c", "x", "w", "dot0", "add0", "b", "multiply0", "add1"]


def test_automatic_names_number_an_operator_in_order_and_step_over_given_ones(x, w):
    first = ops.dot(x, w)
    taken = ops.negative(first, name="dot1")
    second = ops.dot(x, w)
    both = graph.group([taken, second, first])
    assert both.outputs() == ["dot1", "dot2", "dot0"]
    assert first.name == second.name == "dot0"  # each in the graph of its own
    assert [*both.names().values()] == ["x", "w", "dot0", "dot1", "dot2"]


def test_names_do_not_depend_on_what_was_made_before(x, w):
    for _ in range(3):
        ops.dot(x, w)
    assert ops.dot(x, w).outputs() == ["dot0"]


def test_a_node_used_twice_is_one_node(x, w):
    product = ops.dot(x, w)
    assert len(ops.add(product, product).nodes()) == 4


def test_two_variables_of_one_name_are_refused_when_used_together(w):
    other = graph.variable("w", shape=(3, 5))
    with pytest.raises(GraphError, match=r"Two different nodes are named 'w': a variable \(.*shape \(3, 2\).*\(3, 5\)"):
        ops.add(w, ops.square(other))
    with pytest.raises(GraphError, match="named 'w'"):
        graph.group([w, other])
    with pytest.raises(GraphError, match=r"name 'w' was given to a node of square.*an input of it has it already"):
        ops.square(w, name="w")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": 3}, TypeError, "A name is a string; 3 came"),
        ({"name": None}, GraphError, "needs a name"),
        ({"name": ""}, GraphError, "empty"),
        ({"format": "bsr"}, formats.FormatError, "Unknown format 'bsr'"),
        ({"shape": (2, -1)}, GraphError, r"The shape of v is \(2, -1\)"),
        ({"shape": (2.0,)}, GraphError, "whole numbers"),
        ({"shape": (True,)}, GraphError, "whole numbers"),
        ({"shape": 3}, GraphError, "a tuple"),
        ({"dtype": "float33"}, TypeError, "float33"),
        ({"rate_multiplier": -1}, GraphError, "rate_multiplier of v is -1"),
        ({"decay_multiplier": float("nan")}, GraphError, "decay_multiplier of v is nan"),
    ],
)
def test_a_variable_that_cannot_be_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        graph.variable(**{"name": "v", **arguments})


def test_a_variable_holds_what_it_was_made_with():
    v = graph.variable("v", "row_sparse", (None, 2), np.float64, "normal", 0.5, 0)
    assert dict(v.attributes) == {
        "format": "row_sparse",
        "shape": (None, 2),
        "dtype": "float64",
        "init": "normal",
        "rate_multiplier": 0.5,
        "decay_multiplier": 0.0,
    }


def test_symbols_cannot_be_changed(x, w):
    made = ops.dot(x, w)
    for change in (
        lambda: setattr(made, "inputs", ()),
        lambda: delattr(made, "op"),
        lambda: made.params.__setitem__("transpose_a", True),
        lambda: x.attributes.__setitem__("format", "dense"),
        lambda: setattr(graph.group([x]), "symbols", ()),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()


def test_a_symbol_has_no_truth_but_is_a_key(x):
    assert {x: 1}[x] == 1
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(x)
    with pytest.raises(TypeError):
        x in [graph.variable("y")]  # noqa: B015 - compares by element, which has no truth


OPERATORS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "mod": lambda a, b: a % b,
    "power": lambda a, b: a**b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_on_two_symbols(name):
    a, b = graph.variable("a"), graph.variable("b")
    made = OPERATORS[name](a, b)
    assert made.kind == name
    assert made.arguments() == ["a", "b"]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("number", [3, 0.5, np.float32(2), True])
def test_operators_with_numbers_on_either_side_mean_what_they_mean_on_arrays(name, number):
    a = graph.variable("a", dtype="float64")
    value = np.array([[0.5, 2.0, 3.0]])
    for made, expected in (
        (OPERATORS[name](a, number), OPERATORS[name](value, number)),
        (OPERATORS[name](number, a), OPERATORS[name](number, value)),
    ):
        assert made.arguments() == ["a"], "numbers are parameters, not inputs"
        node = made.op
        np.testing.assert_allclose(node(value, **made.params), expected)


def test_matrix_product_negation_and_absolute_value(x, w):
    assert (x @ w).kind == "dot"
    assert (-x).kind == "negative"
    assert abs(x).kind == "abs"


def test_arrays_on_either_side_become_constants(w):
    dense = np.ones((4, 3), np.float32)
    sparse = scipy.sparse.csr_array(dense)
    rows = formats.RowSparse.from_dense(dense)
    for array in (dense, sparse, rows):
        made = array @ w
        assert made.kind == "dot", type(array)
        assert made.inputs[0].kind == "constant"
        assert made.inputs[0].value is array
        assert made.names()[made.inputs[0]] == "constant0"
        swapped = ops.dot(w, array, transpose_a=True, transpose_b=True)
        assert swapped.inputs[1].kind == "constant"


def test_what_is_no_array_is_refused_among_the_inputs(w):
    with pytest.raises(formats.FormatError):
        ops.dot("x", w)
    with pytest.raises(GraphError, match="dot takes arrays and symbols; the number 3 came"):
        ops.dot(3, w)
    with pytest.raises(ops.OpError, match="no parameter"):
        ops.dot(w, w, transposed=True)
    with pytest.raises(ops.OpError, match="an array belongs among the inputs"):
        ops.add_scalar(w, scalar=np.ones(3))


def test_parameters_are_kept_in_one_form():
    v = graph.variable("v")
    made = ops.sum(v, axis=[np.int64(0), 1])
    assert made.params["axis"] == (0, 1)
    assert type(made.params["axis"][0]) is int


def test_a_group_by_number_by_name_and_in_turn(x, w):
    product = ops.dot(x, w, name="scores")
    both = graph.group([product, ops.square(product)])
    assert both[0] is product
    assert both["scores"] is product
    assert both["square0"] is both[-1]
    assert len(both) == 2
    assert [entry.kind for entry in both] == ["dot", "square"]
    assert graph.group([both, w]).outputs() == ["scores", "square0", "w"]
    with pytest.raises(KeyError, match=r"no output 'dot0'; its outputs are \['scores', 'square0'\]"):
        both["dot0"]
    with pytest.raises(GraphError, match="at least one"):
        graph.group([])
    with pytest.raises(GraphError, match="a int came"):
        graph.group([3])


def test_graphs_deeper_than_pythons_stack():
    node = graph.variable("v", shape=(2,))
    for _ in range(5000):
        node = ops.negative(node)
    assert len(node.nodes()) == 5001
    assert node.name == "negative4999"
    assert node.infer()[node].shape == (2,)


def test_texts_name_the_node(x, w):
    assert repr(x) == "<Symbol x: variable>"
    assert repr(ops.dot(x, w)) == "<Symbol dot0: dot(x, w)>"
    assert repr(graph.group([x, w])) == "<Group x, w>"
