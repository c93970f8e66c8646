"""What is done to a data set keeps what it says: fewer features, another density, parts."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_sets import labelled, same
from workbench import data, formats
from workbench.data import DataError


def test_keep_features_keeps_the_most_frequent_in_their_order():
    x = sp.csr_array(np.float32([[0, 1, 0, 2], [5, 0, 0, 3], [0, 4, 0, 0], [0, 0, 6, 0]]))
    made = data.Dataset("small", x, np.zeros(4, np.int64), data.Labels("classes", ("a",)), "", "")
    kept = data.keep_features(made, 2)
    np.testing.assert_array_equal(kept.x.toarray(), [[1, 2], [0, 3], [4, 0], [0, 0]])
    assert kept.x.indices.dtype == x.indices.dtype
    assert data.keep_features(made, 3).x.toarray()[1].tolist() == [5, 0, 3]  # a tie goes to the earlier column
    assert data.keep_features(made, 4).x.nnz == x.nnz
    for k in (0, 5):
        with pytest.raises(DataError, match=f"{k} features are asked for; the data set has 4, so 1 to 4 can be kept"):
            data.keep_features(made, k)


def test_keep_rows_draws_rows_and_keeps_their_order():
    made = labelled(groups=np.arange(6))
    kept = data.keep_rows(made, 4, seed=3)
    assert kept.rows == 4
    assert (np.diff(kept.groups) > 0).all()
    np.testing.assert_array_equal(kept.x.toarray(), made.x.toarray()[kept.groups])
    assert kept.y.tolist() == made.y[kept.groups].tolist()
    with pytest.raises(DataError, match="7 rows are asked for; the data set has 6"):
        data.keep_rows(made, 7)


def test_shuffled_has_the_same_rows_in_another_order():
    made = labelled(range(8), groups=np.arange(8))
    mixed = data.shuffle_rows(made, seed=1)
    assert sorted(mixed.groups) == list(range(8)) != mixed.groups.tolist()
    np.testing.assert_array_equal(mixed.x.toarray(), made.x.toarray()[mixed.groups])


def test_split_parts_all_rows():
    made = dataclasses.replace(labelled([0] * 10), x=formats.to_format(np.diag(np.arange(1.0, 11)), "csr"))
    train, test = data.split(made, held_out=0.3, seed=5)
    assert (train.rows, test.rows) == (7, 3)
    assert sorted([*train.x.data, *test.x.data]) == list(range(1, 11))
    assert same(test, data.split(made, 0.3, seed=5)[1])
    assert not same(test, data.split(made, 0.3, seed=6)[1])


@pytest.mark.parametrize("seed", range(5))
def test_split_never_parts_a_group(seed):
    groups = np.repeat(np.arange(12), 5)
    made = labelled([0] * 60, groups=groups)
    train, test = data.split(made, held_out=0.26, seed=seed)
    assert not set(train.groups) & set(test.groups)
    assert test.rows == 15  # the nearest border to 15.6
    assert len(set(np.diff(train.groups))) > 2  # rows of different groups are mixed


@pytest.mark.parametrize(
    ("made", "held_out", "message"),
    [
        (labelled(), 0, "held_out is 0; it is a share of the rows, above 0 and below 1"),
        (labelled(), 1.0, "held_out is 1.0; it is a share"),
        (
            labelled([0]),
            0.5,
            "1 row cannot be split with held_out=0.5: too few rows for two parts.\nGive more rows, or",
        ),
        (labelled(groups=np.zeros(6, np.int64)), 0.5, "6 rows cannot be split .* too few groups of rows for two parts"),
    ],
)
def test_impossible_splits_are_refused(made, held_out, message):
    with pytest.raises(DataError, match=message):
        data.split(made, held_out)


def test_consecutive_rows_share_memory_and_are_those_that_take_gives():
    dataset = data.load("uniform", rows=30, features=20, density=0.3, cache=False)
    for start, stop in ((0, 30), (4, 17), (9, 9), (29, 30)):
        part, taken = data.rows_between(dataset, start, stop), data.take(dataset, np.arange(start, stop))
        assert same(part, taken)
        assert part.x.nnz == 0 or np.shares_memory(part.x.data, dataset.x.data)
