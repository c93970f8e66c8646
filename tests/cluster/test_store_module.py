"""Modules train on ranks as they do on a store of their own process: fitted, saved, restored and asked."""

import pytest

from tests.support import small_modules as small
from tests.support.ranks import on_ranks
from workbench.cluster import MpiStore, OneRank
from workbench.kvstore import LocalStore
from workbench.module import Module, ModuleError

SETTINGS = {"learning_rate": 0.05, "rescale": 0.1, "decay": 0.01}


def module(store, lazy: str) -> Module:
    return small.module(optimizer="adam", settings={**SETTINGS, "lazy": lazy}, store=store)


@pytest.mark.parametrize("lazy", ["on", "exact"])
def test_a_module_on_a_rank_has_the_bits_of_one_without_and_goes_on_from_its_checkpoint(lazy, tmp_path):
    feed = small.batches(shuffle=True)
    alone, several = module(LocalStore(), lazy), module(MpiStore(OneRank()), lazy)
    for trained in (alone, several):
        trained.fit(feed, epochs=2)
        trained.save(tmp_path / f"{id(trained)}.npz")
        assert trained.position == (2, 0)
    assert small.same(alone.weights(), several.weights())
    again = module(MpiStore(OneRank(), spread="hashed"), lazy).restore(tmp_path / f"{id(several)}.npz")
    for trained in (alone, several, again):
        trained.fit(feed, epochs=3)
    assert small.same(alone.weights(), several.weights())
    assert small.same(alone.weights(), again.weights())


@pytest.mark.parametrize("lazy", ["on", "exact"])
@pytest.mark.parametrize("output", ["layer", "loss"])
def test_the_same_script_on_two_trainers_is_one_module_with_two_workers(lazy, output):
    """Means of slices count by their rows; metrics are of the slices of each trainer."""
    own = {**SETTINGS, "lazy": lazy, "rescale": 1.0 if output == "loss" else 0.1}
    feed = small.batches(shuffle=True, last="pad")
    alone = small.module(small.linear(output=output), optimizer="adam", settings=own, workers=2)
    (ended,) = alone.fit(feed, epochs=1, metric="mse")

    def train(rank):
        trained = small.module(small.linear(output=output), optimizer="adam", settings=own, store=MpiStore(rank))
        (end,) = trained.fit(feed, epochs=1, metric="mse")
        return trained.weights(), end.metric, trained.score(feed, "mse")

    trainers = on_ranks(2, train)
    assert all(small.same(alone.weights(), weights) for weights, *_ in trainers)
    metrics = [metric for _, metric, _ in trainers]
    assert min(metrics) < ended.metric < max(metrics)
    assert [score for *_, score in trainers] == [pytest.approx(alone.score(feed, "mse"))] * 2


def test_a_batch_too_small_for_all_trainers_is_refused_on_each():
    def prepare(rank):
        with pytest.raises(ModuleError, match="A batch of 3 rows cannot be shared by 4 trainers with 1 workers each"):
            module(MpiStore(rank), "on").prepare(next(small.batches(rows=3).epoch(0)))

    on_ranks(4, prepare)
