"""The module: what it computes by hand and in `fit`, what it takes, predicts and starts from, padding."""

import itertools

import numpy as np
import pytest

from kernels import sorting
from tests.support import small_modules as small
from workbench import data, formats, graph, metrics, ops
from workbench.data.batches import in_memory
from workbench.formats import RowSparse
from workbench.graph import GraphError
from workbench.module import Module, initialisers


def by_numpy(weights: dict, feed: data.Batches, epochs: int, rate: float) -> tuple[dict, list[float]]:
    """Plain SGD on half the squared error, summed over rows and averaged over the two outputs, times 1 / 10."""
    weight, bias = formats.to_format(weights["weight"], "dense").copy(), weights["bias"].copy()
    seen = []
    for number in range(epochs):
        errors = []
        for batch in feed.epoch(number):
            x, y = batch.x.toarray(), batch.y
            error = x @ weight + bias - y
            errors.append(error[: batch.real_rows].ravel())
            weight -= rate * 0.1 * (x.T @ error) / 2
            bias -= rate * 0.1 * error.sum(axis=0) / 2
        seen.append(float(np.mean(np.concatenate(errors) ** 2)))
    return {"weight": weight, "bias": bias}, seen


@pytest.mark.parametrize("weight_format", ["dense", "row_sparse"])
@pytest.mark.parametrize("last", ["keep", "discard", "pad"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_fit_does_what_numpy_does(weight_format, last, shuffle, ahead):
    feed = small.batches(last=last, shuffle=shuffle, seed=5)
    module = small.module(small.linear(weight_format), feed)
    wanted, errors = by_numpy(module.weights(), feed, 3, 0.05)
    history = module.fit(feed, epochs=3, metric="mse", ahead=ahead)
    came = module.weights()
    assert formats.format_of(came["weight"]) == weight_format
    for name in wanted:
        np.testing.assert_allclose(formats.to_format(came[name], "dense"), wanted[name], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose([ended.metric for ended in history], errors, rtol=1e-11)
    assert [ended.epoch for ended in history] == [0, 1, 2]
    assert errors[-1] < errors[0]


def test_a_gradient_without_a_plan_is_that_with_one_and_ahead_changes_no_bit(monkeypatch):
    def fitted(ahead):
        feed = small.batches(shuffle=True)
        module = small.module(small.linear(), feed)
        module.fit(feed, epochs=2, ahead=ahead)
        return module.weights()

    planned = fitted(ahead=False)
    monkeypatch.setattr(in_memory, "NUMBERS", 0)
    monkeypatch.setattr(sorting, "suits", lambda entries, columns, width: width == 2)
    without = fitted(ahead=False)
    assert small.same(without, fitted(ahead=True))
    for name, weight in without.items():
        np.testing.assert_allclose(formats.to_format(weight, "dense"), formats.to_format(planned[name], "dense"))


@pytest.mark.parametrize("output", ["layer", "loss"])
def test_by_hand_it_is_what_fit_does(output):
    feed = small.batches(shuffle=True)
    fitted, by_hand = (small.module(small.linear(output=output), feed) for _ in range(2))
    fitted.fit(feed, epochs=2)
    for batch in itertools.chain(feed.epoch(0), feed.epoch(1)):
        by_hand.forward(batch)
        by_hand.backward()
        by_hand.update()
    assert small.same(fitted.weights(), by_hand.weights())


@pytest.mark.parametrize("grad_format", ["dense", "row_sparse", "fused"])
def test_the_format_of_a_gradient_changes_its_memory_not_its_meaning(grad_format):
    feed = small.batches()
    module = small.module(small.linear("dense"), feed, bind={"grad_formats": {"weight": grad_format}})
    plain = small.module(small.linear("dense"), feed)
    for made in (module, plain):
        made.fit(feed, epochs=2)
    np.testing.assert_allclose(module.weights()["weight"], plain.weights()["weight"], rtol=1e-12)


def test_float32_data_makes_float32_parameters_and_a_dtype_overrides_it():
    module = small.module(feed=small.batches(np.float32))
    assert {weight.dtype for weight in module.weights().values()} == {np.dtype(np.float32)}
    made = Module(small.linear()).bind(small.batches())
    assert made.initialise().weights()["bias"].dtype == np.float64
    ids = Module(small.matrix_factorization(), ["user", "item"]).bind(small.ratings(), dtype=np.float32)
    assert ids.initialise().weights()["users"].dtype == np.float32


def test_fixed_parameters_stay_and_the_others_are_trained():
    feed = small.batches()
    module = small.module(feed=feed, fixed=["weight"])
    before = module.weights()
    module.fit(feed, epochs=1)
    after = module.weights()
    assert small.same({"weight": before["weight"]}, {"weight": after["weight"]})
    assert not small.same({"bias": before["bias"]}, {"bias": after["bias"]})


def test_multipliers_that_variables_declare_reach_the_optimizer():
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    slow = graph.variable("slow", shape=(small.FEATURES, 2), init="zeros", rate_multiplier=0.5)
    fast = graph.variable("fast", shape=(small.FEATURES, 2), init="zeros")
    symbol = ops.linear_regression_output(ops.dot(x, slow) + ops.dot(x, fast), label)
    feed = small.batches(rows=53)
    module = small.module(symbol, feed)
    module.fit(feed, epochs=1)
    weights = module.weights()
    assert np.abs(weights["fast"]).max() > 0
    np.testing.assert_allclose(weights["slow"], 0.5 * weights["fast"], rtol=1e-12)


# predictions and scores


@pytest.mark.parametrize("last", ["keep", "pad"])
@pytest.mark.parametrize("labels", [True, False])
def test_predictions_are_those_of_all_rows_with_and_without_labels(last, labels):
    module = small.module()
    x, y = small.batches().x, small.TARGETS
    feed = data.Batches(x, y if labels else None, 10, last=last)
    weights = module.weights()
    wanted = small.DENSE @ weights["weight"].toarray() + weights["bias"]
    np.testing.assert_allclose(module.predict(feed), wanted, rtol=1e-12)
    parts = list(module.predictions(feed))
    assert [len(output) for _, output in parts] == [10, 10, 10, 10, 10, 3]
    np.testing.assert_allclose(np.concatenate([output for _, output in parts]), wanted, rtol=1e-12)


def test_scores_leave_out_rows_that_pad():
    module = small.module()
    keep, pad = (module.score(small.batches(last=last), "mse") for last in ("keep", "pad"))
    assert keep == pytest.approx(pad, rel=1e-13)
    assert keep == pytest.approx(metrics.mse(module.predict(small.batches()), small.TARGETS), rel=1e-13)
    both = module.score(small.batches(), ["mse", "mae"], average="batches")
    assert set(both) == {"mse", "mae"}
    assert both["mse"] != pytest.approx(keep, rel=1e-6)


def test_validation_is_scored_after_each_epoch_and_changes_nothing():
    feed = small.batches()
    with_it, without = small.module(feed=feed), small.module(feed=feed)
    checked = []
    history = with_it.fit(
        feed,
        small.batches(last="pad"),
        epochs=2,
        metric="mse",
        epoch_end=lambda event: checked.append(event.module.score(feed, "mse")),
    )
    without.fit(feed, epochs=2)
    np.testing.assert_allclose([ended.validation for ended in history], checked, rtol=1e-13)
    assert small.same(with_it.weights(), without.weights())


def test_the_prediction_may_be_any_output():
    feed = small.batches()
    scores, loss = small.linear(output="loss").heads
    first = small.module(graph.group([scores, loss]), feed)
    last = small.module(graph.group([loss, scores]), feed, prediction=1)
    for made in (first, last):
        made.fit(feed, epochs=1, metric="mse")
    np.testing.assert_array_equal(first.predict(feed), last.predict(feed))


def test_several_data_are_taken_by_name():
    feed = small.ratings(shuffle=True)
    module = small.module(
        small.matrix_factorization(), feed, settings={"learning_rate": 1, "rescale": 0.1}, data_names=["user", "item"]
    )
    history = module.fit(feed, epochs=30, metric="mse")
    assert history[-1].metric < 0.7 * history[0].metric


@pytest.mark.parametrize("label_format", ["dense", "csr"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_labels_may_be_sparse(label_format, shuffle):
    feed = data.Batches(small.batches().x, formats.to_format(small.TARGETS, label_format), 10, shuffle=shuffle)
    module = small.module(feed=feed)
    errors = [ended.metric for ended in module.fit(feed, epochs=2, metric="mse")]
    _, wanted = by_numpy(small.module().weights(), small.batches(shuffle=shuffle), 2, 0.05)
    np.testing.assert_allclose(errors, wanted, rtol=1e-11)


@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_data_keeps_its_format_or_is_converted_to_what_is_declared(convert, ahead):
    feed = data.Batches(small.DENSE, small.TARGETS, 10)
    module = small.module(feed=feed, bind={"convert": convert})
    assert module.workers[0].executor.known["data"].format == ("csr" if convert else "dense")
    errors = [ended.metric for ended in module.fit(feed, epochs=2, metric="mse", ahead=ahead)]
    _, wanted = by_numpy(small.module().weights(), small.batches(), 2, 0.05)
    np.testing.assert_allclose(errors, wanted, rtol=1e-11)


@pytest.mark.parametrize("ahead", [False, True])
def test_declared_types_are_converted_to(ahead, monkeypatch):
    monkeypatch.setattr(in_memory, "NUMBERS", 0)
    monkeypatch.setattr(sorting, "suits", lambda entries, columns, width: False)
    monkeypatch.setattr(sorting, "ENTRIES", -1)  # else no plan is made with values, which a conversion replaces
    x, label = graph.variable("data", format="csr", dtype="float64"), graph.variable("label", dtype="float64")
    symbol = ops.linear_regression_output(
        ops.dot(x, graph.variable("w", shape=(small.FEATURES, 2), dtype="float64")), label
    )
    feed = small.batches(np.float32, shuffle=True)
    module = small.module(symbol, feed, bind={"convert": True, "grad_formats": {"w": "fused"}})
    module.fit(feed, epochs=1, ahead=ahead)
    assert module.predict(feed).dtype == np.float64
    with pytest.raises(GraphError):
        small.module(symbol, feed)


def test_labels_of_one_dimension_go_with_scores_of_one_column():
    feed = small.ratings()
    module = small.module(small.matrix_factorization(), feed, data_names=["user", "item"])
    wanted = np.mean((module.predict(feed) - small.TARGETS[:, 0]) ** 2)
    assert module.score(feed, "mse") == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_read_only_data_with_long_indices_and_empty_rows_is_trained_on(index):
    x = formats.to_format(small.DENSE, "csr")
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    y = small.TARGETS.copy()
    for array in (x.data, x.indices, x.indptr, y):
        array.flags.writeable = False
    feed = data.Batches(x, y, 10)
    module, plain = small.module(feed=feed), small.module()
    for made in (module, plain):
        made.fit(feed if made is module else small.batches(), epochs=1)
    assert small.same(module.weights(), plain.weights())


def test_nan_in_the_data_shows_in_the_metric_and_is_no_error():
    dense = small.DENSE.copy()
    dense[3, 2] = np.nan
    feed = data.Batches(formats.to_format(dense, "csr"), small.TARGETS, 10)
    (ended,) = small.module(feed=feed).fit(feed, epochs=1, metric="mse")
    assert np.isnan(ended.metric)


def test_first_values_depend_on_name_and_seed_alone():
    one, again, other = (initialisers.draw("normal", "w", (4, 3), np.float32, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, initialisers.draw("normal", "v", (4, 3), np.float32, 1))
    feed = small.batches()
    alone = Module(small.linear()).bind(feed).initialise("uniform", seed=3).weights()
    x, label = graph.variable("data", format="csr"), graph.variable("label")
    first = ops.dot(x, graph.variable("another", shape=(small.FEATURES, 2)))
    weight = graph.variable("weight", format="row_sparse", shape=(small.FEATURES, 2), init=("normal", 0.1))
    symbol = ops.linear_regression_output(first + ops.dot(x, weight), label)
    other = Module(symbol).bind(feed).initialise("uniform", seed=3).weights()
    assert small.same({"weight": alone["weight"]}, {"weight": other["weight"]})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("spec", "low", "high", "deviation"),
    [
        ("zeros", 0, 0, 0),
        (2.5, 2.5, 2.5, 0),
        (("constant", -1), -1, -1, 0),
        ("uniform", -0.01, 0.01, 0.01 / np.sqrt(3)),
        (["uniform", 3], -3, 3, 3 / np.sqrt(3)),
        ("normal", -0.06, 0.06, 0.01),
        (("normal", 2), -12, 12, 2),
        ("xavier", -np.sqrt(6 / 350), np.sqrt(6 / 350), np.sqrt(2 / 350)),
        (("xavier", 2), -2 * np.sqrt(6 / 350), 2 * np.sqrt(6 / 350), 2 * np.sqrt(2 / 350)),
    ],
)
def test_initialisers_have_the_spread_that_they_state(spec, low, high, deviation, dtype):
    values = initialisers.draw(spec, "w", (300, 50), dtype, 0)
    assert values.dtype == dtype
    assert values.shape == (300, 50)
    assert low - 1e-6 <= values.min() <= values.max() <= high + 1e-6
    assert values.std() == pytest.approx(deviation, rel=0.03, abs=1e-12)
    assert values.mean() == pytest.approx((low + high) / 2, abs=0.05 * deviation + 1e-6)


def test_given_values_come_before_declared_and_default_ones():
    module = Module(small.linear()).bind(small.batches())
    given = formats.to_format(np.eye(small.FEATURES, 2), "csr")
    weights = module.initialise(("constant", 3), values={"weight": given}).weights()
    np.testing.assert_array_equal(weights["weight"].toarray(), np.eye(small.FEATURES, 2))
    assert weights["bias"].tolist() == [0, 0]  # which its variable declares
    drawn = Module(small.linear(init=None)).bind(small.batches()).initialise(("constant", 3)).weights()
    assert isinstance(drawn["weight"], RowSparse)
    assert drawn["weight"].values.shape == (small.FEATURES, 2)
    assert (drawn["weight"].values == 3).all()
