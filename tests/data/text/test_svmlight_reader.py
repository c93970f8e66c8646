"""The compiled reader of svmlight text gives what scikit-learn's gives, bit for bit, and refuses what is wrong."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from workbench import data
from workbench.data import DataError
from workbench.data.files import opened
from workbench.data.text.svmlight import InvalidLineError, joined, read_rows

ODD = {
    "numbers": b"1 0:1e-320 1:4.9e-324 2:0.12345678901234567 3:+1.5 4:-0 5:1.7976931348623157e308 6:.5 7:5. 8:1E-7\n",
    "digits": b"1 0:123456789012345678901234567890 3:0.1000000000000000055511151231257827 9:1e22 10:1e23\n",
    "zeros": b"+001 00:1 0001:02.50 +2:00012 2147483647:7\n",
    "comments": b"# a_comment\n1 0:1 # 3:4 of it\n  # another\n0#none\n1 1:2#close\n",
    "blank lines": b"\n\n1 0:1\n   \n\t\n-1 2:3\n\n",
    "blanks": b"  1\t0:1 \x0b 1:2\x0c  \n 0 0:3\t\n",
    "CRLF": b"1 0:1 3:2\r\n-1 2:1\r\n\r\n",
    "CR": b"1\r0:1\r3:2\n",
    "no line end": b"1 0:1\n0 1:2",
    "no line end in a comment": b"1 0:1\n0 1:2 # of",
    "queries": b"1 qid:1 0:1\n0 qid:9223372036854775807 1:2\n1 qid:007\n",
    "rows without entries": b"1\n0 1:1\n-1\n",
    "negative zero": b"-0 -0:1 1:-0.0\n",
}


def as_sklearn(text, **options):
    return load_svmlight_file(io.BytesIO(text), dtype=np.float64, zero_based=True, query_id=True, **options)


def assert_same_bits(rows, x, y, queries):
    assert rows.columns.tolist() == x.indices.tolist()
    assert rows.starts.tolist() == x.indptr.tolist()
    np.testing.assert_array_equal(rows.values.view(np.int64), x.data.view(np.int64))
    np.testing.assert_array_equal(rows.labels.view(np.int64), y.view(np.int64))
    assert rows.queries.tolist() == (queries.tolist() if len(queries) else [-1] * len(y))


@pytest.mark.parametrize("name", ODD)
def test_odd_text_gives_the_bits_of_scikit_learn(name):
    text = ODD[name]
    assert_same_bits(read_rows(text if text.endswith(b"\n") else text + b"\n"), *as_sklearn(text))


def written(rows=300, columns=50, seed=3):
    random = np.random.default_rng(seed)
    x, file = scipy.sparse.random_array((rows, columns), density=0.1, format="csr", rng=random), io.BytesIO()
    x.data[:] = random.standard_normal(x.nnz) * 10.0 ** random.integers(-310, 300, x.nnz)
    dump_svmlight_file(x, random.standard_normal(rows), file, zero_based=True, query_id=random.integers(0, 9, rows))
    return file.getvalue()


@pytest.mark.parametrize("size", [1, 100, 5000, 1 << 22])
def test_blocks_of_any_size_give_the_same_rows(monkeypatch, size):
    monkeypatch.setattr(opened, "BYTES", size)
    text = written()
    rows = joined(opened.map_blocks(read_rows, opened.line_blocks(io.BytesIO(text.rstrip(b"\n")))))
    assert_same_bits(rows, *as_sklearn(text))


@pytest.mark.parametrize(
    "text",
    [
        *("x 0:1", "1 0:1 0:2", "1 3:1 2:1", "1 0", "1 0:", "1 :1", "1 0:x", "1 0:1x", "1 -1:1", "1 0:1:2", "1 a:1"),
        *("1 0:nan", "1 0:inf", "inf 0:1", "1 0:1e999", "1e999 0:1", "1_0 0:1", "1 0:1_0", "1 1_0:1", "1 0x1:1"),
        *("1 2147483648:1", "1 99999999999999999999:1", "1 qid:x 0:1", "1 qid:-1 0:1", "1 qid:9223372036854775808"),
        *("1 qid 0:1", "1 0:1 qid:1", "1,2 0:1", "1 0:1 2", "1 0:1e", "1 0 :1", "0:1", "- 0:1", "1 0:1\x001"),
    ],
)
def test_what_is_no_svmlight_text_is_refused(text):
    with pytest.raises(InvalidLineError):
        read_rows(b"1 0:1\n" + text.encode() + b"\n1 0:1\n")


def test_several_labels_are_those_of_scikit_learn():
    text = b"2,1 0:1\n3 1:1 # one\n0:2 1:3\n1.5,-2,7 2:1\nqid:3 1:1\n"
    x, labels = load_svmlight_file(io.BytesIO(text), dtype=np.float64, zero_based=True, multilabel=True)
    rows = read_rows(text, several=True)
    assert rows.columns.tolist() == x.indices.tolist()
    ends = np.cumsum(rows.label_counts)
    assert [tuple(sorted(part)) for part in np.split(rows.labels, ends[:-1])] == labels
    for wrong in (b"1, 0:1\n", b",1 0:1\n", b"1,x 0:1\n", b"1,2:3\n"):
        with pytest.raises(InvalidLineError):
            read_rows(wrong, several=True)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
def test_packed_files_are_read_as_plain_ones(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(opened, "BYTES", 3000)
    text = b"".join(b"%d 0:0.5 %d:%d\n" % (row % 2, row % 7 + 1, row) for row in range(1, 999))
    (tmp_path / "plain.svm").write_bytes(text)
    (tmp_path / "packed.svm").write_bytes(pack(text))
    plain, packed = (data.load("svmlight", path=tmp_path / f"{name}.svm", cache=False) for name in ("plain", "packed"))
    np.testing.assert_array_equal(plain.x.toarray(), packed.x.toarray())
    assert plain.y.tolist() == packed.y.tolist()


@pytest.mark.parametrize("number", [1, 400, 998])
def test_the_line_of_an_error_is_told_wherever_it_is(tmp_path, monkeypatch, number):
    monkeypatch.setattr(opened, "BYTES", 500)
    lines = [b"%d 1:0.5 %d:%d\n" % (row % 2, row % 7 + 2, row) for row in range(1, 999)]
    lines[number - 1] = b"1 1:0.5 3:x\n"
    (tmp_path / "rows.svm").write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=rf"rows.svm:{number}: the value in '3:x' is no finite number"):
        data.load("svmlight", path=tmp_path / "rows.svm", cache=False)
    with pytest.raises(DataError, match=rf"rows.svm:{number}: the value in '3:x' is no finite number"):
        data.convert("svmlight", tmp_path / "X.sparse", path=tmp_path / "rows.svm")


def test_bytes_that_are_no_text_are_told_behind_any_block(tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "BYTES", 50)
    (tmp_path / "rows.svm").write_bytes(b"1 1:1\n" * 40 + b"1 1:\xff\n" + b"1 1:1\n" * 9)
    with pytest.raises(DataError, match=r"rows.svm:41: the byte 0xff is not utf-8"):
        data.load("svmlight", path=tmp_path / "rows.svm", cache=False)


def test_reading_compiles_once():
    read_rows(b"1 0:1\n")
    from workbench.data.text import svmlight

    before = len(svmlight._read_rows.signatures)
    read_rows(b"1 0:1\n0 2:3\n")
    assert len(svmlight._read_rows.signatures) == before <= 2  # numbers as float64, and float32 in lent memory
