"""Readers of the user's files: what is in them, or an error that names the file."""

import re
import shutil
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import svmlight
from workbench import data, formats
from workbench.command.data_checks import check_source
from workbench.data import DataError

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_npz_reads_all_three_formats(tmp_path, name):
    x = sp.coo_array((np.float64([1, 2, 3, 0]), ([1, 0, 1, 0], [2, 3, 2, 0])), shape=(3, 4))
    sp.save_npz(tmp_path / "x.npz", formats.to_format(x, name))
    np.save(tmp_path / "y.npy", np.array(["no", "yes", "no"]))
    made = data.load("npz", path=tmp_path / "x.npz", labels=tmp_path / "y.npy")
    np.testing.assert_array_equal(made.x.toarray(), [[0, 0, 0, 2], [0, 0, 4, 0], [0, 0, 0, 0]])
    assert (made.x.dtype, made.x.indices.dtype) == (np.float32, np.int32)
    assert made.x.has_canonical_format
    assert made.classes == ("no", "yes")
    assert made.y.tolist() == [0, 1, 0]


@pytest.fixture
def files(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.eye_array(3, format="csr"))
    np.save(tmp_path / "y.npy", np.arange(3))
    np.save(tmp_path / "short.npy", np.arange(2))
    np.save(tmp_path / "objects.npy", np.array([{}, {}, {}]), allow_pickle=True)
    np.save(tmp_path / "nan.npy", np.array([0.5, np.nan, 1]))
    sp.save_npz(tmp_path / "nan.npz", sp.csr_array(np.full((3, 3), np.nan)))
    sp.save_npz(tmp_path / "complex.npz", sp.csr_array(np.eye(3) * 1j))
    sp.save_npz(tmp_path / "ids.npz", sp.csr_array(np.full((3, 3), 2**53 + 1, np.uint64)))
    of_sparse = {"shape": [3, 3], "data": np.ones(1), "fill_value": np.float64(0)}
    np.savez(tmp_path / "fill.npz", **of_sparse | {"format": "coo", "coords": [[0], [1]], "fill_value": -1.5})
    np.savez(tmp_path / "gcxs.npz", **of_sparse | {"format": "gcxs", "indices": [1], "indptr": [0, 1, 1, 1]})
    (tmp_path / "text.npz").write_text("no archive")
    return tmp_path


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ("none.npz", "y.npy", "There is no file .*none.npz; give the path of a SciPy matrix"),
        ("x.npz", "none.npy", "There is no file .*none.npy; give the path of NumPy labels"),
        ("text.npz", "y.npy", "text.npz cannot be read as a SciPy matrix"),
        ("x.npz", "objects.npy", "objects.npy cannot be read as NumPy labels: .*allow_pickle=False"),
        ("x.npz", "short.npy", "x.npz has 3 rows and 2 labels; there must be one for each row"),
        ("x.npz", "nan.npy", "nan.npy, row 1: the label 'nan' is no finite number"),
        ("nan.npz", "y.npy", r"nan.npz cannot be read as a SciPy matrix: data\[0\] is nan"),
        ("complex.npz", "y.npy", "The values are complex128; a data set holds real numbers"),
        ("ids.npz", "y.npy", r"the whole number 9007199254740993, beyond 2\*\*53 and not exact as float64"),
        ("fill.npz", "y.npy", "fill.npz has the fill value -1.5, that of all entries which are not stored; expected 0"),
        ("gcxs.npz", "y.npy", r"GCXS of the package sparse; .*\nType python -c .*sparse.load_npz\('FILE'\)"),
    ],
)
def test_unusable_npz_files_are_refused_by_name(files, x, y, message):
    with pytest.raises(DataError, match=message):
        data.load("npz", path=files / x, labels=files / y)
    if x in ("text.npz", "ids.npz", "fill.npz", "gcxs.npz"):
        with pytest.raises(DataError, match=message):
            check_source(str(files / x), "sklearn", labels=str(files / y), dataset="npz")


def test_svmlight_reads_what_is_written(tmp_path):
    made = svmlight(tmp_path, "-1 1:0.5 4:2 # comment\n\n1\n-1 2:1\n")
    np.testing.assert_array_equal(made.x.toarray(), [[0.5, 0, 0, 2], [0, 0, 0, 0], [0, 1, 0, 0]])
    assert (made.classes, made.y.tolist()) == (("-1", "1"), [0, 1, 0])
    assert svmlight(tmp_path, "1 0:1\n").x.shape == (1, 1)
    assert svmlight(tmp_path, "1 1:1\n", features=9).x.shape == (1, 9)
    assert svmlight(tmp_path, "1 1:1\n", zero_based=True).x.shape == (1, 2)
    assert svmlight(tmp_path, "0.5 1:1\n2 2:1\n").classes == ()
    assert svmlight(tmp_path, "1 1:1\n2 2:1\n", kind="numbers").y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.svm holds no rows"),
        ("1 3:1 2:1\n", "data.svm:1: column 2 comes after 3; columns of a row should be sorted and unique"),
        ("1 1:1\n\n1 2:1 2:1\n", "data.svm:3: column 2 comes twice; columns of a row should be sorted and unique"),
        ("1 5000000000:1\n", "data.svm:1: column 5000000000 is above 2.*31 - 1; hash the columns to fewer"),
        ("1 |f 3:1\n", r"data.svm:1: '\|f' is not column:value with a whole number for the column"),
        ("1 -3:1\n", "data.svm:1: column -3 is below 0"),
        ("1 1:inf\n", "data.svm:1: the value in '1:inf' is no finite number that float32 holds"),
        ("1 1:1e300\n", "data.svm:1: the value in '1:1e300' is no finite number that float32 holds"),
        ("nan 1:1\n", "data.svm:1: the label 'nan' is no finite number"),
        ("1 qid:1 1:1\n\n1 1:1\n", "data.svm:3: the row has no query .qid:number. and others do; give each one"),
        ("1 1:1\n1 qid:1 1:1\n", "data.svm:1: the row has no query"),
        ("1 qid:1 1:1\n1 qid:x 1:1\n", "data.svm:2: 'qid:x' is not qid: and a whole number"),
        ("1 qid:1_0 1:1\n", "data.svm:1: 'qid:1_0' is not qid: and a whole number"),
        ("1 qid:-1 1:1\n", "data.svm:1: 'qid:-1' is not qid: and a whole number"),
        (
            "1 qid:9223372036854775808 1:1\n",
            "data.svm:1: 'qid:9223372036854775808' is not qid: and a whole number from 0",
        ),
        ("1 qidx:3 1:1\n", "data.svm:1: 'qidx:3' is not column:value"),
        ("1 qid:1 1:1\n1 1:1 qid:3\n", "data.svm:2: 'qid:3' is not column:value"),
        ("1 1:1\n1 2:1 # caf\xe9\n", "data.svm:2: the byte 0xe9 is not utf-8; save it as UTF-8"),
        ("1 1:1\n1 2:1\n\0\n", "data.svm cannot be read as svmlight text.* a binary file of another kind"),
    ],
)
def test_invalid_svmlight_is_refused_with_name_and_line(tmp_path, text, message):
    (tmp_path / "data.svm").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        data.load("svmlight", path=tmp_path / "data.svm")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": 4}, r"data.svm:2: column 5 is out of range; with features=4 they are 1 to 4"),
        *(({"features": value}, f"features is {value!r}; it is the number of columns") for value in (0, -1, "4", 2.5)),
        ({"features": True}, "features is True; it is the number of columns"),
        ({"kind": "class"}, "kind is 'class'; it is one of classes, numbers, multilabel"),
    ],
)
def test_settings_that_do_not_suit_the_file_are_refused(tmp_path, settings, message):
    with pytest.raises(DataError, match=message):
        svmlight(tmp_path, "1 1:1\n1 5:1\n", **settings)


def test_rows_of_a_query_are_a_group_that_is_never_parted(tmp_path):
    text = "".join(f"{row % 3} qid:{row // 4} 1:{row + 1}\n" for row in range(40))
    made = svmlight(tmp_path, text)
    assert made.groups.tolist() == [row // 4 for row in range(40)]
    train, test = data.split(made, 0.3)
    assert not set(train.groups) & set(test.groups)
    assert svmlight(tmp_path, "1 1:1 # qid:3\n2 2:1\n").groups is None
    assert svmlight(tmp_path, "1,2 qid:7 1:1\nqid:8 2:1\n").groups.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1 30:1 4:2 100:3 # a 1:1\n-1 3:1e-3 2:1\n", [[3, 29, 99], [1, 2]]),
        ("1 3:1 3:2 2:5\n-1\t4:1 4:1\n", [[2, 3], [4]]),
        ("1 5000000000:1 7:1 # note\n-1 2:1\n", [[7, 5000000000 % 2**18], [2]]),
    ],
    ids=["unsorted", "twice", "large"],
)
def test_what_to_type_for_columns_that_are_refused_makes_a_file_that_is_read(tmp_path, text, columns):
    path = tmp_path / "data.svm"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        data.load("svmlight", path=path)
    command = re.search("[Tt]ype (.*) FILE > (NEW\\S*),? and give", str(refused.value).replace(", and", " and"))
    if shutil.which(command[1].split()[0]) is None:
        pytest.skip(f"{command[1].split()[0]} is not installed")
    new = tmp_path / command[2]
    with new.open("w") as out:
        subprocess.run(f"{command[1]} {path}", shell=True, check=True, stdout=out)
    x = data.load("vw" if new.suffix == ".vw" else "svmlight", path=new).x
    assert [x.indices[x.indptr[row] : x.indptr[row + 1]].tolist() for row in range(2)] == columns
