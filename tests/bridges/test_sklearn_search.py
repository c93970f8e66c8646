"""Estimators with nothing set choose alpha by a search, the same for a seed; what is set is done as it is set."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.utils import estimator_checks

from tests.support.linear_rows import drawn
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
)

OF_FOLDS = ("classifiers_train", "estimators_pickle", "fit2d_1sample", "parameters_default_constructible")
"""Checks of scikit-learn that may differ for folds; `SparseClassifier` passes all of them."""


@pytest.mark.parametrize("name", OF_FOLDS)
def test_contract_of_scikit_learn(name):
    getattr(estimator_checks, f"check_{name}")("SparseClassifierCV", SparseClassifierCV(random_state=0))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_held_out_loss_is_near_that_of_the_best_logistic_regression(classes):
    x, y = drawn(rows=1200, classes=classes)
    y = np.where(np.random.default_rng(0).random(1200) < 0.2, np.roll(y, 1), y)  # labels that no model can predict
    chosen = SparseClassifier(random_state=0).fit(x[:600], y[:600])
    loss = log_loss(y[600:], chosen.predict_proba(x[600:]))
    best = min(
        log_loss(y[600:], LogisticRegression(C=C, max_iter=500).fit(x[:600], y[:600]).predict_proba(x[600:]))
        for C in np.logspace(-2, 2, 5)
    )
    assert loss < 1.02 * best
    assert chosen.search_.folds == 5
    assert len(chosen.search_.losses) == 8
    assert chosen.alpha_ == chosen.search_.decay
    assert "chosen by dual ascent from 8 settings on 5 folds of all rows" in str(chosen.search_)


def test_weights_come_to_those_of_ridge_with_the_decay_that_is_chosen():
    x, y = drawn(rows=400)
    both = np.column_stack([y, 5 * np.random.default_rng(0).normal(size=400) + y])
    chosen = SparseRegressor(random_state=0, search=5, max_iter=60).fit(x, both)
    competitor = Ridge(alpha=chosen.alpha_ * 400, solver="cholesky").fit(x.toarray(), both)
    np.testing.assert_allclose(chosen.coef_, competitor.coef_, atol=1e-3)
    np.testing.assert_allclose(chosen.intercept_, competitor.intercept_, atol=1e-3)
    assert 90 <= chosen.n_iter_ <= 100  # 60 of the search, half as many after it, and a few that show it is the minimum


def test_a_search_is_the_same_for_a_seed_and_weights_of_rows_count():
    x, y = drawn(rows=300)
    first, second = (SparseClassifier(random_state=3).fit(x, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    weights = np.where(np.arange(300) < 150, 1.0, 0.0)
    half = SparseClassifier(random_state=3, search=8).fit(x, y, sample_weight=weights)
    same = SparseClassifier(random_state=3, search=8).fit(x[:150], y[:150])
    np.testing.assert_allclose(half.coef_, same.coef_, rtol=1e-6)
    heavy = SparseClassifier(random_state=3).fit(x, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    assert heavy.predict_proba(x)[:, 1].mean() > first.predict_proba(x)[:, 1].mean() + 0.05


@pytest.mark.parametrize("name", ["search", "alpha", "optimizer", "max_iter", "learning_rate", "lazy"])
def test_what_is_set_is_done_without_a_search(name):
    values = {"search": 0, "alpha": 1e-3, "optimizer": "adagrad", "max_iter": 20, "learning_rate": 0.1, "lazy": "off"}
    given = {name: values[name]}
    x, y = drawn(rows=300)
    ours = SparseClassifier(random_state=0, **given).fit(x, y)
    assert ours.search_ is None
    is_minimized = name in ("search", "alpha")  # and nothing else, so that no optimizer is needed
    assert (ours.n_iter_ == 20) is not is_minimized
    assert SparseClassifier(random_state=0).fit(x[:100], y[:100]).search_ is None  # few rows
    assert SparseClassifier(random_state=0).fit(x[:101], y[:101]).search_ is not None
    assert FactorizationMachineClassifier(random_state=0).fit(x, y).search_ is None


def test_training_goes_on_after_a_search():
    x, y = drawn(rows=300)
    ours = SparseClassifier(random_state=0).fit(x, y)
    before = ours.coef_.copy()
    ours.partial_fit(x, y)
    assert 0 < np.abs(ours.coef_ - before).max() < 5


@pytest.mark.parametrize(
    ("estimator", "given", "rows", "message"),
    [
        (
            SparseClassifier,
            {"search": 4, "alpha": 0.1},
            80,
            "alpha is set, too; expected one of the two.\nLeave alpha out",
        ),
        (SparseClassifier, {"search": 4}, 12, "A search needs 20 rows or more; there are 12.\nGive search=0"),
        (FactorizationMachineClassifier, {"search": 4}, 80, "A search is for models whose scores are X @ W"),
        (SparseClassifierCV, {"cv": 50}, 40, "There are 50 folds of 40 rows; expected 2 to 40"),
    ],
)
def test_a_search_that_cannot_be_is_refused(estimator, given, rows, message):
    x, y = drawn(rows=rows)
    with pytest.raises(ValueError, match=message):
        estimator(random_state=0, **given).fit(x, y)


def test_rows_without_entries_are_searched_too():
    x = scipy.sparse.csr_array((300, 4), dtype=np.float32)
    ours = SparseClassifier(random_state=0).fit(x, np.arange(300) % 3 == 0)
    assert ours.predict_proba(x)[0, 1] == pytest.approx(1 / 3, abs=0.02)
