"""Training by dual ascent: to the optimum that other solvers find, saved, checked, and refused with reasons."""

import re
from dataclasses import replace

import numpy as np
import pytest

from kernels.permutation import MANY_ROWS, permutation_of_rows
from tests.support.tiny_sweeps import trial_row
from tests.support.wrong_steps import with_wrong_weights
from tests.training.test_train import targets
from workbench import data, training
from workbench.bridges.sklearn import SparseClassifier
from workbench.sweeps.check import check_step
from workbench.training import epoch_calls

ROWS, DECAY = 90, 0.02
SETUP = training.Setup(
    model="logistic", execution="dual", optimizer="sgd", update="exact", batch_rows=20, options={"decay": DECAY}
)

DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("power_law", rows=ROWS, features=40, density=0.15, classes=3, seed=1, cache=False)


def run_of(made: data.Dataset, setup: training.Setup = SETUP, epochs: int = 0) -> training.Run:
    y, width = targets(made, setup.model, "float32")
    x = made.x.astype("float32")
    run = training.Run(setup, x.toarray() if setup.format == "dense" else x, y, width)
    run.losses = [event.loss for event in run.events(epochs)]
    return run


def optimum(made: data.Dataset, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W [D, N] and intercept of scikit-learn's solver; the intercept without decay."""
    solver = pytest.importorskip("sklearn.linear_model").LogisticRegression(
        C=1 / (DECAY * ROWS), tol=1e-8, max_iter=999
    )
    solver.fit(made.x.astype("float64"), y)
    return solver.coef_.T, solver.intercept_


@pytest.mark.parametrize("model", ["logistic", "softmax"])
def test_dual_ascent_comes_to_the_optimum_of_scikit_learn(made, model):
    run = run_of(made, replace(SETUP, model=model), epochs=300)
    w, b = optimum(made, run.batches.y.reshape(-1))
    np.testing.assert_allclose(run.weights, w, atol=2e-4)
    np.testing.assert_allclose(run.intercept - run.intercept.mean() * (len(b) > 1), b, atol=1e-3)
    assert run.losses[-1] < run.losses[0]


@pytest.mark.parametrize("storage", ["same", "csr"])
@pytest.mark.parametrize("model", ["linear", "logistic", "multilabel", "softmax"])
def test_dense_rows_come_to_what_rows_in_csr_form_come_to(made, model, storage):
    sparse, dense = (replace(SETUP, model=model, **settings) for settings in ({}, {**DENSE, "storage": storage}))
    one, other = run_of(made, sparse, epochs=4), run_of(made, dense, epochs=4)
    np.testing.assert_allclose(other.losses, one.losses, rtol=1e-4)
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(other.intercept, one.intercept, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(other.calls.steps.dual, one.calls.steps.dual, rtol=1e-3, atol=1e-4)
    assert (other.step, other.bytes_held > one.bytes_held) == (one.step, storage == "same")


def test_dense_ascent_is_saved_and_resumed_with_the_same_bits(made):
    setup = replace(SETUP, **DENSE)
    whole, first, resumed = run_of(made, setup, epochs=2), run_of(made, setup, epochs=1), run_of(made, setup)
    resumed.load_state_dict(first.state_dict())
    for _ in resumed.epoch(1):
        pass
    np.testing.assert_array_equal(resumed.weights, whole.weights)


def test_an_estimator_trains_by_it_and_takes_all_rows_at_once(made):
    y = made.y > 0
    chosen = {"optimizer": "sgd", "lazy": "exact", "alpha": DECAY, "execution": "dual", "random_state": 0}
    estimator = SparseClassifier(max_iter=100, **chosen).fit(made.x.astype("float32"), y)
    w, _ = optimum(made, y)
    np.testing.assert_allclose(estimator.coef_, w.T, atol=1e-3)
    with pytest.raises(ValueError, match="Dual ascent trains on all rows at once: call fit"):
        estimator.partial_fit(made.x, y)
    with pytest.raises(ValueError, match="The 'execution' parameter of SparseClassifier must be"):
        SparseClassifier(execution="cuda_graph").fit(made.x, y)


def test_a_row_of_weight_two_is_two_rows(made):
    x, (y, width) = made.x.astype("float32"), targets(made, "logistic", "float32")
    twice, once = np.r_[np.arange(ROWS), np.arange(0, ROWS, 2)], np.ones(ROWS, np.float32)
    once[::2] = 2
    weighted, repeated = run_of(made), training.Run(SETUP, x[twice], y[twice], width)
    weighted.take(x, y, once)
    for run, share in ((weighted, 1.0), (repeated, ROWS / len(twice))):
        run.calls.steps.decay *= share  # the mean is over more rows
        for _ in run.events(250):
            pass
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=5e-4)


def test_a_resumed_training_goes_on_with_the_same_bits_and_one_started_anew_repeats(made):
    whole, first = run_of(made, epochs=2), run_of(made, epochs=1)
    resumed = run_of(made)
    resumed.load_state_dict(first.state_dict())
    for _ in resumed.epoch(1):
        pass
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    whole.reset()
    assert [event.loss for event in whole.events(2)] == run_of(made, epochs=2).losses
    state = first.state_dict() | {"dual": np.zeros((3, 1), np.float32)}
    with pytest.raises(training.SetupError, match=r"those of this training are float32 \(90, 1\), a row for each"):
        resumed.load_state_dict(state)


@pytest.mark.parametrize("held", [{}, DENSE], ids=["csr", "dense"])
def test_the_ascent_itself_is_checked_before_it_is_timed(made, monkeypatch, held):
    setup = replace(SETUP, **held)
    assert check_step(run_of(made, setup)).reason == ""
    with_wrong_weights(monkeypatch, epoch_calls.DualSteps, "do")
    assert "update by" in check_step(run_of(made, setup)).reason


@pytest.mark.parametrize("held", [{"update": "exact"}, DENSE], ids=["csr", "dense"])
def test_a_trial_of_dual_ascent_fills_its_row(held):
    row = trial_row(execution="dual", optimizer="sgd", **held, decay=0.01, epochs=2, density=0.1, rows=100)
    assert (row["status"], row["reason"], row["execution"]) == ("ok", "", "dual")
    assert row["seconds_batches"] > 0
    assert row["loss_last"] < row["loss_first"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"options": {}}, "needs a decay above 0, which the weights are divided by"),
        ({"optimizer": "adagrad"}, "take optimizer sgd and update exact; with adagrad and exact execution is step"),
        ({"update": "lazy"}, "with sgd and lazy execution is step or epoch"),
        ({"options": {"decay": 0.1, "learning_rate": 1.0}}, "takes the decay alone: leave learning_rate out"),
        ({"format": "coo"}, "with format coo execution is step"),
        (DENSE | {"ahead": True}, "on dense rows has format dense, .*with ahead execution is step"),
        (DENSE | {"optimizer": "adam"}, "take optimizer sgd and update standard; with adam and standard execution"),
        (
            DENSE | {"storage": "uint8"},
            "values of the weights' type: storage uint8 needs execution step or epoch",
        ),
        ({"model": "factorization_machine"}, "for linear, logistic, multilabel, softmax; for factor"),
    ],
    ids=str,
)
def test_what_dual_ascent_does_not_train_is_refused_with_what_does(settings, expected):
    reason = training.impossible_reason(replace(SETUP, **settings))
    assert reason.startswith("Dual ascent ")
    assert re.search(expected, reason)


def test_neighbours_of_many_rows_stay_together_and_the_minimum_is_reached_as_soon():
    many = data.load("power_law", rows=MANY_ROWS + 3, features=40, density=0.05, classes=2, seed=2, cache=False)
    x, (y, width) = many.x.astype("float64"), targets(many, "logistic", "float64")
    setup = replace(SETUP, dtype="float64", intercept=False, options={"decay": 1e-4})
    run = training.Run(setup, x, y, width)
    order, single = run.batches.order(0, by_rows=True), run.batches.order(0)
    assert sorted(order.tolist()) == sorted(single.tolist()) == list(range(MANY_ROWS + 3))
    assert np.mean(np.diff(order) == 1) > 0.7
    assert np.mean(np.diff(single) == 1) < 0.01
    assert len({int(run.batches.order(k, by_rows=True)[0]) % 4 for k in range(9)}) > 1  # other neighbours
    for _ in run.events(8):
        pass
    scores, dual = x @ run.weights, run.state_dict()["dual"]
    p = np.clip(y - dual, 1e-300, 1 - 1e-16)
    penalty = 1e-4 / 2 * float((run.weights**2).sum())
    above = np.mean(np.logaddexp(0, scores) - scores * y) + penalty
    below = -np.mean(p * np.log(p) + (1 - p) * np.log1p(-p)) - penalty
    np.testing.assert_allclose(x.T @ dual / (1e-4 * len(y)), run.weights, atol=1e-9)
    assert 0 <= above - below < 1e-5 * above


def test_few_rows_are_drawn_one_by_one():
    for total in (0, 1, 5, 3000, MANY_ROWS - 1):
        expected = np.random.default_rng(total).permutation(total)
        np.testing.assert_array_equal(permutation_of_rows(np.random.default_rng(total), total), expected)
    for total in range(MANY_ROWS, MANY_ROWS + 5):
        for seed in range(5):
            order = permutation_of_rows(np.random.default_rng(seed), total)
            np.testing.assert_array_equal(np.sort(order), np.arange(total))
