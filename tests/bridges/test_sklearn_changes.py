"""What `set_params` changes between calls of `partial_fit` is taken by the next call, or refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.linear_model import SGDClassifier

from tests.support.linear_rows import drawn
from workbench import optimizers
from workbench.bridges.sklearn import (
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseRegressor,
)

ALL = [SparseClassifier, SparseRegressor, FactorizationMachineClassifier, FactorizationMachineRegressor]

FEW = ("sgd", "adam")
"""One whose rows catch up in closed form, and one step by step."""

EVERY = [pytest.param(name, marks=() if name in FEW else pytest.mark.exhaustive) for name in optimizers.names()]
"""Each other optimizer compiles loops of its own for the same lines of the estimators."""


def begun(estimator, classes=2, dtype=np.float64, **given):
    """Return an estimator after a call of `partial_fit`, and the rows of the next one."""
    x, y = drawn(rows=80, classes=classes, dtype=dtype)
    ours = estimator(random_state=0, **given)
    ours.partial_fit(x[:40], y[:40], **({"classes": range(classes)} if is_classifier(ours) else {}))
    return ours, (x[40:], y[40:])


@pytest.mark.covering(targets=lambda case: set(case.values()))
@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
def test_a_learning_rate_is_taken_by_the_next_call(optimizer, estimator):
    ours, more = begun(estimator, optimizer=optimizer)
    before = ours.coef_.copy()
    ours.set_params(learning_rate=1e-12).partial_fit(*more)
    assert 0 < abs(ours.coef_ - before).max() < 1e-6


@pytest.mark.parametrize("lazy", ["on", "off", "exact"])
@pytest.mark.parametrize("optimizer", EVERY)
def test_every_optimizer_steps_as_one_whose_options_are_changed(optimizer, lazy):
    """Steps of an `Updater` by the same gradients: its options may change between steps."""
    shared = {"classes": 3, "dtype": np.float32}  # whose loops tests of kernels compile
    ours, more = begun(SparseClassifier, **shared, optimizer=optimizer, lazy=lazy)
    other = pickle.loads(pickle.dumps(ours))
    ours.set_params(learning_rate=0.003, alpha=0.25).partial_fit(*more)
    other._learner.run.updater.options |= {"learning_rate": 0.003, "decay": 0.25}
    np.testing.assert_allclose(ours.coef_, other.partial_fit(*more).coef_, rtol=1e-12)


def test_a_rate_that_is_lowered_gives_the_weights_of_sgd_classifier():
    given = {"loss": "log_loss", "learning_rate": "constant", "penalty": "l2", "shuffle": False}
    x, y = drawn(rows=80)
    x = x.toarray()
    competitor = SGDClassifier(**given, eta0=0.1, alpha=1e-3)
    ours = SparseClassifier(optimizer="sgd", lazy="off", learning_rate=0.1, alpha=1e-3, batch_rows=1, shuffle=False)
    for rate, alpha in ((0.1, 1e-3), (0.02, 0.5), (0.004, 1e-4)):
        competitor.set_params(eta0=rate, alpha=alpha).partial_fit(x, y, classes=[0, 1])
        ours.set_params(learning_rate=rate, alpha=alpha).partial_fit(x, y, classes=[0, 1])
    np.testing.assert_allclose(ours.coef_, competitor.coef_, rtol=0.05, atol=1e-3)


@pytest.mark.parametrize(
    ("optimizer", "change"),
    [
        ("sgd", {"alpha": 5.0}),
        ("sgd", {"class_weight": {0: 1.0, 1: 5.0}}),
        ("momentum", {"options": {"beta": 0.1}}),
        ("adam", {"options": {"beta1": 0.1}}),
        ("adagrad", {"batch_rows": 8}),
        ("sgd", {"batch_rows": 8, "random_state": 5}),
        ("sgd", {"batch_rows": 8, "shuffle": False}),
        ("adam", {"alpha": 0.1, "learning_rate": 0.5}),
    ],
)
@pytest.mark.parametrize("lazy", ["on", "exact"])
def test_what_is_set_between_calls_is_taken(optimizer, change, lazy):
    """Stored and loaded, too; nothing changes for an estimator that was not told to."""
    same, more = begun(SparseClassifier, optimizer=optimizer, lazy=lazy)
    ours = pickle.loads(pickle.dumps(same))
    other = pickle.loads(pickle.dumps(same)).set_params(**change)
    for one in (same.partial_fit(*more), ours.set_params(**change).partial_fit(*more), other.partial_fit(*more)):
        assert one.coef_.shape == (1, more[0].shape[1])
    assert abs(ours.coef_ - same.coef_).max() > 1e-9
    np.testing.assert_array_equal(ours.coef_, other.coef_)


@pytest.mark.parametrize("optimizer", EVERY)
def test_a_change_and_its_withdrawal_change_nothing(optimizer):
    same, more = begun(SparseClassifier, optimizer=optimizer, lazy="exact")
    ours = pickle.loads(pickle.dumps(same)).set_params(learning_rate=0.25, alpha=0.5)
    ours._go_on(more[0])
    ours.set_params(learning_rate=None, alpha=None).partial_fit(*more)
    np.testing.assert_allclose(ours.coef_, same.partial_fit(*more).coef_, rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "change"),
    [
        *((SparseClassifier, {"optimizer": name}) for name in ("adam", "momentum", "sgd")),
        (SparseClassifier, {"fit_intercept": False}),
        (SparseClassifier, {"lazy": "exact"}),
        (SparseClassifier, {"model": "factorization_machine_logistic"}),
        (FactorizationMachineClassifier, {"factors": 3}),
        (FactorizationMachineRegressor, {"optimizer": "adam"}),
    ],
)
def test_what_the_training_cannot_go_on_with_is_refused_and_nothing_changes(estimator, change):
    ours, more = begun(estimator)
    same, (name, value) = pickle.loads(pickle.dumps(ours)), next(iter(change.items()))
    old = getattr(ours, name)
    with pytest.raises(ValueError, match=f"{name} was {old!r} in the call before and is {value!r} now") as refused:
        ours.set_params(**change).partial_fit(*more)
    assert f"Type estimator.set_params({name}={old!r}) to go on" in str(refused.value)
    ours.set_params(**{name: old}).partial_fit(*more)
    np.testing.assert_array_equal(ours.coef_, same.partial_fit(*more).coef_)
    ours.set_params(**change).fit(*more)  # begins anew


@pytest.mark.parametrize(
    ("optimizer", "change"),
    [("sgd", {"alpha": 1.0}), ("ftrl", {"options": {"l1": 1.0}}), ("sgd", {"learning_rate": 1e-9})],
)
def test_a_penalty_is_refused_once_columns_are_scaled(optimizer, change):
    """It would be on weights of scaled columns; a rate is taken."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(100, 2)) * [1, 1e4]
    ours = SparseRegressor(optimizer=optimizer, learning_rate=0.1, random_state=0).partial_fit(x, x[:, 0])
    ours.set_params(**change)
    if "learning_rate" in change:
        ours.partial_fit(x, x[:, 0])
        return
    with pytest.raises(ValueError, match=r"scaled the columns, which differ by far.*\nType estimator.set_params"):
        ours.partial_fit(x, x[:, 0])


def test_a_penalty_of_unlike_columns_is_on_weights_as_they_are():
    """Columns are not scaled, as they are with no penalty."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 2)) * [1, 40]
    y = x[:, 0] + x[:, 1] / 40
    for options, is_scaled in (({"l1": 5.0}, False), ({"beta": 2.0}, True)):
        ours = SparseRegressor(optimizer="ftrl", options=options, random_state=0).partial_fit(x, y)
        assert (ours._learner.scaling.scale is not None) == is_scaled
