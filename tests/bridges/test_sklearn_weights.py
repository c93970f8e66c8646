"""A weight of a row is its repetition, 0 its absence, also where weights of classes are made from it."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression, SGDClassifier

from tests.support.linear_rows import drawn
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
)

EXACT = {"optimizer": "sgd", "lazy": "exact", "execution": "dual", "alpha": 0.01, "max_iter": 600, "random_state": 0}
ALL = [
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
]


def unequal(classes, rows=90):
    """Return x, y of `classes` classes and whole weights, 0 and larger ones of class 0 among them."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, 6)) * (generator.random((rows, 6)) < 0.5)
    y = generator.integers(0, classes, rows)
    x[np.arange(rows), y] += 1
    weights = generator.integers(0, 10, rows) * np.where(y == 0, 3, 1)
    return x, y, weights


def values_of(estimator):
    """Return all trained values of an estimator as one vector."""
    return np.concatenate([array.ravel() for array in estimator._learner.arrays.values()])


@pytest.mark.parametrize("names", [np.array([0, 1, 2, 3]), np.array(["no", "yes", "other", "rare"])])
@pytest.mark.parametrize("classes", [2, 4])
def test_balanced_classes_count_rows_by_their_weights(classes, names):
    """As repeated rows do, and as scikit-learn does of these."""
    x, y, weights = unequal(classes)
    repeated = np.repeat(np.arange(len(y)), weights)
    ours = SparseClassifier(**EXACT, class_weight="balanced").fit(x, names[y], sample_weight=weights)
    again = SparseClassifier(**EXACT, class_weight="balanced").fit(x[repeated], names[y[repeated]])
    np.testing.assert_allclose(ours.predict_proba(x), again.predict_proba(x), atol=1e-10)
    competitor = LogisticRegression(C=1 / (0.01 * len(repeated)), class_weight="balanced", tol=1e-10, max_iter=5000)
    competitor.fit(x[repeated], names[y[repeated]])
    assert (ours.classes_ == competitor.classes_).all()
    np.testing.assert_allclose(ours.predict_proba(x), competitor.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("estimator", ALL)
def test_rows_of_weight_zero_are_absent(estimator, kind):
    """To the bit: neither the size of a batch, nor folds, nor classes nor their counts come from them."""
    x, y = drawn(rows=300, classes=2)
    x = x.toarray()
    weights = np.where(np.arange(300) % 2, 0.0, 1.0 + np.arange(300) % 3)
    kept = weights > 0
    other = np.where(kept, y, 7 if is_classifier(estimator()) else 1e6)  # a class, or numbers, that do not occur
    given = {"class_weight": "balanced"} if is_classifier(estimator()) else {}
    ours = estimator(random_state=0, **given).fit(kind(x), other, sample_weight=weights)
    same = estimator(random_state=0, **given).fit(kind(x[kept]), y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(values_of(ours), values_of(same))
    np.testing.assert_array_equal(getattr(ours, "classes_", 0), getattr(same, "classes_", 0))


@pytest.mark.parametrize("estimator", ALL)
def test_weights_of_a_fit_are_relative(estimator):
    """A common factor changes nothing, not even one whose sum no float can hold."""
    x, y, weights = unequal(2)
    weights = weights + 1.0
    ours = estimator(random_state=0, max_iter=3).fit(x, y, sample_weight=weights)
    for factor in (2.0**-1000, 2.0**1010):
        other = estimator(random_state=0, max_iter=3).fit(x, y, sample_weight=weights * factor)
        np.testing.assert_allclose(values_of(other), values_of(ours), rtol=1e-12, atol=1e-15)
    same = estimator(random_state=0, max_iter=3).fit(x, y, sample_weight=0.3)
    np.testing.assert_array_equal(values_of(same), values_of(estimator(random_state=0, max_iter=3).fit(x, y)))


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(90, -1.0), "Negative values"),
        (np.r_[np.nan, np.ones(89)], "NaN"),
        (np.r_[np.inf, np.ones(89)], "infinity"),
        (np.zeros(90), "weights"),
        (np.ones(89), "sample_weight.shape == "),
        (np.ones((90, 2)), "1D"),
    ],
)
def test_weights_that_are_none_are_refused(estimator, weights, message):
    x, y, _ = unequal(2)
    with pytest.raises(ValueError, match=message):
        estimator().fit(x, y, sample_weight=weights)
    first = {"classes": [0, 1]} if is_classifier(estimator()) else {}
    with pytest.raises(ValueError, match=message):
        estimator().partial_fit(x, y, sample_weight=weights, **first)


def test_one_class_that_has_weight_is_refused():
    x, y, _ = unequal(2)
    with pytest.raises(ValueError, match="y has one class among the rows whose weight is above 0, 1"):
        SparseClassifier().fit(x, y, sample_weight=(y == 1) * 1.0)


def test_a_class_that_class_weight_leaves_out_weighs_1_and_unknown_ones_are_refused():
    x, y, _ = unequal(4)
    names = np.array(["a", "b", "c", "d"])[y]
    ours = SparseClassifier(**EXACT, class_weight={"b": 5}).fit(x, names)
    same = SparseClassifier(**EXACT).fit(x, names, sample_weight=np.where(names == "b", 5.0, 1.0))
    np.testing.assert_array_equal(ours.coef_, same.coef_)
    with pytest.raises(ValueError, match="not in class_weight"):
        SparseClassifier(class_weight={"b": 5, "z": 2}).fit(x, names)


def loops(x, y, classes, factor):
    """Return weights and intercept after a call of one class each: 8 steps of all rows, losses times weights."""
    w, b = np.zeros(x.shape[1]), 0.0
    for one in classes:
        rows, of_row = x[y == one], factor[y == one]
        for _ in range(8):
            slope = (1 / (1 + np.exp(-(rows @ w + b))) - one) * of_row
            w, b = w - 0.05 * rows.T @ slope / len(rows), b - 0.05 * slope.mean()
    return np.r_[w, b]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_weights_that_are_constant_within_a_call_of_partial_fit_count(form):
    """A stream whose calls have one class each: weights of samples, of classes and both, against loops in float64."""
    x, y, _ = unequal(2)
    cases = ({}, 10.0), ({"class_weight": {0: 1.0, 1: 10.0}}, 1.0), ({"class_weight": {1: 2.0}}, 5.0)
    for given, weight in cases:
        ours = SparseClassifier(optimizer="sgd", lazy="off", learning_rate=0.05, random_state=0, **given)
        for one in (0, 1):
            weights = np.full((y == one).sum(), weight if one else 1.0)
            ours.partial_fit(form(x[y == one]), y[y == one], classes=[0, 1], sample_weight=weights)
        expected = loops(x, y, (0, 1), np.where(y == 1, 10.0, 1.0))
        np.testing.assert_allclose(np.r_[ours.coef_.ravel(), ours.intercept_], expected, rtol=1e-9)


@pytest.mark.parametrize("estimator", [SparseRegressor, FactorizationMachineRegressor])
def test_a_row_of_weight_2_moves_a_regressor_twice_as_far(estimator):
    x, y, _ = unequal(2)
    how = {"optimizer": "sgd", "learning_rate": 1e-8, "random_state": 0}
    single, double = (
        estimator(**how).partial_fit(x, y, sample_weight=None if factor == 1 else factor) for factor in (1, 2.0)
    )
    np.testing.assert_allclose(double.coef_, 2 * single.coef_, rtol=1e-4, atol=1e-13)


def test_the_weights_of_partial_fit_are_those_of_sgd_classifier():
    """One row a step: a step of weight 10 is ten times as long."""
    x, y, weights = unequal(2)
    weights = weights + 0.5
    given = {"loss": "log_loss", "learning_rate": "constant", "eta0": 0.01, "penalty": None, "shuffle": False}
    competitor = SGDClassifier(**given, class_weight={1: 3.0})
    ours = SparseClassifier(optimizer="sgd", learning_rate=0.01, batch_rows=1, shuffle=False, class_weight={1: 3.0})
    for one in (competitor, ours):
        one.partial_fit(x, y, classes=[0, 1], sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, competitor.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
def test_early_stopping_scores_held_out_rows_by_their_weights():
    """Rows with wrong labels and hardly any weight change nothing about the epoch at which it ends."""
    x, y = drawn(rows=400)
    wrong = np.arange(400) % 2 == 1
    how = {"optimizer": "sgd", "learning_rate": 0.02, "early_stopping": True, "validation_fraction": 0.5}
    how |= {"max_iter": 60, "random_state": 0, "tol": 1e-4, "n_iter_no_change": 3, "shuffle": False, "batch_rows": 400}
    weights = np.where(wrong, 1e-9, 1.0)
    ended = {SparseClassifier(**how).fit(x, of, sample_weight=weights).n_iter_ for of in (y, np.where(wrong, 1 - y, y))}
    assert len(ended) == 1
