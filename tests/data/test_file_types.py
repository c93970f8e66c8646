"""Files that are not quite what a reader takes: marks before text; and other kinds, told for what they are."""

import bz2
import codecs
import gzip
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import svmlight
from workbench import data
from workbench.data import DataError, cache


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_the_mark_before_text_is_no_part_of_a_number(tmp_path, suffix, pack):
    path = tmp_path / f"marked.svm{suffix}"
    path.write_bytes(pack(codecs.BOM_UTF8 + b"1 1:1\n0 2:1\n"))
    assert data.load("svmlight", path=path).classes == ("0", "1")
    batches = data.SvmlightBatches(path=path, features=2, zero_based=False)
    assert next(batches.epoch()).y.tolist() == [1, 0]
    path.write_bytes(pack(codecs.BOM_UTF8 + b"x 1:1\n0 2:1\n"))
    with pytest.raises(DataError, match=r"marked.svm.*:1: the label 'x' is no finite number"):
        data.load("svmlight", path=path)


def test_an_underscore_is_no_part_of_a_number(tmp_path):
    with pytest.raises(DataError, match=r"data.svm:1: the label '1_0' is no finite number"):
        svmlight(tmp_path, "1_0 1:1\n1 1:1\n")
    with pytest.raises(DataError, match=r"data.svm:2: the value in '1:1_0' is no finite number"):
        svmlight(tmp_path, "1 1:1\n1 1:1_0\n")
    assert svmlight(tmp_path, "1 1:1 # a_b\n2 1:1\n").y.tolist() == [0, 1]


KINDS = {
    "train.csv": (b"id,age,y\n1,22,0\n", "comma-separated text. Turn the columns into a matrix"),
    "train.tsv": (b"1\t22\t0\n", "tab-separated text. Turn the columns"),
    "train.svm": (b"-1 1:0.5 7:2 # a\n", "svmlight text. .* is read by the data set svmlight"),
    "train.vw": (b"1 |f 3:1 4:2\n", "Vowpal Wabbit text. Write it as svmlight text"),
    "a.mtx": (b"%%MatrixMarket matrix\n", "a Matrix Market file. Save scipy.io.mmread"),
    "a.pkl": (b"\x80\x04\x95", "a pickle. Pickles can run code and are not read"),
    "a.h5": (b"\x89HDF\r\n", "an HDF5 file. Save its matrix by scipy.sparse.save_npz"),
    "a.npy": (b"\x93NUMPY\x01\x00", "an array saved by numpy.save. It holds labels"),
    "a.txt": (codecs.BOM_UTF16_LE + "1 1:1".encode("utf-16-le"), "UTF-16. Save it as UTF-8"),
    "a.bin": (b"\x00\x01\x02", "a binary file of another kind"),
    "a.dat": (b"hello\n", "other text"),
    "empty": (b"", "an empty file"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_is_no_npz_is_told_for_what_it_is(tmp_path, name):
    content, message = KINDS[name]
    (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "y.npy", [0, 1])
    with pytest.raises(DataError, match=f"{name} cannot be read as a SciPy matrix: it is no .npz archive.*{message}"):
        data.load("npz", path=tmp_path / name, labels=tmp_path / "y.npy")
    if name != "a.npy":
        with pytest.raises(DataError, match=f"{name} cannot be read as NumPy labels: it is no .npy file.*{message}"):
            data.load("npz", path=tmp_path / "y.npy", labels=tmp_path / name)


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"train.svm", "a.dat", "empty"}))
def test_a_file_that_is_no_svmlight_is_told_for_what_it_is(tmp_path, name):
    content, message = KINDS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}.* looks like {message}"):
        data.load("svmlight", path=tmp_path / name)


def test_an_archive_of_other_arrays_lists_them(tmp_path):
    np.savez(tmp_path / "x.npz", adj_data=np.ones(2), adj_shape=np.ones(2))
    np.save(tmp_path / "y.npy", [0, 1])
    with pytest.raises(
        DataError, match=r"x.npz cannot be read .* it holds the arrays adj_data, adj_shape. Save one by"
    ):
        data.load("npz", path=tmp_path / "x.npz", labels=tmp_path / "y.npy")


def test_a_damaged_archive_and_a_damaged_header_are_told(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.eye_array(99, format="csr"))
    np.save(tmp_path / "y.npy", np.arange(99))
    packed, array = (tmp_path / "x.npz").read_bytes(), (tmp_path / "y.npy").read_bytes()
    for place in range(40, len(packed), 7):
        (tmp_path / "bad.npz").write_bytes(packed[:place] + b"\xff\xfe" + packed[place + 2 :])
        with suppress(DataError):  # what is not used may be damaged
            data.load("npz", path=tmp_path / "bad.npz", labels=tmp_path / "y.npy", cache=False)
    (tmp_path / "bad.npy").write_bytes(array.replace(b"}", b" ", 1))
    with pytest.raises(DataError, match=r"bad.npy cannot be read as NumPy labels: the array has a header"):
        data.load("npz", path=tmp_path / "x.npz", labels=tmp_path / "bad.npy")


def test_a_folder_is_told(tmp_path):
    with pytest.raises(DataError, match=r"cannot be read as svmlight text .*: it is a folder"):
        data.load("svmlight", path=tmp_path)
