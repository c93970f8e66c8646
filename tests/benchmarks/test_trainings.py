"""Candidates on the rows of a configuration: the same rows, the same judge, a point of the curves each epoch."""

import numpy as np
import pytest

from benchmarks import trainings
from benchmarks.fit.candidates import implicit_factors
from benchmarks.shapes import BenchError
from workbench import models
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

RATINGS = "users=60, items=40, rows=900"
CLICKS = "rows=2000, columns=4, values=40, hashed=32, main=2"


def problem(epochs=1, **settings):
    return make_problem(Configuration(epochs=epochs, **settings))


@pytest.fixture(scope="module")
def ratings():
    return problem(dataset="low_rank", reading=RATINGS, model="bpr", width=8)


@pytest.fixture(scope="module")
def clicks():
    return problem(dataset="clicks", reading=CLICKS, model="logistic")


def last(points, measure):
    return [point["value"] for point in points if point["measure"] == measure][-1]


def test_a_scorer_is_judged_as_a_training_judges_itself(ratings):
    popular = np.asarray(ratings.x.sum(axis=0)).reshape(-1)[60:]
    ones = implicit_factors.scorer(np.ones((60, 1)), popular[:, None])
    found = trainings.qualities(models.get("bpr"), ratings, ones)
    assert set(found) == {"recall at 20", "NDCG at 20", "precision at 20"}
    assert found["recall at 20"] > 0.5
    with pytest.raises(ValueError, match="no rows held out"):
        trainings.qualities(models.get("bpr"), problem(0, dataset="low_rank", reading=RATINGS, model="bpr"), ones)


def test_every_epoch_is_a_point_of_each_measure(ratings):
    scorers = iter([implicit_factors.scorer(np.ones((60, 1)), np.full((40, 1), value)) for value in (1.0, 2.0)])
    points = trainings.curve("nobody", scorers, models.get("bpr"), ratings, epochs=2, repeat=3)
    points = list(points)
    assert len(points) == 2 * 3
    assert {(point["who"], point["side"], point["repeat"]) for point in points} == {("nobody", "competitor", 3)}


@pytest.mark.parametrize(
    ("who", "setting"),
    [
        ("implicit AlternatingLeastSquares", {"regularization": 0.05, "confidence": 5.0}),
        ("implicit BayesianPersonalizedRanking", {"regularization": 0.05, "rate": 0.05}),
    ],
)
def test_implicit_learns_the_order_of_items(ratings, who, setting):
    pytest.importorskip("implicit")
    trained = trainings.trained(who, ratings, "bpr", setting, width=8, threads=1)
    points = trainings.curve(who, trained, models.get("bpr"), ratings, epochs=30)
    assert last(points, "recall at 20") > 0.6, "half of 40 items would be 0.5"


@pytest.mark.parametrize(
    ("model", "who"),
    [
        ("logistic", "PyTorch EmbeddingBag, sparse gradient"),
        ("embedding_mlp", "PyTorch embedding_mlp, sparse gradient"),
        ("embedding_mlp", "PyTorch embedding_mlp, dense gradient"),
    ],
)
def test_pytorch_learns_what_a_click_depends_on_by_the_rule_of_ours(clicks, model, who):
    pytest.importorskip("torch")
    setting = {"optimizer": "adam", "rate": 0.02, "batch_rows": 128}
    options = "hidden=8" if model == "embedding_mlp" else ""
    trained = trainings.trained(who, clicks, model, setting, options=options, threads=1)
    points = trainings.curve(who, trained, models.get("logistic"), clicks, epochs=5)
    assert last(points, "AUC") > 0.75


def test_an_epoch_is_one_point(clicks):
    pytest.importorskip("torch")
    seen, setting = [], {"optimizer": "sgd", "rate": 0.1, "batch_rows": clicks.x.shape[0]}
    steps = trainings.trained("PyTorch EmbeddingBag, dense gradient", clicks, "logistic", setting)
    for scorer, _ in zip(steps, range(2), strict=False):
        seen.append(scorer(clicks.x)[:5, 0].copy())
    assert np.abs(seen[1]).max() > np.abs(seen[0]).max() > 0, "a second step of the same kind goes further"


def test_who_does_not_train_the_model_step_by_step_is_refused(clicks):
    with pytest.raises(BenchError, match=r"does not train logistic epoch by epoch; there is: .*SGDClassifier"):
        trainings.trained("scikit-learn LogisticRegression lbfgs", clicks, "logistic", {})
