"""Graph convolution: its formula, what a batch reads around its rows, and which node a row is."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_models import training_of
from workbench import data, formats, models, training
from workbench.models import ModelError
from workbench.models.nodes import Around, Nodes, number_nodes, rounded
from workbench.sweeps import problem
from workbench.sweeps.spec import Configuration

GCN = models.get("graph_convolution")
ROWS = 60


def nodes(seed: int = 0, degree: float = 6, **parameters) -> Nodes:
    made = data.load("block_graph", cache=False, rows=ROWS, features=40, degree=degree, seed=seed, **parameters)
    return Nodes(made.x, made.graph)


def batch_of(rows) -> data.Batch:
    rows = np.array(rows)
    return data.Batch({"data": None}, {}, rows)


def normalised(edges: np.ndarray) -> np.ndarray:
    whole = edges + np.eye(len(edges))
    root = np.sqrt(whole.sum(axis=1))
    return whole / np.outer(root, root)


def test_the_adjacency_is_normalised_with_each_node_its_own_neighbour():
    edges = np.array([[0, 1, 0, 0], [1, 2, 3, 0], [0, 3, 0, 0], [0, 0, 0, 0]], np.float32)
    made = Nodes(sp.csr_array(np.eye(4, dtype=np.float32)), sp.csr_array(edges))
    np.testing.assert_allclose(made.adjacency.toarray(), normalised(edges), rtol=1e-6)
    assert (made.adjacency.dtype, made.adjacency.has_sorted_indices) == (np.float32, True)
    np.testing.assert_array_equal(made.adjacency.indices[made.own_places], np.arange(4))
    assert made.nbytes > made.adjacency.data.nbytes


def test_of_a_directed_graph_rows_and_columns_have_sums_of_their_own():
    edges = np.array([[0, 1], [0, 0]], np.float32)
    made = Nodes(sp.csr_array(np.eye(2, dtype=np.float32)), sp.csr_array(edges))
    np.testing.assert_allclose(made.adjacency.toarray(), [[0.5**0.5, 0.5], [0, 0.5**0.5]], rtol=1e-6)


def test_negative_weights_are_refused():
    edges = sp.csr_array(np.array([[0, -2], [1, 0]], np.float32))
    with pytest.raises(ModelError, match="An edge has the weight -2; weights are 0 or more"):
        _ = Nodes(sp.csr_array((2, 3), dtype=np.float32), edges).adjacency


@pytest.mark.parametrize("settings", [{}, {"batch_rows": 7}, {"format": "dense", "engine": "dense"}], ids=str)
def test_scores_are_those_of_the_formula_on_the_whole_graph(settings):
    settings = {"gradient": "dense", "update": "standard", "batch_rows": 25, **settings}
    run, x, _ = training_of(GCN, rows=ROWS, held_out=20, **settings)
    for _ in run.events(2):
        pass
    a = normalised(run.given.facts["graph"].edges.toarray().astype(np.float64))
    w, c, out, b = (run.arrays[name] for name in ("w", "c", "out", "b"))
    whole = np.concatenate([x[20:].toarray(), x[:20].toarray()])
    scores = a @ np.maximum(a @ whole @ w + c, 0) @ out + b
    np.testing.assert_allclose(run.predict(x[20:]), scores[:40], rtol=1e-5, atol=1e-7)  # the adjacency is float32
    np.testing.assert_allclose(run.predict(x[:20], first=40), scores[40:], rtol=1e-5, atol=1e-7)


def test_steps_are_those_of_the_formula_in_pytorch():
    torch = pytest.importorskip("torch")
    run, x, y = training_of(GCN, rows=ROWS, batch_rows=ROWS, shuffle=False, options={"learning_rate": 0.5})
    a = torch.tensor(normalised(run.given.facts["graph"].edges.toarray().astype(np.float64)))
    p = {name: torch.tensor(array.copy(), requires_grad=True) for name, array in run.arrays.items()}
    for event in run.events(5):
        hidden = torch.relu(a @ torch.tensor(x.toarray()) @ p["w"] + p["c"])
        loss = torch.nn.functional.cross_entropy(a @ hidden @ p["out"] + p["b"], torch.tensor(y.astype(np.int64)))
        assert event.loss == pytest.approx(loss.item(), rel=1e-6)
        slopes = torch.autograd.grad(loss, list(p.values()))
        with torch.no_grad():
            for tensor, slope in zip(p.values(), slopes, strict=True):
                tensor -= 0.5 * slope
    for name, tensor in p.items():
        np.testing.assert_allclose(run.arrays[name], tensor.detach().numpy(), rtol=1e-5, atol=1e-8)


def test_as_many_neighbours_as_there_are_drawn_are_all_of_them():
    every, drawn = (Around(nodes(), np.dtype(np.float32), count) for count in (0, ROWS))
    one, other = (around(batch_of([5, 3, 5, 40]), np.random.default_rng(0)) for around in (every, drawn))
    np.testing.assert_array_equal(one.x.toarray(), other.x.toarray())
    for name in ("inner", "outer"):
        np.testing.assert_array_equal(one.others[name].toarray(), other.others[name].toarray())
        assert other.others[name].has_sorted_indices


def test_so_many_neighbours_are_drawn_of_a_node_none_twice_and_the_expected_sums_are_those_of_all():
    graph, rows, sums = nodes(degree=14), np.arange(ROWS), 0
    around, draws = Around(graph, np.dtype(np.float64), 3), 3000
    whole, own = graph.adjacency.toarray(), graph.adjacency.diagonal()
    for seed in range(draws):
        indptr, indices, values = around._draw_neighbours(rows, np.random.default_rng(seed))
        drawn = sp.csr_array((values, indices, indptr), shape=(ROWS, ROWS))
        if not seed:
            others = np.diff(graph.adjacency.indptr) - 1
            np.testing.assert_array_equal(np.diff(indptr), np.minimum(others, 3) + 1)
            assert drawn.has_canonical_format
            np.testing.assert_array_equal(drawn.diagonal(), own)
        sums = sums + drawn
    np.testing.assert_allclose(sums.toarray() / draws, whole, atol=0.25 * whole.max())
    assert abs(sums.toarray() / draws - whole).mean() < 0.01 * whole.max()


def test_a_batch_reads_no_more_than_its_neighbourhood():
    made = data.load("block_graph", cache=False, rows=4000, features=40, degree=30, seed=0)
    completed = Around(Nodes(made.x, made.graph), np.dtype(np.float32), 2)(
        batch_of([7, 8, 9]), np.random.default_rng(0)
    )
    assert completed.others["outer"].shape == (completed.others["inner"].shape[1], 3)
    assert completed.x.shape[0] == completed.others["inner"].shape[0] <= rounded(3 * 3 * 3, 4000)
    assert completed.others["inner"].nnz <= 3 * 3 * 3


@pytest.mark.parametrize("format", ["csr", "dense"])
def test_a_batch_of_all_nodes_in_order_holds_the_adjacency_once(format):
    engine = "dense" if format == "dense" else "ours"
    settings = {"gradient": "dense", "update": "standard", "batch_rows": ROWS, "shuffle": False}
    run, x, _ = training_of(GCN, rows=ROWS, format=format, engine=engine, **settings)
    prepared = run.prepare(next(iter(run.feed.epoch(0))))
    assert prepared.others["inner"] is prepared.others["outer"]
    assert prepared.bytes_own == sum(formats.nbytes(array) for array in (prepared.x, prepared.others["inner"]))
    shuffled = training_of(GCN, rows=ROWS, batch_rows=ROWS)[0]
    assert next(iter(shuffled.feed.epoch(0))).others["inner"] is not next(iter(run.feed.epoch(0))).others["outer"]
    for _ in run.events(2):
        pass
    for _ in shuffled.events(2):
        pass
    np.testing.assert_allclose(run.predict(x), shuffled.predict(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("batch_rows", "options", "kept"),
    [(ROWS, "", 1), (ROWS - 1, "", 0), (ROWS, "dropout=0.5", 0), (ROWS, "neighbors=2", 0)],
)
def test_a_shuffled_batch_of_all_nodes_is_kept_where_nothing_of_it_is_drawn(batch_rows, options, kept):
    run, *_ = training_of(GCN, rows=ROWS, batch_rows=batch_rows, model_options=options)
    for _ in run.events(1):
        pass
    assert len(run.kept) == kept


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 999, 1000, 12345])
def test_lengths_are_rounded_up_by_less_than_an_eighth(length):
    assert length <= rounded(length, 10**6) <= max(length, 1.125 * length)
    assert rounded(length, length) == length
    assert len({rounded(each, 10**6) for each in range(1000, 2000)}) <= 9


@pytest.mark.parametrize("count", [10, 10_000])
def test_nodes_are_numbered_alike_by_marks_and_by_order(count):
    indices = np.array([9, 2, 2, 7], np.int32)
    read, places = number_nodes(indices, count)
    assert (read.tolist(), places.tolist()) == ([2, 7, 9], [2, 0, 0, 1])


def test_drawn_neighbours_and_dropout_come_again_and_predictions_have_neither():
    settings = {"model_options": "neighbors=2, dropout=0.5", "batch_rows": 16}
    runs = [training_of(GCN, rows=ROWS, seed=seed, **settings) for seed in (0, 0, 1)]
    losses = [[event.loss for event in run.events(2)] for run, *_ in runs]
    assert losses[0] == losses[1] != losses[2]
    run, x, _ = runs[0]
    scores = run.predict(x)
    np.testing.assert_array_equal(run.predict(x), scores)
    plain = training_of(GCN, rows=ROWS, batch_rows=16)[0]
    for name, array in run.arrays.items():
        plain.arrays[name][...] = array
    np.testing.assert_allclose(plain.predict(x), scores, rtol=1e-9)


def test_dropout_scales_what_it_keeps():
    run, *_ = training_of(GCN, rows=ROWS, batch_rows=ROWS, model_options="dropout=0.25")
    (batch,) = run.feed.epoch(0)
    for values in (batch.x.data, batch.others["kept"]):
        assert set(np.unique(values)) == {0.0, 1 / 0.75}
        assert (values == 0).mean() == pytest.approx(0.25, abs=0.06)


def test_the_graph_tells_more_than_features_alone_of_rows_held_out():
    """It would not, were rows held out taken for other nodes."""
    reading = "rows=600, features=100, words=10, signal=0.2, mixing=0.1, per_class=40"
    quality = {}
    for name in ("graph_convolution", "softmax"):
        configuration = Configuration(dataset="block_graph", reading=reading, model=name, features=None, epochs=1)
        made = problem.make_problem(configuration)
        setup = training.Setup(model=name, optimizer="adagrad", batch_rows=200, intercept=True)
        run = training.make_run(setup, made.x, made.y, made.width, made.facts)
        for _ in run.events(60):
            pass
        quality[name] = run.quality(*made.held_out)
    assert len(made.y) == 5 * 40
    assert quality["graph_convolution"] > quality["softmax"] + 0.15
    assert quality["graph_convolution"] > 0.8


def test_what_does_not_belong_to_the_graph_is_refused():
    run, x, y = training_of(GCN, rows=ROWS)
    with pytest.raises(training.SetupError, match="trains on the rows that its graph was given for, no others"):
        run.take(x, y)
    with pytest.raises(ModelError, match="The graph has 60 nodes of 40 features; 59 rows of 39 features came"):
        training.make_run(run.setup, x[:59, :39], y[:59], 3, run.given.facts)
    with pytest.raises(ModelError, match="needs data with a graph of its rows; this data has none"):
        training.make_run(run.setup, x, y, 3)
    result = "The graph_convolution model has no steps on cuda yet: models whose scores are X @ W train there."
    assert training.impossible_reason(training.Setup(model="graph_convolution", device="cuda")) == result


def test_rows_of_x_are_divided_by_their_sums_where_that_is_asked_for():
    run, x, _ = training_of(GCN, rows=ROWS, batch_rows=ROWS, model_options="rows_of_x=sum_1", shuffle=False)
    (batch,) = run.feed.epoch(0)
    np.testing.assert_allclose(batch.x.toarray(), x.toarray() / x.sum(axis=1)[:, None], rtol=1e-12)
    assert Around(nodes(), np.dtype(np.float32), is_scaled=True)._features(np.arange(0), 3).nnz == 0
