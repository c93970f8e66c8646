"""Means, deviations, extremes and counts of columns against sums of fractions, and the same bits on every thread."""

from fractions import Fraction

import numpy as np
import pytest

from kernels import KernelError, threads
from kernels.moments import column_moments, largest_sizes, root_mean_squares


def exact(column, shares):
    """Return mean and deviation of a column of numbers, by fractions."""
    parts = [Fraction(float(share)) for share in shares]
    values = [Fraction(float(value)) for value in column]
    whole = sum(parts)
    mean = sum(p * v for p, v in zip(parts, values, strict=True)) / whole
    square = sum(p * (v - mean) ** 2 for p, v in zip(parts, values, strict=True)) / whole
    scale = Fraction(max(abs(float(v)) for v in values) or 1.0)
    return float(mean), float(np.sqrt(float(square / scale**2)) * float(scale))


def matrix(seed, dtype):
    """Return 70 rows of columns that sums of squares get wrong: far from 0, tiny, huge, an outlier, mostly 0."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((70, 9))
    x[:, 1] = 1e6 + rng.standard_normal(70) * 1e-1
    x[:, 2] = x[:, 2] * (1e308 / 4 if dtype is np.float64 else 1e37)
    x[:, 3] *= 1e-300 if dtype is np.float64 else 1e-36
    x[:, 4] = 0.1
    x[:, 5] *= rng.random(70) < 0.1
    x[7, 6] = 1e9
    x[:, 7] = 0.0
    x[:, 8] = np.where(rng.random(70) < 0.5, -1e30, 1e30)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_moments_are_those_of_exact_sums(dtype, seed, is_weighted):
    x = matrix(seed, dtype)
    shares = None
    if is_weighted:
        shares = np.random.default_rng(seed + 9).random(len(x))
        shares[7] = [0.0, 1e-20, 1.0][seed]  # of the outlier
        shares /= shares.sum()
    found = column_moments(x, shares)
    assert found.counts.tolist() == np.count_nonzero(x, axis=0).tolist()
    assert found.low.tolist() == x.min(axis=0).astype(float).tolist()
    assert found.high.tolist() == x.max(axis=0).astype(float).tolist()
    for column in range(x.shape[1]):
        mean, deviation = exact(x[:, column], np.ones(len(x)) if shares is None else shares)
        size = float(np.abs(x[:, column]).max())
        assert abs(found.means[column] - mean) <= 1e-9 * deviation + 1e-15 * size, column
        assert abs(found.deviations[column] - deviation) <= 1e-9 * deviation, column


def test_a_constant_column_has_its_value_and_no_deviation():
    for value in (0.1, -1e300, 5e-324, 0.0):
        found = column_moments(np.full((33, 2), value), np.full(33, 1 / 33))
        assert found.means.tolist() == [value, value]
        assert found.deviations.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 2), (5, 1), (400, 7)])
def test_results_are_the_same_bits_for_every_layout_and_number_of_threads(shape):
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    wide = np.zeros((shape[0], 2 * shape[1]), np.float32)
    wide[:, ::2] = x
    fixed = x.copy()
    fixed.flags.writeable = False
    with threads.serial():
        alone = column_moments(x)
    with threads.parallel():
        together = column_moments(x)
    for other in (together, column_moments(np.asfortranarray(x)), column_moments(wide[:, ::2]), column_moments(fixed)):
        for first, second in zip(alone, other, strict=True):
            assert first.dtype == second.dtype
            assert first.tobytes() == second.tobytes()
    assert alone.means.shape == (shape[1],)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(3))
def test_sizes_of_entries_are_those_of_exact_sums(dtype, index, seed):
    x, rng = matrix(seed, dtype), np.random.default_rng(seed)
    kept = rng.permutation(np.flatnonzero(x))[: [x.size, 40, 7][seed]]
    columns, data = (kept % 9).astype(index), x.reshape(-1)[kept]
    data[0] *= [1, -1, 0][seed]  # a stored zero, too
    shares = [None, rng.random(len(kept)), np.where(columns < 5, 0.0, 1.0)][seed]
    for array in (columns, data):
        array.flags.writeable = False
    found, largest = root_mean_squares(columns, data, 11, shares), largest_sizes(columns, data, 11)
    for column in range(11):
        entries = [Fraction(float(value)) for value in data[columns == column]]
        size = float(max(map(abs, entries), default=0))
        assert (
            size <= largest[column] <= 2 * size or (size == 0 and largest[column] == 1) or largest[column] == 2.0**1023
        )
        counted = [1.0] * len(entries) if shares is None else shares[columns == column]
        if not (whole := sum(map(Fraction, counted))):
            assert found[column] == 0
            continue
        scale = Fraction(size or 1.0)
        square = sum(Fraction(c) * (e / scale) ** 2 for c, e in zip(counted, entries, strict=True)) / whole
        assert found[column] == pytest.approx(float(np.sqrt(float(square)) * size), rel=1e-12), column


def test_columns_out_of_range_are_refused_before_anything_is_written():
    for columns in ([0, 3], [-1, 2]):
        for sizes in (largest_sizes, root_mean_squares):
            with pytest.raises(KernelError, match="expected 0 to 2"):
                sizes(np.array(columns), np.ones(2), 3)
    assert root_mean_squares(np.zeros(0, np.int32), np.zeros(0, np.float32), 0).size == 0
