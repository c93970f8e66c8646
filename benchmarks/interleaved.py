"""All candidates of a case, round by round in one process, the order rotated: what drifts hits all of them alike.

>>> ticks = iter(range(1000))
>>> taken = interleave({"a": lambda: None, "b": lambda: None}, Policy(rounds=5), clock=lambda: next(ticks))
>>> median_ratio(taken["b"], taken["a"])
(1.0, 1.0, 1.0)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from kernels.threads import this_thread
from workbench.measure.clock import median_interval

Call = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Policy:
    """Times of measuring. In each round a candidate runs unmeasured for `seconds_settle`, then calls for a sample.

    Settling lets the threads of the candidate before it go to sleep and brings its own data into the caches. A
    candidate `slow` times slower than the fastest has only `rounds_slow` rounds. After `seconds_most` no round is
    begun, but there are `rounds_least`.
    """

    seconds_warmup: float = 0.01
    seconds_settle: float = 0.002
    seconds_sample: float = 0.004
    rounds: int = 9
    rounds_least: int = 5
    seconds_most: float = 3.0
    rounds_slow: int = 3
    slow: float = 12.0


@dataclass
class CallTimings:
    """Seconds per call by round, calls per sample, and how often the project's kernels used all threads."""

    calls: int = 1
    seconds: dict[int, float] = field(default_factory=dict)
    shared: int = 0


def _time_calls(call: Call, count: int, clock: Clock) -> float:
    """Return the mean seconds per call of `count` calls, by `clock`."""
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


Timed = Callable[[Call, int, Clock], float]
"""Gives the mean seconds of so many calls."""


def _estimate(call: Call, policy: Policy, clock: Clock, timed: Timed) -> float:
    """Warm up for `policy.seconds_warmup`, at least two calls; return the seconds of the fastest call."""
    start = clock()
    best = min(timed(call, 1, clock) for _ in range(2))
    while clock() - start < policy.seconds_warmup:
        best = min(best, timed(call, 1, clock))
    return max(best, 1e-9)


def _settle(call: Call, estimate: float, policy: Policy) -> None:
    """Repeat a call untimed for about `policy.seconds_settle`, so that caches hold its data; slow calls not at all."""
    for _ in range(round(policy.seconds_settle / estimate) or int(estimate < 10 * policy.seconds_settle)):
        call()


def interleave(
    calls: Mapping[str, Call], policy: Policy, clock: Clock = perf_counter, timed: Timed = _time_calls
) -> dict[str, CallTimings]:
    """Warm up and calibrate every call, then time all in interleaved rounds; return {name: timings}.

    The order is rotated by one each round. Slow candidates have fewer rounds, and after `policy.seconds_most` none is
    begun, as the policy says. `timed` returns the mean seconds of a number of calls.
    """
    estimates = {name: _estimate(call, policy, clock, timed) for name, call in calls.items()}
    times = {name: CallTimings(max(1, round(policy.seconds_sample / each))) for name, each in estimates.items()}
    limit = policy.slow * min(estimates.values(), default=0.0)
    names, start = list(calls), clock()
    for number in range(policy.rounds):
        if number >= policy.rounds_least and clock() - start > policy.seconds_most:
            break
        turn = number % max(len(names), 1)
        for name in names[turn:] + names[:turn]:
            if number >= policy.rounds_slow and estimates[name] > limit:
                continue
            _settle(calls[name], estimates[name], policy)
            before = this_thread.calls_parallel
            times[name].seconds[number] = timed(calls[name], times[name].calls, clock)
            times[name].shared += this_thread.calls_parallel - before
    return times


def median_ratio(taken: CallTimings, reference: CallTimings) -> tuple[float, float, float]:
    """Return (median, low, high) of the time ratio `taken` / `reference` over common rounds, with a rank interval."""
    both = [number for number in taken.seconds if number in reference.seconds]
    return median_interval([taken.seconds[number] / reference.seconds[number] for number in both])
