"""Costs of entering a parallel region on this machine, measured once and stored next to the compiled code.

Measured on 2 cores of an EPYC 9004, guests of a shared host: entering takes 1.7 us while threads are awake, which they
are for 45 us; 0.1, 1 and 5 ms later it takes 40, 70 and 160 us. The stored file is keyed by processor, cores, threading
layer, threads and the environment variables that tell OpenMP how to wait.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import numba
import numpy as np

from kernels._compat import numba_internals
from kernels._compat.numba_internals import each_part
from kernels.code_cache import folder_of, inlined, njit

# Choice of serial or parallel execution from measured call times. No clock is read here.
#
# A parallel call pays for entering its region: little while the threads are awake, which they stay for some time
# after a region, and fifty times as much if they sleep and have to be woken. A call whose work is worth an entry
# with awake threads finds them asleep at first and stays on one thread; the time that it would have gained is
# credited. Calls in close succession accumulate credit, and once it covers the cost of waking, the threads are woken
# and stay awake. A call that gains more than waking costs pays for it at once. This is the ski rental rule: at most
# as much is wasted as was spent before, and calls with pauses in between never wake a thread.
#
# If another program occupies a core, threads are never awake there: every region costs as much as waking. So after
# threads were woken, and every `SECONDS_ASK` thereafter, an empty region is timed first; if it is slow, calls stay
# on one thread until they have accumulated many times the cost.
#
# Times of calls of about equal work are estimated first and then measured, serial and parallel; calls use the side
# that is faster. The other side is tried again occasionally by a few calls, since a disturbance may have passed: the
# longer it was found slower the more rarely, and soon if calls take longer than before.
#
# >>> costs = Costs(seconds_awake=2e-6, seconds_asleep=50e-6, seconds_stay=40e-6, seconds_work=1e-10)
# >>> team = Team()
# >>> team.should_run_parallel(0.0, gain(20e-6, 2, costs), costs), round(1e6 * team.saved)
# (False, 6)
# >>> team.should_run_parallel(1.0, gain(1e-3, 2, costs), costs)
# True


UNEVEN = 0.1
"""Share of a call's work by which the last thread is late: parts are not quite equal, and threads share the memory."""

SECONDS_ASK = 2e-3
"""Time after which it is asked again whether threads have cores of their own; asking takes 4 us."""

BUSY = 8
"""An empty region that takes so many times as long as one of threads that are awake has no cores of its own."""

MOST_DEBT = 32
"""What is to be saved after such a region, in addition to the price of waking the threads, in such prices, at most: one
price after the first, for a core is held up for a moment everywhere, and twice as many after each that follows."""

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
    """Costs of a machine in seconds: entering a region with awake threads, with sleeping threads; how long threads stay
    awake
    after a region; one multiply-add of vector code on one thread.
    """

    seconds_awake: float
    seconds_asleep: float
    seconds_stay: float
    seconds_work: float


def gain(seconds: float, threads: int, costs: Costs) -> float:
    """Return the seconds that a call of `seconds` on one thread gains on `threads` awake threads.

    Negative if it loses.
    """
    return seconds * (1 - 1 / threads - UNEVEN) - costs.seconds_awake


class Pace:
    """Serial and parallel times of calls of about equal work, the side that calls are on, and when the other is tried.

    `seconds` are estimated from those on one thread until they are measured; `tried` is the side being probed, or None.
    `is_paid` states that waking the threads is covered by a probe; `rests` counts calls that need not be timed.
    """

    __slots__ = (
        *("is_paid", "rests", "seconds", "side", "tried"),
        *("_before", "_calls", "_costs", "_left", "_patience", "_settled", "_threads"),
    )

    def __init__(self, seconds_alone: float, threads: int, costs: Costs) -> None:
        """Start from an estimate: a call takes `seconds_alone` on one thread.

        The parallel time follows from `costs`.
        """
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
        """Return the seconds that a call gains on awake threads; negative if it loses."""
        return self.seconds[ALONE] - self.seconds[SHARED]

    @property
    def most_alone(self) -> float:
        """Return the seconds of a call on one thread: as measured, before that twice the estimate, which may be low."""
        return self.seconds[ALONE] * (1 if self._calls[ALONE] else 2)

    def next_side(self, follows: bool) -> int:
        """Return the side, ALONE or SHARED, of the next call; may start a probe of the other side or cancel one.

        `follows` states that the call closely follows another, so that threads are awake.
        """
        if self.tried is None:
            if self._left > 0 or not follows or not self._may_gain():
                return self.side
            self.tried, self.is_paid = 1 - self.side, True
            self._calls[self.tried] = 0
        elif self.tried == SHARED and not follows:  # threads would have to be woken for each call
            self.cancel_probe()
            return self.side
        return self.tried

    def cancel_probe(self) -> None:
        """Cancel a probe because threads sleep or have no cores of their own.

        The next one comes after twice the time.
        """
        self.tried, self.is_paid = None, False
        self._patience = min(2 * self._patience, MOST_PATIENCE)
        self._wait()

    def took(self, side: int, seconds: float) -> None:
        """Record that a call took `seconds` on a side, ALONE or SHARED, and choose the side of the next calls.

        The first call after a change of side is not counted.
        """
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
        """Update the estimated seconds of a call on a side by `taken`: minimum of the first calls, then an average.

        A new time moves the average by a quarter of the difference, limited to between half and 1.25 times the
        estimate, since another program may have occupied the core.
        """
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
        """Count down `seconds` of a call on the current side to the next probe.

        Start one at once if calls became slower. Sets `rests`, the calls that need not be timed.
        """
        known = self.seconds[self.side]
        if known > DEPARTS * self._settled:
            self._settle(PATIENCE)
            self._left = 0.0
        is_idle = self.side == ALONE and self._calls[ALONE] == TRIAL and known < SHORT
        self._left -= seconds * (1 + UNTIMED if is_idle else 1)
        self.rests = UNTIMED if is_idle and (self._left > 0 or not self._may_gain()) else 0

    def _faster(self) -> int:
        """Return the faster of ALONE (one thread) and SHARED (all threads); the current one is favoured by a margin."""
        margin = MARGIN * self.seconds[ALONE]
        return SHARED if self.gained > SECONDS_CHOICE + (margin if self.side == ALONE else -margin) else ALONE

    def _may_gain(self) -> bool:
        """Return whether the other side could be faster if threads shared the work without loss."""
        most = self.seconds[ALONE] * (1 - 1 / self._threads)
        return self.side == SHARED or most > SECONDS_CHOICE + self._costs.seconds_awake

    def _settle(self, patience: int) -> None:
        """Keep the current side for `patience` probe durations, and remember its seconds per call for comparison."""
        self._patience, self._settled = patience, self.seconds[self.side]
        self._wait()

    def _wait(self) -> None:
        """Set the time until the next probe: the patience times the duration of a probe of the other side."""
        other = self.seconds[1 - self.side]
        self._left = self._patience * (self._costs.seconds_asleep + (1 + TRIAL) * other)


class Team:
    """State of the threads as seen by the calls of one thread: until when they are awake, when the last call worth a
    region
    ended, the credit accumulated, when threads were last tested, and the cost of a slow test in multiples of waking.
    Times
    are of one clock.
    """

    __slots__ = ("asked", "awake_until", "debt", "ends", "saved")

    def __init__(self) -> None:
        """Start as a thread that has made no call: nothing awake, no credit."""
        self.awake_until = self.ends = self.asked = float("-inf")
        self.saved = 0.0
        self.debt = 1

    def follows(self, now: float, costs: Costs) -> bool:
        """Return whether a call at time `now` (s) closely follows another, so that threads may be awake."""
        return now < max(self.awake_until, self.ends + costs.seconds_stay)

    def should_run_parallel(self, now: float, gained: float, costs: Costs) -> bool:
        """Return whether a call at time `now` that gains `gained` seconds on awake threads should be parallel.

        Adds the gain to the credit `saved`, which starts anew after a pause; parallel once it covers waking the
        threads.
        """
        if now < self.awake_until:
            return True
        is_next = now < self.ends + costs.seconds_stay or self.saved < 0
        self.saved = gained + (self.saved if is_next else 0.0)
        return self.saved >= costs.seconds_asleep

    def ended(self, now: float, side: int, costs: Costs) -> None:
        """Record that a call on a side, ALONE or SHARED, ends at time `now`.

        After SHARED threads stay awake for a while.
        """
        self.ends = now
        if side == SHARED:
            self.awake_until, self.saved = now + costs.seconds_stay, 0.0

    def asks(self, now: float, gained: float, costs: Costs) -> bool:
        """Return whether a parallel call should first test if threads have cores of their own.

        The call is at time `now` (s) and gains `gained` seconds on awake threads: it may lose more than that by
        `costs`, and the last test was long ago or failed.
        """
        return (now - self.asked > SECONDS_ASK or self.debt > 1) and gained < LARGE * costs.seconds_asleep

    def answered(self, now: float, are_free: bool, costs: Costs) -> None:
        """Record the result of the test at time `now`.

        If cores are not free, credit is negative and its limit is doubled.
        """
        self.asked = now
        if are_free:
            self.debt = 1
            return
        self.awake_until, self.ends, self.saved = float("-inf"), now, -self.debt * costs.seconds_asleep
        self.debt = min(2 * self.debt, MOST_DEBT)


ENTRIES = 4096
"""Entries of the loop that tells how fast a thread is."""

WORK_OF_ENTRY = 3.25
"""What an entry of it counts for in the measure of `threads.is_serial`, whose unit this settles."""

SECONDS_IDLE = 4e-3
"""Time after which a region is entered that finds its threads asleep, as long as a training may be busy otherwise."""

GAPS = (10e-6, 20e-6, 40e-6, 80e-6, 160e-6, 320e-6)
"""Times after which a region is entered to find how long its threads stay awake."""

TIMES = 9
"""Times that a cost is measured."""

DISTURBED = 0.1
"""Share of the cost of waking threads from which on the entry of a region whose threads are awake is not believed."""


SPACE = 8
"""Numbers from one thread's to the next one's: a cache line."""

TURNS = 30_000
"""Turns, some 130 us, that a thread waits for the others to begin: waking one takes about half of it."""


@inlined
def _begin(part, begun, turns):
    """Mark part `part` as begun in `begun` int64 [8 * parts]; wait until all have begun, at most `turns` loops."""
    begun[SPACE * part] = 1
    for turn in range(turns):
        missing = 0
        for other in range(begun.size // SPACE):
            missing += begun[SPACE * other] == 0
        if missing == 0:
            break
        begun[SPACE * part] = turn + 1  # while something is written, what is read is read again


@njit(nogil=True, error_model="numpy", _nrt=False)
def _region(begun, turns):
    """Run a parallel region of begun.size // 8 parts that wait until all have begun, at most `turns` loops."""
    each_part(_begin, begun.size // SPACE, (begun, turns))


@njit(nogil=True, error_model="numpy")
def _entries(indices, data, x, out):
    """Write data[k] * x[indices[k]] to out [z] for all k: a loop whose time per entry is measured.

    data, out [z] and x [D] are floats, indices int [z] in [0, D).
    """
    for k in range(indices.size):
        out[k] = data[k] * x[np.uint64(indices[k])]


@functools.cache
def _enter(threads: int) -> Callable[[], object]:
    """Return a function that runs an empty parallel region of 4 * `threads` parts; cached."""
    numba_internals.layer()  # code is linked with its functions
    return functools.partial(_region, np.zeros(4 * threads * SPACE, np.int64), 0)


def wake(threads: int) -> None:
    """Wake `threads` threads and busy-wait until they are awake.

    Waking a thread takes longer than a thread spins at the end of a region. Waking threads by useful work would let the
    caller fall asleep there, and the others while it is woken: every call would pay for both.
    """
    numba_internals.layer()  # code is linked with its functions
    _region(np.zeros(threads * SPACE, np.int64), TURNS)


def seconds_awake(threads: int) -> float:
    """Return the seconds to enter a region of `threads` threads once they are awake; wakes them."""
    wake(threads)
    return _seconds(_enter(threads))


def _seconds(call: Callable[[], object]) -> float:
    """Run `call()` and return its wall time in seconds."""
    start = perf_counter()
    call()
    return perf_counter() - start


def _wait(seconds: float) -> None:
    """Keep the core busy for `seconds`, without sleeping."""
    start = perf_counter()
    while perf_counter() - start < seconds:
        pass


def measure(threads: int) -> Costs:
    """Measure the costs for `threads` threads, which must be the count in use; about 60 ms plus two compilations."""
    enter, waking = _enter(threads), functools.partial(wake, threads)
    enter()
    awake, asleep = [], []
    for _ in range(TIMES):
        sleep(SECONDS_IDLE)
        asleep.append(_seconds(waking))
        awake += [_seconds(enter) for _ in range(5)]
    least, usual = min(awake), sorted(asleep)[TIMES // 4]  # others may hold the cores for the rest
    return Costs(least, max(usual, least), _seconds_stay(threads, 2 * least + 1e-6), _seconds_work())


def _seconds_stay(threads: int, most: float) -> float:
    """Return the longest of `GAPS` (s) after which a region of `threads` threads is entered within `most` seconds."""
    enter, stay = _enter(threads), GAPS[0] / 2
    for gap in GAPS:
        taken = []
        for _ in range(5):
            wake(threads)
            _wait(gap)
            taken.append(_seconds(enter))
        if sorted(taken)[len(taken) // 2] > most:
            break
        stay = gap
    return stay


def is_undisturbed(found: Costs) -> bool:
    """Return whether measured costs are worth storing, i.e. no busy program seems to have disturbed the measurement.

    Next to one, threads seem never awake, or asleep at once.
    """
    return found.seconds_awake < DISTURBED * found.seconds_asleep and found.seconds_stay >= GAPS[0]


def _seconds_work() -> float:
    """Return the seconds of one multiply-add, as `threads.is_serial` counts them; measured, about 1 ms."""
    random = np.random.default_rng(0)
    indices, x = random.integers(0, ENTRIES, ENTRIES, np.int32), np.ones(ENTRIES, np.float32)
    call = functools.partial(_entries, indices, x, x, np.empty_like(x))
    call()
    return min(_seconds(call) for _ in range(5 * TIMES)) / (ENTRIES * WORK_OF_ENTRY)


@functools.cache
def costs(threads: int) -> Costs:
    """Return the costs for `threads` threads: read from the cache folder, else measured and stored there; cached.

    Not stored if another program disturbed the measurement or the folder is not writable.
    """
    file = folder_of(_region) / f"region-{_digest(threads)}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):  # not there, or not as it was written: measured again
        return checked(json.loads(file.read_text(encoding="utf-8")))
    measured = measure(threads)
    if not is_undisturbed(measured):
        return measured
    with contextlib.suppress(OSError):  # a folder that nobody may write: the next process measures for itself
        own = file.with_name(f"{file.name}.{os.getpid()}")
        own.write_text(json.dumps(dataclasses.asdict(measured)), encoding="utf-8")
        own.replace(file)
    return measured


def checked(kept: dict[str, float]) -> Costs:
    """Return stored costs as `Costs`; ValueError or TypeError unless `kept` has its four fields as floats in (0, 1)."""
    found = Costs(**kept)
    if not all(isinstance(value, float) and 0 < value < 1 for value in dataclasses.astuple(found)):
        raise ValueError(f"Costs are positive numbers of seconds, not {kept}.")
    return found


def _digest(threads: int) -> str:
    """Return the key of the stored file: 16 hexadecimal digits that identify machine, threads and environment."""
    numba_internals.layer()
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    models = sorted(set(re.findall(r"^(?:model.*|cpu family.*)$", text, re.MULTILINE)))
    told = sorted(item for item in os.environ.items() if item[0].startswith(("OMP_", "GOMP_", "KMP_", "TBB_")))
    machine = models or [platform.processor(), platform.machine()]
    parts = machine, os.cpu_count(), numba.threading_layer(), numba.__version__, threads, told
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
