"""Formats: recognised, checked with a message for each fault, converted among all pairs, weighed."""

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.op_arrays import dense_of
from tests.support.processes import printed
from tests.support.small_sets import coo, csc, csr
from workbench import formats
from workbench.formats import FormatError, RowSparse, compressed, contract

PAIRS = list(itertools.product(formats.names(), repeat=2))
DTYPES, INDEX_TYPES = contract.SCIPY_VALUES, (np.int32, np.int64)


def arrays_of(x):
    if isinstance(x, np.ndarray):
        return [x]
    names = {"csr": "indptr indices data", "csc": "indptr indices data", "coo": "row col data"}
    return [getattr(x, name) for name in names.get(x.format, "indices values").split()]


# registry and door


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(FormatError, match=r"Unknown format 'csx'.*Expected one of: dense, csr, csc, coo, row_sparse\."):
        formats.to_format(csr(), "csx")


def test_a_format_cannot_be_registered_twice():
    with pytest.raises(FormatError, match=r"'csr' is already registered; choose another name\. Taken are: coo"):
        formats.register(formats.get("csr"))


def test_a_registered_format_takes_part_in_conversion(monkeypatch):
    class Columns(dict):
        """A format made up here: a dictionary of columns."""

    monkeypatch.setattr(contract._formats, "entries", dict(contract._formats.entries))
    entry = dataclasses.replace(
        formats.get("csc"),
        name="columns",
        is_instance=lambda x: isinstance(x, Columns),
        from_coo=lambda c: Columns({int(j): c.data[c.col == j] for j in np.unique(c.col)}),
        direct={},
    )
    formats.register(entry)
    assert formats.names()[-1] == "columns"
    assert formats.to_format(csr(), "columns")[3].tolist() == [2]


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_matrix_classes_become_arrays_over_the_same_memory(name):
    matrix = getattr(sp, f"{name}_matrix")(csr())
    array = formats.check(matrix, full=True)
    assert formats.format_of(matrix) == name
    assert isinstance(array, sp.sparray)
    assert np.shares_memory(array.data, matrix.data)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (sp.lil_array((2, 2)), r"SciPy's 'lil' format is none .* Call x.tocsr\(\)"),
        ([[1.0]], r"A list is none of the formats here.*Call np.asarray\(x, np.float32\)"),
        (np.ma.masked_array([1.0], [True]), r"A masked array came.*Call x.filled\(0\)"),
    ],
)
def test_what_is_in_no_format_is_refused(x, message):
    with pytest.raises(FormatError, match=message):
        formats.format_of(x)


def test_importing_workbench_loads_nothing_heavy():
    script = "import sys, {}; print(sorted({{'numpy', 'scipy'}} & set(sys.modules)))"
    loaded = [printed(script.format(name)) for name in ("workbench", "workbench.formats")]
    assert loaded[0].strip() == "[]"
    assert "scipy" in loaded[1]  # the probe can fail


# conversion


@pytest.mark.parametrize(
    ("source", "to"), [pair for pair in PAIRS if pair[0][:2] in ("cs", "co") and pair[0] != pair[1]]
)
def test_conversion_never_follows_an_index_out_of_range(source, to):
    x = {"csr": csr(columns=(1, 9, 0)), "csc": csc(columns=(-1, 1, 0)), "coo": coo(col=(1, 0, 4))}[source]
    with pytest.raises(FormatError, match=r"out of range|negative index"):
        formats.to_format(x, to)


@st.composite
def entries(draw):
    rows, columns, nnz = draw(st.integers(0, 6)), draw(st.integers(0, 6)), draw(st.integers(0, 14))
    nnz = nnz if rows and columns else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype, index = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(INDEX_TYPES))
    least = 0 if dtype.kind == "u" else -3
    values = rng.integers(least, 4, nnz)  # sums of small integers are exact; zeros and duplicates are frequent
    return coo(
        rng.integers(0, rows or 1, nnz), rng.integers(0, columns or 1, nnz), values, (rows, columns), dtype, index
    )


@settings(max_examples=60, deadline=None)
@given(entries(), st.booleans())
def test_all_pairs_convert_without_loss_or_change(start, read_only):
    wanted = np.zeros(start.shape, start.dtype)
    np.add.at(wanted, (start.row, start.col), start.data)
    for source, target in PAIRS:
        x = formats.to_format(start, source)
        for array in arrays_of(x):
            array.flags.writeable = not read_only
        before = [array.copy() for array in arrays_of(x)]
        y = formats.to_format(x, target)
        assert formats.format_of(y) == target
        assert formats.check(y, full=True, canonical=False) is y
        assert y.dtype == start.dtype
        np.testing.assert_array_equal(dense_of(y), wanted)
        for array, same in zip(arrays_of(x), before, strict=True):
            np.testing.assert_array_equal(array, same)
        if {source, target} <= {"csr", "csc", "coo"}:
            assert {array.dtype for array in arrays_of(y)[:2]} == {start.row.dtype}
            assert y.nnz == start.nnz  # duplicates and zeros are kept
        for array in arrays_of(x):
            array.flags.writeable = True


@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (4, 1), (0, 3), (3, 0), (2, 3, 2), (4,)])
def test_every_type_goes_where_it_can_be_held_and_back(dtype, shape):
    dense = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    x = RowSparse.from_dense(dense)
    assert x.dtype == dtype
    np.testing.assert_array_equal(x.to_format("dense"), dense)
    assert x.to_format("row_sparse") is x
    for name in ("csr", "csc", "coo"):
        for source in (dense, x):
            if dtype == "float16":
                message = f"A {name} array of float16 was asked for. Allowed: float32, float64, int32, int64, uint8"
            elif len(shape) != 2:
                message = "two dimensions"
            else:
                y = formats.to_format(source, name)
                assert y.dtype == dtype
                assert y.nnz == np.count_nonzero(dense)
                np.testing.assert_array_equal(y.toarray(), dense)
                assert formats.to_format(y, "row_sparse") == x
                continue
            with pytest.raises(FormatError, match=message):
                formats.to_format(source, name)


def test_whole_numbers_beyond_floating_point_are_exact():
    dense = np.array([[2**62 + 1, 0], [0, -(2**63)]])
    for name in formats.names():
        np.testing.assert_array_equal(dense_of(formats.to_format(formats.to_format(dense, name), "dense")), dense)


@settings(max_examples=40, deadline=None)
@given(entries())
def test_predicted_bytes_are_those_held(start):
    for name in formats.names():
        x = formats.to_format(start, name)
        index = np.int64 if name == "row_sparse" else arrays_of(x)[0].dtype
        stored = len(x.indices) if name == "row_sparse" else None
        nnz = 0 if name in ("dense", "row_sparse") else x.nnz
        predicted = formats.predicted_bytes(name, *start.shape, nnz, start.dtype, index, stored)
        assert formats.nbytes(x) == predicted == sum(array.nbytes for array in arrays_of(x))


def test_row_sparse_without_a_count_is_predicted_at_its_most():
    assert formats.predicted_bytes("row_sparse", 10, 4, 3, np.float32, np.int32) == 3 * (4 * 4 + 8)


def test_the_same_format_comes_back_itself():
    x = csr()
    assert formats.to_format(x, "csr") is x


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_indices_are_64_bit_only_where_they_must_be(monkeypatch, name):
    dense = np.eye(4, dtype=np.float32)
    small = formats.to_format(dense, name)
    monkeypatch.setattr(compressed, "INT32_LIMIT", 3)
    large = formats.to_format(dense, name)
    assert {array.dtype for array in arrays_of(small)[:2]} == {np.dtype(np.int32)}
    assert {array.dtype for array in arrays_of(large)[:2]} == {np.dtype(np.int64)}


def test_narrow_indices_widen_when_the_result_needs_it(monkeypatch):
    monkeypatch.setattr(compressed, "INT32_LIMIT", 3)
    assert formats.to_format(csr(), "csc").indices.dtype == np.int64
    assert formats.to_format(coo(), "csr").indptr.dtype == np.int64


def test_nan_is_stored_and_negative_zero_is_not():
    x = formats.to_format(np.array([[np.nan, -0.0, np.inf]]), "csr")
    assert x.indices.tolist() == [0, 2]
    assert np.isnan(x.data[0])


def test_non_contiguous_and_fortran_dense_convert():
    x = np.arange(24, dtype=np.float64).reshape(4, 6)
    for view in (x[:, ::2], x[::-1], np.asfortranarray(x)):
        for name in formats.names():
            np.testing.assert_array_equal(dense_of(formats.to_format(view, name)), view)


def test_three_dimensions_go_to_row_sparse_and_nowhere_else():
    x = np.zeros((4, 2, 3))
    x[2, 1, 0] = 5
    y = formats.to_format(x, "row_sparse")
    assert y.indices.tolist() == [2]
    np.testing.assert_array_equal(formats.to_format(y, "dense"), x)
    for source, name in ((x, "dense"), (y, "row_sparse")):
        with pytest.raises(FormatError, match=rf"The {name} matrix has shape \(4, 2, 3\). Allowed: two dimensions"):
            formats.to_format(source, "csr")


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_an_assembled_array_is_what_scipy_itself_would_make(kind):
    made = getattr(sp, f"{kind}_array")(np.float32([[0, 2, 0], [3, 0, 4]]))
    ours = compressed.assemble(kind, made.indptr, made.indices, made.data, made.shape)
    assert vars(ours).keys() == vars(type(made)((made.data, made.indices, made.indptr), shape=made.shape)).keys()
    assert (ours.shape, ours.dtype, ours.nnz, ours.format) == (made.shape, made.dtype, made.nnz, kind)
    for came, expected in ((ours @ np.eye(3), made @ np.eye(3)), (ours.T.toarray(), made.T.toarray())):
        np.testing.assert_array_equal(came, expected)
    assert (ours[:1].toarray() == made[:1].toarray()).all()
    assert repr(ours) == repr(made)
