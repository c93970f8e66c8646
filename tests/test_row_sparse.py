"""RowSparse: its parts are checked, its fields frozen, its rows merged, retained and shown."""

import copy

import numpy as np
import pytest

from workbench import formats
from workbench.formats import FormatError, RowSparse

DTYPES = (np.float32, np.float64)


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
