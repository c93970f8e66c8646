"""Several workers on slices of a batch are one worker on the batch, and each pulls by itself the rows that it reads."""

import numpy as np
import pytest

from tests.support import small_modules as small
from workbench import data, formats, graph, ops
from workbench.formats import RowSparse
from workbench.kvstore import LocalStore, StoreError
from workbench.module import Module
from workbench.module import training as module_worker
from workbench.module.training import slices_of

MODELS = {
    "linear": (small.linear, small.batches, {}),
    "linear, dense weight": (lambda: small.linear("dense"), small.batches, {}),
    "linear, mean loss": (lambda: small.linear(output="loss"), small.batches, {}),
    "factorization machine": (
        small.factorization,
        lambda **o: data.Batches(small.batches().x, small.TARGETS[:, :1], 10, **o),
        {},
    ),
    "matrix factorization": (small.matrix_factorization, small.ratings, {"data_names": ["user", "item"]}),
}
SETTINGS = {"learning_rate": 0.05, "rescale": 0.1}


def trained(name: str, optimizer="momentum", epochs=3, settings=None, **options) -> tuple[Module, list]:
    symbol, feed, names = MODELS[name]
    batches = feed(shuffle=True, seed=2)
    module = small.module(symbol(), batches, None, optimizer, settings or SETTINGS, **names, **options)
    history = module.fit(batches, epochs=epochs, metric="mse")
    return module, [ended.metric for ended in history]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lazy", ["on", "off", "exact"])
def test_a_store_with_one_worker_gives_the_same_bits_as_none(name, lazy):
    settings = {**SETTINGS, "lazy": lazy}
    alone, errors = trained(name, settings=settings)
    stored, same_errors = trained(name, settings=settings, store=LocalStore())
    assert errors == same_errors
    assert small.same(alone.weights(), stored.weights())
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("name", ["linear", "linear, dense weight"])
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
@pytest.mark.parametrize("workers", [1, 2])
def test_exact_updates_train_as_the_dense_rule_because_rows_catch_up_before_they_are_read(name, optimizer, workers):
    errors, weights = {}, {}
    for lazy in ("off", "exact", "on"):
        settings = {**SETTINGS, "lazy": lazy, "decay": 0.01}
        module, errors[lazy] = trained(name, optimizer, settings=settings, workers=workers)
        weights[lazy] = formats.to_format(module.weights()["weight"], "dense")
    np.testing.assert_allclose(errors["exact"], errors["off"], rtol=1e-9)
    np.testing.assert_allclose(weights["exact"], weights["off"], rtol=1e-7, atol=1e-10)
    assert np.abs(weights["on"] - weights["off"]).max() > 1e-4


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("workers", [2, 3, 12])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_several_workers_give_the_result_of_one(name, workers, optimizer):
    """To rounding: sums over slices have another order. 12 workers are more than a batch has rows."""
    alone, errors = trained(name, optimizer)
    several, same_errors = trained(name, optimizer, workers=workers)
    tolerance = 1e-4 if name == "matrix factorization" else 1e-9
    np.testing.assert_allclose(same_errors, errors, rtol=tolerance)
    for key, weight in alone.weights().items():
        other = several.weights()[key]
        assert formats.format_of(other) == formats.format_of(weight)
        np.testing.assert_allclose(
            formats.to_format(other, "dense"), formats.to_format(weight, "dense"), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_where_sums_are_exact_several_workers_give_the_same_bits(workers):
    """Small whole numbers, whose sums have no rounding in any order."""
    rng = np.random.default_rng(4)
    x = formats.to_format(rng.integers(-2, 3, (20, 8)).astype(np.float64), "csr")
    feed = data.Batches(x, rng.integers(-3, 4, (20, 2)).astype(np.float64), 10)
    results = []
    for count in (1, workers):
        symbol = ops.linear_regression_output(
            ops.dot(graph.variable("data", format="csr"), graph.variable("w", "row_sparse", (8, 2), init="zeros")),
            graph.variable("label"),
        )
        module = small.module(symbol, feed, settings={"learning_rate": 2.0**-4, "rescale": 1.0}, workers=count)
        module.fit(feed, epochs=1)
        results.append(module.weights())
    assert np.abs(results[0]["w"].values).max() > 0
    assert small.same(*results)


def test_a_worker_holds_the_rows_of_its_slice_and_no_others():
    feed = small.batches()
    module = small.module(feed=feed, workers=2)
    batch = next(feed.epoch())
    module.forward(batch)
    for worker, part in zip(module.workers, (batch.x[:5], batch.x[5:]), strict=True):
        weight = worker.weights["weight"]
        assert isinstance(weight, RowSparse)
        assert weight.indices.tolist() == sorted(set(part.indices.tolist()))
        assert len(weight.indices) < small.FEATURES


@pytest.mark.parametrize("weight_format", ["row_sparse", "dense"])
def test_no_one_has_to_remember_to_pull(weight_format):
    """A store that was changed by someone else is what the next batch reads."""
    feed, store = small.batches(), LocalStore()
    module = small.module(small.linear(weight_format), feed, store=store, settings={"learning_rate": 0.1})
    before = module.forward(next(feed.epoch()), training=False)[0].copy()
    store.push("weight", formats.to_format(np.ones((small.FEATURES, 2)), "row_sparse"))
    after = module.forward(next(feed.epoch()), training=False)[0]
    change = -0.1 * np.repeat(small.DENSE[:10].sum(axis=1)[:, None], 2, axis=1)
    np.testing.assert_allclose(after - before, change, rtol=1e-9, atol=1e-12)


def test_rows_that_no_batch_has_stay_as_they_were():
    feed = small.batches()
    untouched = np.flatnonzero(~small.DENSE.any(axis=0))
    assert len(untouched)
    module = small.module(feed=feed, workers=2, settings={"learning_rate": 0.1, "decay": 0.5})
    before = module.weights()["weight"].values[untouched]
    module.fit(feed, epochs=2)
    np.testing.assert_array_equal(module.weights()["weight"].values[untouched], before)


def test_scores_and_predictions_use_the_store_too():
    feed = small.batches()
    alone, several = small.module(feed=feed), small.module(feed=feed, workers=3)
    for module in (alone, several):
        module.fit(feed, epochs=1)
    np.testing.assert_allclose(several.predict(feed), alone.predict(feed), rtol=1e-12)
    assert several.score(feed, "mse") == pytest.approx(alone.score(feed, "mse"), rel=1e-12)


def test_outputs_of_one_number_are_means_or_sums_over_the_slices():
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    error = ops.square(ops.dot(x, graph.variable("w", shape=(small.FEATURES, 2), init="normal")) - label)
    feed = small.batches(last="keep")
    for reduce, slices in ((ops.mean, "mean"), (ops.sum, "sum")):
        one = small.module(reduce(error), feed, settings={"learning_rate": 1e-3})
        three = small.module(reduce(error), feed, settings={"learning_rate": 1e-3}, workers=3, slices=slices)
        for module in (one, three):
            for batch in feed.epoch():
                module.forward(batch)
                module.backward()
                module.update()
        np.testing.assert_allclose(three.outputs[0], one.outputs[0], rtol=1e-12)
        np.testing.assert_allclose(three.weights()["w"], one.weights()["w"], rtol=1e-10)
    wrong = small.module(ops.sum(error), feed, settings={"learning_rate": 1e-3}, workers=3, slices="mean")
    wrong.fit(feed, epochs=1)
    assert np.abs(wrong.weights()["w"] - three.weights()["w"]).max() > 1e-6


@pytest.mark.parametrize("workers", [1, 2])
def test_gradients_that_are_left_unsummed_are_summed_by_the_store(workers):
    feed, results = small.batches(shuffle=True), []
    for wanted in ("fused", "row_sparse"):
        bind = {"grad_formats": {"weight": wanted}}
        module = small.module(small.linear("dense"), feed, bind, workers=workers, store=LocalStore())
        module.fit(feed, epochs=2)
        results.append(module.weights()["weight"])
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_fixed_parameters_are_pulled_but_not_pushed():
    feed = small.batches()
    module = small.module(feed=feed, workers=2, fixed=["bias"])
    module.fit(feed, epochs=1)
    assert (module.weights()["bias"] == 0).all()
    assert set(module.updater.steps) == {"weight"}


def test_a_key_that_the_store_has_is_refused():
    store = LocalStore()
    store.init("bias", np.zeros(3))
    with pytest.raises(StoreError, match="The key 'bias' is set already"):
        small.module(store=store)


@pytest.mark.parametrize(("rows", "workers"), [(10, 1), (10, 3), (3, 2), (2, 5), (1, 1), (7, 7)])
def test_slices_are_contiguous_and_nearly_equal(rows, workers):
    cut = slices_of(rows, workers)
    assert len(cut) == min(rows, workers)
    assert [start for start, _ in cut] == [0, *(stop for _, stop in cut[:-1])]
    assert cut[-1][1] == rows
    sizes = [stop - start for start, stop in cut]
    assert max(sizes) - min(sizes) <= 1


# what is read, found in the graph

X = graph.variable("x", format="csr", shape=(4, 6))
IDS = graph.variable("ids", shape=(4,))
LOOSE = graph.variable("loose", shape=(4, 6))
W = graph.variable("w", format="row_sparse", shape=(6, 3))
COLUMNS = {module_worker.Source("columns", "x")}
ROWS = {module_worker.Source("ids", "ids")}


@pytest.mark.parametrize(
    ("symbol", "wanted"),
    [
        (ops.dot(X, W), COLUMNS),
        (ops.dot(ops.square(X), W), COLUMNS),
        (ops.dot(ops.multiply_scalar(X, scalar=2.0), ops.square(W)), COLUMNS),
        (ops.dot(X, ops.square_sum(W, axis=1, keepdims=True)), COLUMNS),
        (ops.dot(X, ops.sum(W, axis=-1, keepdims=True)), COLUMNS),
        (ops.dot(X, W + W), COLUMNS),
        (ops.embedding(IDS, W), ROWS),
        (ops.embedding(IDS, ops.square(W)), ROWS),
        (graph.group([ops.dot(X, W), ops.embedding(IDS, W)]), COLUMNS | ROWS),
        (ops.dot(ops.dot(X, W), graph.variable("other", shape=(3, 2))), COLUMNS),
        (graph.group([ops.dot(X, W), ops.norm(W)]), None),
        (ops.dot(X, ops.sum(graph.variable("w", shape=(6, 6)), axis=0)), None),
        (ops.dot(LOOSE, W), None),
        (ops.dot(X, ops.sum(W, axis=0, keepdims=True) + W), None),
        (ops.dot(ops.dot(X, W), W, transpose_b=True), None),
        (ops.dot(X, ops.reshape(graph.variable("w", shape=(3, 6)), shape=(6, 3))), None),
        (ops.dot(X, ops.softmax(graph.variable("w", shape=(6,)))), None),
        (ops.sum(W), None),
        (W, None),
    ],
)
def test_the_rows_that_are_read_are_found(symbol, wanted):
    known = {"x": (4, 6), "ids": (4,), "loose": (4, 6)}
    arguments = symbol.arguments()
    given = {name: shape for name, shape in known.items() if name in arguments}
    found = module_worker.find(symbol, symbol.infer(given).facts, list(known))
    assert found["w"] == wanted


def test_rows_of_a_batch_are_sorted_and_unique():
    x = formats.to_format(np.float32([[0, 1, 0, 0, 2], [0, 3, 0, 0, 0]]), "csr")
    both = frozenset(COLUMNS | ROWS)
    arrays = {"x": x, "ids": np.float32([3, 3, 0])}
    assert module_worker.rows(frozenset(COLUMNS), arrays).tolist() == [1, 4]
    assert module_worker.rows(both, arrays).tolist() == [0, 1, 3, 4]
    assert module_worker.rows(module_worker.NOTHING, arrays).tolist() == []
    assert module_worker.rows(both, arrays).dtype == np.int64


@pytest.mark.parametrize("held", ["csr", "csc", "coo", "dense"])
def test_rows_are_pulled_by_the_columns_of_data_that_is_converted(held):
    whole = np.arange(small.ROWS)
    given = formats.to_format(small.batches().x, held)
    batch = data.Batch({"data": given}, {"label": small.TARGETS}, whole)
    module = small.module(feed=batch, bind={"convert": True}, store=LocalStore())
    one = small.module(feed=small.batches(rows=small.ROWS))
    for trained, feed in ((module, batch), (one, next(small.batches(rows=small.ROWS).epoch()))):
        trained.forward(feed)
        trained.backward()
        trained.update()
    came, wanted = (formats.to_format(made.weights()["weight"], "dense") for made in (module, one))
    np.testing.assert_allclose(came, wanted, rtol=1e-12)
