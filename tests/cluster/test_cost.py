"""The cost model counts the bytes that trainers really move, and says when a second machine pays."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support import shards as support
from tests.support import shared_training as of_training
from workbench.cluster import ShardedStore, cost
from workbench.cluster.cost import Cores, Line, Network, Speeds, Work, active_rows, pays_from, predict
from workbench.cluster.trainer import Job
from workbench.formats import RowSparse
from workbench.optimizers import Updater

ROWS, FEATURES, WIDTH = 64, 5000, 32
ROWWISE = Line(row=1e-4, active=0.0)


def batch(seed: int) -> list[np.ndarray]:
    made = np.random.default_rng(seed)
    return [np.unique(made.zipf(1.3, 60) % FEATURES) for _ in range(ROWS)]


def work() -> Work:
    return Work(ROWS, active_rows([batch(0), batch(1)], ROWS), bytes_row=4 * WIDTH)


@pytest.mark.parametrize("machines", [1, 2, 4])
def test_bytes_that_are_predicted_are_those_that_are_moved(machines):
    transport = support.network(machines, machines)
    stores = [ShardedStore(transport, trainer) for trainer in range(machines)]
    for store in stores:
        store.init("w", RowSparse(np.zeros((0, WIDTH), np.float32), [], (FEATURES, WIDTH)))
        store.set_optimizer(Updater("sgd"))
    before = [store.traffic.bytes_sent + store.traffic.bytes_received for store in stores]
    height = ROWS // machines
    parts = [np.unique(np.concatenate(batch(0)[k * height : (k + 1) * height])) for k in range(machines)]
    for store, rows in zip(stores, parts, strict=True):
        store.pull_into({"w": RowSparse(np.zeros((0, WIDTH), np.float32), [], (FEATURES, WIDTH))}, {"w": rows})
    for store, rows in zip(stores, parts, strict=True):
        store.push("w", RowSparse(np.ones((rows.size, WIDTH), np.float32), rows, (FEATURES, WIDTH)))
    moved = [s.traffic.bytes_sent + s.traffic.bytes_received - b for s, b in zip(stores, before, strict=True)]
    predicted = Work(ROWS, active_rows([batch(0)], ROWS), 4 * WIDTH).bytes_moved(machines)
    headers = 4 * machines * 200
    assert predicted <= np.mean(moved) <= predicted + headers


def test_slices_touch_fewer_rows_but_more_than_their_share():
    active = work().active
    assert sorted(active, reverse=True) == [64, 32, 16, 8, 4, 2, 1]
    for r in (32, 16, 8):
        assert active[2 * r] / 2 < active[r] < active[2 * r]


def test_a_network_without_cost_pays_at_once_and_a_slow_one_never():
    speeds = Speeds(ROWWISE, ROWWISE)
    free = predict(work(), speeds, Network())
    assert [step.machines for step in free] == [1, 2, 4, 8, 16, 32, 64]
    assert free[0].messages == free[0].bytes_moved == 0
    assert pays_from(free) == 2
    assert pays_from(predict(work(), speeds, Network(latency=1.0))) is None
    assert pays_from(predict(work(), speeds, Network(bytes_second=1e3))) is None


def test_what_each_shard_adds_makes_many_machines_slower_again():
    steps = predict(work(), Speeds(ROWWISE, Line(1e-4, 0.0, shard=1e-4)), Network(latency=1e-4))
    seconds = [step.seconds for step in steps]
    best = seconds.index(min(seconds))
    assert 0 < best < len(seconds) - 1
    assert seconds[best:] == sorted(seconds[best:])


def test_what_is_done_for_messages_and_the_wait_for_the_slowest_are_in_the_time_of_several():
    """They were left out, and what was measured took twice what was predicted."""
    packs = Line(row=1e-4, active=1e-5, fixed=1e-3, shard=2e-3)
    alone, two, four = predict(work(), Speeds(ROWWISE, packs, spread=0.1), Network(), (1, 2, 4))
    active = work().active
    assert alone.seconds == pytest.approx(ROWS * 1e-4)
    wholes = 1e-3 + 32e-4 + 1e-5 * active[32] + 2e-3, 1e-3 + 16e-4 + 1e-5 * active[16] + 6e-3
    assert (two.computing, four.computing) == (pytest.approx(32e-4), pytest.approx(16e-4))
    assert [step.computing + step.messages for step in (two, four)] == pytest.approx(wholes)
    assert [step.waiting for step in (alone, two, four)] == pytest.approx(
        [0.0, 0.0589 * wholes[0], 0.105 * wholes[1]], rel=1e-2
    )


def test_processes_of_one_machine_share_its_cores_and_send_messages_alone_too():
    speeds = Speeds(ROWWISE, Line(2e-4, 1e-7), spread=0.1)
    one, two, four = predict(work(), speeds, Network(), (1, 2, 4), Cores(2, slowdown=1.5))
    apart = predict(work(), speeds, Network(), (2, 4))
    assert one.seconds == pytest.approx(speeds.shared.seconds(ROWS, work().active[ROWS]))
    assert two.seconds == pytest.approx(1.5 * apart[0].seconds)
    assert four.seconds == pytest.approx(3 * apart[1].seconds)
    assert [Cores(4, slowdown=1.6).factor(count) for count in (1, 2, 4, 8)] == pytest.approx([1.0, 1.2, 1.6, 3.2])


def test_speeds_are_of_a_process_alone_and_of_one_with_a_store_whose_shards_it_is(monkeypatch):
    """Times that follow from the sizes give back the coefficients that they were made of."""
    active, asked = {64: 900.0, 32: 600.0, 16: 380.0, 8: 230.0, 4: 130.0}, []

    def steps(hosts, configuration, addresses, shards):
        asked.append((configuration.batch_rows, len(addresses), shards))
        seconds = 1e-3 + 1e-5 * configuration.batch_rows + (1e-6 * active[configuration.batch_rows] if shards else 0.0)
        seconds += 2e-3 * max(shards - 1, 0)
        return [len(addresses) * np.array([0.9, 1.0, 1.0, 1.0, 1.1]) * seconds] * len(addresses)

    monkeypatch.setattr(cost, "_run_at_once", steps)
    hosts, configuration = (
        SimpleNamespace(addresses=lambda: ["one", "two", "three"]),
        of_training.configuration(batch_rows=64, threads=2),
    )
    found = cost.fit_step_times(hosts, configuration, active)
    assert [found.alone.fixed, found.alone.row, found.alone.active] == pytest.approx([1e-3, 1e-5, 0.0], abs=1e-9)
    assert [found.shared.fixed, found.shared.row, found.shared.active] == pytest.approx([1e-3, 1e-5, 1e-6], abs=1e-9)
    assert (found.alone.shard, found.shared.shard) == (0.0, pytest.approx(2e-3))
    assert 0 < found.spread < 0.1
    assert {height for height, _, _ in asked} == {64, 32, 16, 8}
    assert cost.core_slowdown(hosts, configuration) == Cores(2, pytest.approx(2.0))


def test_steps_are_timed_with_and_without_a_store():
    job = Job(of_training.configuration(rows=400, epochs=1).model_dump(mode="json"), 1)
    transport = support.network(1, 1)
    for work in (cost.seconds_without_store, cost.seconds_with_store):
        seconds = work(transport, 0, job, lambda said: None)["seconds"]
        assert len(seconds) == 18, "27 steps, of which a third is left out"
        assert min(seconds) > 0
    assert transport.held[0].step == 27


@pytest.mark.parametrize("shards", [0, 2])
def test_what_times_the_steps_is_found_by_its_name_in_the_process_that_does_it(shards):
    asked = []

    class OneHost:
        """A process that looks its work up by name, as a trainer does, and answers without doing it."""

        def begin(self, addresses, count, trainers):
            return "run", SimpleNamespace(result=lambda seconds: None)

        def start(self, run, address, number, work, job):
            module, _, function = work.partition(":")
            asked.append(getattr(importlib.import_module(module), function))
            return SimpleNamespace(result=lambda seconds: '{"answer": {"seconds": [1.0, 2.0]}}')

        def remove(self, run):
            pass

    [seconds] = cost._run_at_once(OneHost(), of_training.configuration(), ["here"], shards)
    assert seconds.tolist() == [1.0, 2.0]
    assert asked == [cost.seconds_with_store if shards else cost.seconds_without_store]
