"""A training that ends worse than the mean, or the most frequent class, is never silent."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

import workbench as wb
from tests.support.linear_rows import drawn
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
)
from workbench.training.constant import why_worse

ESTIMATORS = [
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
]
FAR = {"optimizer": "adam", "learning_rate": 1e3, "max_iter": 1, "random_state": 0}
"""Steps that are far too long."""


def noise(classes=2):
    """Return rows that say nothing of their labels, of which two thirds are 0."""
    generator = np.random.default_rng(0)
    return generator.normal(size=(300, 4)), np.minimum(generator.integers(0, classes + 2, 300), classes - 1)


def warned(fit):
    """Return the messages of a call about a training that ended worse."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit()
    assert all(one.filename == __file__ for one in told if issubclass(one.category, ConvergenceWarning))
    return [str(one.message) for one in told if "Training ended worse than" in str(one.message)]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_training_that_ends_worse_says_so_and_what_to_type(estimator, form):
    x, y = noise()
    message, *others = warned(lambda: estimator(**FAR).fit(form(x), y))
    what = "always predicting the most frequent class: accuracy 0." if is_classifier(estimator()) else "the mean: mean"
    assert what in message or "always predicting the shares of the classes: log loss" in message
    assert "\nScale X, as sklearn.preprocessing.MaxAbsScaler does, or set another max_iter or learning_rate." in message
    assert not others


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_training_that_ends_better_says_nothing(estimator):
    x, y = drawn(rows=200)
    assert not warned(lambda: estimator(random_state=0).fit(x, y))


def test_wb_train_warns_too():
    x, y = noise()
    told = "Training ended worse than always predicting the (most|shares)"
    with pytest.warns(ConvergenceWarning, match=told) as warnings_told:
        wb.train(x, np.array(["no", "yes"])[y], **FAR)
    assert warnings_told[0].filename == __file__, "the line of the caller, not one of the package"


def test_calls_of_partial_fit_are_parts_of_a_training_and_say_nothing():
    x, y = noise()
    assert not warned(lambda: SparseClassifier(**FAR).partial_fit(x, y, classes=[0, 1]))


def test_weights_decide_which_class_is_the_most_frequent():
    """Balanced classes: what is right of one in ten rows may be better than always predicting the other one."""
    x, y = np.random.default_rng(0).normal(size=(300, 4)), np.arange(300) % 10 == 0
    ours = SparseClassifier(random_state=0, class_weight="balanced", alpha=0.1)
    assert not warned(lambda: ours.fit(x, y))
    assert ours.score(x, y) < 0.8


@pytest.mark.parametrize("is_weighted", [True, False])
def test_squares_shares_and_losses_are_those_of_repeated_rows(is_weighted):
    generator = np.random.default_rng(0)
    counts = generator.integers(1, 4, 50)
    row = np.repeat(np.arange(50), counts)
    weights = counts if is_weighted else None
    for target, y in (("numbers", generator.normal(size=(50, 1))), ("classes", generator.integers(0, 3, 50))):
        scores = 3 * generator.normal(size=(50, 3 if target == "classes" else 1))
        if is_weighted:
            assert why_worse(target, scores, y, weights) == why_worse(target, scores[row], y[row])
        assert why_worse(target, scores, y, weights)


def test_a_target_that_is_constant_and_scores_that_are_not_finite():
    """Nothing is worse than the mean of a constant by rounding; NaN is worse than anything."""
    y = np.full((9, 1), 0.1, np.float32)
    assert why_worse("numbers", y + np.float32(1e-7), y) == ""
    for target, y in (("numbers", np.arange(9.0)[:, None]), ("binary", np.arange(9)[:, None] % 2)):
        assert why_worse(target, np.full((9, 1), np.nan), y)
    assert why_worse("numbers", np.full((9, 1), np.float32(3e38)), np.arange(9.0)[:, None])


@pytest.mark.parametrize("given", [{}, {"alpha": 1e-3}, {"class_weight": "balanced"}, {"optimizer": "adagrad"}])
def test_where_x_tells_little_the_minimum_of_the_log_loss_is_no_bad_end(given):
    """It is right a little less often than the most frequent class on some of these, and has the lower log loss."""
    for seed in range(12):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(200, 5))
        y = 0.15 * x[:, 0] + generator.normal(size=200) > 0.3
        assert not warned(lambda x=x, y=y: SparseClassifier(random_state=0, **given).fit(x, y))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_model_without_an_intercept_is_compared_with_scores_of_zero(estimator):
    """The mean is none of its predictions: at its minimum it may be worse than that."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(300, 4)), np.arange(300) % 10 == 0
    y = y if is_classifier(estimator()) else 100 + x[:, 0]
    assert not warned(lambda: estimator(fit_intercept=False, random_state=0).fit(x, y))
    (message,) = warned(lambda: estimator(**FAR, fit_intercept=False).fit(x, y))
    assert "worse than always predicting 0: mean squared" in message or "worse than scores of 0: log loss" in message
