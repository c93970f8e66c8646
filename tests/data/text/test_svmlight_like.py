"""Text that is svmlight but for one thing: words as labels, fields as libffm has them, a line of counts first."""

import gzip

import numpy as np
import pytest

from workbench import data
from workbench.data import DataError

WORDS = "spam 1:1 7:0.5\n# a comment\nham 2:1\n\nspam 1:3 # said\n"
COUNTS = "3 9 4\n0,3 0:1 7:0.5\n1 2:1\n2,0 1:3\n"
FIELDS = "1 0:9:1 1:3:0.5\n0 0:4:1 1:3:1\n1 0:3:1 1:3:2\n"


def load(path, text, **parameters):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return data.load("svmlight", path=path, cache=False, **parameters)


def test_words_are_labels(tmp_path):
    made = load(tmp_path / "mails.txt", WORDS)
    assert made.classes == ("ham", "spam")
    assert made.y.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(made.x.toarray()[:, [0, 1, 6]], [[1, 0, 0.5], [0, 1, 0], [3, 0, 0]])
    assert load(tmp_path / "mails.txt", WORDS, positive="ham").labels.positive == "ham"
    assert load(tmp_path / "mails.txt", WORDS, kind="none").labels.are_missing


def test_a_later_file_of_words_is_read_like_the_first(tmp_path):
    first = load(tmp_path / "mails.txt", WORDS)
    later = load(tmp_path / "later.txt", "ham 1:1\nham 2:1\n", like=first)
    assert later.y.tolist() == [0, 0]
    assert later.x.shape == (2, 7)
    with pytest.raises(DataError, match=r"later.txt:2: .*'eggs'"):
        load(tmp_path / "later.txt", "ham 1:1\neggs 2:1\n", like=first)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_fields_of_libffm_are_left_out_and_columns_sorted_and_summed(tmp_path, pack):
    made = load(tmp_path / "clicks.ffm", pack(FIELDS.encode()))
    assert made.classes == ("0", "1")
    np.testing.assert_array_equal(made.x.toarray()[:, [2, 3, 8]], [[0.5, 0, 1], [1, 1, 0], [3, 0, 0]])
    assert "Fields of libffm text are left out" in made.facts["guesses"][0]


def test_a_first_line_of_counts_gives_the_columns(tmp_path):
    made = load(tmp_path / "tags.txt", COUNTS)
    assert made.x.shape == (3, 9)
    assert made.labels.kind == "multilabel"
    assert made.classes == ("0", "1", "2", "3")
    assert load(tmp_path / "tags.txt", COUNTS, features=12).x.shape == (3, 12)
    with pytest.raises(DataError, match=r"tags.txt:3: "):
        load(tmp_path / "tags.txt", "3 9 4\n0,3 0:1\n1 2:x\n2,0 1:3\n")


def test_an_invalid_line_is_named_by_the_file_itself(tmp_path):
    with pytest.raises(DataError, match=r"clicks.ffm:21: ") as caught:
        load(tmp_path / "clicks.ffm", "1 0:9:1\n" * 20 + "1 0:9:x\n")
    assert "/tmp/workbench-" not in str(caught.value)
    with pytest.raises(DataError, match=r"mails.txt:22: "):
        load(tmp_path / "mails.txt", "spam 1:1\n" * 21 + "ham 2\n")


@pytest.mark.parametrize("text", [WORDS, FIELDS, COUNTS])
def test_they_are_converted(tmp_path, text):
    (tmp_path / "rows.txt").write_text(text)
    data.convert("svmlight", tmp_path / "X.sparse", path=tmp_path / "rows.txt")
    stored = data.load("sparse", path=tmp_path / "X.sparse", whole=True)
    whole = data.load("svmlight", path=tmp_path / "rows.txt", cache=False)
    assert stored.classes == whole.classes
    rows = [sorted(zip(made.y.tolist(), made.x.toarray().tolist(), strict=True)) for made in (stored, whole)]
    assert rows[0] == rows[1]


def test_rows_without_labels_are_told_for_that_when_converted(tmp_path):
    (tmp_path / "rows.txt").write_text("26:1 170:0.5\n31:1\n")
    with pytest.raises(DataError, match=r"rows.txt has no labels: .*\nType labels=.FILE"):
        data.convert("svmlight", tmp_path / "X.sparse", path=tmp_path / "rows.txt")
    data.convert("svmlight", tmp_path / "X.sparse", path=tmp_path / "rows.txt", kind="none")
    assert data.load("sparse", path=tmp_path / "X.sparse", whole=True).rows == 2


def test_a_comment_right_behind_a_label_that_is_a_number_is_none_of_it(tmp_path):
    """And words keep their sign: c# is a class."""
    (tmp_path / "t").write_text("7.5# 52:9\nc# 1:2\nword 2:1\n")
    made = data.load("svmlight", path=tmp_path / "t", cache=False)
    assert sorted(made.classes) == ["7.5", "c#", "word"]
    assert made.x.toarray().tolist() == [[0, 0], [2, 0], [0, 1]]
