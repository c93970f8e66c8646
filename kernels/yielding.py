"""The choice to leave the other cores to other programs, from what calls take: figures alone, no clock is read.

If another program holds a core, the thread on that core has it for about half of the time, in slices of a few
milliseconds. A call on all threads ends with the last of them, so that it takes thousands of microseconds now and then
instead of tens, and the fastest of a few calls tells nothing about it. What counts is the sum: every call on all
threads adds to a balance what it took longer than it takes on one thread, and subtracts what it gained. A balance of
more than `MOST_LOST` makes calls yield: they run on one thread for a while, and then try all threads again. If that
fails soon, they yield for twice the time. So what other programs cost is bounded, and what a short disturbance costs.

Long calls that consist of many steps are cut into pieces of a few milliseconds, so that a call reacts while it runs.

>>> yielding = Yielding()
>>> yielding.shared(1.0, 40e-6, 60e-6), yielding.may_share(1.0)
(None, True)
>>> yielding.shared(1.1, 4e-3, 60e-6), yielding.may_share(1.1), yielding.may_share(1.2)
(None, False, True)
"""

from kernels.choice import ALONE, SHARED, TRIAL

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
    """The balance of sharing, and until when calls yield. Times are of one clock."""

    __slots__ = ("_seconds", "_until", "lost")

    def __init__(self) -> None:
        """Start without a gain or a loss."""
        self.lost, self._seconds, self._until = 0.0, SECONDS_YIELD, float("-inf")

    def may_share(self, now: float) -> bool:
        """Whether a call that is made `now` may have all threads."""
        return now >= self._until

    def shared(self, now: float, taken: float, alone: float) -> None:
        """Learn that a call on all threads, which ends `now`, has taken so many seconds, and takes `alone` on one."""
        self.lost = max(self.lost + taken - alone, -CREDIT)
        if self.lost <= max(MOST_LOST, alone):
            return
        is_new = now - self._until > LONG * self._seconds
        self._seconds = max(self._seconds / 4, SECONDS_YIELD) if is_new else min(2 * self._seconds, MOST_YIELD)
        self._until, self.lost = now + self._seconds, 0.0


class Series:
    """Long calls of steps of about the same work: seconds of a step on one thread and on all, and what comes next."""

    __slots__ = ("_left", "_measured", "_shared_most", "seconds", "yielding")

    def __init__(self) -> None:
        """Start with a step that is measured on one thread."""
        self.seconds = [float("inf")] * 2
        self._measured = [0, 0]
        self.yielding = Yielding()
        self._left = self._shared_most = SECONDS_SHARED

    def following(self, now: float) -> tuple[int, int]:
        """(Side, steps) of the piece that is run `now`."""
        is_known = self._measured[ALONE] >= TRIAL
        if is_known and self._left > 0 and self.yielding.may_share(now):
            return SHARED, self._steps(SHARED, SECONDS_PIECE)
        return ALONE, self._steps(ALONE, SECONDS_PIECE if is_known and self._left > 0 else SECONDS_MEASURE)

    def took(self, now: float, side: int, steps: int, seconds: float) -> None:
        """Learn that a piece of so many steps, which ends `now`, has taken so many seconds."""
        self._learn(side, seconds / steps)
        if side == SHARED:
            self._left -= seconds
            self.yielding.shared(now, seconds, steps * self.seconds[ALONE])
        elif self._left <= 0:
            self._shared_most = min(2 * self._shared_most, MOST_SHARED)
            self._left = self._shared_most

    def _steps(self, side: int, seconds: float) -> int:
        """Steps of a piece that takes so long on that side."""
        return max(int(seconds / self.seconds[side]), 1)

    def _learn(self, side: int, seconds: float) -> None:
        """The fastest of the first pieces; then a fourth of the way to each, as `kernels.choice.Pace` learns."""
        known, count = self.seconds[side], self._measured[side]
        if count < TRIAL:
            self.seconds[side] = min(seconds, known)
            self._measured[side] = count + 1
        else:
            self.seconds[side] = known + (min(max(seconds, known / 2), 1.25 * known) - known) / 4
