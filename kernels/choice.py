"""The choice of one thread or all of them for a call, from measured costs: a pure function of figures.

A parallel call pays for entering its region: little where the threads are awake, for they wait so for some time after a
region, and fifty times as much where they sleep and each has to be woken. So a call whose work is worth an entry awake
finds the threads asleep first, and stays on one thread; what it would have gained is put by. Calls that follow each
other closely save up so, and once they have the price of waking, the threads are woken and stay awake. A call that
gains more than waking costs pays for it at once. It is the rule of who rents skis until he has paid their price: what
is spent in vain is at most what was spent before, and calls with pauses between them never wake a thread.

Where another program holds a core, no thread is ever awake there: every region takes as long as waking one. So when
threads have been woken, and every `SECONDS_ASK` after, an empty region is timed first; where it is slow, calls stay on
one thread until they have saved up many times the price.

What a call takes is reckoned from its work at first, and then measured: of calls of about the same work it is known
how long they take on one thread and on all, so that none is shared for long that takes longer so. Where operands come
from memory, or pages are many, it is four times what is reckoned.

>>> costs = Costs(seconds_awake=2e-6, seconds_asleep=50e-6, seconds_stay=40e-6, seconds_work=1e-10)
>>> count, state = choose(expected(Pace(20e-6), 2, costs), 2, 0.0, ASLEEP, costs)
>>> count, round(1e6 * state.saved)
(1, 6)
>>> choose(expected(Pace(1e-3), 2, costs), 2, 0.0, ASLEEP, costs)[0]
2
"""

from dataclasses import dataclass
from typing import NamedTuple

UNEVEN = 0.1
"""Share of a call's work by which the last thread is late: parts are not quite equal, and threads share the memory."""


SECONDS_ASK = 2e-3
"""Time after which it is asked again whether threads have cores of their own; asking takes 4 us."""

BUSY = 8
"""An empty region that takes so many times as long as one of threads that are awake has no cores of its own."""

DEBT = 10
"""What is to be saved after such a region, beside the price of waking the threads, in such prices."""

DRIFT = 1 / 4096
"""Part by which what was measured of the other way falls with each call, so that it is measured again some day."""


@dataclass(frozen=True)
class Costs:
    """What a machine takes, in seconds: to enter a region of so many threads that are awake, to enter one of sleeping
    threads; how long threads stay awake after a region; and a multiply-add of vector code on one thread."""

    seconds_awake: float
    seconds_asleep: float
    seconds_stay: float
    seconds_work: float


class State(NamedTuple):
    """What is known from the calls before: until when the threads are awake, when the last call that was worth a
    region ends, what such calls have saved up, and when the threads were last asked for. Times are of one clock."""

    awake_until: float
    ends: float
    saved: float
    asked: float


ASLEEP = State(float("-inf"), float("-inf"), 0.0, float("-inf"))
"""Of a thread that has made no call."""


SECONDS_CHOICE = 1.5e-6
"""What a choice takes itself, and what is learned from its call; a call that gains less stays on one thread."""


class Pace(NamedTuple):
    """Seconds that calls of about the same work take: on one thread, and shared by threads that are awake, 0 where that
    is not known yet."""

    alone: float
    shared: float = 0.0


def expected(pace: Pace, threads: int, costs: Costs) -> Pace:
    """The pace with what is not known yet reckoned."""
    if pace.shared:
        return pace
    return Pace(pace.alone, pace.alone - gain(pace.alone, threads, costs))


def pays(pace: Pace) -> bool:
    """Whether calls of that pace, of which all is known, gain by more threads that are awake."""
    return pace.alone - pace.shared > SECONDS_CHOICE


def learned(pace: Pace, taken: float, threads: int) -> Pace:
    """The pace after a call that took so long: a quarter of the way there, and no further than from half to twice what
    was expected, for another program may have held the core. Of calls that were shared all must be known.

    >>> learned(Pace(8e-6, 6e-6), 5e-3, 2).shared
    7.5e-06
    """
    alone, shared = pace
    if threads == 1:
        return Pace(_nearer(alone, taken), shared * (1 - DRIFT))
    return Pace(alone * (1 - DRIFT), _nearer(shared, taken))


def _nearer(known: float, taken: float) -> float:
    return known + (min(max(taken, known / 2), 2 * known) - known) / 4


def gain(seconds: float, threads: int, costs: Costs) -> float:
    """Seconds that a call of so many on one thread gains in a region of `threads` that are awake; negative: loses."""
    return seconds * (1 - 1 / threads - UNEVEN) - costs.seconds_awake


def choose(pace: Pace, threads: int, now: float, state: State, costs: Costs) -> tuple[int, State]:
    """(1 or `threads`, the state after the call) for a call at `now` of that pace, of which all is known."""
    seconds, shared = pace
    gained = seconds - shared
    if not pays(pace):
        return 1, State(state.awake_until, now + seconds, state.saved, state.asked)
    if now < state.awake_until:
        return threads, State(now + shared + costs.seconds_stay, now + shared, 0.0, state.asked)
    is_next = now < state.ends + costs.seconds_stay or state.saved < 0
    saved = gained + (state.saved if is_next else 0.0)
    if saved < costs.seconds_asleep:
        return 1, State(state.awake_until, now + seconds, saved, state.asked)
    ends = now + costs.seconds_asleep + shared
    return threads, State(ends + costs.seconds_stay, ends, 0.0, state.asked)


def ended(now: float, state: State, threads: int) -> State:
    """The state once it is known that its last call, on so many threads, ended `now`, which `choose` reckoned: entries
    whose operands come from far take twice as long, and the call after would seem to follow a pause."""
    awake_until = state.awake_until + (now - state.ends if threads > 1 else 0.0)
    return State(awake_until, now, state.saved, state.asked)


def asks(pace: Pace, now: float, state: State, costs: Costs) -> bool:
    """Whether a call that was given all threads finds out first if they have cores of their own: what it may lose is
    more than what it gains, and it is a while since the last time."""
    return now - state.asked > SECONDS_ASK and pace.alone - pace.shared < DEBT * costs.seconds_asleep


def answered(are_free: bool, now: float, state: State, costs: Costs) -> State:
    """The state once that is known: as it was, or in debt."""
    if are_free:
        return state._replace(asked=now)
    return State(float("-inf"), now, -DEBT * costs.seconds_asleep, now)
