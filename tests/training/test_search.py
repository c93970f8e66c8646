"""Search of the decay: rows in folds, columns without entries, sums of columns, when a search ends."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from kernels import get
from tests.support.linear_rows import drawn
from workbench.bridges.sklearn import SparseClassifier
from workbench.training import descent as descents
from workbench.training import search
from workbench.training.descent import Descent, minimum_decay
from workbench.training.epoch_calls import MANY_VALUES, TOGETHER, column_sums, sum_of_squares
from workbench.training.search import AHEAD, FAR_OFF, LOSSES, NEAR_ENOUGH, RISEN, STEEP, _parts, _Rows, search_decay

GIVEN = {"outputs": 1, "has_intercept": True, "count": 4, "seed": 0}


def rows_of(count):
    x, y = drawn(rows=count)
    return x.astype(np.float32), y


def targets_of(y):
    return np.ascontiguousarray(y, np.float32)[:, None]


@pytest.mark.parametrize(("rows", "folds", "held_out"), [(600, 5, 600), (6000, 1, 600)])
def test_few_rows_are_held_out_in_turn_and_a_part_of_more(rows, folds, held_out):
    x, y = rows_of(rows)
    choice = search_decay(x, targets_of(y), None, "logistic", **GIVEN).choice
    assert (choice.folds, choice.rows) == (folds, held_out)


def test_columns_without_entries_change_nothing():
    x, y = rows_of(300)
    wide = scipy.sparse.csr_array((x.data, 7 * x.indices, x.indptr), shape=(300, 7 * x.shape[1] + 300))
    narrow, found = (search_decay(rows, targets_of(y), None, "logistic", **GIVEN) for rows in (x, wide))
    assert found.weights.shape == (wide.shape[1], 1)
    np.testing.assert_array_equal(found.weights[: 7 * x.shape[1] : 7], narrow.weights)
    assert np.count_nonzero(found.weights) == np.count_nonzero(narrow.weights)
    np.testing.assert_array_equal(found.choice.losses, narrow.choice.losses)


def test_duplicates_are_searched_as_their_sums():
    x, y = rows_of(300)
    halves = scipy.sparse.csr_array((np.repeat(x.data / 2, 2), np.repeat(x.indices, 2), 2 * x.indptr), shape=x.shape)
    once, twice = (search_decay(rows, targets_of(y), None, "logistic", **GIVEN) for rows in (x, halves))
    assert twice.choice.decay == once.choice.decay
    np.testing.assert_array_equal(twice.weights, once.weights)
    assert halves.nnz == 2 * x.nnz


@pytest.mark.parametrize("scale", [80, 1e3, 1e5])
@pytest.mark.parametrize("rows", [150, 1000])
def test_a_small_column_beside_a_large_one_is_learned(rows, scale):
    generator = np.random.default_rng(0)
    age, income = generator.integers(20, 60, rows), scale * generator.normal(30, 10, rows)
    x = scipy.sparse.csr_array(np.stack([age, income], axis=1).astype(np.float32))
    y = age > 40
    found = search_decay(x, targets_of(y), None, "logistic", **GIVEN)
    assert np.mean(((x @ found.weights + found.intercept)[:, 0] > 0) == y) > 0.95


@pytest.mark.parametrize("given", [{"folds": 3}, {"epochs": 20}, {"folds": 4, "epochs": 15}])
@pytest.mark.parametrize("rows", [150, 400])
def test_it_is_learned_by_folds_and_a_count_of_epochs(given, rows):
    generator = np.random.default_rng(0)
    age, income = generator.integers(20, 60, rows), 1e3 * generator.normal(30, 10, rows)
    x = scipy.sparse.csr_array(np.stack([age, income], axis=1).astype(np.float32))
    y = age > 40
    found = search_decay(x, targets_of(y), None, "logistic", **GIVEN, **given)
    assert found.choice.method == search.NEWTON
    assert found.choice.folds == given.get("folds", found.choice.folds)
    assert found.choice.rows == (rows if found.choice.folds > 1 else rows // 10)
    assert np.mean(((x @ found.weights + found.intercept)[:, 0] > 0) == y) > 0.9


@pytest.mark.parametrize("price", [6, 25])
def test_a_price_among_categories_does_not_hide_the_best_decay(price):
    """Its squares are most of a row's, so that weak decays look far too weak before they are trained to the minimum."""
    generator = np.random.default_rng(0)
    ids = generator.integers([0, 1500], [1500, 3000], (8000, 2))
    taste = generator.normal(size=3000)
    y = generator.random(8000) < 1 / (1 + np.exp(-taste[ids].sum(axis=1)))
    paid = generator.gamma(4, price / 4, (8000, 1))
    values = np.concatenate([np.ones_like(ids), paid], axis=1).astype(np.float32).reshape(-1)
    columns = np.concatenate([ids, np.full((8000, 1), 3000)], axis=1).reshape(-1)
    x = scipy.sparse.csr_array((values, columns, np.arange(0, 24001, 3)), shape=(8000, 3001))
    found = search_decay(x[:6000], targets_of(y[:6000]), None, "logistic", **GIVEN | {"count": 8})
    others = [LogisticRegression(C=c, max_iter=3000).fit(x[:6000], y[:6000]) for c in (0.1, 0.3, 1)]
    scores = [x[6000:] @ found.weights + found.intercept, *(o.decision_function(x[6000:])[:, None] for o in others)]
    losses = LOSSES["logistic"](np.stack(scores), targets_of(y[6000:])).mean(axis=1)
    assert losses[0] < 1.01 * losses[1:].min()


@pytest.mark.parametrize(("largest", "method"), [(9, "dual ascent"), (1000, "Newton's method")])
def test_many_entries_are_searched_by_dual_ascent_unless_some_columns_outweigh_the_others(monkeypatch, largest, method):
    """Both find weights as good for rows held out."""
    made = np.random.default_rng(5)
    counts = (made.random((600, 300)) < 0.05).astype(np.float32)
    counts[:, :5] *= largest
    scores = counts @ (made.normal(size=300) / np.where(np.arange(300) < 5, largest, 1))
    y = (scores + 0.1 * made.normal(size=600) > np.median(scores)).astype(np.float32)[:, None]
    given = {"outputs": 1, "has_intercept": True, "count": 6, "seed": 0}
    x, held_out = scipy.sparse.csr_array(counts[:500]), counts[500:]
    found = {}
    for many in (0, 10**9):
        monkeypatch.setattr(search, "MANY_UNLIKE", many)
        found[many] = search.search_decay(x, y[:500], None, "logistic", **given)
    assert found[0].choice.method == method
    assert found[10**9].choice.method == "Newton's method"
    losses = [LOSSES["logistic"]((held_out @ one.weights + one.intercept)[None], y[500:])[0] for one in found.values()]
    assert np.mean(losses[0]) < 1.1 * np.mean(losses[1])


def test_a_search_on_rows_that_can_be_separated_ends_when_the_loss_is_small():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(3000, 10)).astype(np.float32)
    scores = x @ generator.normal(size=10)
    kept = np.abs(scores) > 0.5
    x, y = scipy.sparse.csr_array(x[kept]), targets_of(scores[kept] > 0)
    choice = search_decay(x, y, None, "logistic", **GIVEN).choice
    assert choice.epochs < 60
    assert choice.losses.min() < 0.001


@pytest.mark.parametrize("rows", [0, 1, TOGETHER, 3 * TOGETHER + 5])
def test_sums_of_columns(rows):
    array = np.random.default_rng(0).normal(size=(rows, 3))
    np.testing.assert_allclose(column_sums(array), array.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("size", "error"), [(0, 0), (1, 1e-6), (MANY_VALUES, 1e-6), (MANY_VALUES + 1, 0.1), (5 * MANY_VALUES + 7, 0.1)]
)
def test_a_sum_of_squares_is_estimated_where_values_are_many(size, error):
    values = np.random.default_rng(0).normal(size=size).astype(np.float32) * np.linspace(0.5, 2, size, dtype=np.float32)
    assert sum_of_squares(values) == pytest.approx(np.square(values, dtype=float).sum(), rel=error)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_losses_of_several_settings_are_those_of_each(loss):
    generator = np.random.default_rng(0)
    scores = 5 * generator.normal(size=(2, 4, 3))
    y = np.array([0, 2, 1, 1]) if loss == "softmax" else (generator.random((4, 3)) > 0.5).astype(float)
    losses = LOSSES[loss](scores, y)
    expected = {
        "logistic": lambda one: (np.logaddexp(0, one) - one * y).sum(axis=1),
        "squared": lambda one: ((one - y) ** 2).sum(axis=1) / 2,
        "softmax": lambda one: np.log(np.exp(one).sum(axis=1)) - one[np.arange(4), y],
    }[loss]
    np.testing.assert_allclose(losses, [expected(one) for one in scores])


@pytest.mark.parametrize("count", [3, 4, 8])
def test_the_minimum_between_settings_is_that_of_a_curve_steep_on_one_side(count):
    decays = np.geomspace(1e-3, 1e3, count)
    positions = np.log(decays / 2.0)
    losses = np.exp(-positions / 3) + positions / 3  # least where the position is 0, steep towards weak decays
    distance = abs(np.log(minimum_decay(decays, losses) / 2.0))
    assert distance < {3: 2.8, 4: 2.0, 8: 0.05}[count]
    assert minimum_decay(decays, np.arange(count, dtype=float)) == decays[0]


def test_a_sample_of_many_rows_of_few_columns_is_searched_unless_the_labels_are_easy():
    x, y = rows_of(20_000)
    noisy = np.where(np.random.default_rng(0).random(len(y)) < 0.3, 1 - y, y)
    choice = search_decay(x, targets_of(noisy), None, "logistic", **GIVEN).choice
    assert 3000 <= choice.rows < 3200
    assert choice.folds == 1
    assert search_decay(x, targets_of(y), None, "logistic", **GIVEN).choice.rows == 2000
    rare = noisy * (np.random.default_rng(1).random(len(y)) < 0.02)
    assert search_decay(x, targets_of(rare), None, "logistic", **GIVEN).choice.rows == 6667
    weights = np.ones(len(y), np.float32)
    assert search_decay(x, targets_of(noisy), weights, "logistic", **GIVEN).choice.rows == 2000


@pytest.mark.parametrize(("loss", "positive", "held_out"), [("logistic", 90, 3000), ("softmax", 2400, 900)])
def test_held_out_rows_have_their_share_of_each_class(loss, positive, held_out):
    y = np.zeros(9000, np.int64)
    y[np.random.default_rng(0).choice(9000, positive, replace=False)] = 1
    x = scipy.sparse.csr_array((9000, 5), dtype=np.float32)
    rows = _Rows(x, targets_of(y) if loss == "logistic" else y, None, loss, 1 if loss == "logistic" else 2, True)
    is_held_out = _parts(rows, np.random.default_rng(1)) == 0
    assert is_held_out.sum() == held_out
    assert y[is_held_out].sum() == positive * held_out // 9000
    assert not np.array_equal(is_held_out, _parts(rows, np.random.default_rng(2)) == 0)


def test_the_training_on_all_rows_goes_on_until_it_settles():
    x, y = rows_of(6000)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.3, 1 - y, y)
    found = search_decay(x, targets_of(y), None, "logistic", **GIVEN | {"count": 8})
    decay = found.choice.decay
    best = LogisticRegression(C=1 / (decay * len(y)), tol=1e-8, max_iter=1000).fit(x, y)

    def objective(weights, intercept):
        scores = x @ weights + intercept
        return (np.logaddexp(0, scores) - scores * y).mean() + decay / 2 * (weights**2).sum()

    assert objective(found.weights[:, 0], found.intercept[0]) < 1.01 * objective(best.coef_[0], best.intercept_[0])
    assert 2 <= found.choice.epochs_final <= 20


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_descent_on_many_entries_without_a_copy_by_columns_comes_to_the_same_minimum(monkeypatch, outputs):
    x, y = rows_of(500)
    made = []
    for most in (descents.MOST_COPIED, 0):
        monkeypatch.setattr(descents, "MOST_COPIED", most)
        made.append(
            Descent(x, np.tile(targets_of(y), outputs), None, "logistic", outputs, has_intercept=True, total=500)
        )
        made[-1].minimize(1e-2, 1e-8)
    assert [descent.columns.format for descent in made] == ["csr", "csc"]
    np.testing.assert_allclose(made[0].point, made[1].point, atol=1e-3)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_search_of_many_rows_of_few_columns_comes_to_the_minimum_of_each_loss(loss, is_weighted):
    x, y = drawn(rows=2000, classes=3, features=12)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.3, 0, y)
    targets = y if loss == "softmax" else np.eye(3)[y]
    weights = np.random.default_rng(1).random(2000) if is_weighted else None
    weights = None if weights is None else weights / weights.mean()
    found = search_decay(x, targets, weights, loss, outputs=3, has_intercept=True)
    assert found.choice.method == search.NEWTON
    assert (found.choice.folds, found.choice.rows) == (1, 667)
    kernel, counts = get(loss), np.ones(2000) if weights is None else weights
    slope, scores = np.zeros((2000, 3)), x @ found.weights + found.intercept
    kernel.reference(scores, targets, slope)
    slope *= 2000 * counts[:, None]  # kernels give the gradient of the mean
    gradient = x.T @ slope / 2000 + found.choice.decay * found.weights
    assert np.abs(gradient).max() < 0.01
    assert np.abs(slope.mean(axis=0)).max() < 0.01


def test_settings_weaker_than_those_that_gain_no_more_are_left_out():
    x, y = rows_of(6000)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.3, 1 - y, y)
    losses = search_decay(x, targets_of(y), None, "logistic", **GIVEN | {"count": 8}).choice.losses
    known = np.flatnonzero(~np.isnan(losses))
    assert 2 <= len(known) < 8
    np.testing.assert_array_equal(known, np.arange(len(known)))


def test_columns_of_very_different_scales_converge_alike():
    x, y = drawn(rows=3000, features=12)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.2, 1 - y, y).astype(float)[:, None]
    scaled = scipy.sparse.csr_array(x @ scipy.sparse.diags_array(np.geomspace(1e-3, 1e3, 12)))
    descent = Descent(scaled, y, None, "logistic", 1, has_intercept=True, total=3000)
    assert descent.minimize(1e-12, 1e-6) < 30
    plain = Descent(x, y, None, "logistic", 1, has_intercept=True, total=3000)
    plain.minimize(1e-12, 1e-6)
    np.testing.assert_allclose(descent.scores, plain.scores, atol=0.05)


def logistic_descent(x, y, **given):
    return Descent(x, targets_of(y), None, "logistic", 1, has_intercept=True, **{"total": x.shape[0]} | given)


def separable_rows(rows=4000, features=60):
    generator = np.random.default_rng(5)
    x = scipy.sparse.random_array((rows, features), density=0.2, rng=generator, dtype=np.float32, format="csr")
    scores = x @ generator.normal(size=features)
    return x, scores > np.median(scores)


@pytest.mark.parametrize(("loss", "shape"), [("logistic", (3000, 2)), ("squared", (3000, 2)), ("softmax", (3000,))])
def test_a_descent_begins_at_the_best_intercept(loss, shape):
    generator = np.random.default_rng(3)
    x = scipy.sparse.csr_array(generator.normal(size=(3000, 4)).astype(np.float32))
    is_rare = generator.random(shape) < 0.03
    y = is_rare.astype(np.int64 if loss == "softmax" else np.float32)
    counts = generator.uniform(0, 2, 3000).astype(np.float32)
    descent = Descent(x, y, counts, loss, 2, has_intercept=True, total=3000)
    assert np.count_nonzero(descent.weights) == 0
    slopes = descent._slopes(descent.loss(descent.scores, descent.y)[1])
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=0.01)
    np.testing.assert_array_equal(descent.scores, descent.scores_of(x, descent.point))


def test_the_minimum_of_the_next_decay_is_extrapolated_from_the_last_two():
    x, y = separable_rows()
    descent = logistic_descent(x, y)
    descent.minimize(1e-3, 1e-6)
    before = descent.state()
    descent.minimize(1e-4, 1e-6)
    last = descent.state()
    line, moves = last.point - before.point, last.scores - before.scores
    at = lambda step: descent._value(last.scores + step * moves, last.point + step * line, 1e-5)[0]  # noqa: E731
    values = [at(step) for step in np.linspace(0, 4, 81)]
    assert 0 < np.argmin(values) < 80
    descent.extrapolate(before, 1e-5)
    np.testing.assert_allclose(descent.scores, descent.scores_of(x, descent.point), atol=1e-3)
    assert descent.objective(1e-5) < min(values) * 1.001


def test_an_extrapolation_that_gains_nothing_moves_nothing():
    x, y = rows_of(2000)
    descent = logistic_descent(x, y)
    before = descent.state()
    descent.minimize(1e-3, 1e-10)
    point = descent.point.copy()
    descent.extrapolate(before, 1e-3)
    np.testing.assert_allclose(descent.point, point, atol=1e-3)


def test_a_factored_hessian_takes_fewer_passes_to_the_same_minimum(monkeypatch):
    x, y = separable_rows(3000, 100)
    factored, diagonal = (logistic_descent(x, y) for _ in range(2))
    for descent in factored, diagonal:
        descent.minimize(1e-6, 1e-3)
    passes = factored.minimize(1e-7, 1e-6, 1000)
    monkeypatch.setattr(descents, "MOST_FACTOR", 0)
    assert passes < diagonal.minimize(1e-7, 1e-6, 1000) / 2
    assert factored.objective(1e-7) < diagonal.objective(1e-7) * 1.001


@pytest.mark.parametrize("has_intercept", [False, True])
def test_a_hessian_of_equal_columns_is_factored(has_intercept):
    x = scipy.sparse.csr_array(np.tile(np.random.default_rng(0).normal(size=(500, 1)), 2))
    y = targets_of(x.data[::2] + np.random.default_rng(1).normal(size=500) > 0).astype(float)
    descent = Descent(x, y, None, "logistic", 1, has_intercept=has_intercept, total=500)
    solved = descent._factor(descent.loss(descent.scores, y)[1], 0.0)(np.array([[1.0], [1.0], [0.0]]))
    assert 0 < solved[0, 0] == pytest.approx(solved[1, 0], rel=1e-3)
    assert has_intercept or solved[2, 0] == 0


def test_a_hessian_that_overflows_is_not_factored():
    x, y = rows_of(500)
    descent = logistic_descent((x * np.float32(1e25)).astype(np.float32), y)
    with np.errstate(all="ignore"):
        assert descent._factor(descent.loss(descent.scores, descent.y)[1], 0.0) is None


def test_decays_far_from_the_best_are_trained_less(monkeypatch):
    minimize, trained = Descent.minimize, {}

    def noted(self, decay, tolerance, *given, **named):
        trained.setdefault(decay, []).append(tolerance)
        return minimize(self, decay, tolerance, *given, **named)

    monkeypatch.setattr(Descent, "minimize", noted)
    x, y = separable_rows()
    choice = search_decay(x, targets_of(y), None, "logistic", **GIVEN | {"count": 12}).choice
    known = np.flatnonzero(~np.isnan(choice.losses))
    best_before = np.minimum.accumulate(choice.losses[known])[:-1]
    ratios, later = choice.losses[known][1:] / best_before, choice.decays[known][1:]
    is_near = np.array([NEAR_ENOUGH in trained[decay] for decay in later])
    assert 2 <= is_near.sum() < len(is_near)
    assert all(trained[decay].count(FAR_OFF) >= 1 for decay in later)
    far = ratios[~is_near]
    assert ((far <= 1 - STEEP) | (far >= 1 + RISEN)).all()


@pytest.mark.parametrize(("features", "epochs", "ahead"), [(3000, None, AHEAD), (100, None, 0), (3000, 9, 0)])
def test_losses_that_rise_are_expected_to_rise_further_if_columns_are_more_than_rows(
    monkeypatch, features, epochs, ahead
):
    generator = np.random.default_rng(2)
    x = scipy.sparse.random_array((400, features), density=0.1, rng=generator, dtype=np.float32, format="csr")
    y = targets_of(x @ generator.normal(size=features) + generator.normal(size=400) > 0)
    held_out_losses, losses = search._held_out_losses, []

    def noted(*given):
        losses.append(held_out_losses(*given))
        return losses[-1]

    monkeypatch.setattr(search, "_held_out_losses", noted)
    choice = search_decay(x, y, None, "logistic", **GIVEN | {"count": 8}, epochs=epochs).choice
    rises = losses[-1] - np.min(losses, axis=0)
    assert rises.max() > 0.01
    assert choice.decay == minimum_decay(choice.decays, losses[-1] + ahead * rises)
    assert (choice.decay == minimum_decay(choice.decays, losses[-1])) is (ahead == 0)
    np.testing.assert_array_equal(choice.losses, losses[-1])


@pytest.mark.parametrize("folds", [1, 3])
def test_rows_held_out_are_scored_by_the_columns_of_their_fold(folds):
    generator = np.random.default_rng(4)
    x = scipy.sparse.random_array((60, 500), density=0.02, rng=generator, format="csr")
    rows = _Rows(x, np.zeros((60, 2)), None, "logistic", 2, True)
    columns = search._DualState(rows, np.tile([1.0, 2.0, 3.0, 4.0], folds), 1.0)
    columns.weights[...] = generator.normal(size=columns.weights.shape)
    columns.intercept[...] = generator.normal(size=columns.intercept.shape)
    part = np.arange(60) % 3
    held_out = search._held_out(rows, part, folds)
    assert len(held_out) == folds
    for fold, held in enumerate(held_out):
        assert len(held.active) < 250
        scores = columns.score(held.x, held.active, fold, 4)
        everything = x[part == fold] @ columns.weights + columns.intercept
        expected = everything[:, 8 * fold : 8 * fold + 8].reshape(20, 4, 2).transpose(1, 0, 2)
        np.testing.assert_allclose(scores, expected)
        np.testing.assert_allclose(columns.score(x[part == fold], None, fold, 4), expected)


@pytest.mark.parametrize(("epochs", "looks"), [(8, {3, 6, 8}), (4, {3, 4}), (2, {2})])
def test_a_search_of_given_epochs_looks_at_times_and_leaves_decays_out(monkeypatch, epochs, looks):
    generator = np.random.default_rng(8)
    x = scipy.sparse.random_array((6000, 1000), density=0.01, rng=generator, dtype=np.float32, format="csr")
    y = targets_of(x @ generator.normal(size=1000) + generator.normal(size=6000) > 0)
    held_out_losses, do_epoch, done, seen = search._held_out_losses, search._DualState.do_epoch, [], {}

    def noted(columns, held_out, count):
        seen[len(done)] = count, held_out_losses(columns, held_out, count)
        return seen[len(done)][1]

    def counted(columns, *given):
        done.append(columns.decays.size)
        return do_epoch(columns, *given)

    monkeypatch.setattr(search, "_held_out_losses", noted)
    monkeypatch.setattr(search._DualState, "do_epoch", counted)
    choice = search_decay(x, y, None, "logistic", **GIVEN | {"count": 8}, epochs=epochs).choice
    assert (choice.epochs, looks) == (epochs, set(seen))
    assert done[:epochs] == [8] * min(epochs, 3) + [4] * (epochs - 3)
    assert [count for count, _ in seen.values()] == [8, *[4] * (len(seen) - 1)]
    assert np.isfinite(choice.losses).all()
    assert set(seen[choice.epochs][1]) <= set(choice.losses)
    assert choice.losses.min() == seen[choice.epochs][1].min()


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_columns_of_some_decays_go_on_as_they_were(loss, is_weighted):
    generator = np.random.default_rng(6)
    x = scipy.sparse.random_array((50, 9), density=0.4, rng=generator, format="csr")
    y = np.arange(50) % 2 if loss == "softmax" else generator.integers(0, 2, (50, 2)).astype(np.float64)
    rows = _Rows(x, y, None, loss, 2, True)
    counts = np.tile(generator.random((50, 1)), 3) if is_weighted else np.zeros((0, 3))
    every = search._DualState(rows, np.array([1.0, 0.1, 0.01]), 2.0)
    every.do_epoch(np.arange(50), counts)
    some = every.part(slice(1, 3))
    for columns, width in ((every, 3), (some, 2)):
        columns.do_epoch(np.arange(50), np.ascontiguousarray(counts[:, :width]))
    np.testing.assert_allclose(some.weights, every.weights[:, 2:], rtol=1e-12)
    np.testing.assert_allclose(some.dual, every.dual[:, 2:], rtol=1e-12)
    np.testing.assert_allclose(some.intercept, every.intercept[2:], rtol=1e-12)


def test_decays_near_the_best_one_are_kept():
    losses = np.array([9.0, 4.0, 1.0, 2.0, 3.0, 8.0])
    assert descents.decays_near_best(losses, slice(0, 6), 4) == slice(1, 5)
    assert descents.decays_near_best(losses, slice(0, 6), 3) == slice(1, 4)
    assert descents.decays_near_best(np.array([6.0, 4.0, 1.0, 8.0, 8.0]), slice(0, 5), 4) == slice(0, 4)
    assert descents.decays_near_best(np.arange(5.0), slice(1, 5), 3) == slice(1, 4)
    assert descents.decays_near_best(-np.arange(5.0), slice(0, 4), 3) == slice(1, 4)
    assert descents.decays_near_best(losses, slice(2, 5), 4) == slice(2, 5)


def test_losses_of_decays_left_out_change_as_the_nearest_one():
    losses = np.array([9.0, 4.0, 2.0, 3.0, 3.5, 2.5])
    descents.update_losses(losses, slice(1, 4), np.array([3.0, 1.5, 2.0]))
    np.testing.assert_array_equal(losses, [8.0, 3.0, 1.5, 2.0, 2.5, 1.5])


def test_a_minimum_is_told_by_the_hessian_of_all_columns_not_by_its_diagonal():
    """Columns far from zero without an intercept: their diagonal tells a hundredth of the distance."""
    generator = np.random.default_rng(0)
    x = scipy.sparse.csr_array(generator.normal(100, 1, (400, 5)))
    y = (x @ generator.normal(size=5))[:, None] + generator.normal(size=(400, 1))
    descent = Descent(x, y, None, "squared", 1, has_intercept=False, total=400)
    descent.minimize(1e-9, 1e-4, is_last=True)
    assert descent.is_minimum
    least = np.linalg.lstsq(x.toarray(), y, rcond=None)[0]
    assert descent.objective(1e-9) < 1.001 * ((x @ least - y) ** 2).mean() / 2


def test_a_minimization_of_few_passes_is_none():
    x, y = separable_rows()
    descent = logistic_descent(x, y)
    assert descent.minimize(1e-9, 1e-6, 3) <= 4
    assert not descent.is_minimum


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [1, 3, 5, 8])
def test_classes_that_one_column_tells_are_learned_where_rounding_leaves_no_curvature(seed):
    """A step of conjugate gradients of length 0 was taken again for ever, on a third of the seeds."""
    rows = np.arange(120)
    places = np.ravel(np.column_stack([rows % 3, 3 + rows % 8]))
    x = scipy.sparse.csr_array((np.tile([1, 0.5], 120), (np.repeat(rows, 2), places)), shape=(120, 11))
    model = SparseClassifier(random_state=seed).fit(x, rows % 3)
    assert model.score(x, rows % 3) == 1


def test_a_descent_ends_where_it_can_make_no_step(monkeypatch):
    monkeypatch.setattr(Descent, "_curved", lambda descent, means, along: -along)
    x, y = rows_of(40)
    descent = logistic_descent(x, y)
    assert descent.minimize(0.0, 1e-9) == 0
    assert not descent.is_minimum


def test_a_descent_ends_after_some_hessians(monkeypatch):
    """As with float32 rows whose weights differ by 1e18: 2,000 Newton steps with a Hessian each took minutes."""
    solve = Descent._solve

    def short(descent, *given):
        direction, moves, promised, _, _ = solve(descent, *given)
        return direction * 1e-9, moves * np.float32(1e-9), promised * 1e-9, 1, False

    monkeypatch.setattr(Descent, "_solve", short)
    x, y = rows_of(40)
    assert logistic_descent(x, y).minimize(1e-3, 1e-9) < 150
