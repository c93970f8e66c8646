"""The cost model counts the bytes that trainers really move, and says when a second machine pays."""

import numpy as np
import pytest

from tests.support import shards as support
from workbench.cluster import ShardedStore
from workbench.cluster.cost import Network, Speeds, Work, measured, pays_from, predict, touched_rows
from workbench.formats import RowSparse
from workbench.optimizers import Updater

ROWS, FEATURES, WIDTH = 64, 5000, 32
FAST = Network(latency=0.0, call=0.0, bytes_second=1e12)


def batch(seed: int) -> list[np.ndarray]:
    made = np.random.default_rng(seed)
    return [np.unique(made.zipf(1.3, 60) % FEATURES) for _ in range(ROWS)]


def work() -> Work:
    return Work(ROWS, touched_rows([batch(0), batch(1)], ROWS), bytes_row=4 * WIDTH)


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
    predicted = Work(ROWS, touched_rows([batch(0)], ROWS), 4 * WIDTH).bytes_moved(machines)
    headers = 4 * machines * 200
    assert predicted <= np.mean(moved) <= predicted + headers


def test_slices_touch_fewer_rows_but_more_than_their_share():
    touched = work().touched
    assert sorted(touched, reverse=True) == [64, 32, 16, 8, 4, 2, 1]
    for r in (32, 16, 8):
        assert touched[2 * r] / 2 < touched[r] < touched[2 * r]


def test_a_network_without_cost_pays_at_once_and_a_slow_one_never():
    speeds = Speeds(row=1e-4, update=1e-8)
    free = predict(work(), speeds, FAST)
    assert [step.machines for step in free] == [1, 2, 4, 8, 16, 32, 64]
    assert free[0].network == free[0].bytes_moved == 0
    assert pays_from(free) == 2
    assert pays_from(predict(work(), speeds, Network(latency=1.0, call=0.0, bytes_second=1e12))) is None


def test_what_each_call_adds_makes_many_machines_slower_again():
    steps = predict(work(), Speeds(row=1e-4, update=0.0), Network(latency=1e-4, call=1e-4, bytes_second=1e12))
    seconds = [step.seconds for step in steps]
    best = seconds.index(min(seconds))
    assert 0 < best < len(seconds) - 1
    assert seconds[best:] == sorted(seconds[best:])


def test_a_network_is_measured_by_messages():
    network = measured(support.network(3, 1))
    assert network.latency > 0
    assert network.call >= 0
    assert 0 < network.bytes_second < float("inf")


def test_processes_of_one_machine_take_turns_on_its_cores_and_send_messages_alone_too():
    speeds, network = Speeds(row=1e-4, update=1e-7), Network(latency=1e-4, call=0.0, bytes_second=1e9)
    apart, here = (predict(work(), speeds, network, (1, 2, 4), cores) for cores in (None, 2))
    assert (apart[0].network, here[0].computing) == (0.0, apart[0].computing)
    assert here[0].network > 0
    assert here[1] == apart[1]
    assert here[2].seconds == pytest.approx(2 * apart[2].seconds)
