"""Mini-batches: the same rows as the data, once each, without copies where there need be none."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernels import plan
from tests.support.small_sets import possible_batches
from workbench import formats
from workbench.data import Batches, DataError
from workbench.data.batches import in_memory
from workbench.data.batches.feed import LAST

RNG = np.random.default_rng(0)


def matrix(rows=11, features=7, dtype=np.float32, index=np.int32):
    dense = RNG.integers(0, 3, (rows, features)) * RNG.standard_normal((rows, features))
    x = formats.to_format(dense.astype(dtype), "csr")
    x.indices, x.indptr = x.indices.astype(index), x.indptr.astype(index)
    return x


def epoch(batches, number=0):
    return list(batches.epoch(number))


@pytest.mark.parametrize("kind", ["csr", "dense", "row_sparse"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("last", "rows"), possible_batches(["keep", "discard", "pad"], [1, 3, 4, 11, 30], 11))
def test_each_batch_holds_the_rows_that_it_names(kind, shuffle, last, rows):
    x, y = matrix(), np.arange(11)
    whole = x.toarray()
    batches = Batches(formats.to_format(x, kind), y, rows, shuffle=shuffle, last=last)
    parts = epoch(batches)
    assert len(parts) == len(batches)
    for batch in parts:
        assert formats.format_of(batch.x) == kind
        assert batch.x.shape == (len(batch.rows_index), 7)
        assert batch.rows_index.dtype == np.int64
        np.testing.assert_array_equal(formats.to_format(batch.x, "dense"), whole[batch.rows_index])
        np.testing.assert_array_equal(batch.y, y[batch.rows_index])
    seen = np.concatenate([batch.rows_index[: batch.real_rows] for batch in parts])
    assert len(set(seen)) == len(seen) == (11 - 11 % rows if last == "discard" else 11)
    assert all(len(batch.rows_index) == rows for batch in parts[:-1])
    if last == "pad":
        order = np.concatenate([batch.rows_index for batch in parts])
        assert len(order) == len(batches) * rows
        np.testing.assert_array_equal(order, np.resize(order[:11], len(order)))  # filled with the epoch's first rows


@pytest.mark.parametrize("last", LAST)
def test_batches_that_are_cut_together_are_those_cut_alone_and_bring_their_plans(last, monkeypatch):
    x = matrix(50)
    settings = {"rows": 4, "shuffle": True, "last": last}
    batches = Batches(x, np.arange(50), **settings)
    together = [batch for number in range(3) for batch in batches.epoch(number, first=number)]
    monkeypatch.setattr(in_memory, "NUMBERS", 0)
    batches = Batches(x, np.arange(50), **settings)
    alone = [batch for number in range(3) for batch in batches.epoch(number, first=number)]
    assert len(together) == len(alone)
    assert sum(batch.planned is not None for batch in together) > 30
    for one, other in zip(together, alone, strict=True):
        assert (one.rows_index.tolist(), one.pad) == (other.rows_index.tolist(), other.pad)
        assert (one.y.tolist(), one.is_copy, other.planned) == (other.y.tolist(), True, None)
        for name in ("indptr", "indices", "data"):
            assert getattr(one.x, name).dtype == getattr(other.x, name).dtype
            np.testing.assert_array_equal(getattr(one.x, name), getattr(other.x, name))
        if one.planned is not None:
            built = plan.build(other.x.indptr, other.x.indices, 7)
            np.testing.assert_array_equal(one.planned().permutation, built.permutation)
            np.testing.assert_array_equal(one.planned().columns, built.columns)


def test_batches_of_which_one_is_not_small_bring_no_plan():
    x = sp.csr_array((np.ones(4299, np.float32), [*range(4200), *[0] * 99], [0, *range(4200, 4300)]), shape=(100, 4200))
    parts = epoch(Batches(x, np.zeros(100), rows=10, shuffle=True))
    assert [batch.planned() for batch in parts] == [None] * 10


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
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.uint8, bool])
def test_dense_data_of_any_layout_and_type_is_cut(shuffle, dtype):
    whole = RNG.integers(0, 2, (11, 6)).astype(dtype)
    ways = {"gaps": np.repeat(whole, 2, axis=1)[:, ::2], "turned": np.asfortranarray(whole), "back": whole[::-1][::-1]}
    for batch in Batches(ways, {"flat": whole[:, 0]}, 4, shuffle=shuffle).epoch():
        for name in ways:
            assert batch.data[name].dtype == dtype
            np.testing.assert_array_equal(batch.data[name], whole[batch.rows_index])
        np.testing.assert_array_equal(batch.y, whole[batch.rows_index, 0])


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


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("last", "rows"), possible_batches(LAST, [3, 25], 10))
def test_an_epoch_can_be_entered_at_any_batch(shuffle, last, rows):
    x, y = {"a": matrix(10), "b": RNG.standard_normal((10, 2, 2))}, {"c": matrix(10), "d": np.arange(10)}
    whole, again = (Batches(x, y, rows, shuffle=shuffle, last=last) for _ in range(2))
    for number in (0, 4):
        parts = epoch(whole, number)
        for first in range(len(parts) + 2):
            rest = list(again.epoch(number, first))
            assert len(rest) == max(len(parts) - first, 0)
            for batch, expected in zip(rest, parts[first:], strict=True):
                assert batch.pad == expected.pad
                np.testing.assert_array_equal(batch.rows_index, expected.rows_index)
                np.testing.assert_array_equal(batch.data["b"], expected.data["b"])
                np.testing.assert_array_equal(batch.labels["c"].toarray(), expected.labels["c"].toarray())
    with pytest.raises(DataError, match="Epoch 0, batch -1 was asked for; both count from 0"):
        next(again.epoch(0, -1))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("last", LAST)
def test_several_arrays_and_labels_are_cut_alike(shuffle, last):
    ids, cube = np.arange(11), RNG.standard_normal((11, 2, 3))
    sparse = formats.RowSparse(RNG.standard_normal((3, 2)), [0, 4, 10], (11, 2))
    batches = Batches({"ids": ids, "cube": cube, "sparse": sparse}, {"one": matrix(), "two": cube}, 4, shuffle, 0, last)
    for number in range(3):
        for batch in batches.epoch(number):
            assert list(batch.data) == ["ids", "cube", "sparse"]
            assert formats.format_of(batch.labels["one"]) == "csr"
            np.testing.assert_array_equal(batch.data["ids"], batch.rows_index)
            np.testing.assert_array_equal(batch.labels["two"], cube[batch.rows_index])
            np.testing.assert_array_equal(batch.data["sparse"].check().toarray(), sparse.toarray()[batch.rows_index])
            with pytest.raises(DataError, match=r"not one array of data but 3 \(ids, cube, sparse\); use batch.data"):
                _ = batch.x


def test_without_labels_there_are_none():
    (batch,) = epoch(Batches(matrix()))
    assert batch.labels == {}
    with pytest.raises(DataError, match=r"not one array of labels but 0 \(none\)"):
        _ = batch.y


def test_settings_say_what_batches_depend_on():
    settings = Batches(matrix(), rows=3).settings()
    assert settings == {"total": 11, "rows": 3, "last": "keep", "shuffle": False}
    assert Batches(matrix(), rows=3, seed=1).settings() == settings  # a seed that is not used
    assert Batches(matrix(), rows=3, shuffle=True, seed=1).settings() == {**settings, "shuffle": True, "seed": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: {"x": matrix(0), "y": np.zeros(0)}, "x has no rows, so there are no mini-batches"),
        (lambda: {"y": np.zeros(10)}, "y has 10 entries for 11 rows of x; it needs one for each"),
        (
            lambda: {"x": {"a": matrix(), "b": np.zeros((10, 2))}},
            "b has 10 entries for 11 rows of a; it needs one for each",
        ),
        (
            lambda: {"x": {"a": matrix()}, "y": {"a": np.zeros(11)}},
            "'a' names data and labels; every array has a name of its",
        ),
        (lambda: {"x": {}}, "x has no arrays; give at least one"),
        (lambda: {"x": {3: matrix()}}, "x names an array 3; names are strings"),
        (lambda: {"y": np.array(["a"] * 11)}, "y is <U1 of 1 dimensions; mini-batches are cut from rows of numbers"),
        (lambda: {"y": np.array(3.0)}, "y is float64 of 0 dimensions"),
        (
            lambda: {"x": formats.to_format(matrix(), "csc")},
            r"x is csc; mini-batches are cut from csr, dense, row_sparse: formats.to_format\(",
        ),
        (lambda: {"rows": 0}, "rows is 0; it is the number of rows of a mini-batch, 1 or more"),
        (lambda: {"last": "fill"}, "last is 'fill'; it is one of keep, discard, pad"),
        (lambda: {"rows": 12, "last": "discard"}, "rows=12 with last='discard' leaves no batch of 11 rows; use 'keep'"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    arguments = {"x": matrix(), "y": np.zeros(11), **change()}
    with pytest.raises(DataError, match=message):
        Batches(**arguments)


def test_an_index_out_of_range_never_reaches_a_kernel():
    x = matrix()
    x.indices[3] = 7
    with pytest.raises(formats.FormatError, match=r"indices\[3\] is 7, out of range"):
        Batches(x, np.zeros(11))


def test_batches_say_what_they_hold_without_their_values():
    batches = Batches(np.ones((5, 3)), {"score": np.ones(5), "rank": np.ones((5, 2))}, rows=2, last="pad")
    held = ["data dense [{0}, 3]", "score dense [{0}]", "rank dense [{0}, 2]"]
    assert repr(batches) == f"<Batches {', '.join(held).format(5)}: rows=2, last='pad', shuffle=False>"
    assert repr([*batches.epoch()][-1]) == f"<Batch {', '.join(held).format(2)}, pad=1>"


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("last", "rows"), possible_batches(LAST, [1, 4, 10, 23], 10))
def test_the_order_of_an_epoch_is_that_of_its_batches(last, shuffle, rows):
    batches = Batches(np.eye(10, dtype=np.float32), rows=rows, shuffle=shuffle, last=last, seed=3)
    for number in range(3):
        expected = [batch.rows_index for batch in batches.epoch(number)]
        np.testing.assert_array_equal(batches.order(number), np.concatenate([np.zeros(0, np.int64), *expected]))
