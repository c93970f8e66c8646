"""Rates of a core with data in its first cache: whatever does the same things is no faster.

call   calls of a compiled function with four arrays, from Python
exp    numbers of float32 through exp, numbers that are not positive (`kernels.vector.elementary`)
log    the same through log(1 + u)
pass   numbers that are read, multiplied and written
entry  entries of a sum: an index and a value are read, a number that the index names is multiplied and added
row    rows that are begun: where its entries start and end is read, a sum of one entry is written
place  entries that are put where a counter says, which then counts on
scan   numbers of a running sum, each of which waits for the one before
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter

import numpy as np

from kernels.threads import compiled, compiled_sums
from kernels.vector.elementary import exp_of_negative, log1p_of_unit

NUMBERS = 1024
"""Numbers of an array: all arrays together fit a first cache of 32 KiB."""

REPEATS = 64
"""Times that a loop is run in a call, so that the call itself is a small part."""

CALL = "call"


@compiled
def _nothing(places, starts, x, y):
    pass


@compiled
def _exp(places, starts, x, y):
    for k in range(y.size):
        y[k] = exp_of_negative(x[k])


@compiled
def _log(places, starts, x, y):
    for k in range(y.size):
        y[k] = log1p_of_unit(-x[k])


@compiled
def _pass(places, starts, x, y):
    for k in range(y.size):
        y[k] = x[k] * np.float32(0.5)


@compiled_sums
def _sum_of_entries(places, x):
    total = np.float32(0)
    for k in range(places.size):
        total += x[k] * x[np.uint64(places[k])]
    return total


@compiled
def _entry(places, starts, x, y):
    y[0] = _sum_of_entries(places, x)


@compiled
def _row(places, starts, x, y):
    for r in range(starts.size - 1):
        first, last = np.uint64(starts[r]), np.uint64(starts[r + 1])
        y[r] = x[first] * x[np.uint64(places[last - np.uint64(1)])]


@compiled
def _place(places, starts, x, y):
    for k in range(places.size):
        key = np.uint64(places[k])
        y[np.uint64(starts[key]) & np.uint64(NUMBERS - 1)] = x[k]
        starts[key] += 1


@compiled
def _scan(places, starts, x, y):
    total = np.int32(0)
    for k in range(starts.size):
        count = starts[k]
        starts[k] = total
        total += count & np.int32(1)


LOOPS: dict[str, Callable] = {
    "exp": _exp,
    "log": _log,
    "pass": _pass,
    "entry": _entry,
    "row": _row,
    "place": _place,
    "scan": _scan,
}


def _repeated(loop: Callable) -> Callable:
    def repeated(places, starts, x, y):
        for _ in range(REPEATS):
            loop(places, starts, x, y)

    return compiled(repeated)


def rates(seconds: float = 0.004) -> Iterator[tuple[str, float]]:
    """(kind, how many a second on one core), the fastest of about `seconds` a kind."""
    random = np.random.default_rng(0)
    places = random.integers(0, NUMBERS, NUMBERS, np.int32)
    x, y = -random.random(NUMBERS, np.float32), np.zeros(NUMBERS, np.float32)
    starts = np.concatenate(([0], np.cumsum(random.integers(1, 3, NUMBERS // 2)))).astype(np.int32)
    yield CALL, 1 / _fastest(functools.partial(_nothing, places, starts, x, y), seconds)
    for kind, loop in LOOPS.items():
        own = np.zeros(NUMBERS, np.int32) if kind in ("place", "scan") else starts
        done = {"row": own.size - 1, "scan": own.size}.get(kind, NUMBERS) * REPEATS
        yield kind, done / _fastest(functools.partial(_repeated(loop), places, own, x, y), seconds)


def _fastest(call: Callable[[], object], seconds: float) -> float:
    """Seconds of the fastest call."""
    call()
    best, end = float("inf"), perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def seconds_of(work: Mapping[str, float], measured: Mapping[str, float], threads: int) -> float:
    """Seconds of a call that does so much of each kind, with the rates measured, on so many cores; 0 without rates.

    >>> seconds_of({"exp": 4e6}, {"exp": 1e9, "call": 1e6}, threads=2)
    0.002001
    """
    if not measured:
        return 0.0
    return 1 / measured[CALL] + sum(count / measured[kind] for kind, count in work.items()) / threads
