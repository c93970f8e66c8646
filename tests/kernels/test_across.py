"""Rows whose numbers depend on each other: softmax at every edge of a vector, and as exactly as its exponentials."""

import numpy as np
import pytest

import kernels

WIDTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100)


def softmax(scores: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """(loss, gradient) by NumPy, in float64."""
    s = scores.astype(np.float64)
    e = np.exp(s - s.max(1, keepdims=True))
    p, at = e / e.sum(1, keepdims=True), (np.arange(len(s)), labels)
    loss = -np.log(p[at]).mean()
    others = np.where(np.arange(s.shape[1]) == labels[:, None], 0, p)
    others[at] = -others.sum(1)
    return loss, others / len(s)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_softmax_has_no_column_too_few_or_too_many(kind: type) -> None:
    kernel, rng, allowed = kernels.get("softmax"), np.random.default_rng(0), 40 * np.finfo(kind).eps
    for width in WIDTHS:
        scores = (4 * rng.standard_normal((6, width)) - 30).astype(kind)  # a lane beyond the edge holds 0: the largest
        labels = rng.integers(0, width, 6)
        labels[:2] = 0, width - 1
        room = np.full(6 * width + 64, 7.25, kind)
        gradient = room[: 6 * width].reshape(6, width)
        loss, wanted = kernel.cpu(scores, labels, gradient), softmax(scores, labels)
        assert loss == pytest.approx(wanted[0], rel=allowed, abs=allowed)
        np.testing.assert_allclose(gradient, wanted[1], rtol=allowed)
        assert (room[6 * width :] == 7.25).all()


def test_a_label_that_is_nearly_certain_keeps_the_digits_of_its_gradient() -> None:
    """Its probability less one, which float32 would call 0."""
    scores, gradient = np.full((1, 40), -20, np.float32), np.empty((1, 40), np.float32)
    scores[0, 3] = 0
    kernels.get("softmax").cpu(scores, np.array([3]), gradient)
    assert gradient[0, 3] == pytest.approx(-39 * np.exp(-20), rel=1e-6)


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("width", [5, 40])
def test_a_row_with_a_score_that_is_no_number_has_no_number(number: float, width: int) -> None:
    for place in (0, width - 1):
        scores, gradient = np.zeros((2, width), np.float32), np.empty((2, width), np.float32)
        scores[0, place] = number
        assert np.isnan(kernels.get("softmax").cpu(scores, np.array([1, 1]), gradient))
        assert np.isnan(gradient[0]).all()
        assert np.isfinite(gradient[1]).all()
