"""Damaged files of AnnData and binsparse: rows, or a `DataError` with the file's name, whatever libraries say."""

import numpy as np
import pytest

from tests.support.small_sets import labelled
from workbench import data, formats
from workbench.data import DataError

READERS = ("anndata", "binsparse")


@pytest.fixture(scope="module", params=READERS)
def example(request, tmp_path_factory):
    """Name of the reader, and a whole file of it."""
    pytest.importorskip("h5py" if request.param == "binsparse" else "anndata")
    path = tmp_path_factory.mktemp("whole") / "x.h5"
    data.export(labelled(), path, to=request.param)
    return request.param, path


def read(name, path) -> bool:
    """Whether there are rows; what is refused is refused by name."""
    refused = ""
    try:
        made = data.load(name, path=path, cache=False)
    except DataError as error:
        refused = str(error)
    if refused:
        assert path.name in refused
        return False
    formats.check(made.x, full=True)
    return bool(made.rows)


def test_what_is_whole_is_read_so_that_the_tests_below_can_fail(example):
    name, path = example
    made, expected = data.load(name, path=path, cache=False), labelled()
    np.testing.assert_array_equal(made.x.toarray(), expected.x.toarray())
    assert [made.classes[number] for number in made.y] == [expected.classes[number] for number in expected.y]


def test_files_that_are_cut_short_or_of_another_kind(example, tmp_path):
    name, whole = example
    content = whole.read_bytes()
    for damaged in (b"", b"{}", content[:512] * 2, *(content[: len(content) * part // 6] for part in range(1, 6))):
        (tmp_path / "x.h5").write_bytes(damaged)
        assert not read(name, tmp_path / "x.h5")


@pytest.mark.parametrize(
    ("named", "attributes"),
    [
        ("obs/label", {"encoding-type": "nothing", "encoding-version": "9"}),
        ("X", {"encoding-type": "nothing", "encoding-version": "9"}),
        ("X", {"shape": [3, 2]}),
        ("X", {"shape": []}),
        ("/", {"binsparse": "{"}),
        ("/", {"binsparse": "[]"}),
        ("/", {"binsparse": '{"format": "CSR", "shape": ["a", 2]}'}),
        ("/", {"binsparse": '{"format": "COO", "shape": [6, 8]}'}),
    ],
)
def test_attributes_that_say_something_else(named, attributes, example, tmp_path):
    h5py = pytest.importorskip("h5py")
    name, whole = example
    (tmp_path / "x.h5").write_bytes(whole.read_bytes())
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        is_there = named in file and (named != "/" or name == "binsparse")
        if is_there:
            for key, value in attributes.items():
                file[named].attrs[key] = value
    assert read(name, tmp_path / "x.h5") != is_there


@pytest.mark.parametrize(
    ("named", "values"),
    [
        ("indices", [99] * 12),
        ("indptr", [0, 99, 1, 2, 3, 4, 5]),
        ("indptr", [0.5]),
        ("data", [np.nan] * 12),
        ("data", ["a"]),
        ("data", None),
        ("labels", None),
    ],
)
def test_arrays_that_do_not_fit(named, values, example, tmp_path):
    h5py = pytest.importorskip("h5py")
    name, whole = example
    of_binsparse = {"indices": "indices_1", "indptr": "pointers_to_1", "data": "values", "labels": "labels"}
    place = of_binsparse[named] if name == "binsparse" else {"labels": "obs/label"}.get(named, f"X/{named}")
    (tmp_path / "x.h5").write_bytes(whole.read_bytes())
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        del file[place]
        if values is not None:
            file[place] = values
            if name == "anndata":
                file[place].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    assert not read(name, tmp_path / "x.h5")
