"""Targets as people hold them train in every way of training alike."""

import numpy as np
import pytest
import scipy.sparse

from workbench import training

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


def trained(launch: str, y: np.ndarray, model: str, width: int, gradient: str = "row_sparse") -> np.ndarray:
    setup = training.Setup(
        model=model, format="csr", gradient=gradient, launch=launch, batch_rows=50, optimizer="sgd", update="exact",
        options={"decay": 1e-3}, intercept=False,
    )  # fmt: skip
    run = training.make_run(setup, X, y, width=width)
    list(run.events(epochs=1))
    return run.weights.copy()


@pytest.mark.parametrize("launch", ["kernels", "epoch", "dual"])
@pytest.mark.parametrize("name", TARGETS)
def test_targets_of_any_numeric_type_and_shape_train_alike(name, launch):
    y, is_classes = TARGETS[name], name.startswith("classes")
    model, width = ("softmax", 3) if is_classes else ("logistic", 1)
    expected = y.astype(np.int64) if is_classes else y.reshape(-1, 1).astype(np.float32)
    np.testing.assert_array_equal(trained(launch, y, model, width), trained(launch, expected, model, width))


def test_a_fused_gradient_in_epochs_is_the_row_sparse_one():
    y = TARGETS["1-D float32"]
    fused, summed = (trained("epoch", y, "logistic", 1, gradient) for gradient in ("fused", "row_sparse"))
    np.testing.assert_array_equal(fused, summed)


@pytest.mark.parametrize("launch", ["kernels", "epoch", "dual"])
def test_logistic_refuses_targets_beyond_0_and_1(launch):
    with pytest.raises(training.SetupError, match=r"are -2 to 3; expected 0 to 1"):
        trained(launch, np.where(BINARY, 3.0, -2.0), "logistic", 1)
