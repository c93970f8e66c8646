"""Estimators keep scikit-learn's contract, take any sparse input as it is, and go on after a pickle."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.support.invalid_arrays import FAULTS, broken, sound
from tests.support.linear_rows import drawn
from workbench import models
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseRegressor,
)

ESTIMATORS = (SparseClassifier, SparseRegressor, FactorizationMachineClassifier, FactorizationMachineRegressor)


OF_EACH = ("check_estimators_pickle", "check_fit2d_predict1d", "check_sample_weight_equivalence_on_sparse_data")
"""Checks that every estimator passes in the default run; two classifiers, and two regressors, have one base class."""


def targets_of_checks(case):
    """Return the targets of a case: each check by a classifier and by a regressor, some by every estimator."""
    estimator, check = case["estimator"], getattr(case["check"], "func", case["check"]).__name__
    return {(is_classifier(estimator), check), (type(estimator) if check in OF_EACH else None, check)}


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.covering(targets=targets_of_checks)
@parametrize_with_checks([made() for made in ESTIMATORS])
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


DUAL = {"optimizer": "sgd", "lazy": "exact", "execution": "dual", "alpha": 0.1, "max_iter": 200, "random_state": 0}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("estimator", [SparseClassifier, SparseRegressor])
def test_weights_are_exact_for_dual_ascent(estimator, kind):
    check = getattr(estimator_checks, f"check_sample_weight_equivalence_on_{kind}_data")
    check(estimator.__name__, estimator(**DUAL))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("learning_rate", value) for value in (0, -1.0, np.nan, np.inf, "0.1")),
        *(("alpha", value) for value in (-1.0, np.nan, np.inf)),
        *(("max_iter", value) for value in (0, 1.5)),
        *(("search", value) for value in (1, -3, 2.5, "all", None)),
        *(("batch_rows", value) for value in (0, 2.5)),
        *(("tol", value) for value in (np.nan, -1.0)),
        *(("n_iter_no_change", 0), ("fit_intercept", "no"), ("early_stopping", "yes"), ("validation_fraction", 1.0)),
        *(("lazy", "never"), ("execution", "epoch"), ("shuffle", "twice"), ("class_weight", "heavy"), ("width", 0)),
    ],
)
def test_values_are_refused_as_scikit_learn_refuses_them(name, value):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of SparseClassifier must be"):
        SparseClassifier(**{name: value}).fit(*drawn())


def test_weights_below_0_and_all_0_are_refused():
    x, y = drawn()
    for weights, message in (
        (-np.ones(len(y)), "Negative values"),
        (np.zeros(len(y)), "must contain at least one non-zero"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseRegressor().fit(x, y, sample_weight=weights)
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"class_weight of the class 0 is {value}; expected a finite number"):
            SparseClassifier(class_weight={0: value}).fit(x, y)
    with pytest.raises(ValueError, match="All weights of classes and samples are 0"):
        SparseClassifier(class_weight={0: 0.0, 1: 0.0}).fit(x, y)
    with pytest.raises(ValueError, match="sample_weight is nan; expected finite numbers"):
        SparseRegressor().fit(x, y, sample_weight=np.nan)


CONTAINERS = {
    **{f"{format}_{kind}": (format, kind) for format in ("csr", "csc", "coo") for kind in ("array", "matrix")}
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
    first, second = (SparseClassifier(random_state=0, max_iter=3).fit(each, y) for each in (x, other))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.decision_function(x), second.decision_function(other))


def test_a_dense_array_gives_the_same_model():
    x, y = drawn()
    first, second = (SparseClassifier(random_state=0, max_iter=3).fit(each, y) for each in (x, x.toarray()))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_allclose(first.decision_function(x.toarray()), second.decision_function(x), rtol=1e-12)


def test_mixed_index_widths_are_taken():
    x, y = drawn()
    mixed = x.copy()
    mixed.indptr = mixed.indptr.astype(np.int64)
    first, second = (SparseClassifier(random_state=0, max_iter=3).fit(each, y) for each in (x, mixed))
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_have_the_type_of_the_values(dtype):
    x, y = drawn(dtype=dtype)
    assert SparseClassifier(max_iter=1).fit(x, y).coef_.dtype == dtype
    assert SparseClassifier(max_iter=1).fit(x.astype(np.int64), y).coef_.dtype == np.float32


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_calls_of_partial_fit_are_epochs_of_fit(estimator):
    x, y = drawn()
    whole = estimator(random_state=0, max_iter=3, batch_rows=32).fit(x, y)
    parts = estimator(random_state=0, batch_rows=32)
    for _ in range(3):
        parts.partial_fit(x, y, **({"classes": [0, 1]} if hasattr(parts, "predict_proba") else {}))
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    assert parts.n_iter_ == 1


@pytest.mark.parametrize("lazy", ["on", "off", "exact"])
def test_training_goes_on_after_a_pickle(lazy):
    x, y = drawn()
    ours = SparseClassifier(random_state=0, max_iter=2, batch_rows=16, optimizer="adam", lazy=lazy).fit(x, y)
    read = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(read.decision_function(x), ours.decision_function(x))
    np.testing.assert_array_equal(read.partial_fit(x, y).coef_, ours.partial_fit(x, y).coef_)


@pytest.mark.parametrize("estimator", [SparseClassifier, SparseRegressor, FactorizationMachineRegressor])
def test_an_estimator_that_was_stored_before_a_parameter_existed_has_its_default(estimator):
    x, y = drawn()
    ours = estimator(random_state=0, max_iter=2).fit(x, y)
    stored = pickle.loads(pickle.dumps(ours.__getstate__()))
    read = estimator.__new__(estimator)
    read.__setstate__({name: value for name, value in stored.items() if name not in ("format", "storage", "search")})
    assert read.get_params() == ours.get_params()
    assert repr(clone(read)) == repr(ours)
    np.testing.assert_array_equal(read.partial_fit(x, y).predict(x), ours.partial_fit(x, y).predict(x))


def test_a_pipeline_is_searched_over_a_grid():
    words = ["good fine film", "bad poor film", "fine good", "poor bad"] * 6
    labels = ["yes", "no", "yes", "no"] * 6
    pipeline = make_pipeline(CountVectorizer(), SparseClassifier(random_state=0, max_iter=5))
    grid = {"sparseclassifier__optimizer": ["sgd", "adagrad"], "sparseclassifier__lazy": ["on", "exact"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(words, labels)
    assert search.best_score_ == 1.0
    assert search.predict(["good", "bad"]).tolist() == ["yes", "no"]


@pytest.mark.parametrize("name", models.names())
def test_every_model_that_needs_no_more_than_x_is_driven(name):
    model = models.get(name)
    if model.needs or model.target == "multilabel":
        with pytest.raises(ValueError, match=r"needs data|models that would do"):
            SparseRegressor(model=name).fit(*drawn())
        return
    made = SparseRegressor if model.target == "numbers" else SparseClassifier
    ours = made(model=name, random_state=0, max_iter=3).fit(*drawn())
    assert np.isfinite(ours.predict(drawn()[0])).all()
    assert clone(ours).get_params()["model"] == name


def test_several_numbers_a_row_are_predicted():
    x, y = drawn()
    both = np.column_stack([y, -y]).astype(np.float64)
    ours = SparseRegressor(random_state=0, max_iter=3).fit(x, both)
    assert ours.predict(x).shape == both.shape
    assert ours.coef_.shape == (2, 12)
    np.testing.assert_allclose(ours.predict(x)[:, 0], -ours.predict(x)[:, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"model": "linear"}, "answers with numbers; models that would do: .*logistic.*softmax"),
        ({"model": "none"}, "Unknown model 'none'"),
        ({"optimizer": "none"}, "Unknown optimizer 'none'"),
        ({"learning_rate": 0.1, "options": {"learning_rate": 0.2}}, "learning_rate is a parameter and in options, too"),
        ({"alpha": 0.1, "options": {"decay": 0.2}}, "decay is a parameter and in options, too"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(asked, message):
    with pytest.raises(ValueError, match=message):
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
    ours = SparseClassifier(random_state=0, max_iter=1, shuffle=False).fit(x, y)
    assert not ours._learner.run.kept
    assert ours._learner.run.batches.total == 1
    del x
    gc.collect()
    assert weak() is None


CONTAINED = [(format, fault) for format in ("csr", "csc", "coo") for fault in FAULTS[format]]


@pytest.mark.parametrize(("format", "fault"), CONTAINED)
def test_an_invalid_matrix_is_refused_and_not_followed(format, fault):
    y = [0, 1, 1, 0]
    estimator = SparseClassifier(random_state=0, max_iter=1)
    right = estimator.fit(sound(format), y).coef_.copy()
    for call in (lambda x: estimator.fit(x, y), estimator.predict):
        try:
            call(broken(format, fault))
        except ValueError:
            continue
        assert fault.endswith(("of another width", "byte-swapped")), "which leaves the matrix what it is"
        np.testing.assert_array_equal(estimator.coef_, right)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_with_a_value_that_is_not_finite_are_not_predicted(value):
    x = scipy.sparse.random_array((40, 9), density=0.5, rng=np.random.default_rng(0), dtype=np.float32, format="csr")
    model = SparseClassifier(max_iter=2, random_state=0).fit(x, np.arange(40) % 2)
    expected = model.decision_function(x)
    np.testing.assert_allclose(expected, x @ model.coef_[0] + model.intercept_[0], rtol=1e-5, atol=1e-6)
    x.data[7] = value
    for predict in (model.decision_function, model.predict_proba, model.predict):
        with pytest.raises(ValueError, match="Input X contains"):
            predict(x)
