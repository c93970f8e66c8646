"""The problem of a configuration: what its data cannot give its model, random labels; the curve that a row keeps."""

import numpy as np
import pytest

from workbench.data import DataError
from workbench.sweeps import trial
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration


def test_what_users_took_without_ratings_is_for_models_of_order(tmp_path):
    (tmp_path / "lists.txt").write_text(
        "".join(f"{user} {user % 7 + 10} {user % 5 + 20}\n" for user in range(40)) + "40 30\n"
    )
    configuration = {"dataset": "ratings", "path": str(tmp_path / "lists.txt"), "optimizer": "sgd"}
    for model in ("linear", "matrix_factorization"):
        message = rf"lists.txt says what users took and rates nothing, so each label is 1: {model} has nothing .* bpr"
        with pytest.raises(DataError, match=message):
            make_problem(Configuration(**configuration, model=model))
    assert make_problem(Configuration(**configuration, model="bpr")).y.shape == (81, 1)


def test_data_without_an_entry_is_refused_with_the_density_that_has_one():
    sizes = {"dataset": "uniform", "rows": 300, "features": 40, "model": "logistic"}
    with pytest.raises(DataError, match=r"300 rows x 40 features .* no entry to learn from at density 1e-05. Ask"):
        make_problem(Configuration(**sizes, density=1e-5))
    assert make_problem(Configuration(**sizes, density=1e-3)).x.nnz


@pytest.mark.parametrize(("model", "width"), [("logistic", None), ("softmax", 3), ("linear", None), ("multilabel", 4)])
def test_data_without_labels_is_timed_with_random_ones(tmp_path, model, width):
    (tmp_path / "x.svm").write_text("".join(f"{1 + row % 7}:1 {9 + row % 5}:2\n" for row in range(60)))
    configuration = Configuration(
        dataset="svmlight", path=str(tmp_path / "x.svm"), kind="none", model=model, width=width
    )
    problem = make_problem(configuration)
    assert "random, for timing alone: the data has no labels" in str(problem.dataset.labels)
    assert len(np.unique(problem.y)) > 1
    np.testing.assert_array_equal(problem.y, make_problem(configuration).y)


def test_a_long_training_leaves_a_short_curve_with_both_of_its_ends():
    steps = 12_345
    columns = trial.curve_columns(np.full(steps, 1 / 3), np.linspace(2.0, 1 / 7, steps), first=6)
    points = columns["curve"]
    assert len(points) == trial.CURVE_POINTS
    assert points[0] == [0.33333, 2.0, 6]
    assert points[-1] == [4115.0, 0.14286, steps + 5]
    assert (columns["loss_first"], columns["loss_last"]) == (2.0, 1 / 7)


def test_a_short_training_keeps_every_step():
    points = trial.curve_columns(np.ones(3), np.array([3.0, np.nan, 1.0]), first=1)["curve"]
    assert [point[2] for point in points] == [1, 2, 3]
    assert np.isnan(points[1][1])
