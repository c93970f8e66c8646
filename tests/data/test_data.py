"""Data sets: deterministic, canonical, and refused with a message when they cannot be had."""

import dataclasses
import itertools
import os
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import labelled, same
from workbench import data, formats
from workbench.data import DataError, synthetic
from workbench.data.sources import stdlib

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def library():
    return data.load("stdlib", cache=False)


# registry and record


def test_every_entry_states_origin_licence_and_parameters():
    assert {"mixed", "npz", "power_law", "sparse", "stdlib", "svmlight", "uniform"} <= set(data.names())
    for name in data.names():
        entry = data.get(name)
        assert entry.origin
        assert entry.licence
        assert entry.parameters


def test_unknown_names_list_the_known_ones():
    with pytest.raises(
        DataError, match=r"Unknown data set 'mnist'.*Expected one of: .*npz, .*power_law, .*svmlight, .*uniform"
    ):
        data.load("mnist")
    with pytest.raises(DataError, match="stdlib has no parameter 'line'; its parameters are lines, tests, counts"):
        data.load("stdlib", line=3)
    with pytest.raises(DataError, match=r"npz needs path, your file or folder"):
        data.load("npz")
    with pytest.raises(DataError, match=r"'uniform' is already registered; .* Taken are: .*npz"):
        data.register(data.get("uniform"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(6, np.int32)}, r"y is int32 \[6\]; class numbers are int64 \[rows\]: y.astype"),
        ({"y": [0] * 6}, "y is a list; it is an array"),
        ({"y": np.zeros((6, 1), np.int64)}, r"y is int64 \[6, 1\]; class numbers are int64 \[rows\]"),
        ({"labels": ("a", "b", "c")}, r"labels is a tuple; give data.Labels\('classes', names\)"),
        ({"labels": data.Labels("numbers")}, r"y is int64 \[6\]; numbers are float32 or float64, \[rows\] or"),
        ({"labels": data.Labels("multilabel", ("a",)), "y": np.zeros((6, 2), np.uint8)}, "y holds 2 columns up to 0"),
        ({"labels": data.Labels("multilabel", ("a",)), "y": np.full((6, 1), 2, np.uint8)}, "y holds 1 column up to 2"),
        ({"y": np.zeros(5, np.int64)}, "y has 5 entries for 6 rows of x; it needs one for each"),
        ({"y": np.full(6, 3)}, "y holds the class numbers 3 to 3; with 3 classes they start at 0"),
        ({"groups": np.zeros(2, np.int64)}, "groups has 2 entries for 6 rows"),
        ({"x": sp.csc_array((6, 8), dtype=np.float32)}, "x is csc; a data set holds csr"),
    ],
)
def test_a_record_that_does_not_fit_together_is_refused(change, message):
    with pytest.raises(DataError, match=message):
        dataclasses.replace(labelled(), **change)


def test_a_record_shows_its_figures():
    assert repr(labelled()) == "Dataset small: 6 rows x 8 features, 2 entries a row, density 0.25, 3 classes"


# stdlib


def test_the_standard_library_is_canonical_and_large(library):
    formats.check(library.x, full=True)
    assert (library.x.dtype, library.x.indices.dtype, library.y.dtype) == (np.float32, np.int32, np.int64)
    assert library.rows > 10_000
    assert library.features > 20_000
    assert len(library.classes) > 100
    assert library.facts["unreadable"] == 0
    assert not {"site-packages", "__pycache__"} & set(library.classes)
    assert np.bincount(library.groups).max() == stdlib.PIECES_OF_GROUP


def test_frequent_features_come_first_and_classes_by_the_alphabet(library):
    assert (np.diff(np.bincount(library.x.indices)) <= 0).all()
    assert list(library.classes) == sorted(library.classes)
    assert library.labels.positive == library.classes[np.bincount(library.y).argmax()]


def test_rows_of_the_standard_library_have_the_stated_length(library):
    squares = np.add.reduceat(library.x.data.astype(float) ** 2, library.x.indptr[:-1])
    np.testing.assert_allclose(np.sqrt(squares), 4, rtol=1e-5)


def test_a_package_of_the_standard_library_is_the_same_each_time():
    package = Path(sysconfig.get_path("stdlib"), "xml")
    once, again = (stdlib.of_folder(package) for _ in range(2))
    assert len(once.classes) > 1
    assert same(once, again)


@pytest.fixture
def source(tmp_path):
    for name, text in {
        "b.py": "x = 1\nfor i in x:\n    i + i\n\n",
        "a/one.py": "x\nx\n\ny\n",
        "a/two.py": "\n\n\n",
        "a/test/no.py": "never",
        "a/site-packages/no.py": "never",
        "a/notes.txt": "never",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "c.py").write_bytes(b"y \xff\xfe caf\xe9 = y2\n")
    return tmp_path


def test_pieces_of_a_folder_are_counted_by_hand(source):
    made = stdlib.of_folder(source, lines=2, tests=False, counts=True)
    assert [made.classes[number] for number in made.y] == ["b", "b", "c", "a", "a"]
    assert made.classes == ("a", "b", "c")
    assert made.x.toarray().tolist() == [  # i x y are in two pieces each, caf for in y2 in one
        [1, 2, 0, 0, 1, 1, 0],
        [2, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 1],
        [0, 2, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0],
    ]
    assert (made.facts["files"], made.facts["unreadable"], made.groups.tolist()) == (4, 0, [0, 0, 1, 2, 2])
    scaled = stdlib.of_folder(source, lines=2, tests=False).x.toarray()[0]
    np.testing.assert_allclose(scaled[1] / scaled[0], 1 + np.log(2), rtol=1e-6)


def test_unreadable_files_are_counted_and_told(source):
    os.symlink(source / "missing", source / "broken.py")
    with pytest.warns(UserWarning, match="1 files in .* could not be read and are left out"):
        made = stdlib.of_folder(source)
    assert made.facts["unreadable"] == 1


def test_tests_can_be_left_out(source):
    assert stdlib.of_folder(source, tests=False).features == stdlib.of_folder(source).features - 1


def test_a_folder_without_source_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no Python source; use the data set 'power_law' instead"):
        stdlib.of_folder(tmp_path)
    with pytest.raises(DataError, match="lines is 0; it is the number of lines of a piece"):
        stdlib.of_folder(tmp_path, lines=0)


# synthetic


@pytest.mark.parametrize("name", ["uniform", "power_law", "mixed"])
@pytest.mark.parametrize(
    "shape",
    [
        (300, 1000, 0.01),
        (300, 40, 0.4),
        (300, 40, 1.0),
        (50, 2000, 0.0004),
        (1, 1, 1.0),
        (7, 5, 1e-9),
        (200, 300, 0.0155),
    ],
)
def test_synthetic_sets_have_the_density_asked_for(name, shape):
    rows, features, density = shape
    made = data.load(name, rows=rows, features=features, density=density, cache=False)
    formats.check(made.x, full=True)
    assert made.x.shape == (rows, features)
    assert abs(made.x.nnz - density * rows * features) <= 1
    assert made.facts["density"] == made.density
    assert made.y.shape == (rows,)


@pytest.mark.parametrize("name", ["power_law", "mixed"])
def test_synthetic_sets_depend_on_the_seed_alone(name):
    one, again, other = (data.load(name, rows=99, features=99, density=0.1, seed=s, cache=False) for s in (1, 1, 2))
    assert same(one, again)
    assert not same(one, other)


def lengths(**parameters):
    made = data.load("power_law", rows=4000, features=500, density=0.02, cache=False, **parameters)
    return np.diff(made.x.indptr)


def test_row_lengths_are_lognormal_and_capped():
    assert set(lengths(sigma=0.0)) == {10}
    spread = lengths(sigma=1.0)
    assert spread.max() == 100  # ten times the mean
    logs = np.log(spread[spread > 0])
    assert 0.8 < logs.std() < 1.1


@pytest.mark.parametrize("slope", [0.5, 1.0, 1.5])
def test_popularity_falls_with_the_slope(slope):
    made = data.load("power_law", rows=20_000, features=3000, density=0.0005, sigma=0, slope=slope, cache=False)
    counts = np.bincount(made.x.indices, minlength=3000)
    edges = np.geomspace(30, 3000, 8)  # beyond the head, where a row may hold a column but once
    means = [counts[int(low) : int(high)].mean() for low, high in itertools.pairwise(edges)]
    fitted = np.polyfit(np.log(np.sqrt(edges[:-1] * edges[1:]) + 3), np.log(means), 1)[0]
    assert fitted == pytest.approx(-slope, abs=0.12)


@pytest.mark.parametrize(("density", "always"), [(0.001, 1), (0.01, 10), (0.1, 102), (0.6, 614)])
def test_mixed_sets_have_columns_that_every_row_has_beside_rare_ones(density, always):
    made = data.load("mixed", rows=400, features=2048, density=density, cache=False)
    counts = np.bincount(made.x.indices, minlength=2048)
    assert made.density == pytest.approx(density, abs=1 / made.x.shape[0] / 2048)
    assert (counts[:always] == 400).all()
    assert (counts[always:] < 400).all()
    assert counts[always:].sum() == pytest.approx(made.x.nnz - 400 * always)
    assert counts[always : always + 20].mean() > 2 * counts[-200:].mean() or density > 0.5


@pytest.mark.parametrize(("present", "always"), [(0.0, 0), (0.19, 0), (0.2, 1), (0.5, 2), (1.0, 5)])
def test_the_share_of_entries_in_columns_always_present_is_as_asked(present, always):
    made = data.load("mixed", rows=200, features=50, density=0.1, sigma=0.0, present=present, cache=False)
    counts = np.bincount(made.x.indices, minlength=50)
    assert (counts == 200).sum() == always
    assert made.x.nnz == 1000


def test_columns_always_present_are_numbers_where_rare_ones_are_ones():
    made = data.load("mixed", rows=200, features=100, density=0.1, values="ones", cache=False)
    is_always = made.x.indices < 5
    assert set(made.x.data[~is_always]) == {1}
    assert len(set(made.x.data[is_always])) > 900


def test_both_ways_of_drawing_columns_agree(monkeypatch):
    def popularity():
        made = data.load("power_law", rows=20_000, features=60, density=0.1, sigma=0.5, cache=False)
        return np.bincount(made.x.indices, minlength=60) / made.rows

    by_element = popularity()
    monkeypatch.setattr(synthetic, "DENSE_FROM", 2)
    by_redrawing = popularity()
    monkeypatch.setattr(synthetic, "ROUNDS", 1)
    by_both = popularity()
    np.testing.assert_allclose(by_redrawing, by_element, atol=0.02)
    np.testing.assert_allclose(by_both, by_element, atol=0.02)


def test_the_teacher_can_be_learned():
    made = data.load("uniform", rows=3000, features=50, density=0.2, noise=0.0, cache=False)
    x = made.x.toarray()
    x = np.hstack([x, np.ones((len(x), 1))])
    fitted = x @ np.linalg.lstsq(x, made.y - 0.5, rcond=None)[0]
    assert ((fitted > 0) == made.y).mean() > 0.95
    assert 0.4 < made.y.mean() < 0.6


def test_classes_and_targets_are_made_as_asked():
    made = data.load("uniform", rows=500, features=40, density=0.2, classes=30, cache=False)
    assert len(made.classes) == 30
    made = data.load("uniform", rows=500, features=40, density=0.2, classes=None, width=3, cache=False)
    assert (made.classes, made.y.shape, made.y.dtype) == ((), (500, 3), np.float32)
    np.testing.assert_allclose(made.y.std(axis=0), 1, atol=0.1)
    assert data.load("uniform", rows=5, features=4, density=0.2, classes=None, cache=False).y.shape == (5,)
    ones = data.load("uniform", rows=50, features=40, density=0.2, values="ones", cache=False)
    assert set(ones.x.data) == {1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 0}, "rows is 0; it is 1 or more"),
        ({"density": 0}, "density is 0; it is nnz / size, above 0 and at most 1"),
        ({"density": 1.5}, "density is 1.5; it is nnz / size"),
        ({"classes": 1}, "classes is 1; it is 2 or more, or None for float targets"),
        ({"sigma": -1}, "sigma is -1, slope is 1.0 and shift is 3.0; sigma and slope are 0 or more"),
        ({"values": "tfidf"}, "values is 'tfidf'; it is one of normal, ones"),
        ({"present": 1.1}, "present is 1.1; it is a share of the entries, from 0 to 1"),
        ({"rows": 2**40, "features": 2**40}, "below 2.*63, the range of int64"),
    ],
)
def test_impossible_synthetic_sets_are_refused(wrong, message):
    with pytest.raises(DataError, match=message):
        data.load("mixed", cache=False, **wrong)
