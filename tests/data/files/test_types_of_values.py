"""Matrices of narrow, wide or unsigned values, in any format of SciPy, are read alike from memory and files."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import workbench as wb
from workbench import data
from workbench.command.data_checks import check_source
from workbench.data import DataError

TYPES = [
    *(np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64),
    *(np.float32, np.float64, np.longdouble),
]
FORMATS = ["csr", "csc", "coo", "bsr", "dia"]
VALUES = np.array([[0, 3, 0, 120], [1, 0, 0, 0], [0, 0, 0, 0], [7, 9, 0, 2]])
LABELS = np.array([0, 1, 1, 0])

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def labels(tmp_path):
    np.save(tmp_path / "y.npy", LABELS)
    return str(tmp_path / "y.npy")


@pytest.mark.parametrize("format", [*FORMATS, "lil", "dok"])
@pytest.mark.parametrize("dtype", TYPES)
def test_sparse_matrices_of_every_type_and_format_are_read_alike(dtype, format, tmp_path, labels):
    expected = VALUES.astype(dtype).astype(np.float32)
    x = sp.csr_array(VALUES).astype(dtype).asformat(format)
    np.testing.assert_array_equal(wb.load(x, LABELS).x.toarray(), expected)
    if format in FORMATS:
        sp.save_npz(tmp_path / "x.npz", x)
        read = data.load("npz", path=tmp_path / "x.npz", labels=labels)
        np.testing.assert_array_equal(read.x.toarray(), expected)
        assert read.facts["duplicate_entries"] == 0
        rules = {one.contract for one in check_source(str(tmp_path / "x.npz"), "sklearn", labels=labels).violations}
        assert rules <= {"format", "floats", "float32", "numbers"}


@pytest.mark.parametrize("dtype", [*TYPES, np.float16])
def test_dense_matrices_of_every_type_are_read_alike(dtype, tmp_path, labels):
    x = VALUES.astype(dtype)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "xy.npz", X=x, y=LABELS)
    for read in (
        wb.load(x, LABELS),
        data.load("npz", path=tmp_path / "x.npy", labels=labels),
        data.load("npz", path=tmp_path / "xy.npz"),
    ):
        np.testing.assert_array_equal(read.x.toarray(), x.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_that_float64_rounds_are_refused_and_others_are_not(dtype):
    for exact in (2**53, 2**60, 3 * 2**60):
        assert wb.load(np.array([[exact, 1], [1, 2]], dtype), [0, 1]).x.toarray()[0, 0] == exact
    for rounded in (2**53 + 1, 2**63 - 1):
        for x in (np.array([[rounded, 1], [1, 2]], dtype), sp.csr_array(np.array([[rounded, 1], [1, 2]], dtype))):
            with pytest.raises(DataError, match=f"{rounded}.* not exact as float64.*\nType x.astype"):
                wb.load(x, [0, 1])
            wb.load(x.astype(np.float64), [0, 1])


def test_truth_values_that_come_twice_are_true_and_numbers_are_summed_without_overflow(tmp_path, labels):
    for dtype, value, expected in ((np.bool_, 1, 1), (np.uint8, 200, 400)):
        x = sp.coo_array((np.full(2, value, dtype), ([0, 0], [1, 1])), shape=(4, 2))
        sp.save_npz(tmp_path / "x.npz", x)
        for made in (wb.load(x, LABELS), data.load("npz", path=tmp_path / "x.npz", labels=labels)):
            assert made.x.toarray()[0].tolist() == [0, expected]


def binsparse_file(path, values, **descriptor):
    """A binsparse matrix in HDF5 with two entries."""
    h5py = pytest.importorskip("h5py")
    about = {"version": "0.1", "format": "CSR", "shape": [2, 3], "number_of_stored_values": 2}
    with h5py.File(path, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": about | descriptor})
        file["pointers_to_1"], file["indices_1"], file["values"] = [0, 1, 2], [2, 0], values
        file["labels"] = [0, 1]
        if descriptor.get("fill"):
            file["fill_value"] = [4.0]
    return path


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.uint64, np.float32, np.bool_])
def test_binsparse_values_of_every_type_are_read(dtype, tmp_path):
    made = data.load("binsparse", path=binsparse_file(tmp_path / "x.h5", np.array([1, 0], dtype)))
    assert made.x.toarray().tolist() == [[0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        ({"fill": True}, "x.h5 has the fill value 4.0, that of all entries which are not stored; expected 0"),
        ({"data_types": {"values": "complex[float32]"}}, r"values of the type complex\[float32\]; expected real"),
        ({"structure": "symmetric_lower"}, "structure is 'symmetric_lower'; expected all of it"),
    ],
)
def test_binsparse_files_that_would_be_read_wrongly_are_refused(descriptor, message, tmp_path):
    path = binsparse_file(tmp_path / "x.h5", np.ones(2), **descriptor)
    with pytest.raises(DataError, match=message):
        data.load("binsparse", path=path)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16])
def test_edges_of_narrow_types_are_read(dtype, tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.array([[0, 1], [1, 0]], dtype)))
    (tmp_path / "y.txt").write_text("a\nb\n")
    made = data.load("graph", path=tmp_path / "a.npz", labels=tmp_path / "y.txt")
    assert made.graph.toarray().tolist() == [[0, 1], [1, 0]]
