"""Arrays that scikit-learn's validation would return unchanged are validated here, and found to be what it finds."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from workbench.bridges import sklearn_base
from workbench.bridges.sklearn import SparseClassifier, SparseRegressor

FEW = {"max_iter": 2, "random_state": 0, "learning_rate": 0.1}
FORMS = {
    "csr array": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "dense": lambda x: x,
    "columns first": np.asfortranarray,
    "csc array": sp.csc_array,
    "lists": lambda x: x.tolist(),
}
LABELS = {
    "whole": lambda y: y,
    "narrow": lambda y: y.astype(np.uint8),
    "truth": lambda y: y > 0,
    "text": lambda y: np.array(["no", "yes"])[y],
    "objects": lambda y: np.array(["no", "yes"], object)[y],
    "floats": lambda y: y.astype(float),
    "strided": lambda y: np.repeat(y, 2)[::2],
}


def rows(dtype=np.float32, count=40):
    source = np.random.default_rng(3)
    x = source.normal(size=(count, 6)) * (source.random((count, 6)) < 0.5)
    return x.astype(dtype), (x.sum(axis=1) > 0).astype(int)


@pytest.fixture
def by_scikit_learn(monkeypatch):
    """A call after which no array counts as plain."""
    return lambda: monkeypatch.setattr(sklearn_base, "is_plain", lambda x: False)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_every_form_of_x_gives_the_model_that_scikit_learns_validation_gives(form, dtype, by_scikit_learn):
    x, y = rows(dtype)
    x = FORMS[form](x)
    ours = [SparseClassifier(**FEW).fit(x, y), SparseRegressor(**FEW).fit(x, np.float64(y))]
    by_scikit_learn()
    for one, target in zip(ours, (y, np.float64(y)), strict=True):
        other = type(one)(**FEW).fit(x, target)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.predict(x), other.predict(x))
        assert one.n_features_in_ == other.n_features_in_ == 6


@pytest.mark.parametrize("labels", LABELS)
def test_every_kind_of_labels_gives_the_classes_that_scikit_learns_validation_gives(labels, by_scikit_learn):
    x, y = rows()
    y = LABELS[labels](y)
    one = SparseClassifier(**FEW).fit(x, y)
    by_scikit_learn()
    other = SparseClassifier(**FEW).fit(x, y)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.predict(x), other.predict(x))


def _refusal(estimator, x, y):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - both are compared
        estimator(**FEW).fit(x, y)
    return type(caught.value), str(caught.value)


GIVEN, LABELLED = rows()
REFUSED = {
    "nan in csr": (sp.csr_array(np.where(GIVEN.max() == GIVEN, np.nan, GIVEN)), LABELLED),
    "infinite": (np.where(GIVEN.max() == GIVEN, np.inf, GIVEN), LABELLED),
    "no rows": (GIVEN[:0], LABELLED[:0]),
    "no columns": (GIVEN[:, :0], LABELLED),
    "one dimension": (GIVEN[:, 0], LABELLED),
    "complex": (GIVEN.astype(complex), LABELLED),
    "fewer labels": (GIVEN, LABELLED[:-1]),
    "two columns of labels": (GIVEN, np.stack([LABELLED, LABELLED], axis=1)),
    "nan in y": (GIVEN, np.where(LABELLED > 0, np.nan, LABELLED)),
    "no y": (GIVEN, None),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("estimator", [SparseClassifier, SparseRegressor])
def test_what_is_wrong_is_refused_in_scikit_learns_words(case, estimator, by_scikit_learn):
    x, y = REFUSED[case]
    if estimator is SparseRegressor and case == "two columns of labels":
        pytest.skip("a regressor takes several numbers a row")
    ours = _refusal(estimator, x, y)
    by_scikit_learn()
    assert ours == _refusal(estimator, x, y)


def test_numbers_are_no_labels_and_many_classes_are_pointed_out():
    x, y = rows()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SparseClassifier(**FEW).fit(x, y + 0.5 * x[:, 0])
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        SparseClassifier(**FEW).fit(x, np.arange(40) % 30)
    assert any("unique classes is greater than 50%" in str(one.message) for one in noted)


def test_values_whose_sum_is_too_large_are_taken():
    x = np.full((4, 2), 3e38, np.float32)
    assert SparseClassifier(**FEW).fit(x, [0, 1, 0, 1]).n_features_in_ == 2


def test_names_of_columns_are_those_of_the_last_fit():
    x, y = rows()
    named = pd.DataFrame(x, columns=list("abcdef"))
    estimator = SparseClassifier(**FEW).fit(named, y)
    assert estimator.feature_names_in_.tolist() == list("abcdef")
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        estimator.predict(x)
    estimator.fit(x[:, :5], y)
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.n_features_in_ == 5
    with pytest.raises(ValueError, match="X has 6 features, but SparseClassifier is expecting 5 features"):
        estimator.predict(x)
    with pytest.raises(ValueError, match="X has 6 features, but SparseClassifier is expecting 5 features"):
        estimator.partial_fit(x, y)


def _python_calls(work):
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_a_fit_of_few_rows_makes_few_calls(by_scikit_learn):
    x, y = sp.csr_array(rows(count=100)[0]), rows(count=100)[1]

    def fit():
        """Train 2 epochs."""
        SparseClassifier(**FEW).fit(x, y)

    fit()
    assert _python_calls(fit) < 750
    by_scikit_learn()
    assert _python_calls(fit) > 750, "the check can fail"


@pytest.mark.parametrize("name", ["train.csv", Path("train.csv")])
def test_a_path_instead_of_a_matrix_is_told_what_to_type(name):
    x, y = np.eye(4, dtype=np.float32), [0, 1, 0, 1]
    with pytest.raises(TypeError, match=r"X is the path 'train.csv'; .*\nType model = wb.train\('train.csv'\)"):
        SparseClassifier().fit(name, y)
    model = SparseClassifier().fit(x, y)
    with pytest.raises(TypeError, match=r"X is the path 'train.csv'; .*\nType .*apply\('train.csv'\)"):
        model.predict(name)


def test_labels_in_messages_are_plain_numbers():
    x = np.eye(4, dtype=np.float32)
    with pytest.raises(ValueError, match="y has one class, 0;"):
        SparseClassifier().fit(x, np.zeros(4, np.int64))
    model = SparseClassifier().partial_fit(x, np.array([0, 1, 0, 1]), classes=[0, 1])
    with pytest.raises(ValueError, match="y has the label 7, which"):
        model.partial_fit(x, np.array([0, 7, 0, 1]))


@pytest.mark.parametrize("kind", [SparseClassifier, SparseRegressor])
def test_masked_values_are_refused_and_masks_without_any_are_taken(kind):
    generator = np.random.default_rng(0)
    x, y = generator.random((40, 5)), generator.integers(0, 2, 40)
    masked_x, masked_y = (np.ma.masked_array(array, mask=array < 0.5) for array in (x, y))
    with pytest.raises(ValueError, match=r"X is a masked array with \d+ masked values.*\nType X.filled\(0\)"):
        kind(**FEW).fit(masked_x, y)
    with pytest.raises(ValueError, match="y is a masked array with"):
        kind(**FEW).fit(x, masked_y)
    fitted = kind(**FEW).fit(np.ma.masked_array(x), np.ma.masked_array(y))
    with pytest.raises(ValueError, match="X is a masked array with"):
        fitted.predict(masked_x)
    np.testing.assert_array_equal(fitted.predict(x), kind(**FEW).fit(x, y).predict(x))
