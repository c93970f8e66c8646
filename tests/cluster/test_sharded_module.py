"""Modules train on shards as they do on a store of their own process: fitted, saved, restored and asked."""

import pytest

from tests.support import shards as support
from tests.support import small_modules as small
from workbench.cluster import ShardedStore
from workbench.kvstore import LocalStore
from workbench.module import Module, ModuleError

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


@pytest.mark.parametrize("lazy", ["on", "exact"])
@pytest.mark.parametrize("output", ["layer", "loss"])
def test_the_same_script_on_two_trainers_is_one_module_with_two_workers(lazy, output):
    """Means of slices count by their rows; metrics are of the slices of each trainer."""
    own = {**SETTINGS, "lazy": lazy, "rescale": 1.0 if output == "loss" else 0.1}
    feed = small.batches(shuffle=True, last="pad")
    alone = small.module(small.linear(output=output), optimizer="adam", settings=own, workers=2)
    (ended,) = alone.fit(feed, epochs=1, metric="mse")
    transport, metrics = support.network(2, 2), {}
    stores = [ShardedStore(transport, trainer) for trainer in range(2)]
    trainers = [small.module(small.linear(output=output), optimizer="adam", settings=own, store=s) for s in stores]

    def train(trainer: int) -> None:
        metrics[trainer] = trainers[trainer].fit(feed, epochs=1, metric="mse")[0].metric

    support.on_threads(train, 2)
    assert small.same(alone.weights(), trainers[0].weights())
    assert sorted(metrics) == [0, 1]
    assert min(metrics.values()) < ended.metric < max(metrics.values())
    assert trainers[1].score(feed, "mse") == pytest.approx(alone.score(feed, "mse"))


def test_a_batch_too_small_for_all_trainers_is_refused_on_each():
    transport = support.network(1, 4)
    for trainer in range(4):
        trained = module(ShardedStore(transport, trainer), "on")
        with pytest.raises(ModuleError, match="A batch of 3 rows cannot be shared by 4 trainers with 1 workers each"):
            trained.prepare(next(small.batches(rows=3).epoch(0)))
