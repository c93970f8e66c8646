"""What labels in a file mean: guessed and told, or as the caller says; a second file has the classes of the first."""

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import svmlight
from workbench import data, metrics, training
from workbench.data import DataError, cache
from workbench.data.labels import class_numbers

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def npz(tmp_path):
    """Reads labels from a file, beside a matrix of as many rows."""

    def read(labels, name="set", x=None, **parameters):
        labels = np.asarray(labels)
        x = sp.eye_array(len(labels), 50, format="csr") if x is None else x
        sp.save_npz(tmp_path / f"{name}.npz", x)
        np.save(tmp_path / f"{name}.npy", labels)
        return data.load("npz", path=tmp_path / f"{name}.npz", labels=tmp_path / f"{name}.npy", **parameters)

    return read


@pytest.mark.parametrize(
    ("labels", "expected", "classes"),
    [
        ([1.0, 5.0, 2.0], "3 classes (guessed: whole numbers, few of them)", ("1", "2", "5")),
        (np.int8([10, 9, -1]), "3 classes (guessed: whole numbers, few of them)", ("-1", "9", "10")),
        (["b", "a", "b"], "2 classes (guessed: text)", ("a", "b")),
        ([b"10", b"9", b"10"], "2 classes (guessed: text)", ("9", "10")),
        ([True, False, True], "2 classes (guessed: true or false)", ("False", "True")),
        ([0.5, 1.0, 2.0], "numbers 0.5 to 2 (guessed: not all of them whole)", ()),
        (range(33), "numbers 0 to 32 (guessed: whole numbers, most of them once or twice)", ()),
        ([*range(33)] * 3, "33 classes (guessed: whole numbers, few of them)", tuple(map(str, range(33)))),
        (range(1001), "numbers 0 to 1000 (guessed: more than 1,000 different ones)", ()),
        ([[1, 0], [1, 1]], "2 classes, several a row (guessed: columns of 0 and 1)", ("0", "1")),
        ([[1.5, 0], [1, 1]], "numbers 0 to 1.5 (guessed: columns of numbers)", ()),
        ([[3], [4]], "2 classes (guessed: whole numbers, few of them)", ("3", "4")),
    ],
)
def test_the_kind_is_guessed_and_the_guess_is_told(npz, labels, expected, classes):
    made = npz(labels, x=sp.eye_array(len(labels), 50, format="csr"))
    assert (str(made.labels), made.classes) == (expected, classes)


def test_the_kind_can_be_stated(npz):
    assert npz([0.5, 1.5, 0.5], kind="classes").classes == ("0.5", "1.5")
    numbers = npz([1, 2, 3], kind="numbers")
    assert (numbers.y.tolist(), str(numbers.labels)) == ([1, 2, 3], "numbers 1 to 3")
    assert npz(["1.5", "2"], kind="numbers").y.tolist() == [1.5, 2]
    named = npz([[1, 0], [1, 1]], kind="multilabel", classes=["cat", "dog"])
    assert (named.classes, named.y.tolist()) == (("cat", "dog"), [[1, 0], [1, 1]])


def test_ratings_are_not_ranks_of_frequency(npz):
    ratings = [5.0, 4.0, 4.0, 4.0, 1.0, 3.0, 3.0]
    assert data.targets(npz(ratings), "numbers")[:, 0].tolist() == ratings
    assert data.targets(npz([0.1, 0.2]), "numbers", dtype=np.float64)[:, 0].tolist() == [0.1, 0.2]


def test_classes_keep_the_order_of_their_labels():
    for labels, names, numbers in [
        ([10, 9, 10], ("9", "10"), [1, 0, 1]),
        ([0.5, -1.5, 0.5], ("-1.5", "0.5"), [1, 0, 1]),
        (["10", "9", "x"], ("10", "9", "x"), [0, 1, 2]),
        (["1", "1.0", "0"], ("0", "1", "1.0"), [1, 2, 0]),  # two spellings of one number are text
        (["+1", "-1"], ("-1", "+1"), [1, 0]),
        (np.uint64([2**64 - 1, 0]), ("0", str(2**64 - 1)), [1, 0]),
        ([1e300, 0], ("0", "1e+300"), [1, 0]),
    ]:
        came = class_numbers(np.array(labels))
        assert (came[0], came[1].tolist(), came[1].dtype) == (names, numbers, np.int64)


def test_the_positive_class_can_be_named_as_text_or_number(npz):
    assert npz([0, 1, 1]).labels.positive == "1"
    assert npz([0, 1, 1], positive=0).labels.positive == "0"
    assert npz([0.0, 1.0, 1.0], positive="0.0").labels.positive == "0"
    assert npz([False, True], positive=False).labels.positive == "False"
    assert npz([False, True], positive=0).labels.positive == "False"
    assert npz(["a", "b", "c"], positive="b").labels.positive == "b"
    assert npz([0.5, 1.5], positive=1.5).classes == ("0.5", "1.5")


def clicks(rng, rows, ones):
    """A matrix and labels that follow from it, that many of them 1."""
    x = sp.random_array((rows, 40), density=0.2, format="csr", dtype="f4", rng=rng)
    score = x @ np.linspace(-1, 1, 40)
    return x, (score >= np.sort(score)[rows - ones]).astype(int)


def test_scores_rank_what_the_file_calls_1(npz):
    x, y = clicks(np.random.default_rng(0), 300, 90)  # 1 is the rarer one
    made = npz(y, x=x)
    setup = training.Setup(model="logistic", format="csr", gradient="fused", update="lazy", optimizer="adagrad")
    run = training.make_run(setup, made.x, data.targets(made, "binary"), width=1)
    for _ in run.events(epochs=20):
        pass
    scores = run.predict(made.x)[:, 0]
    assert (scores[y == 1][:, None] > scores[y == 0]).mean() > 0.85  # the area under the ROC curve


# a second file


@pytest.fixture
def fit(npz):
    return npz(["a", "b", "c", "a", "a"], name="fit", positive="b")


def test_a_second_file_has_the_classes_of_the_first(npz, fit):
    other = npz(["c", "c", "a"], name="other", like=fit)
    assert (other.classes, other.y.tolist(), other.labels) == (fit.classes, [2, 2, 0], fit.labels)
    assert npz(["c", "a"], name="other", classes=["c", "b", "a"]).y.tolist() == [0, 2]


def test_numbers_written_otherwise_are_the_same_classes(npz):
    fit = npz([0, 1, 2], name="fit")
    for labels in ([2.0, 1.0], ["2", "1"], ["2.0", "+1"]):
        assert npz(labels, name="other", like=fit).y.tolist() == [2, 1]


def test_an_unseen_label_is_refused_or_goes_to_a_stated_class(npz, fit):
    message = r"other.npy, row 1: the label 'd' is none of the classes a, b, c. Give unseen = one of them"
    with pytest.raises(DataError, match=message):
        npz(["a", "d", "d"], name="other", like=fit)
    other = npz(["a", "d", "d"], name="other", like=fit, unseen="c")
    assert (other.y.tolist(), other.classes) == ([0, 2, 2], fit.classes)
    with pytest.raises(DataError, match="unseen is 'e'; the classes are a, b, c"):
        npz(["a", "d"], name="other", like=fit, unseen="e")


def test_an_unseen_label_in_text_is_told_with_its_line(tmp_path):
    fit = svmlight(tmp_path, "1 1:1\n2 2:1\n")
    with pytest.raises(DataError, match=r"data.svm:4: the label '3' is none of the classes 1, 2"):
        svmlight(tmp_path, "# comment\n1 1:1\n\n3 2:1\n", like=fit)


def test_merged_classes_stay_merged_in_a_second_file(npz):
    fit = data.merge_rare_classes(npz([1, 1, 2, 2, 3, 4], name="fit"), 3)
    assert fit.classes == ("1", "2", "other (2 classes)")
    assert npz([4, 2, 3], name="other", like=fit).y.tolist() == [2, 1, 2]
    with pytest.raises(DataError, match="the label '5' is none of the classes 1, 2, 3, 4"):
        npz([5, 1], name="other", like=fit)
    assert npz([5, 1], name="other", like=fit, unseen=fit.classes[-1]).y.tolist() == [2, 0]


def test_a_second_file_counts_columns_as_the_first(tmp_path):
    fit = svmlight(tmp_path, "1 0:1 3:1\n0 1:1\n")
    other = svmlight(tmp_path, "1 2:1\n0 1:1\n", like=fit)
    assert (other.features, other.x.indices.tolist()) == (4, [2, 1])
    with pytest.raises(DataError, match=r"data.svm:2: column 4 is out of range; with features=4 they are 0 to 3"):
        svmlight(tmp_path, "1 2:1\n0 4:1\n", like=fit)


def test_a_second_file_of_numbers_may_be_constant_and_keeps_its_kind(npz):
    fit = npz([0.5, 1.5, 2.0], name="fit")
    other = npz([1, 1], name="other", like=fit)
    assert (other.kind, other.labels.span) == ("numbers", (0.5, 2.0))
    assert data.targets(other, "numbers").tolist() == [[1], [1]]


def test_another_kind_can_be_said_for_a_second_file(npz, fit):
    assert npz([0, 1], name="other", like=npz([0, 1], name="fit"), kind="numbers").kind == "numbers"


def test_a_second_file_that_does_not_fit_is_refused(npz, fit):
    with pytest.raises(DataError, match=r"the file other.npz has 9 features and the file fit.npz 50"):
        npz(["a"], name="other", x=sp.eye_array(1, 9, format="csr"), like=fit)
    with pytest.raises(DataError, match="uniform is not read from a file; leave like= out"):
        data.load("uniform", like=fit)
    with pytest.raises(DataError, match="npz has 9 columns that keep_features chose and renumbered; read the file"):
        npz(["a"], name="other", like=data.keep_features(fit, 9))
    assert npz(["a"], name="other", like=data.keep_features(fit, 50)).features == 50


def test_quality_on_a_second_file_is_the_true_one(npz):
    x, y = clicks(np.random.default_rng(1), 400, 120)
    fit = npz(y, name="fit", x=x)
    rows = np.r_[np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:50]]  # another majority
    other = npz(y[rows], name="other", x=x[rows], like=fit)
    setup = training.Setup(model="softmax", format="csr", gradient="fused", update="lazy", optimizer="adagrad")
    run = training.make_run(setup, fit.x, fit.y, width=2)
    for _ in run.events(epochs=5):
        pass
    results = [int(fit.classes[number]) for number in run.predict(other.x).argmax(axis=1)]
    assert metrics.accuracy(run.predict(other.x), other.y) == np.mean(results == y[rows])


# several labels a row


def test_rows_with_several_labels_have_a_column_for_each_class(tmp_path):
    text = "10,2 1:1\n2 1:2\n 2:1\n9,2,10 2:2 # comment\n"
    made = svmlight(tmp_path, text)
    assert (made.classes, made.y.tolist()) == (("2", "9", "10"), [[1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]])
    assert str(made.labels) == "3 classes, several a row (guessed: commas between labels)"
    assert svmlight(tmp_path, "1 1:1\n2 1:1\n", kind="multilabel").y.tolist() == [[1, 0], [0, 1]]
    assert svmlight(tmp_path, "9 1:1\n2 2:1\n", like=made).y.tolist() == [[0, 1, 0], [1, 0, 0]]
    with pytest.raises(DataError, match=r"data.svm:2: the label '3' is none of the classes 2, 9, 10"):
        svmlight(tmp_path, "9 1:1\n2,3 2:1\n", like=made)


def test_several_labels_are_read_again_from_the_cache(tmp_path):
    one, again = (svmlight(tmp_path, "1,2 1:1\n2 2:1\n") for _ in range(2))
    assert (one.labels, one.y.tolist()) == (again.labels, again.y.tolist())


# the cache


def test_the_cache_holds_the_whole_meaning(npz, tmp_path):
    fit = npz([0, 1, 1], positive=0)
    again = data.load("npz", path=tmp_path / "set.npz", labels=tmp_path / "set.npy", positive=0)
    assert (again.labels, again.labels.positive, again.facts) == (fit.labels, "0", fit.facts)
    merged = dataclasses.replace(
        data.get("npz"), name="merged", make=lambda: data.merge_rare_classes(npz([1, 2, 3, 3]), 2)
    )
    merged = dataclasses.replace(merged, fingerprint=lambda: "", files=lambda: ())
    assert cache.load_or_make(merged, {}).labels == cache.load_or_make(merged, {}).labels
    assert cache.load_or_make(merged, {}).labels.merged == ("1", "2")


def test_kind_and_classes_are_parts_of_the_key(npz):
    assert npz([0, 1]).kind == "classes"
    assert npz([0, 1], kind="numbers").kind == "numbers"
    assert npz([0, 1], classes=[1, 0]).y.tolist() == [1, 0]
    entries = [json.loads((entry / cache.META).read_text()) for entry in cache.cache_folder().iterdir()]
    assert {entry["labels"]["kind"] for entry in entries} == {"classes", "numbers"}


# refused


@pytest.mark.parametrize(
    ("labels", "parameters", "message"),
    [
        (
            [0, 1],
            {"kind": "class"},
            "kind is 'class'; it is one of classes, numbers, multilabel, none for no labels, or",
        ),
        ([0, 1], {"positive": 2}, "positive is 2; the classes are 0, 1"),
        ([0, 1], {"positive": "yes"}, "positive is 'yes'; the classes are 0, 1"),
        ([0, 1], {"kind": "numbers", "positive": 1}, "positive is given and kind is 'numbers'"),
        ([0, 1], {"unseen": 1}, "unseen is 1 without classes; give the classes of the training"),
        ([0, 1], {"classes": "01"}, "classes is '01'; it is a list of the names"),
        ([0, 1], {"classes": [0, 1, 1]}, "Classes are named twice: 0, 1, 1"),
        (["no", "yes"], {"kind": "numbers"}, "set.npy, row 0: kind is 'numbers' and the label is 'no'"),
        (["1", "1e999"], {"kind": "numbers"}, "set.npy, row 1: the label 'inf' is no finite number"),
        ([1.0, np.inf], {"kind": "classes"}, "set.npy, row 1: the label 'inf' is no finite number"),
        ([1, 2], {"kind": "multilabel"}, "kind is 'multilabel', which takes a column of 0 and 1"),
        ([[1, 2], [3, 4]], {"kind": "classes"}, "kind is 'classes' and 2 labels a row came; .* 'multilabel'"),
        ([[1, 0], [0, 1]], {"kind": "multilabel", "classes": "a"}, "classes is 'a'; it is a list"),
        ([[1, 0], [0, 1]], {"kind": "multilabel", "classes": ["a"]}, "1 class and 2 columns of labels came"),
    ],
)
def test_labels_that_contradict_what_is_said_are_refused(npz, labels, parameters, message):
    with pytest.raises(DataError, match=message):
        npz(labels, **parameters)


@pytest.mark.parametrize(("point", "order"), [(0x110000, "<"), (0xFFFFFFFF, ">"), (0xD800, "<")])
def test_text_of_no_characters_is_refused(npz, point, order):
    labels = np.array(["ab", "cd"]).astype(f"{order}U2")
    labels.view(f"{order}u4")[3] = point
    with pytest.raises(DataError, match=f"set.npy, row 1: the label holds the code point {point:#x}, which is no char"):
        npz(labels)


def test_labels_without_features_are_refused(npz, tmp_path):
    with pytest.raises(DataError, match=r"data.svm has labels without features: none of its 3 rows stores an entry"):
        svmlight(tmp_path, "1\n0\n1\n")
    with pytest.raises(DataError, match=r"set.npz has labels without features: none of its 2 rows"):
        npz([0, 1], x=sp.csr_array((2, 5)))


def test_a_guess_that_is_wrong_says_how_to_say_otherwise(npz):
    made = npz(np.linspace(0, 1, 20))
    with pytest.raises(
        DataError, match=r"numbers 0 to 1 \(guessed: not all of them whole\); this model chooses .* kind"
    ):
        data.targets(made, "classes")


def test_a_constant_label_in_a_file_is_nothing_to_learn(npz):
    for labels in ([1, 1, 1], [0.5, 0.5, 0.5], ["a", "a", "a"]):
        with pytest.raises(DataError, match=r"Every label of the file set.npz is .*: there is nothing to learn"):
            data.targets(npz(labels), "numbers")
