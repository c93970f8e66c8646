"""Preparing ahead on another thread: order, overlap, errors with their traceback, and no thread left behind."""

import threading
import time
import traceback
import weakref

import numpy as np
import pytest

from kernels import plan, threads
from tests.support.clocks import SECONDS, Clock, until
from workbench.data.batches import feed
from workbench.data.batches.feed import prefetch

every_depth = pytest.mark.parametrize("depth", [0, 1, 3])


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert not set(threading.enumerate()) - before, "one of a test before may end meanwhile"


def values(iterator) -> list:
    return [ready.value for ready in iterator]


@every_depth
@pytest.mark.parametrize("count", [0, 1, 50])
def test_results_come_in_the_order_of_the_items(depth: int, count: int) -> None:
    assert values(prefetch(range(count), str, depth)) == [str(item) for item in range(count)]


def test_one_item_ahead_and_no_more() -> None:
    asked, made = [], []
    for ready in prefetch(range(6), made.append, depth=1):
        asked.append(ready)
        expected = min(len(asked) + 1, 6)
        until(lambda least=expected: len(made) >= least)
        time.sleep(0.005)  # in which one more would be made
        assert len(made) == expected


def test_a_result_that_the_caller_let_go_of_is_gone_before_the_next_is_made() -> None:
    made, lived = [], []

    def prepare(item: int) -> np.ndarray:
        lived.append(bool(made) and made[-1]() is not None)
        array = np.full(3, item)
        made.append(weakref.ref(array))
        return array

    for ready in prefetch(iter([1, 2, 3]), prepare, depth=0):
        assert ready.value is made[-1]()
        del ready
    assert lived == [False, False, False]


def test_small_items_are_prepared_one_right_after_the_other_and_come_in_their_order() -> None:
    made: list[int] = []

    def prepare(item: int) -> int:
        if item == 5:
            raise ValueError("item 5")
        made.append(item)
        return item

    prepared = prefetch(range(9), prepare, depth=0, at_once=3)
    taken = [(next(prepared).value, len(made)) for _ in range(5)]
    with pytest.raises(ValueError, match="item 5"):
        next(prepared)
    assert taken == [(0, 3), (1, 3), (2, 3), (3, 5), (4, 5)]
    assert values(prefetch(range(7), str, depth=0, at_once=3)) == list("0123456")


def test_preparation_runs_beside_the_caller_on_one_other_thread() -> None:
    seen = set(values(prefetch(range(5), lambda _: threading.current_thread())))
    assert len(seen) == 1
    assert threading.current_thread() not in seen
    assert set(values(prefetch(range(5), lambda _: threading.current_thread(), depth=0))) == {
        threading.current_thread()
    }


class WatchedClock(Clock):
    """Notes in `asked` that the caller's thread has read it, which it does before and after it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def __call__(self) -> float:
        if threading.current_thread() is threading.main_thread():
            self.asked.set()
        return self.now


@pytest.fixture
def clock(monkeypatch) -> WatchedClock:
    made = WatchedClock()
    monkeypatch.setattr(feed, "perf_counter", made)
    return made


def test_the_first_is_waited_for_and_work_of_both_sides_overlaps_then(clock) -> None:
    made = [threading.Event() for _ in range(8)]

    def prepare(item: int) -> int:
        assert clock.asked.wait(SECONDS)
        clock.now += 1
        made[item].set()
        return item

    times = []
    for ready in prefetch(range(8), prepare):
        times.append((ready.seconds_prepare, ready.seconds_wait))
        assert all(each.wait(SECONDS) for each in made[ready.value + 1 : ready.value + 2])  # while this one is in hand
    assert times == [(1, 1)] + [(1, 0)] * 7


@pytest.mark.parametrize("depth", [0, 1])
def test_taking_an_item_is_part_of_its_preparation_all_of_which_is_waited_for_without_overlap(depth, clock) -> None:
    def items():
        for item in range(2):
            clock.now += 1
            yield item

    def prepare(item: int) -> None:
        clock.now += 2

    ready = list(prefetch(items(), prepare, depth))
    assert [one.seconds_prepare for one in ready] == [3, 3]
    assert depth or [one.seconds_wait for one in ready] == [3, 3]


def fails_at_two(item: int) -> int:
    if item == 2:
        raise ZeroDivisionError("two")
    return item


@every_depth
def test_error_comes_where_its_item_would_with_its_traceback(depth: int) -> None:
    seen = []
    with pytest.raises(ZeroDivisionError, match="two") as caught:
        seen += [seen.append(ready.value) for ready in prefetch(range(9), fails_at_two, depth)]
    assert seen == [0, 1]
    assert "fails_at_two" in "".join(traceback.format_tb(caught.value.__traceback__))


@every_depth
def test_error_of_the_items_themselves(depth: int) -> None:
    def items():
        yield 1
        raise LookupError("no more to read")

    seen = prefetch(items(), str, depth)
    assert next(seen).value == "1"
    with pytest.raises(LookupError, match="no more to read"):
        next(seen)


@every_depth
def test_caller_that_stops_early_leaves_no_thread(depth: int) -> None:
    made = []
    for ready in prefetch(range(1000), lambda item: made.append(item) or item, depth):
        if ready.value == 3:
            break
    del ready
    assert len(made) <= 4 + depth


def train_on(batches) -> None:
    for _ in batches:
        raise ValueError("the step failed")


def test_caller_that_fails_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="the step failed"):
        train_on(prefetch(range(1000), str))


def test_iterator_that_is_never_started_has_no_thread() -> None:
    before = set(threading.enumerate())
    unused = prefetch(range(3), str)
    assert not set(threading.enumerate()) - before
    unused.close()


def test_iterator_that_is_dropped_leaves_no_thread() -> None:
    unfinished = prefetch(range(1000), str)
    next(unfinished)
    assert any(thread.name == "loader" for thread in threading.enumerate())
    del unfinished


def test_results_are_let_go() -> None:
    kept = []
    for ready in prefetch(range(6), lambda _: np.zeros(3)):
        kept.append(weakref.ref(ready.value))
        del ready
        assert sum(reference() is not None for reference in kept) == 0


def test_kernels_called_there_stay_on_that_thread() -> None:
    assert set(values(prefetch(range(3), lambda _: threads.get_threads()))) == {1}
    before = threads.get_threads()
    with threads.serial():
        with threads.serial():
            assert threads.get_threads() == 1
        assert threads.get_threads() == 1
        assert threads.is_serial(10**12)
    assert threads.get_threads() == before


def test_plans_made_ahead_are_those_made_in_place() -> None:
    random = np.random.default_rng(0)
    batches = [random.integers(0, 10**6, 20_000) for _ in range(6)]
    starts = np.array([0, 20_000])
    for indices, ready in zip(
        batches, prefetch(batches, lambda indices: plan.build(starts, indices, 10**6)), strict=True
    ):
        in_place = plan.build(starts, indices, 10**6)
        np.testing.assert_array_equal(ready.value.permutation, in_place.permutation)


def test_negative_depth_is_refused() -> None:
    with pytest.raises(ValueError, match=r"depth is -1; .* 0 for none, or more"):
        prefetch([], str, -1)
