"""Estimators keep scikit-learn's contract, train what it trains where both are convex, and take any sparse input."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.support.malformed import FAULTS, broken, sound
from workbench import models
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseRegressor,
)

ESTIMATORS = (SparseClassifier, SparseRegressor, FactorizationMachineClassifier, FactorizationMachineRegressor)
STEPS = "batches weigh a row of weight 2 once, where the row twice would be in two places of the order"
FAILING = {f"check_sample_weight_equivalence_on_{kind}_data": STEPS for kind in ("dense", "sparse")}
"""Checks that no estimator trained by batches passes, SGDClassifier neither."""

FULL = {"optimizer": "sgd", "batch_rows": 1000, "shuffle": False, "lazy": "exact"}
"""Gradient descent on all rows at once."""


def drawn(rows=80, features=12, classes=2, seed=0, dtype=np.float64):
    """Sparse X and labels that a linear model explains in part."""
    generator = np.random.default_rng(seed)
    x = scipy.sparse.random_array((rows, features), density=0.4, rng=generator, dtype=np.float64)
    scores = x @ generator.normal(size=(features, classes)) + 0.3 * generator.normal(size=(rows, classes))
    return scipy.sparse.csr_array(x.astype(dtype)), scores.argmax(axis=1)


@parametrize_with_checks([made() for made in ESTIMATORS], expected_failed_checks=lambda estimator: FAILING)
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_of_the_logistic_loss_are_those_of_logistic_regression(classes):
    """To 1e-3, of coefficients around 1."""
    x, y = drawn(classes=classes)
    rival = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(x, y)
    ours = SparseClassifier(**FULL, learning_rate=4.0, decay=1 / x.shape[0], epochs=1500).fit(x, y)
    np.testing.assert_allclose(ours.coef_, rival.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(x), rival.predict_proba(x), atol=1e-3)
    assert (ours.predict(x) == rival.predict(x)).all()


def test_coefficients_of_the_squared_loss_are_those_of_ridge():
    """To 1e-4."""
    x, y = drawn()
    rival = Ridge(alpha=2.0, solver="lsqr", tol=1e-10).fit(x, y)
    ours = SparseRegressor(**FULL, learning_rate=0.5, decay=2.0 / x.shape[0], epochs=2000).fit(x, y)
    np.testing.assert_allclose(ours.coef_, rival.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, rival.intercept_, atol=1e-4)


def test_the_log_loss_is_that_of_sgd_classifier():
    """To 2 %, both at their optimum but for the noise of steps."""
    x, y = drawn(rows=400)
    alpha = 0.01
    rival = SGDClassifier(loss="log_loss", alpha=alpha, max_iter=2000, tol=None, average=True, random_state=0)
    rival.fit(scipy.sparse.csr_matrix(x), y)
    ours = SparseClassifier(**FULL, learning_rate=4.0, decay=alpha, epochs=500).fit(x, y)
    assert log_loss(y, ours.predict_proba(x)) == pytest.approx(log_loss(y, rival.predict_proba(x)), rel=0.02)


CONTAINERS = {
    **{f"{format}_{kind}": (format, kind) for format in ("csr", "csc", "coo") for kind in ("array", "matrix")},
}


def with_int64(x):
    """The same with 64-bit indices."""
    if x.format == "coo":
        x.coords = tuple(axis.astype(np.int64) for axis in x.coords)
    else:
        x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return x


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_model(container, wide):
    x, y = drawn()
    format, kind = CONTAINERS[container]
    other = getattr(scipy.sparse, f"{format}_{kind}")(x)
    other = with_int64(other) if wide else other
    first, second = (SparseClassifier(random_state=0, epochs=3).fit(each, y) for each in (x, other))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.decision_function(x), second.decision_function(other))


def test_a_dense_array_gives_the_same_model():
    x, y = drawn()
    first, second = (SparseClassifier(random_state=0, epochs=3).fit(each, y) for each in (x, x.toarray()))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_allclose(first.decision_function(x.toarray()), second.decision_function(x), rtol=1e-12)


def test_mixed_index_widths_are_taken():
    x, y = drawn()
    mixed = x.copy()
    mixed.indptr = mixed.indptr.astype(np.int64)
    first, second = (SparseClassifier(random_state=0, epochs=3).fit(each, y) for each in (x, mixed))
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_have_the_type_of_the_values(dtype):
    x, y = drawn(dtype=dtype)
    assert SparseClassifier(epochs=1).fit(x, y).coef_.dtype == dtype
    assert SparseClassifier(epochs=1).fit(x.astype(np.int64), y).coef_.dtype == np.float32


def test_a_weight_of_two_is_a_gradient_of_twice_the_length():
    x, y = drawn()
    ours = SparseClassifier(**FULL, learning_rate=0.5, epochs=5).fit(x, y, sample_weight=np.full(len(y), 2.0))
    same = SparseClassifier(**FULL, learning_rate=1.0, epochs=5).fit(x, y)
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-12)


@pytest.mark.parametrize("estimator", [SparseClassifier, SparseRegressor, FactorizationMachineRegressor])
def test_rows_of_weight_zero_are_as_good_as_gone(estimator):
    x, y = drawn()
    weights = np.repeat([1.0, 0.0], 40)
    ours = estimator(**FULL, learning_rate=0.5, epochs=5, random_state=0).fit(x, y, sample_weight=weights)
    same = estimator(**FULL, learning_rate=0.25, epochs=5, random_state=0).fit(x[:40], y[:40])
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=1e-9, atol=1e-15)


def test_weights_of_classes_are_weights_of_their_samples():
    x, y = drawn(classes=3)
    by_class = SparseClassifier(random_state=0, epochs=3, class_weight={0: 2.0, 2: 0.5}).fit(x, y)
    by_sample = SparseClassifier(random_state=0, epochs=3).fit(x, y, sample_weight=np.array([2.0, 1.0, 0.5])[y])
    np.testing.assert_array_equal(by_class.coef_, by_sample.coef_)
    balanced = SparseClassifier(random_state=0, epochs=3, class_weight="balanced").fit(x, y)
    counts = np.bincount(y)
    same = SparseClassifier(random_state=0, epochs=3).fit(x, y, sample_weight=(len(y) / (3 * counts))[y])
    np.testing.assert_array_equal(balanced.coef_, same.coef_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_calls_of_partial_fit_are_epochs_of_fit(estimator):
    x, y = drawn()
    whole = estimator(random_state=0, epochs=3, batch_rows=32).fit(x, y)
    parts = estimator(random_state=0, batch_rows=32)
    for _ in range(3):
        parts.partial_fit(x, y, **({"classes": [0, 1]} if hasattr(parts, "predict_proba") else {}))
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    assert parts.n_iter_ == 1


@pytest.mark.parametrize("lazy", ["on", "off", "exact"])
def test_training_goes_on_after_a_pickle(lazy):
    x, y = drawn()
    ours = SparseClassifier(random_state=0, epochs=2, batch_rows=16, optimizer="adam", lazy=lazy).fit(x, y)
    read = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(read.decision_function(x), ours.decision_function(x))
    np.testing.assert_array_equal(read.partial_fit(x, y).coef_, ours.partial_fit(x, y).coef_)


def test_exact_trains_as_dense_updates_do_and_on_does_not():
    x, y = drawn(rows=60, features=200)
    ways = {"random_state": 0, "epochs": 3, "batch_rows": 8, "optimizer": "adam"}
    off, exact, on = (SparseClassifier(**ways, lazy=lazy).fit(x, y).coef_ for lazy in ("off", "exact", "on"))
    np.testing.assert_allclose(exact, off, rtol=1e-9)
    assert not np.allclose(on, off, rtol=1e-3)


def test_a_pipeline_is_searched_over_a_grid():
    words = ["good fine film", "bad poor film", "fine good", "poor bad"] * 6
    labels = ["yes", "no", "yes", "no"] * 6
    pipeline = make_pipeline(CountVectorizer(), SparseClassifier(random_state=0, epochs=5))
    grid = {"sparseclassifier__optimizer": ["sgd", "adagrad"], "sparseclassifier__lazy": ["on", "exact"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(words, labels)
    assert search.best_score_ == 1.0
    assert search.predict(["good", "bad"]).tolist() == ["yes", "no"]


def test_an_order_drawn_once_is_that_of_rows_in_that_order():
    x, y = drawn()
    asked = {"random_state": 0, "epochs": 3, "batch_rows": 16}
    once = SparseClassifier(**asked, shuffle="once").fit(x, y)
    order = np.random.default_rng(once._learner.setup.seed).permutation(len(y))
    same = SparseClassifier(**asked, shuffle=False).fit(x[order], y[order])
    np.testing.assert_array_equal(once.coef_, same.coef_)
    assert not np.array_equal(once.coef_, SparseClassifier(**asked, shuffle=False).fit(x, y).coef_)


def test_early_stopping_ends_when_held_out_rows_gain_no_more():
    x, y = drawn(rows=300)
    stopped = SparseClassifier(random_state=0, early_stopping=True, n_iter_no_change=2, epochs=500).fit(x, y)
    assert 2 < stopped.n_iter_ < 500
    assert SparseClassifier(random_state=0, epochs=7).fit(x, y).n_iter_ == 7


@pytest.mark.parametrize(
    ("pairs", "linear"),
    [(FactorizationMachineRegressor, SparseRegressor), (FactorizationMachineClassifier, SparseClassifier)],
)
def test_a_factorization_machine_finds_what_pairs_of_features_say(pairs, linear):
    generator = np.random.default_rng(0)
    x = scipy.sparse.csr_array(generator.choice([-1.0, 1.0], (200, 2)).astype(np.float32))
    y = (x.toarray().prod(axis=1) > 0).astype(int)
    asked = {"random_state": 0, "epochs": 100, "batch_rows": 50}
    assert pairs(**asked, factors=4).fit(x, y).score(x, y) > 0.95
    assert linear(**asked).fit(x, y).score(x, y) < 0.7
    assert pairs(**asked, factors=4).fit(x, y).factors_.shape == (2, 4)


@pytest.mark.parametrize("name", models.names())
def test_every_model_that_needs_no_more_than_x_is_driven(name):
    model = models.get(name)
    if model.needs or model.target == "multilabel":
        with pytest.raises(ValueError, match=r"needs data|models that would do"):
            SparseRegressor(model=name).fit(*drawn())
        return
    made = SparseRegressor if model.target == "numbers" else SparseClassifier
    ours = made(model=name, random_state=0, epochs=3).fit(*drawn())
    assert np.isfinite(ours.predict(drawn()[0])).all()
    assert clone(ours).get_params()["model"] == name


def test_several_numbers_a_row_are_predicted():
    x, y = drawn()
    both = np.column_stack([y, -y]).astype(np.float64)
    ours = SparseRegressor(random_state=0, epochs=3).fit(x, both)
    assert ours.predict(x).shape == both.shape
    assert ours.coef_.shape == (2, 12)
    np.testing.assert_allclose(ours.predict(x)[:, 0], -ours.predict(x)[:, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"lazy": "sometimes"}, "lazy is 'sometimes'; it is one of on, exact, off|on, off, exact|off, on, exact"),
        ({"model": "linear"}, "answers with numbers; models that would do: .*logistic.*softmax"),
        ({"model": "none"}, "no model 'none'"),
        ({"optimizer": "none"}, "no optimizer 'none'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_rows": 0}, "rows is 0"),
        ({"shuffle": "twice"}, "shuffle is 'twice'; it is one of True, False, 'once'"),
        ({"early_stopping": True, "validation_fraction": 1.5}, "validation_fraction is 1.5"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(asked, told):
    with pytest.raises(ValueError, match=told):
        SparseClassifier(**asked).fit(*drawn())


def test_an_unknown_parameter_lists_the_known_ones():
    with pytest.raises(TypeError, match="no parameter 'rate'; its parameters are model, width"):
        SparseClassifier(rate=1)


def test_partial_fit_refuses_what_it_cannot_train_on():
    x, y = drawn()
    with pytest.raises(ValueError, match="classes must be passed"):
        SparseClassifier().partial_fit(x, y)
    with pytest.raises(ValueError, match="none of the classes"):
        SparseClassifier().partial_fit(x, y + 5, classes=[0, 1])
    with pytest.raises(ValueError, match="'balanced' needs all labels"):
        SparseClassifier(class_weight="balanced").partial_fit(x, y, classes=[0, 1])
    begun = SparseClassifier().partial_fit(x, y, classes=[1, 0])
    assert begun.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="not the same as on the first call"):
        begun.partial_fit(x, y, classes=[0, 2])
    with pytest.raises(ValueError, match="12 features"):
        begun.partial_fit(x[:, :5], y)


def test_rows_are_not_kept_after_training():
    x, y = drawn(rows=1000)
    weak = weakref.ref(x)
    ours = SparseClassifier(random_state=0, epochs=1, shuffle=False).fit(x, y)
    assert not ours._learner.run.kept
    assert ours._learner.run.batches.total == 1
    del x
    gc.collect()
    assert weak() is None


CONTAINED = [(format, fault) for format in ("csr", "csc", "coo") for fault in FAULTS[format]]


@pytest.mark.parametrize(("format", "fault"), CONTAINED)
def test_a_malformed_matrix_is_refused_and_not_followed(format, fault):
    y = [0, 1, 1, 0]
    estimator = SparseClassifier(random_state=0, epochs=1)
    right = estimator.fit(sound(format), y).coef_.copy()
    for call in (lambda x: estimator.fit(x, y), estimator.predict):
        try:
            call(broken(format, fault))
        except ValueError:
            continue
        assert fault.endswith("of another width"), "which leaves the matrix what it is"
        np.testing.assert_array_equal(estimator.coef_, right)
