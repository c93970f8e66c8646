"""The cost model counts the bytes that trainers really move, and says when a second machine pays."""

import numpy as np
import pytest

from tests.support import shared_training as of_training
from tests.support.ranks import on_ranks
from workbench.cluster import MpiStore, cost
from workbench.cluster.cost import Cores, Line, Network, Speeds, Work, active_rows, pays_from, predict
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
    """All of a trainer's but those of the rows that it owns itself."""
    height = ROWS // machines

    def moved(rank):
        store = MpiStore(rank, spread="hashed")
        store.init("w", RowSparse(np.zeros((0, WIDTH), np.float32), [], (FEATURES, WIDTH)))
        store.set_optimizer(Updater("sgd"))
        rows = np.unique(np.concatenate(batch(0)[rank.rank * height : (rank.rank + 1) * height]))
        store.pull_into({"w": RowSparse(np.zeros((0, WIDTH), np.float32), [], (FEATURES, WIDTH))}, {"w": rows})
        store.push("w", RowSparse(np.ones((rows.size, WIDTH), np.float32), rows, (FEATURES, WIDTH)))
        return store.exchange.bytes_moved

    found = np.mean(on_ranks(machines, moved))
    predicted = Work(ROWS, active_rows([batch(0)], ROWS), 4 * WIDTH).bytes_moved(machines)
    away = 2 * predicted * (machines - 1) / machines  # sent and received, as a trainer and as an owner
    assert found == pytest.approx(away, rel=0.15)


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


def test_what_is_done_for_messages_and_the_wait_for_the_slowest_are_in_the_time_of_several():
    """They were left out, and what was measured took twice what was predicted."""
    packs = Line(row=1e-4, active=1e-5, fixed=1e-3)
    alone, two, four = predict(work(), Speeds(ROWWISE, packs, spread=0.1), Network(), (1, 2, 4))
    active = work().active
    assert alone.seconds == pytest.approx(ROWS * 1e-4)
    wholes = 1e-3 + 32e-4 + 1e-5 * active[32], 1e-3 + 16e-4 + 1e-5 * active[16]
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

    def steps(configuration, has_store):
        asked.append(configuration.batch_rows)
        seconds = 1e-3 + 1e-5 * configuration.batch_rows + 1e-6 * active[configuration.batch_rows] * has_store
        return np.array([0.9, 1.0, 1.0, 1.0, 1.1]) * seconds

    monkeypatch.setattr(cost, "time_steps", steps)
    found = cost.fit_step_times(of_training.configuration(batch_rows=64, threads=2), active)
    assert [found.alone.fixed, found.alone.row, found.alone.active] == pytest.approx([1e-3, 1e-5, 0.0], abs=1e-9)
    assert [found.shared.fixed, found.shared.row, found.shared.active] == pytest.approx([1e-3, 1e-5, 1e-6], abs=1e-9)
    assert 0 < found.spread < 0.1
    assert set(asked) == {64, 32, 16, 8}


def test_epochs_by_local_steps_pay_from_a_bandwidth_on():
    epoch = cost.LocalEpoch(seconds=0.4, bytes_tables=8e6, synchronisations=4, seconds_addition=5e-3)
    least = cost.bandwidth_that_pays(epoch, 1e-4)
    assert cost.predict_epoch(epoch, Network(1e-4, least), 2) == pytest.approx(epoch.seconds)
    assert cost.predict_epoch(epoch, Network(1e-4, 2 * least), 2) < epoch.seconds
    assert cost.predict_epoch(epoch, Network(latency=1.0), 1) == epoch.seconds
    assert cost.bandwidth_that_pays(epoch, 1.0) == np.inf
    assert cost.seconds_of_addition(1000, 4) > 0


def test_steps_are_timed_with_and_without_a_store_and_on_all_cores():
    configuration = of_training.configuration(rows=400, epochs=1, threads=2)
    for has_store in (False, True):
        seconds = cost.time_steps(configuration, has_store)
        assert len(seconds) == 18, "27 steps, of which a third is left out"
        assert min(seconds) > 0
    cores = cost.core_slowdown(configuration)
    assert cores.count == 2
    assert cores.slowdown >= 1
