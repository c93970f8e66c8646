"""svmlight text in batches: what the whole file holds, in parts that meet exactly, and faults with file and line."""

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from workbench.data import DataError, SvmlightBatches

RNG = np.random.default_rng(2)
DENSE = np.float32(RNG.integers(0, 2, (23, 9)) * RNG.standard_normal((23, 9)))
LABELS = RNG.standard_normal(23).astype(np.float32)


def written(folder):
    """A file of 23 rows between comments, blank lines and lines of very different length."""
    dump_svmlight_file(DENSE.astype(float), LABELS.astype(float), str(folder / "plain.svm"), zero_based=True)
    lines = (folder / "plain.svm").read_bytes().splitlines()
    assert len(lines) == 23
    mixed = [b"# a_comment", b"", *lines[:3], b"   ", *(line + b" # " + b"_" * 90 for line in lines[3:6]), *lines[6:]]
    (folder / "data.svm").write_bytes(b"\n".join(mixed))  # without an end of the last line
    return folder / "data.svm"


@pytest.fixture
def path(tmp_path):
    return written(tmp_path)


def stream(path, features=9, zero_based=True, **options):
    return SvmlightBatches(path=path, features=features, zero_based=zero_based, **options)


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 23, 100])
def test_all_parts_together_have_every_row_once(path, parts):
    seen = [batch for part in range(parts) for batch in stream(path, rows=3, part=part, parts=parts).epoch()]
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in seen]), LABELS)
    np.testing.assert_array_equal(sp.vstack([batch.x for batch in seen]).toarray(), DENSE)
    sizes = [stream(path, part=part, parts=parts).total for part in range(parts)]
    assert sum(sizes) == 23
    if parts <= 3:
        assert min(sizes) >= 3


def test_columns_count_from_where_it_is_said(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:5 3:7\n-1 qid:4 2:1e-3\n+.5\n")
    (batch,) = stream(tmp_path / "x.svm", 3, zero_based=False).epoch()
    np.testing.assert_array_equal(batch.x.toarray(), np.float32([[5, 0, 7], [0, 1e-3, 0], [0, 0, 0]]))
    assert batch.y.tolist() == [1, -1, 0.5]
    (batch,) = stream(tmp_path / "x.svm", 4, zero_based=True, dtype="float64").epoch()
    assert batch.x.toarray()[0].tolist() == [0, 5, 0, 7]
    assert (batch.x.dtype, batch.y.dtype) == (np.float64, np.float64)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), ("", lzma.compress)])
def test_compressed_files_are_read_and_not_parted(path, suffix, pack):
    packed = path.with_name(f"packed.svm{suffix}")
    packed.write_bytes(pack(path.read_bytes()))
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in stream(packed, rows=5).epoch()]), LABELS)
    with pytest.raises(DataError, match="is compressed and cannot be entered at a part; unpack it, or use parts=1"):
        stream(packed, parts=2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 -3:1", "column -3 is below 0, the first one with zero_based=True"),
        ("1 9:1", "column 9 is out of range; with features=9 they are 0 to 8"),
        ("1 99999999999999999999:1", "column 99999999999999999999 is out of range"),
        ("1 3:1 2:1", "column 2 comes after 3; columns of a row should be sorted and unique"),
        ("1 3:1 3:1", "column 3 comes twice"),
        ("1 3", "'3' is not column:value"),
        ("1 3:", "the value in '3:' is no finite number"),
        ("1 :3", "':3' is not column:value"),
        ("1 1.5:3", "'1.5:3' is not column:value with a whole number"),
        ("1 1_0:3", "'1_0:3' is not column:value"),
        ("1 1:2:3", "the value in '1:2:3' is no finite number"),
        ("1 1:nan", "the value in '1:nan' is no finite number"),
        ("1 1:-inf", "the value in '1:-inf' is no finite number"),
        ("1 1:1e39", "the value in '1:1e39' is no finite number that float32 holds"),
        ("1 1:0x10", "the value in '1:0x10' is no finite number"),
        ("1 1:1 qid:3", "'qid:3' is not column:value"),
        ("one 1:1", "the label 'one' is no finite number; a line is: label column:value"),
        ("1,2 1:1", "the label '1,2' is no finite number"),
        ("1:1", "the label '1:1' is no finite number"),
        ("nan 1:1", "the label 'nan' is no finite number"),
        ("1_0 1:1", "the label '1_0' is no finite number"),
        ("\xff 1:1", r"the label '\\xc3\\xbf' is no finite number|the label 'ÿ' is no finite number"),
    ],
)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("order", [{}, {"shuffle": True, "buffer_rows": 5}], ids=["stored", "shuffled"])
def test_a_fault_is_told_with_file_and_line(path, line, message, parts, order):
    path.write_text(path.read_text() + f"\n{line}\n1 1:1\n", encoding="utf-8")
    number = len(path.read_text(encoding="utf-8").splitlines()) - 1
    with pytest.raises(DataError, match=rf"data.svm:{number}: {message}"):
        for _ in stream(path, rows=4, part=parts - 1, parts=parts, **order).epoch():
            pass


def test_column_zero_where_columns_count_from_one(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:1\n1 0:1\n")
    with pytest.raises(DataError, match=r"x.svm:2: column 0 is below 1, .*Pass zero_based=True if they count from 0"):
        list(stream(tmp_path / "x.svm", zero_based=False).epoch())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part": 2, "parts": 2}, "part is 2 of parts=2; parts are counted from 0"),
        ({"part": -1}, "part is -1 of parts=1"),
        ({"features": 0}, "features is 0; it is the number of columns"),
        ({"zero_based": "auto"}, "zero_based is 'auto'; say True or False"),
        ({"rows": 0}, "rows is 0"),
        ({"last": "drop"}, "last is 'drop'; it is one of keep, discard, pad, roll_over"),
        ({"dtype": "int8"}, "dtype is 'int8'; it is float32 or float64"),
    ],
)
def test_wrong_arguments_are_refused(path, options, message):
    with pytest.raises(DataError, match=message):
        stream(path, **options)


def test_missing_empty_and_changed_files_are_refused(path, tmp_path):
    with pytest.raises(DataError, match=r"There is no file .*none.svm; give the path of svmlight text"):
        stream(tmp_path / "none.svm")
    for text in ("", "\n\n", "# only a comment\n"):
        (tmp_path / "empty.svm").write_text(text)
        with pytest.raises(DataError, match=r"empty.svm holds no rows; a file has at least one"):
            stream(tmp_path / "empty.svm")
    with pytest.raises(DataError, match=r"cannot be read as svmlight text"):
        stream(tmp_path)
    read = stream(path)
    path.write_text("1 1:1\n")
    with pytest.raises(DataError, match=r"has changed since these batches were set up"):
        next(read.epoch())


def test_an_epoch_of_whole_batches_alone_may_have_none(path):
    assert list(stream(path, rows=50, last="discard").epoch()) == []


def test_an_iterator_that_is_left_early_closes_its_file(path):
    batches = stream(path, rows=2).epoch()
    next(batches)
    batches.close()
    path.unlink()


def peaks(path, **options) -> list[int]:
    """Bytes held at most in an epoch of 1000 rows, and of 20 times these, in batches of 200."""
    text = "".join(f"1 {column}:1.5 {column + 1}:2.5\n" for column in RNG.integers(0, 90, 1000))
    found = []
    for copies in (1, 20):
        path.write_text(text * copies)
        read = stream(path, 100, rows=200, **options)
        next(read.epoch())
        tracemalloc.start()
        rows = sum(len(batch.rows_index) for batch in read.epoch())
        found.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert rows == 1000 * copies
    return found


def test_memory_does_not_grow_with_the_file(tmp_path):
    once, often = peaks(tmp_path / "x.svm")
    assert often < 2 * once
