"""Dense epochs in one call: they train what dense steps one by one train, on rows held dense or as CSR."""

import numpy as np
import pytest

from workbench import training
from workbench.sweeps.check import check_step

DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
ROWS, FEATURES, CLASSES = 90, 23, 3


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    """Rows of which a third of the entries are stored: whole numbers, which are exact in any type."""
    generator = np.random.default_rng(3)
    stored = generator.random((ROWS, FEATURES)) < 0.3
    return np.where(stored, generator.integers(1, 9, (ROWS, FEATURES)), 0).astype(np.float32)


@pytest.fixture(scope="module")
def y() -> np.ndarray:
    return np.random.default_rng(4).integers(0, CLASSES, ROWS)


def run_of(x: object, y: np.ndarray, **settings: object) -> training.Run:
    """A training of the softmax, of dense steps unless the settings say otherwise."""
    chosen = {"model": "softmax", "optimizer": "adagrad", "batch_rows": 16, "intercept": True} | DENSE | settings
    return training.make_run(training.Setup(**chosen), x, y, width=CLASSES)


@pytest.mark.parametrize("storage", ["same", "csr", "uint8", "float16"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_dense_epoch_in_one_call_trains_what_dense_steps_do(
    x: np.ndarray, y: np.ndarray, storage: str, shuffle: bool
) -> None:
    steps, calls = run_of(x, y, shuffle=shuffle), run_of(x, y, shuffle=shuffle, execution="epoch", storage=storage)
    losses = [event.loss for event in steps.events(2)]
    in_calls = np.concatenate([event.losses for event in calls.events(2)])
    np.testing.assert_allclose(in_calls, losses, rtol=1e-5)
    np.testing.assert_allclose(calls.weights, steps.weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(calls.intercept, steps.intercept, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(calls.predict(x), steps.predict(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("storage", ["same", "csr", "uint8", "float16"])
def test_the_call_that_is_timed_is_checked(x: np.ndarray, y: np.ndarray, storage: str) -> None:
    run = run_of(x, y, execution="epoch", storage=storage)
    assert not check_step(run).reason
    untouched, sound = run.weights.copy(), run.calls.steps.do
    run.calls.steps.do = lambda *args: sound(*args[:-3], args[-3][::-1][:5].copy(), 5, 5)
    assert "update" in check_step(run).reason
    np.testing.assert_array_equal(run.weights, untouched)


def test_rows_are_weighed_and_a_saved_training_goes_on_with_the_same_bits(x: np.ndarray, y: np.ndarray) -> None:
    weights = np.random.default_rng(5).random(ROWS).astype(np.float32)
    steps, calls, other = run_of(x, y), run_of(x, y, execution="epoch"), run_of(x, y, execution="epoch")
    for run in (steps, calls, other):
        run.take(x, y, weights)
    list(steps.events(1)), list(calls.events(1))
    np.testing.assert_allclose(calls.weights, steps.weights, rtol=1e-4, atol=1e-6)
    other.load_state_dict(calls.state_dict())
    for run in (calls, other):
        list(run.epoch(1))
    np.testing.assert_array_equal(calls.weights, other.weights)


def test_dense_epochs_have_one_way_to_be_done(x: np.ndarray, y: np.ndarray) -> None:
    for name, value in (("update", "lazy"), ("gradient", "row_sparse"), ("ahead", True)):
        with pytest.raises(training.SetupError, match=r"execution is step|dense gradient|row_sparse"):
            run_of(x, y, execution="epoch", **{name: value})
    assert training.impossible_reason(training.Setup(**DENSE, model="bpr", execution="epoch")).startswith(
        "Epochs in one call are for"
    )
