"""`wb.train`, and the estimators it returns."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import workbench as wb


def test_train_x_y_logistic(data, capsys):
    x, y = data
    model = wb.train(x, y, model="logistic", random_state=0)
    assert isinstance(model, wb.SparseClassifier)
    assert np.mean(model.predict(x) == y) > 0.8
    assert model.predict_proba(x).shape == (300, 2)
    said = capsys.readouterr().err
    assert f"Trained logistic on 300 rows x 40 features: {model.n_iter_} epochs in" in said
    assert "loss" in said
    assert (
        f"\nalpha {model.alpha_:.3g}, chosen by dual ascent from 8 settings on 5 folds of all rows. To change it:"
        in said
    )


def test_what_is_set_is_not_searched_and_a_search_of_another_size_is(data, capsys):
    assert wb.train(*data, learning_rate=0.1, random_state=0).search_ is None
    assert "No alpha was searched, because learning_rate is set." in capsys.readouterr().err
    assert len(wb.train(*data, search=3, random_state=0).search_.losses) == 3


def test_the_model_is_guessed_from_the_labels(data):
    x, _ = data
    assert isinstance(wb.train(x, np.linspace(0.05, 1.5, 300)), wb.SparseRegressor)
    three = wb.train(x, np.arange(300) % 3)
    assert three.classes_.tolist() == [0, 1, 2]


def test_updates_train_the_model_of_dense_training(data):
    assert wb.train(*data, optimizer="adam").lazy == "exact"
    assert wb.train(*data, optimizer="adagrad").lazy == "on"


def test_a_frame_with_text_trains_a_pipeline_that_takes_unseen_values():
    frame = pd.DataFrame({"color": ["red", "blue"] * 20, "size": np.arange(40.0) / 40, "y": [0, 1] * 20})
    model = wb.train(frame, label="y", random_state=0)
    new = pd.DataFrame({"color": ["red", "green"], "size": [0.1, 0.2]})
    assert pickle.loads(pickle.dumps(model)).predict(new)[0] == model.predict(new)[0] == 0
    assert model.predict_proba(new).shape == (2, 2)


def test_a_numeric_frame_trains_an_estimator_that_knows_its_columns(data):
    x, y = data
    frame = pd.DataFrame(x.toarray(), columns=[f"f{number}" for number in range(40)])
    model = wb.train(frame, y)
    assert model.feature_names_in_[0] == "f0"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "logistc"}, "Did you mean 'logistic'"),
        ({"model": "bpr"}, "has the target implicit, which no estimator has; expected one of"),
        ({"optimizer": "adm"}, "^optimizer = 'adm'.*Did you mean 'adam'"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"epocs": 3}, "has no parameter 'epocs'"),
        (
            {"sample_weight": [1.0]},
            r"no parameter 'sample_weight'.*\nType estimator.fit\(X, y, sample_weight=weights\)",
        ),
        ({"device": "cuda"}, "train on the cpu.\nType workbench train FILE --device cuda"),
        ({"n_jobs": -1}, "set for the process.\nType from kernels.threads import set_threads"),
    ],
)
def test_bad_settings_are_refused(data, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wb.train(*data, **given)


def test_classes_of_a_model_of_classes_are_asked_for(data):
    with pytest.raises(ValueError, match=r'the labels are numbers.*\nType model="linear"'):
        wb.train(data[0], np.linspace(0.05, 1.5, 300), model="logistic")


def test_labels_in_a_column_are_measured_and_scored_as_labels(data, tmp_path, capsys):
    x, y = data
    model = wb.train(x, y, random_state=0)
    said = capsys.readouterr().err.partition("on training rows")[2].partition(".\n")[0]
    with pytest.warns(UserWarning, match="column-vector y"):
        wb.train(x, y[:, None], random_state=0)
    assert said in capsys.readouterr().err
    model.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    assert again.score(x, y[:, None]) == again.score(x, y) == model.score(x, y)
    with pytest.raises(ValueError, match=r"y has the shape \[3\]; the predictions have \[300\]"):
        again.score(x, y[:3])
    numbers = wb.train(x, np.arange(300.0), random_state=0)
    numbers.save(tmp_path / "numbers")
    again = wb.load_model(tmp_path / "numbers")
    assert again.score(x, np.arange(300.0)[:, None]) == pytest.approx(numbers.score(x, np.arange(300.0)), abs=1e-6)


def test_a_frame_of_columns_that_may_have_missing_values_is_numbers():
    columns = {"a": pd.array([1, 2, 3] * 20, "Int64"), "b": pd.array([True, False] * 30, "boolean")}
    frame = pd.DataFrame(columns | {"label": pd.array([0, 1, 1] * 20, "Int64")})
    model, same = (wb.train(one, label="label", random_state=0) for one in (frame, frame.astype(float)))
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)
    assert model.predict(frame.drop(columns="label")).tolist() == [0, 1, 1] * 20


def test_columns_of_objects_that_are_numbers_are_numbers():
    values = [0.5, 3, 2, 1] * 20
    frame = pd.DataFrame({"a": values, "b": [Decimal(str(value)) for value in values], "c": ["u", "v"] * 40})
    frame["a"] = frame["a"].astype(object)
    model = wb.train(frame, [0, 1, 1, 0] * 20, random_state=0)
    assert model["train"].coef_.shape == (1, 2 + 3)
    assert model["train"].coef_[0, 0] == pytest.approx(model["train"].coef_[0, 1], rel=1e-6)
    assert model.predict(frame).tolist() == [0, 1, 1, 0] * 20


def test_a_model_is_saved_in_the_home_folder_and_below_no_file(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    model = wb.train(*data, random_state=0)
    model.save("~/model")
    assert (tmp_path / "model" / "model.json").exists()
    assert wb.load_model("~/model").features == 40
    (tmp_path / "file").touch()
    for folder in ("file", "file/model"):
        with pytest.raises(ValueError, match="file is there and holds no model; choose another folder"):
            model.save(folder, force=True)


def test_data_without_labels_is_refused(data):
    with pytest.raises(ValueError, match=r"X came without labels.\nType wb.train\(X, y\)"):
        wb.train(data[0])


def test_model_save_and_load_model(data, tmp_path):
    x, y = data
    model = wb.train(x, y, random_state=0)
    model.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    assert again.predict(x).tolist() == model.predict(x).tolist()
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x), rtol=1e-5)
    with pytest.raises(ValueError, match="holds a model already"):
        model.save(tmp_path / "model")
    assert len(pickle.dumps(model)) < x.data.nbytes + 40_000  # the rows are not kept


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64, np.bool_, "<U1"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_that_is_loaded_predicts_labels_of_the_same_type(data, tmp_path, dtype, classes):
    x, y = data[0], (np.arange(300) % classes).astype(dtype)
    model = wb.train(x, y, random_state=0)
    model.save(tmp_path / "model")
    again, known = wb.load_model(tmp_path / "model").predict(x), model.predict(x)
    assert again.dtype == known.dtype
    np.testing.assert_array_equal(again, known)


def test_a_model_of_a_file_is_applied_to_a_file(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{1 if row % 2 else -1} {1 + row % 2}:1\n" for row in range(40)))
    wb.train(path).save(tmp_path / "model")
    applied = wb.load_model(tmp_path / "model").apply(path)
    assert applied.values[:2].tolist() == ["-1", "1"]
    assert applied.quality["accuracy"] == 1.0


def test_numbers_are_kept(data, tmp_path):
    x, y = data[0], np.linspace(0.05, 1.5, 300)
    model = wb.train(x, y)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(wb.load_model(tmp_path / "model").predict(x), model.predict(x), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Training ended worse:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("make", "labels"),
    [
        (lambda: wb.SparseClassifier(max_iter=3, random_state=0), np.arange(300) % 2),
        (lambda: wb.SparseClassifier(max_iter=3, random_state=0), np.array(["a", "b", "c"])[np.arange(300) % 3]),
        (lambda: wb.SparseRegressor(max_iter=3, random_state=0), np.linspace(0.05, 1.5, 300)),
        (lambda: wb.FactorizationMachineClassifier(max_iter=3, random_state=0), np.arange(300) % 2 > 0),
        (lambda: wb.SparseClassifierCV(max_iter=3, random_state=0), np.arange(300) % 2),
    ],
    ids=["two", "three", "numbers", "pairs", "cv"],
)
def test_what_an_estimator_has_a_saved_one_has(data, tmp_path, make, labels):
    """An estimator is saved however it was trained, and what is loaded has its attributes and methods."""
    x = data[0]
    model = make().fit(x, labels)
    model.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    for name in ("classes_", "n_features_in_", "coef_", "intercept_"):
        assert hasattr(again, name) == hasattr(model, name), name
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
            assert np.asarray(getattr(again, name)).dtype == np.asarray(getattr(model, name)).dtype
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            found, known = getattr(again, method)(x), getattr(model, method)(x)
            assert found.shape == known.shape
            assert np.allclose(found, known, rtol=1e-5) if known.dtype.kind == "f" else (found == known).all()
    assert again.score(x, labels) == pytest.approx(model.score(x, labels), rel=1e-5)
    assert again.predict(x.toarray().tolist()[:2]).tolist() == again.predict(x)[:2].tolist()
    again.save(tmp_path / "copy")
    assert wb.load_model(tmp_path / "copy").predict(x).tolist() == again.predict(x).tolist()


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        wb.SparseClassifier().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
