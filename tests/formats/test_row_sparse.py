"""RowSparse: its parts are checked, its fields frozen, its rows merged, retained and shown."""

import copy

import numpy as np
import pytest

from workbench import formats
from workbench.formats import FormatError, RowSparse


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
        ({"shape": ()}, "shape is (). Allowed: 1 or more lengths. Write (rows, columns)"),
        ({"shape": (6, "b")}, "shape is (6, 'b'). Allowed: a tuple of whole numbers"),
        ({"shape": (6, -2)}, "shape is (6, -2). Allowed: lengths of which none is negative"),
        ({"shape": (6, 2.0)}, "shape is (6, 2.0). Allowed: a tuple of whole numbers"),
        ({"shape": None, "values": np.empty((0, 2)), "at": ()}, "There is no shape, and no index to infer it from"),
        ({"dtype": np.int8}, "values has dtype int8. Allowed: float32, float64, int32, int64, uint8 and float16"),
    ],
)
def test_an_invalid_row_sparse_is_refused(parts, message):
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
@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
def test_from_rows_sorts_and_sums(tail, dtype):
    at = np.array([5, 1, 5, 0, 1, 5], np.int32)
    values = np.arange(6 * int(np.prod(tail))).astype(dtype).reshape(6, *tail)
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


def test_shape_is_inferred_from_the_largest_index():
    assert rows(shape=None).shape == (5, 2)
    assert RowSparse.from_rows([7, 3], np.ones((2, 4, 1))).shape == (8, 4, 1)
    with pytest.raises(FormatError, match=r"indices is unsorted"):
        rows(at=(4, 1), shape=None)


IDS = [[], [0], [4, 1], [5, 4, 4, 0], list(range(6)), np.array([1.0, 4.0, 4.0], np.float32), np.array([3], np.uint8)]


@pytest.mark.parametrize("tail", [(), (2,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", [*map(str, formats.VALUES)])
def test_retained_are_exactly_the_rows_asked_for(tail, dtype):
    dense = np.zeros((6, *tail), dtype)
    dense[[1, 4]] = np.arange(1, 2 * int(np.prod(tail)) + 1).reshape(2, *tail)
    x = RowSparse(dense[[1, 4]], [1, 4], dense.shape)
    for ids in IDS:
        kept = x.retain(ids)
        asked = sorted({int(row) for row in ids})
        assert kept.check().indices.tolist() == asked
        assert (kept.dtype, kept.shape) == (x.dtype, x.shape)
        np.testing.assert_array_equal(kept.values, dense[asked])
        assert not np.shares_memory(kept.values, x.values)


def test_retained_indices_are_not_the_callers():
    x, ids = rows(), np.array([1, 4])
    assert not np.shares_memory(x.retain(ids).indices, ids)


def test_nothing_is_retained_of_nothing():
    assert formats.zeros((6, 2), "row_sparse").retain([1, 4]).indices.tolist() == []


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([6], r"rows\[0\] is 6, out of range. Allowed: 0 to 5"),
        ([1, -1], r"rows\[1\] is -1, a negative index"),
        ([[1, 2]], r"rows has 2 dimensions. Allowed: 1 dimension"),
        ([1.5], r"rows has dtype float64 and holds other than row numbers"),
        ([np.nan], r"rows has dtype float64 and holds other than row numbers"),
        (np.float32([2**24]), r"whole numbers below 16777216, up to which float32 is exact. Pass int64"),
        ([True, False], r"indices has dtype bool. Allowed: whole numbers"),
    ],
)
def test_rows_that_cannot_be_retained_are_refused(ids, message):
    for x in (rows(), formats.zeros((6, 2), "row_sparse")):
        with pytest.raises(FormatError, match=message):
            x.retain(ids)


@pytest.mark.parametrize("tail", [(), (3,), (2, 2), (0,)])
def test_rows_and_slices_are_those_of_the_dense_array(tail):
    dense = np.zeros((7, *tail), np.float32)
    dense[[0, 3, 6]] = np.arange(1, 3 * int(np.prod(tail)) + 1).reshape(3, *tail)
    x = RowSparse.from_dense(dense) if tail != (0,) else RowSparse(dense[[0, 3, 6]], [0, 3, 6], dense.shape)
    for row in (0, 1, 3, -1, -7, np.int32(6)):
        np.testing.assert_array_equal(x[row], dense[row])
        assert np.shape(x[row]) == tail
        assert not np.shares_memory(x[row], x.values)
    bounds = (None, 0, 2, 3, 6, 9, -1, -4, -9)
    for start in bounds:
        for stop in bounds:
            for step in (None, 1, 2, 3, -1, -2):
                part = x[start:stop:step]
                assert part.check().shape == dense[start:stop:step].shape
                np.testing.assert_array_equal(part.toarray(), dense[start:stop:step])
    np.testing.assert_array_equal(np.array(list(x)), dense)


def test_slices_share_values_but_for_long_steps():
    x = rows(values=((1, 2), (3, 4), (5, 6)), at=(0, 2, 4))
    for part in (x[:], x[1:], x[2:5:1], x[::-1]):
        assert np.shares_memory(part.values, x.values)
    assert not np.shares_memory(x[::2].values, x.values)
    assert x[0:0].shape == (0, 2)


@pytest.mark.parametrize("key", [(0, 1), [1, 2], None, 1.0, True, np.array([1]), "a"])
def test_other_keys_are_refused(key):
    with pytest.raises(IndexError, match=r"A RowSparse was indexed with .* Allowed: a row number or a slice"):
        rows()[key]
    with pytest.raises(IndexError, match=r"was assigned to. Allowed: x\[:\] = value"):
        rows()[key] = 1


def test_rows_out_of_range_are_refused():
    for row in (6, -7):
        with pytest.raises(IndexError, match=rf"Row {row} is out of range. Allowed: -6 to 5, as there are 6 rows"):
            rows()[row]
    with pytest.raises(IndexError, match="out of range"):
        formats.zeros((0, 2), "row_sparse")[0]
    for part in (slice(1, 2), 3):
        with pytest.raises(IndexError, match="was assigned to"):
            rows()[part] = 1


def test_numpy_does_not_take_it_for_a_list_and_make_it_dense():
    assert np.asarray(rows()).shape == ()
    with pytest.raises(TypeError, match=r"has no len"):
        len(rows())


def test_a_row_sparse_is_neither_true_nor_false():
    with pytest.raises(ValueError, match=r"neither true nor false\. Ask for x.nnz"):
        bool(rows())


def test_repr_shows_values_and_cuts_long_ones():
    assert "row 4: [3. 4.]" in repr(rows())
    many = RowSparse(np.ones((50, 40), np.float32), np.arange(50), (60, 40))
    assert "... 44 more" in repr(many)
    assert len(repr(many).splitlines()) == 8
    assert "row 1: [[1. 2.]" in repr(RowSparse(np.float32([[[1, 2], [3, 4]]]), [1], (2, 2, 2)))


def test_to_dense_is_toarray():
    x = RowSparse(np.float32([[1, 2]]), [1], (3, 2))
    assert x.to_dense().tolist() == [[0, 0], [1, 2], [0, 0]]
    assert x.to_dense() is not x.to_dense()
