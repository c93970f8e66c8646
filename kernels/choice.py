"""The choice of one thread or all of them for a call, from what calls take: figures alone, the clock is read elsewhere.

A parallel call pays for entering its region: little where the threads are awake, for they wait so for some time after a
region, and fifty times as much where they sleep and each has to be woken. So a call whose work is worth an entry awake
finds the threads asleep first, and stays on one thread; what it would have gained is put by. Calls that follow each
other closely save up so, and once they have the price of waking, the threads are woken and stay awake. A call that
gains more than waking costs pays for it at once. It is the rule of who rents skis until he has paid their price: what
is spent in vain is at most what was spent before, and calls with pauses between them never wake a thread.

Where another program holds a core, no thread is ever awake there: every region takes as long as waking one. So when
threads have been woken, and every `SECONDS_ASK` after, an empty region is timed first; where it is slow, calls stay on
one thread until they have saved up many times the price.

What calls of about the same work take is reckoned at first, and then measured, on one thread and on all. Calls are on
the side that was measured to be faster. The other is tried again from time to time, by a few calls in a row, for what
disturbed it may have passed: the longer it was found slower, the more seldom, and soon where calls take longer than
they did.

>>> costs = Costs(seconds_awake=2e-6, seconds_asleep=50e-6, seconds_stay=40e-6, seconds_work=1e-10)
>>> team = Team()
>>> team.shares(0.0, gain(20e-6, 2, costs), costs), round(1e6 * team.saved)
(False, 6)
>>> team.shares(1.0, gain(1e-3, 2, costs), costs)
True
"""

from dataclasses import dataclass

UNEVEN = 0.1
"""Share of a call's work by which the last thread is late: parts are not quite equal, and threads share the memory."""

SECONDS_ASK = 2e-3
"""Time after which it is asked again whether threads have cores of their own; asking takes 4 us."""

BUSY = 8
"""An empty region that takes so many times as long as one of threads that are awake has no cores of its own."""

MOST_DEBT = 32
"""What is to be saved after such a region, beside the price of waking the threads, in such prices, at most: one price
after the first, for a core is held up for a moment everywhere, and twice as many after each that follows."""

LARGE = 10
"""Prices of waking the threads from which on a call that gains so much does not ask."""

SECONDS_CHOICE = 1.5e-6
"""What a choice takes itself, and what is learned from its call; a call that gains less stays on one thread."""

ALONE, SHARED = 0, 1
"""The two sides that a call may be on."""

TRIAL = 3
"""Calls by which a side is known: the fastest of them. The one before is not counted, for it finds the data in the
caches of other cores."""

PATIENCE, MOST_PATIENCE = 8, 1024
"""Time that calls stay on the faster side until the other is tried, in what that may cost: at first, and at most."""

DEPARTS = 1.5
"""Part of what was measured last from which on calls of a side take longer than they did: the other is tried."""

MARGIN = 1 / 32
"""Part by which the other side has to be faster: less is noise."""

UNTIMED, SHORT = 15, 100e-6
"""Calls that follow one on one thread which is known to be best there, and are not timed where they take less than so
many seconds: timing takes as long as a tenth of the shortest."""


@dataclass(frozen=True)
class Costs:
    """Costs of a machine, in seconds: to enter a region of so many threads that are awake, to enter one of sleeping
    threads; how long threads stay awake after a region; and a multiply-add of vector code on one thread."""

    seconds_awake: float
    seconds_asleep: float
    seconds_stay: float
    seconds_work: float


def gain(seconds: float, threads: int, costs: Costs) -> float:
    """Seconds that a call of so many on one thread gains in a region of `threads` that are awake; negative: loses."""
    return seconds * (1 - 1 / threads - UNEVEN) - costs.seconds_awake


class Pace:
    """Times of calls of about the same work on either side, which of them they are on, and when the other is tried.

    `seconds` are reckoned from those on one thread until they are measured; `tried` is the side at trial, or None.
    `is_paid` says that waking the threads is paid for by a trial; `rests` counts calls that are not to be timed.
    """

    __slots__ = (
        *("is_paid", "rests", "seconds", "side", "tried"),
        *("_before", "_calls", "_costs", "_left", "_patience", "_settled", "_threads"),
    )

    def __init__(self, seconds_alone: float, threads: int, costs: Costs) -> None:
        self._threads, self._costs = threads, costs
        self.seconds = [seconds_alone, seconds_alone - gain(seconds_alone, threads, costs)]
        self._calls = [0, 0]
        self._before: int | None = None
        self.tried: int | None = None
        self.rests, self.side, self.is_paid = 0, ALONE, False
        self.side = self._faster()
        self._patience: int
        self._settled: float
        self._left: float
        self._settle(PATIENCE)

    @property
    def gained(self) -> float:
        """Seconds that a call gains by more threads that are awake."""
        return self.seconds[ALONE] - self.seconds[SHARED]

    @property
    def most_alone(self) -> float:
        """Seconds of a call on one thread: as measured, or before that twice the estimate, which may be too low."""
        return self.seconds[ALONE] * (1 if self._calls[ALONE] else 2)

    def wanted(self, follows: bool) -> int:
        """The side that the next call is to be on, which `follows` closely on another or comes after a pause."""
        if self.tried is None:
            if self._left > 0 or not follows or not self._may_gain():
                return self.side
            self.tried, self.is_paid = 1 - self.side, True
            self._calls[self.tried] = 0
        elif self.tried == SHARED and not follows:  # threads would have to be woken for each call
            self.lapse()
            return self.side
        return self.tried

    def lapse(self) -> None:
        """Give a trial up, for threads sleep or have no cores of their own; the next one comes after twice the time."""
        self.tried, self.is_paid = None, False
        self._patience = min(2 * self._patience, MOST_PATIENCE)
        self._wait()

    def took(self, side: int, seconds: float) -> None:
        """Learn what a call on that side took."""
        if side == SHARED and self.tried is None:
            self.is_paid = False
        if side != self._before:
            self._before = side
            return
        self._learn(side, seconds)
        if self.tried is not None:
            if side == self.tried and self._calls[side] == TRIAL:
                before, self.tried = self.side, None
                self.side = self._faster()
                self.is_paid = self.side == SHARED
                self._settle(PATIENCE if self.side != before else min(2 * self._patience, MOST_PATIENCE))
        elif (faster := self._faster()) != self.side:
            self.side = faster
            self._settle(PATIENCE)
        elif side == self.side:
            self._pass(seconds)

    def _learn(self, side: int, taken: float) -> None:
        """The fastest of the first calls; then a quarter of the way to each, but no further than from half to 1.25
        times what is known, for another program may have held the core."""
        known, count = self.seconds[side], self._calls[side]
        if count == TRIAL:
            self.seconds[side] = known + (min(max(taken, known / 2), 1.25 * known) - known) / 4
            return
        self.seconds[side] = min(taken, known) if count else taken
        self._calls[side] = count + 1
        if side == ALONE and not self._calls[SHARED]:
            known = self.seconds[ALONE]
            self.seconds[SHARED] = known - gain(known, self._threads, self._costs)

    def _pass(self, seconds: float) -> None:
        """Let time pass until the other side is tried: none where calls take longer than they did."""
        known = self.seconds[self.side]
        if known > DEPARTS * self._settled:
            self._settle(PATIENCE)
            self._left = 0.0
        is_idle = self.side == ALONE and self._calls[ALONE] == TRIAL and known < SHORT
        self._left -= seconds * (1 + UNTIMED if is_idle else 1)
        self.rests = UNTIMED if is_idle and (self._left > 0 or not self._may_gain()) else 0

    def _faster(self) -> int:
        margin = MARGIN * self.seconds[ALONE]
        return SHARED if self.gained > SECONDS_CHOICE + (margin if self.side == ALONE else -margin) else ALONE

    def _may_gain(self) -> bool:
        """Whether the other side could be faster, if threads shared the work without any loss."""
        most = self.seconds[ALONE] * (1 - 1 / self._threads)
        return self.side == SHARED or most > SECONDS_CHOICE + self._costs.seconds_awake

    def _settle(self, patience: int) -> None:
        """Be content with the side for that time."""
        self._patience, self._settled = patience, self.seconds[self.side]
        self._wait()

    def _wait(self) -> None:
        other = self.seconds[1 - self.side]
        self._left = self._patience * (self._costs.seconds_asleep + (1 + TRIAL) * other)


class Team:
    """The threads as the calls of one thread know them: until when they are awake, when the last call that was worth a
    region ends, what such calls have saved up, when the threads were last asked for, and what a slow answer costs, in
    prices of waking them. Times are of one clock."""

    __slots__ = ("asked", "awake_until", "debt", "ends", "saved")

    def __init__(self) -> None:
        """Start as a thread that has made no call."""
        self.awake_until = self.ends = self.asked = float("-inf")
        self.saved = 0.0
        self.debt = 1

    def follows(self, now: float, costs: Costs) -> bool:
        """Whether a call that is made `now` follows closely on another."""
        return now < max(self.awake_until, self.ends + costs.seconds_stay)

    def shares(self, now: float, gained: float, costs: Costs) -> bool:
        """Whether a call that gains so much by threads that are awake is worth a region `now`."""
        if now < self.awake_until:
            return True
        is_next = now < self.ends + costs.seconds_stay or self.saved < 0
        self.saved = gained + (self.saved if is_next else 0.0)
        return self.saved >= costs.seconds_asleep

    def ended(self, now: float, side: int, costs: Costs) -> None:
        """Note that a call on that side ends `now`."""
        self.ends = now
        if side == SHARED:
            self.awake_until, self.saved = now + costs.seconds_stay, 0.0

    def asks(self, now: float, gained: float, costs: Costs) -> bool:
        """Whether a call that was given all threads finds out first if they have cores of their own: what it may lose
        is more than what it gains, and it is a while since the last time, or they had none then."""
        return (now - self.asked > SECONDS_ASK or self.debt > 1) and gained < LARGE * costs.seconds_asleep

    def answered(self, now: float, are_free: bool, costs: Costs) -> None:
        """Note what came of it: where threads have no cores of their own, calls are in debt."""
        self.asked = now
        if are_free:
            self.debt = 1
            return
        self.awake_until, self.ends, self.saved = float("-inf"), now, -self.debt * costs.seconds_asleep
        self.debt = min(2 * self.debt, MOST_DEBT)
