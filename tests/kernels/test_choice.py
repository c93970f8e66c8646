"""One thread or all, by figures alone: no call waits, and no clock is read."""

import dataclasses
import json

import numpy as np
import pytest

from kernels import choosing, entry_costs
from kernels.choice import (
    ASLEEP,
    DEBT,
    DRIFT,
    SECONDS_ASK,
    Costs,
    Pace,
    answered,
    asks,
    choose,
    ended,
    expected,
    gain,
    learned,
    pays,
)
from kernels.threads import get_threads, set_threads

COSTS = Costs(seconds_awake=2e-6, seconds_asleep=95e-6, seconds_stay=40e-6, seconds_work=1e-10)
US = 1e-6


def of(seconds: float, costs: Costs = COSTS) -> Pace:
    """What is reckoned of a call that takes so long on one thread."""
    return expected(Pace(seconds), 2, costs)


def calls(seconds: float, pause: float, count: int, costs: Costs = COSTS, slower: float = 1.0) -> list[int]:
    """Threads of so many calls of `seconds` on one thread, with a pause after each; they take `slower` times that."""
    now, state, came = 0.0, ASLEEP, []
    for _ in range(count):
        threads, state = choose(of(seconds, costs), 2, now, state, costs)
        came.append(threads)
        now += slower * (state.ends - now if state.ends > now else seconds)
        state = ended(now, state, threads)
        now += pause
    return came


def spent(seconds: float, pause: float, count: int, costs: Costs = COSTS) -> float:
    """What such calls take where threads sleep as the costs say."""
    total, awake = 0.0, False
    for threads in calls(seconds, pause, count, costs):
        entry = costs.seconds_awake if awake and pause < costs.seconds_stay else costs.seconds_asleep
        total += seconds if threads == 1 else seconds * 0.6 + entry
        awake = threads > 1
    return total


def test_little_work_never_gets_a_second_thread():
    assert calls(4 * US, pause=0.0, count=1000) == [1] * 1000


def test_calls_with_pauses_between_them_never_wake_a_thread_that_they_do_not_pay_for():
    assert calls(200 * US, pause=50 * US, count=1000) == [1] * 1000


def test_a_call_that_gains_more_than_waking_costs_pays_at_once():
    assert calls(300 * US, pause=5e-3, count=3) == [2, 2, 2]


def test_calls_that_follow_closely_wake_the_threads_once_and_keep_them():
    came = calls(30 * US, pause=5 * US, count=100)
    assert came == [1] * 9 + [2] * 91  # each gains 10 us, and waking costs 95


def test_calls_that_take_longer_than_reckoned_are_no_pauses():
    assert calls(30 * US, pause=5 * US, count=100, slower=4.0) == [1] * 9 + [2] * 91


def test_pauses_after_calls_that_take_longer_than_reckoned_are_seen():
    assert calls(200 * US, pause=50 * US, count=1000, slower=4.0) == [1] * 1000


def test_threads_that_went_to_sleep_are_not_taken_for_awake():
    costs = COSTS
    threads, state = choose(of(300 * US), 2, 0.0, ASLEEP, costs)
    assert threads == 2
    assert choose(of(30 * US), 2, state.ends + 39 * US, state, costs)[0] == 2
    assert choose(of(30 * US), 2, state.ends + 41 * US, state, costs)[0] == 1


def test_a_pause_forgets_what_was_saved():
    now, state = 0.0, ASLEEP
    for _ in range(9):
        _, state = choose(of(30 * US), 2, now, state, COSTS)
        now = state.ends
    assert state.saved == pytest.approx(90 * US)
    assert choose(of(30 * US), 2, now, state, COSTS)[1].saved == 0.0  # spent
    assert choose(of(30 * US), 2, now + 50 * US, state, COSTS)[1].saved == pytest.approx(10 * US)


def test_after_a_slow_region_calls_save_up_many_prices_whatever_the_pauses():
    state = answered(False, 0.0, ASLEEP, COSTS)
    assert state.saved == -DEBT * COSTS.seconds_asleep
    now, came = 0.0, []
    for pause in [1.0] * 10 + [0.0] * 5:
        threads, state = choose(of(200 * US), 2, now, state, COSTS)
        came.append(threads)
        now += 200 * US + pause
    assert came == [1] * 13 + [2, 2]  # each gains 78 us; 10 prices of 95 and one more are saved by 14


def test_threads_are_asked_for_once_in_a_while_and_not_for_long_calls():
    assert asks(of(300 * US), 0.0, ASLEEP, COSTS)
    state = answered(True, 1.0, ASLEEP, COSTS)
    assert not asks(of(300 * US), 1.0 + 0.9 * SECONDS_ASK, state, COSTS)
    assert asks(of(300 * US), 1.0 + 1.1 * SECONDS_ASK, state, COSTS)
    assert not asks(of(10e-3), 0.0, ASLEEP, COSTS)


@pytest.mark.parametrize("seconds", [3 * US, 10 * US, 30 * US, 100 * US, 240 * US, 260 * US, 1e-3])
@pytest.mark.parametrize("pause", [0.0, 30 * US, 50 * US, 5e-3])
def test_no_run_of_calls_takes_much_longer_than_on_one_thread(seconds, pause):
    """Less than twice as long for any number of calls, and no longer where there are many."""
    for count in (1, 5, 20):
        assert spent(seconds, pause, count) < 1.5 * seconds * count
    assert spent(seconds, pause, 1000) <= 1.001 * seconds * 1000


def test_calls_that_take_longer_shared_than_alone_are_soon_made_alone():
    pace, came = of(20 * US), []
    for _ in range(100):
        came.append(2 if pays(pace) else 1)
        pace = learned(pace, 20 * US if came[-1] == 1 else 40 * US, came[-1])
    assert came == [2] * 2 + [1] * 98
    assert pace.shared > pace.alone == pytest.approx(20 * US, rel=0.01)


def test_what_was_measured_long_ago_is_measured_again():
    pace, alone = Pace(20 * US, 10 * US), 0
    for _ in range(10_000):
        if pays(pace):
            pace = learned(pace, 10 * US, 2)
        else:
            alone, pace = alone + 1, learned(pace, 20 * US, 1)
    assert 5 < alone < 100


def test_one_call_that_another_program_held_up_changes_little():
    held_up = learned(of(20 * US), 8e-3, 1)
    assert held_up.alone == pytest.approx(25 * US)
    assert held_up.shared < held_up.alone
    assert 0 < DRIFT < 0.01


class Clock:
    """A clock that stands still but for what calls are said to take; threads that sleep take `wakes` to be woken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.woken = 0.0, 0
        monkeypatch.setattr(choosing, "perf_counter", lambda: self.now)
        monkeypatch.setattr(choosing.entry_costs, "wake", lambda count: self.wake() and None)
        monkeypatch.setattr(choosing.entry_costs, "seconds_awake", lambda count: self.wake())

    def wake(self) -> float:
        self.now += COSTS.seconds_asleep
        self.woken += 1
        return COSTS.seconds_awake

    def calls(self, choices: choosing.Choices, alone: float, shared: float, count: int) -> list[int]:
        """Threads of so many calls, all of the work that is reckoned to take 3 us."""
        came = []
        for _ in range(count):
            came.append(choices.threads(30_000, 2, COSTS, timed=True))
            self.now += alone if came[-1] == 1 else shared
            choices.ended()
        return came


def test_calls_that_take_longer_than_reckoned_get_their_threads(monkeypatch):
    """Rows of a table of many pages: 28 us where 3 are reckoned, which no second thread would be worth."""
    clock, choices = Clock(monkeypatch), choosing.Choices()
    came = clock.calls(choices, 28 * US, 16 * US, 200)
    assert came[:10] == [1] * 10
    assert came[-100:] == [2] * 100
    assert clock.woken < 5


def test_calls_for_which_threads_do_nothing_go_back_to_one(monkeypatch):
    clock, choices = Clock(monkeypatch), choosing.Choices()
    came = clock.calls(choices, 28 * US, 40 * US, 400)
    assert 0 < came.count(2) < 20


def test_calls_that_gain_nothing_are_timed_once_in_a_while_only(monkeypatch):
    clock, choices = Clock(monkeypatch), choosing.Choices()
    clock.calls(choices, 3 * US, 3 * US, 1)
    assert [choices.stays(30_000) for _ in range(17)] == [True] * 15 + [False] * 2
    assert not choices.stays(30_001)


def test_calls_of_other_work_know_nothing_of_it(monkeypatch):
    clock, choices = Clock(monkeypatch), choosing.Choices()
    clock.calls(choices, 28 * US, 16 * US, 50)
    assert [key[0] for key in choices.paces] == [2]
    clock.now += 1.0
    assert choices.threads(60_000, 2, COSTS, timed=True) == 1
    clock.calls(choices, 28 * US, 16 * US, 50)
    clock.now += 1.0
    before = dict(choices.paces)
    assert [choices.threads(30_000, 2, COSTS, timed=False) for _ in range(20)] == [1] * 20, "nobody tells what it takes"
    assert choices.paces == before


def test_more_threads_gain_more_and_cost_what_they_cost():
    assert gain(100 * US, 2, COSTS) == pytest.approx(38 * US)
    assert gain(100 * US, 8, COSTS) == pytest.approx(75.5 * US)


@pytest.mark.parametrize(
    "kept", [{}, {"seconds_awake": 1e-6}, [1, 2], dict.fromkeys(vars(COSTS), 0.0), dict.fromkeys(vars(COSTS), "1")]
)
def test_a_file_of_costs_that_is_none_is_refused(kept):
    with pytest.raises((ValueError, TypeError)):
        entry_costs.checked(kept)


def test_costs_are_measured_once_and_found_again(tmp_path, monkeypatch):
    measured = []
    monkeypatch.setattr(entry_costs, "folder_of", lambda function: tmp_path)
    monkeypatch.setattr(entry_costs, "measure", lambda threads: measured.append(threads) or COSTS)
    for _ in range(2):
        assert entry_costs.costs.__wrapped__(2) == COSTS
    assert measured == [2]
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps({"seconds_awake": -1.0}))
    assert entry_costs.costs.__wrapped__(2) == COSTS
    assert measured == [2, 2]


@pytest.mark.parametrize(("awake", "stay"), [(50e-6, 40e-6), (2e-6, 5e-6)])
def test_costs_that_others_disturbed_are_used_and_not_kept(awake, stay, tmp_path, monkeypatch):
    disturbed = Costs(seconds_awake=awake, seconds_asleep=130e-6, seconds_stay=stay, seconds_work=1e-10)
    monkeypatch.setattr(entry_costs, "folder_of", lambda function: tmp_path)
    monkeypatch.setattr(entry_costs, "measure", lambda threads: disturbed)
    assert entry_costs.costs.__wrapped__(2) == disturbed
    assert not [*tmp_path.iterdir()]


def test_costs_of_this_machine_are_in_order():
    """Entering a region of sleeping threads is never cheaper than one of threads that are awake."""
    costs = entry_costs.measure(1)
    assert 0 < costs.seconds_awake <= costs.seconds_asleep
    assert entry_costs.checked(dataclasses.asdict(costs)) == costs


def test_waiting_for_a_thread_that_has_no_core_ends():
    before = get_threads()
    begun = np.zeros(2 * entry_costs.SPACE, np.int64)
    set_threads(1)
    try:
        entry_costs._region(begun, 100)
    finally:
        set_threads(before)
    assert begun[0] == 100, "it has waited for the other part, which comes after it"
    assert begun[entry_costs.SPACE] == 1, "which found that all had begun"
