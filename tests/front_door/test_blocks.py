"""`wb.blocks`: rows of a file for the user's own training, in memory of their own."""

import numpy as np
import pytest

import workbench as wb
from tests.training.test_streaming import ROWS, lines, write
from workbench.data.errors import DataError


def test_estimators_learn_from_blocks_what_they_learn_from_slices(tmp_path):
    path = write(tmp_path / "a.svm", lines(0, ("-1", "1")))
    read = wb.load(path, zero_based=True)
    parts = list(wb.blocks(path, features=read.features, memory=32 << 12))
    assert len(parts) > 2
    assert sum(len(y) for _, y in parts) == ROWS
    first, second = (wb.SparseClassifier(batch_rows=8, shuffle=False, random_state=0) for _ in range(2))
    start = 0
    for x, y in parts:
        first.partial_fit(x, y, classes=[-1, 1])
        rows = slice(start, start + len(y))
        second.partial_fit(read.x[rows], np.where(read.y[rows], 1, -1), classes=[-1, 1])
        start += len(y)
    assert np.array_equal(first.coef_, second.coef_)


def test_blocks_of_svmlight_without_a_width_grow_and_hashed_ones_do_not(tmp_path):
    path = write(tmp_path / "a.svm", ["1 3:1", *["0 1:1"] * 2000, "1 9000:1"])
    widths = [x.shape[1] for x, _ in wb.blocks(path, memory=32 << 12)]
    assert widths[0] == 4
    assert widths[-1] == 9001
    assert {x.shape[1] for x, _ in wb.blocks(path, bits=6, memory=32 << 12)} == {64}


def test_a_table_gives_labels_as_they_stand(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("site,bought\n" + "a,yes\nb,no\nc,yes\n" * 50)
    ((x, y),) = wb.blocks(path, label="bought", bits=4)
    assert x.shape[0] == 150
    assert y[:3].tolist() == ["yes", "no", "yes"]


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [(np.eye(2), {}, "blocks reads a file"), ("nowhere.svm", {}, "expected its path"), (None, {"batch": 1}, "batch")],
)
def test_what_is_no_file_of_rows_is_refused_at_once(tmp_path, source, given, message):
    source = write(tmp_path / "a.svm", ["1 1:1"]) if source is None else source
    with pytest.raises(DataError, match=message):
        wb.blocks(source, **given)
