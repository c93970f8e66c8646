"""Damaged data files: a data set, or a `DataError`; nothing else, and soon."""

import bz2
import gzip
import io

import numpy as np
import pytest
import scipy.sparse as sp

from tests.formats.test_fuzzed_npz import CLAIMS, Trap, members_of, npy, rewritten
from tests.support.mutations import damaged_array, damaged_bytes, draws, tried
from workbench import data, formats
from workbench.data import DataError

MUTATIONS = 150
TEXT = b"".join(b"%d %d:1.5 %d:-2e-3 # row\n" % (row % 3, row % 4 + 1, row % 5 + 6) for row in range(12))


def read(source, **parameters) -> bool:
    try:
        made = data.load(source, cache=False, **parameters)
    except DataError:
        return False
    formats.check(made.x)
    assert len(made.y) == made.x.shape[0]
    return True


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2"])
def test_damaged_svmlight_text(ending, tmp_path):
    packed = {"": lambda b: b, ".gz": gzip.compress, ".bz2": bz2.compress}[ending]
    path, taken = tmp_path / f"x.svm{ending}", 0
    for number, source in draws(MUTATIONS):
        made = damaged_bytes(source, TEXT) if number % 2 else TEXT
        path.write_bytes(damaged_bytes(source, packed(made)) if number % 2 == 0 else packed(made))
        taken += read("svmlight", path=path)
    assert taken < tried(MUTATIONS)


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scipy")
    sp.save_npz(folder / "x.npz", sp.csr_array(np.eye(6, 4)), compressed=False)
    np.save(folder / "y.npy", np.arange(6) % 2)
    return folder


def test_damaged_matrices(matrix, tmp_path):
    members, data_bytes = members_of(matrix / "x.npz"), (matrix / "x.npz").read_bytes()
    for number, source in draws(MUTATIONS):
        path = tmp_path / "x.npz"
        if number % 3 == 0:
            path.write_bytes(damaged_bytes(source, data_bytes))
        else:
            name = source.choice(sorted(members))
            array = np.lib.format.read_array(io.BytesIO(members[name]), allow_pickle=False)
            changed = damaged_array(source, array) if number % 3 == 1 else None
            part = npy(changed) if isinstance(changed, np.ndarray) else damaged_bytes(source, members[name])
            rewritten(path, members | {name: part})
        read("npz", path=path, labels=matrix / "y.npy")


def test_damaged_labels(matrix, tmp_path):
    whole, path = (matrix / "y.npy").read_bytes(), tmp_path / "y.npy"
    for number, source in draws(MUTATIONS):
        array = damaged_array(source, np.arange(6) % 2)
        is_array = number % 2 and isinstance(array, np.ndarray)
        path.write_bytes(npy(array) if is_array else damaged_bytes(source, whole))
        read("npz", path=matrix / "x.npz", labels=path)


@pytest.mark.parametrize("claim", CLAIMS)
def test_headers_that_claim_what_is_not_there(claim, matrix, tmp_path):
    (tmp_path / "y.npy").write_bytes(CLAIMS[claim])
    assert not read("npz", path=matrix / "x.npz", labels=tmp_path / "y.npy")
    rewritten(tmp_path / "x.npz", members_of(matrix / "x.npz") | {"data.npy": CLAIMS[claim]})
    assert not read("npz", path=tmp_path / "x.npz", labels=matrix / "y.npy")


def test_python_objects_are_refused_without_being_executed(matrix, tmp_path):
    trap = npy(np.array([Trap()] * 6, dtype=object))
    (tmp_path / "y.npy").write_bytes(trap)
    assert not read("npz", path=matrix / "x.npz", labels=tmp_path / "y.npy")
    for name in members_of(matrix / "x.npz"):
        rewritten(tmp_path / "x.npz", members_of(matrix / "x.npz") | {name: trap})
        assert not read("npz", path=tmp_path / "x.npz", labels=matrix / "y.npy")


def test_what_is_whole_is_read_so_that_the_tests_above_can_fail(matrix, tmp_path):
    (tmp_path / "x.svm").write_bytes(TEXT)
    assert read("svmlight", path=tmp_path / "x.svm")
    assert read("npz", path=matrix / "x.npz", labels=matrix / "y.npy")
