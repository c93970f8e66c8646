"""Choice of serial or parallel execution of a call, from its estimated time and the load of the machine.

A parallel call pays for entering its region: little while the threads are awake, which they stay for some time after a
region, and fifty times as much if they sleep and have to be woken. A call whose work is worth an entry with awake
threads finds them asleep at first and stays on one thread; the time that it would have gained is credited. Calls in
close succession accumulate credit, and once it covers the cost of waking, the threads are woken and stay awake. Calls
with pauses in between never wake a thread unless each gains more than waking costs.

If other programs hold the cores, a parallel call waits for the thread that is held up. Once a second the CPU time of
other programs is read; while too few cores are left for the threads, calls stay on one.
"""

import os
from time import perf_counter, process_time

from kernels import choice
from kernels.choice import SECONDS_CHOICE, Costs, gain

SECONDS_LOOK, SECONDS_FIRST = 1.0, 0.1
"""Seconds after which the load of the machine is read again, and after the first time; it takes 50 us with 2 cores."""

HELD = 0.25
"""Share of a core that other programs may hold while calls still use the threads of all cores."""


class Load:
    """Cores that other programs held of those on which this process may run, between the last two looks."""

    def __init__(self) -> None:
        """Start without a look: other programs are taken to hold nothing until the second one."""
        self._at, self._others, self._held, self._cores = float("-inf"), 0.0, 0.0, os.cpu_count() or 1
        self._interval = 0.0

    def leaves(self, count: int, now: float) -> bool:
        """Return whether other programs leave cores to `count` threads; reads their CPU time once a second.

        `now` is the time (s) of `perf_counter`.
        """
        if (passed := now - self._at) >= self._interval:
            others, self._cores = self._seconds_of_others()
            self._held = max((others - self._others) / passed, 0.0)
            self._interval = SECONDS_LOOK if self._interval else SECONDS_FIRST
            self._at, self._others = now, others
        return self._cores - self._held > count - HELD

    @staticmethod
    def _seconds_of_others() -> tuple[float, int]:
        """Return the CPU seconds of other programs so far on the cores of this process, and the count of these."""
        import psutil  # most calls are too short for a second thread, and never look

        times = psutil.cpu_times(percpu=True)
        own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(times))
        held = [times[core] for core in own if core < len(times)]
        busy = sum(each.user + each.system + getattr(each, "nice", 0) + getattr(each, "steal", 0) for each in held)
        return busy - process_time(), len(held)


load = Load()
"""The load of the machine, for all threads of this process."""


class Choices:
    """Choices of one thread: until when the other threads are awake, when its last call ended, and the credit."""

    __slots__ = ("_is_parallel", "_stay", "awake_until", "ends", "saved")

    def __init__(self) -> None:
        """Start as a thread that has made no call: nothing awake, no credit."""
        self.awake_until = self.ends = float("-inf")
        self.saved, self._stay, self._is_parallel = 0.0, 0.0, False

    def begin(self, work: int, count: int, costs: Costs) -> bool:
        """Return whether a call of `work` multiply-adds that starts now should run on `count` threads, then awake.

        If the caller knows when the call ends, it calls `ended` then; the estimated end is recorded meanwhile.
        """
        seconds = work * costs.seconds_work
        gained = gain(seconds, count, costs)
        if gained <= SECONDS_CHOICE:  # too short to be a pause between others
            self._is_parallel = False
            return False
        now = perf_counter()
        self._is_parallel = self._pays(now, gained, costs) and load.leaves(count, now)
        if self._is_parallel and now >= self.awake_until:
            choice.wake(count)
            now = perf_counter()
        self._stay = costs.seconds_stay
        self._end(now + seconds - (gained if self._is_parallel else 0.0))
        return self._is_parallel

    def ended(self) -> None:
        """Record that the call that was begun last ends now."""
        self._end(perf_counter())

    def _end(self, now: float) -> None:
        """Record that the last call ends at time `now`; after a parallel one threads stay awake for a while."""
        self.ends = now
        if self._is_parallel:
            self.awake_until, self.saved = now + self._stay, 0.0

    def _pays(self, now: float, gained: float, costs: Costs) -> bool:
        """Return whether a call at `now` that gains `gained` seconds on awake threads should use them.

        Adds the gain to the credit, which starts from 0 after a pause; the call pays once that covers waking threads.
        """
        if now < self.awake_until:
            return True
        self.saved = gained + (self.saved if now < self.ends + costs.seconds_stay else 0.0)
        return self.saved >= costs.seconds_asleep
