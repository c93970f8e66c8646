"""L1 and elastic net: compared with a plain NumPy minimization, on data of every kind, and with the measured gap."""

import numpy as np
import pytest
import scipy.sparse

from kernels import threads
from tests.support.thread_counts import TWO_AT_MOST, share_out
from workbench.training.l1 import L1Descent, columns_of, fit_l1
from workbench.training.setup import SetupError

SEEDS = (0, 1, 2)
EXACT = 1e-10


def objective(x: np.ndarray, y: np.ndarray, counts: np.ndarray, loss: str, point: np.ndarray, l1: float, l2: float):
    """The mean loss plus penalty of weights and intercept [D + 1], in float64."""
    scores = x @ point[:-1] + point[-1]
    losses = (scores - y) ** 2 / 2 if loss == "squared" else np.logaddexp(0, scores) - y * scores
    return counts @ losses / counts.sum() + l1 * np.abs(point[:-1]).sum() + l2 / 2 * point[:-1] @ point[:-1]


def reference(
    x: np.ndarray, y: np.ndarray, counts: np.ndarray, loss: str, l1: float, l2: float, has_intercept: bool
) -> np.ndarray:
    """Weights and intercept [D + 1] by plain proximal coordinate descent in NumPy float64, with bounds of curvature."""
    shares, most = counts / counts.sum(), 1.0 if loss == "squared" else 0.25
    curvatures = most * shares @ x**2
    point = np.zeros(x.shape[1] + 1)
    for _ in range(6000):
        before = point.copy()
        for j in [*np.flatnonzero(curvatures), *([len(point) - 1] if has_intercept else [])]:
            scores = x @ point[:-1] + point[-1]
            slopes = shares * (scores - y if loss == "squared" else 1 / (1 + np.exp(-scores)) - y)
            if j == len(point) - 1:
                point[j] -= slopes.sum() / most
                continue
            middle = point[j] - slopes @ x[:, j] / curvatures[j]
            point[j] = np.sign(middle) * max(abs(middle) - l1 / curvatures[j], 0) / (1 + l2 / curvatures[j])
        if np.abs(point - before).max() < 1e-10:
            break
    return point


def problem(seed: int, loss: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X dense [50, 9], y, weights) with an empty, a constant, two equal, a full and very small and large columns."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(50, 9)) * (generator.random((50, 9)) < 0.5)
    x[:, 0], x[:, 1], x[:, 3] = 0, 2.5, x[:, 2]
    x[:, 4] = generator.normal(size=50) + 3
    x[:, 5] *= 1e-3
    x[:, 6] *= 50
    scores = x[:, 2] - x[:, 4] + x[:, 6] / 40 + generator.normal(size=50) / 2
    y = scores if loss == "squared" else (scores > np.quantile(scores, 0.85)).astype(np.float64)
    return x, y, generator.integers(1, 4, 50).astype(np.float64)


def held_as(x: np.ndarray, storage: str) -> object:
    """X in a storage: csc with int32 or int64 indices, csr, dense in either order."""
    if storage == "fortran":
        return np.asfortranarray(x)
    if storage in ("csc", "csr"):
        return getattr(scipy.sparse, f"{storage}_array")(x)
    wide = scipy.sparse.csc_array(x)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    return wide


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("storage", "l1_ratio", "has_intercept", "is_weighted"),
    [("csc", 1.0, True, False), ("fortran", 0.5, True, True), ("wide", 1.0, False, True), ("csr", 0.1, False, False)],
)
def test_it_comes_to_the_minimum_and_the_gap_is_no_promise(
    seed: int, loss: str, storage: str, l1_ratio: float, has_intercept: bool, is_weighted: bool
) -> None:
    x, y, counts = problem(seed, loss)
    counts = counts if is_weighted else np.ones(50)
    descent = L1Descent(held_as(x, storage), y, counts if is_weighted else None, loss, has_intercept=has_intercept)
    for share in (0.5, 0.05):
        alpha = share * descent.alpha_max
        gap = descent.minimize(alpha, l1_ratio, EXACT)
        assert 0 <= gap <= EXACT
        assert descent.intercept == 0 or has_intercept
    penalties = alpha * l1_ratio, alpha * (1 - l1_ratio)
    best = objective(x, y, counts, loss, reference(x, y, counts, loss, *penalties, has_intercept), *penalties)
    came = objective(x, y, counts, loss, np.append(descent.weights, descent.intercept), *penalties)
    start = descent.start / descent.total
    assert came - best <= 2 * EXACT * start + 1e-14
    assert came >= best - 1e-7 * start
    assert descent.weights[0] == 0
    assert not has_intercept or descent.weights[1] == 0


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_the_gap_bounds_the_distance_to_the_minimum(loss: str, tolerance: float) -> None:
    x, y, counts = problem(7, loss)
    alpha = L1Descent(x, y, counts, loss, has_intercept=True).alpha_max / 30
    values = []
    for each in (tolerance, 1e-12):
        descent = L1Descent(x, y, counts, loss, has_intercept=True)
        gap = descent.minimize(alpha, 1.0, each)
        assert gap <= each
        values.append(objective(x, y, counts, loss, np.append(descent.weights, descent.intercept), alpha, 0))
    assert values[0] - values[1] <= tolerance * descent.start / descent.total + 1e-14


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_float32_ends_at_the_gap_that_is_asked_for_and_near_float64(seed: int, loss: str) -> None:
    x, y, counts = problem(seed, loss)
    narrow = x.astype(np.float32)
    points = []
    for data in (narrow, narrow.astype(np.float64)):
        descent = L1Descent(scipy.sparse.csc_array(data), y, counts, loss, has_intercept=True)
        assert descent.minimize(descent.alpha_max / 50, 1.0, EXACT) <= EXACT
        points.append(np.append(descent.weights, descent.intercept))
    np.testing.assert_allclose(points[0], points[1], atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_path_ends_where_a_single_fit_does_and_penalties_above_the_largest_give_zeros(loss: str) -> None:
    x, y, counts = problem(3, loss)
    path, alone = (L1Descent(scipy.sparse.csc_array(x), y, counts, loss, has_intercept=True) for _ in range(2))
    assert path.minimize(path.alpha_max * 1.001, 1.0) <= 1e-4
    assert not path.weights.any()
    alphas = path.alpha_max * np.geomspace(1, 0.01, 12)
    for alpha in alphas:
        assert path.minimize(float(alpha), 1.0, EXACT) <= EXACT
    assert path.weights.any()
    alone.minimize(float(alphas[-1]), 1.0, EXACT)
    both = [objective(x, y, counts, loss, np.append(d.weights, d.intercept), alphas[-1], 0) for d in (path, alone)]
    assert both[0] == pytest.approx(both[1], abs=1e-9)
    path.minimize(float(alphas[2]), 1.0, EXACT)  # and back to a stronger one
    assert path.gap <= EXACT


@pytest.mark.parametrize("storage", ["csc", "fortran"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_same_bits_at_every_thread_count(storage: str, loss: str, kept_threads, monkeypatch) -> None:
    share_out(monkeypatch)
    generator = np.random.default_rng(5)
    x = generator.normal(size=(9000, 12)) * (generator.random((9000, 12)) < 0.4)
    y = (x[:, 0] > 0.2).astype(np.float64)
    points = []
    for count in (1, TWO_AT_MOST):
        threads.set_threads(count)
        descent = L1Descent(held_as(x, storage), y, None, loss, has_intercept=True)
        descent.minimize(descent.alpha_max / 20, 0.9)
        points.append(np.append(descent.weights, descent.intercept).tobytes())
    assert points[0] == points[1]


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("is_weighted", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tall_dense_data_is_minimized_on_products_of_columns(
    has_intercept: bool, is_weighted: bool, dtype: type
) -> None:
    x, y, counts = problem(8, "squared")
    x, given = x.astype(dtype), {"has_intercept": has_intercept, "is_path": True}
    weights = counts if is_weighted else None
    made = [L1Descent(each, y, weights, "squared", **given) for each in (x, scipy.sparse.csc_array(x))]
    assert made[0].x.rows == 9
    assert made[0].alpha_max == pytest.approx(made[1].alpha_max)
    for share in (0.3, 0.03):
        for descent in made:
            assert descent.minimize(share * made[1].alpha_max, 0.8, EXACT) <= EXACT
        np.testing.assert_allclose(made[0].predict(), made[1].predict(), atol=1e-3)
        assert made[0].start == pytest.approx(made[1].start)
        assert made[0].value == pytest.approx(made[1].value, abs=1e-7 * made[0].start)


def test_csc_and_fortran_arrays_are_not_copied() -> None:
    x = scipy.sparse.csc_array(np.eye(4))
    assert all(
        np.shares_memory(ours, theirs)
        for ours, theirs in zip(columns_of(x).parts, (x.indptr, x.indices, x.data), strict=True)
    )
    full = np.asfortranarray(np.eye(4))
    assert np.shares_memory(columns_of(full).parts[0], full)


def test_duplicates_are_summed_in_a_copy() -> None:
    parts = np.ones(4), np.array([0, 0, 1, 2]), np.array([0, 2, 4])
    x, y = scipy.sparse.csc_array(parts, shape=(3, 2)), np.array([2.0, 1.0, -1.0])
    descents = [L1Descent(each, y, None, "squared", has_intercept=False) for each in (x, x.toarray())]
    for descent in descents:
        descent.minimize(0.1, 1.0, EXACT)
    np.testing.assert_allclose(descents[0].weights, descents[1].weights, rtol=1e-9)
    assert x.nnz == 4


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_of_weight_0_count_for_nothing_and_weights_as_repeated_rows(loss: str) -> None:
    x, y, counts = problem(4, loss)
    counts[::7] = 0
    kept = np.repeat(np.arange(50), counts.astype(int))
    weighted = L1Descent(x, y, counts, loss, has_intercept=True)
    repeated = L1Descent(x[kept], y[kept], None, loss, has_intercept=True)
    for descent in (weighted, repeated):
        assert descent.minimize(repeated.alpha_max / 10, 1.0, EXACT) <= EXACT
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 3.5])
def test_constant_targets_give_zero_weights(value: float) -> None:
    x, *_ = problem(0, "squared")
    descent = L1Descent(x, np.full(50, value), None, "squared", has_intercept=True)
    assert descent.minimize(0.1, 1.0) == 0
    assert not descent.weights.any()
    assert descent.intercept == value


def test_rows_of_one_class_give_zero_weights() -> None:
    x, *_ = problem(0, "squared")
    descent = L1Descent(x, np.ones(50), None, "logistic", has_intercept=True)
    assert descent.minimize(0.1, 1.0) == 0
    assert not descent.weights.any()
    assert descent.intercept > 30


def test_classes_that_a_column_separates_are_no_trouble() -> None:
    x = np.linspace(-1, 1, 40)[:, None]
    descent = L1Descent(x, (x[:, 0] > 0).astype(float), None, "logistic", has_intercept=True)
    assert descent.minimize(1e-6, 1.0) <= 1e-4
    assert descent.weights[0] > 50


@pytest.mark.parametrize("shape", [(5, 0), (1, 3), (2, 1)])
def test_few_rows_and_no_columns(shape: tuple[int, int]) -> None:
    x = scipy.sparse.csc_array(np.ones(shape))
    descent = L1Descent(x, np.arange(shape[0], dtype=float), None, "squared", has_intercept=True)
    assert descent.minimize(0.1, 1.0) <= 1e-4


def test_sweeps_that_are_too_few_end_with_the_gap_that_is_left() -> None:
    x, y, _ = problem(1, "squared")
    found = fit_l1(x, y[:, None], None, "squared", outputs=1, has_intercept=True, l1_ratio=1.0, alpha=1e-3, most=1)
    assert not found.is_minimum
    assert found.gap > 0
    assert "before the minimum" in found.warning


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.inf, np.nan])
def test_an_alpha_that_is_none_is_refused(alpha: float) -> None:
    x, y, _ = problem(1, "squared")
    with pytest.raises(SetupError, match="expected a finite number above 0"):
        fit_l1(x, y[:, None], None, "squared", outputs=1, has_intercept=True, l1_ratio=1.0, alpha=alpha)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_search_finds_an_alpha_whose_loss_on_new_rows_is_near_the_best(seed: int) -> None:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(800, 40))
    y = x[:, :5].sum(axis=1) + generator.normal(size=800) * 2
    given = {"outputs": 1, "has_intercept": True, "l1_ratio": 1.0}
    train = np.asfortranarray(x[:200]), y[:200, None], None, "squared"
    found = fit_l1(*train, **given)
    assert found.choice is not None
    assert found.choice.folds == 5

    def error(weights: np.ndarray, intercept: np.ndarray) -> float:
        return float(np.mean((x[200:] @ weights[:, 0] + intercept - y[200:]) ** 2))

    alphas = np.geomspace(1e-3, 1, 15)
    tried = [fit_l1(*train, alpha=float(alpha), **given) for alpha in alphas]
    least = min(error(one.weights, one.intercept) for one in tried)
    assert error(found.weights, found.intercept) < 1.05 * least


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gap_that_the_objective_is_too_coarse_for_takes_few_sweeps(seed: int) -> None:
    generator = np.random.default_rng(seed)
    codes = [(generator.random(3000) ** 2 * count).astype(int) for count in (3, 7, 20, 60)]
    indices = (np.stack(codes, 1) + np.cumsum([0, 3, 7, 20])).ravel()
    x = scipy.sparse.csr_array((np.ones(12_000), indices, np.arange(3001) * 4), shape=(3000, 90)).tocsc()
    y = (generator.random(3000) < 1 / (1 + np.exp(1 - x @ generator.normal(size=90)))).astype(np.float64)
    descent = L1Descent(x, y, None, "logistic", has_intercept=False)
    for alpha in descent.alpha_max * np.geomspace(1, 0.01, 8):
        assert descent.minimize(float(alpha), 1.0, 1e-9, 1000) <= 1e-9
        assert descent.sweeps < 500
