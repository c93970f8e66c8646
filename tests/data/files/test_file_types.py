"""Files that are not quite what a reader takes: marks before text; and other kinds, told for what they are."""

import bz2
import codecs
import gzip
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from workbench import data
from workbench.data import DataError

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_the_mark_before_text_is_no_part_of_a_number(tmp_path, suffix, pack):
    path = tmp_path / f"marked.svm{suffix}"
    path.write_bytes(pack(codecs.BOM_UTF8 + b"1 1:1\n0 2:1\n"))
    assert data.load("svmlight", path=path).classes == ("0", "1")
    path.write_bytes(pack(codecs.BOM_UTF8 + b"x 1:1\n0 2:1\n"))
    with pytest.raises(DataError, match=r"marked.svm.*:1: the label 'x' is no finite number"):
        data.load("svmlight", path=path)


KINDS = {
    "train.csv": (b"id,age,y\n1,22,0\n", "comma-separated text. A table .* is read by the data set table"),
    "train.tsv": (b"1\t22\t0.5\ta\n", "tab-separated text. A table of tab-separated columns is read by"),
    "train.svm": (b"-1 1:0.5 7:2 # a\n", "svmlight text. .* is read by the data set svmlight"),
    "train.vw": (b"1 |f 3:1 4:2\n", "Vowpal Wabbit text. .* is read by the data set vw"),
    "a.mtx": (b"%%MatrixMarket matrix\n", "a Matrix Market file. .* is read by the data set matrix_market"),
    "a.mat": (b"MATLAB 5.0 MAT-file" + b" " * 200, "a MATLAB file. A MATLAB file is read by the data set matlab"),
    "a.pkl": (b"\x80\x04\x95", "a pickle. Pickles can run code and are not read"),
    "a.h5": (b"\x89HDF\r\n", "an HDF5 file. Save its matrix by scipy.sparse.save_npz"),
    "a.parquet": (b"PAR1\0", "a Parquet file. A Parquet file is read by the data set table"),
    "a.txt": (codecs.BOM_UTF16_LE + "1 |f x".encode("utf-16-le"), "Vowpal Wabbit text"),
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
    if name != "a.dat":  # text with a label a line is read
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
    refused = 0
    for place in range(40, len(packed), 7):
        (tmp_path / "bad.npz").write_bytes(packed[:place] + b"\xff\xfe" + packed[place + 2 :])
        try:  # what is not used may be damaged
            made = data.load("npz", path=tmp_path / "bad.npz", labels=tmp_path / "y.npy", cache=False)
            np.testing.assert_array_equal(made.x.toarray(), np.eye(99))
        except DataError:
            refused += 1
    assert refused > 20
    (tmp_path / "bad.npy").write_bytes(array.replace(b"}", b" ", 1))
    with pytest.raises(DataError, match=r"bad.npy cannot be read as NumPy labels: the array has a header"):
        data.load("npz", path=tmp_path / "x.npz", labels=tmp_path / "bad.npy")


def test_a_folder_is_told(tmp_path):
    with pytest.raises(DataError, match=r"cannot be read as svmlight text .*: it is a folder"):
        data.load("svmlight", path=tmp_path)


DOCUMENTS = b"1\tthe first of them\n0\tthe other one\n"
GUESSED = {
    "svmlight": (
        b"1 qid:3 1:0.5\n",
        b"# comment\n-1\n+1 3:1\n",
        b"1,2 0:1\n",
        b".5 1:1 2:1",
        b"1 0:3:1 1:7:0.5\n",
        b"spam 1:1 7:0.5\n",
        b"spam 1:1 7:0.5\nham\nham 2:1\nspam # a row without entries\n",
    ),
    "vw": (b"1 |f 3:1\n", b"-1 2.0 'tag| a b\n", b"|f x y\n"),
    "matrix_market": (
        b"%%MatrixMarket matrix coordinate real general\n1 1 1\n",
        codecs.BOM_UTF8 + b"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1\n",
    ),
    "matlab": (b"MATLAB 5.0 MAT-file" + bytes(200), b"MATLAB 7.3 MAT-file" + bytes(600) + b"\x89HDF"),
    "table": (
        b"a,b,c\n1,2,3\n",
        b"a;b\n",
        b"a|b\n1|2\n",
        b"0\t1\t\tab\n1\t\t5\t\n",
        b"x\ty\tz\n1\t2\t3.5\n",
        b"PAR1" + bytes(9),
        b'y,t\n1,"so, \nso"\n0,"a"\n',
        b'{"stars": 5, "text": "good"}\n',
        b'\xef\xbb\xbf{"stars": 5}\n',
        b'[\n  {\n    "stars": 5}]',
        b"1|2\n3|4\n",
        b"1,2,3\n4,5,6\n",
        b"1,2,3,4\n4,5,6,7\n",
        b"Export of shop 17\n\nqty,sold\n1,0\n2,1\n3,1\n",
        b"age\n1\n2\n3.5\n",
    ),
    "ratings": (
        b"0 5 9 12\n1 3\n2 4 8\n",
        b"1::1193::5::978300760\n",
        b"196\t242\t3\t881250949\n",
        b"userId,movieId,rating\n1,2,3\n",
        b'"User-ID";"ISBN";"Book-Rating"\n"7";"0345X";"5"\n',
        b"0: 3 9 12\n1: 4\n",
        b"Timestamp|UserID|ItemId|Rating\n5|1|2|3\n",
        b"ITEM,USER,RATING\n1,2,3\n",
        b"196|242|3\n186|302|4.5\n",
        b"196|242|3|881250949\n186|302|3|891717742\n",
        b"A2CX7LUOHB2NDG,0321732944,5.0,1341100800\nA2NWSAGRHCP8N5,0439886341,1.0,1367193600\n",
        b"u1;i7;5;1341100800000\n",
    ),
    "anndata": (b"\x89HDF\r\n\x1a\n" + bytes(2000) + b"encoding-type\0anndata",),
    "binsparse": (b"\x89HDF\r\n\x1a\n" + bytes(900) + b"binsparse\0",),
    "graph": (b"# nodes\n0 1\n4 7\n", b"0\t11342\n0\t824020\n", b"source,target\na,b\n"),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("reader", GUESSED)
def test_the_reader_of_a_file_is_guessed(tmp_path, reader, pack):
    for content in GUESSED[reader]:
        (tmp_path / "some").write_bytes(pack(content))
        assert data.guess(tmp_path / "some")[:2] == (reader, {}), content


@pytest.mark.parametrize("before", [b"", b"# made by hand\n", b"1 2:1\n"])
def test_rows_longer_than_what_is_looked_at_are_svmlight(tmp_path, before):
    row = b"1 " + b" ".join(b"%d:1" % column for column in range(1, 30_000)) + b"\n"
    (tmp_path / "some").write_bytes(before + row + row)
    assert data.guess(tmp_path / "some")[:2] == ("svmlight", {})


def test_archives_of_other_files_are_told(tmp_path):
    for name, message in (("train.csv", "a zip file, .* Unpack it, .* 'train.csv'"), ("xl/a.xml", "a spreadsheet")):
        with zipfile.ZipFile(tmp_path / "some", "w") as archive:
            archive.writestr(name, "1")
            archive.writestr("another", "1")
        with pytest.raises(DataError, match=f"some looks like {message}"):
            data.guess(tmp_path / "some")
    np.savez(tmp_path / "cora.npz", adj_indptr=np.arange(2), labels=np.arange(2))
    assert data.guess(tmp_path / "cora.npz")[0] == "graph"


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (b"__label__a some words\n__label__b others\n", "text", {"label": "first", "separator": " "}),
        (b"1 22.5 3\n0 1 9\n", "table", {"separator": "space"}),
        (b"1.5 2 good\n0 1e-3 bad\n", "table", {"separator": "space"}),
        (b"1   3  7\n0   1  9.5\n", "table", {"separator": "blanks"}),
        (b"x1    x2  y\n1.5    2  a\n 0  1e-3  b\n", "table", {"separator": "blanks"}),
        (b"% made by hand\n@RELATION iris\n@attribute a numeric\n@data\n1\n", "table", {}),
    ],
)
def test_the_reader_is_guessed_with_its_options(tmp_path, content, name, options):
    (tmp_path / "some").write_bytes(content)
    assert data.guess(tmp_path / "some")[:2] == (name, options)


def test_the_reader_of_text_is_guessed_with_its_labels(tmp_path):
    (tmp_path / "some").write_bytes(DOCUMENTS)
    assert data.guess(tmp_path / "some") == ("text", {"label": "first"}, "it looks like text, a label before each")
    (tmp_path / "some").write_bytes(b"the first of them\nthe other one, again\n")
    assert data.guess(tmp_path / "some")[:2] == ("text", {"label": "none"})


def test_the_reader_of_a_folder_is_guessed(tmp_path):
    (tmp_path / "docs" / "sport").mkdir(parents=True)
    (tmp_path / "docs" / "sport" / "1.txt").write_text("a goal")
    assert data.guess(tmp_path / "docs")[0] == "text"
    (tmp_path / "X.sparse").mkdir()
    with pytest.raises(DataError, match=r"X.sparse looks like an empty folder, .* Give a file of it"):
        data.guess(tmp_path / "X.sparse")
    (tmp_path / "X.sparse" / "indptr.npy").write_bytes(b"")
    assert data.guess(tmp_path / "X.sparse") == ("sparse", {}, "it looks like a folder of stored rows")


def test_an_npz_archive_is_guessed_by_what_it_holds(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.eye_array(3, format="csr"))
    assert data.guess(tmp_path / "x.npz")[0] == "npz"
    np.savez(tmp_path / "y.npz", y=np.ones(3), x=np.ones(3))
    assert data.guess(tmp_path / "y.npz") == ("npz", {}, "it looks like an .npz archive, which holds x, y")
    with pytest.raises(DataError, match=r"y.npz cannot be read .* it holds the arrays y, x. Save one by"):
        data.load("npz", path=tmp_path / "y.npz")


def test_rows_of_a_table_that_lack_a_field_are_told_by_line_and_not_taken_for_documents(tmp_path):
    (tmp_path / "ragged.csv").write_text("a,b,y\n1,2,0\n1,2\n3,4,1\n")
    reader, _, why = data.guess(tmp_path / "ragged.csv")
    assert (reader, why) == ("table", "it looks like comma-separated text, some rows of which are shorter or longer")
    with pytest.raises(DataError, match=r"ragged.csv:3: "):
        data.load("table", path=tmp_path / "ragged.csv", cache=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "some looks like an empty file, which no data set reads. Give one that holds something"),
        (b"\x80\x04", "a pickle, which no data set reads. Pickles can run code"),
        (b"# only\n\n", "other text, which no data set reads. It holds nothing but blanks and comments"),
        (b"\x1f\x8b\x08", "some:1: the gzip file is truncated or corrupt"),
        (codecs.BOM_UTF8, "some looks like an empty file"),
        (b"<!DOCTYPE html>\n<html>", "a page of HTML or XML text, which no data set reads. Download the file itself"),
    ],
)
def test_what_no_reader_takes_is_told(tmp_path, content, message):
    (tmp_path / "some").write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.guess(tmp_path / "some")
    with pytest.raises(DataError, match=r"There is no file .*none"):
        data.guess(tmp_path / "none")


def test_what_cannot_be_looked_at_is_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name, message in (("pipe", "is a pipe or a device"), ("circle", "cannot be read"), ("x\0", "cannot be read")):
        with pytest.raises(DataError, match=f"{name} .*{message}|{name} {message}"):
            data.guess(tmp_path / name)
