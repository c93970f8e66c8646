"""Estimators with an L1 penalty: the weights of scikit-learn's ElasticNet and LogisticRegression, with exact zeros."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

import workbench as wb
from workbench.bridges.sklearn import SparseClassifier, SparseClassifierCV, SparseRegressor
from workbench.bridges.sklearn_base import Estimator
from workbench.command import cli

OF_STEPS = (
    *("check_estimators_partial_fit_n_features", "check_n_features_in_after_fitting", "check_fit_score_takes_y"),
)
"""Checks that call partial_fit."""


def numbers(seed: int = 0) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Rows of 30 sparse columns, five of which the numbers depend on."""
    generator = np.random.default_rng(seed)
    x = scipy.sparse.random_array((200, 30), density=0.3, rng=generator, format="csr")
    return x, x[:, :5].sum(axis=1) * 3 + generator.normal(size=200) / 2


def changed_to(x: scipy.sparse.csr_array, container: str) -> object:
    """X as csr, csc, coo, or as a dense array."""
    return x.toarray() if container == "dense" else x.asformat(container)


@pytest.mark.parametrize("container", ["csr", "csc", "coo", "dense"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_weights_are_those_of_elastic_net(container: str, l1_ratio: float) -> None:
    x, y = numbers()
    ours = SparseRegressor(alpha=0.02, l1_ratio=l1_ratio, tol=1e-9).fit(changed_to(x, container), y)
    theirs = ElasticNet(alpha=0.02, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000).fit(x, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)
    assert ours.dual_gap_ <= 1e-9 * np.var(y)
    assert ours.alpha_ == 0.02


@pytest.mark.parametrize("case", ["sparse", "full column far from 0", "all stored", "weights of 0", "two index types"])
def test_csc_rows_are_trained_without_a_copy_by_rows(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = numbers(9)
    weights = np.random.default_rng(9).integers(0, 3, 200) if case == "weights of 0" else None
    if case == "full column far from 0":
        x = scipy.sparse.hstack([x, 1000 + np.random.default_rng(9).normal(size=(200, 1))], format="csr")
    elif case == "all stored":
        x = scipy.sparse.csr_array(x.toarray() + 1)
    by_columns = x.tocsc()
    if case == "two index types":
        by_columns.indices = by_columns.indices.astype(np.int64)
    before, converted = (by_columns.data.copy(), by_columns.indices.copy()), []
    parameters = {"alpha": 0.02, "l1_ratio": 0.9}
    of_rows = [SparseRegressor(**parameters).fit(x, y, weights), SparseClassifier(**parameters).fit(x, y > 0, weights)]
    monkeypatch.setattr("workbench.bridges.sklearn_base.Estimator._warn_if_worse", lambda *_: None)  # it scores rows
    tocsr = scipy.sparse.csc_array.tocsr

    def noted(part: scipy.sparse.csc_array, copy: bool = False) -> scipy.sparse.csr_array:
        """Convert a part of the columns as ever; note all of them."""
        converted.extend([1] * (part.shape == by_columns.shape))
        return tocsr(part, copy=copy)

    monkeypatch.setattr(scipy.sparse.csc_array, "tocsr", noted)
    made = [SparseRegressor(**parameters), SparseClassifier(**parameters)]
    of_columns = [made[0].fit(by_columns, y, weights), made[1].fit(by_columns, y > 0, weights)]
    assert not converted
    for ours, expected in zip(of_columns, of_rows, strict=True):
        np.testing.assert_array_equal(ours.coef_, expected.coef_)
        np.testing.assert_array_equal(ours.intercept_, expected.intercept_)
    for array, same in zip((by_columns.data, by_columns.indices), before, strict=True):
        np.testing.assert_array_equal(array, same)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_weights_are_those_of_logistic_regression(l1_ratio: float) -> None:
    x, y = numbers(1)
    y, weights = np.where(y > np.median(y), "yes", "no"), np.random.default_rng(0).integers(1, 4, 200)
    ours = SparseClassifier(alpha=0.01, l1_ratio=l1_ratio, tol=1e-9).fit(x, y, weights)
    theirs = LogisticRegression(
        C=1 / (0.01 * weights.sum()), l1_ratio=l1_ratio, solver="saga", tol=1e-9, max_iter=50_000
    ).fit(x, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-4)


def test_several_classes_are_trained_one_against_the_rest() -> None:
    x, y = numbers(2)
    y = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    many = SparseClassifier(alpha=0.01, l1_ratio=1.0, tol=1e-8).fit(x, y)
    for k in range(3):
        single = SparseClassifier(alpha=0.01, l1_ratio=1.0, tol=1e-8).fit(x, y == k)
        np.testing.assert_allclose(many.coef_[k], single.coef_[0], atol=1e-4)
    chances = many.predict_proba(x)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(many.classes_[chances.argmax(axis=1)], many.predict(x))
    assert not SparseClassifier(search=0).fit(x, y)._is_one_against_rest


def test_a_saved_model_of_several_classes_has_the_probabilities_of_the_estimator(tmp_path: Path) -> None:
    x, y = numbers(2)
    y = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    ours = SparseClassifier(alpha=0.01, l1_ratio=1.0, tol=1e-8).fit(x, y)
    ours.save(tmp_path / "kept")
    kept = wb.load_model(tmp_path / "kept")
    np.testing.assert_allclose(kept.predict_proba(x), ours.predict_proba(x), atol=1e-6)
    rows, made = tmp_path / "rows.svm", tmp_path / "made"
    dump_svmlight_file(x, y, str(rows))
    options = ["--l1-ratio", "1", "--decay", "0.01", "--held-out", "0", "--save", str(made)]
    done = CliRunner().invoke(cli.app, ["train", str(rows), *options])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(wb.load_model(made).predict_proba(x), ours.predict_proba(x), atol=1e-3)


def test_alpha_is_chosen_on_held_out_rows() -> None:
    x, y = numbers(3)
    found = SparseRegressor(l1_ratio=1.0, random_state=0).fit(x, y)
    assert found.search_.method == "coordinate descent"
    assert len(found.search_.losses) == 20
    assert found.score(x, y) > 0.6
    again = SparseRegressor(l1_ratio=1.0, alpha=found.alpha_).fit(x, y)
    np.testing.assert_allclose(found.coef_, again.coef_, atol=0.05)
    folds = SparseClassifierCV(l1_ratio=0.9, cv=3, search=6, random_state=0).fit(x, y > 0)
    assert (folds.search_.folds, len(folds.search_.losses)) == (3, 6)


def test_coefficients_become_sparse_and_dense_again() -> None:
    x, y = numbers(4)
    made = SparseClassifier(l1_ratio=1.0, alpha=0.02).fit(x, y > 0)
    full, scores = made.coef_.copy(), made.decision_function(x)
    assert made.sparsify() is made
    assert made.coef_.format == "csr"
    assert made.coef_.nnz == np.count_nonzero(full) < 30
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).coef_.toarray(), full)
    np.testing.assert_array_equal(made.decision_function(x), scores)
    np.testing.assert_array_equal(made.densify().coef_, full)


def test_a_dense_column_far_from_0_is_fitted() -> None:
    generator = np.random.default_rng(6)
    x = generator.normal(size=(300, 3)) + np.array([1e6, 0, 0])
    y = (x[:, 0] - 1e6) * 2 + generator.normal(size=300) / 10
    made = SparseRegressor(l1_ratio=1.0, alpha=0.01, tol=1e-8).fit(x, y)
    assert made.coef_[0] == pytest.approx(1.99, abs=0.05)
    assert made.score(x, y) > 0.99


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"optimizer": "adam"}, "optimizer is set, too"),
        ({"lazy": "exact"}, "lazy is set, too"),
        ({"early_stopping": True}, "early_stopping is set, too"),
        ({"alpha": 0.0}, "expected a finite number above 0"),
        ({"model": "factorization_machine"}, "linear models are"),
        ({"l1_ratio": 1.5}, "l1_ratio"),
    ],
)
def test_what_has_no_l1_penalty_is_refused(parameters: dict, words: str) -> None:
    x, y = numbers()
    with pytest.raises(ValueError, match=words):
        SparseRegressor(**{"l1_ratio": 1.0, **parameters}).fit(x, y)


def test_partial_fit_is_refused_with_what_to_type() -> None:
    x, y = numbers()
    with pytest.raises(ValueError, match=r'l1_ratio=0, optimizer="ftrl"'):
        SparseRegressor(l1_ratio=0.5).partial_fit(x, y)
    with pytest.raises(ValueError, match=r"estimator.fit\(X, y\)"):
        SparseClassifier(l1_ratio=0.5).partial_fit(x, y > 0, classes=[False, True])


def test_too_few_sweeps_give_a_warning() -> None:
    x, y = numbers()
    with pytest.warns(ConvergenceWarning, match="before the minimum"):
        SparseRegressor(l1_ratio=1.0, alpha=1e-4, max_iter=1).fit(x, y)


def test_train_takes_the_share_of_l1(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = numbers()
    made = wb.train(x, y, l1_ratio=1.0, alpha=0.05)
    assert np.count_nonzero(made.coef_) < 30
    assert "Trained linear" in capsys.readouterr().err


@parametrize_with_checks([SparseClassifier(l1_ratio=0.5, alpha=0.01), clone(SparseRegressor(l1_ratio=1.0, alpha=0.01))])
def test_estimator_checks_of_scikit_learn(estimator: Estimator, check) -> None:
    if check.func.__name__ in OF_STEPS:
        pytest.skip("partial_fit is refused with an L1 penalty")
    check(estimator)
