"""`workbench check` sees a file as it stands, says a line a breach, and ends as a script can ask."""

import json

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

from workbench.command import data_checks
from workbench.command.cli import app

SOUND = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 4]),
    "data": np.float32([1, 2, 3]),
    "indices": np.int32([0, 2, 3]),
    "indptr": np.int32([0, 2, 3]),
}


def ended(*line):
    """(Status, text that scripts read) of the command."""
    result = CliRunner().invoke(app, ["check", *map(str, line)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def file(tmp_path):
    """Writes a matrix with some other arrays than the right ones; gives its path."""

    def write(**arrays):
        path = tmp_path / "x.npz"
        np.savez(path, **{**SOUND, **arrays})
        return path

    return write


@pytest.mark.parametrize("framework", ["tensorflow", "keras", "pytorch", "sklearn"])
def test_a_sound_file_ends_with_status_0(file, framework):
    status, text = ended(file(), "--for", framework)
    assert status == 0
    assert text.count("\n") == 1
    assert "as it stands in the file: 0 errors, 0 warnings" in text


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"indices": np.int32([0, 2, 9])}, "error, data -> pytorch, range: indices[2] is 9"),
        ({"indptr": np.int32([0, 9, 3])}, "error, data -> pytorch, pointers: indptr falls from 9 to 3"),
        ({"data": np.float32([1, np.nan, 3])}, "error, data -> pytorch, finite: 1 of 3 stored values"),
        ({"indptr": np.int64([0, 2, 3])}, "error, data -> pytorch, index widths"),
        ({"data": np.float32([1, 2])}, "error, data -> pytorch, lengths"),
    ],
)
def test_what_is_wrong_in_a_file_is_a_line_and_status_1(file, arrays, expected):
    status, text = ended(file(**arrays), "--for", "pytorch")
    assert status == 1
    assert expected in text
    assert "1 error" in text


def test_duplicates_that_a_reader_would_sum_are_seen(file):
    path = file(indices=np.int32([2, 2, 3]))
    status, text = ended(path, "--for", "sklearn")
    assert (status, "duplicates" in text) == (1, True)
    status, text = ended(path, "--for", "keras")
    assert status == 0, "which takes them, so it is a warning"
    assert "warning, data -> keras, duplicates" in text


def test_formats_and_widths_that_a_framework_cannot_take_are_errors(file, tmp_path):
    assert ended(file(format=np.array(b"csc"), shape=np.array([4, 2])), "--for", "keras")[0] == 1
    assert ended(file(), "--for", "keras", "--width", 4)[0] == 0
    status, text = ended(file(), "--for", "keras", "--width", 5)
    assert status == 1
    assert "It has 4 columns. Expected: 5" in text


def test_labels_are_counted(file, tmp_path):
    np.save(tmp_path / "y.npy", [0, 1, 1])
    status, text = ended(file(), "--for", "keras", "--labels", tmp_path / "y.npy")
    assert status == 1
    assert "There are 3 labels for 2 rows" in text


@pytest.mark.parametrize("y", [[-1, 1], [1, 2], ["no", "yes"]])
def test_classes_that_are_not_counted_from_0_are_an_error_where_numbers_are_taken(file, tmp_path, y):
    np.save(tmp_path / "y.npy", y)
    line = file(), "--labels", tmp_path / "y.npy", "--kind", "classes", "--for"
    status, text = ended(*line, "keras")
    assert (status, "label values" in text) == (1, True)
    assert ended(*line, "sklearn")[0] == 0
    np.save(tmp_path / "y.npy", [1, 0])
    assert ended(*line, "keras")[0] == 0


def test_json_has_every_field(file):
    status, text = ended(file(data=np.float64([1, 2, np.inf])), "--for", "pytorch", "--json")
    results = json.loads(text)
    assert (status, results["errors"], results["as_stored"], results["for"]) == (1, 1, True, "pytorch")
    assert {breach["contract"]: breach["severity"] for breach in results["breaches"]} == {
        "finite": "error",
        "float32": "warning",
    }
    assert all(breach["advice"] and breach["expected"] for breach in results["breaches"])


def test_a_data_set_by_name_is_checked_as_it_is_read():
    status, text = ended("uniform", "--for", "keras")
    assert status == 0
    assert "as it is read" in text


def test_entries_that_a_reader_has_summed_are_told():
    checked = data_checks.Checked("x.mtx", "keras", False, (), summed=3)
    assert checked.summary == "x.mtx for Keras, as it is read, 3 duplicates summed: 0 errors, 0 warnings."


def test_a_file_of_text_is_checked_as_it_is_read(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 3:2\n0 2:1\n")
    assert ended(tmp_path / "x.svm", "--for", "sklearn")[0] == 0


def test_an_unknown_framework_lists_the_known_ones(file):
    with pytest.raises(ValueError, match="Expected one of: tensorflow, keras, pytorch, sklearn"):
        ended(file(), "--for", "mxnet")


def test_an_archive_that_lacks_an_array_is_told(tmp_path):
    np.savez(tmp_path / "x.npz", **{name: array for name, array in SOUND.items() if name != "indptr"})
    with pytest.raises(ValueError, match="indptr of a csr matrix is a NoneType"):
        ended(tmp_path / "x.npz", "--for", "keras")


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_everything_that_scipy_saves_is_read_as_it_stands(tmp_path, kind, format):
    x = getattr(scipy.sparse, f"csr_{kind}")(np.eye(3, dtype=np.float32)).asformat(format)
    scipy.sparse.save_npz(tmp_path / "x.npz", x)
    status, text = ended(tmp_path / "x.npz", "--for", "sklearn")
    assert status == 0, text


def test_columns_of_a_table_are_as_they_were_declared(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.csv").write_text("city,y\n" + "A,0\nB,1\nC,0\n" * 9)
    (tmp_path / "columns.toml").write_text("[columns.city]\nkind = 'category'\nvalues = ['A']\n")
    line = (tmp_path / "rows.csv", "--for", "sklearn", "--width", 2)
    assert ended(*line)[0] == 1
    assert ended(*line, "--columns", tmp_path / "columns.toml")[0] == 0
