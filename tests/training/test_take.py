"""A training goes on with other rows, each with its weight, and with targets as people hold them."""

import numpy as np
import pytest
import scipy.sparse

from tests.training.test_train import standard, targets
from workbench import data, models, training

WAYS = [
    standard("csr"),
    standard("dense"),
    {"format": "coo", "gradient": "row_sparse", "update": "lazy"},
    {"format": "csr", "gradient": "fused", "update": "lazy"},
    {"format": "csr", "gradient": "row_sparse", "update": "exact"},
]


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("power_law", rows=60, features=30, density=0.2, classes=3, seed=1, cache=False)


def changes(made, weights, model="softmax", **way):
    """What a step on all rows changes of each parameter."""
    setup = training.Setup(model=model, batch_rows=60, dtype="float64", optimizer="sgd", shuffle=False, **way)
    y, width = targets(made, model)
    x = made.x.astype(np.float64)
    x = x.toarray() if way["format"] == "dense" else x
    run = training.Run(setup, x[:7], y[:7], width)
    before = {name: array.copy() for name, array in run.arrays.items()}
    run.take(x, y, weights)
    assert len(list(run.epoch(0))) == 1
    return {name: array - before[name] for name, array in run.arrays.items()}


@pytest.mark.parametrize("model", [name for name in models.names() if not models.get(name).needs])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_gradient_is_linear_in_the_weights_of_rows(made, model, way):
    first, second = np.random.default_rng(0).uniform(0, 3, (2, 60))
    parts = [changes(made, weights, model, **way) for weights in (first, second, first + second)]
    for name, both in parts[2].items():
        assert np.abs(both).max() > 0
        np.testing.assert_allclose(parts[0][name] + parts[1][name], both, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_weights_of_one_change_nothing(made, way):
    weighted, plain = changes(made, np.ones(60), **way), changes(made, None, **way)
    for name, array in plain.items():
        np.testing.assert_array_equal(weighted[name], array)


def test_rows_of_other_features_are_refused(made):
    y, width = targets(made, "softmax")
    run = training.Run(training.Setup(batch_rows=20), made.x, y, width)
    with pytest.raises(training.SetupError, match="has 30 features; rows of 29 came"):
        run.take(made.x[:, :29], y)


def test_a_number_of_weights_other_than_of_rows_is_refused(made):
    y, width = targets(made, "softmax")
    run = training.Run(training.Setup(batch_rows=20), made.x, y, width)
    with pytest.raises(data.DataError, match="59 entries for 60 rows"):
        run.take(made.x, y, np.ones(59, np.float32))


ROWS, FEATURES = 200, 30
GENERATOR = np.random.default_rng(1)
BINARY, CLASSES = GENERATOR.integers(0, 2, ROWS), GENERATOR.integers(0, 3, ROWS)
X = scipy.sparse.random_array((ROWS, FEATURES), density=0.2, format="csr", dtype=np.float32, rng=GENERATOR)
TARGETS = {
    "1-D float32": BINARY.astype(np.float32),
    "1-D float64": BINARY.astype(np.float64),
    "1-D int64": BINARY,
    "1-D bool": BINARY.astype(bool),
    "column int64": BINARY[:, None],
    "column uint8": BINARY[:, None].astype(np.uint8),
    "classes int32": CLASSES.astype(np.int32),
    "classes uint8": CLASSES.astype(np.uint8),
}


def trained(execution: str, y: np.ndarray, model: str, width: int, gradient: str = "row_sparse") -> np.ndarray:
    setup = training.Setup(
        model=model, format="csr", gradient=gradient, execution=execution, batch_rows=50, optimizer="sgd",
        update="exact",
        options={"decay": 1e-3}, intercept=False,
    )  # fmt: skip
    run = training.make_run(setup, X, y, width=width)
    list(run.events(epochs=1))
    return run.weights.copy()


@pytest.mark.parametrize("execution", ["step", "epoch", "dual"])
@pytest.mark.parametrize("name", TARGETS)
def test_targets_of_any_numeric_type_and_shape_train_alike(name, execution):
    y, is_classes = TARGETS[name], name.startswith("classes")
    model, width = ("softmax", 3) if is_classes else ("logistic", 1)
    expected = y.astype(np.int64) if is_classes else y.reshape(-1, 1).astype(np.float32)
    np.testing.assert_array_equal(trained(execution, y, model, width), trained(execution, expected, model, width))


def test_a_fused_gradient_in_epochs_is_the_row_sparse_one():
    y = TARGETS["1-D float32"]
    fused, summed = (trained("epoch", y, "logistic", 1, gradient) for gradient in ("fused", "row_sparse"))
    np.testing.assert_array_equal(fused, summed)


@pytest.mark.parametrize("execution", ["step", "epoch", "dual"])
def test_logistic_refuses_targets_beyond_0_and_1(execution):
    with pytest.raises(training.SetupError, match=r"are -2 to 3; expected 0 to 1"):
        trained(execution, np.where(BINARY, 3.0, -2.0), "logistic", 1)
