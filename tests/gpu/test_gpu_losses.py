"""Losses of the first rows alone, their number read on the emulated device: as of arrays that are just as long."""

import numpy as np
import pytest

from kernels.gpu import losses
from kernels.losses import logistic, softmax, squared
from tests.support.emulator.device import emulator
from tests.support.implementations import get

UNTOUCHED = 7.5


def problem(name: str, rows: int, width: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores and targets."""
    random = np.random.default_rng(rows + width)
    targets = random.integers(0, width, rows) if name == "softmax" else random.random((rows, width)).astype(dtype)
    return (5 * random.standard_normal((rows, width))).astype(dtype), targets


def run(name: str, scores: np.ndarray, targets: np.ndarray, counted: int | None) -> tuple[float, np.ndarray]:
    """Sum of the losses, and the gradient, of all rows or of the first ones."""
    rows, width = scores.shape
    there = [emulator.put(array) for array in (scores, targets, np.full_like(scores, UNTOUCHED))]
    number = None if counted is None else emulator.put(np.array([99, counted]))[1:]
    sums, parts, result = losses.room_for(emulator, rows if name == "softmax" else -(-rows * width // losses.ELEMENTS))
    if name == "softmax":
        softmax.on_device(*there, sums, emulator.zeros(1, np.int64), number)
    else:
        code = {"logistic": logistic.CUDA, "squared": squared.CUDA}[name]
        losses.each_element(code, name, *there, sums, number)
    losses.add_up(sums, parts, result)
    return float(emulator.read(result)[0]), emulator.read(there[2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "width"), [(300, 40), (5000, 3), (9, 130)])
@pytest.mark.parametrize("name", ["softmax", "logistic", "squared"])
def test_the_first_rows_are_as_alone_to_the_bit_and_the_others_untouched(name, rows, width, dtype) -> None:
    scores, targets = problem(name, rows, width, dtype)
    for count in (rows, rows - 1, rows // 2, 1, 0):
        scores[count:] = np.nan
        loss, gradient = run(name, scores, targets, count)
        assert (gradient[count:] == UNTOUCHED).all()
        if count == 0:
            assert loss == 0
            continue
        alone, expected = run(name, scores[:count], targets[:count], None)
        assert loss == alone
        np.testing.assert_array_equal(gradient[:count], expected)


@pytest.mark.parametrize("name", ["softmax", "logistic", "squared"])
def test_no_more_rows_count_than_there_are(name: str) -> None:
    scores, targets = problem(name, 20, 4, "float64")
    (loss, gradient), (alone, expected) = (run(name, scores, targets, count) for count in (1000, None))
    assert loss == alone
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("name", ["softmax", "logistic", "squared"])
def test_sum_and_gradient_are_those_of_the_registered_twin(name: str) -> None:
    scores, targets = problem(name, 130, 5, "float64")
    out = emulator.put(np.empty_like(scores))
    mean = get(name).gpu(emulator.put(scores), emulator.put(targets), out)
    loss, gradient = run(name, scores, targets, 130)
    assert loss / 130 == mean
    np.testing.assert_array_equal(gradient, emulator.read(out))
