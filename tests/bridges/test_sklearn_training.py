"""Estimators train what scikit-learn trains where both are convex; weights, orders and lazy updates do as they say."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import log_loss

from tests.support.linear_rows import FULL, drawn
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseRegressor,
)
from workbench.bridges.sklearn_base import LEAST_STEPS


@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_of_the_logistic_loss_are_those_of_logistic_regression(classes):
    """To 1e-3, of coefficients around 1."""
    x, y = drawn(classes=classes)
    competitor = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(x, y)
    ours = SparseClassifier(**FULL, learning_rate=4.0, alpha=1 / x.shape[0], max_iter=1500).fit(x, y)
    np.testing.assert_allclose(ours.coef_, competitor.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(x), competitor.predict_proba(x), atol=1e-3)
    assert (ours.predict(x) == competitor.predict(x)).all()


def test_coefficients_of_the_squared_loss_are_those_of_ridge():
    """To 1e-4."""
    x, y = drawn()
    competitor = Ridge(alpha=2.0, solver="lsqr", tol=1e-10).fit(x, y)
    ours = SparseRegressor(**FULL, learning_rate=0.5, alpha=2.0 / x.shape[0], max_iter=2000).fit(x, y)
    np.testing.assert_allclose(ours.coef_, competitor.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, competitor.intercept_, atol=1e-4)


def test_the_log_loss_is_that_of_sgd_classifier():
    """To 2 %, both at their optimum but for the noise of steps."""
    x, y = drawn(rows=400)
    alpha = 0.01
    competitor = SGDClassifier(loss="log_loss", alpha=alpha, max_iter=2000, tol=None, average=True, random_state=0)
    competitor.fit(scipy.sparse.csr_matrix(x), y)
    ours = SparseClassifier(**FULL, learning_rate=4.0, alpha=alpha, max_iter=500).fit(x, y)
    assert log_loss(y, ours.predict_proba(x)) == pytest.approx(log_loss(y, competitor.predict_proba(x)), rel=0.02)


def test_weights_that_are_all_the_same_change_nothing():
    x, y = drawn()
    ours = SparseClassifier(**FULL, learning_rate=0.5, max_iter=5).fit(x, y, sample_weight=np.full(len(y), 2.0))
    same = SparseClassifier(**FULL, learning_rate=0.5, max_iter=5).fit(x, y)
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-12)


@pytest.mark.parametrize("estimator", [SparseClassifier, SparseRegressor, FactorizationMachineRegressor])
def test_rows_of_weight_zero_are_as_good_as_gone(estimator):
    x, y = drawn()
    weights = np.repeat([1.0, 0.0], 40)
    ours = estimator(**FULL, learning_rate=0.5, max_iter=5, random_state=0).fit(x, y, sample_weight=weights)
    same = estimator(**FULL, learning_rate=0.5, max_iter=5, random_state=0).fit(x[:40], y[:40])
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-9, atol=1e-15)


def test_weights_of_classes_are_weights_of_their_samples():
    x, y = drawn(classes=3)
    by_class = SparseClassifier(random_state=0, max_iter=3, class_weight={0: 2.0, 2: 0.5}).fit(x, y)
    by_sample = SparseClassifier(random_state=0, max_iter=3).fit(x, y, sample_weight=np.array([2.0, 1.0, 0.5])[y])
    np.testing.assert_array_equal(by_class.coef_, by_sample.coef_)
    balanced = SparseClassifier(random_state=0, max_iter=3, class_weight="balanced").fit(x, y)
    counts = np.bincount(y)
    same = SparseClassifier(random_state=0, max_iter=3).fit(x, y, sample_weight=(len(y) / (3 * counts))[y])
    np.testing.assert_array_equal(balanced.coef_, same.coef_)


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
def test_exact_trains_as_dense_updates_do_and_on_does_not():
    x, y = drawn(rows=60, features=200)
    ways = {"random_state": 0, "max_iter": 3, "batch_rows": 8, "optimizer": "adam"}
    off, exact, on = (SparseClassifier(**ways, lazy=lazy).fit(x, y).coef_ for lazy in ("off", "exact", "on"))
    np.testing.assert_allclose(exact, off, rtol=1e-9)
    assert not np.allclose(on, off, rtol=1e-3)


def test_an_order_drawn_once_is_that_of_rows_in_that_order():
    x, y = drawn()
    asked = {"random_state": 0, "max_iter": 3, "batch_rows": 16}
    once = SparseClassifier(**asked, shuffle="once").fit(x, y)
    order = np.random.default_rng(once._learner.setup.seed).permutation(len(y))
    same = SparseClassifier(**asked, shuffle=False).fit(x[order], y[order])
    np.testing.assert_array_equal(once.coef_, same.coef_)
    assert not np.array_equal(once.coef_, SparseClassifier(**asked, shuffle=False).fit(x, y).coef_)


def test_early_stopping_ends_when_held_out_rows_gain_no_more():
    x, y = drawn(rows=300)
    stopped = SparseClassifier(random_state=0, early_stopping=True, n_iter_no_change=2, max_iter=500).fit(x, y)
    assert 2 < stopped.n_iter_ < 500
    assert SparseClassifier(random_state=0, max_iter=7).fit(x, y).n_iter_ == 7


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("pairs", "linear"),
    [(FactorizationMachineRegressor, SparseRegressor), (FactorizationMachineClassifier, SparseClassifier)],
)
def test_a_factorization_machine_finds_what_pairs_of_features_say(pairs, linear):
    generator = np.random.default_rng(0)
    x = scipy.sparse.csr_array(generator.choice([-1.0, 1.0], (200, 2)).astype(np.float32))
    y = (x.toarray().prod(axis=1) > 0).astype(int)
    asked = {"random_state": 0, "max_iter": 100, "batch_rows": 50}
    assert pairs(**asked, factors=4).fit(x, y).score(x, y) > 0.95
    assert linear(**asked).fit(x, y).score(x, y) < 0.7
    assert pairs(**asked, factors=4).fit(x, y).factors_.shape == (2, 4)


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_epochs_of_one_batch_are_the_same_in_one_call_and_in_several(optimizer):
    x, y = drawn(rows=90)
    targets, trained = np.ascontiguousarray(y, x.dtype)[:, None], []
    for at_once in (1, 2, 5):
        learner = SparseClassifier(random_state=0, optimizer=optimizer, max_iter=1).fit(x, y)._learner
        losses = list(learner.epochs(x, targets, None, 5, at_once, LEAST_STEPS))
        assert learner.epoch == 6
        trained.append((losses, learner.arrays["w"].copy(), learner.run.step))
    step_by_step = SparseClassifier(random_state=0, optimizer=optimizer, max_iter=1).fit(x, y)._learner
    step_by_step.run.take(x, targets)
    means = [[event.loss for _ in range(LEAST_STEPS) for event in step_by_step.run.epoch(1 + n)] for n in range(5)]
    for losses, weights, steps in trained:
        np.testing.assert_array_equal(losses, trained[0][0])
        np.testing.assert_array_equal(weights, trained[0][1])
        np.testing.assert_allclose(losses, np.mean(means, axis=1), rtol=1e-6)
        np.testing.assert_allclose(weights, step_by_step.arrays["w"], rtol=1e-6, atol=1e-9)
        assert steps == 6 * LEAST_STEPS


@pytest.mark.parametrize(
    ("estimator", "scale"),
    [
        (SparseClassifier(), 1e300),
        (SparseRegressor(), 1e300),
        (SparseRegressor(optimizer="sgd", learning_rate=1e6), 1.0),
        (FactorizationMachineRegressor(optimizer="sgd", learning_rate=1e6), 1.0),
    ],
)
def test_a_training_that_ends_in_weights_that_are_not_finite_is_refused(estimator, scale):
    """Such weights predict NaN, of which the largest is the first class."""
    x, y = drawn(rows=400)
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=r"(?s)(Training diverged: |exceed ).*\nScale the values"),
    ):
        estimator.fit(x * scale, y)


def test_a_part_of_a_training_that_diverges_is_refused():
    x, y = drawn()
    estimator = SparseRegressor(optimizer="sgd", learning_rate=1e300)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="Training diverged"):
        estimator.partial_fit(x, y)
