"""One thread or all, by figures alone: no call waits, and no clock is read."""

import dataclasses
import json

import pytest

from kernels import entry_costs
from kernels.choice import ASLEEP, DEBT, SECONDS_ASK, Costs, answered, asks, choose, ended, gain

COSTS = Costs(seconds_awake=2e-6, seconds_asleep=95e-6, seconds_stay=40e-6, seconds_work=1e-10)
US = 1e-6


def calls(seconds: float, pause: float, count: int, costs: Costs = COSTS, slower: float = 1.0) -> list[int]:
    """Threads of so many calls of `seconds` on one thread, with a pause after each; they take `slower` times that."""
    now, state, came = 0.0, ASLEEP, []
    for _ in range(count):
        threads, state = choose(seconds, 2, now, state, costs)
        came.append(threads)
        now += slower * (state.ends - now if state.ends > now else seconds)
        state = ended(now, state)
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
    threads, state = choose(300 * US, 2, 0.0, ASLEEP, costs)
    assert threads == 2
    assert choose(30 * US, 2, state.ends + 39 * US, state, costs)[0] == 2
    assert choose(30 * US, 2, state.ends + 41 * US, state, costs)[0] == 1


def test_a_pause_forgets_what_was_saved():
    now, state = 0.0, ASLEEP
    for _ in range(9):
        _, state = choose(30 * US, 2, now, state, COSTS)
        now = state.ends
    assert state.saved == pytest.approx(90 * US)
    assert choose(30 * US, 2, now, state, COSTS)[1].saved == 0.0  # spent
    assert choose(30 * US, 2, now + 50 * US, state, COSTS)[1].saved == pytest.approx(10 * US)


def test_after_a_slow_region_calls_save_up_many_prices_whatever_the_pauses():
    state = answered(False, 0.0, ASLEEP, COSTS)
    assert state.saved == -DEBT * COSTS.seconds_asleep
    now, came = 0.0, []
    for pause in [1.0] * 10 + [0.0] * 5:
        threads, state = choose(200 * US, 2, now, state, COSTS)
        came.append(threads)
        now += 200 * US + pause
    assert came == [1] * 13 + [2, 2]  # each gains 78 us; 10 prices of 95 and one more are saved by 14


def test_threads_are_asked_for_once_in_a_while_and_not_for_long_calls():
    assert asks(300 * US, 2, 0.0, ASLEEP, COSTS)
    state = answered(True, 1.0, ASLEEP, COSTS)
    assert not asks(300 * US, 2, 1.0 + 0.9 * SECONDS_ASK, state, COSTS)
    assert asks(300 * US, 2, 1.0 + 1.1 * SECONDS_ASK, state, COSTS)
    assert not asks(10e-3, 2, 0.0, ASLEEP, COSTS)


@pytest.mark.parametrize("seconds", [3 * US, 10 * US, 30 * US, 100 * US, 240 * US, 260 * US, 1e-3])
@pytest.mark.parametrize("pause", [0.0, 30 * US, 50 * US, 5e-3])
def test_no_run_of_calls_takes_much_longer_than_on_one_thread(seconds, pause):
    """Less than twice as long for any number of calls, and no longer where there are many."""
    for count in (1, 5, 20):
        assert spent(seconds, pause, count) < 1.5 * seconds * count
    assert spent(seconds, pause, 1000) <= 1.001 * seconds * 1000


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
