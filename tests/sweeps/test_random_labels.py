"""Data without labels is timed with random ones, which say so."""

import numpy as np
import pytest

from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration


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
