"""Mini-batches: the same rows as the data, once each, without copies where there need be none."""

import numpy as np
import pytest
import scipy.sparse as sp

from workbench import formats
from workbench.data import Batches, DataError

RNG = np.random.default_rng(0)


def matrix(rows=11, features=7, dtype=np.float32, index=np.int32):
    dense = RNG.integers(0, 3, (rows, features)) * RNG.standard_normal((rows, features))
    x = formats.convert(dense.astype(dtype), "csr")
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    return x


def epoch(batches, number=0):
    return list(batches.epoch(number))


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
@pytest.mark.parametrize("rows", [1, 3, 4, 11])
def test_each_batch_holds_the_rows_that_it_names(kind, shuffle, last, rows):
    x, y = matrix(), np.arange(11)
    whole = x.toarray()
    batches = Batches(formats.convert(x, kind), y, rows, shuffle=shuffle, last=last)
    parts = epoch(batches)
    assert len(parts) == len(batches)
    for batch in parts:
        assert formats.format_of(batch.x) == kind
        assert batch.x.shape == (len(batch.rows_index), 7)
        assert batch.rows_index.dtype == np.int64
        np.testing.assert_array_equal(formats.convert(batch.x, "dense"), whole[batch.rows_index])
        np.testing.assert_array_equal(batch.y, y[batch.rows_index])
    seen = np.concatenate([batch.rows_index[: batch.real_rows] for batch in parts])
    assert len(set(seen)) == len(seen) == (11 - 11 % rows if last == "drop" else 11)
    assert all(len(batch.rows_index) == rows for batch in parts[:-1])
    if last == "pad":
        order = np.concatenate([batch.rows_index for batch in parts])
        assert len(order) == len(batches) * rows
        np.testing.assert_array_equal(order, np.resize(order[:11], len(order)))  # filled with the epoch's first rows


def test_contiguous_batches_share_memory_and_shuffled_ones_do_not():
    x, y = matrix(40), np.arange(40.0)
    for batch in Batches(x, y, rows=3).epoch():  # 3 of 40 rows: SciPy's constructor would copy such small views
        assert np.shares_memory(batch.x.data, x.data)
        assert np.shares_memory(batch.x.indices, x.indices)
        assert np.shares_memory(batch.y, y)
    for batch in Batches(x, y, rows=3, shuffle=True).epoch():
        assert not np.shares_memory(batch.x.data, x.data)
    dense = x.toarray()
    assert all(np.shares_memory(batch.x, dense) for batch in Batches(dense, y, rows=3).epoch())


def test_shuffling_depends_on_seed_and_epoch_alone():
    def order(seed, number):
        batches = Batches(matrix(50), np.zeros(50), rows=8, shuffle=True, seed=seed)
        return np.concatenate([batch.rows_index for batch in epoch(batches, number)]).tolist()

    assert order(1, 0) == order(1, 0)
    assert len({tuple(order(1, 0)), tuple(order(1, 1)), tuple(order(2, 0)), tuple(range(50))}) == 4


def test_targets_of_several_outputs_are_cut_too():
    y = RNG.standard_normal((11, 3))
    for shuffle in (False, True):
        for batch in Batches(matrix(), y, rows=4, shuffle=shuffle).epoch():
            np.testing.assert_array_equal(batch.y, y[batch.rows_index])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shuffle", [False, True])
def test_types_are_kept_and_read_only_data_is_read(dtype, index, shuffle):
    x = matrix(dtype=dtype, index=index)
    for array in (x.data, x.indices, x.indptr):
        array.flags.writeable = False
    for batch in Batches(x, np.zeros(11), rows=4, shuffle=shuffle, last="pad").epoch():
        assert (batch.x.dtype, batch.x.indices.dtype, batch.x.indptr.dtype) == (dtype, index, index)
        assert formats.check(batch.x, full=True) is batch.x


@pytest.mark.parametrize("shuffle", [False, True])
def test_empty_rows_and_empty_matrices_are_cut(shuffle):
    for x in (sp.csr_array((5, 4), dtype=np.float32), sp.csr_array((5, 0), dtype=np.float32)):
        parts = epoch(Batches(x, np.zeros(5), rows=2, shuffle=shuffle))
        assert [batch.x.shape for batch in parts] == [(2, x.shape[1]), (2, x.shape[1]), (1, x.shape[1])]
        assert all(batch.x.nnz == 0 for batch in parts)


def test_matrix_classes_and_explicit_zeros_are_kept():
    x = sp.csr_matrix((np.float32([0, 1]), [0, 1], [0, 2]), shape=(1, 2))
    (batch,) = epoch(Batches(x, np.zeros(1)))
    assert isinstance(batch.x, sp.csr_array)
    assert batch.x.nnz == 2


def test_real_rows_tells_the_padding():
    assert [batch.real_rows for batch in Batches(matrix(), np.zeros(11), rows=4, last="pad").epoch()] == [4, 4, 3]
    (batch,) = epoch(Batches(matrix(), np.zeros(11), rows=30, last="pad"))
    assert (batch.real_rows, batch.rows_index.tolist()) == (11, [*range(11), *range(11), *range(8)])
    (batch,) = epoch(Batches(matrix(), np.zeros(11), rows=30, last="keep"))
    assert (batch.real_rows, len(batch.rows_index)) == (11, 11)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": matrix(0)}, "x has no rows, so there are no mini-batches"),
        ({"y": np.zeros(10)}, "y has 10 entries for 11 rows of x; it needs one for each"),
        (
            {"x": formats.convert(matrix(), "csc")},
            r"x is csc; mini-batches are cut from csr or dense: formats.convert\(",
        ),
        ({"rows": 0}, "rows is 0; it is the number of rows of a mini-batch, 1 or more"),
        ({"last": "fill"}, "last is 'fill'; it is one of keep, drop, pad"),
        ({"rows": 12, "last": "drop"}, "rows=12 with last='drop' leaves no batch of 11 rows; use last='keep'"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    arguments = {"x": matrix(), "y": np.zeros(11), **change}
    if arguments["x"].shape[0] == 0:
        arguments["y"] = np.zeros(0)
    with pytest.raises(DataError, match=message):
        Batches(**arguments)


def test_an_index_out_of_range_never_reaches_a_kernel():
    x = matrix()
    x.indices[3] = 7
    with pytest.raises(formats.FormatError, match=r"indices\[3\] is 7, out of range"):
        Batches(x, np.zeros(11))
