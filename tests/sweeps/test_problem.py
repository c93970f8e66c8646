"""The problem of a configuration: what its data cannot give its model is said, with the models that it fits."""

import pytest

from workbench.data import DataError
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
