"""What is told and drawn of a graph: nothing left out, nothing unescaped."""

import re
import shutil
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from tests.support.toy_losses import joint_loss
from workbench import executor, graph, ops
from workbench.graph import explanation
from workbench.graph.explanation import cut

SVG = "{http://www.w3.org/2000/svg}"
ADVERSARIAL = "<script>alert('&')</script>" * 3


def trained(**options):
    x = graph.variable("x", "csr", (8, 50))
    w = graph.variable("w", shape=(50, 3))
    loss = joint_loss(ops.dot(x, w), graph.variable("y", shape=(8,), dtype="int64"), name="loss")
    made = graph.group([loss, ops.dot(ops.exp(x), w, name=ADVERSARIAL)]) if options.pop("adversarial", False) else loss
    return executor.bind(made, grad_req={"w": "write"}, **options)


def test_the_text_tells_formats_kernels_and_bytes_of_every_node():
    x, w = graph.variable("x", "csr", (8, 50)), graph.variable("w", shape=(50, 3))
    text = ops.negative(ops.dot(x, w)).explain(densities={"x": 0.1})
    lines = str(text).splitlines()
    assert lines[0].split() == ["node", "operator", "inputs", "result", "kernel", "bytes", "remark"]
    assert re.split(r"\s{2,}", lines[4]) == ["dot0", "dot", "csr x, dense w", "dense [8, 3] float32", "csr_dense", "96"]
    assert "≈ 356" in lines[2]
    assert lines[-1] == "Nothing is made dense on the way."
    assert len(lines) == 2 + 4 + 1
    assert "≤ 3,236" in str(ops.negative(x).explain())


def test_what_would_be_made_dense_is_marked_everywhere():
    result = ops.exp(graph.variable("x", "csr", (8, 50))).explain()
    assert [line.name for line in result.densified] == ["exp0"]
    assert "!! densifies: no rule for csr; 1,600 bytes made dense." in result.text()
    assert result.text().endswith("Made dense on the way: 1,600 bytes, by exp0.")
    assert "⚠ makes its inputs dense" in result.dot()
    assert "⚠ densifies: no rule for csr" in result._repr_html_()
    kept = ops.abs(graph.variable("x", "csr", (8, 50))).explain()
    assert not kept.densified
    assert "⚠" not in kept.dot() + kept._repr_html_()


def test_an_executor_explains_its_backward_part_and_what_it_fuses():
    result = trained(grad_formats={"w": "fused"}).explain()
    remarks = {line.name: line.remark for line in result.lines}
    assert remarks["loss"] == "with grad_scores, one pass"
    assert remarks["loss:grad_scores"] == "written by the loss"
    assert remarks["loss:head"] == "from outside, or ones"
    assert remarks["multiply0"] == "in place of grad_scores"
    assert remarks["dot1"] == "left as factors, for the update"
    kinds = {line.name: line.operator for line in result.lines}
    assert (kinds["loss:grad_scores"], kinds["loss:head"], kinds["x"]) == (
        "gradient of the scores",
        "head gradient",
        "variable",
    )
    assert [line.name for line in result.lines if line.backward] == ["multiply0", "dot1"]
    assert ("loss", "loss:grad_scores") in result.edges
    assert result.dot().count("dashed") >= 2


def test_sizes_follow_the_arrays_that_are_held():
    bound = trained()
    x = scipy.sparse.random_array((8, 50), density=0.1, format="csr", dtype=np.float32)
    bound.forward(x=x)
    line = next(line for line in bound.explain().lines if line.name == "x")
    assert line.bytes == f"≈ {x.data.nbytes + x.indices.nbytes + x.indptr.nbytes:,}"


def test_names_are_escaped_in_the_table_and_in_the_picture(monkeypatch):
    result = trained(adversarial=True).explain()
    monkeypatch.setattr(explanation, "_render", lambda dot: dot)
    for text in (result.dot(), result.html(), result._repr_html_()):
        assert "<script" not in text
    quoted = ops.exp(graph.variable('a"\\b', "csr", (8, 50))).explain().dot()
    assert 'label="a&quot;&#92;b\\n' in quoted


def test_the_picture_has_each_node_and_each_edge():
    result = many(0).explain()
    dot = result.dot()
    assert len(re.findall(r"^n\d+ \[", dot, re.MULTILINE)) == len(result.lines)
    assert len(re.findall(r"^n\d+ -> n\d+ \[", dot, re.MULTILINE)) == len(result.edges)


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@pytest.mark.parametrize("make", [lambda: trained(adversarial=True), lambda: many(0)])
def test_graphviz_draws_it(make):
    made = make().explain()
    root = ElementTree.fromstring(explanation._render(made.dot()))
    assert len(root.findall(f".//{SVG}g[@class='node']")) == len(made.lines)


def test_without_graphviz_there_is_the_table_alone(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert trained().explain()._repr_html_().count("<table") == 1


@pytest.mark.parametrize(("status", "output"), [(0, "<?xml?>\n<svg></svg>"), (1, "<svg>"), (0, "")])
def test_what_graphviz_prints_is_shown_if_it_is_a_picture(monkeypatch, status, output):
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/dot")
    monkeypatch.setattr(
        explanation.subprocess, "run", lambda *words, **rest: SimpleNamespace(returncode=status, stdout=output)
    )
    assert explanation._render("digraph {}") == ("<svg></svg>" if status == 0 and output else "")


def many(seed):
    """A graph of thirty nodes, inputs at random."""
    random = np.random.default_rng(seed)
    nodes = [graph.variable(f"v{place}", shape=(2, 2)) for place in range(4)]
    for _ in range(26):
        left, right = random.integers(len(nodes), size=2)
        nodes.append(ops.add(nodes[left], nodes[right]))
    return graph.group(nodes)


@pytest.mark.parametrize("length", [1, 27, 28, 29, 500])
def test_long_names_are_cut_in_the_middle(length):
    name = "".join(chr(97 + place % 26) for place in range(length))
    made = cut(name)
    assert len(made) == min(length, 28)
    assert made == name if length <= 28 else "…" in made
    assert made[:5] == name[:5]
    assert made[-5:] == name[-5:]


def test_large_graphs_are_shown_as_a_table_alone(monkeypatch):
    monkeypatch.setattr(explanation, "_render", lambda dot: "<svg>")
    node = graph.variable("v", shape=(2,))
    assert "<svg" in node.explain()._repr_html_()
    for _ in range(100):
        node = ops.negative(node)
    assert "<svg" not in node.explain()._repr_html_()


def test_a_remark_wraps_instead_of_being_cut_off_at_the_edge_of_a_notebook():
    x = graph.variable("x", format="csr", shape=(4, 3))
    page = ops.exp(x, name="lost").explain()._repr_html_()
    assert re.search(r"white-space:normal;min-width:14em'>⚠ densifies: no rule for csr", page)
