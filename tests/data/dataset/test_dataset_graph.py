"""Edges among the rows of a data set: kept by everything that is done to one."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import labelled, same
from workbench import data
from workbench.data import DataError, cache
from workbench.data.dataset.record import graph_of
from workbench.data.dataset.selection import split_rows
from workbench.formats import FormatError
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

EDGES = {(0, 1): 2.0, (1, 0): 2.0, (2, 2): 1.0, (4, 3): 0.0, (5, 0): -1.5, (0, 5): -1.5}


def dense(edges=EDGES, nodes=6):
    made = np.zeros((nodes, nodes), np.float32)
    for (start, end), weight in edges.items():
        made[start, end] = weight
    return made


@pytest.fixture
def linked():
    starts, ends = np.array(list(EDGES)).T
    graph = graph_of((starts, ends), np.array(list(EDGES.values())), 6, directed=True)
    return dataclasses.replace(labelled(), graph=graph)


def test_fewer_rows_keep_the_edges_among_themselves(linked):
    rows = np.array([5, 2, 0])
    part = data.take(linked, rows)
    np.testing.assert_array_equal(part.graph.toarray(), dense()[rows][:, rows])
    assert part.graph.has_canonical_format
    assert data.take(linked, np.arange(6)).graph.nnz == len(EDGES)  # an edge of weight 0 is one
    assert data.take(labelled(), rows).graph is None


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_a_split_have_their_own_edges(linked, seed):
    parts, rows = data.split(linked, 0.5, seed), split_rows(linked, 0.5, seed)
    assert sorted(np.concatenate(rows)) == list(range(6))
    for part, own in zip(parts, rows, strict=True):
        np.testing.assert_array_equal(part.x.toarray(), linked.x.toarray()[own])
        np.testing.assert_array_equal(part.graph.toarray(), dense()[own][:, own])


def test_the_cache_keeps_edges(linked, tmp_path):
    entry = data.Source("linked", lambda: linked, "here", "none")
    made = [cache.load_or_make(entry, {}, tmp_path) for _ in range(2)]
    assert same(*made)
    for one in made:
        np.testing.assert_array_equal(one.graph.toarray(), dense())
        assert one.graph.nnz == len(EDGES)


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (
            sp.csr_array((5, 5), dtype=np.float32),
            DataError,
            "graph is 5 x 5 for 6 rows of x; it has a row and a column",
        ),
        (sp.csr_array((6, 5), dtype=np.float32), DataError, "graph is 6 x 5 for 6 rows of x"),
        (sp.csc_array((6, 6), dtype=np.float32), DataError, r"graph is csc; edges are csr: formats.to_format"),
        (sp.csr_array((6, 6), dtype=np.int64), FormatError, "x has dtype int64"),
    ],
)
def test_edges_that_are_not_among_the_rows_are_refused(linked, graph, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(linked, graph=graph)


def test_an_end_that_is_no_row_is_refused(linked):
    graph = linked.graph.copy()
    graph.indices[0] = 6
    with pytest.raises(FormatError, match=r"indices\[0\] is 6, out of range"):
        dataclasses.replace(linked, graph=graph)


def test_a_record_shows_its_edges(linked):
    assert repr(linked).endswith("3 classes, 6 edges stored")


def test_what_is_done_to_features_and_labels_leaves_edges_alone(linked):
    for made in (data.keep_features(linked, 3), data.merge_rare_classes(linked, 2), data.with_density(linked, 0.1)):
        np.testing.assert_array_equal(made.graph.toarray(), dense())


def test_a_problem_with_rows_held_out_has_all_edges_and_its_parts_their_own(monkeypatch, tmp_path, linked):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    data.names()  # a scan would take out what no file registered
    monkeypatch.setitem(data.contract._sources.entries, "linked", data.Source("linked", lambda: linked, "here", "none"))
    problem = make_problem(Configuration(dataset="linked", model="softmax", epochs=1))
    both = problem.dataset
    order = [int(np.flatnonzero((linked.x.toarray() == row).all(axis=1))[0]) for row in both.x.toarray()]
    np.testing.assert_array_equal(both.graph.toarray(), dense()[order][:, order])
    assert len(problem.x_held_out.toarray()) == 1


# from pairs of ends


def by_hand(starts, ends, weights, directed):
    edges = {}
    for start, end, weight in zip(starts, ends, weights, strict=True):
        for pair in [(start, end)] if directed else [(start, end), (end, start)]:
            edges[pair] = max(edges.get(pair, -np.inf), weight)
    return edges


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_edges_are_those_of_plain_python(seed, directed):
    rng = np.random.default_rng(seed)
    starts, ends = rng.integers(0, 7, (2, 40))
    weights = rng.integers(-3, 3, 40).astype(float)
    graph = graph_of((starts.astype(np.int32), ends.astype(np.int32)), weights, 7, directed)
    edges = by_hand(starts.tolist(), ends.tolist(), weights, directed)
    stored = sp.coo_array(graph)
    assert dict(zip(zip(*(part.tolist() for part in stored.coords), strict=True), stored.data, strict=True)) == edges
    assert (graph.dtype, graph.indices.dtype, graph.shape) == (np.float32, np.int32, (7, 7))


def test_no_edges_are_a_graph_and_infinite_weights_are_none():
    none = np.zeros(0, np.int64)
    assert graph_of((none, none), np.zeros(0), 3, directed=False).nnz == 0
    with pytest.raises(FormatError, match=r"data\[0\] is inf"):
        graph_of((np.array([0]), np.array([1])), np.array([1e300]), 3, directed=True)
