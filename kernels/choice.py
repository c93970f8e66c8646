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

UNEVEN = 0.1
"""Share of a call's work by which the last thread is late: parts are not quite equal, and threads share the memory."""

SECONDS_CHOICE = 1.5e-6
"""What a choice takes itself; a call that gains less stays on one thread."""


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
