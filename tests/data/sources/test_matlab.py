"""MATLAB files: which variables are the samples and the labels, on which side, and what is never read."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from tests.support.mutations import damaged_bytes, draws, tried
from workbench import data, formats
from workbench.data import DataError

X = np.arange(24.0).reshape(6, 4) % 5
Y = np.array([2, 1, 2, 3, 1, 2])


def load(folder, variables, packed=False, **parameters):
    scipy.io.savemat(folder / "x.mat", variables, do_compression=packed)
    return data.load("matlab", path=folder / "x.mat", cache=False, **parameters)


def labels_of(made):
    return [made.classes[number] for number in made.y]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8, np.uint16, np.int64, np.uint8])
@pytest.mark.parametrize("turned", [False, True])
def test_samples_and_labels_are_found(tmp_path, packed, kind, turned):
    x = X.T if turned else X
    made = load(tmp_path, {"fea": x.astype(kind), "gnd": Y[:, None], "other": np.eye(2)}, packed)
    np.testing.assert_array_equal(made.x.toarray(), X)
    assert labels_of(made) == [str(label) for label in Y]
    assert made.facts["reread"] == {"variable": "fea", "labels_variable": "gnd", "transposed": turned}
    assert made.source == f"the file x.mat: fea{', transposed' * turned}, labels gnd"


@pytest.mark.parametrize("turned", [False, True])
def test_the_only_sparse_matrix_is_the_samples_whatever_is_larger(tmp_path, turned):
    sparse = sp.csc_array(X.T if turned else X)
    made = load(tmp_path, {"dense": np.ones((50, 60)), "counts": sparse, "y": Y[None]})
    np.testing.assert_array_equal(made.x.toarray(), X)
    logical = load(tmp_path, {"counts": sparse.astype(bool), "y": Y[None]})
    np.testing.assert_array_equal(logical.x.toarray(), X != 0)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (Y.astype(np.uint8)[None], ["2", "1", "2", "3", "1", "2"]),
        (sp.csc_array((Y[:, None] == np.arange(4)).astype(float)), ["2", "1", "2", "3", "1", "2"]),
        ((Y[:, None] == np.arange(1, 4)).astype(float).T, ["1", "0", "1", "2", "0", "1"]),
        (np.array(["up", "down", "up", "left", "down", "up"]), ["up", "down", "up", "left", "down", "up"]),
        ((Y > 1)[:, None], ["1", "0", "1", "1", "0", "1"]),
    ],
)
def test_labels_are_vectors_text_or_one_of_columns(tmp_path, labels, names):
    assert labels_of(load(tmp_path, {"X": X, "labels": labels})) == names


def test_columns_with_several_ones_are_several_classes(tmp_path):
    several = np.array([[1, 1], [0, 1], [1, 0], [0, 0], [1, 1], [0, 1]])
    assert load(tmp_path, {"X": X, "y": several}).y.tolist() == several.tolist()
    one = np.eye(2)[[0, 1, 0, 1, 0, 1]]
    assert load(tmp_path, {"X": X, "y": one}, kind="multilabel").y.tolist() == one.tolist()
    assert load(tmp_path, {"X": X, "y": Y / 2}).kind == "numbers"


def test_names_and_the_side_can_be_said(tmp_path):
    square = np.arange(36.0).reshape(6, 6) % 7
    variables = {"A": square, "B": square + 1, "one": Y, "two": Y + 1}
    made = load(tmp_path, variables, variable="B", labels_variable="two", transposed=True)
    np.testing.assert_array_equal(made.x.toarray(), (square + 1).T)
    assert labels_of(made) == [str(label + 1) for label in Y]
    again = data.load("matlab", cache=False, like=made, path=tmp_path / "x.mat")
    np.testing.assert_array_equal(again.x.toarray(), made.x.toarray())
    by_rows = data.load("matlab", cache=False, path=tmp_path / "x.mat", variable="B", labels_variable="two")
    np.testing.assert_array_equal(by_rows.x.toarray(), square + 1)


@pytest.mark.parametrize(
    ("variables", "parameters", "message"),
    [
        ({"A": X, "B": X + 1, "y": Y}, {}, r"(?s)x.mat holds several matrices: A \(6 x 4 double\), B .*variable="),
        ({"y": Y}, {}, r"x.mat holds no matrix; it has y \(1 x 6 int64\)"),
        ({"d": {"X": X, "y": Y}}, {}, r"(?s)x.mat holds no matrix; it has d .*save\('file.mat', '-struct', 'd'\)"),
        (
            {"X": X, "words": np.array([["a"], ["b"]] * 3, object)},
            {},
            r"does not tell its labels.*\nIn MATLAB: words = char\(words\); before save .*\nType label=",
        ),
        ({"X": X}, {}, r"x.mat does not tell its labels: none has as many entries.*\nType label=.NAME"),
        ({"X": X, "a": Y, "b": Y}, {}, r"does not tell its labels: a \(1 x 6 int64\), b \(1 x 6 int64\) may be"),
        ({"X": X, "y": Y[:5]}, {"labels_variable": "y"}, r"labels in y \(1 x 5 int64\) fits neither the rows"),
        (
            {"X": X, "y": Y},
            {"transposed": True},
            r"(?s)labels in y .* fits not the columns of X .* leave transposed out",
        ),
        ({"X": X, "y": Y}, {"variable": "Z"}, r"x.mat has no variable 'Z'; it has X \(6 x 4 double\), y"),
        ({"X": X, "y": Y, "s": {"a": 1}}, {"variable": "s"}, r"the variable s \(1 x 1 struct\) is not read"),
        ({"X": X, "y": Y, "c": np.array([{}, 1], object)}, {"labels_variable": "c"}, r"c \(1 x 2 cell\) is not read"),
        ({"X": X * 1j, "y": Y}, {}, r"X is complex128 \[6, 4\]; it is a matrix of real numbers"),
        ({"X": np.full((6, 4), np.nan), "y": Y}, {}, r"x.mat cannot be read as .*: data\[0\] is nan"),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_there_is(tmp_path, variables, parameters, message):
    with pytest.raises(DataError, match=message):
        load(tmp_path, variables, **parameters)


def test_other_versions_and_other_files_say_what_to_do(tmp_path):
    path = tmp_path / "x.mat"
    for head in (b"\x89HDF\r\n\x1a\n", b"MATLAB 7.3 MAT-file"):
        path.write_bytes(head + bytes(600))
        with pytest.raises(DataError, match=r"x.mat is a MATLAB file of version 7.3.*save\('file.mat', '-v7'\)"):
            data.load("matlab", path=path, cache=False)
    path.write_text("1,2\n")
    with pytest.raises(DataError, match="it looks like comma-separated text"):
        data.load("matlab", path=path, cache=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8])
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_version_4_is_read_and_guessed(tmp_path, form, dtype):
    labels = np.array(["up", "down", "up", "left", "down", "up"])
    for y, names in ((Y, [str(label) for label in Y]), (labels, labels.tolist())):
        scipy.io.savemat(tmp_path / "x.mat", {"X": form(X.astype(dtype)), "y": y}, format="4")
        assert data.guess(tmp_path / "x.mat") == ("matlab", {}, "it looks like a MATLAB file of version 4")
        made = data.load("matlab", path=tmp_path / "x.mat", cache=False)
        np.testing.assert_array_equal(made.x.toarray(), X)
        assert labels_of(made) == names


def test_version_4_of_the_other_byte_order_is_read(tmp_path):
    def variable(name, array):
        head = np.array([1000, *array.shape, 0, len(name) + 1], ">i4").tobytes()
        return head + name.encode() + b"\0" + array.astype(">f8").tobytes("F")

    (tmp_path / "x.mat").write_bytes(variable("X", X) + variable("y", Y[:, None]))
    assert data.guess(tmp_path / "x.mat")[0] == "matlab"
    made = data.load("matlab", path=tmp_path / "x.mat", cache=False)
    np.testing.assert_array_equal(made.x.toarray(), X)
    assert labels_of(made) == [str(label) for label in Y]


@pytest.mark.parametrize("packed", [False, True, "4"])
def test_damaged_files_are_refused_or_read(tmp_path, packed):
    path, taken = tmp_path / "x.mat", 0
    variables = {"fea": sp.csc_array(X), "gnd": Y[:, None], "note": "text"} | ({} if packed == "4" else {"s": {"a": 1}})
    scipy.io.savemat(path, variables, do_compression=packed is True, format="4" if packed == "4" else "5")
    whole, head = path.read_bytes(), 0 if packed == "4" else 128
    for _, source in draws(250):
        path.write_bytes(whole[:head] + damaged_bytes(source, whole[head:]))
        try:
            made = data.load("matlab", path=path, cache=False)
        except DataError:
            continue
        formats.check(made.x, full=True)
        taken += 1
    assert taken < tried(250)
