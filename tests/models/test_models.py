"""Every registered model: its graph has its parameters, sparse and dense train alike, and it learns something."""

import numpy as np
import pytest

from tests.support.small_models import settings_for, training_of
from tests.support.tiny_sweeps import trial_row
from workbench import models, training
from workbench.sweeps import check
from workbench.sweeps.check import check_step

WAYS = [
    {"gradient": "row_sparse", "update": "lazy"},
    {"gradient": "fused", "update": "lazy"},
    {"gradient": "fused", "update": "exact"},
    {"format": "coo", "gradient": "row_sparse", "update": "standard"},
    {"format": "csc", "gradient": "dense", "update": "standard"},
    {"format": "row_sparse", "gradient": "dense", "update": "standard"},
]
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}


@pytest.fixture(params=models.names())
def model(request) -> models.Model:
    return models.get(request.param)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_graph_has_the_parameters_that_the_model_states(model, intercept):
    if intercept and not model.has_intercept:
        assert "no intercept" in training.impossible_reason(training.Setup(model=model.name, intercept=True))
        return
    run, *_ = training_of(model, intercept=intercept)
    scores, loss = model.graph(run.given, intercept=intercept)
    named = {parameter.name for parameter in run.parameters}
    taken = {"x", *named, *(one.name for one in model.inputs(run.given, 40))}
    assert set(scores.arguments()) == taken
    assert set(loss.arguments()) == {"y", *taken}
    assert ("b" in named) == intercept
    assert any(parameter.touched for parameter in run.parameters)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_sparse_and_dense_train_alike(model, way):
    (sparse, *_), (dense, *_) = training_of(model, **way), training_of(model, **DENSE)
    losses = [[event.loss for event in run.events(2)] for run in (sparse, dense)]
    np.testing.assert_allclose(*losses, rtol=1e-9)
    sparse.catch_up()
    for parameter in sparse.parameters:
        rows = np.arange(parameter.shape[0])
        came, expected = (run.read_rows(rows, parameter.name) for run in (sparse, dense))
        np.testing.assert_allclose(came, expected, rtol=1e-7, atol=1e-10)


def test_a_reset_training_starts_where_it_started(model):
    run, *_ = training_of(model, shuffle=False)
    starts = {parameter.name: run.start_of(parameter) for parameter in run.parameters}
    first = [event.loss for event in run.events(1)]
    run.reset()
    for parameter in run.parameters:
        np.testing.assert_array_equal(
            run.read_rows(np.arange(len(starts[parameter.name])), parameter.name), starts[parameter.name]
        )
    assert [event.loss for event in run.events(1)] == first


def test_it_beats_the_answer_without_features_on_rows_that_it_has_not_seen(model):
    run, x, y = training_of(model, rows=2000, held_out=500, optimizer="adagrad")
    for _ in run.events(20):
        pass
    assert run.quality(x[:500], y[:500]) > run.quality_without_x(x[:500], y[:500]) + 0.02


def test_starting_values_come_from_the_seed():
    machine = models.get("factorization_machine")
    one, *_ = training_of(machine)
    same, *_ = training_of(machine)
    other, *_ = training_of(machine, seed=1)
    factors = [run.read_rows(np.arange(40), "v") for run in (one, same, other)]
    np.testing.assert_array_equal(factors[0], factors[1])
    assert (factors[0] != factors[2]).all()
    assert 0.005 < factors[0].std() < 0.02


def test_on_cuda_only_models_that_are_a_product_train():
    reason = training.impossible_reason(training.Setup(model="factorization_machine", device="cuda"))
    assert (
        reason == "The factorization_machine model has no steps on cuda yet: models whose scores are X @ W train there."
    )
    assert training.impossible_reason(training.Setup(device="cuda")) == ""


WAYS_OF_TRIALS = [{}, DENSE, {"update": "exact", "gradient": "fused"}]


@pytest.mark.parametrize("way", WAYS_OF_TRIALS, ids=str)
def test_a_trial_checks_its_step_trains_and_holds_about_what_was_predicted(model, way):
    row = trial_row(epochs=1, **settings_for(model.name), **way)
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["error"] < row["error_allowed"]
    assert row["quality_name"] == model.quality_name
    assert set(row["measures"]) == set(model.measures)
    assert row["quality_curve"][0]["epoch"] == 1
    assert row["quality_curve"][-1][model.quality_name] == row["quality"]
    assert 0.6 < row["bytes_predicted"] / row["bytes_held"] < 2.5  # of a tiny set most are of batches, which pass


def test_what_a_model_predicts_is_said_in_a_few_words(model):
    assert 0 < len(model.predicts) < 60


@pytest.mark.parametrize("way", [*WAYS[:3], DENSE], ids=str)
def test_references_are_computed_anew_unless_a_step_has_the_bits_of_the_checked_one(model, way, monkeypatch):
    before, computed = check_step(training_of(model, **way)[0]), []
    real = check.expected_gradients
    monkeypatch.setattr(check, "expected_gradients", lambda *given: computed.append(1) or real(*given))
    again = check_step(training_of(model, **way)[0], before=before)
    assert (again.errors, again.reason, len(computed)) == (before.errors, "", 0 if before.digest else 1)


@pytest.mark.parametrize("part", ["scores_of", "slope", "backward", "update"])
def test_a_step_that_goes_wrong_after_a_right_one_was_checked_is_found(part, monkeypatch):
    model = models.get("logistic")
    before, real = check_step(training_of(model)[0]), getattr(training.Run, part)

    def wrong(self, *given):
        if part == "update":
            return real(self, {name: gradient * 1.1 for name, gradient in given[0].items()})
        came = real(self, *given)
        return {name: gradient * 1.1 for name, gradient in came.items()} if part == "backward" else came * 1.1

    monkeypatch.setattr(training.Run, part, wrong)
    checked = check_step(training_of(model, gradient="dense", update="standard")[0], before=before)
    assert checked is not before
    assert checked.reason


def test_a_step_that_is_wrong_only_at_a_jump_is_drawn_anew_and_one_that_is_wrong_is_not(monkeypatch):
    """A unit on the other side of its jump shows in one draw; a fault shows in all."""
    run, *_ = training_of(models.get("embedding_mlp"))
    assert not check_step(run).reason
    real, calls = training.Run.backward, []

    def wrong(times: int):
        def backward(self, timer=None):
            gradients = real(self, timer)
            calls.append(1)
            if len(calls) <= times:
                gradients["out"][...] *= 1.1
            return gradients

        return backward

    for times, is_wrong in ((1, False), (10, True)):
        calls.clear()
        monkeypatch.setattr(training.Run, "backward", wrong(times))
        assert bool(check_step(run).reason) == is_wrong
    smooth, *_ = training_of(models.get("matrix_factorization"))
    calls.clear()
    monkeypatch.setattr(training.Run, "backward", lambda self, timer=None: calls.append(1) or real(self, timer))
    assert not check_step(smooth).reason
    assert len(calls) == 1
