"""Calls that leave the other cores to other programs: by figures alone, with a clock that stands still but for them."""

from collections.abc import Callable

import numpy as np
import pytest

from kernels import choice, choosing, threads
from kernels.choice import ALONE, SHARED
from kernels.choosing import CREDIT, LONG, MOST_LOST, MOST_YIELD, SECONDS_YIELD, Series, Yielding
from tests.support import cores
from tests.support.cores import US, Cores
from tests.support.thread_counts import needs_two, share_out

machine = cores.machine

pytestmark = pytest.mark.usefixtures("kept_threads")

SLICE = 4e-3
"""Seconds for which another program has a core at a time."""


def quiet(number: int) -> float:
    return 60 * US


def busy(number: int) -> float:
    """A step on all threads while another program has one core for half of the time."""
    return SLICE if number % 20 == 19 else 60 * US


def played(
    series: Series, shared: Callable[[int], float], seconds: float, now: float = 0.0, alone: float = 100 * US
) -> tuple[float, int, int]:
    """(Time at the end, steps, steps on all threads) of a series of pieces that takes so long."""
    end, done, together = now + seconds, 0, 0
    while now < end:
        side, steps = series.following(now)
        taken = sum(shared(done + step) if side == SHARED else alone for step in range(steps))
        now, done, together = now + taken, done + steps, together + (steps if side == SHARED else 0)
        series.took(now, side, steps, taken)
    return now, done, together


def test_steps_with_cores_of_their_own_are_shared() -> None:
    now, steps, together = played(Series(), quiet, 1.0)
    assert together > 0.98 * steps
    assert now / steps < 1.02 * 60 * US


def test_steps_beside_another_program_take_little_longer_than_on_one_thread() -> None:
    now, steps, together = played(Series(), busy, 1.0)
    assert now / steps < 1.15 * 100 * US, "on all threads they would take 257 us"
    assert 0 < together < steps / 20


def test_steps_are_shared_again_once_the_other_program_has_ended() -> None:
    series = Series()
    now, _, _ = played(series, busy, 5.0)
    now, _, _ = played(series, quiet, MOST_YIELD + 0.01, now)
    _, steps, together = played(series, quiet, 1.0, now)
    assert together > 0.98 * steps


def test_a_program_that_begins_in_the_middle_is_noticed_after_a_slice_or_two() -> None:
    series = Series()
    now, _, _ = played(series, quiet, 1.0)
    _, _, together = played(series, lambda number: SLICE, 0.1, now)
    assert together < (MOST_LOST + CREDIT) / SLICE + 50  # the piece that runs has 50 steps


def test_what_one_thread_takes_is_measured_again_when_steps_change() -> None:
    series = Series()
    now, _, _ = played(series, quiet, 1.0)
    played(series, quiet, 20.0, now, alone=30 * US)
    assert series.seconds[ALONE] == pytest.approx(30 * US, rel=0.1)


def test_one_disturbance_after_a_gain_makes_no_call_yield_and_two_do() -> None:
    yielding = Yielding()
    for _ in range(1000):
        yielding.shared(1.0, 60 * US, 100 * US)
    assert yielding.lost == -CREDIT
    yielding.shared(1.0, SLICE, 100 * US)
    assert yielding.may_share(1.0)
    yielding.shared(1.0, SLICE, 100 * US)
    assert not yielding.may_share(1.0 + SECONDS_YIELD / 2)
    assert yielding.may_share(1.0 + SECONDS_YIELD)


def lose(yielding: Yielding, now: float) -> float:
    """Seconds that calls yield after a loss `now`, to a thousandth."""
    yielding.shared(now, 1.0, 0.0)
    return next(number / 1000 for number in range(10_000) if yielding.may_share(now + number / 1000))


def test_calls_yield_ever_longer_until_threads_were_shared_for_long() -> None:
    yielding, now, times = Yielding(), 0.0, []
    for _ in range(9):
        times.append(lose(yielding, now))
        now += times[-1] + 0.01
    assert times == pytest.approx([min(SECONDS_YIELD * 2**number, MOST_YIELD) for number in range(9)], abs=2e-3)
    assert lose(yielding, now + LONG * MOST_YIELD) == pytest.approx(MOST_YIELD / 4, abs=2e-3)


def test_a_call_that_takes_long_anyway_may_lose_as_much_as_it_takes() -> None:
    yielding = Yielding()
    yielding.shared(1.0, 0.015, 0.010)
    assert yielding.may_share(1.0)
    yielding.shared(1.0, 0.016, 0.010)
    assert not yielding.may_share(1.0)


def test_calls_one_by_one_yield_too_where_empty_regions_tell_nothing(machine: Cores) -> None:
    """A thread that sleeps most of the time is given a core at once: empty regions are entered soon."""
    number = 3_000_000
    sides = machine.calls(lambda call: (300 * US, busy(call) * 3), 3000, work=number)
    assert sides.count("2") < 300
    assert machine.clock.now < 1.3 * 3000 * 300 * US


def test_calls_for_which_nobody_tells_the_end_yield_with_the_others(machine: Cores) -> None:
    choices = machine.choices
    costs = choice.Costs(2e-6, 95e-6, 40e-6, 1e-10)
    assert choices.choose_without_timing(10_000_000, 2, costs) == 2
    choices.yielding.shared(machine.clock.now, 1.0, 0.0)
    assert choices.choose_without_timing(10_000_000, 2, costs) == 1


@needs_two
def test_a_call_in_pieces_does_each_step_once_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, None)
    threads.set_threads(2)
    monkeypatch.setattr(threads.this_thread, "choices", choosing.Choices())
    clock = Cores().clock
    monkeypatch.setattr(threads, "perf_counter", clock)
    done, counts = [], set()

    def run(first: int, last: int) -> int:
        counts.add(threads.get_threads())
        clock.now += (last - first) * (50 * US if threads.get_threads() == 2 else 100 * US)
        done.extend(range(first, last))
        return -1

    assert threads.call_in_pieces(run, 1000, 10**6, "one") == -1
    assert done == list(range(1000))
    assert counts == {1, 2}
    assert threads.get_threads() == 2
    assert threads.call_in_pieces(lambda first, last: 7, 1000, 10**6, "one") == 7, "the first result ends it"


@needs_two
def test_a_call_in_pieces_is_one_piece_for_who_asks_for_all_threads_or_one() -> None:
    pieces = []
    for asked in (threads.parallel, threads.serial):
        with asked():
            threads.call_in_pieces(lambda first, last: pieces.append((first, last)) or -1, 9, 10**9, "one")
    assert pieces == [(0, 9), (0, 9)]


@needs_two
def test_an_error_in_a_piece_gives_the_threads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out(monkeypatch, None)
    threads.set_threads(2)
    with pytest.raises(ZeroDivisionError):
        threads.call_in_pieces(lambda first, last: 1 // 0, 5, 10**6, np.add)
    assert threads.get_threads() == 2
