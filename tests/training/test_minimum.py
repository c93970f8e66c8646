"""Linear models reach the minimum of their own objective: any scales, offsets, rare classes, sizes of targets."""

import numpy as np
import pytest
import scipy.sparse
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score

import workbench as wb
from tests.support.commands import run
from tests.support.linear_rows import drawn
from tests.support.random_tables import excess, table, task_of
from workbench.bridges.sklearn import SparseClassifier, SparseClassifierCV, SparseRegressor
from workbench.models.scaling import FAR_IN_FLOAT32, Scaling, linear_scaling, needs_float64

NEAR = 1e-3
"""Distance to the minimum, as a share of the objective, with which a training has reached it."""

DUAL = {"execution": "dual", "optimizer": "sgd", "lazy": "exact"}
WAYS = {
    "search": lambda x, draw: {},
    "given decay": lambda x, draw: {"alpha": 10.0 ** draw(-8, 0)},
    "dual ascent": lambda x, draw: DUAL | {"alpha": 10.0 ** draw(-4, 0) * float((x**2).mean())},
    "no intercept": lambda x, draw: {"fit_intercept": False},
    "passes given": lambda x, draw: {"search": 4, "max_iter": 40},
}
"""Parameters of estimators by the way to train; `draw` are random numbers between two bounds."""
FORMS = {
    "csr": scipy.sparse.csr_array,
    "dense": np.asarray,
    "float32": lambda x: x.astype(np.float32),
}
TASKS = "squared", "logistic", "softmax"


def estimator_for(task, **given):
    return (SparseRegressor if task == "squared" else SparseClassifier)(random_state=0, **given)


def require_minimum_of_table(seed, task, way, form):
    x, scores = table(seed)
    x, y = FORMS[form](x), task_of(scores, task)
    full = x.toarray() if form == "csr" else x
    given = WAYS[way](full, np.random.default_rng(seed).uniform)
    assert excess(estimator_for(task, **given).fit(x, y), full, y) < NEAR


@pytest.mark.parametrize("seed", range(40))
def test_a_random_table_is_trained_to_the_minimum(seed):
    """With each way, form and task in turn; a warning that it is not reached would be an error."""
    require_minimum_of_table(seed, TASKS[seed % 3], list(WAYS)[seed // 8 % 5], list(FORMS)[seed // 3 % 3])


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", TASKS)
def test_two_hundred_random_tables_are_trained_to_the_minimum(task, way, form):
    for seed in range(200):
        require_minimum_of_table(seed, task, way, form)


SHIPPED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
    "linnerud": datasets.load_linnerud,
}


@pytest.mark.parametrize(
    ("given", "is_folds"),
    [({}, False), ({}, True), ({"alpha": 1e-3}, False), (DUAL | {"alpha": 1.0}, False), ({"search": 0}, False)],
    ids=["search", "folds", "given decay", "dual ascent", "nothing searched"],
)
@pytest.mark.parametrize("name", SHIPPED)
def test_data_of_scikit_learn_is_trained_to_the_minimum(name, given, is_folds):
    x, y = SHIPPED[name](return_X_y=True)
    x, y = (x[y < 3][::2, 16:48], y[y < 3][::2]) if name == "digits" else (x, y)
    is_classes = y.dtype.kind == "i"
    if is_folds:
        estimator = SparseClassifierCV(random_state=0, cv=3) if is_classes else SparseRegressor(random_state=0)
    else:
        estimator = estimator_for("softmax" if is_classes else "squared", **given)
    targets = [y] if y.ndim == 1 else [y, *y.T]
    for target in targets:
        for form in (np.asarray, scipy.sparse.csr_array):
            assert excess(estimator.fit(form(x), target), x, target) < NEAR


def years_and_places(rows=1500):
    """Return X of a year, latitude and longitude, and scores that they explain but for a tenth."""
    generator = np.random.default_rng(0)
    x = np.column_stack([generator.integers(1990, 2026, rows), *generator.normal([[37.5], [-120]], 2, (2, rows))])
    scores = (x - [2008, 37.5, -120]) @ [0.1, 0.5, -0.5]
    return x, scores + np.sqrt(0.1) * scores.std() * generator.normal(size=rows)


STEPS = [
    {"optimizer": "adagrad"},
    {"max_iter": 30},
    {"optimizer": "adagrad", "early_stopping": True, "max_iter": 50},
    {"optimizer": "adagrad", "format": "dense"},
    {"optimizer": "adagrad", "lazy": "exact", "shuffle": "once"},
]
OTHER_STEPS = [{"optimizer": "adam", "learning_rate": 0.01}, {"optimizer": "sgd", "lazy": "exact"}]
"""Optimizers that step the same shifted and scaled columns as adagrad; each compiles loops for every loss and form."""


@pytest.mark.parametrize("columns", [[0], [1], [0, 1, 2]], ids=str)
@pytest.mark.parametrize(
    "given",
    [
        *({}, {"alpha": 1e-6}, DUAL | {"alpha": 1e-4}, *STEPS),
        *(pytest.param(given, marks=pytest.mark.exhaustive) for given in OTHER_STEPS),
    ],
    ids=str,
)
def test_years_and_places_are_learned(columns, given):
    x, scores = years_and_places()
    x = x[:, columns]
    least = np.linalg.lstsq(np.column_stack([x - x.mean(axis=0), np.ones(len(x))]), scores, rcond=None)[0]
    best = r2_score(scores, (x - x.mean(axis=0)) @ least[:-1] + least[-1])
    for form in (scipy.sparse.csr_array, np.float32):
        ours = SparseRegressor(random_state=0, **given).fit(form(x), scores)
        assert ours.score(form(x), scores) > best - (0.05 if given in STEPS + OTHER_STEPS else 0.001)
    y = scores > np.median(scores)
    reference = LogisticRegression(C=1e4).fit((x - x.mean(axis=0)) / x.std(axis=0), y)
    ours = SparseClassifier(random_state=0, **given).fit(x, y)
    assert ours.score(x, y) > reference.score((x - x.mean(axis=0)) / x.std(axis=0), y) - 0.02


def test_years_are_learned_in_parts_of_the_rows():
    x, scores = years_and_places()
    ours = SparseRegressor(random_state=0, optimizer="adagrad")
    for _ in range(20):
        ours.partial_fit(x[:700], scores[:700]).partial_fit(scipy.sparse.csr_array(x[700:]), scores[700:])
    assert ours.score(x, scores) > 0.85


def test_timestamps_in_seconds_keep_what_float64_has_of_them():
    generator = np.random.default_rng(0)
    x = 1.6e9 + np.cumsum(generator.random((800, 1)), axis=0)
    y = x[:, 0] - x.mean()
    for form in (scipy.sparse.csr_array, np.asarray):
        ours = SparseRegressor(random_state=0).fit(form(x), y)
        assert ours.score(form(x), y) > 0.999


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", [{}, {"alpha": 1e-4}, DUAL | {"alpha": 1e-4}, {"optimizer": "adagrad"}], ids=str)
@pytest.mark.parametrize(
    ("scale", "offset"), [(1e19, 0), (1e-25, 0), (1, 1e9), (1e5, 2e5), (1e120, 0), (1e-120, 0)], ids=str
)
def test_numbers_of_any_size_are_predicted_as_well(dtype, given, scale, offset):
    x, _ = drawn(rows=400, dtype=dtype)
    generator = np.random.default_rng(0)
    y = x @ generator.normal(size=12) + 0.1 * generator.normal(size=400)
    usual, ours = (SparseRegressor(random_state=0, **given).fit(x, target) for target in (y, scale * y + offset))
    expected = r2_score(y, usual.predict(x))
    loss = 0.05 if given.get("optimizer") == "adagrad" else 0.005
    assert r2_score(y, (ours.predict(x).astype(np.float64) - offset) / scale) > expected - loss


@pytest.mark.parametrize("rows", [1000, 3000, 30_000])
@pytest.mark.parametrize("rare", [1, 2])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_probabilities_of_a_rare_class_are_its_share(rows, rare, is_reversed):
    generator = np.random.default_rng(rows)
    x = scipy.sparse.random_array((rows, 30), density=0.05, format="csr", rng=generator, dtype=np.float32)
    y = np.zeros(rows, np.int64)
    y[generator.choice(rows, rare, replace=False)] = 1
    chances = SparseClassifier(random_state=0).fit(x, 1 - y if is_reversed else y).predict_proba(x).astype(np.float64)
    assert chances[:, 0 if is_reversed else 1].mean() == pytest.approx(rare / rows, rel=0.3)
    share = rare / rows
    constant = -share * np.log(share) - (1 - share) * np.log1p(-share)
    chances /= chances.sum(axis=1, keepdims=True)
    assert log_loss(1 - y if is_reversed else y, chances) < 1.001 * constant


def test_probabilities_of_several_rare_classes_are_their_shares():
    generator = np.random.default_rng(0)
    x = scipy.sparse.random_array((20_000, 20), density=0.1, format="csr", rng=generator, dtype=np.float32)
    y = np.repeat([0, 1], 10_000)
    y[[5]], y[[70, 11_000, 15_000]] = 2, 3
    shares = np.bincount(y) / len(y)
    chances = SparseClassifier(random_state=0).fit(x, y).predict_proba(x)
    np.testing.assert_allclose(chances.mean(axis=0, dtype=np.float64), shares, rtol=0.3)


# Dual ascent ends at a small duality gap, or says that it does not.


def hard_rows():
    generator = np.random.default_rng(0)
    x = scipy.sparse.random_array((400, 30), density=0.2, format="csr", rng=generator)
    scores = x @ generator.normal(size=30) + 0.3 * generator.normal(size=400)
    return x, scores


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_dual_ascent_that_is_cut_off_warns(task, form):
    x, scores = hard_rows()
    x, y = x if form == "csr" else x.toarray(), task_of(scores, task)
    given = DUAL | {"format": form, "alpha": 1 / (1e4 * 400)}
    given |= {"lazy": "on"} if form == "dense" else {}
    with pytest.warns(ConvergenceWarning, match=r"ended after 2 passes .* before the minimum.*\nRaise max_iter"):
        estimator_for(task, **given, max_iter=2).fit(x, y)
    for most in ({"max_iter": 2000}, {}):
        ours = estimator_for(task, **given, **most).fit(x, y)
        assert excess(ours, x if form == "dense" else x.toarray(), y) < 1e-5
        assert ours.n_iter_ < 2000


def test_a_search_that_is_cut_off_warns():
    x, scores = table(5)
    with pytest.warns(ConvergenceWarning, match="before the minimum of its objective"):
        SparseClassifierCV(random_state=0, max_iter=1, search=2).fit(x, scores > np.median(scores))


def test_the_function_train_warns_and_trains_a_given_decay_to_the_minimum():
    x, scores = table(5)
    assert excess(wb.train(x, scores, alpha=1e-3, random_state=0), x, scores) < NEAR
    with pytest.warns(ConvergenceWarning, match="before the minimum"):
        wb.train(*hard_rows(), alpha=1e-8, execution="dual", optimizer="sgd", lazy="exact", max_iter=1)


# The command.


@pytest.fixture
def years(tmp_path):
    """Return the path of svmlight rows with a year, latitude and longitude, labels 0 and 1."""
    x, scores = years_and_places(600)
    path = tmp_path / "years.svm"
    datasets.dump_svmlight_file(x, (scores > np.median(scores)).astype(int), str(path))
    return ["--dataset", "svmlight", "--path", str(path), "--held-out", "0.2"]


def held_out_accuracy(output):
    return float(output.split("held-out accuracy ")[1].split(";")[0].split()[0])


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--optimizer", "adagrad", "--epochs", "20"],
        ["--execution", "dual", "--optimizer", "sgd", "--decay", "1e-3"],
    ],
    ids=str,
)
def test_the_command_learns_years(years, given):
    given = [*given, "--epochs", "200"] if "dual" in given else given
    came = run("train", *years, *given)
    assert came.exit_code == 0, came.output
    assert "Note" not in came.output
    assert held_out_accuracy(came.output) > 0.85


def test_the_command_notes_that_dual_ascent_was_cut_off(years):
    given = ["--execution", "dual", "--optimizer", "sgd", "--decay", "1e-8", "--epochs", "1"]
    assert "Note: dual ascent ended" in run("train", *years, *given).output


# Shifted and scaled columns.


@pytest.mark.parametrize("has_intercept", [False, True])
def test_weights_inside_are_those_outside(has_intercept):
    x, scores = table(13)
    y = np.column_stack([scores, 1e6 * scores + 1e7])
    standard = linear_scaling(scipy.sparse.csr_array(x), y, None, "squared", has_intercept=has_intercept)
    point = np.random.default_rng(0).normal(size=(x.shape[1] + 1, 2))
    point[-1] *= has_intercept
    outside = standard.outside(point)
    np.testing.assert_allclose(standard.inside(outside), point, rtol=1e-6, atol=1e-6)
    expected = standard.rows(x) @ point[:-1] + point[-1]
    np.testing.assert_allclose(standard.targets(x @ outside[:-1] + outside[-1]), expected, rtol=1e-5, atol=1e-5)


def test_rows_that_lack_a_shifted_column_are_shifted_too():
    x = scipy.sparse.csr_array([[3.0, 0.0], [0.0, 2.0], [5.0, 0.0]])
    standard = Scaling(np.array([4.0, 0.0]), np.array([2.0, 1.0]))
    expected = [[-0.5, 0.0], [-2.0, 2.0], [0.5, 0.0]]
    np.testing.assert_array_equal(standard.rows(x).toarray(), expected)
    np.testing.assert_array_equal(standard.rows(x.toarray()), expected)
    halves = scipy.sparse.csr_array(([1.0, 2.0, 2.0, 5.0], [0, 0, 1, 0], [0, 2, 3, 4]), shape=(3, 2))
    np.testing.assert_array_equal(standard.rows(halves).toarray(), expected)


def test_columns_near_zero_of_like_scales_stay_as_they_are():
    x, _ = drawn(rows=300)
    standard = linear_scaling(x, np.zeros((300, 1)), None, "logistic", has_intercept=True)
    assert standard.is_plain
    assert standard.rows(x) is x


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["csr", "dense", "float32"])
def test_columns_far_from_zero_are_found_wherever_in_the_rows_they_vary(seed, form):
    random = np.random.default_rng(seed)
    usual = random.random((700, 6)) + 0.1
    columns = {
        "usual": random.random(700) + 1,
        "far": 1e7 + random.random(700),
        "constant": np.full(700, 1e7),
        "varies late": np.r_[np.full(600, 5e4), 5e4 + 60 * random.random(100)],
        "varies early": np.r_[1e3 * random.random(100), np.full(600, 500.0)],
        "one jump": np.r_[0.5, np.full(699, 2e6)],
        "zeros": np.where(random.random(700) < 0.5, 0, 1e6 + random.random(700)),
    }
    for name, column in columns.items():
        x = usual.copy()
        x[:, 3] = column
        filled = np.count_nonzero(x, axis=0) >= 0.99 * len(x)
        x_given = FORMS[form](x)
        values = np.asarray(x_given.toarray() if form == "csr" else x_given, np.float64)
        far = filled & (values.std(axis=0) > 0) & (np.abs(values.mean(axis=0)) > FAR_IN_FLOAT32 * values.std(axis=0))
        assert needs_float64(x_given, None) == far.any(), name


def test_a_column_that_is_stored_twice_is_not_taken_for_two():
    x = scipy.sparse.csr_array((np.ones(6), np.array([0, 0, 1, 1, 0, 1]), np.array([0, 2, 4, 6])), shape=(3, 2))
    assert linear_scaling(x, np.zeros((3, 1)), None, "logistic", has_intercept=True).moved.tolist() == []
    whole = scipy.sparse.csr_array(np.array([[7.0, 1], [7.1, 2], [6.9, -1]]))
    assert linear_scaling(whole, np.zeros((3, 1)), None, "logistic", has_intercept=True).moved.tolist() == [0]
