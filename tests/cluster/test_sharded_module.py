"""Modules train on shards as they do on a store of their own process: fitted, saved, restored and asked."""

import threading

import pytest

from tests.support import shards as support
from tests.support import small_modules as small
from workbench.cluster import ShardedStore
from workbench.data.batches.feed import Batch
from workbench.kvstore import LocalStore
from workbench.module import Module
from workbench.module.worker import slices_of

SETTINGS = {"learning_rate": 0.05, "rescale": 0.1, "decay": 0.01}


def module(store, lazy: str) -> Module:
    return small.module(optimizer="adam", settings={**SETTINGS, "lazy": lazy}, store=store)


@pytest.mark.parametrize("lazy", ["on", "exact"])
def test_a_module_on_shards_has_the_bits_of_one_without_and_goes_on_from_its_checkpoint(lazy, tmp_path):
    feed = small.batches(shuffle=True)
    alone, several = module(LocalStore(), lazy), module(ShardedStore(support.network(3, 1)), lazy)
    for trained in (alone, several):
        trained.fit(feed, epochs=2)
        trained.save(tmp_path / f"{id(trained)}.npz")
        assert trained.position == (2, 0)
    assert small.same(alone.weights(), several.weights())
    again = module(ShardedStore(support.network(2, 1), spread="hashed"), lazy).restore(tmp_path / f"{id(several)}.npz")
    for trained in (alone, several, again):
        trained.fit(feed, epochs=3)
    assert small.same(alone.weights(), several.weights())
    assert small.same(alone.weights(), again.weights())


def test_a_batch_is_one_message_a_shard_each_way():
    store = ShardedStore(support.network(3, 1))
    trained = module(store, "exact")
    before = store.traffic.messages
    trained.fit(small.batches(), epochs=1)
    assert store.traffic.messages - before == 3 * 2 * small.batches().count(0)


def train(trained: Module, trainer: int) -> None:
    """Steps on this trainer's slice of every batch."""
    for batch in small.batches().epoch(0):
        start, stop = slices_of(len(batch.rows_index), 2)[trainer]
        labels = {name: label[start:stop] for name, label in batch.labels.items()}
        data = {name: array[start:stop] for name, array in batch.data.items()}
        trained.forward(Batch(data, labels, batch.rows_index[start:stop]))
        trained.backward()
        trained.update()


@pytest.mark.parametrize("lazy", ["on", "exact"])
def test_two_trainers_on_slices_of_each_batch_are_one_module_with_two_workers(lazy):
    alone = small.module(optimizer="adam", settings={**SETTINGS, "lazy": lazy}, workers=2)
    alone.fit(small.batches(), epochs=1)
    transport = support.network(2, 2)
    trainers = [module(ShardedStore(transport, trainer, seconds=20), lazy) for trainer in range(2)]
    threads = [
        threading.Thread(target=train, args=(trained, trainer), daemon=True) for trainer, trained in enumerate(trainers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert small.same(alone.weights(), trainers[0].weights())
