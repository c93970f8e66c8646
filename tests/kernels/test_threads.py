"""Partitions, how many threads a call gets, the thread count and the choice of the threading layer."""

import os
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import kernels
from kernels import choosing, short_columns, threads
from kernels.choice import Costs
from kernels.choosing import Choices
from kernels.vector import gather
from tests.support.cases import random_case
from tests.support.clocks import Clock
from tests.support.processes import printed
from tests.support.thread_counts import needs_two, share_out

pytestmark = pytest.mark.usefixtures("kept_threads")


def assert_partition(bounds: np.ndarray, size: int, count: int) -> None:
    assert bounds.dtype == np.int64
    assert len(bounds) == count + 1
    assert (bounds[0], bounds[-1]) == (0, size)
    assert (np.diff(bounds) >= 0).all()


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("lengths", [[], [0], [5, 0, 0, 7], [1000, 1, 1, 1, 1, 1], list(range(50))])
def test_equal_cost_parts_are_at_most_a_row_too_dear(lengths: list[int], count: int) -> None:
    starts = np.concatenate(([7], 7 + np.cumsum(lengths))).astype(np.int32)  # as a slice of rows has them
    bounds = threads.equal_cost(starts, count, per_row=2)
    assert_partition(bounds, len(lengths), count)
    costs = [sum(lengths[a:b]) + 2 * (b - a) for a, b in pairwise(bounds)]
    dearest_row = max(lengths, default=0) + 2
    assert max(costs) <= sum(costs) / count + dearest_row


@pytest.mark.parametrize("size", [0, 1, 7, 100])
def test_equal_count_parts_differ_by_one(size: int) -> None:
    bounds = threads.equal_count(size, 4)
    assert_partition(bounds, size, 4)
    assert np.ptp(np.diff(bounds)) <= 1


COSTS = Costs(seconds_awake=2e-6, seconds_asleep=100e-6, seconds_stay=40e-6, seconds_work=1e-10)


@pytest.fixture
def known_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs that no machine measured, and threads that sleep."""
    monkeypatch.setattr(threads.choice, "costs", lambda count: COSTS)
    monkeypatch.setattr(choosing, "load", SimpleNamespace(leaves=lambda count, now: True))
    monkeypatch.setattr(threads.choice, "wake", lambda count: None)
    monkeypatch.setattr(threads.this_thread, "choices", Choices())
    share_out(monkeypatch, None)
    threads.set_threads(2)


@needs_two
@pytest.mark.usefixtures("known_costs")
def test_a_call_that_gains_less_than_waking_costs_is_serial() -> None:
    assert threads.is_serial(200_000)  # 20 us, of which a second thread would take 8
    assert threads.is_serial(threads.LEAST_WORK - 1)
    assert not threads.is_serial(10_000_000)
    threads.set_threads(1)
    assert threads.is_serial(10**9)


@needs_two
@pytest.mark.usefixtures("known_costs")
def test_within_compiled_code_the_work_alone_decides() -> None:
    for _ in range(50):
        assert threads.is_serial(40_000, within=True)
        assert not threads.is_serial(60_000, within=True)
    assert threads.this_thread.choices.ends < 0


@needs_two
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores of a thread are set on Linux")
def test_a_thread_on_one_core_prepares_on_one_thread() -> None:
    cores = os.sched_getaffinity(0)
    threads.set_threads(2)
    if len(cores) > 1:
        assert threads.available_threads() == 2
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert threads.available_threads() == 1
    finally:
        os.sched_setaffinity(0, cores)


@needs_two
@pytest.mark.usefixtures("known_costs")
def test_what_is_asked_for_beats_what_pays() -> None:
    with threads.parallel():
        assert not threads.is_serial(0)
        with threads.serial():
            assert threads.is_serial(10**9)
        assert not threads.is_serial(0, within=True)
    assert threads.is_serial(0)


@needs_two
@pytest.mark.usefixtures("known_costs")
def test_calls_that_were_given_all_threads_are_counted() -> None:
    before = threads.this_thread.calls_parallel
    assert [threads.is_serial(work) for work in (0, 10**9, 200_000)] == [True, False, False]
    assert threads.this_thread.calls_parallel - before == 2


@needs_two
def test_tests_can_give_little_work_all_threads(monkeypatch: pytest.MonkeyPatch, kept_threads) -> None:
    threads.set_threads(2)
    share_out(monkeypatch)
    assert not threads.is_serial(0)
    assert threads.share(0)[0] > 1
    share_out(monkeypatch, None)
    assert threads.is_serial(0)


@pytest.mark.parametrize("serial", [False, True])
def test_clear_leaves_nothing(serial: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, serial)
    out = np.full((3, 7), np.nan, np.float32)
    threads.clear(out)
    assert not out.any()


def test_clear_takes_the_parts_that_are_given() -> None:
    out = np.full((4, 5), np.nan, np.float32)
    threads.clear(out, np.array([0, 5, 15]))
    assert not out[:3].any()
    assert np.isnan(out[3]).all()


@pytest.mark.parametrize("values", [[], [-0.0], [0.1], [0.1, 0.2, 0.3]])
def test_sum_of_blocks_is_that_of_numpy(values: list[float]) -> None:
    came = threads.sum_of(np.array(values))
    assert type(came) is float
    assert came == np.sum(values)


@needs_two
@pytest.mark.parametrize("layer", threads.available_layers())
def test_thread_count_is_numbas_own(layer: str) -> None:
    code = """
import threading, numba
import kernels
from kernels import choice, threads
from kernels.choice import Costs
seen = [threads.get_threads()]
numba.set_num_threads(1)
seen.append(threads.get_threads())
threads.set_threads(2)
seen.append(numba.get_num_threads())
threads.call_parallel(lambda: seen.append(numba.get_num_threads()), 0)
other = threading.Thread(target=lambda: seen.append(threads.get_threads()))
other.start(), other.join()
print(numba.threading_layer(), seen)
"""
    path = ":".join(filter(None, sys.path))
    environment = {"PYTHONPATH": path, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    assert printed(code, env=environment).strip() == f"{layer} [2, 1, 2, 1, 2]"


@needs_two
@pytest.mark.usefixtures("known_costs")
@pytest.mark.parametrize("work", [0, 10**9])
def test_call_parallel_gives_the_thread_count_back(work: int) -> None:
    seen = []
    threads.call_parallel(lambda: seen.append(threads.get_threads()), work)
    assert seen == [1 if work == 0 else 2]
    with pytest.raises(ZeroDivisionError):
        threads.call_parallel(lambda: 1 / 0, work)
    assert threads.get_threads() == 2


@pytest.mark.parametrize("count", [0, 10_000])
def test_thread_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=rf"threads is {count}; this process can use 1 to \d+"):
        threads.set_threads(count)


def test_best_layer_that_loads_is_chosen() -> None:
    layers = threads.available_layers()
    assert layers[-1] == "workqueue"
    assert layers == [layer for layer in threads.LAYERS if layer in layers]
    assert _chosen({}) == layers[0]


def test_layer_the_user_chose_is_kept() -> None:
    assert _chosen({"NUMBA_THREADING_LAYER": "workqueue"}) == "workqueue"


def _chosen(environment: dict[str, str]) -> str:
    code = "from kernels import threads; import numba; print(numba.config.THREADING_LAYER)"
    return printed(code, env={"PYTHONPATH": ":".join(filter(None, sys.path)), **environment}).strip()


@needs_two
@pytest.mark.usefixtures("known_costs")
def test_a_call_ends_when_its_caller_says_so(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(choosing, "perf_counter", clock)
    parts, choices = threads.share(10 * threads.LEAST_WORK)
    assert parts == 1
    clock.now = 0.5
    choices.ended()
    assert threads.this_thread.choices.ends == 0.5
    assert threads.share(threads.LEAST_WORK - 1) == threads.ALONE, "little work makes no choice"


@needs_two
@pytest.mark.usefixtures("known_costs")
def test_little_work_gets_all_threads_inside_of_parallel_alone() -> None:
    with threads.parallel():
        assert threads.share(0) == (2 * threads.PARTS, None)
        with threads.serial():
            assert threads.share(10**9) == threads.ALONE
    assert threads.share(0) == threads.ALONE


@pytest.mark.parametrize(
    ("name", "entries", "asks"),
    [
        ("csr_t_dense", 1920, False),
        ("csr_t_dense", 8000, False),  # by the sums of short columns
        ("csr_t_dense_ones", 1920, False),
        ("adagrad_lazy", 1920, False),
        ("adagrad_fused", 1920, False),
        ("csr_t_dense", 40_000, True),
        ("adagrad_fused", 40_000, True),
    ],
)
def test_gradients_and_steps_of_few_rows_stay_on_one_thread_without_a_choice(name, entries, asks, monkeypatch):
    asked = []
    for module in (gather, short_columns):
        monkeypatch.setattr(module, "share", lambda work: asked.append(work) or threads.ALONE)
    kernel = kernels.get(name)
    kernel.cpu(*kernel.arguments(random_case(64, 16 * entries, entries, 1)))
    assert [work > threads.LEAST_WORK for work in asked] == [True] * asks
