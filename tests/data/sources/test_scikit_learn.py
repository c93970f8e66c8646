"""Data sets of scikit-learn: nothing is fetched unasked, and what is there is read as it is."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.datasets
from sklearn.utils import Bunch

from workbench import data
from workbench.data import DataError
from workbench.data.sources import scikit_learn


def load(which, **parameters):
    return data.load("scikit_learn", which=which, cache=False, **parameters)


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("iris", (150, 4), ("setosa", "versicolor", "virginica")),
        ("digits", (1797, 64), tuple("0123456789")),
        ("breast_cancer", (569, 30), ("malignant", "benign")),
        ("wine", (178, 13), ("class_0", "class_1", "class_2")),
        ("diabetes", (442, 10), ()),
    ],
)
def test_small_sets_come_as_they_are(name, shape, classes):
    made, bunch = load(name), getattr(sklearn.datasets, f"load_{name}")()
    assert (made.x.shape, made.classes) == (shape, classes)
    np.testing.assert_array_equal(made.x.toarray(), bunch.data.astype(np.float32))
    np.testing.assert_array_equal(made.y, bunch.target)
    assert made.licence
    assert name in made.source


DOWNLOADED = [name for name, entry in scikit_learn.ENTRIES.items() if entry.download]


@pytest.fixture
def offline(monkeypatch):
    def refuse(*arguments, **options):
        pytest.fail("something was to be downloaded")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("urllib.request.urlretrieve", refuse)


@pytest.mark.parametrize("name", DOWNLOADED)
def test_nothing_is_downloaded_unasked(tmp_path, offline, name):
    entry = scikit_learn.ENTRIES[name]
    with pytest.raises(DataError, match=r"is not among scikit-learn's data .*\nType --reading download=true ") as error:
        load(name, folder=tmp_path)
    assert entry.download in str(error.value)
    assert entry.licence in str(error.value)


def test_what_was_downloaded_before_is_used_unasked(tmp_path, offline):
    rows = np.arange(45.0).reshape(5, 9) + 1
    joblib.dump(rows, tmp_path / "cal_housing_py3.pkz", compress=6)  # as scikit-learn keeps it
    made = load("california_housing", folder=tmp_path)
    expected = sklearn.datasets.fetch_california_housing(data_home=tmp_path, download_if_missing=False)
    np.testing.assert_array_equal(made.x.toarray(), expected.data.astype(np.float32))
    np.testing.assert_array_equal(made.y, expected.target)
    assert made.kind == "numbers"


def pretended(monkeypatch, name, **bunch):
    """Let scikit-learn have a set; gives the options it was asked with."""
    asked = {}

    def fetch(**options):
        asked.update(options)
        return Bunch(**bunch)

    monkeypatch.setattr(sklearn.datasets, scikit_learn.ENTRIES[name].function, fetch)
    return asked


@pytest.mark.parametrize("download", [False, True])
def test_the_wish_to_download_is_passed_on(monkeypatch, tmp_path, download):
    asked = pretended(monkeypatch, "covtype", data=np.eye(3), target=np.int32([1, 7, 1]))
    made = load("covtype", folder=tmp_path, download=download)
    assert asked == {"data_home": str(tmp_path), "download_if_missing": download}
    assert (made.classes, made.y.tolist()) == (("1", "7"), [0, 1, 0])


def test_topics_are_several_classes_and_groups_of_news_are_named(monkeypatch):
    topics = sp.csr_array(np.uint8([[1, 0, 1], [0, 0, 1]]))
    asked = pretended(monkeypatch, "rcv1", data=sp.csr_array(np.eye(2)), target=topics, target_names=np.array([*"xyz"]))
    made = load("rcv1", subset="train")
    assert (made.kind, made.classes, made.y.tolist()) == ("multilabel", ("x", "y", "z"), [[1, 0, 1], [0, 0, 1]])
    assert asked["subset"] == "train"
    news = {"data": sp.csr_array(np.eye(2)), "target": np.array([1, 0]), "target_names": ["z", "a"]}
    pretended(monkeypatch, "20newsgroups_vectorized", **news)
    made = load("20newsgroups_vectorized")
    assert (made.classes, made.y.tolist()) == (("z", "a"), [1, 0])


def test_columns_of_text_are_one_hot(monkeypatch):
    rows = np.array([[3, b"tcp", 0.5], [0, b"icmp", 1], [1, b"tcp", 0]], object)
    pretended(monkeypatch, "kddcup99", data=rows, target=np.array([b"normal.", b"smurf.", b"normal."], object))
    made = load("kddcup99")
    assert made.x.toarray().tolist() == [[3, 0, 1, 0.5], [0, 1, 0, 1], [1, 0, 1, 0]]
    assert (made.classes, made.y.tolist()) == (("normal.", "smurf."), [0, 1, 0])


def test_unknown_names_and_parts_are_refused():
    with pytest.raises(
        DataError, match=r"Unknown data set which = 'mnist'. Expected one of: iris, digits, .*rcv1, covtype"
    ):
        load("mnist")
    with pytest.raises(DataError, match="subset is 'train'; of iris it is left out: the set has no parts"):
        load("iris", subset="train")
    with pytest.raises(DataError, match="subset is 'some'; of rcv1 it is one of all, train, test"):
        load("rcv1", subset="some")
