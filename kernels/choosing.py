"""Choice of serial or parallel execution per thread, by the clock; `kernels.choice` has the rules.

>>> yielding = Yielding()
>>> yielding.shared(1.0, 40e-6, 60e-6), yielding.may_share(1.0)
(None, True)
>>> yielding.shared(1.1, 4e-3, 60e-6), yielding.may_share(1.1), yielding.may_share(1.2)
(None, False, True)
"""

from collections.abc import Hashable
from time import perf_counter

from kernels import choice
from kernels.choice import ALONE, BUSY, SECONDS_CHOICE, SHARED, TRIAL, Costs, Pace, Team, gain

# The choice to leave the other cores to other programs, from what calls take: figures alone, no clock is read.
#
# If another program holds a core, the thread on that core has it for about half of the time, in slices of a few
# milliseconds. A call on all threads ends with the last of them, so that it takes thousands of microseconds now and
# then instead of tens, and the fastest of a few calls tells nothing about it. What counts is the sum: every call on
# all threads adds to a balance what it took longer than it takes on one thread, and subtracts what it gained. A
# balance of more than `MOST_LOST` makes calls yield: they run on one thread for a while, and then try all threads
# again. If that fails soon, they yield for twice the time. So what other programs cost is bounded, and what a short
# disturbance costs.
#
# Long calls that consist of many steps are cut into pieces of a few milliseconds, so that a call reacts while it runs.


MOST_LOST = 2e-3
"""Seconds lost by sharing from which on calls yield, or one call on one thread if that is more."""

CREDIT = 4e-3
"""Seconds gained by sharing that count at most: one slice of another program after a long gain makes no call yield."""

SECONDS_YIELD, MOST_YIELD = 30e-3, 2.0
"""Seconds that calls yield at first, and at most."""

LONG = 4
"""Times of yielding that threads were shared without a loss, after which calls yield for a fourth of the time."""

SECONDS_PIECE = 3e-3
"""Seconds of a piece of a long call: starting one takes some 20 us."""

SECONDS_MEASURE = 0.5e-3
"""Seconds of a piece that is run on one thread to know what it takes there."""

SECONDS_SHARED, MOST_SHARED = 0.1, 3.2
"""Seconds on all threads after which a piece is run on one thread again: at first, and at most."""


class Yielding:
    """Balance of gains and losses of parallel calls, and until when calls yield to other programs. Times are of one
    clock.
    """

    __slots__ = ("_seconds", "_until", "lost")

    def __init__(self) -> None:
        """Start with a balance of 0 s and without yielding to other programs."""
        self.lost, self._seconds, self._until = 0.0, SECONDS_YIELD, float("-inf")

    def may_share(self, now: float) -> bool:
        """Return whether a call at time `now` (s) may be parallel, i.e. does not yield to other programs."""
        return now >= self._until

    def shared(self, now: float, taken: float, alone: float) -> None:
        """Record a parallel call that ends at `now`: its duration `taken`, and the duration `alone` on one thread (s).

        If the sum of losses is too large, calls yield for a while, each time longer.
        """
        self.lost = max(self.lost + taken - alone, -CREDIT)
        if self.lost <= max(MOST_LOST, alone):
            return
        is_new = now - self._until > LONG * self._seconds
        self._seconds = max(self._seconds / 4, SECONDS_YIELD) if is_new else min(2 * self._seconds, MOST_YIELD)
        self._until, self.lost = now + self._seconds, 0.0


class Series:
    """Long calls made of steps of about equal work: seconds per step serial and parallel, and what to run next."""

    __slots__ = ("_left", "_measured", "_shared_most", "seconds", "yielding")

    def __init__(self) -> None:
        """Start without measured times; the first piece runs on one thread."""
        self.seconds = [float("inf")] * 2
        self._measured = [0, 0]
        self.yielding = Yielding()
        self._left = self._shared_most = SECONDS_SHARED

    def following(self, now: float) -> tuple[int, int]:
        """Return (side, number of steps) of the piece to run at time `now` (s); side is ALONE or SHARED."""
        is_known = self._measured[ALONE] >= TRIAL
        if is_known and self._left > 0 and self.yielding.may_share(now):
            return SHARED, self._steps(SHARED, SECONDS_PIECE)
        return ALONE, self._steps(ALONE, SECONDS_PIECE if is_known and self._left > 0 else SECONDS_MEASURE)

    def took(self, now: float, side: int, steps: int, seconds: float) -> None:
        """Record that a piece of `steps` steps on a side took `seconds` and ends at time `now`."""
        self._learn(side, seconds / steps)
        if side == SHARED:
            self._left -= seconds
            self.yielding.shared(now, seconds, steps * self.seconds[ALONE])
        elif self._left <= 0:
            self._shared_most = min(2 * self._shared_most, MOST_SHARED)
            self._left = self._shared_most

    def _steps(self, side: int, seconds: float) -> int:
        """Return the number of steps, at least 1, that take `seconds` on a side."""
        return max(int(seconds / self.seconds[side]), 1)

    def _learn(self, side: int, seconds: float) -> None:
        """Update the estimated `seconds` of a step on a side: minimum of the first pieces, then a moving average.

        A new time moves it by a quarter of the difference, as `kernels.choice.Pace`.
        """
        known, count = self.seconds[side], self._measured[side]
        if count < TRIAL:
            self.seconds[side] = min(seconds, known)
            self._measured[side] = count + 1
        else:
            self.seconds[side] = known + (min(max(seconds, known / 2), 1.25 * known) - known) / 4


MOST_KEPT = 1024
"""Calls that are remembered, by what makes them and their work."""

Call = tuple[Hashable, int]
"""What makes a call, and its work in multiply-adds: the same work takes each kernel another time."""


def _key(call: Call, count: int) -> tuple[Hashable, int, int, int]:
    """Return the key under which calls count as alike: (maker, threads, work rounded to a quarter as two integers)."""
    maker, work = call
    bits = work.bit_length()
    return maker, count, bits, work >> max(bits - 3, 0)


class Choices:
    """Choices of one thread: measured times of calls by work, and the state of the other threads."""

    def __init__(self) -> None:
        """Start without measured times."""
        self.team, self.yielding = Team(), Yielding()
        self.series: dict[tuple[Hashable, int, int, int], Series] = {}
        """Long calls, by the same as `paces`."""
        self.paces: dict[tuple[Hashable, int, int, int], Pace] = {}
        """By what makes calls, threads, and work to a fourth: calls of one key are taken to be alike."""
        self._of_calls: dict[Call, Pace] = {}
        self._count = 0
        self._call: tuple[Pace, int, float, Costs | None]

    def is_cached_serial(self, call: Call) -> bool:
        """Return whether such a call was recently found best on one thread, so that no choice is needed.

        Each True uses up one of a limited number of calls, after which a call is timed again.
        """
        pace = self._of_calls.get(call)
        if pace is None or not pace.rests:
            return False
        pace.rests -= 1
        return True

    def begin(self, call: Call, count: int, costs: Costs) -> int:
        """Return 1 or `count` threads (then awake) for a call that starts now, from measured times; starts its timing.

        Call `ended` after the call. `call` is (maker, work in multiply-adds).
        """
        pace = self._of_calls.get(call) if count == self._count else None
        if pace is None:
            pace = self._pace_of(call, count, costs)
        now, team = perf_counter(), self.team
        side = pace.next_side(team.follows(now, costs))
        if side == SHARED:
            side = SHARED if self._may_share(pace, now) and self._shares(pace, now, count, costs) else ALONE
            now = perf_counter()  # threads may have been woken
        self._call = pace, side, now, costs
        return count if side == SHARED else 1

    def begin_elsewhere(self, call: Call, count: int, costs: Costs) -> int:
        """Return 1 or `count` threads of another library, which wakes them itself, for a call that starts now.

        Starts the timing of the call; call `ended` after it.
        """
        pace = self._pace_of(call, count, costs)
        now = perf_counter()
        side = SHARED if pace.next_side(follows=True) == SHARED and self._may_share(pace, now) else ALONE
        self._call = pace, side, now, None
        return count if side == SHARED else 1

    def _may_share(self, pace: Pace, now: float) -> bool:
        """Return whether a call of `pace` at time `now` (s) need not yield to other programs.

        If it must yield, a trial of `pace` that is under way is cancelled.
        """
        if self.yielding.may_share(now):
            return True
        if pace.is_paid:
            pace.cancel_probe()
        return False

    def _shares(self, pace: Pace, now: float, count: int, costs: Costs) -> bool:
        """Return whether a call of that pace at time `now` is parallel on `count` threads, which are then awake.

        It must gain enough by `costs`. A trial pays for waking; it is cancelled if threads have no cores of their own.
        """
        team = self.team
        if pace.is_paid and team.saved < 0:
            team.saved += costs.seconds_asleep
            pace.cancel_probe()
            return False
        gained = costs.seconds_asleep if pace.is_paid else pace.gained
        if not team.should_run_parallel(now, gained, costs):
            return False
        self._wake(now, gained, count, costs)
        if team.saved >= 0:
            return True
        if pace.is_paid:
            pace.cancel_probe()
        return False

    def ended(self) -> None:
        """Record the duration of the call that just finished, begun by `begin` or `begin_elsewhere`."""
        (pace, side, start, costs), now = self._call, perf_counter()
        if side == SHARED:
            self.yielding.shared(now, now - start, pace.most_alone)
        pace.took(side, now - start)
        if costs is not None:
            self.team.ended(now, side, costs)

    def choose_without_timing(self, work: int, count: int, costs: Costs) -> int:
        """Return 1 or `count` threads for a call of `work` multiply-adds that cannot be timed, from its estimated time.

        May wake the threads; records the estimated end of the call.
        """
        now, team = perf_counter(), self.team
        seconds = work * costs.seconds_work
        gained = gain(seconds, count, costs)
        is_shared = (
            gained > SECONDS_CHOICE and self.yielding.may_share(now) and team.should_run_parallel(now, gained, costs)
        )
        if is_shared:
            self._wake(now, gained, count, costs)
            now, is_shared = perf_counter(), team.saved >= 0
        team.ended(now + seconds - (gained if is_shared else 0.0), SHARED if is_shared else ALONE, costs)
        return count if is_shared else 1

    def series_of(self, call: Call, count: int) -> Series:
        """Return the measurements of long calls whose steps are such calls; created if there are none."""
        key = _key(call, count)
        if key not in self.series:
            self.series[key] = Series()
        return self.series[key]

    def _pace_of(self, call: Call, count: int, costs: Costs) -> Pace:
        """Return the `Pace` of calls of about this work on `count` threads.

        Created from an estimate if there is none.
        """
        if count != self._count or len(self._of_calls) >= MOST_KEPT:
            self._of_calls.clear()
            self._count = count
        key, work = _key(call, count), call[1]
        pace = self.paces.get(key)
        if pace is None:
            pace = self.paces[key] = Pace(work * costs.seconds_work, count, costs)
        self._of_calls[call] = pace
        return pace

    def _wake(self, now: float, gained: float, count: int, costs: Costs) -> None:
        """Wake `count` threads if they sleep, for a call at time `now` that gains `gained` seconds.

        Occasionally tests, by `costs`, whether they have cores of their own, and records the result in the team.
        """
        team = self.team
        if team.asks(now, gained, costs):
            are_free = choice.seconds_awake(count) < BUSY * costs.seconds_awake
            team.answered(perf_counter(), are_free, costs)
        elif now >= team.awake_until:
            choice.wake(count)
