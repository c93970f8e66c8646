"""What is told and drawn of a graph: nothing left out, nothing overlapping, nothing unescaped."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import scipy.sparse

from tests.support.toy_losses import joint_loss
from workbench import executor, graph, ops
from workbench.graph.explanation import _apart, arrange, cut

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
    assert "⚠ makes its inputs dense" in result.svg()
    assert "⚠ densifies: no rule for csr" in result._repr_html_()
    kept = ops.abs(graph.variable("x", "csr", (8, 50))).explain()
    assert not kept.densified
    assert "⚠" not in kept.svg() + kept._repr_html_()


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
    assert "made by differentiation" in result.svg()


def test_sizes_follow_the_arrays_that_are_held():
    bound = trained()
    x = scipy.sparse.random_array((8, 50), density=0.1, format="csr", dtype=np.float32)
    bound.forward(x=x)
    line = next(line for line in bound.explain().lines if line.name == "x")
    assert line.bytes == f"≈ {x.data.nbytes + x.indices.nbytes + x.indptr.nbytes:,}"


def test_pictures_are_well_formed_and_names_escaped():
    result = trained(adversarial=True).explain()
    for text in (result.svg(), result.html(), result._repr_html_()):
        assert "<script" not in text
    root = ElementTree.fromstring(result.svg())
    titles = [entry.text for entry in root.iter(f"{SVG}title")]
    assert len(titles) == len(result.lines)
    assert any(title.startswith(ADVERSARIAL) for title in titles)


def boxes(svg):
    root = ElementTree.fromstring(svg)
    found = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    width, height = float(root.get("width")), float(root.get("height"))
    return [tuple(float(box.get(key)) for key in ("x", "y", "width", "height")) for box in found], width, height


def many(seed):
    """A graph of thirty nodes, inputs at random."""
    random = np.random.default_rng(seed)
    nodes = [graph.variable(f"v{place}", shape=(2, 2)) for place in range(4)]
    for _ in range(26):
        left, right = random.integers(len(nodes), size=2)
        nodes.append(ops.add(nodes[left], nodes[right]))
    return graph.group(nodes)


@pytest.mark.parametrize("made", [trained(adversarial=True).explain(), *(many(seed).explain() for seed in range(4))])
def test_boxes_do_not_overlap_and_stand_inside(made):
    found, width, height = boxes(made.svg())
    for x, y, wide, high in found:
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height
    for (x1, y1, wide, high), (x2, y2, _, _) in itertools.combinations(found, 2):
        assert abs(x1 - x2) >= wide or abs(y1 - y2) >= high


@pytest.mark.parametrize("seed", range(4))
def test_lines_pass_between_the_boxes(seed):
    result = many(seed).explain()
    layout = arrange([line.name for line in result.lines], result.edges, 270, 14, 26)
    rows = {}
    for place, layer in layout.layers.items():
        rows.setdefault(layer, []).append((layout.middles[place], 14 if isinstance(place, tuple) else 270))
    for row in rows.values():
        row.sort()
        for (left, a), (right, b) in itertools.pairwise(row):
            assert right - left >= (a + b) / 2 + 26 - 1e-6
    for source, target in result.edges:
        route = [layout.layers[place] for place in layout.routes[source, target]]
        assert route == list(range(route[0], route[-1] + 1)), "a line goes down, layer by layer"


def test_places_are_the_closest_that_keep_order_and_distance():
    assert _apart([0, 0, 0], [10, 10, 10], 2) == [-12, 0, 12]
    assert _apart([0, 100], [10, 10], 2) == [0, 100]
    assert _apart([], [], 2) == []


def test_texts_fit_their_boxes():
    root = ElementTree.fromstring(trained(adversarial=True).explain().svg())
    for group in root.iter(f"{SVG}g"):
        for text in group.iter(f"{SVG}text"):
            assert len(text.text) * float(text.get("font-size")) * 0.55 <= 270


@pytest.mark.parametrize("length", [1, 27, 28, 29, 500])
def test_long_names_are_cut_in_the_middle(length):
    name = "".join(chr(97 + place % 26) for place in range(length))
    made = cut(name)
    assert len(made) == min(length, 28)
    assert made == name if length <= 28 else "…" in made
    assert made[:5] == name[:5]
    assert made[-5:] == name[-5:]


def test_large_graphs_are_shown_as_a_table_alone():
    node = graph.variable("v", shape=(2,))
    for _ in range(100):
        node = ops.negative(node)
    result = node.explain()
    assert "<svg" not in result._repr_html_()
    assert "<svg" in result.svg()


def test_one_node():
    result = graph.variable("v", shape=()).explain()
    assert len(boxes(result.svg())[0]) == 1


def test_a_remark_wraps_instead_of_being_cut_off_at_the_edge_of_a_notebook():
    x = graph.variable("x", format="csr", shape=(4, 3))
    page = ops.exp(x, name="lost").explain()._repr_html_()
    assert re.search(r"white-space:normal;min-width:14em'>⚠ densifies: no rule for csr", page)
