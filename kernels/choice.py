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

>>> costs = Costs(seconds_awake=2e-6, seconds_asleep=50e-6, seconds_stay=40e-6, seconds_work=1e-10)
>>> count, state = choose(20e-6, 2, 0.0, ASLEEP, costs)
>>> count, round(1e6 * state.saved)
(1, 6)
>>> choose(1e-3, 2, 0.0, ASLEEP, costs)[0]
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


def gain(seconds: float, threads: int, costs: Costs) -> float:
    """Seconds that a call of so many on one thread gains in a region of `threads` that are awake; negative: loses."""
    return seconds * (1 - 1 / threads - UNEVEN) - costs.seconds_awake


def choose(seconds: float, threads: int, now: float, state: State, costs: Costs) -> tuple[int, State]:
    """(1 or `threads`, the state after the call) for a call at `now` that takes `seconds` on one thread."""
    gained = gain(seconds, threads, costs)
    if gained <= 0:
        return 1, state
    shared = seconds - gained  # in a region whose threads are awake
    if now < state.awake_until:
        return threads, State(now + shared + costs.seconds_stay, now + shared, 0.0, state.asked)
    is_next = now < state.ends + costs.seconds_stay or state.saved < 0
    saved = gained + (state.saved if is_next else 0.0)
    if saved < costs.seconds_asleep:
        return 1, State(state.awake_until, now + seconds, saved, state.asked)
    ends = now + costs.seconds_asleep + shared
    return threads, State(ends + costs.seconds_stay, ends, 0.0, state.asked)


def ended(now: float, state: State) -> State:
    """The state once it is known that its last call ended `now`, which `choose` reckoned: entries whose operands come
    from far take twice as long, and the call after would seem to follow a pause in which its threads fell asleep."""
    late = now - state.ends
    awake_until = state.awake_until + late if state.awake_until >= state.ends else state.awake_until
    return State(awake_until, now, state.saved, state.asked)


def asks(seconds: float, threads: int, now: float, state: State, costs: Costs) -> bool:
    """Whether a call that was given `threads` finds out first if they have cores of their own: what it may lose is more
    than what it gains, and it is a while since the last time."""
    return now - state.asked > SECONDS_ASK and gain(seconds, threads, costs) < DEBT * costs.seconds_asleep


def answered(are_free: bool, now: float, state: State, costs: Costs) -> State:
    """The state once that is known: as it was, or in debt."""
    if are_free:
        return state._replace(asked=now)
    return State(float("-inf"), now, -DEBT * costs.seconds_asleep, now)
