"""Calls on one thread or on all, by their estimated time and the load of the machine; no call waits."""

from types import SimpleNamespace

import psutil
import pytest

from kernels import choice, choosing, threads
from kernels.choice import Costs, gain
from kernels.choosing import HELD, SECONDS_FIRST, SECONDS_LOOK, Choices, Load
from tests.support.clocks import Clock
from tests.support.thread_counts import needs_two, share_out

COSTS = Costs(seconds_awake=2e-6, seconds_asleep=95e-6, seconds_stay=40e-6, seconds_work=1e-10)
US = 1e-6


class Cores:
    """Two free cores whose calls take what is estimated, times `slower`, by a clock that stands still but for that."""

    def __init__(self, clock: Clock, slower: float = 1.0) -> None:
        self.clock, self.choices, self.slower = clock, Choices(), slower
        self.awake_until, self.woken = -1.0, 0

    def wake(self, count: int) -> None:
        if self.clock.now > self.awake_until:
            self.clock.now += COSTS.seconds_asleep
            self.woken += 1

    def calls(self, seconds: float, count: int, pause: float = 0.0, are_timed: bool = True) -> str:
        """The sides, 1 or 2, of so many calls of `seconds` on one thread, with a pause after each."""
        sides = ""
        for _ in range(count):
            is_parallel = self.choices.begin(round(seconds / COSTS.seconds_work), 2, COSTS)
            self.clock.now += self.slower * (seconds - (gain(seconds, 2, COSTS) if is_parallel else 0.0))
            if are_timed:
                self.choices.ended()
            if is_parallel:
                self.awake_until = self.clock.now + COSTS.seconds_stay
            sides += "12"[is_parallel]
            self.clock.now += pause
        return sides


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Cores:
    one = Cores(Clock())
    monkeypatch.setattr(choosing, "perf_counter", one.clock)
    monkeypatch.setattr(choice, "wake", one.wake)
    monkeypatch.setattr(choosing, "load", SimpleNamespace(leaves=lambda count, now: True))
    return one


def test_little_work_never_gets_a_second_thread(machine):
    assert machine.calls(4 * US, 1000) == "1" * 1000
    assert machine.woken == 0


def test_calls_with_pauses_between_them_never_wake_a_thread_that_they_do_not_pay_for(machine):
    assert machine.calls(200 * US, 1000, pause=50 * US) == "1" * 1000
    assert machine.woken == 0


def test_a_call_that_gains_more_than_waking_costs_pays_at_once(machine):
    assert machine.calls(300 * US, 3, pause=5e-3) == "222"
    assert machine.woken == 3


@pytest.mark.parametrize("are_timed", [True, False])
def test_calls_that_follow_closely_wake_the_threads_once_and_keep_them(machine, are_timed):
    sides = machine.calls(30 * US, 80, pause=5 * US, are_timed=are_timed)
    assert sides == "1" * 9 + "2" * 71  # each gains 10 us, and waking costs 95
    assert machine.woken == 1


def test_calls_that_take_longer_than_estimated_are_no_pauses(machine):
    machine.slower = 4.0
    assert machine.calls(30 * US, 50)[9:] == "2" * 41


def test_short_calls_between_others_are_no_pauses_and_threads_go_to_sleep_in_a_long_one(machine):
    assert machine.calls(300 * US, 1) == "2"
    assert machine.calls(4 * US, 3) == "111"
    assert machine.calls(30 * US, 1) == "2"
    machine.clock.now += 41 * US
    assert machine.calls(30 * US, 1) == "1"


@pytest.mark.parametrize("pause", [0.0, 30 * US, 50 * US, 5e-3])
@pytest.mark.parametrize("seconds", [3 * US, 10 * US, 30 * US, 100 * US, 240 * US, 260 * US, 1e-3])
def test_no_run_of_calls_takes_much_longer_than_on_one_thread(machine, seconds, pause):
    """Less than twice as long for any number of calls, and no longer where there are many."""
    done, start = 0, machine.clock.now
    for count in (1, 5, 20, 1000):
        machine.calls(seconds, count - done, pause)
        done = count
        spent = machine.clock.now - start - pause * count
        assert spent < (1.5 if count < 1000 else 1.06) * seconds * count


def test_more_threads_gain_more_and_cost_what_they_cost():
    assert gain(100 * US, 2, COSTS) == pytest.approx(38 * US)
    assert gain(100 * US, 8, COSTS) == pytest.approx(75.5 * US)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """CPU seconds of other programs and of this process on two cores; how often they were read."""
    held = SimpleNamespace(others=1000.0, own=5.0, reads=0)

    def times(percpu: bool) -> list:
        held.reads += 1
        core = SimpleNamespace(user=(held.others + held.own) / 2 - 1, system=0.5, nice=0.25, steal=0.25, idle=9.0)
        return [core, core]

    monkeypatch.setattr(psutil, "cpu_times", times)
    monkeypatch.setattr(choosing, "process_time", lambda: held.own)
    monkeypatch.setattr(choosing.os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    return held


def test_threads_are_left_to_other_programs_while_these_hold_their_cores(others):
    load = Load()
    assert load.leaves(2, 10.0), "one look tells nothing"
    others.own += 1.9
    assert load.leaves(2, 11.0), "this process held both"
    others.others += 0.9 * HELD
    assert load.leaves(2, 12.0)
    others.others += 1.0
    assert not load.leaves(2, 13.0)
    assert load.leaves(1, 13.0)
    assert load.leaves(2, 15.0), "they have ended"


def test_the_load_is_looked_at_soon_after_the_first_time_and_then_once_a_second(others):
    load = Load()
    load.leaves(2, -1.0)
    assert load.leaves(2, -1.0 + SECONDS_FIRST / 2)
    assert load.leaves(2, 0.0)
    assert others.reads == 2
    others.others += 2.0
    assert all(load.leaves(2, number * SECONDS_LOOK / 10) for number in range(10))
    assert others.reads == 2
    assert not load.leaves(2, SECONDS_LOOK)


def test_the_load_of_this_machine_can_be_read():
    seconds, count = Load._seconds_of_others()
    assert seconds > 0
    assert count >= 1


def test_calls_yield_to_other_programs(machine, monkeypatch):
    monkeypatch.setattr(choosing, "load", SimpleNamespace(leaves=lambda count, now: False))
    assert machine.calls(1e-3, 3) == "111"
    assert machine.woken == 0


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, kept_threads) -> None:
    share_out(monkeypatch, None)
    threads.set_threads(2)
    monkeypatch.setattr(choice, "costs", lambda count: COSTS)


@needs_two
def test_a_call_in_pieces_does_each_step_once_whatever_the_threads(monkeypatch, two) -> None:
    answers = iter([True, False] * 100)
    monkeypatch.setattr(choosing, "load", SimpleNamespace(leaves=lambda count, now: next(answers)))
    done, counts = [], []

    def run(first: int, last: int) -> int:
        counts.append(threads.get_threads())
        done.extend(range(first, last))
        return -1

    assert threads.call_in_pieces(run, 1000, 10**7) == -1
    assert done == list(range(1000))
    assert counts == [2, 1] * 10, "of 50 ms each"
    assert threads.get_threads() == 2
    assert threads.call_in_pieces(lambda first, last: 7, 1000, 10**7) == 7, "the first result ends it"
    with pytest.raises(ZeroDivisionError):
        threads.call_in_pieces(lambda first, last: 1 // 0, 500, 10**6)
    assert threads.get_threads() == 2


@needs_two
def test_a_call_in_pieces_is_one_piece_for_who_asks_for_all_threads_or_one(two) -> None:
    pieces = []
    for asked in (threads.parallel, threads.serial):
        with asked():
            threads.call_in_pieces(lambda first, last: pieces.append((first, last)) or -1, 9, 10**9)
    assert pieces == [(0, 9), (0, 9)]
