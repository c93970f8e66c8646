"""Graphs to JSON and back; what is not understood is refused, with what is."""

import json

import numpy as np
import pytest
import scipy.sparse

from workbench import formats, graph, ops
from workbench.graph import GraphError


def whole() -> graph.Group:
    """A graph with a variable of every kind, given and automatic names, parameters, and constants of every format."""
    x = graph.variable("x", "csr", (None, 3), "float32")
    w = graph.variable("w", "row_sparse", (3, 2), init=["normal", 0.5], rate_multiplier=2, decay_multiplier=0)
    made = [ops.dot(x, w, name="scores"), ops.dot(x, w, transpose_a=False)]
    dense = np.float32([[1, np.nan, 0], [np.inf, -np.inf, -0.0]])
    sparse = scipy.sparse.csr_array(np.float32([[0, 2, 0], [1, 0, 0]]))
    held = [dense, *(formats.to_format(sparse, name) for name in ("csr", "csc", "coo", "row_sparse"))]
    held += [np.int64([[2**60]]), np.float64([[0.1]]), np.zeros((0, 3), np.float32)]
    made += [ops.negative(graph.constant(value, f"c{place}")) for place, value in enumerate(held)]
    made += [ops.multiply_scalar(x, scalar=float("inf"))]
    return graph.group([*made, w])


def same(a, b) -> bool:
    """Whether two values are the same in format, type, shape and bits."""
    parts = [formats.get(formats.format_of(v)).parts(v) for v in (a, b)]
    alike = formats.format_of(a) == formats.format_of(b) and a.dtype == b.dtype and a.shape == b.shape
    return alike and all(
        np.array_equal(parts[0][key], parts[1][key], equal_nan=parts[0][key].dtype.kind == "f") for key in parts[0]
    )


def test_round_trip():
    before = whole()
    after = graph.from_json(before.to_json())
    assert after.to_json() == before.to_json()
    assert after.outputs() == before.outputs()
    assert [*after.names().values()] == [*before.names().values()]
    for old, new in zip(before.nodes(), after.nodes(), strict=True):
        assert (old.kind, old.given, dict(old.params)) == (new.kind, new.given, dict(new.params))
        assert json.dumps(dict(old.attributes)) == json.dumps(dict(new.attributes))
        if old.kind == "constant":
            assert same(old.value, new.value), old.given
    assert [str(f) for f in after.infer({"x": (4, 3)})] == [str(f) for f in before.infer({"x": (4, 3)})]


def test_negative_zero_and_64_bits_survive():
    values = {node.given: node.value for node in graph.from_json(whole().to_json()).nodes() if node.kind == "constant"}
    assert np.signbit(values["c0"][1, 2])
    assert values["c5"][0, 0] == 2**60
    assert values["c6"][0, 0] == 0.1


def test_the_text_is_stable_and_readable():
    x, w = graph.variable("x", "csr", (None, 3)), graph.variable("w", shape=(3, 2))
    text = ops.negative(ops.dot(x, w)).to_json()
    assert text == ops.negative(ops.dot(x, w)).to_json()
    document = json.loads(text)
    assert (document["kind"], document["version"], document["outputs"]) == ("workbench graph", 1, ["negative0"])
    dot = document["nodes"][2]
    assert (dot["name"], dot["op"], dot["inputs"], dot["named"]) == ("dot0", "dot", ["x", "w"], False)
    assert len(text.splitlines()) == 4 + len(document["nodes"]) + 3


def test_one_output_comes_back_as_a_symbol():
    assert isinstance(graph.from_json(graph.variable("v").to_json()), graph.Symbol)


def test_a_large_constant_is_refused_with_advice():
    large = ops.negative(graph.constant(np.zeros(10_001, np.float32), "table"))
    with pytest.raises(GraphError, match=r"constant table holds 10,001 numbers; up to 10,000 .* variable"):
        large.to_json()
    assert ops.negative(graph.constant(np.zeros(10_000, np.float32))).to_json()


def test_an_initialiser_that_is_no_data_is_refused():
    with pytest.raises(GraphError, match="init of v is a function, which JSON has no form for"):
        graph.variable("v", init=lambda: 0).to_json()


def edited(change) -> str:
    document = json.loads(whole().to_json())
    change(document)
    return json.dumps(document)


def node(document, name):
    return next(entry for entry in document["nodes"] if entry["name"] == name)


SCALED = {"name": "more", "node": "operator", "op": "multiply_scalar", "inputs": ["x"], "named": True}
SUMMED = {"name": "more", "node": "operator", "op": "sum", "inputs": ["x"], "named": True}

BAD = {
    "unknown operator": (
        lambda d: node(d, "scores").update(op="dott"),
        "Unknown operator 'dott'.*Expected one of: abs",
    ),
    "operator no name": (lambda d: node(d, "scores").update(op=3), "a name is expected"),
    "version": (lambda d: d.update(version=2), "version 2; this program reads version 1"),
    "kind": (lambda d: d.update(kind="mx"), "kind is 'mx'; a graph's is 'workbench graph'"),
    "top key": (lambda d: d.update(extra=1), "unknown key extra; known are"),
    "lacks": (lambda d: d.pop("outputs"), "lacks the key outputs"),
    "node key": (lambda d: node(d, "x").update(shape=[1]), "The node 'x' has the unknown key shape"),
    "attribute": (lambda d: node(d, "x")["attributes"].update(stype=1), "unknown key stype"),
    "node kind": (lambda d: node(d, "x").update(node="op"), "kind 'op'; the kinds are"),
    "unhashable kind": (lambda d: node(d, "x").update(node=["op"]), "the kinds are"),
    "no object": (lambda d: d["nodes"].append(3), "A node is of kind None"),
    "parameter": (lambda d: node(d, "scores")["params"].update(axis=1), "no parameter"),
    "parameter object": (lambda d: node(d, "scores")["params"].update(result={"a": 1}), "allowed are numbers"),
    "forward": (lambda d: node(d, "scores").update(inputs=["x", "dot0"]), "names 'dot0', which stands nowhere before"),
    "itself": (lambda d: node(d, "scores").update(inputs=["x", "scores"]), "stands nowhere before"),
    "inputs": (lambda d: node(d, "scores").update(inputs="xw"), "a list is expected"),
    "too few": (lambda d: node(d, "scores").update(inputs=["x"]), "dot takes 2 array"),
    "name": (lambda d: node(d, "x").update(name=3), "no string"),
    "twice": (lambda d: d["nodes"].append(node(d, "x")), "Two nodes are named 'x'"),
    "output": (lambda d: d.update(outputs=["nothing"]), "outputs names 'nothing'"),
    "no outputs": (lambda d: d.update(outputs=[]), "at least one symbol"),
    "format": (lambda d: node(d, "x")["attributes"].update(format="bsr"), "Unknown format 'bsr'"),
    "dtype": (lambda d: node(d, "x")["attributes"].update(dtype="float33"), "float33"),
    "shape": (lambda d: node(d, "x")["attributes"].update(shape=[-1]), "whole numbers from 0"),
    "constant format": (lambda d: node(d, "c1")["value"].update(format="bsr"), "format 'bsr'; the formats are"),
    "constant dtype": (lambda d: node(d, "c1")["value"].update(dtype="O"), "dtype 'O'; the types are"),
    "object dtype": (lambda d: node(d, "c1")["value"].update(dtype="datetime64"), "the types are"),
    "dtype of text": (lambda d: node(d, "x")["attributes"].update(dtype="U5"), "the types are"),
    "number of text": (
        lambda d: d["nodes"].append(SCALED | {"params": {"scalar": "boo"}}),
        "scalar is 'boo'; it is a num",
    ),
    "flag of text": (
        lambda d: d["nodes"].append(SUMMED | {"params": {"keepdims": "no"}}),
        "keepdims is 'no'; it is True",
    ),
    "axis of truth": (lambda d: d["nodes"].append(SUMMED | {"params": {"axis": True}}), "axis is True; it is a whole"),
    "axis beyond": (lambda d: d["nodes"].append(SUMMED | {"params": {"axis": 2**70}}), "it is a whole number"),
    "data of text": (lambda d: node(d, "c1")["value"]["data"].__setitem__(0, "1"), "has '1'; numbers are expected"),
    "places of fractions": (lambda d: node(d, "c1")["value"]["indices"].__setitem__(0, 0.5), "has 0.5; whole numbers"),
    "huge places": (lambda d: node(d, "c1")["value"]["indices"].__setitem__(0, 2**70), "whole numbers are expected"),
    "shape that is negative": (lambda d: node(d, "c0")["value"].update(shape=[-1]), "lengths from 0 are expected"),
    "constant range": (lambda d: node(d, "c1")["value"].update(indices=[7, 0]), "c1"),
    "constant length": (lambda d: node(d, "c0")["value"].update(data=[1.0]), "cannot reshape"),
    "constant overflow": (lambda d: node(d, "c5")["value"].update(data=[2**70]), "c5"),
    "constant huge": (lambda d: node(d, "c7")["value"].update(shape=[0, -3]), "c7"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_understood_is_refused(name):
    change, message = BAD[name]
    with pytest.raises(ValueError, match=message.replace("(", r"\(")) as error:
        graph.from_json(edited(change))
    assert type(error.value) in (GraphError, formats.FormatError, ops.OpError)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 500 + "1" + "}" * 500,
        "1" * 5000,
        b"\xff",
        "",
        "[]",
        "3",
        "{",
        None,
        '{"kind": 1}',
        "NaN",
    ],
)
def test_no_document(text):
    with pytest.raises(GraphError):
        graph.from_json(text)
