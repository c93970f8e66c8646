"""Sets of nodes in a graph: archives, edge lists and adjacency matrices, their labels and features."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from workbench import data
from workbench.data import DataError

LABELS = "a\nb\na\nb\nc\n"
EDGES = "# Nodes: 5\n0 1\n1\t2\n\n2 0 # a cycle\n3 3\n1 0\n4 0\n"
DIRECTED = {(0, 1), (1, 2), (2, 0), (3, 3), (1, 0), (4, 0)}
FEATURES = np.arange(10.0).reshape(5, 2)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "y.txt").write_text(LABELS)
    (tmp_path / "e.txt").write_text(EDGES)
    sp.save_npz(tmp_path / "x.npz", sp.csc_array(FEATURES))
    return tmp_path


def load(folder, name="e.txt", **parameters):
    labels = {} if "labels" in parameters else {"labels": folder / "y.txt"}
    return data.load("graph", path=folder / name, cache=False, **labels, **parameters)


def dense(edges, nodes=5, both=True):
    made = np.zeros((nodes, nodes), np.float32)
    for start, end in edges:
        made[start, end] = 1
        if both:
            made[end, start] = 1
    return made


def edge_list(folder, text):
    (folder / "e.txt").write_text(text)
    return load(folder)


@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_list_is_that_of_plain_python(folder, directed):
    made = load(folder, directed=directed)
    np.testing.assert_array_equal(made.graph.toarray(), dense(DIRECTED, both=not directed))
    np.testing.assert_array_equal(made.x.toarray(), np.eye(5))
    assert [made.classes[number] for number in made.y] == LABELS.split()
    assert (made.facts["edges_read"], made.facts["loops_read"], made.facts["directed"]) == (6, 1, directed)


def test_a_header_is_no_edge(folder):
    expected = load(folder).graph.toarray()
    (folder / "e.txt").write_text("FromNode ToNode\n" + EDGES.split("\n", 1)[1])
    np.testing.assert_array_equal(load(folder).graph.toarray(), expected)
    (folder / "e.txt").write_text("source,target\na,b\n")
    (folder / "named.txt").write_text("a x\nb y\n")
    assert load(folder, labels=folder / "named.txt", named=True).graph.nnz == 2


def test_features_are_those_of_a_matrix(folder):
    np.testing.assert_array_equal(load(folder, node_features=folder / "x.npz").x.toarray(), FEATURES)
    scipy.io.mmwrite(folder / "x.mtx", sp.coo_array(FEATURES))
    made = load(folder, node_features=folder / "x.mtx", labels=folder / "y.txt")
    np.testing.assert_array_equal(made.x.toarray(), FEATURES)
    sp.save_npz(folder / "x.npz", sp.csc_array(FEATURES[:4]))
    with pytest.raises(DataError, match=r"x.npz has features of 4 nodes, and .*e.txt 5 nodes"):
        load(folder, node_features=folder / "x.npz")


def test_nodes_may_count_from_1_and_what_cannot_be_told_is_refused(folder):
    by_one = "".join(f"{start + 1} {end + 1}\n" for start, end in sorted(DIRECTED))
    np.testing.assert_array_equal(edge_list(folder, by_one).graph.toarray(), dense(DIRECTED))
    (folder / "e.txt").write_text("1 2\n3 4\n")
    with pytest.raises(DataError, match=r"e.txt:1 and on: nodes are 1 to 4 of 5, .*\nType zero_based=True. Or false"):
        load(folder)
    for zero_based in (True, False):
        made = load(folder, zero_based=zero_based)
        base = 0 if zero_based else 1
        np.testing.assert_array_equal(made.graph.toarray(), dense({(1 - base, 2 - base), (3 - base, 4 - base)}))


def test_weights_are_read_and_the_largest_of_an_edge_counts(folder):
    made = edge_list(folder, "0 1 0.5\n1 0 2\n2 4 0\n0 1 -1\n")
    expected = dense(set())
    expected[0, 1] = expected[1, 0] = 2
    np.testing.assert_array_equal(made.graph.toarray(), expected)
    assert made.graph.nnz == 4  # those of weight 0 are edges


@pytest.mark.parametrize("head", ["node,label\n", "id,class\n", ""])
def test_a_header_of_the_labels_is_no_node(folder, head):
    (folder / "e.txt").write_text("a b\nb c\n")
    (folder / "named.txt").write_text(f"{head}a,x\nb,y\nc,x\n")
    made = load(folder, labels=folder / "named.txt", named=True)
    assert (made.rows, made.classes, made.y.tolist()) == (3, ("x", "y"), [0, 1, 0])
    (folder / "named.txt").write_text("a,y\nb,n\nc,y\n")
    assert load(folder, labels=folder / "named.txt", named=True).rows == 3


def test_named_nodes_have_any_names(folder):
    (folder / "e.txt").write_text("9999999999 paper/1\npaper/1 007\n7 9999999999\n")
    (folder / "named.txt").write_text("7,x\n007,y\n9999999999,x\npaper/1,y\n")
    made = load(folder, labels=folder / "named.txt", named=True)
    np.testing.assert_array_equal(made.graph.toarray(), dense({(2, 3), (3, 1), (0, 2)}, 4))
    assert [made.classes[number] for number in made.y] == ["x", "y", "x", "y"]
    (folder / "e.txt").write_text("7 007\n7 8\n")
    with pytest.raises(DataError, match=r"e.txt:2: the node '8' has no label"):
        load(folder, labels=folder / "named.txt", named=True)
    (folder / "named.txt").write_text("7,x\n007,y\n7,z\n")
    with pytest.raises(DataError, match=r"named.txt:3: the node 7 comes again; each has one label"):
        load(folder, labels=folder / "named.txt", named=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n1 5\n", r"e.txt:2: the node 5 is none of 0 to 4, the places of the labels"),
        ("1 5\n\n2 6\n", r"e.txt:1: the node 5 is none of"),
        ("0 1\n1 x\n", r"e.txt:2: column 2 is 'x'; expected a whole number below 2\*\*63"),
        ("0 1\n1 99999999999999999999\n", r"e.txt:2: column 2 is '99999999999999999999'; expected a whole number"),
        ("0 1\n1 1.5\n", r"e.txt:2: column 2 is '1.5'; expected a whole number"),
        ("0 1\n-1 1\n", r"e.txt:2: the node -1 is none of"),
        ("0 1 1\n1 2 nan\n", r"e.txt:2: column 3 is 'nan'; expected a finite number"),
        ("0 1\n1\n", r"e.txt:2: it has 1 columns, and the first row 2"),
        ("# c\n0 1\n1 2 3\n", r"e.txt:3: it has 3 columns, and the first row 2"),
        ("0 1 2 3\n", r"e.txt has 4 columns; an edge is u v, or u v weight"),
        ("# nothing\n", r"e.txt holds no rows"),
        ("0 1 1\n1 2 1e300\n", r"e.txt cannot be read as a graph .* is inf"),
    ],
)
def test_invalid_edge_lists_are_refused_with_the_line(folder, text, message):
    with pytest.raises(DataError, match=message):
        edge_list(folder, text)


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
def test_an_adjacency_is_read_of_both_kinds_of_matrix(folder, name):
    adjacency = sp.coo_array(dense(DIRECTED, both=False))
    if name == "a.npz":
        sp.save_npz(folder / name, sp.csr_array(adjacency))
    else:
        scipy.io.mmwrite(folder / "a.mtx", adjacency, field="pattern")
        if name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress((folder / "a.mtx").read_bytes()))
    np.testing.assert_array_equal(load(folder, name).graph.toarray(), dense(DIRECTED))
    np.testing.assert_array_equal(load(folder, name, directed=True).graph.toarray(), dense(DIRECTED, both=False))


def test_a_matrix_that_is_no_adjacency_is_refused(folder):
    with pytest.raises(DataError, match=r"The adjacency in .*x.npz is 5 x 2; it has a row and a column for each node"):
        load(folder, "x.npz")
    scipy.io.mmwrite(folder / "a.mtx", sp.coo_array(np.eye(4)))
    with pytest.raises(DataError, match=r"a.mtx has 4 nodes, and 5 labels came; each has one"):
        load(folder, "a.mtx")


def archive(folder, **changes):
    adjacency, features = sp.csr_array(dense(DIRECTED, both=False)), sp.csr_array(FEATURES)
    arrays = {"labels": np.int8([2, 0, 1, 1, 2]), "class_names": np.array(["z", "y", "x"])}
    for prefix, matrix in (("adj", adjacency), ("attr", features)):
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"{prefix}_{part}"] = np.array(getattr(matrix, part))
    arrays |= changes
    np.savez(folder / "a.npz", **{name: array for name, array in arrays.items() if array is not None})
    return folder / "a.npz"


def test_a_citation_archive_has_all_in_it(folder):
    made = data.load("graph", path=archive(folder), cache=False)
    np.testing.assert_array_equal(made.graph.toarray(), dense(DIRECTED))
    np.testing.assert_array_equal(made.x.toarray(), FEATURES)
    assert (made.classes, made.y.tolist()) == (("z", "y", "x"), [2, 0, 1, 1, 2])  # in the order of the file
    bare = data.load("graph", path=archive(folder, class_names=None), cache=False)
    assert (bare.classes, bare.y.tolist()) == (("0", "1", "2"), [2, 0, 1, 1, 2])
    own = load(folder, "a.npz")
    assert [own.classes[number] for number in own.y] == LABELS.split()
    parts = dict.fromkeys((f"attr_{part}" for part in ("data", "indices", "indptr", "shape")), None)
    np.testing.assert_array_equal(data.load("graph", path=archive(folder, **parts), cache=False).x.toarray(), np.eye(5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, r"(?s)a.npz holds no labels, but .*adj_data.*Type labels=.FILE. .* a label for each node"),
        ({"labels": np.int8([3, 0, 1, 1, 2])}, r"a.npz: labels are 0 to 3, and class_names has 3; they count from 0"),
        ({"adj_shape": None}, r"a.npz holds no array adj_shape, but"),
        ({"adj_indices": np.int64([9] * 6)}, r"a.npz cannot be read as a graph .* is 9, out of range"),
        ({"adj_indices": np.array(["x"] * 6)}, r"a.npz: the parts of adj are .*<U1.*; no matrix"),
        ({"attr_indices": np.int64([-1] * 9)}, r"a.npz cannot be read as a graph"),
    ],
)
def test_invalid_archives_are_refused(folder, changes, message):
    with pytest.raises(DataError, match=message):
        data.load("graph", path=archive(folder, **changes), cache=False)


@pytest.mark.parametrize("name", ["e.txt", "x.npz"])
def test_edges_without_labels_say_what_to_do(folder, name):
    with pytest.raises(DataError, match=rf"{name} has edges and no labels of its nodes.\nType labels=.FILE. "):
        data.load("graph", path=folder / name, cache=False)


def test_another_graph_is_read_like_the_first(folder):
    first = load(folder, node_features=folder / "x.npz", directed=True)
    (folder / "next.txt").write_text("0 1\n")
    sp.save_npz(folder / "next.npz", sp.csc_array(FEATURES[:2] + 1))
    (folder / "next_y.txt").write_text("c\na\n")
    parameters = {"labels": folder / "next_y.txt", "node_features": folder / "next.npz"}
    made = data.load("graph", like=first, path=folder / "next.txt", cache=False, **parameters)
    assert (made.classes, made.y.tolist(), made.graph.toarray().tolist()) == (("a", "b", "c"), [2, 0], [[0, 1], [0, 0]])
