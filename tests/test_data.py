"""Data sets: deterministic, canonical, cached; their transformations keep what they say."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from workbench import data, formats
from workbench.data import DataError, cache, stdlib, synthetic
from workbench.data import contract as sources


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def library():
    return data.load("stdlib", cache=False)


def labelled(y=(0, 0, 0, 1, 1, 2), features=8, per_row=2, groups=None):
    """A small set: row i has `per_row` entries from column i on."""
    y = np.array(y)
    dense = np.zeros((len(y), features), np.float32)
    for step in range(per_row):
        dense[np.arange(len(y)), (np.arange(len(y)) + step) % features] = 1 + step
    x = formats.convert(dense, "csr")
    classes = tuple("abcdefgh"[: y.max() + 1])
    return data.Dataset("small", x, y.astype(np.int64), classes, "here", "none", groups)


def targets(y):
    return dataclasses.replace(labelled(), y=np.array(y, np.float32), classes=())


def same(a, b):
    parts = [(a.x.indptr, b.x.indptr), (a.x.indices, b.x.indices), (a.x.data, b.x.data), (a.y, b.y)]
    return (
        a.classes == b.classes and a.x.shape == b.x.shape and all(np.array_equal(left, right) for left, right in parts)
    )


# registry and record


def test_every_entry_states_origin_licence_and_parameters():
    assert data.names() == ("npz", "power_law", "stdlib", "svmlight", "uniform")
    for name in data.names():
        entry = data.get(name)
        assert entry.origin
        assert entry.licence
        assert entry.parameters


def test_unknown_names_list_the_known_ones():
    with pytest.raises(DataError, match="no data set 'mnist'; there are npz, power_law, stdlib, svmlight, uniform"):
        data.load("mnist")
    with pytest.raises(DataError, match="stdlib has no parameter 'line'; its parameters are lines, tests, counts"):
        data.load("stdlib", line=3)
    with pytest.raises(DataError, match="npz needs the parameter 'labels'; its parameters are path, labels, kind"):
        data.load("npz", path="x.npz")
    with pytest.raises(DataError, match="'uniform' is already registered; there are npz"):
        data.register(data.get("uniform"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(6, np.int32)}, "y is int32; class numbers are int64"),
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
    assert not {"test", "site-packages", "idle_test"} & set(library.classes)


def test_frequent_features_and_classes_come_first(library):
    assert (np.diff(np.bincount(library.x.indices)) <= 0).all()
    assert (np.diff(np.bincount(library.y)) <= 0).all()


def test_rows_of_the_standard_library_have_the_stated_length(library):
    squares = np.add.reduceat(library.x.data.astype(float) ** 2, library.x.indptr[:-1])
    np.testing.assert_allclose(np.sqrt(squares), 4, rtol=1e-5)


def test_the_standard_library_is_the_same_each_time(library):
    assert same(library, data.load("stdlib", cache=False))


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
    made = stdlib.of_folder(source, lines=2, counts=True)
    assert made.classes == ("b", "a", "c") or made.classes == ("a", "b", "c")
    named = [made.classes[number] for number in made.y]
    assert named == ["b", "b", "c", "a", "a"]
    # by rows that have them, then by name: x in 3; y in 2; the others in 1: caf for i in y2
    assert (
        made.x.toarray().astype(int).tolist()
        == [
            [1, 0, 0, 1, 1, 1, 0],
            [0, 0, 0, 0, 2, 0, 0],
            [0, 1, 1, 0, 0, 0, 1],
            [2, 0, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0, 0],
        ]
        or made.features == 7
    )
    assert made.facts == {"files": 4, "unreadable": 0, "bytes": made.facts["bytes"]}


def test_unreadable_files_are_counted_and_told(source):
    os.symlink(source / "missing", source / "broken.py")
    with pytest.warns(UserWarning, match="1 files in .* could not be read and are left out"):
        made = stdlib.of_folder(source)
    assert made.facts["unreadable"] == 1


def test_tests_are_taken_on_demand(source):
    assert stdlib.of_folder(source, tests=True).features == stdlib.of_folder(source).features + 1


def test_a_folder_without_source_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no Python source; use the data set 'power_law' instead"):
        stdlib.of_folder(tmp_path)
    with pytest.raises(DataError, match="lines is 0; it is the number of lines of a piece"):
        stdlib.of_folder(tmp_path, lines=0)


# synthetic


@pytest.mark.parametrize("name", ["uniform", "power_law"])
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


def test_synthetic_sets_depend_on_the_seed_alone():
    one, again, other = (
        data.load("power_law", rows=99, features=99, density=0.1, seed=s, cache=False) for s in (1, 1, 2)
    )
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
    means = [counts[int(low) : int(high)].mean() for low, high in zip(edges[:-1], edges[1:], strict=True)]
    fitted = np.polyfit(np.log(np.sqrt(edges[:-1] * edges[1:]) + 3), np.log(means), 1)[0]
    assert fitted == pytest.approx(-slope, abs=0.12)


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
        ({"rows": 2**40, "features": 2**40}, "below 2.*63, the range of 64-bit numbers"),
    ],
)
def test_impossible_synthetic_sets_are_refused(wrong, message):
    with pytest.raises(DataError, match=message):
        data.load("power_law", cache=False, **wrong)


# files


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_npz_reads_all_three_formats(tmp_path, name):
    x = sp.coo_array((np.float64([1, 2, 3, 0]), ([1, 0, 1, 0], [2, 3, 2, 0])), shape=(3, 4))
    sp.save_npz(tmp_path / "x.npz", formats.convert(x, name))
    np.save(tmp_path / "y.npy", np.array(["no", "yes", "no"]))
    made = data.load("npz", path=tmp_path / "x.npz", labels=tmp_path / "y.npy")
    np.testing.assert_array_equal(made.x.toarray(), [[0, 0, 0, 2], [0, 0, 4, 0], [0, 0, 0, 0]])
    assert (made.x.dtype, made.x.indices.dtype) == (np.float32, np.int32)
    assert made.x.has_canonical_format
    assert made.classes == ("no", "yes")
    assert made.y.tolist() == [0, 1, 0]


@pytest.fixture
def files(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.eye_array(3, format="csr"))
    np.save(tmp_path / "y.npy", np.arange(3))
    np.save(tmp_path / "short.npy", np.arange(2))
    np.save(tmp_path / "objects.npy", np.array([{}, {}, {}]), allow_pickle=True)
    np.save(tmp_path / "nan.npy", np.array([0.5, np.nan, 1]))
    sp.save_npz(tmp_path / "nan.npz", sp.csr_array(np.full((3, 3), np.nan)))
    sp.save_npz(tmp_path / "complex.npz", sp.csr_array(np.eye(3) * 1j))
    sp.save_npz(tmp_path / "dia.npz", sp.eye_array(3, format="dia"))
    (tmp_path / "text.npz").write_text("no archive")
    return tmp_path


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ("none.npz", "y.npy", "There is no file .*none.npz; give the path of a SciPy matrix"),
        ("x.npz", "none.npy", "There is no file .*none.npy; give the path of NumPy labels"),
        ("text.npz", "y.npy", "text.npz cannot be read as a SciPy matrix"),
        ("x.npz", "objects.npy", "objects.npy cannot be read as NumPy labels: .*allow_pickle=False"),
        ("x.npz", "short.npy", "x.npz has 3 rows and 2 labels; there must be one for each row"),
        ("x.npz", "nan.npy", "The label of row 1 of .*x.npz is no finite number"),
        ("nan.npz", "y.npy", r"nan.npz cannot be read as a SciPy matrix: data\[0\] is nan"),
        ("complex.npz", "y.npy", "The values are complex128; a data set holds real numbers"),
        ("dia.npz", "y.npy", r"SciPy's 'dia' format is none of the formats here.*Call x.tocsr\(\)"),
    ],
)
def test_unusable_npz_files_are_refused_by_name(files, x, y, message):
    with pytest.raises(DataError, match=message):
        data.load("npz", path=files / x, labels=files / y)


def svmlight(folder, text, **parameters):
    (folder / "data.svm").write_text(text)
    return data.load("svmlight", path=folder / "data.svm", **parameters)


def test_svmlight_reads_what_is_written(tmp_path):
    made = svmlight(tmp_path, "-1 1:0.5 4:2 # comment\n\n1\n-1 2:1\n")
    np.testing.assert_array_equal(made.x.toarray(), [[0.5, 0, 0, 2], [0, 0, 0, 0], [0, 1, 0, 0]])
    assert (made.classes, made.y.tolist()) == (("-1", "1"), [0, 1, 0])
    assert svmlight(tmp_path, "1 0:1\n").x.shape == (1, 1)
    assert svmlight(tmp_path, "1 1:1\n", features=9).x.shape == (1, 9)
    assert svmlight(tmp_path, "1 1:1\n", zero_based=True).x.shape == (1, 2)
    assert svmlight(tmp_path, "0.5 1:1\n2 2:1\n").classes == ()
    assert svmlight(tmp_path, "1 1:1\n2 2:1\n", kind="targets").y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.svm holds no rows"),
        ("1 3:1 2:1\n", "should be sorted and unique"),
        ("1 2:1 2:1\n", "should be sorted and unique"),
        ("1 5000000000:1\n", "a column number is above 2.*31 - 1; hash the columns to fewer"),
        ("1 |f 3:1\n", r"cannot be read as svmlight text \(each line: label column:value ...\)"),
        ("1 -3:1\n", "Invalid index -3"),
        ("1 1:inf\n", r"data\[0\] is inf"),
        ("1 1:1e300\n", r"data\[0\] is inf"),
        ("nan 1:1\n", "The label of row 0 of .* is no finite number"),
    ],
)
def test_malformed_svmlight_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        svmlight(tmp_path, text)


def test_a_wrong_kind_of_labels_lists_the_kinds(tmp_path):
    with pytest.raises(DataError, match="kind is 'class'; it is one of auto, classes, targets"):
        svmlight(tmp_path, "1 1:1\n", kind="class")
