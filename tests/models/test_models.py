"""Every registered model: its graph has its parameters, sparse and dense train alike, and it learns something."""

import numpy as np
import pytest

from workbench import models, train
from workbench.sweep import problem

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


def training_of(
    model: models.Model, rows: int = 200, held_out: int = 0, **settings
) -> tuple[train.Training, np.ndarray, np.ndarray]:
    """A training of the model on drawn data but for the first `held_out` rows, and the data."""
    width = next(width for width in (3, 1) if model.allows(width))
    drawn = problem.drawn_for(model, width, rows=rows, features=40, density=0.2, seed=1, users=60, items=200)
    y = problem.targets(drawn, model, width, np.dtype("float64"))
    x = drawn.x.astype(np.float64)
    setup = train.Setup(model=model.name, batch_rows=40, dtype="float64", optimizer="sgd", **settings)
    trained = x[held_out:]
    trained = trained.toarray() if setup.format == "dense" else trained
    return train.make_run(setup, trained, y[held_out:], width, problem.facts_of(drawn)), x, y


@pytest.mark.parametrize("intercept", [True, False])
def test_the_graph_has_the_parameters_that_the_model_states(model, intercept):
    if intercept and not model.has_intercept:
        assert "no intercept" in train.why_impossible(train.Setup(model=model.name, intercept=True))
        return
    run, *_ = training_of(model, intercept=intercept)
    scores, loss = model.graph(run.given, intercept=intercept)
    named = {parameter.name for parameter in run.parameters}
    assert set(scores.arguments()) == {"x", *named}
    assert set(loss.arguments()) == {"x", "y", *named}
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
    starts = {one.name: run.start_of(one) for one in run.parameters}
    first = [event.loss for event in run.events(1)]
    run.reset()
    for one in run.parameters:
        np.testing.assert_array_equal(run.read_rows(np.arange(len(starts[one.name])), one.name), starts[one.name])
    assert [event.loss for event in run.events(1)] == first


def test_it_beats_the_answer_without_features_on_rows_that_it_has_not_seen(model):
    run, x, y = training_of(model, rows=2000, held_out=500)
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


def test_the_formula_of_the_factorization_machine():
    run, x, _ = training_of(models.get("factorization_machine"), intercept=True)
    for _ in run.events(1):
        pass
    dense, (w, v, b) = x.toarray(), run.arrays.values()
    pairs = [sum(row[i] * row[j] * v[i] @ v[j] for j in range(40) for i in range(j)) for row in dense[:5]]
    np.testing.assert_allclose(run.predict(x[:5])[:, 0], dense[:5] @ w[:, 0] + pairs + b[0], rtol=1e-9)


def test_on_cuda_only_models_that_are_a_product_train():
    reason = train.why_impossible(train.Setup(model="factorization_machine", device="cuda"))
    assert (
        reason == "The factorization_machine model has no steps on cuda yet: models whose scores are X @ W train there."
    )
    assert train.why_impossible(train.Setup(device="cuda")) == ""
