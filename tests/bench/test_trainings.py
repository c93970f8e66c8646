"""Trainings by other libraries: the same rows, the same judge, points that the curves take; what is missing is said."""

import numpy as np
import pytest

from workbench import models
from workbench.analysis import curves
from workbench.bench import trainings
from workbench.bench.trainings import implicit_factors, pytorch_bags
from workbench.sweep.problem import make_problem
from workbench.sweep.spec import Cell

RATINGS = "users=60, items=40, rows=900"
CLICKS = "rows=2000, columns=4, values=40, hashed=32, main=2"


def problem(epochs=1, **settings):
    return make_problem(Cell(epochs=epochs, **settings))


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
    found = curves.frame(points)
    assert len(found) == 2 * 3
    assert set(found["side"]) == {"rival"}
    assert curves.ends(found, "NDCG at 20")["nobody"].keys() == {3}


@pytest.mark.parametrize("way", ["als", "bpr"])
def test_implicit_learns_the_order_of_items(ratings, way):
    pytest.importorskip("implicit")
    settings = {"als": {"alpha": 5.0}, "bpr": {"learning_rate": 0.05}}[way]
    trained = getattr(implicit_factors, way)(ratings, factors=8, regularization=0.05, threads=1, **settings)
    points = trainings.curve(way, trained, models.get("bpr"), ratings, epochs=30)
    assert last(points, "recall at 20") > 0.6, "half of 40 items would be 0.5"


@pytest.mark.parametrize(("model", "sparse"), [("logistic", True), ("embedding_mlp", True), ("embedding_mlp", False)])
def test_pytorch_learns_what_a_click_depends_on(clicks, model, sparse):
    pytest.importorskip("torch")
    options = "hidden=8" if model == "embedding_mlp" else ""
    trained = pytorch_bags.train(clicks, model, sparse, learning_rate=0.02, options=options, batch_rows=128, threads=1)
    points = trainings.curve(model, trained, models.get("logistic"), clicks, epochs=5)
    assert last(points, "AUC") > 0.75
    with pytest.raises(ValueError, match="model is 'softmax'; it is logistic or embedding_mlp"):
        next(pytorch_bags.train(clicks, "softmax"))
