"""One thread or all, by figures alone: no call waits, and no clock is read."""

import pytest

from kernels.choice import ALONE, MOST_DEBT, SECONDS_ASK, SHARED, TRIAL, UNTIMED, Pace, Team, gain
from tests.support import cores
from tests.support.cores import COSTS, US, Times

machine = cores.machine


def always(alone: float, shared: float) -> Times:
    return lambda number: (alone, shared)


def reckoned(seconds: float) -> tuple[Times, int]:
    """Times as they are reckoned, and the work by which they are."""
    return always(seconds, seconds - gain(seconds, 2, COSTS)), round(seconds / COSTS.seconds_work)


def alone(sides: str) -> int:
    return len(sides) - sides.count("2")


def test_little_work_never_gets_a_second_thread(machine):
    times, work = reckoned(4 * US)
    assert alone(machine.calls(times, 1000, work=work)) == 1000
    assert machine.woken == 0


def test_calls_with_pauses_between_them_never_wake_a_thread_that_they_do_not_pay_for(machine):
    times, work = reckoned(200 * US)
    assert machine.calls(times, 1000, pause=50 * US, work=work) == "1" * 1000
    assert machine.woken == 0


def test_a_call_that_gains_more_than_waking_costs_pays_at_once(machine):
    times, work = reckoned(300 * US)
    assert machine.calls(times, 3, pause=5e-3, work=work) == "222"
    assert machine.woken == 3


def test_calls_that_follow_closely_wake_the_threads_once_and_keep_them(machine):
    times, work = reckoned(30 * US)
    sides = machine.calls(times, 80, pause=5 * US, work=work)
    assert sides == "1" * 9 + "2" * 71  # each gains 10 us, and waking costs 95
    assert machine.woken == 1


def test_calls_that_take_longer_than_reckoned_are_no_pauses(machine):
    _, work = reckoned(30 * US)
    sides = machine.calls(always(120 * US, 72 * US), 50, work=work)
    assert "2" not in sides[:2]
    assert sides[9:].count("2") > 35


def test_pauses_after_calls_that_take_longer_than_reckoned_are_seen(machine):
    _, work = reckoned(50 * US)
    assert "2" not in machine.calls(always(200 * US, 120 * US), 1000, pause=50 * US, work=work)


def test_threads_that_went_to_sleep_are_not_taken_for_awake():
    team, gained = Team(), 10 * US
    team.ended(0.0, SHARED, COSTS)
    assert team.should_run_parallel(39 * US, gained, COSTS)
    assert not team.should_run_parallel(41 * US, gained, COSTS)
    assert not team.follows(41 * US, COSTS)


def test_a_pause_forgets_what_was_saved():
    team, now = Team(), 0.0
    for _ in range(9):
        assert not team.should_run_parallel(now, 10 * US, COSTS)
        team.ended(now, ALONE, COSTS)
    assert team.saved == pytest.approx(90 * US)
    assert not team.should_run_parallel(50 * US, 10 * US, COSTS)
    assert team.saved == pytest.approx(10 * US)


def test_debt_after_slow_regions_grows_with_each_that_follows_and_is_forgotten_after_a_fast_one():
    """One that was held up for a moment costs little: ten prices after each kept calls on one thread for good."""
    team, prices = Team(), []
    for _ in range(8):
        team.answered(0.0, False, COSTS)
        prices.append(round(-team.saved / COSTS.seconds_asleep))
    assert prices == [1, 2, 4, 8, 16, 32, 32, 32]
    assert MOST_DEBT == 32
    team.answered(0.0, True, COSTS)
    team.answered(0.0, False, COSTS)
    assert team.saved == -COSTS.seconds_asleep


def test_debt_is_saved_up_whatever_the_pauses():
    team, came = Team(), []
    team.answered(0.0, False, COSTS)
    for now in (1.0, 2.0, 2.0, 2.0):
        came.append(team.should_run_parallel(now, 78 * US, COSTS))
        team.ended(now, ALONE, COSTS)
    assert came == [False, False, True, True]  # one price of 95 us and one more


def test_threads_are_asked_for_once_in_a_while_and_not_for_calls_that_gain_much():
    team = Team()
    assert team.asks(0.0, 100 * US, COSTS)
    team.answered(1.0, True, COSTS)
    assert not team.asks(1.0 + 0.9 * SECONDS_ASK, 100 * US, COSTS)
    assert team.asks(1.0 + 1.1 * SECONDS_ASK, 100 * US, COSTS)
    team.answered(2.0, False, COSTS)
    assert team.asks(2.0, 100 * US, COSTS), "they had no cores of their own"
    assert not Team().asks(0.0, 4e-3, COSTS)


@pytest.mark.parametrize("pause", [0.0, 30 * US, 50 * US, 5e-3])
@pytest.mark.parametrize("seconds", [3 * US, 10 * US, 30 * US, 100 * US, 240 * US, 260 * US, 1e-3])
def test_no_run_of_calls_takes_much_longer_than_on_one_thread(machine, seconds, pause):
    """Less than twice as long for any number of calls, and no longer where there are many."""
    times, work = reckoned(seconds)
    done, start = 0, machine.clock.now
    for count in (1, 5, 20, 1000):
        machine.calls(times, count - done, pause, work)
        done = count
        spent = machine.clock.now - start - pause * count
        assert spent < (1.5 if count < 1000 else 1.06) * seconds * count


def test_calls_that_take_longer_than_reckoned_get_their_threads(machine):
    """Rows of a table of many pages: 28 us where 3 are reckoned, which no second thread would be worth."""
    sides = machine.calls(always(28 * US, 16 * US), 200)
    assert sides[:5] == "11111"
    assert sides[-150:].count("2") > 140
    assert machine.woken < 6


@pytest.mark.parametrize("shared", [28 * US, 40 * US, 300 * US])
def test_calls_for_which_threads_do_nothing_go_back_to_one_and_try_them_ever_more_seldom(machine, shared):
    sides = [machine.calls(always(28 * US, shared), 5000).count("2") for _ in range(4)]
    assert 0 < sides[0] < 100
    assert sides[-1] <= sides[0] // 2
    assert machine.clock.now < 1.03 * 20_000 * 28 * US


def test_calls_go_back_to_the_faster_side_once_what_disturbed_it_has_passed(machine):
    """They stayed on one thread for thousands of calls after a few that another program had held up."""
    times = always(133 * US, 80 * US)
    assert machine.calls(times, 100)[-50:].count("2") > 40
    held_up = machine.calls(always(133 * US, 400 * US), 40)
    assert held_up[-10:].count("2") == 0
    sides = machine.calls(times, 400)
    assert sides[-200:].count("2") > 190


def test_a_side_that_was_measured_slower_is_left(machine):
    sides = machine.calls(lambda number: (133 * US, 80 * US if number < 60 else 160 * US), 300)
    assert sides[50:60] == "2" * 10
    assert sides[-100:].count("2") < 10


def test_calls_that_take_longer_than_they_did_try_the_other_side_at_once(machine):
    slow = 100
    machine.calls(always(133 * US, 140 * US), 2000)
    sides = machine.calls(always(133 * US * 2, 140 * US), slow)
    assert "2" in sides[:30]
    assert sides[-20:].count("2") == 20


def test_one_call_that_was_held_up_changes_little():
    pace = known(always(20 * US, 12 * US))
    before = pace.seconds[SHARED]
    pace.took(SHARED, 8e-3)
    assert pace.seconds[SHARED] == pytest.approx(before * 17 / 16)
    assert pace.side == SHARED


def known(times: Times) -> Pace:
    """The pace of calls that are known on both sides."""
    pace = Pace(times(0)[ALONE], 2, COSTS)
    for side in (ALONE, SHARED):
        for _ in range(1 + TRIAL):
            pace.took(side, times(0)[side])
    return pace


def test_the_first_call_on_a_side_is_not_counted():
    """It finds its data in the caches of other cores."""
    pace = Pace(20 * US, 2, COSTS)
    pace.took(SHARED, 300 * US)
    assert pace.seconds[SHARED] < 20 * US
    pace.took(SHARED, 12 * US)
    assert pace.seconds[SHARED] == 12 * US


def test_calls_that_gain_nothing_are_timed_once_in_a_while_only(machine):
    sides = machine.calls(always(3 * US, 3 * US), 100)
    assert sides[:4] == "1111"
    assert set(sides[4:].split("1")) <= {"." * UNTIMED, "." * ((100 - 4) % (UNTIMED + 1)), ""}
    assert not machine.choices.is_cached_serial(("one", 30_001))


def test_calls_of_other_work_and_of_other_threads_know_nothing_of_it(machine):
    machine.calls(always(28 * US, 16 * US), 50)
    machine.clock.now += 1.0
    assert machine.calls(always(28 * US, 16 * US), 1, work=60_000) == "1"
    machine.clock.now += 1.0
    assert machine.choices.begin(("one", 30_000), 3, COSTS) == 1
    assert [key[1] for key in machine.choices.paces] == [2, 2, 3]


def test_a_trial_that_finds_no_cores_waits_for_twice_as_long(machine):
    """Beside another program short calls asked every millisecond, which took a tenth of their time."""
    machine.region = 60 * US
    machine.calls(always(12 * US, 9 * US), 20_000)
    assert 4 < machine.woken < 25
    assert machine.clock.now < 1.02 * 20_000 * 12 * US
    machine.region = COSTS.seconds_awake
    assert machine.calls(always(12 * US, 6 * US), 40_000)[-100:].count("2") > 90, "they have cores again"


def test_what_asking_takes_is_not_learned_of_the_call(machine):
    """It made calls on one thread seem longer than they are, and sharing them a loss for good."""
    machine.region = 60 * US
    machine.calls(always(133 * US, 80 * US), 100)
    (pace,) = machine.choices.paces.values()
    assert pace.seconds[ALONE] == pytest.approx(133 * US)
    assert pace.seconds[SHARED] < 90 * US


def test_two_kernels_of_the_same_work_do_not_learn_from_each_other(machine):
    """Of a batch of ones two products took turns: what one took shared was held against what the other took alone."""
    for _ in range(30):
        slow = machine.calls(always(96 * US, 60 * US), 20, maker="csr_dense")
        fast = machine.calls(always(50 * US, 70 * US), 20, maker="csr_dense_ones")
    assert slow.count("2") > 15
    assert fast.count("2") < 5


def test_calls_that_nobody_times_follow_what_is_reckoned(machine):
    """No pace is learned of them; what they are taken to last is no pause."""
    came = []
    for _ in range(20):
        came.append(machine.choices.choose_without_timing(300_000, 2, COSTS))
        machine.clock.now += 30 * US if came[-1] == 1 else 20 * US
    assert came == [1] * 9 + [2] * 11
    assert not machine.choices.paces


def test_threads_without_cores_of_their_own_are_asked_ever_more_seldom(machine):
    machine.region = 60 * US
    sides = machine.calls(always(133 * US, 80 * US), 2000)
    assert "2" not in sides
    assert machine.woken < 50
    assert machine.clock.now < 1.1 * 2000 * 133 * US
    machine.region = COSTS.seconds_awake
    assert machine.calls(always(133 * US, 80 * US), 200)[-100:].count("2") > 90


def test_more_threads_gain_more_and_cost_what_they_cost():
    assert gain(100 * US, 2, COSTS) == pytest.approx(38 * US)
    assert gain(100 * US, 8, COSTS) == pytest.approx(75.5 * US)
