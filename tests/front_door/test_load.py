"""`wb.load` and `wb.profile`: files, matrices, frames, tensors; and what is refused."""

import io
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.utils

import workbench as wb
from tests.support.linear_rows import drawn
from tests.support.shown import assert_shown

X = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0], [0, 0, 5]])
Y = ["no", "yes", "no", "yes"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text("+1 1:1 3:2\n-1 2:3\n+1 1:4\n-1 3:5\n")
    lines = "".join(f"{20 + row % 7},{'red' if row % 3 else 'blue'},{row % 2}\n" for row in range(40))
    (tmp_path / "clicks.csv").write_text(f"age,color,clicked\n{lines}")
    return tmp_path


def test_load_train_txt(folder):
    assert wb.load("train.txt").x.shape == (4, 3)


def test_load_clicks_csv_with_a_label(folder):
    assert wb.load("clicks.csv", label="clicked").classes == ("0", "1")


@pytest.mark.parametrize(
    "make",
    [
        np.array, scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array, scipy.sparse.lil_matrix,
        scipy.sparse.dok_array, scipy.sparse.bsr_array, scipy.sparse.dia_array, np.ndarray.tolist, pd.DataFrame,
        lambda x: x.astype(bool), lambda x: scipy.sparse.csr_array(x.astype(np.int8)), lambda x: x.astype(np.float16),
        lambda x: pd.DataFrame(x).astype(pd.SparseDtype(float, 0)),
    ],
)  # fmt: skip
def test_load_x_y(make):
    made = wb.load((make(X), Y))
    expected = X if np.asarray(made.x.sum()) > 4 + 1 else X.astype(bool)
    np.testing.assert_array_equal(made.x.toarray(), expected)
    assert made.classes == ("no", "yes")
    assert made.y.tolist() == [0, 1, 0, 1]


def test_load_x_alone_has_random_labels_and_changes_nothing():
    x = scipy.sparse.csr_array(X.astype(np.int64))
    before = x.copy()
    made = wb.load(x)
    assert made.facts["random_labels"]
    assert x.dtype == np.int64
    assert (x != before).nnz == 0


def test_load_frame_with_a_label():
    frame = pd.DataFrame({"color": ["red", "blue"] * 20, "size": np.arange(40.0), "clicked": [0, 1] * 20})
    made = wb.load(frame, label="clicked")
    assert made.features == 4
    assert made.classes == ("0", "1")


def test_load_anndata():
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(scipy.sparse.csr_matrix(X.astype(np.float32)))
    cells.obs["type"] = Y
    assert wb.load(cells, label="type").classes == ("no", "yes")


class StandInForAnnData:
    """What `wb.load` reads of an AnnData object: its module's name, X, layers, obs and obsm."""

    __module__ = "anndata._core.anndata"
    isbacked = False

    def __init__(self, **columns):
        self.X, self.obs = scipy.sparse.csr_matrix(X.astype(np.float32)), pd.DataFrame(columns)
        self.layers = {"counts": scipy.sparse.csc_array(X.astype(np.int16) * 2)}
        self.obsm = {"tags": scipy.sparse.csr_array(np.eye(2)[[0, 1, 1, 0]])}


def test_load_takes_x_of_an_object_like_anndata_and_labels_from_obs():
    loaded = wb.load(StandInForAnnData(type=Y, batch=[1, 1, 2, 2]), label="type")
    np.testing.assert_array_equal(loaded.x.toarray(), X)
    assert loaded.classes == ("no", "yes")
    assert wb.load(StandInForAnnData(), Y).classes == ("no", "yes")
    counts = wb.load(StandInForAnnData(), label="tags", layer="counts")
    np.testing.assert_array_equal(counts.x.toarray(), X.astype(np.int16) * 2)
    assert counts.y.tolist() == np.eye(2)[[0, 1, 1, 0]].tolist()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"type": Y}, 'type, tags.\nType label="type".'),
        ({}, 'tags.\nType label="tags".'),
    ],
)
def test_load_names_the_columns_of_obs_where_one_is_misspelled(columns, said):
    with pytest.raises(wb.DataError, match=re.escape(f"adata has no labels in 'typ'; there is: {said}")):
        wb.load(StandInForAnnData(**columns), label="typ")


def test_load_torch_sparse_tensors():
    torch = pytest.importorskip("torch")
    made = wb.load((torch.from_numpy(X).to_sparse_coo(), torch.tensor([0, 1, 0, 1])))
    np.testing.assert_array_equal(made.x.toarray(), X)


def test_load_torch_tensors_of_floats_that_numpy_lacks():
    torch = pytest.importorskip("torch")
    for tensor in (torch.from_numpy(X).bfloat16(), torch.from_numpy(X).bfloat16().to_sparse_coo()):
        np.testing.assert_array_equal(wb.load(tensor).x.toarray(), X)


def test_load_tensorflow_sparse_tensors():
    tensorflow = pytest.importorskip("tensorflow")
    np.testing.assert_array_equal(wb.load((tensorflow.sparse.from_dense(X), Y)).x.toarray(), X)


def test_profile_of_a_matrix_needs_no_label():
    profile = wb.profile(scipy.sparse.csr_array(X))
    assert profile.density == 5 / 12
    assert "labels" not in dict(profile.rows_shown)
    assert "<table" in profile._repr_html_()
    assert profile.table["value"].iloc[0] == "4 x 3"


def test_profile_and_data_set_are_shown(data):
    profile = wb.profile(data[0])
    html = assert_shown(profile)
    assert "<svg" in html or "<img" in html
    assert isinstance(profile.table, pd.DataFrame)
    assert repr(wb.load(data)).startswith("Dataset memory: 300 rows")


def test_profile_of_train_txt(folder):
    assert wb.profile("train.txt").facts.entries == 5


def test_profile_of_a_file_without_labels(folder):
    scipy.sparse.save_npz("x.npz", scipy.sparse.csr_matrix(X))
    assert wb.profile("x.npz").facts.entries == 5


def nan(x):
    x = x.copy()
    x[0, 0] = np.nan
    return x


def _load_open_file():
    """Load this file, opened."""
    with open(__file__) as file:
        wb.load(file)


BAD = {
    "different length": (lambda: wb.load((X, Y[:3])), "X has 4 rows and y has 3 labels"),
    "nan": (lambda: wb.load((nan(X), Y)), "X has 1 value that is NaN or infinite.*\nType X = np.nan_to_num"),
    "infinity": (
        lambda: wb.load((scipy.sparse.csr_array(np.where(X, np.inf, 0)), Y)),
        "NaN or infinite.*\nType X = .*np.nan_to_num",
    ),
    "object dtype": (lambda: wb.load((X.astype(object), Y)), "dtype object; expected numbers.\nType X = .*astype"),
    "1-D": (lambda: wb.load((X[0], Y)), r"X has 1 dimension, shape \(3,\).*\nType X = np.reshape\(X, \(-1, 1\)\)"),
    "no rows": (lambda: wb.load((X[:0], [])), "X has no rows.*\nCheck"),
    "one class": (lambda: wb.load((X, ["no"] * 4)), "y has one class, 'no'.*\nCheck"),
    "missing labels": (lambda: wb.load((X, ["no", None, "yes", "no"])), "y has 1 missing label.\nType keep = "),
    "nan labels": (lambda: wb.load((X, [1.0, np.nan, 0, 1])), "y has 1 label NaN or infinite"),
    "mixed labels": (lambda: wb.load((X, ["no", 1, "yes", 0])), "y has labels of the types int, str"),
    "dates as labels": (
        lambda: wb.load((X, pd.date_range("2020", periods=4))),
        "y has dtype datetime64.*\nType y = np.array",
    ),
    "complex labels": (lambda: wb.load((X, [1j, 2, 3, 4])), "y has dtype complex128.*\nType y = np.array"),
    "three dimensions": (
        lambda: wb.load((X[None], Y[:1])),
        r"X has 3 dimensions.*\nType X = np.reshape\(X, \(1, -1\)\)",
    ),
    "generator": (lambda: wb.load(row for row in X), r"X is a generator.*\nType X = np.array\(list\(X\)\)"),
    "generator of labels": (
        lambda: wb.load((X, (one for one in Y))),
        r"y is a generator.*\nType y = np.array\(list\(y\)\)",
    ),
    "ragged": (lambda: wb.load([[1, 2], [3]]), "X is not a matrix.*\nGive rows of equal length"),
    "open file": (_load_open_file, r"X is an open file.*\nType wb.load\('.*test_load.py'\)"),
    "file without a path": (lambda: wb.load(io.BytesIO(b"1")), "X is an open file, BytesIO.*\nWrite it to a file"),
    "empty path": (lambda: wb.load(""), "The path is empty.*\nCheck"),
    "labels of a frame by another name": (
        lambda: wb.load(pd.DataFrame({"clicked": [0, 1]}), target="clicked"),
        'target is a setting of a reader of files.*\nType label="clicked"',
    ),
    "labels by another name": (lambda: wb.load(X, labels=Y), r"labels is a setting.*\nType wb.load\(X, y\)"),
    "columns of different lengths": (
        lambda: wb.load({"a": [1, 2], "y": [0, 1, 1]}),
        "The dict is not a table.*\nGive columns of equal length",
    ),
    "none": (lambda: wb.load(None), "X is a NoneType; expected a matrix"),
    "label of a matrix": (lambda: wb.load(X, label="clicked"), "without names.\nGive the labels as the second"),
    "unknown label": (
        lambda: wb.load(pd.DataFrame({"clicked": [0, 1]}), label="click"),
        "no column 'click'; expected one of: clicked.\nType label=\"clicked\"",
    ),
    "frame without columns": (lambda: wb.load(pd.DataFrame()), "The frame has no columns.*\nCheck"),
    "duplicate columns": (
        lambda: wb.load(pd.DataFrame(X, columns=["a", "a", "b"]), Y),
        "column 'a' more than once.*\nType frame = frame.loc",
    ),
    "no rows of text": (lambda: wb.load(pd.DataFrame({"a": ["u"], "y": [0]})[:0], label="y"), "has no rows.*\nCheck"),
    "complex": (lambda: wb.load((X.astype(complex), Y)), "complex; expected real numbers.\nType X = np.real"),
    "reader's setting": (lambda: wb.load((X, Y), hashed=4), "hashed is a setting of a reader of files"),
    "masked values": (
        lambda: wb.load((np.ma.masked_equal(X, 0), Y)),
        r"X is a masked array with \d masked values.*\nType X = X.filled",
    ),
    "masked labels": (
        lambda: wb.load((X, np.ma.masked_equal([1, 0, 1, 0], 0))),
        "y is a masked array with 2 masked labels.*\nType keep = ",
    ),
    "labels of different lengths": (
        lambda: wb.load((X, [[1, 2], [3], [], [4]])),
        "y has rows of different lengths.*\nType y = sklearn.preprocessing.MultiLabelBinarizer",
    ),
    "texts": (lambda: wb.load(["a b", "c", "d", "e"], Y), "X is text, such as 'a b'.*\nType from sklearn.*Tfidf"),
    "text next to numbers in a column": (
        lambda: wb.load(pd.DataFrame({"size": ["x", 3], "y": [0, 1]})),
        "The column 'size' holds values of the types int, str.*\nType frame",
    ),
    "values beyond float32": (lambda: wb.load((np.where(X, 1e300, 0), Y)), "of the size 1e\\+300.*\nType X = "),
    "entries beyond float32": (
        lambda: wb.load((scipy.sparse.csr_array(np.where(X, -1e39, 0)), Y)),
        "of the size 1e\\+39.*\nType X = ",
    ),
    "indices out of range": (
        lambda: wb.load((scipy.sparse.csr_array((np.ones(1), np.array([9]), np.array([0, 1, 1, 1, 1])), (4, 3)), Y)),
        "9",
    ),
}


HOLDERS = {
    "list of both": lambda: [X, Y],
    "dict of both": lambda: {"X": X, "y": Y},
    "data set of scikit-learn": lambda: sklearn.utils.Bunch(data=X, target=Y, feature_names=list("abc")),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_holds_a_matrix_and_labels_is_taken_apart(name):
    made = wb.load(HOLDERS[name]())
    np.testing.assert_array_equal(made.x.toarray(), X)
    assert made.y.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_dense"])
def test_a_model_predicts_the_tensors_that_it_was_trained_on(layout, tmp_path):
    torch = pytest.importorskip("torch")
    x, y = drawn()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its csr tensors a beta
        tensor = getattr(torch.tensor(x.toarray()), layout)()
    expected = wb.SparseClassifier(random_state=0, max_iter=3).fit(x, y)
    ours = wb.SparseClassifier(random_state=0, max_iter=3).fit(tensor, torch.tensor(y))
    np.testing.assert_allclose(ours.predict_proba(tensor), expected.predict_proba(x), rtol=1e-6)
    ours.save(tmp_path / "model")
    assert wb.load_model(tmp_path / "model").predict(tensor).tolist() == expected.predict(x).tolist()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float16, np.longdouble, object])
def test_a_loaded_model_predicts_what_its_estimator_does(dtype, tmp_path):
    x, y = drawn()
    ours = wb.SparseClassifier(random_state=0, max_iter=3).fit(x, y)
    ours.save(tmp_path / "model")
    counts = np.rint(3 * x.toarray()).clip(0).astype(dtype)
    given = [counts] if dtype in (np.float16, object) else [counts, scipy.sparse.csr_array(counts)]
    for matrix in given:
        predicted = wb.load_model(tmp_path / "model").predict(matrix)
        assert predicted.tolist() == ours.predict(counts.astype(np.float64)).tolist()


SPARSE_COLUMNS = {
    "of another value than 0": ([1, 1, 2, 1], {"fill_value": 1}),
    "of booleans": ([True, False, False, True], {}),
    "of blocks": ([0, 0, 3, 4], {"kind": "block"}),
    "without missing values": ([0.5, 1.5, 2.5, 3.5], {"fill_value": np.nan}),
}


@pytest.mark.parametrize("name", SPARSE_COLUMNS)
def test_sparse_columns_are_taken_as_dense_ones_are(name, monkeypatch):
    values, how = SPARSE_COLUMNS[name]
    columns = {"a": pd.arrays.SparseArray(values, **how), "b": pd.arrays.SparseArray([0, 1, 0, 0]), "age": [3, 0, 1, 2]}
    expected = np.array([values, [0, 1, 0, 0], [3, 0, 1, 2]], np.float32).T
    monkeypatch.setattr(pd.DataFrame, "to_numpy", lambda *_: pytest.fail("the whole frame is made dense"))
    np.testing.assert_array_equal(wb.load(pd.DataFrame(columns), Y).x.toarray(), expected)


def test_sparse_columns_of_text_are_categories():
    texts = ["x", "", "y", ""]
    made = wb.load(pd.DataFrame({"a": pd.arrays.SparseArray(texts, fill_value=""), "b": [1, 2, 3, 4]}), Y)
    np.testing.assert_array_equal(
        made.x.toarray(), wb.load(pd.DataFrame({"a": texts, "b": [1, 2, 3, 4]}), Y).x.toarray()
    )


def test_values_of_a_long_double_are_taken_sparse_as_dense():
    wide = X.astype(np.longdouble)
    np.testing.assert_array_equal(wb.load((scipy.sparse.csr_array(wide), Y)).x.toarray(), X)


def test_a_misspelled_parameter_is_told_the_nearest():
    with pytest.raises(TypeError, match=r"advise has no parameter 'bugdet'\. Did you mean 'budget'"):
        wb.advise(X, Y, bugdet=9)
    with pytest.raises(TypeError, match=r"Unknown setting 'lable'\. Did you mean 'label'"):
        wb.load(X, lable="y")
    for typed, ours in (("lr", "learning_rate"), ("batch_size", "batch_rows"), ("max_itr", "max_iter")):
        with pytest.raises(TypeError, match=f"has no parameter '{typed}'; .* Did you mean '{ours}'"):
            wb.train(X, Y, **{typed: 1})


def test_a_misspelled_setting_of_a_reader_is_told_the_nearest(folder):
    with pytest.raises(ValueError, match="Did you mean 'separator'"):
        wb.load("clicks.csv", sep=",")


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_the_fix(name):
    call, message = BAD[name]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}") as caught:
        call()
    assert len(str(caught.value)) < 400
    assert "\n" in str(caught.value)  # the fix, on a line of its own


def test_an_address_is_refused_with_what_to_type():
    message = (
        r'address.*\nType import urllib.request; urllib.request.urlretrieve\("https://example.org/a/x.csv", "x.csv"\)'
    )
    with pytest.raises(FileNotFoundError, match=f"(?s){message}"):
        wb.load("https://example.org/a/x.csv")


def test_a_name_that_no_file_can_have_is_a_file_not_found_error(folder):
    for name in ("x" * 5000, "a" * 300 + ".csv", "a\0b", "~nobody_of_this_name/a"):
        with pytest.raises(FileNotFoundError, match=r"There is no file '[ax~].*\nCheck the path"):
            wb.load(name)


@pytest.mark.parametrize("format", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("end", ["array", "matrix"])
def test_every_sparse_format_is_loaded_alone_and_with_labels(format, end):
    made = getattr(scipy.sparse, f"{format}_{end}")(X)
    np.testing.assert_array_equal(wb.load(made).x.toarray(), X)
    np.testing.assert_array_equal(wb.load((made, Y)).x.toarray(), X)
    assert wb.profile(made).facts.entries == np.count_nonzero(X)


def test_a_missing_file_is_a_file_not_found_error(folder):
    with pytest.raises(FileNotFoundError, match=r"There is no file 'trian.txt'.*\nCheck the path"):
        wb.load("trian.txt")


def test_labels_beside_a_file_are_refused(folder):
    with pytest.raises(ValueError, match=r'labels of a file come from the file.\nType labels="FILE"'):
        wb.load("train.txt", Y)


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
@pytest.mark.parametrize("parts", [("data",), ("indices", "col"), ("indptr", "row"), ("data", "indices", "indptr")])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_components_of_the_other_byte_order_are_converted(make, parts, dtype):
    """A file written on another machine gives such arrays; they are read, trained on and predicted, and not changed."""
    swapped = make(X.astype(dtype))
    for part in parts:
        if part != "data" and isinstance(getattr(swapped, part, None), np.ndarray):
            setattr(swapped, part, in_other_order(getattr(swapped, part)))
        elif part == "data" and isinstance(swapped, np.ndarray):
            swapped = in_other_order(swapped)
        elif part == "data":
            swapped.data = in_other_order(swapped.data)
    before = {part: getattr(swapped, part, X).dtype for part in parts if part != "data" or make is not np.array}
    np.testing.assert_array_equal(wb.load(swapped, Y).x.toarray(), X)
    model, usual = (wb.train(x, Y, max_iter=2, random_state=0) for x in (swapped, make(X.astype(dtype))))
    np.testing.assert_array_equal(model.predict_proba(swapped), usual.predict_proba(make(X.astype(dtype))))
    assert before == {part: getattr(swapped, part, X).dtype for part in before}


def in_other_order(array):
    return array.astype(array.dtype.newbyteorder())
