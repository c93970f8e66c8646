"""The polynomials against the math library: over all magnitudes, at the edges, and that the bound can fail."""

import numpy as np
import pytest

from kernels.threads import compiled
from kernels.vector.elementary import EXP_SMALLEST, exp_of_negative, log1p_of_unit, maximum


@compiled
def _exp(x, out):
    for k in range(x.size):
        out[k] = exp_of_negative(x[k])


@compiled
def _log1p(x, out):
    for k in range(x.size):
        out[k] = log1p_of_unit(x[k])


@compiled
def _maximum(x, y, out):
    for k in range(x.size):
        out[k] = maximum(x[k], y[k])


def floats(low: float, high: float) -> np.ndarray:
    """Every 997th float32 from `low` to `high`, both positive."""
    first, last = (int(np.float32(bound).view(np.int32)) for bound in (low, high))
    return np.append(np.arange(first, last, 997, np.int32), np.int32(last)).view(np.float32)


def error(function, x: np.ndarray, true) -> float:
    out = np.empty_like(x)
    function(x, out)
    return np.max(np.abs(out / true(x.astype(np.float64)) - 1))


def test_exp_is_within_its_bound() -> None:
    assert error(_exp, -floats(1e-30, -EXP_SMALLEST), np.exp) < 9e-8


def test_log1p_is_within_its_bound() -> None:
    assert error(_log1p, floats(1e-37, 1), np.log1p) < 1.8e-7


def test_bound_would_notice_a_wrong_digit() -> None:
    assert error(_exp, -floats(1e-30, -EXP_SMALLEST), lambda x: np.exp(x) * (1 + 1e-7)) > 9e-8


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_edges(kind: type) -> None:
    x = np.array([0, -0.0, -1e-40, -2000, -np.inf, np.nan], kind)
    out = np.empty_like(x)
    _exp(x, out)
    np.testing.assert_array_equal(out, np.array([1, 1, 1, 0, 0, np.nan], kind))
    x = np.array([0, 1, np.nan], kind)
    out = np.empty_like(x)
    _log1p(x, out)
    np.testing.assert_allclose(out, np.log1p(x), rtol=2e-7)


def test_python_calls_the_math_library() -> None:
    assert exp_of_negative(-1.0) == np.exp(-1)
    assert log1p_of_unit(0.5) == np.log1p(0.5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_maximum_of_nan_is_nan(kind: type) -> None:
    x, y = np.array([1, np.nan, 3, -np.inf], kind), np.array([2, 1, np.nan, -5], kind)
    out = np.empty_like(x)
    _maximum(x, y, out)
    np.testing.assert_array_equal(out, np.array([2, np.nan, np.nan, -5], kind))
