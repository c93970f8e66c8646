"""The choices that a thread makes of one thread or all for its calls, by the clock: `kernels.choice` says how."""

from collections.abc import Hashable
from time import perf_counter

from kernels import entry_costs
from kernels.choice import ALONE, BUSY, SECONDS_CHOICE, SHARED, Costs, Pace, Team, gain
from kernels.yielding import Series, Yielding

MOST_KEPT = 1024
"""Calls that are remembered, by what makes them and their work."""

Call = tuple[Hashable, int]
"""What makes a call, and its work in multiply-adds: the same work takes each kernel another time."""


def _key(call: Call, count: int) -> tuple[Hashable, int, int, int]:
    """Key of calls that are taken to be alike: what makes them, threads, and work to a fourth."""
    maker, work = call
    bits = work.bit_length()
    return maker, count, bits, work >> max(bits - 3, 0)


class Choices:
    """The choices of one thread: what calls were measured to take, by their work, and whether threads are awake."""

    def __init__(self) -> None:
        self.team, self.yielding = Team(), Yielding()
        self.series: dict[tuple[Hashable, int, int, int], Series] = {}
        """Long calls, by the same as `paces`."""
        self.paces: dict[tuple[Hashable, int, int, int], Pace] = {}
        """By what makes calls, threads, and work to a fourth: calls of one key are taken to be alike."""
        self._of_calls: dict[Call, Pace] = {}
        self._count = 0
        self._call: tuple[Pace, int, float, Costs | None]

    def rests(self, call: Call) -> bool:
        """Whether such a call was found a few calls ago to be best on one thread, so that it is not asked."""
        pace = self._of_calls.get(call)
        if pace is None or not pace.rests:
            return False
        pace.rests -= 1
        return True

    def begin(self, call: Call, count: int, costs: Costs) -> int:
        """1 or `count` threads, which are awake then, for a call that is now made, by what such calls took; `ended` is
        to follow."""
        pace = self._of_calls.get(call) if count == self._count else None
        if pace is None:
            pace = self._known(call, count, costs)
        now, team = perf_counter(), self.team
        side = pace.wanted(team.follows(now, costs))
        if side == SHARED:
            side = SHARED if self._may_share(pace, now) and self._shares(pace, now, count, costs) else ALONE
            now = perf_counter()  # threads may have been woken
        self._call = pace, side, now, costs
        return count if side == SHARED else 1

    def begin_elsewhere(self, call: Call, count: int, costs: Costs) -> int:
        """1 or `count` threads of another library, which wakes them itself, for a call of it that is now made, by what
        such calls took; `ended` is to follow."""
        pace = self._known(call, count, costs)
        now = perf_counter()
        side = SHARED if pace.wanted(follows=True) == SHARED and self._may_share(pace, now) else ALONE
        self._call = pace, side, now, None
        return count if side == SHARED else 1

    def _may_share(self, pace: Pace, now: float) -> bool:
        """Whether a call of that pace need not yield to other programs; if it must, its trial is given up."""
        if self.yielding.may_share(now):
            return True
        if pace.is_paid:
            pace.lapse()
        return False

    def _shares(self, pace: Pace, now: float, count: int, costs: Costs) -> bool:
        """Whether a call of that pace gets its threads, which are awake then; a trial pays a price of debts instead."""
        team = self.team
        if pace.is_paid and team.saved < 0:
            team.saved += costs.seconds_asleep
            pace.lapse()
            return False
        gained = costs.seconds_asleep if pace.is_paid else pace.gained
        if not team.shares(now, gained, costs):
            return False
        self._wake(now, gained, count, costs)
        if team.saved >= 0:
            return True
        if pace.is_paid:
            pace.lapse()
        return False

    def ended(self) -> None:
        """Learn what the call took that ends now."""
        (pace, side, start, costs), now = self._call, perf_counter()
        if side == SHARED:
            self.yielding.shared(now, now - start, pace.most_alone)
        pace.took(side, now - start)
        if costs is not None:
            self.team.ended(now, side, costs)

    def once(self, work: int, count: int, costs: Costs) -> int:
        """1 or `count` threads for a call of which nobody tells when it ends: by what is reckoned from its work."""
        now, team = perf_counter(), self.team
        seconds = work * costs.seconds_work
        gained = gain(seconds, count, costs)
        is_shared = gained > SECONDS_CHOICE and self.yielding.may_share(now) and team.shares(now, gained, costs)
        if is_shared:
            self._wake(now, gained, count, costs)
            now, is_shared = perf_counter(), team.saved >= 0
        team.ended(now + seconds - (gained if is_shared else 0.0), SHARED if is_shared else ALONE, costs)
        return count if is_shared else 1

    def series_of(self, call: Call, count: int) -> Series:
        """Measurements of long calls whose steps are such calls."""
        key = _key(call, count)
        if key not in self.series:
            self.series[key] = Series()
        return self.series[key]

    def _known(self, call: Call, count: int, costs: Costs) -> Pace:
        """Pace of such calls, of about that work."""
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
        """Wake the threads where they sleep, and ask now and then whether they have cores of their own."""
        team = self.team
        if team.asks(now, gained, costs):
            are_free = entry_costs.seconds_awake(count) < BUSY * costs.seconds_awake
            team.answered(perf_counter(), are_free, costs)
        elif now >= team.awake_until:
            entry_costs.wake(count)
