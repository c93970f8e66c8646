"""Estimators train batches in the format that is asked for, with the same model; files say which it was."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import workbench as wb
from tests.support.linear_rows import drawn
from workbench.bridges.sklearn import (
    FactorizationMachineRegressor,
    SparseClassifier,
    SparseClassifierCV,
    SparseRegressor,
)
from workbench.training import learner

SHORT = {"random_state": 0, "max_iter": 2, "batch_rows": 32}
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def format_of(estimator):
    """Return the format of the batches that a fitted estimator was trained on."""
    return estimator._learner.setup.format


def targets_of_dense(case):
    """Return each value of a case; none of other optimizers, which no line of an estimator tells from these."""
    return set(case.values()) if case["optimizer"] in ("adam", "adagrad") else set()


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.covering(targets=targets_of_dense)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad", "momentum"])
@pytest.mark.parametrize("estimator", [SparseClassifier, SparseRegressor])
def test_dense_batches_train_the_model_of_csr(estimator, optimizer, dtype):
    x, y = drawn(dtype=dtype)
    ours = estimator(**SHORT, optimizer=optimizer, format="dense").fit(x.toarray(), y)
    same = estimator(**SHORT, optimizer=optimizer, lazy="off").fit(x, y)
    assert format_of(ours) == "dense"
    assert format_of(same) == "csr"
    assert ours.coef_.dtype == dtype
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=0, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(ours.intercept_, same.intercept_, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize(
    "given",
    [
        {"shuffle": False},
        {"shuffle": "once"},
        {"early_stopping": True, "max_iter": 6},
        {"batch_rows": None},
        {"fit_intercept": False},
        {"optimizer": "sgd", "execution": "dual", "alpha": 0.1, "lazy": "exact", "max_iter": 200},
        {"class_weight": "balanced"},
        {"model": "factorization_machine_logistic", "width": 3},
    ],
)
def test_other_parameters_mean_the_same_of_dense_batches(given):
    x, y = drawn(rows=300)
    given = {**SHORT, **given}
    ours = SparseClassifier(**given, format="dense").fit(x.toarray(), y)
    same = SparseClassifier(**given).fit(x, y)
    np.testing.assert_allclose(ours.coef_, same.coef_, rtol=0, atol=1e-9)
    assert ours.n_iter_ == same.n_iter_
    np.testing.assert_array_equal(ours.predict(x), same.predict(x.toarray()))


@pytest.mark.parametrize("kind", ["fortran", "strided", "frame", "read_only", "csr", "csc", "int64"])
def test_any_input_is_trained_dense(kind):
    x, y = drawn()
    dense = x.toarray()
    expected = SparseClassifier(**SHORT, format="dense").fit(dense, y).coef_
    given = {
        "fortran": np.asfortranarray(dense),
        "strided": np.repeat(dense, 2, axis=1)[:, ::2],
        "frame": pd.DataFrame(dense, columns=[f"c{place}" for place in range(dense.shape[1])]),
        "read_only": dense.copy(),
        "csr": x,
        "csc": scipy.sparse.csc_matrix(x),
        "int64": np.round(dense * 10).astype(np.int64),
    }[kind]
    if kind == "read_only":
        given.flags.writeable = False
    if kind == "int64":
        expected = SparseClassifier(**SHORT, format="dense").fit(given.astype(np.float32), y).coef_
    kept = given.copy()
    ours = SparseClassifier(**SHORT, format="dense").fit(given, y)
    np.testing.assert_allclose(ours.coef_, expected, rtol=0, atol=1e-12)
    assert (kept != given).sum().sum() == 0
    assert len(ours.predict(given)) == len(y)


def test_rows_are_held_as_asked(monkeypatch):
    x, _ = drawn(dtype=np.float32)
    x.data = np.ceil(x.data * 9)
    y = np.arange(x.shape[0]) % 3  # whose loops tests of kernels compile
    held = []
    take = learner.Run.take

    def noted(run, x, y, weights=None):
        """Take the rows and note the type of what the batches hold."""
        take(run, x, y, weights)
        held.append(getattr(run.batches.x, "format", run.batches.x.dtype.name))

    monkeypatch.setattr(learner.Run, "take", noted)
    fitted = [
        SparseClassifier(**SHORT, format="dense", storage=storage).fit(given, y).coef_
        for storage in ("same", "csr", "uint8", "float16")
        for given in (x, x.toarray())
    ]
    assert held == ["float32", "float32", "csr", "csr", "uint8", "uint8", "float16", "float16"]
    for coef in fitted[1:]:
        np.testing.assert_allclose(coef, fitted[0], rtol=0, atol=1e-5)


def test_auto_is_dense_for_full_arrays_alone():
    x, y = drawn()
    full = np.where(np.arange(960).reshape(80, 12) % 2, 1.0, x.toarray())
    for given, expected in ((full, "dense"), (scipy.sparse.csr_array(full), "csr"), (x.toarray(), "csr")):
        assert format_of(SparseClassifier(**SHORT, format="auto").fit(given, y)) == expected
    searched = SparseClassifierCV(random_state=0, search=3, max_iter=5, format="auto").fit(full, y)
    same = SparseClassifierCV(random_state=0, search=3, max_iter=5).fit(full, y)
    np.testing.assert_array_equal(searched.coef_, same.coef_)


@pytest.mark.parametrize("format", ["csc", "coo", "dense"])
def test_training_goes_on_by_parts_after_a_pickle_and_in_other_formats(format):
    x, y = drawn()
    one = SparseRegressor(**SHORT, format=format).partial_fit(x.toarray(), y)
    other = pickle.loads(pickle.dumps(one))
    one.partial_fit(x, y)
    other.partial_fit(np.asfortranarray(x.toarray()), y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0, atol=1e-12)
    same = SparseRegressor(**SHORT).partial_fit(x, y).partial_fit(x, y)
    np.testing.assert_allclose(one.coef_, same.coef_, rtol=0, atol=1e-12)


def test_a_grid_of_formats_and_a_clone():
    x, y = drawn()
    search = GridSearchCV(SparseClassifier(**SHORT), {"format": ["csr", "dense"]}, cv=2).fit(x.toarray(), y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] == scores[1]
    assert clone(SparseClassifier(format="dense", storage="csr")).get_params()["storage"] == "csr"


def test_what_cannot_be_is_refused_with_what_to_type(monkeypatch):
    x, y = drawn()
    with pytest.raises(ValueError, match="'format' parameter of SparseClassifier must be a str among"):
        SparseClassifier(format="sparse").fit(x, y)
    with pytest.raises(ValueError, match="storage csr is for data that is trained on dense; format csr"):
        SparseClassifier(**SHORT, storage="csr").fit(x, y)
    with pytest.raises(ValueError, match="search=4 chooses how to train, and format is set, too"):
        SparseClassifier(search=4, format="dense").fit(x, y)
    monkeypatch.setattr(learner, "bytes_memory", lambda: 1000)
    with pytest.raises(ValueError, match='Give storage="csr", which makes each batch dense'):
        SparseClassifier(**SHORT, format="dense").fit(x, y)
    FactorizationMachineRegressor(**SHORT, format="dense", storage="csr").fit(x, y)


def test_wb_train_takes_it_and_the_model_folder_says_it(tmp_path, capsys):
    x, y = drawn(rows=200)
    model = wb.train(x.toarray(), y, format="dense", random_state=0)
    assert "No alpha was searched, because format is set." in capsys.readouterr().err
    model.save(tmp_path / "dense")
    wb.train(x, y, random_state=0).save(tmp_path / "csr")
    for name in ("dense", "csr"):
        path = tmp_path / name / "model.json"
        assert json.loads(path.read_text())["setup"]["format"] == name
        assert wb.load_model(tmp_path / name).format == name
    np.testing.assert_allclose(
        wb.load_model(tmp_path / "dense").predict_proba(x), model.predict_proba(x.toarray()), rtol=1e-6
    )
    about = json.loads(path.read_text())
    del about["setup"]["format"]  # as version 0.2 wrote it
    path.write_text(json.dumps(about))
    assert wb.load_model(path.parent).format == ""


SECONDS = np.random.default_rng(0).integers(0, 1000, 500)
"""Seconds of a quarter of an hour."""


@pytest.mark.parametrize("unit", [1, 10**9])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.longdouble])
@pytest.mark.parametrize(
    "form", [np.asarray, scipy.sparse.csr_array, np.ndarray.tolist, lambda x: pd.DataFrame(x, columns=["time"])]
)
def test_whole_numbers_that_float32_does_not_hold_are_trained_in_float64(form, dtype, unit):
    """Times since 1970 in seconds and nanoseconds, of which float32 holds every 128 s."""
    x = ((1_600_000_000 + SECONDS) * unit).astype(dtype)[:, None]
    if form is scipy.sparse.csr_array and dtype is np.longdouble:
        x = x.astype(np.int64)
    ours = SparseRegressor(random_state=0).fit(form(x), SECONDS / 100)
    assert ours.score(form(x), SECONDS / 100) > 0.999
    np.testing.assert_allclose(ours.predict(form(x[:1])), SECONDS[:1] / 100, atol=0.05)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_numbers_that_float32_holds_are_trained_in_it(form, dtype):
    x = (drawn()[0].toarray() > 0.5).astype(dtype)
    x = x.astype(np.int8) if form is scipy.sparse.csr_array and dtype is np.float16 else x
    ours = SparseClassifier(**SHORT).fit(form(x), drawn()[1])
    assert ours.coef_.dtype == np.float32
