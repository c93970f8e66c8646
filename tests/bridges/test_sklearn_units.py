"""Factorization machines train in units of their own: of any values, with parameters for values as they are."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from workbench.bridges.sklearn import FactorizationMachineClassifier, FactorizationMachineRegressor
from workbench.models.scaling import Scaling, pair_scaling
from workbench.training.trained import load_model

ESTIMATORS = [FactorizationMachineRegressor, FactorizationMachineClassifier]


def tables():
    """Return {name: x [rows, D]} of unlike sizes."""
    generator = np.random.default_rng(0)
    rows, few = 400, generator.random((400, 12)) < 0.5
    house = [generator.lognormal(0, 2, rows), generator.integers(0, 100, rows), generator.random(rows)]
    house += [generator.integers(187, 711, rows), generator.normal(18, 2, rows), generator.normal(356, 90, rows)]
    years = [generator.integers(1990, 2026, rows), generator.normal(47, 0.5, rows), generator.normal(-122, 0.5, rows)]
    counts = {f"counts of {mean}": generator.poisson(mean, (rows, 12)) * few for mean in (5, 50, 1000)}
    full = {f"full counts of {mean}": generator.poisson(mean, (rows, 12)) for mean in (5, 50, 1000)}
    sizes = {"1e6": generator.normal(size=(rows, 10)) * 1e6, "1e-6": generator.normal(size=(rows, 10)) * 1e-6}
    return {"house": np.column_stack(house), "years": np.column_stack(years), **counts, **full, **sizes}


@pytest.mark.covering(targets=lambda case: {(case["name"], case["form"]), (case["form"], case["dtype"])})
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("name", tables())
def test_raw_values_are_learned_with_defaults(name, form, dtype):
    """To 0.11 of the R squared of least squares, of 0.9 and more, whatever the sizes of the targets are."""
    x = tables()[name]
    generator = np.random.default_rng(1)
    z = (x - x.mean(axis=0)) / x.std(axis=0) @ generator.normal(size=x.shape[1])
    y = z + 0.1 * generator.normal(size=len(x))
    x = x.astype(dtype)
    for size, offset in ((1, 0), (1e-6, 1), (1e6, 1e7)):
        ours = FactorizationMachineRegressor(random_state=0).fit(form(x), y * size + offset)
        assert ours.score(form(x), y * size + offset) > LinearRegression().fit(x, y).score(x, y) - 0.11
    ours = FactorizationMachineClassifier(random_state=0).fit(form(x), z > np.median(z))
    assert ours.score(form(x), z > np.median(z)) > 0.88


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6])
def test_a_table_is_learned_in_any_unit(size, offset):
    """A real one, as its columns are, times a factor and beside an offset."""
    x, y = load_diabetes(return_X_y=True, scaled=False)
    x = x * size + (offset if offset / size < 1e7 else 0)
    assert FactorizationMachineRegressor(random_state=0).fit(x, y).score(x, y) > 0.5


def scores_by_hand(x, estimator):
    """Return the scores of x by the formula, from the attributes for X as it is, in float64."""
    v = np.float64(estimator.factors_)
    pairs = ((x @ v) ** 2 - x**2 @ v**2).sum(axis=1) / 2
    return x @ np.float64(estimator.coef_).reshape(-1) + pairs + np.float64(estimator.intercept_)


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_attributes_are_for_values_as_they_are_also_saved_and_loaded(estimator, has_intercept, tmp_path):
    x = tables()["house"]
    y = x[:, 1] * x[:, 3] - x[:, 4]
    y = y > np.median(y) if estimator is FactorizationMachineClassifier else y - y.mean()
    ours = estimator(random_state=0, fit_intercept=has_intercept, max_iter=60).fit(x, y)
    scores = ours.decision_function(x) if hasattr(ours, "decision_function") else ours.predict(x)
    np.testing.assert_allclose(scores, scores_by_hand(x, ours), rtol=1e-6, atol=1e-6 * abs(scores).max())
    ours.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(x), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).predict(x), ours.predict(x))


def test_values_around_1_are_trained_as_they_are():
    """Rows of ones, as of users and items: nothing is scaled, and the weights are those without units."""
    generator = np.random.default_rng(0)
    x = np.zeros((300, 40), np.float32)
    x[np.arange(300), generator.integers(0, 20, 300)] = 1
    x[np.arange(300), 20 + generator.integers(0, 20, 300)] = 1
    units = pair_scaling(scipy.sparse.csr_array(x), None, has_intercept=True)
    assert units.rows(x) is x
    y = generator.integers(0, 2, 300)
    ours = FactorizationMachineClassifier(random_state=0, max_iter=3).fit(x, y)
    other = FactorizationMachineClassifier(random_state=0, max_iter=3)
    other._start, start = (lambda *given: [start(*given), setattr(other._learner, "scaling", Scaling())]), other._start
    np.testing.assert_array_equal(other.fit(x, y).factors_, ours.factors_)


@pytest.mark.parametrize("optimizer", ["adagrad", "adam", "sgd"])
@pytest.mark.parametrize("lazy", ["on", "off", "exact"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parts_of_a_training_are_the_whole(estimator, lazy, optimizer):
    """Calls of `partial_fit` are epochs of `fit`, to the bit, and so after a pickle: no rounding is in between."""
    x = tables()["house"]
    y = x[:, 3] + x[:, 4]
    y = y > np.median(y) if estimator is FactorizationMachineClassifier else y
    how = {"optimizer": optimizer, "lazy": lazy, "random_state": 0, "batch_rows": 50}
    whole = estimator(**how, max_iter=3).fit(x, y)
    parts = estimator(**how)
    for _ in range(3):
        classes = {"classes": [False, True]} if estimator is FactorizationMachineClassifier else {}
        parts = pickle.loads(pickle.dumps(parts)).partial_fit(x, y, **classes)
    for name, array in whole._learner.arrays.items():
        np.testing.assert_array_equal(parts._learner.arrays[name], array)


def test_a_column_that_comes_later_is_scaled_when_it_comes():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(200, 2)) * [1, 1e6], generator.normal(size=200)
    y = x[:, 0] + x[:, 1] / 1e6 + 0.1 * y
    ours = FactorizationMachineRegressor(random_state=0)
    ours.partial_fit(x * [1, 0], y)
    for _ in range(30):
        ours.partial_fit(x, y)
    assert ours.score(x, y) > 0.9


def test_units_count_rows_by_their_weights():
    x = tables()["house"]
    weights = np.random.default_rng(0).integers(0, 4, len(x))
    repeated = np.repeat(np.arange(len(x)), weights)
    for form in (np.asarray, scipy.sparse.csr_array):
        ours = pair_scaling(form(x), weights, has_intercept=True)
        same = pair_scaling(form(x[repeated]), None, has_intercept=True)
        np.testing.assert_allclose(ours.center, same.center, rtol=1e-12)
        np.testing.assert_array_equal(ours.scale, same.scale)
        rows = ours.rows(form(x))
        expected = (x - ours.center) / ours.scales
        np.testing.assert_allclose(rows if isinstance(rows, np.ndarray) else rows.toarray(), expected, atol=1e-12)
        ours.take_targets_of_pairs(x[:, :1], weights, True)
        same.take_targets_of_pairs(x[repeated, :1], None, True)
        assert ours.target_scale == same.target_scale
        assert ours.target_center == pytest.approx(same.target_center)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_float32_that_cannot_hold_the_parameters_is_widened(size):
    x = np.random.default_rng(0).normal(size=(100, 2))
    y, x = x @ [1, 2], np.float32(x * [1, size])
    ours = FactorizationMachineRegressor(random_state=0).fit(x, y)
    assert ours.score(x, y) > 0.95
    assert ours.predict(x).dtype == np.float64


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_sizes_at_the_ends_of_floats_are_scaled(size):
    x = np.random.default_rng(0).normal(size=(50, 2)) * [1, size]
    units = pair_scaling(x, None, has_intercept=True)
    assert np.isfinite(units.rows(x)).all()
    assert (units.scale > 0).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_column_too_far_from_zero_for_products_is_said_and_what_is_proposed_works(estimator):
    """Seconds of a quarter of an hour since 1970, as float64: a constant one is no column to tell of."""
    generator = np.random.default_rng(0)
    seconds = generator.integers(0, 1000, 400)
    y = seconds > 500 if estimator is FactorizationMachineClassifier else seconds / 100
    x = np.column_stack([generator.normal(size=400), 1.6e9 + seconds, np.full(400, 1.6e9)])
    expected = "mean of the column 1 is more than 2,000,000 times the deviation.*\nSubtract the mean, as sklearn"
    with pytest.warns(ConvergenceWarning, match=expected):
        estimator(random_state=0).fit(x, y)
    scaled = StandardScaler().fit_transform(x)
    assert estimator(random_state=0).fit(scaled, y).score(scaled, y) > 0.93
