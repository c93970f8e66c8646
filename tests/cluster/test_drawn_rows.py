"""Rows that are drawn when first touched have the bits that they would have had from the start, on any shards."""

import numpy as np
import pytest

from tests.support import shards as support
from workbench.cluster import ShardedStore
from workbench.formats import RowSparse
from workbench.kvstore import LazyRandomRows, LocalStore, StoreError
from workbench.optimizers import Updater
from workbench.optimizers.parameter import unite_sorted

ROWS = 40
TABLE = LazyRandomRows((ROWS, 3), "float32", "normal", 0.1, seed=4, name="w")
TOUCHED = ([2, 5, 30], [5, 6], [], [0, 39])


def trained(store, steps=TOUCHED, table=TABLE):
    if not store.keys():
        store.init("w", table)
        store.set_optimizer(Updater("adagrad", learning_rate=0.1, decay=0.01))
    for rows in steps:
        store.row_sparse_pull("w", rows)
        store.push("w", RowSparse(np.ones((len(rows), 3), np.float32), np.array(rows, np.int64), table.shape))
    return store


@pytest.mark.parametrize("spread", ["contiguous", "hashed"])
def test_rows_drawn_late_train_as_rows_drawn_at_the_start_do(spread):
    sharded, alone = trained(ShardedStore(support.network(3, 1), spread=spread)), trained(LocalStore())
    held = {shard.store.values["w"].indices.size for shard in sharded.channel.transport.held}
    assert max(held) < ROWS // 3
    assert np.array_equal(sharded.row_sparse_pull("w", [7, 30]).values, alone.row_sparse_pull("w", [7, 30]).values)
    assert np.array_equal(sharded.pull("w").toarray(), alone.pull("w").toarray())


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_checkpoint_goes_on_drawing_on_another_number_of_shards(tmp_path, shards):
    first = trained(ShardedStore(support.network(3, 1)), TOUCHED[:2])
    first.save_shards(tmp_path)
    again = ShardedStore(support.network(shards, 1), spread="hashed")
    again.load_shards(tmp_path)
    whole = trained(again, TOUCHED[2:]).pull("w")
    assert np.array_equal(whole.toarray(), trained(LocalStore()).pull("w").toarray())


def test_a_table_of_any_height_costs_the_rows_that_are_touched():
    table = LazyRandomRows((10**9, 3), "float32", "uniform", 0.1, seed=4, name="w")
    store = trained(ShardedStore(support.network(2, 1)), [[5, 10**8], [10**9 - 1]], table)
    assert sum(shard.store.values["w"].indices.size for shard in store.channel.transport.held) == 3
    assert np.abs(store.row_sparse_pull("w", [123_456_789]).values).max() <= 0.1


def test_draws_are_spread_as_they_say_and_differ_by_seed_name_and_row():
    numbers = np.arange(20_000)
    normal = TABLE.rows(numbers)
    assert abs(float(normal.std()) - 0.1) < 0.002
    assert abs(float(normal.mean())) < 0.002
    uniform = LazyRandomRows(TABLE.shape, "float64", "uniform", 2.0, 4, "w").rows(numbers)
    assert -2 <= uniform.min() < -1.99
    assert 1.99 < uniform.max() < 2
    assert np.unique(uniform).size == uniform.size
    others = [
        LazyRandomRows(TABLE.shape, "float32", "normal", 0.1, 5, "w"),
        LazyRandomRows(TABLE.shape, "float32", "normal", 0.1, 4, "v"),
    ]
    assert all(not np.isclose(other.rows(numbers), normal, rtol=0, atol=1e-9).all(axis=1).any() for other in others)


@pytest.mark.parametrize("lazy", ["off", "exact"])
def test_an_update_of_rows_that_nobody_touched_is_refused(lazy):
    store = ShardedStore(support.network(1, 1))
    store.init("w", TABLE)
    with pytest.raises(StoreError, match=rf"Rows of 'w' are generated .*lazy='{lazy}'.*rows\.whole\(\)"):
        store.set_optimizer(Updater("sgd", lazy=lazy))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="Rows are drawn as 'zeros' float32"):
        LazyRandomRows((4, 2), "float32", "zeros", 0.0, 0, "w")


@pytest.mark.parametrize("rows", [[], [0], [3], [9], [1, 4], [2, 3, 5, 9], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
@pytest.mark.parametrize("indices", [[], [0], [2, 3, 7], [9]])
def test_rows_that_are_united_are_sorted_and_once(indices, rows):
    one, two = np.array(indices, np.int64), np.array(rows, np.int64)
    found = unite_sorted(one, two)
    assert found.dtype == np.int64
    assert found.tolist() == sorted({*indices, *rows})
    assert (found is one) == (set(rows) <= set(indices))
