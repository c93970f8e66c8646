"""Conversion block by block: the same set as from memory, bounded memory, and nothing half-written."""

import tracemalloc

import numpy as np
import pytest

from tests.support.small_sets import csr, same
from tests.support.stored_sets import block, blocks, drawn, left_over, stored, whole
from workbench import data, formats
from workbench.data import DataError
from workbench.data.files import opened
from workbench.data.labels import Wanted
from workbench.data.stored import converting
from workbench.data.stored.converting import LabelCollector


def svmlight(path, rows=300, labels=None, first=1, seed=0):
    """A file of rows with columns counted from `first`."""
    random = np.random.default_rng(seed)
    with path.open("w") as file:
        for row in range(rows):
            columns = np.unique(random.integers(first, 40, 6))
            label = random.integers(0, 3) if labels is None else labels[row % len(labels)]
            file.write(f"{label} {' '.join(f'{column}:{column / 8}' for column in columns)}\n")
    return path


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("labels", [None, ["-1", "+1"], ["0.5", "2", "3"], ["1", "0"]])
def test_text_is_converted_block_by_block_to_what_reading_it_whole_gives(tmp_path, monkeypatch, first, labels):
    monkeypatch.setattr(opened, "BYTES", 2000)
    path = svmlight(tmp_path / "rows.svm", labels=labels, first=first)
    stored(tmp_path / "X.sparse", "svmlight", path=path)
    expected = data.load("svmlight", path=path, cache=False)
    again = whole(tmp_path / "X.sparse")
    assert same(again, expected)
    assert (again.name, again.source) == (expected.name, expected.source)
    assert again.facts["reread"] == expected.facts["reread"]
    stored(tmp_path / "Y.sparse", "svmlight", path=path, features=45)
    assert whole(tmp_path / "Y.sparse").features == 45


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("1 1:1\n1 2:1 1:1\n", {}, r"rows.svm:2: column 1 comes after 2"),
        ("1 1:1\nx 2:1\n", {}, r"rows.svm:2: the label 'x' is no finite number"),
        ("1 5:1\n", {"features": 3}, r"rows.svm:1: column 5 is out of range"),
        ("", {}, "holds no rows"),
        ("1\n2\n", {}, "labels without features"),
        ("1,2 1:1\n", {}, "has rows with several labels; say kind = 'multilabel'"),
        ("1 1:1\n", {"zero_based": "no"}, "zero_based is 'no'"),
        ("1 1:1\n", {"colour": "red"}, "svmlight has no parameter 'colour'"),
        ("3 1:1\n", {"classes": [1, 2]}, "the label '3' is none of the classes 1, 2"),
    ],
)
def test_faults_of_the_source_leave_nothing(tmp_path, text, parameters, message):
    (tmp_path / "rows.svm").write_text(text)
    with pytest.raises(DataError, match=message):
        data.convert("svmlight", tmp_path / "X.sparse", path=tmp_path / "rows.svm", **parameters)
    assert left_over(tmp_path) == []


def test_rows_of_a_query_are_a_group_and_stay_together(tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "BYTES", 100)
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{row % 2} qid:{row // 5} {row % 9 + 1}:1\n" for row in range(60)))
    kept = stored(tmp_path / "X.sparse", "svmlight", path=path)
    assert kept.groups.tolist() == data.load("svmlight", path=path, cache=False).groups.tolist()
    shuffled = stored(tmp_path / "Y.sparse", "svmlight", shuffle=0, path=path)
    assert np.count_nonzero(np.diff(shuffled.groups)) == 11
    path.write_text("1 1:1\n" * 10 + "1 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"rows.svm:1: the row has no query"):
        stored(tmp_path / "Z.sparse", "svmlight", path=path)


def test_several_labels_a_row_are_read_whole(tmp_path):
    (tmp_path / "rows.svm").write_text("1,2 1:1\n2 2:1\n 1:3\n")
    kept = stored(tmp_path / "X.sparse", "svmlight", path=tmp_path / "rows.svm", kind="multilabel")
    assert kept.y.tolist() == [[1, 1], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([np.array(["b", "a"]), np.array(["c"])], {}),
        ([np.array(["10", "9"]), np.array(["10"])], {}),
        ([np.array(["10", "9"]), np.array(["2.5"])], {"kind": "numbers"}),
        ([np.array(["no"]), np.array(["yes", "perhaps"])], {"classes": ["yes", "no"], "unseen": "no"}),
        ([np.array([3, 1]), np.array([2, 3])], {}),
        ([np.array([3.0, 1.0]), np.array([2.5])], {}),
        ([np.array([3.0, 1.0]), np.array([2.5])], {"kind": "classes"}),
        ([np.array([True, False]), np.array([True])], {}),
        ([np.array([1, 0]), np.array([1])], {"positive": 0}),
        ([np.arange(600), np.arange(400, 1100)], {}),
        ([np.arange(600), np.arange(400, 1100)], {"kind": "classes"}),
        ([np.eye(2), np.ones((3, 2))], {}),
        ([np.eye(2), np.full((3, 2), 0.5)], {}),
        ([np.eye(2), np.ones((3, 2))], {"kind": "numbers"}),
        ([np.ones((2, 1)), np.zeros((3, 1))], {}),
        ([np.array([b"x", b"y"]), np.array([b"x"])], {}),
    ],
)
def test_labels_that_come_in_blocks_mean_what_they_do_together(parts, wanted):
    from workbench.data.labels import read_labels

    collector = LabelCollector(Wanted(**wanted), "blocks")
    for part in parts:
        collector.add(part)
    meaning, came = collector.read()
    expected, y = read_labels(np.concatenate(parts), Wanted(**wanted), str)
    assert meaning == expected
    assert came.dtype == y.dtype
    np.testing.assert_array_equal(came, y)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([np.array([1.0]), np.array(["a"])], "are .*float64.* and from row 1 on .*text.*; keep to one"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "keep to one"),
        ([[(1, 2), (3,)]], "Labels of a block of blocks are a list; give columns"),
        ([np.array([object()])], "they are numbers or text"),
    ],
)
def test_labels_that_do_not_go_together_are_refused(parts, message):
    collector = LabelCollector(Wanted(), "blocks")
    with pytest.raises(DataError, match=message):
        list(map(collector.add, parts))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "holds no rows"),
        ([(csr(shape=(3, 4)), np.zeros(2))], r"has \[2, 3\] rows and labels; one for each row"),
        ([block(), (csr(shape=(3, 4), dtype=np.float64), np.zeros(3))], "differ in the type of values"),
        ([block(), (*block(), np.arange(3))], "or in having groups"),
        ([block(features=9)], "A block has 9 columns, and the set 5 features"),
    ],
)
def test_blocks_that_do_not_go_together_are_refused(tmp_path, pairs, message):
    with pytest.raises(DataError, match=message):
        data.convert(blocks(pairs, features=5), tmp_path / "X.sparse")
    with pytest.raises(formats.FormatError, match="unsorted"):
        data.convert(blocks([(csr(columns=(3, 1, 0)), np.zeros(3))]), tmp_path / "X.sparse")
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shuffle": -1}, "shuffle is -1; it is a seed"),
        ({"shuffle": True}, "shuffle is True"),
        ({"kind": "classes"}, "convert has no parameter 'kind' here; there is: none for a data set"),
        ({"origin": 3}, "There is a int to convert; give the name of a data set"),
        ({"origin": "nothing"}, "nothing"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, arguments, message):
    with pytest.raises(DataError, match=message):
        data.convert(**{"origin": drawn(), "folder": tmp_path / "X.sparse", **arguments})
    assert left_over(tmp_path) == []


def test_progress_is_told_of_both_stages(tmp_path):
    messages = []
    stored(tmp_path / "X.sparse", drawn(), shuffle=0, progress=messages.append)
    assert messages[0].stage == "reading"
    assert messages[-1] == data.Progress("writing", 300, 300)


def test_memory_does_not_grow_with_the_set(tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "BUFFER_BYTES", 2**17)

    def some(count):
        random = np.random.default_rng(0)
        for _ in range(count):
            columns = np.sort(random.integers(0, 50, (1000, 20)) + 50 * np.arange(20))
            x = csr(np.arange(0, 20_001, 20), columns.ravel(), random.random(20_000), (1000, 1000))
            yield x, random.integers(0, 3, 1000)

    peaks = []
    for number, count in enumerate((40, 8, 40)):  # 7 and 1.4 MB; the first to load the code
        tracemalloc.start()
        data.convert(blocks(some(count)), tmp_path / str(number))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]
    assert peaks[2] < 3 * 2**20
