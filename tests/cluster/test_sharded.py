"""Shards and trainers of any number are one store with as many workers, bit for bit, whatever happens to messages."""

import itertools

import numpy as np
import pytest

from tests.support import shards as support
from tests.support.clocks import SECONDS
from workbench import optimizers
from workbench.cluster import ShardedStore
from workbench.formats import RowSparse
from workbench.kvstore import LocalStore
from workbench.optimizers import Updater, schedules

PAIRS = list(itertools.product([1, 2, 3, 4], repeat=2))
"""Numbers of shards and trainers."""


def settings(name: str, lazy: str, **more) -> dict:
    return {"name": name, "lazy": lazy, "learning_rate": 0.05, "rescale": 0.5, "clip": 1.5, "decay": 0.01, **more}


def agree(shards: int, trainers: int, of: dict, steps: int = 3, dyadic: bool = False, **options) -> None:
    """What trainers read and the whole state are those of a `LocalStore`."""
    pushed = support.pushes(steps, trainers, dyadic=dyadic)
    alone, network = support.local(of), support.network(shards, trainers)
    several = support.sharded(network, trainers, of, **options)
    for one, other in zip(support.trained([alone], pushed), support.trained(several, pushed), strict=True):
        assert support.same_bits(one, other)
    assert support.same_bits(alone.state_dict(), several[0].state_dict())


def pairs_of(optimizer: str, lazy: str) -> list[tuple[int, int]]:
    """Two numbers of shards, each with another number of trainers, others for each optimizer and lazy."""
    turn = optimizers.names().index(optimizer) + optimizers.LAZY.index(lazy)
    return [(shards, (shards + turn) % 4 + 1) for shards in ((1, 4), (2, 3))[turn // 4 % 2]]


@pytest.mark.parametrize("lazy", optimizers.LAZY)
@pytest.mark.parametrize("name", optimizers.names())
def test_shards_and_trainers_are_one_store_with_workers_bit_for_bit(name, lazy):
    for shards, trainers in pairs_of(name, lazy):
        agree(shards, trainers, settings(name, lazy), spread=("contiguous", "hashed")[shards % 2])


def test_every_number_of_shards_meets_every_number_of_trainers():
    turns = itertools.product(optimizers.names(), optimizers.LAZY)
    assert set(PAIRS) == {pair for name, lazy in turns for pair in pairs_of(name, lazy)}


@pytest.mark.parametrize("lazy", ["on", "exact"])
@pytest.mark.parametrize("largest", [0.5, 1e9])
def test_the_norm_of_all_gradients_is_that_of_all_shards(largest, lazy):
    """Sums of squares of dyadic numbers are exact in any order."""
    of = settings("adam", lazy, clip_global_norm=largest)
    agree(3, 2, of, dyadic=True)
    network = support.network(3, 2)
    clipped = support.sharded(network, 2, of)
    support.trained(clipped, support.pushes(5, 2))
    clipped[1].pull("small")
    assert (network.held[0].totals, set(network.held[0].squares)) == ({}, {4, 5})  # what is over is forgotten


def test_schedules_count_the_steps_of_all():
    of = settings("momentum", "exact", schedule=schedules.StepDecay(every=2, factor=0.5))
    agree(2, 3, of, steps=6)


def test_without_an_optimizer_the_sum_of_all_trainers_takes_the_place_of_the_value():
    pushed = support.pushes(3, 2)
    alone, several = LocalStore(), [ShardedStore(network := support.network(3, 2)), ShardedStore(network, 1)]
    for store in (alone, *several):
        support.filled(store)
    support.trained([alone], pushed)
    support.trained(several, pushed)
    assert support.same_bits(alone.state_dict(), several[1].state_dict())


@pytest.mark.parametrize("seed", range(60))
def test_lost_doubled_late_and_reordered_messages_change_no_bit(seed):
    name, lazy = optimizers.names()[seed % len(optimizers.names())], optimizers.LAZY[seed % 3]
    of = settings(name, lazy, clip_global_norm=(None, 0.5)[seed % 2])
    pushed = support.pushes(4, 2, seed=seed)
    well = support.sharded(support.network(2, 2), 2, of)
    faulty = support.Faulty(support.network(2, 2), seed)
    ill = support.sharded(faulty, 2, of)
    for one, other in zip(support.trained(well, pushed), support.trained(ill, pushed), strict=True):
        assert support.same_bits(one, other)
    faulty.arrive(len(faulty.late))
    assert support.same_bits(well[0].state_dict(), ill[1].state_dict())
    assert set(faulty.fates) == set(faulty.FATES)


def test_a_network_whose_shards_forget_what_they_have_had_is_found_out():
    """That messages were doubled and late is what the test above is about: here it fails."""
    of, pushed = settings("adam", "on"), support.pushes(6, 2)
    well = support.sharded(support.network(2, 2), 2, of)
    faulty = support.Faulty(support.network(2, 2), seed=3)
    ill = support.sharded(faulty, 2, of)
    support.trained(well, pushed)
    for store in faulty.inner.held:
        push = store._push

        def forgetful(about, arrays, store=store, push=push):
            store.pushed = [0] * store.trainers
            store.pushes.setdefault(about["step"], {}).pop(about["trainer"], None)
            return push({**about, "step": store.step + 1}, arrays)

        store._push = forgetful
    differs = False
    try:
        support.trained(ill, pushed)
        differs = not support.same_bits(well[0].state_dict(), ill[0].state_dict())
    except ValueError:
        differs = True
    assert differs


def test_trainers_on_threads_of_their_own_wait_for_each_other():
    of, pushed = settings("adam", "on"), support.pushes(8, 3)
    alone = support.local(of)
    for own in pushed:
        alone.push_all({key: [one[key] for one in own] for key in support.SHAPES})
    stores = support.sharded(support.network(2, 3), 3, of)

    def train(trainer: int) -> None:
        for own in pushed:
            stores[trainer].pull_into({"small": np.zeros(2)}, {"small": None})
            stores[trainer].push_all(own[trainer])

    support.on_threads(train, 3)
    assert support.same_bits(alone.state_dict(), stores[0].state_dict())


def test_a_trainer_may_be_ahead_by_the_staleness_and_what_it_lacked_is_counted():
    of, pushed = settings("sgd", "on"), support.pushes(3, 2)
    quick, slow = support.sharded(support.network(2, 2, staleness=1), 2, of)
    for step in range(2):
        quick.pull("small")
        quick.push_all(pushed[step][0])
    quick.channel.seconds = 0.2
    with pytest.raises(ValueError, match="step 1 waits for the push of trainer 1"):
        quick.pull("small")
    quick.channel.seconds = SECONDS
    for step in range(3):
        slow.pull("small")
        slow.push_all(pushed[step][1])
    quick.pull("small")
    quick.push_all(pushed[2][0])
    alone = support.local(of)
    for own in pushed:
        alone.push_all({key: [one[key] for one in own] for key in support.SHAPES})
    assert support.same_bits(alone.state_dict(), slow.state_dict())
    assert quick.staleness == {0: 2, 1: 1}
    assert slow.staleness == {0: 3}


@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_state_goes_on_with_another_number_of_shards(before, after):
    of, pushed = settings("centered_rmsprop", "exact"), support.pushes(6, 2)
    alone = support.local(of)
    support.trained([alone], pushed)
    first = support.sharded(support.network(before, 2), 2, of)
    support.trained(first, pushed[:3])
    saved = first[0].state_dict()
    second = support.sharded(support.network(after, 2), 2, of, spread="hashed")
    for store in second:
        store.load_state_dict(saved)
    assert support.same_bits(saved, second[0].state_dict())
    again, made = support.local(of), np.random.default_rng(5)
    again.load_state_dict(saved)
    rows = support.reads(made)
    one, other = support.outs(), support.outs()
    again.pull_into(one, rows)
    second[1].pull_into(other, rows)
    assert support.same_bits(one, other)


@pytest.mark.parametrize("rows", [10**6, 10**8])
def test_bytes_of_a_step_are_those_of_the_touched_rows_whatever_the_table(rows):
    active, width = np.arange(0, rows, rows // 2000)[:2000], 16
    store = ShardedStore(support.network(3, 1))
    store.init("w", RowSparse(np.zeros((0, width), np.float32), np.zeros(0, np.int64), (rows, width)))
    store.set_optimizer(Updater("adagrad"))
    own = RowSparse(np.ones((active.size, width), np.float32), active, (rows, width))
    before = store.traffic.bytes_sent + store.traffic.bytes_received
    store.pull_into({"w": RowSparse(np.zeros((0, width), np.float32), [], (rows, width))}, {"w": active})
    store.push("w", own)
    moved = store.traffic.bytes_sent + store.traffic.bytes_received - before
    assert active.size * (4 + 4 * width) * 2 < moved < 1.1 * active.size * (4 + 4 * width) * 2
