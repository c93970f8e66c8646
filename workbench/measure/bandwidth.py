"""Bandwidths of this machine: streams of each size, rows gathered from tables of each size, and what its cores do.

>>> rates = [Bandwidth("read", 2**20, 0, 1, 8e10), Bandwidth("gather", 2**20, 64, 1, 4e10)]
>>> limits = Limits(rates, threads=1)
>>> seconds, by = limits.bound(bytes_compulsory=8e6, bytes_gather=8e6, bytes_table=2**20, bytes_row=64)
>>> round(seconds, 9), by
(0.0002, 'gather')
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import threadpoolctl
from numba import prange

from kernels import Kernel, Sizes, threads
from kernels.threads import compiled, compiled_parallel, compiled_sums
from kernels.vector.elementary import exp_of_negative, log1p_of_unit
from workbench.measure import machine

# Rates of a core with data in its first cache: whatever does the same things is no faster.
#
# call   calls of a compiled function with four arrays, from Python
# exp    numbers of float32 through exp, numbers that are not positive (`kernels.vector.elementary`)
# log    the same through log(1 + u)
# pass   numbers that are read, multiplied and written
# entry  entries of a sum: an index and a value are read, a number that the index names is multiplied and added
# row    rows that are begun: where its entries start and end is read, a sum of one entry is written
# place  entries that are put where a counter says, which then counts on
# scan   numbers of a running sum, each of which waits for the one before


NUMBERS = 1024
"""Numbers of an array: all arrays together fit a first cache of 32 KiB."""

REPEATS = 64
"""Times that a loop is run in a call, so that the call itself is a small part."""

CALL = "call"


@compiled
def _nothing(places, starts, x, y):
    """Do nothing with the arrays of a timed loop: measures the overhead of calling a compiled function.

    They are two int32 and two float32 arrays.
    """


@compiled
def _exp(places, starts, x, y):
    """Write exp(x) to y, float32 [n] with x <= 0; times an exponential.

    `places` and `starts` are not used.
    """
    for k in range(y.size):
        y[k] = exp_of_negative(x[k])


@compiled
def _log(places, starts, x, y):
    """Write log(1 - x) to y, float32 [n] with x <= 0; times a logarithm.

    `places` and `starts` are not used.
    """
    for k in range(y.size):
        y[k] = log1p_of_unit(-x[k])


@compiled
def _pass(places, starts, x, y):
    """Write x / 2 to y, float32 [n]; times a pass over an array.

    `places` and `starts` are not used.
    """
    for k in range(y.size):
        y[k] = x[k] * np.float32(0.5)


@compiled_sums
def _sum_of_entries(places, x):
    """Return the float32 sum of x[k] * x[places[k]]; the work of a stored entry.

    `places` is int32 [n], x float32 [n].
    """
    total = np.float32(0)
    for k in range(places.size):
        total += x[k] * x[np.uint64(places[k])]
    return total


@compiled
def _entry(places, starts, x, y):
    """Write the sum over all entries to y[0]; times an entry.

    `places` int32 [n] index x float32 [n]; `starts` is not used.
    """
    y[0] = _sum_of_entries(places, x)


@compiled
def _row(places, starts, x, y):
    """Write one product per row to y, rows by `starts` int32 [rows + 1]; times the start of a row.

    `places` int32 [n] index x, float32 [n].
    """
    for r in range(starts.size - 1):
        first, last = np.uint64(starts[r]), np.uint64(starts[r + 1])
        y[r] = x[first] * x[np.uint64(places[last - np.uint64(1)])]


@compiled
def _place(places, starts, x, y):
    """Write each x[k] to y at the cursor starts[places[k]], which is advanced; times a scattered write.

    All arrays have `NUMBERS` elements; positions wrap around.
    """
    for k in range(places.size):
        key = np.uint64(places[k])
        y[np.uint64(starts[key]) & np.uint64(NUMBERS - 1)] = x[k]
        starts[key] += 1


@compiled
def _scan(places, starts, x, y):
    """Replace `starts`, int32, by running sums in place, of the lowest bits; times a scan.

    The other arguments are not used.
    """
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
    """Return a compiled function of (places, starts, x, y) that runs a compiled loop `REPEATS` times."""

    def repeated(places, starts, x, y):
        """Run the loop `REPEATS` times on the same arrays; the loop may overwrite the float32 array `y`.

        `places` and `starts` are int32, x float32; some loops change `starts`.
        """
        for _ in range(REPEATS):
            loop(places, starts, x, y)

    return compiled(repeated)


def rates(seconds: float = 0.004) -> Iterator[tuple[str, float]]:
    """Yield (name, operations per second on one core) of calls ("call") and of each loop in LOOPS.

    Each is the fastest run in about `seconds`.
    """
    random = np.random.default_rng(0)
    places = random.integers(0, NUMBERS, NUMBERS, np.int32)
    x, y = -random.random(NUMBERS, np.float32), np.zeros(NUMBERS, np.float32)
    starts = np.concatenate(([0], np.cumsum(random.integers(1, 3, NUMBERS // 2)))).astype(np.int32)
    yield CALL, 1 / _fastest_of_instructions(functools.partial(_nothing, places, starts, x, y), seconds)
    for kind, loop in LOOPS.items():
        own = np.zeros(NUMBERS, np.int32) if kind in ("place", "scan") else starts
        done = {"row": own.size - 1, "scan": own.size}.get(kind, NUMBERS) * REPEATS
        yield kind, done / _fastest_of_instructions(functools.partial(_repeated(loop), places, own, x, y), seconds)


def _fastest_of_instructions(call: Callable[[], object], seconds: float) -> float:
    """Return the seconds of the fastest call within about `seconds`, after one warm-up call."""
    call()
    best, end = float("inf"), perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def seconds_of(work: Mapping[str, float], measured: Mapping[str, float], threads: int) -> float:
    """Return the predicted time (s) of a call that does `work` of each kind on `threads` cores; 0 without rates.

    `measured` are operations per second by kind, "call" included.

    >>> seconds_of({"exp": 4e6}, {"exp": 1e9, "call": 1e6}, threads=2)
    0.002001
    """
    if not measured:
        return 0.0
    return 1 / measured[CALL] + sum(count / measured[kind] for kind, count in work.items()) / threads


MIB = 2**20
STREAM_SIZES = (MIB, 8 * MIB, 24 * MIB, 96 * MIB, 512 * MIB)
TABLE_SIZES = (MIB // 32, MIB, 8 * MIB, 32 * MIB, 128 * MIB, 1024 * MIB)
ROW_SIZES = (4, 16, 64, 256, 1024)
LINE = 64
"""Bytes that memory moves at least."""

BYTES_CACHE = 32 * MIB

BYTES_ACTIVE = 256 * MIB
"""What a gather touches before it comes back to a row: more than any cache holds."""


@dataclass(frozen=True)
class Bandwidth:
    """One measured rate. `level` is read, copy, triad or gather; `bytes_table` all arrays; `bytes_row` of a gather.

    Or it is one of `instructions.LOOPS` or a call, of one core; each number then counts for four bytes.
    """

    level: str
    bytes_table: int
    bytes_row: int
    threads: int
    bytes_per_second: float


@compiled
def _sum(a, first, last):
    """Return the sum of a[first:last], uint32, modulo 2**32.

    `a` is uint32, `first` and `last` are indices.
    """
    part = a[first:last]
    total = np.uint32(0)  # whole numbers may be added in any order, so this becomes vector code
    for k in range(part.size):
        total += part[k]
    return total


@compiled_parallel
def _read(a, b, c, bounds, repeats, sums):
    """Read uint32 array `a` `repeats` times, a[bounds[p]:bounds[p + 1]] on thread p; adds to sums[16 * p].

    `bounds` is int64 [threads + 1], `sums` uint32 [16 * threads]; `b` and `c` are not used.
    """
    for p in prange(bounds.size - 1):
        for turn in range(repeats):
            sums[16 * p] += _sum(a, bounds[p], bounds[p + 1]) ^ np.uint32(turn)


@compiled_parallel
def _copy(a, b, c, bounds, repeats, sums):
    """Copy `a` to `b` `repeats` times, a[bounds[p]:bounds[p + 1]] on thread p; `c` and `sums` are not used.

    Both are uint32 of equal length; `bounds` is int64 [threads + 1].
    """
    for p in prange(bounds.size - 1):
        for _ in range(repeats):
            b[bounds[p] : bounds[p + 1]] = a[bounds[p] : bounds[p + 1]]


@compiled
def _triad_part(a, b, c):
    """Write a + 3 * b to c, uint32 arrays of equal length."""
    for k in range(a.size):
        c[k] = a[k] + np.uint32(3) * b[k]


@compiled_parallel
def _triad(a, b, c, bounds, repeats, sums):
    """Write a + 3 * b to c `repeats` times, chunk [bounds[p], bounds[p + 1]) on thread p; `sums` is not used.

    All three are uint32 of equal length; `bounds` is int64 [threads + 1].
    """
    for p in prange(bounds.size - 1):
        part = slice(bounds[p], bounds[p + 1])
        for _ in range(repeats):
            _triad_part(a[part], b[part], c[part])


@compiled
def _gather_lines(table, places, lines):
    """Return the uint32 sum of one element per cache line of the rows of `table` that start at `places`.

    Loads alone, `lines` lines per row, nothing that a product could do without. `table` is uint32, `places` int32
    element indices.
    """
    total = np.uint32(0)
    if lines < 4:
        for k in range(places.size):
            total += table[np.uint64(places[k])]
        return total
    for k in range(places.size):
        at = np.uint64(places[k])
        for _ in range(lines // 4):
            total += table[at] + table[at + np.uint64(16)] + table[at + np.uint64(32)] + table[at + np.uint64(48)]
            at += np.uint64(64)
    return total


@compiled_parallel
def _gather(table, places, lines, bounds, repeats, sums):
    """Read `lines` cache lines at each of `places` in `table`, `repeats` times; adds to sums[16 * p].

    Thread p reads places[bounds[p]:bounds[p + 1]]. `table` is uint32, `places` int32 element indices, `sums` uint32 [16
    * threads].
    """
    for p in prange(bounds.size - 1):
        part = places[bounds[p] : bounds[p + 1]]
        for turn in range(repeats):
            sums[16 * p] += _gather_lines(table, part, lines) ^ np.uint32(turn)


STREAMS = {"read": (_read, 1), "copy": (_copy, 2), "triad": (_triad, 3)}
"""Level -> function and the number of arrays it moves."""


def _fastest(call: Callable[[int], None], bytes_moved: int, seconds: float) -> float:
    """Return bytes per second of the fastest of the calls that fit in `seconds`.

    `call(repeats)` moves `bytes_moved` bytes `repeats` times.
    """
    start = perf_counter()
    call(1)
    once = max(perf_counter() - start, 1e-7)
    repeats = max(1, round(seconds / 8 / once))
    best, end = 0.0, perf_counter() + seconds
    while best == 0.0 or perf_counter() < end:
        start = perf_counter()
        call(repeats)
        best = max(best, repeats * bytes_moved / (perf_counter() - start))
    return best


def measure(
    counts: Iterable[int] = (1,),
    stream_sizes: Iterable[int] = STREAM_SIZES,
    table_sizes: Iterable[int] = TABLE_SIZES,
    row_sizes: Iterable[int] = ROW_SIZES,
    seconds: float = 0.02,
) -> Iterator[Bandwidth]:
    """Measure memory bandwidth and instruction rates of this machine for each thread count in `counts`.

    Yields a `Bandwidth` for each streaming loop and size, each table and row size (bytes), and each instruction loop:
    the fastest run in about `seconds`. The number of threads is restored at the end. Allocates an array of the largest
    size. `stream_sizes` are those of all arrays of a stream, `table_sizes` and `row_sizes` those of gathers.
    """
    stream_sizes, table_sizes, row_sizes = tuple(stream_sizes), tuple(table_sizes), tuple(row_sizes)
    memory = np.ones(max(stream_sizes + table_sizes) // 4, np.uint32)
    before = threads.get_threads()
    try:
        for count in counts:
            threads.set_threads(count)
            for size in stream_sizes:
                yield from (_stream(level, memory, size, count, seconds) for level in STREAMS)
            for size in table_sizes:
                yield from (_rows(memory, size, row, count, seconds) for row in row_sizes)
            for kind, rate in rates(seconds / 4):
                yield Bandwidth(kind, 4 * NUMBERS, 0, count, 4 * rate)
    finally:
        threads.set_threads(before)


def _stream(level: str, memory: np.ndarray, size: int, count: int, seconds: float) -> Bandwidth:
    """Return the bandwidth of the streaming loop `level` on `count` threads, the fastest in about `seconds`.

    Its arrays are views of `memory`, `size` bytes in total.
    """
    function, arrays = STREAMS[level]
    length = size // 4 // arrays
    pieces = [memory[k * length : (k + 1) * length] for k in range(arrays)]
    a, b, c = (pieces * 3)[:3]
    sums, bounds = np.zeros(16 * count, np.uint32), threads.equal_count(length, count)
    rate = _fastest(lambda repeats: function(a, b, c, bounds, repeats, sums), 4 * length * arrays, seconds)
    return Bandwidth(level, size, 0, count, rate)


def _rows(memory: np.ndarray, size: int, row: int, count: int, seconds: float) -> Bandwidth:
    """Return the bandwidth of gathering random rows of `row` bytes from the first `size` bytes of `memory`.

    On `count` threads, the fastest in about `seconds`.
    """
    table, step = memory[: size // 4], max(row // 4, 1)
    picks = min(max(BYTES_ACTIVE // max(row, LINE), 2**17), 2**21) if size > 16 * MIB else 2**16
    places = np.random.default_rng(0).integers(0, table.size // step, picks, np.int32) * np.int32(step)
    lines = max(row // LINE, 1)
    sums, bounds = np.zeros(16 * count, np.uint32), threads.equal_count(picks, count)
    rate = _fastest(lambda repeats: _gather(table, places, lines, bounds, repeats, sums), picks * row, seconds)
    return Bandwidth("gather", size, row, count, rate)


@functools.cache
def last_cache_bytes() -> int:
    """Return the bytes of the last-level cache, `BYTES_CACHE` if the system does not report it; cached."""
    sizes = machine.caches()
    size = re.fullmatch(r"(\d+)([KM]?)", sizes[max(sizes)]) if sizes else None
    return int(size[1]) * {"": 1, "K": 2**10, "M": MIB}[size[2]] if size else BYTES_CACHE


class Limits:
    """The measured rates as a function of size: between measured sizes by their logarithms, beyond them as at the end.

    `threads` picks the rates of that many threads. Rates of what a core does may be missing: they are no limit then.
    """

    def __init__(self, measured: Iterable[Bandwidth], threads: int) -> None:
        """Keep the measured rates of that many threads, the fastest of each size."""
        self.threads = threads
        self.streams: dict[int, float] = {}
        self.gathers: dict[int, dict[int, float]] = {}
        self.cores: dict[str, float] = {}
        for rate in (rate for rate in measured if rate.threads == threads):
            if rate.level in (*LOOPS, CALL):
                self.cores[rate.level] = max(self.cores.get(rate.level, 0.0), rate.bytes_per_second / 4)
                continue
            rates = self.gathers.setdefault(rate.bytes_row, {}) if rate.level == "gather" else self.streams
            rates[rate.bytes_table] = max(rates.get(rate.bytes_table, 0.0), rate.bytes_per_second)

    def stream(self, bytes_moved: float) -> float:
        """Return the bandwidth (bytes/s) of streaming over `bytes_moved` bytes repeatedly, interpolated."""
        return _between(self.streams, bytes_moved)

    def gather(self, bytes_table: float, bytes_row: float) -> float:
        """Return the bandwidth (bytes/s) of gathering rows of `bytes_row` bytes at random from a table.

        The table has `bytes_table` bytes. Interpolated from the measured rates.
        """
        return _between({row: _between(rates, bytes_table) for row, rates in self.gathers.items()}, bytes_row)

    def bound(
        self,
        *,
        bytes_compulsory: float,
        bytes_gather: float,
        bytes_table: float,
        bytes_row: float,
        cold: float = 0.0,
        work: Mapping[str, float] | None = None,
    ) -> tuple[float, str]:
        """Return (lower bound of a call's time in s, what limits it: "stream", "gather" or "instructions").

        Of the rows gathered a share `cold` comes from a table of `bytes_table`, the others from the last cache; `work`
        is the number of operations of each kind in LOOPS.
        """
        stream = bytes_compulsory / self.stream(bytes_compulsory), "stream"
        cores = seconds_of(work or {}, self.cores, self.threads), "instructions"
        if not bytes_gather:
            return max(stream, cores)
        near = self.gather(min(bytes_table, last_cache_bytes() / 2), bytes_row)
        far = self.gather(bytes_table, bytes_row)
        gather = bytes_gather * ((1 - cold) / max(near, far) + cold / far)
        return max(stream, (gather, "gather"), cores)


def _between(rates: dict[int, float], size: float) -> float:
    """Return the rate at `size`, interpolated linearly in log-log coordinates, constant beyond the ends.

    `rates` is {size in bytes: rate}.
    """
    sizes = sorted(rates)
    logs = np.interp(np.log(max(size, 1)), np.log(sizes), [np.log(rates[known]) for known in sizes])
    return float(np.exp(logs))


# Roofs of the kernels of a step on a machine: its memory, its cores and its BLAS, measured in about two seconds.
#
# The rates are a few of the rates of `python -m benchmarks kernels`. Next to them stand the operations a second of the
# BLAS in a product of square matrices that its caches hold, for that is what bounds dense products.


ROOF_STREAM_SIZES = (MIB, 24 * MIB, 96 * MIB)
ROOF_TABLE_SIZES = (MIB // 32, MIB, 8 * MIB, 64 * MIB)
ROOF_ROW_SIZES = (4, 64, 256, 1024)
SECONDS = 0.005
"""Time spent on each rate, about."""
ORDER, PRODUCTS = 512, 6
"""Rows and columns of the matrices that BLAS multiplies, and how often; the fastest counts."""


def measure_roofs(counts: Iterable[int]) -> dict[str, Any]:
    """Measure the machine on each number of threads in `counts`; return a dict for JSON.

    {"rates": rows of `Bandwidth` fields, "operations": {count as text: float32 BLAS flops per second}}.
    """
    counts = sorted(set(counts))
    rates = measure(counts, ROOF_STREAM_SIZES, ROOF_TABLE_SIZES, ROOF_ROW_SIZES, SECONDS)
    return {
        "rates": [list(dataclasses.astuple(rate)) for rate in rates],
        "operations": {str(count): operations_of_blas(count) for count in counts},
    }


def operations_of_blas(threads: int) -> float:
    """Return float32 flops per second of BLAS in the fastest of six products of 512 x 512 matrices."""
    a, b = np.random.default_rng(0).random((2, ORDER, ORDER), np.float32)
    out, seconds = np.empty_like(a), []
    with threadpoolctl.threadpool_limits(limits=threads):
        for _ in range(PRODUCTS):
            start = perf_counter()
            np.matmul(a, b, out=out)
            seconds.append(perf_counter() - start)
    return 2 * ORDER**3 / min(seconds)


class Roofs:
    """Rates that `measure_roofs` found on so many threads, and the bounds that follow. KeyError without that count.

    >>> import kernels
    >>> rates = [["read", 2**20, 0, 1, 8e10], ["gather", 2**20, 64, 1, 4e10]]
    >>> roofs = Roofs({"rates": rates, "operations": {"1": 1e11}}, threads=1)
    >>> seconds, by = roofs.bound(kernels.get("blas.dense_dense"), kernels.Sizes(R=256, z=0, D=1024, N=64, U=0))
    >>> round(1e6 * seconds), by
    (336, 'operations')
    """

    def __init__(self, measured: Mapping[str, Any], threads: int) -> None:
        """Take the rates of `threads` threads from what `measure_roofs` returned; KeyError if it has none."""
        self.limits = Limits([Bandwidth(*rate) for rate in measured["rates"]], threads)
        self.operations = measured["operations"][str(threads)]

    def bound(self, kernel: Kernel, sizes: Sizes) -> tuple[float, str]:
        """Return (lower bound of a kernel's time at these sizes in s, what limits it).

        It is limited by "stream", "gather", "instructions" or "operations". Rows are gathered from the caches as far as
        these can hold them, the most favourable order. BLAS is taken to do half as many operations of float64 as of
        float32.
        """
        cost = kernel.cost(sizes)
        memory = self.limits.bound(
            bytes_compulsory=cost.bytes_compulsory,
            bytes_gather=cost.bytes_gather,
            bytes_table=table_bytes(kernel, sizes),
            bytes_row=sizes.N * sizes.value,
            work=dict(cost.work),
        )
        return max(memory, (cost.flops * sizes.value / 4 / self.operations, "operations"))


def table_bytes(kernel: Kernel, sizes: Sizes) -> int:
    """Return the bytes of the table whose rows a kernel gathers.

    It is g [R, N] for a gradient kernel, else the lines of the active rows of x [D, N].
    """
    is_gradient = any(name == "g" for name, _, _ in kernel.parsed)
    return sizes.R * sizes.N * sizes.value if is_gradient else active_bytes(sizes)


def active_bytes(sizes: Sizes) -> int:
    """Return the bytes of the cache lines that the U active rows of a [D, N] table occupy, at most the table."""
    row = sizes.N * sizes.value
    return min(sizes.U * max(row, LINE), sizes.D * row)


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one dict of bandwidths and peak rates, measured for the thread counts in the list `request["threads"]`."""
    yield measure_roofs(request["threads"])
