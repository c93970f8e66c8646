"""The list of linear competitors: each comes to about the same minimum, and pages say what of it was measured."""

import sys

import numpy as np
import pytest
import scipy.sparse

from benchmarks import linear

L1 = ("skglm", "celer")


def problem(seed: int) -> linear.Problem:
    """Rows of a logistic model with an intercept."""
    random = np.random.default_rng(seed)
    x = scipy.sparse.random_array((800, 12), density=0.4, rng=random, dtype=np.float32, format="csr")
    scores = x @ random.normal(size=12) * 3 - 0.5
    y = (random.random(800) < 1 / (1 + np.exp(-scores))).astype(np.float32)
    return linear.Problem(x, y)


@pytest.mark.parametrize("name", [one.name for one in linear.COMPETITORS if one.solve])
def test_each_that_is_installed_comes_near_the_minimum(name: str) -> None:
    pytest.importorskip(linear.get(name).module)
    for seed in range(2):
        given = problem(seed)
        values = []
        for each in ("scikit-learn newton-cholesky", name):
            scores = linear.solve(each, given, 1.0, 200).scores(given.x)
            values.append(float(np.mean(np.logaddexp(0, scores) - given.y * scores)))
        assert values[1] == pytest.approx(values[0], rel=0.05 if name in L1 else 5e-3)


def test_the_page_says_who_was_measured_and_why_others_were_not() -> None:
    own = {"status": "ok", "reason": "", "versions": {"scikit-learn": "1.8.0", "celer": "0.7"}, "list": 1}
    records = [
        own | {"candidate": "scikit-learn SGDClassifier constant, dense rows"},
        own | {"candidate": "celer"},
        own | {"candidate": "ours, sparse"},
        own
        | {"candidate": "snapml", "status": "unsupported", "reason": "snapml is not installed: pip install snapml."},
    ]
    text = linear.describe("fit", records)
    assert text.startswith("List 1 of linear competitors. Measured: scikit-learn SGD 1.8.0, celer 0.7. Not measured: ")
    assert "snapml (snapml is not installed: pip install snapml)" in text
    assert "liblinear primal, liblinear dual, scikit-learn lbfgs" in text
    assert "skglm, glum (not in the records)" in text
    assert "lasso_path" not in text
    older = [record | {"list": None} for record in records]
    assert linear.describe("fit", older).startswith("These records are of before list 1")
    assert "List 1 of linear competitors, and records of before it." in linear.describe("fit", records + older)


def test_names_are_unique_and_versions_are_those_of_the_environment() -> None:
    names = [name for one in linear.COMPETITORS for name in (one.name, *one.aliases)]
    assert len(set(names)) == len(names)
    assert all(linear.name_of(one.name) == one.name for one in linear.COMPETITORS)
    assert linear.versions() == linear.versions(sys.executable)
    assert "scikit-learn" in linear.versions()
    assert linear.get("glum").why_not(1000, 100) == ""
    assert "1,000 rows and 101 weights" in linear.get("glum").why_not(1000, 101)
