"""The choices that a thread makes of one thread or all for its calls, by the clock: `kernels.choice` says how."""

from time import perf_counter

from kernels import choice, entry_costs
from kernels.choice import Costs, Pace

Key = tuple[int, int, int]
"""Threads, and work to a fourth: calls of one key are taken to be alike."""

UNTIMED = 15
"""Calls of the same work that follow one which gains nothing, and are not timed: that takes as long as a short call."""

NEAR = 1.25
"""Of what was expected a call takes so much at most, where it is known what such calls take."""

MOST_KEPT = 1024
"""Numbers of work that are remembered for it."""

Call = tuple[int, Key, Pace, Pace, int, bool, float]
"""The call that is being made: its work, what it is known by, its pace as known and as expected, its threads, whether
it woke them, and when it began. A tuple alone, for it is made anew with every call."""


class Choices:
    """The choices of one thread: their state, and what calls were measured to take, by their work."""

    _call: Call

    def __init__(self) -> None:
        self.state = choice.ASLEEP
        self.paces: dict[Key, Pace] = {}
        self._untimed: dict[int, int] = {}

    def threads(self, work: int, count: int, costs: Costs, timed: bool) -> int:
        """1 or `count` threads, which are awake then, for a call of `work` multiply-adds that is now made; where it is
        `timed`, by what such calls took, and `ended` is to follow."""
        now, bits = perf_counter(), work.bit_length()
        key = count, bits, work >> max(bits - 3, 0)
        known = (self.paces.get(key) if timed else None) or Pace(work * costs.seconds_work)
        pace = choice.expected(known, count, costs)
        is_awake = now < self.state.awake_until
        chosen, self.state = choice.choose(pace, count, now, self.state, costs)
        if chosen > 1 and not self._are_ready(pace, count, is_awake, now, costs):
            chosen, now = 1, perf_counter()
        self._call = work, key, known, pace, chosen, chosen > 1 and not is_awake, now
        return chosen

    def stays(self, work: int) -> bool:
        """Whether a call of that work was found to gain nothing a few calls ago, so that it is not asked again yet."""
        left = self._untimed.get(work, 0)
        if left:
            self._untimed[work] = left - 1
        return left > 0

    def _are_ready(self, pace: Pace, count: int, is_awake: bool, now: float, costs: Costs) -> bool:
        """Whether so many threads are awake, which are woken for it, and have cores of their own as far as asked."""
        if choice.asks(pace, now, self.state, costs):
            are_free = entry_costs.seconds_awake(count) < choice.BUSY * costs.seconds_awake
            self.state = choice.answered(are_free, perf_counter(), self.state, costs)
            return are_free
        if not is_awake:
            entry_costs.wake(count)
        return True

    def ended(self) -> None:
        """Learn what the call took that ends now."""
        (work, key, known, pace, threads, woke, start), now = self._call, perf_counter()
        if not woke:
            self.paces[key] = choice.learned(known if threads == 1 else pace, now - start, threads)
            if now - start < NEAR * pace.alone and not choice.pays(pace):
                if len(self._untimed) >= MOST_KEPT:
                    self._untimed.clear()
                self._untimed[work] = UNTIMED
        self.state = choice.ended(now, self.state, threads)
