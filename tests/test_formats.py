"""Formats: recognised, checked with a message for each fault, converted among all pairs, weighed."""

import copy
import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import formats
from workbench.formats import FormatError, RowSparse, checks, contract, indices
from workbench.formats.compressed import assemble

PAIRS = list(itertools.product(formats.names(), repeat=2))
DTYPES, INDEX_TYPES = (np.float32, np.float64), (np.int32, np.int64)


def csr(indptr=(0, 2, 2, 3), columns=(1, 3, 0), data=(1, 2, 3), shape=(3, 4), dtype=np.float32, index=np.int32):
    return assemble("csr", np.array(indptr, index), np.array(columns, index), np.array(data, dtype), shape)


def csc(indptr=(0, 2, 2, 3), columns=(1, 3, 0), data=(1, 2, 3), shape=(4, 3), dtype=np.float32, index=np.int32):
    return assemble("csc", np.array(indptr, index), np.array(columns, index), np.array(data, dtype), shape)


def coo(row=(0, 2, 0), col=(1, 0, 3), data=(1, 3, 2), shape=(3, 4), dtype=np.float32, index=np.int32):
    x = sp.coo_array(shape, dtype=dtype)
    x.coords, x.data = (np.array(row, index), np.array(col, index)), np.array(data, dtype)
    return x


def arrays_of(x):
    if isinstance(x, np.ndarray):
        return [x]
    names = {"csr": "indptr indices data", "csc": "indptr indices data", "coo": "row col data"}
    return [getattr(x, name) for name in names.get(x.format, "indices values").split()]


def dense_of(x):
    return x if isinstance(x, np.ndarray) else x.toarray()


# registry and door


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(FormatError, match=r"no format 'csx'; the formats are dense, csr, csc, coo, row_sparse\."):
        formats.convert(csr(), "csx")


def test_a_format_cannot_be_registered_twice():
    with pytest.raises(FormatError, match="'csr' is already registered; the formats are dense, csr"):
        formats.register(formats.get("csr"))


def test_a_registered_format_takes_part_in_convert(monkeypatch):
    class Columns(dict):
        """A format made up here: a dictionary of columns."""

    monkeypatch.setattr(contract, "_formats", dict(contract._formats))
    entry = dataclasses.replace(
        formats.get("csc"),
        name="columns",
        is_instance=lambda x: isinstance(x, Columns),
        from_coo=lambda c: Columns({int(j): c.data[c.col == j] for j in np.unique(c.col)}),
        direct={},
    )
    formats.register(entry)
    assert formats.names()[-1] == "columns"
    assert formats.convert(csr(), "columns")[3].tolist() == [2]


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
        ([[1.0]], r"A builtins.list is none of the formats here.*Call np.asarray\(x, np.float32\)"),
        (np.ma.masked_array([1.0], [True]), r"A masked array came.*Call x.filled\(0\)"),
    ],
)
def test_what_is_in_no_format_is_refused(x, message):
    with pytest.raises(FormatError, match=message):
        formats.format_of(x)


def test_importing_workbench_loads_nothing_heavy():
    script = "import sys, {}; print(sorted({{'numpy', 'scipy'}} & set(sys.modules)))"
    loaded = [
        subprocess.run([sys.executable, "-c", script.format(name)], capture_output=True, text=True, check=True).stdout
        for name in ("workbench", "workbench.formats")
    ]
    assert loaded[0].strip() == "[]"
    assert "scipy" in loaded[1]  # the probe can fail


# faults: what came, where, what is allowed, what to do

CHEAP = {
    "csr of integers": (csr(dtype=np.int64), "data has dtype int64. Allowed: float32 and float64. Call x.astype"),
    "dense of integers": (np.zeros((2, 2), np.int32), "The dense array has dtype int32. Allowed: float32 and float64"),
    "coo of complex": (coo(dtype=np.complex64), "data has dtype complex64. Allowed: float32 and float64"),
    "16-bit indices": (csr(index=np.int16), "indptr has dtype int16. Allowed: int32 and int64. Call indptr.astype"),
    "two index types": (
        assemble("csr", np.array([0, 1]), np.array([0], np.int32), np.float32([1]), (1, 1)),
        "The index types differ: indptr int64 and indices int32. Allowed: one type",
    ),
    "lengths of csr": (csr(data=(1, 2)), "data has 2 entries and indices has 3. Allowed: the same number in both"),
    "lengths of coo": (coo(row=(0, 1)), "row has 2 entries and col has 3. Allowed: the same number in both"),
    "short indptr": (csr(indptr=(0, 2, 3)), "indptr has 3 entries for 3 rows. Allowed: 4, one more than rows"),
    "csc indptr": (csc(shape=(4, 5)), "indptr has 4 entries for 5 columns. Allowed: 6, one more than columns"),
    "indptr end": (csr(indptr=(0, 2, 2, 2)), "indptr goes from 0 to 2. Allowed: 0 to 3, the number of stored"),
    "indptr start": (csr(indptr=(1, 2, 2, 3)), "indptr goes from 1 to 3. Allowed: 0 to 3, the number of stored"),
    "indptr falls": (csr(indptr=(0, 3, 2, 3)), "indptr falls from 3 to 2 at row 1. Allowed: numbers that never fall"),
    "one dimension": (sp.coo_array(np.ones(3)), "The coo matrix has shape (3,). Allowed: two dimensions"),
    "indices 2-D": (
        assemble("csr", np.array([0, 1]), np.array([[0]]), np.float32([[1]]), (1, 1)),
        "indices has 2 dimensions. Allowed: 1 dimension",
    ),
}
FULL = {
    "csr out of range": (csr(columns=(1, 4, 0)), "indices[1] is 4, out of range. Allowed: 0 to 3, as there are 4 col"),
    "csc out of range": (csc(columns=(1, 4, 0)), "indices[1] is 4, out of range. Allowed: 0 to 3, as there are 4 rows"),
    "coo out of range": (coo(row=(0, 9, 0)), "row[1] is 9, out of range. Allowed: 0 to 2, as there are 3 rows"),
    "no columns": (csr(shape=(3, 0)), "indices[0] is 1, out of range. Allowed: none, as there are no columns"),
    "csr negative": (csr(columns=(1, -3, 0)), "indices[1] is -3, a negative index. Allowed: 0 to 3"),
    "coo negative": (coo(col=(1, 0, -1)), "col[2] is -1, a negative index. Allowed: 0 to 3"),
    "csr unsorted": (csr(columns=(3, 1, 0)), "Row 0 is unsorted: column 1 (indices[1]) comes after column 3."),
    "csc unsorted": (csc(columns=(3, 1, 0)), "Column 0 is unsorted: row 1 (indices[1]) comes after row 3."),
    "csr duplicate": (csr(columns=(1, 1, 0)), "Column 1 is stored twice in row 0 (indices[0] and indices[1]), a dup"),
    "csr NaN": (csr(data=(1, np.nan, 3)), "data[1] is nan. Allowed: finite values. Call np.nan_to_num on data"),
    "coo infinite": (coo(data=(1, 2, -np.inf)), "data[2] is -inf. Allowed: finite values"),
    "dense NaN": (np.array([[1, 2], [np.nan, 4]]), "x[1, 0] is nan. Allowed: finite values"),
}


@pytest.mark.parametrize("fault", CHEAP)
def test_a_cheap_fault_is_always_refused(fault):
    x, message = CHEAP[fault]
    for full in (False, True):
        with pytest.raises(FormatError) as error:
            formats.check(x, full=full)
        assert message in str(error.value)


@pytest.mark.parametrize("fault", FULL)
def test_a_costly_fault_is_refused_by_the_full_check_only(fault):
    x, message = FULL[fault]
    assert formats.check(x) is x
    with pytest.raises(FormatError) as error:
        formats.check(x, full=True)
    assert message in str(error.value)


def test_each_kind_of_fault_is_told_in_its_own_words():
    words = ("unsorted", "a duplicate", "out of range", "a negative index", "finite values", "dtype", "same number in")
    told = set()
    for x, _ in (*CHEAP.values(), *FULL.values()):
        with pytest.raises(FormatError) as error:
            formats.check(x, full=True)
        said = [word for word in words if word in str(error.value)]
        assert len(said) <= 1
        told.update(said)
    assert told == set(words)


def test_the_advice_mends_the_fault():
    x, y = csr(columns=(3, 1, 0)), csr(columns=(1, 1, 0))
    x.sort_indices()
    y.sum_duplicates()
    assert formats.check(x, full=True) is x
    assert formats.check(y, full=True) is y


@pytest.mark.parametrize("x", [csr(columns=(3, 1, 0)), csr(columns=(1, 1, 0)), csc(columns=(3, 3, 0))])
def test_unsorted_and_duplicated_may_be_allowed(x):
    assert formats.check(x, full=True, canonical=False) is x


@pytest.mark.parametrize(
    "x",
    [
        csr(),
        csr(data=(0, 0, 0)),
        csr(indptr=(0, 0, 0, 0), columns=(), data=()),
        csr(indptr=(0,), columns=(), data=(), shape=(0, 4)),
        csr(indptr=(0, 0), columns=(), data=(), shape=(1, 0)),
        csr(indptr=(0, 0, 1, 3), columns=(2, 1, 3)),
        coo(row=(2, 0, 2), col=(1, 0, 1)),
        np.empty((0, 3)),
        csr(dtype=np.float64, index=np.int64),
    ],
)
def test_sound_matrices_pass_the_full_check(x):
    assert formats.check(x, full=True) is x


@pytest.mark.parametrize(("source", "to"), [pair for pair in PAIRS if pair[0][:2] in ("cs", "co") and pair[0] != pair[1]])
def test_conversion_never_follows_an_index_out_of_range(source, to):
    x = {"csr": csr(columns=(1, 9, 0)), "csc": csc(columns=(-1, 1, 0)), "coo": coo(col=(1, 0, 4))}[source]
    with pytest.raises(FormatError, match=r"out of range|negative index"):
        formats.convert(x, to)


# conversion


@st.composite
def entries(draw):
    rows, columns, nnz = draw(st.integers(0, 6)), draw(st.integers(0, 6)), draw(st.integers(0, 14))
    nnz = nnz if rows and columns else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(-3, 4, nnz)  # sums of small integers are exact; zeros and duplicates are frequent
    dtype, index = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(INDEX_TYPES))
    return coo(
        rng.integers(0, rows or 1, nnz), rng.integers(0, columns or 1, nnz), values, (rows, columns), dtype, index
    )


@settings(max_examples=60, deadline=None)
@given(entries(), st.booleans())
def test_all_pairs_convert_without_loss_or_change(start, read_only):
    wanted = np.zeros(start.shape, start.dtype)
    np.add.at(wanted, (start.row, start.col), start.data)
    for source, target in PAIRS:
        x = formats.convert(start, source)
        for array in arrays_of(x):
            array.flags.writeable = not read_only
        before = [array.copy() for array in arrays_of(x)]
        y = formats.convert(x, target)
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


@settings(max_examples=40, deadline=None)
@given(entries())
def test_predicted_bytes_are_those_held(start):
    for name in formats.names():
        x = formats.convert(start, name)
        index = np.int64 if name == "row_sparse" else arrays_of(x)[0].dtype
        stored = len(x.indices) if name == "row_sparse" else None
        nnz = 0 if name in ("dense", "row_sparse") else x.nnz
        predicted = formats.predicted_bytes(name, *start.shape, nnz, start.dtype, index, stored)
        assert formats.nbytes(x) == predicted == sum(array.nbytes for array in arrays_of(x))


def test_row_sparse_without_a_count_is_predicted_at_its_most():
    assert formats.predicted_bytes("row_sparse", 10, 4, 3, np.float32, np.int32) == 3 * (4 * 4 + 8)


def test_the_same_format_comes_back_itself():
    x = csr()
    assert formats.convert(x, "csr") is x


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_indices_are_64_bit_only_where_they_must_be(monkeypatch, name):
    dense = np.eye(4, dtype=np.float32)
    small = formats.convert(dense, name)
    monkeypatch.setattr(indices, "INT32_LIMIT", 3)
    large = formats.convert(dense, name)
    assert {array.dtype for array in arrays_of(small)[:2]} == {np.dtype(np.int32)}
    assert {array.dtype for array in arrays_of(large)[:2]} == {np.dtype(np.int64)}


def test_narrow_indices_widen_when_the_result_needs_it(monkeypatch):
    monkeypatch.setattr(indices, "INT32_LIMIT", 3)
    assert formats.convert(csr(), "csc").indices.dtype == np.int64
    assert formats.convert(coo(), "csr").indptr.dtype == np.int64


def test_nan_is_stored_and_negative_zero_is_not():
    x = formats.convert(np.array([[np.nan, -0.0, np.inf]]), "csr")
    assert x.indices.tolist() == [0, 2]
    assert np.isnan(x.data[0])


def test_non_contiguous_and_fortran_dense_convert():
    x = np.arange(24, dtype=np.float64).reshape(4, 6)
    for view in (x[:, ::2], x[::-1], np.asfortranarray(x)):
        for name in formats.names():
            np.testing.assert_array_equal(dense_of(formats.convert(view, name)), view)


def test_three_dimensions_go_to_row_sparse_and_nowhere_else():
    x = np.zeros((4, 2, 3))
    x[2, 1, 0] = 5
    y = formats.convert(x, "row_sparse")
    assert y.indices.tolist() == [2]
    np.testing.assert_array_equal(formats.convert(y, "dense"), x)
    for source, name in ((x, "dense"), (y, "row_sparse")):
        with pytest.raises(FormatError, match=rf"The {name} matrix has shape \(4, 2, 3\). Allowed: two dimensions"):
            formats.convert(source, "csr")


def test_checks_cover_both_float_types():
    assert {np.dtype(dtype) for dtype in DTYPES} == set(checks.FLOATS)


# RowSparse


def rows(values=((1, 2), (3, 4)), at=(1, 4), shape=(6, 2), dtype=np.float32):
    return RowSparse(np.array(values, dtype), np.array(at), shape)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"at": (4, 1)},
            "indices is unsorted: 1 (indices[1]) comes after 4. Allowed: ascending order. Call RowSparse.fr",
        ),
        ({"at": (4, 4)}, "Row 4 is stored twice (indices[0] and indices[1]), a duplicate. Allowed: each row once"),
        ({"at": (1, 6)}, "indices[1] is 6, out of range. Allowed: 0 to 5, as there are 6 rows"),
        ({"at": (-1, 4)}, "indices[0] is -1, a negative index. Allowed: 0 to 5"),
        ({"at": (1, 2, 3)}, "values has 2 entries and indices has 3. Allowed: the same number"),
        ({"at": ((1, 4),)}, "indices has 2 dimensions. Allowed: 1 dimension"),
        ({"at": (1.0, 4.0)}, "indices has dtype float64. Allowed: whole numbers, int64 best"),
        ({"shape": (6, 3)}, "values has shape (2, 2). Allowed: (stored, 3) for the shape (6, 3)"),
        ({"shape": (6,)}, "values has shape (2, 2). Allowed: (stored) for the shape (6,)"),
        ({"shape": ()}, "shape is (). Allowed: 1 or more lengths, none negative"),
        ({"shape": (6, "b")}, "shape is (6, 'b'). Allowed: a tuple of whole numbers"),
        ({"dtype": np.int64}, "values has dtype int64. Allowed: float32 and float64"),
    ],
)
def test_a_malformed_row_sparse_is_refused(parts, message):
    with pytest.raises(FormatError) as error:
        rows(**parts)
    assert message in str(error.value)


def test_full_check_of_row_sparse_finds_nan():
    x = rows(values=((1, np.nan), (3, 4)))
    assert x.check() is x
    with pytest.raises(FormatError, match=r"values\[0, 1\] is nan. Allowed: finite values"):
        formats.check(x, full=True)


def test_figures_of_row_sparse():
    x = rows()
    assert (x.format, x.dtype, x.shape, x.ndim, x.nnz, x.nbytes) == ("row_sparse", np.float32, (6, 2), 2, 4, 32)
    assert x.indices.dtype == np.int64
    assert RowSparse([[1, 2]], [3], (5, 2)).dtype == np.float32


def test_row_sparse_shares_its_parts_and_copy_does_not():
    values = np.ones((1, 2), np.float32)
    x = RowSparse(values, np.array([3]), (5, 2))
    same = x.copy()
    values[0, 0] = 7
    assert x.toarray()[3].tolist() == [7, 1]
    assert same.toarray()[3].tolist() == [1, 1]


def test_row_sparse_is_frozen_and_final():
    x = rows()
    with pytest.raises(AttributeError, match=r"RowSparse.values cannot be set; build a new one"):
        x.values = x.values
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del x.values
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert copy.deepcopy(x) == x


def test_row_sparse_equality_is_of_what_is_stored():
    x = rows()
    assert x == rows()
    assert x != rows(at=(1, 5))
    assert x != rows(values=((1, 2), (3, 5)))
    assert x != rows(dtype=np.float64)
    assert x != "row_sparse"
    assert rows(values=((0, 0),), at=(1,)) != RowSparse.from_dense(np.zeros((6, 2), np.float32))


def test_from_dense_drops_rows_of_zeros_only():
    dense = np.array([[0, 0], [-0.0, 0], [0, np.nan], [1, 0]])
    x = RowSparse.from_dense(dense)
    assert x.indices.tolist() == [2, 3]
    np.testing.assert_array_equal(x.toarray(), dense)
    x.values[:] = 9
    assert dense[3, 0] == 1


@pytest.mark.parametrize("tail", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_from_rows_sorts_and_sums(tail, dtype):
    at = np.array([5, 1, 5, 0, 1, 5], np.int32)
    values = np.arange(6 * int(np.prod(tail)), dtype=dtype).reshape(6, *tail)
    kept = values.copy()
    x = RowSparse.from_rows(at, values, (7, *tail))
    wanted = np.zeros((7, *tail), dtype)
    np.add.at(wanted, at, values)
    assert x.indices.tolist() == [0, 1, 5]
    assert x.dtype == dtype
    np.testing.assert_array_equal(x.toarray(), wanted)
    np.testing.assert_array_equal(values, kept)


def test_from_rows_of_nothing_and_of_the_impossible():
    assert RowSparse.from_rows([], np.empty((0, 2), np.float32), (4, 2)).nnz == 0
    with pytest.raises(FormatError, match=r"indices\[1\] is 4, out of range"):
        RowSparse.from_rows([0, 4], np.ones((2, 2)), (4, 2))


def test_retain_keeps_stored_rows_that_are_asked_for():
    x = rows()
    kept = x.retain([5, 4, 4])
    assert kept.indices.tolist() == [4]
    assert kept.values.tolist() == [[3, 4]]
    assert not np.shares_memory(kept.values, x.values)
    assert x.retain([]).nnz == 0
    with pytest.raises(FormatError, match=r"rows\[0\] is 6, out of range"):
        x.retain([6])


def test_repr_shows_values_and_cuts_long_ones():
    assert "row 4: [3. 4.]" in repr(rows())
    many = RowSparse(np.ones((50, 40), np.float32), np.arange(50), (60, 40))
    assert "... 44 more" in repr(many)
    assert len(repr(many).splitlines()) == 8
    assert "row 1: [[1. 2.]" in repr(RowSparse(np.float32([[[1, 2], [3, 4]]]), [1], (2, 2, 2)))


@pytest.mark.parametrize("x", [rows(), RowSparse.from_dense(np.zeros((0, 3)))])
def test_html_has_figures_and_a_picture(x):
    html = x._repr_html_()
    assert f"{x.nbytes:,} bytes" in html
    assert "row_sparse" in html
    assert html.count("<rect") == 1 + len(x.indices)  # a frame, and a stripe for each of so few rows
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
