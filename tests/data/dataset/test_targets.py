"""Targets by the kind that a model asks for: what the labels say, or an error that says what to do."""

import dataclasses

import numpy as np
import pytest

from tests.support.small_sets import labelled, targets
from workbench import data
from workbench.data import DataError, Labels


def named(y, classes, **meaning):
    """A small set whose classes have those names."""
    return dataclasses.replace(labelled(y), labels=Labels("classes", tuple(classes), **meaning))


def several(y):
    """A small set with a column of 0 and 1 for each of three classes."""
    return dataclasses.replace(labelled(), y=np.array(y, np.uint8), labels=Labels("multilabel", ("a", "b", "c")))


SEVERAL = several([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1], [1, 0, 0]])


def test_classes_are_their_numbers_and_may_lack_examples():
    made = labelled([0, 1, 2, 3])
    for width in (None, 4, 9):
        came = data.targets(made, "classes", width)
        assert (came.tolist(), came.dtype) == ([0, 1, 2, 3], np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_yes_is_the_positive_class(dtype):
    came = data.targets(named([0, 1, 0], ("no", "yes")), "binary", dtype=dtype)
    assert (came.tolist(), came.dtype) == ([[0], [1], [0]], dtype)
    assert data.targets(named([0, 1, 0], ("no", "yes"), positive="no"), "binary").tolist() == [[1], [0], [1]]
    assert data.targets(named([0, 1, 2], "abc", positive="b"), "binary").tolist() == [[0], [1], [0]]


def test_the_larger_of_two_classes_is_positive_unless_a_word_says_otherwise():
    for pair in (("-1", "1"), ("0", "1"), ("1", "2"), ("False", "True"), ("no", "yes"), ("ham", "spam")):
        assert Labels("classes", pair).positive == pair[1]
    for pair in (("Yes", "no"), ("1", "none"), ("T", "f"), ("positive", "unknown")):
        assert Labels("classes", pair).positive == pair[0]
    assert Labels("classes", ("a", "b", "c")).positive is None


def test_numbers_stay_numbers():
    ratings = named([0, 4, 2, 2], ("1", "2", "3", "4", "5"))
    came = data.targets(ratings, "numbers")
    assert (came.tolist(), came.dtype) == ([[1], [5], [3], [3]], np.float32)
    assert data.targets(targets(range(6)), "numbers", dtype=np.float64).tolist() == [[i] for i in range(6)]
    two = targets(np.arange(12).reshape(6, 2))
    assert data.targets(two, "numbers").shape == (6, 2)
    assert data.targets(two, "numbers", 1).flags.c_contiguous
    assert data.targets(named([0, 1], ("False", "True")), "numbers").tolist() == [[0], [1]]


def test_wide_numbers_of_classes_are_columns_of_0_and_1():
    assert data.targets(labelled([0, 1, 2]), "numbers", 3).tolist() == np.eye(3).tolist()
    assert data.targets(labelled([0, 1, 1]), "multilabel", 3).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_several_classes_a_row_are_columns():
    assert data.targets(SEVERAL, "multilabel").tolist() == SEVERAL.y.tolist()
    assert data.targets(SEVERAL, "numbers", 4)[:, 3].tolist() == [0] * 6
    meaning = dataclasses.replace(SEVERAL.labels, positive="b")
    assert data.targets(dataclasses.replace(SEVERAL, labels=meaning), "binary")[:, 0].tolist() == [0, 0, 1, 1, 0, 0]


def test_natural_widths():
    made = labelled([0, 1, 2])
    widths = {target: data.natural_width(made, target) for target in ("classes", "binary", "numbers", "multilabel")}
    assert widths == {"classes": 3, "binary": 1, "numbers": 1, "multilabel": 3}
    assert data.natural_width(targets(np.arange(12).reshape(6, 2)), "numbers") == 2
    assert data.natural_width(targets(range(6)), "numbers") == 1
    assert data.natural_width(SEVERAL, "numbers") == 3


def test_models_by_name_ask_for_their_kind():
    made = named([0, 1, 2], "123", positive="2")
    for model, target in (("linear", "numbers"), ("logistic", "binary"), ("softmax", "classes")):
        np.testing.assert_array_equal(data.with_labels(made, model), data.targets(made, target))
    with pytest.raises(DataError, match=r"Unknown model 'svm'.*Expected one of: linear, logistic, softmax"):
        data.with_labels(made, "svm")


def test_labels_mean_the_same_in_both_parts_of_a_split():
    made = data.merge_rare_classes(named([0, 0, 0, 0, 1, 1, 2, 3], "1234", positive="2"), 3)
    for target, width in (("numbers", 3), ("binary", None), ("classes", 3)):
        whole = dict(zip(made.y.tolist(), data.targets(made, target, width).tolist(), strict=True))
        for part in data.split(made, 0.5):
            for number, row in zip(part.y.tolist(), data.targets(part, target, width).tolist(), strict=True):
                assert row == whole[number]


def test_the_rarest_classes_become_the_last_one():
    made = named([0, 1, 1, 2, 3, 3, 3, 4], "abcde", positive="c")
    fewer = data.merge_rare_classes(made, 4)
    assert fewer.classes == ("b", "c", "d", "other (2 classes)")
    assert (fewer.y.tolist(), fewer.labels.merged) == ([3, 0, 0, 1, 2, 2, 2, 3], ("a", "e"))
    again = data.merge_rare_classes(fewer, 2)
    assert (again.classes, again.labels.positive) == (("c", "other (4 classes)"), "c")
    assert sorted(again.labels.merged) == ["a", "b", "d", "e"]
    assert data.merge_rare_classes(made, 5) is made
    assert data.merge_rare_classes(named([0, 0, 1, 2], "abc"), 2).labels.positive == "a"


NUMBERS = targets(range(6))
TEXT = named([0, 1, 2], ("cat", "dog", "fox"))


@pytest.mark.parametrize(
    ("made", "target", "width", "message"),
    [
        (TEXT, "ranks", None, "Unknown target 'ranks'.*Expected one of: classes, binary, numbers, multilabel"),
        (TEXT, "numbers", 0, "width is 0; it is the number of outputs, 1 or more"),
        (TEXT, "classes", 1, r"width is 1 and small has 3 classes. Take width = 3 .* merge = true"),
        (TEXT, "classes", 2, r"width is 2 and small has 3 classes. Take width = 3 .* merge = true"),
        (TEXT, "numbers", 2, "width is 2 and small has 3 classes"),
        (SEVERAL, "multilabel", 2, "width is 2 and small has 3 classes"),
        (TEXT, "numbers", None, "labels of small are 3 classes: cat, dog, fox. They are no numbers. .* width = 3"),
        (TEXT, "binary", None, "3 classes: cat, dog, fox. This model is a binary classifier; name .* positive = "),
        (TEXT, "binary", 2, "width is 2; a binary target has one output"),
        (
            NUMBERS,
            "binary",
            None,
            "labels of small are numbers; this model is a binary classifier. .* kind = 'classes'",
        ),
        (NUMBERS, "classes", None, "are numbers; this model chooses one class a row. Take a model of numbers, or say"),
        (NUMBERS, "multilabel", None, r"are numbers; this model predicts each class apart \(multilabel\)"),
        (NUMBERS, "numbers", 2, "width is 2; it needs as many numbers a row, and small has 1"),
        (SEVERAL, "classes", None, "3 classes, several a row; this model chooses one class a row. Take a model of sev"),
        (SEVERAL, "binary", None, "several a row: a, b, c. This model is a binary classifier; name"),
    ],
)
def test_labels_that_cannot_give_a_target_say_what_to_do(made, target, width, message):
    with pytest.raises(DataError, match=message):
        data.targets(made, target, width)


@pytest.mark.parametrize("target", ["classes", "binary", "numbers", "multilabel"])
def test_a_constant_label_is_nothing_to_learn(target):
    with pytest.raises(DataError, match="Every label of small is '7': there is nothing to learn"):
        data.targets(named([0, 0, 0], "7"), target)
    constant = dataclasses.replace(targets([0.5] * 6), labels=Labels("numbers", span=(0.5, 0.5)))
    with pytest.raises(DataError, match=r"Every label of small is 0.5: there is nothing to learn"):
        data.targets(constant, target)


def test_a_part_with_one_class_is_not_a_constant_label():
    made = named([0, 0, 0, 1], "01")
    assert data.targets(data.keep_rows(made, 1, seed=1), "binary").shape == (1, 1)


def test_a_number_beyond_the_type_is_refused():
    wide = dataclasses.replace(targets(range(6)), y=np.array([1e300] + [0.0] * 5))
    assert data.targets(wide, "numbers", dtype=np.float64)[0, 0] == 1e300
    with pytest.raises(DataError, match=r"The label 1e\+300 is beyond float32; take float64, or scale the labels"):
        data.targets(wide, "numbers")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"kind": "class"}, "kind is 'class'; it is one of classes, numbers, multilabel"),
        ({"kind": "classes"}, "Labels of kind classes have 0 classes"),
        ({"kind": "numbers", "classes": ("a",)}, "Labels of kind numbers have 1 class; numbers have none"),
        ({"kind": "classes", "classes": ("a", "a")}, "Classes are named twice: a, a"),
        ({"kind": "classes", "classes": ("a", "b"), "positive": "c"}, "positive is 'c'; the classes are a, b"),
    ],
)
def test_a_meaning_that_contradicts_itself_is_refused(labels, message):
    with pytest.raises(DataError, match=message):
        Labels(**labels)


@pytest.mark.parametrize(
    ("made", "width", "message"),
    [
        (TEXT, 1, "width is 1; merging leaves two classes or more"),
        (NUMBERS, 2, "small has numbers; only classes, one a row, can be merged"),
        (SEVERAL, 2, "several a row; only classes, one a row, can be merged"),
    ],
)
def test_what_cannot_be_merged_says_so(made, width, message):
    with pytest.raises(DataError, match=message):
        data.merge_rare_classes(made, width)
