"""Threads of the CPU kernels: the threading layer, how many a call runs on, and partitions of equal cost.

Every output element has one writer and every sum one order, so results are the same bits on every run and at every
thread count. Compiled code is cached on disk (`code_cache`).

Two habits of compiled code here, each worth a factor of 2 to 5. A loop over elements runs over `range(a.size)` of a
slice, not from `first` to `last`, and a place that was read from an array is made `np.uint64`: for a place that may be
negative Numba also compiles the case that it counts from the end, and LLVM then makes no vector code.
"""

import contextlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numba import prange

from kernels import choice, choosing
from kernels._compat import numba_internals
from kernels.choosing import Choices
from kernels.code_cache import njit, njit_part

# The CPU quota of a container: how many cores it pays for, which may be fewer than it sees.
#
# With more threads than cores in the quota, all threads stand still once the quota of a period (100 ms) is used up.


GROUPS = Path("/sys/fs/cgroup")
"""Control groups of the kernel: version 2, or version 1 with a folder for each controller."""

OWN = Path("/proc/self/cgroup")
"""Names of the control groups of this process: a line `number:controllers:/name` each."""


def cores(groups: Path = GROUPS, own: Path = OWN) -> float:
    """Return the cores that this process may use by its CPU quota, infinity without one.

    The minimum over its cgroups and their parents; `groups` and `own` are the paths to read.
    """
    return min(_quotas(groups, own), default=float("inf"))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """Yield the CPU quotas, in cores, of the cgroups of this process and of their parents.

    Unreadable ones are skipped.
    """
    for folder in _folders(groups, own):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            with contextlib.suppress(OSError):  # not there
                yield _cores(" ".join((folder / name).read_text(encoding="utf-8") for name in names))


def _cores(text: str) -> float:
    """Return the cores of "quota period" in microseconds, such as "150000 100000"; infinity for "max" and -1."""
    numbers = [int(word) for word in text.split() if word.isdigit()]
    return numbers[0] / numbers[1] if len(numbers) == 2 and all(numbers) else float("inf")


def _folders(groups: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of this process's CPU cgroups and their parents; none if `own` cannot be read.

    A container may see its own group as the topmost.
    """
    with contextlib.suppress(OSError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            top = groups / controllers if controllers else groups
            group = Path(name.lstrip("/"))
            yield from (top / part for part in (group, *group.parents))


LAYERS = ("omp", "tbb", "workqueue")
"""Layers in order of preference: a parallel call costs about 2.5 us with omp and 50 us or more with workqueue."""

SPIN_COUNT = "2000"
"""Turns, about 30 us, that an OpenMP thread waits awake before it sleeps. By its own choice (300,000) it holds its core
for 8 ms; where BLAS or another program needs one too, every parallel call then takes that long. Measured on 2 quiet
cores, in turns: a dense step of 256 x 2048, BLAS products with our row slice, loss and update, takes 8.0 ms with the
default and 0.38 to 0.56 ms with this; a call in a process that does nothing else takes 1.2 us with either."""

LEAST_WORK = 16 * 1024
"""Multiply-adds below which no machine gains by a second thread: 1.5 us, about what entering a region takes."""

BLOCK = 4096
"""Elements of a block of fixed size: sums added up block by block have the same bits at every thread count."""

SECONDS_PIECE = 50e-3
"""Estimated seconds of a piece of a long call, before each of which the load of the machine is looked at."""

PARTS = 4
"""Parts of a call for each thread: few enough to cost little, and where a layer gives them out one by one, a thread
that was held up delays little."""

compiled = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
"""Decorator of serial code. Only flags that keep NaN, Inf and the order of sums are on."""

compiled_part = njit_part(nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
"""Decorator of such code that only compiled code calls: it is optimised within each function that calls it."""

compiled_with_arrays = njit_part(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, _nrt=True)
"""Decorator of such a part that makes arrays, wherever it is called from: code that counts no references, which are
whole epochs, lets what it calls be compiled as itself where that was not done before, and no array is made then."""

compiled_sums = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz", "reassoc"})
"""Decorator of a sum that may be split over the lanes of a vector. The order of its terms is then that of the machine
code, which differs where the function is compiled into another one: reach it through `call_parallel` alone. Keep in the
function nothing but the sum, for other arithmetic is reordered as well, and write nothing: a loop that writes takes its
vectors only where the arrays lie far enough apart, so that a sum in it has other bits at other addresses."""

compiled_parallel = njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"}, parallel=True)
"""Decorator of code with a `prange` over parts."""


def available_layers() -> list[str]:
    """Return the threading layers that load on this machine, best first: of "omp", "tbb", "workqueue"."""
    return [layer for layer in LAYERS if layer == "workqueue" or _loads(layer)]


def _loads(layer: str) -> bool:
    """Return whether the threading layer `layer` can be imported; imports it."""
    module = numba_internals.layer_module(layer)
    if importlib.util.find_spec(module) is None:
        return False
    try:
        importlib.import_module(module)
    except ImportError:  # the layer's own shared library (libgomp, libtbb) is not on this machine
        return False
    return True


def choose_layer() -> str:
    """Set Numba's threading layer to the best one unless NUMBA_THREADING_LAYER is set; return its name.

    Also sets GOMP_SPINCOUNT in the environment, limits threads to the cores of the CPU quota unless NUMBA_NUM_THREADS
    is set, and makes parallel calls of several threads wait for each other if the layer cannot run them together.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)  # read once, when libgomp is loaded
    if "NUMBA_THREADING_LAYER" not in os.environ:
        numba_internals.config.THREADING_LAYER = available_layers()[0]
    if not may_overlap():
        numba_internals.serialize_loops()
    if "NUMBA_NUM_THREADS" not in os.environ and not numba_internals.is_layer_loaded():
        most = max(int(min(cores(), numba_internals.config.NUMBA_NUM_THREADS)), 1)
        numba_internals.config.NUMBA_NUM_THREADS = most
    return numba_internals.config.THREADING_LAYER


def set_threads(count: int) -> None:
    """Run the following parallel calls of this thread on `count` threads. Raises ValueError if not 1 to the maximum."""
    most = 1 if _is_alone else numba_internals.config.NUMBA_NUM_THREADS
    if not 1 <= count <= most:
        raise ValueError(f"threads is {count}; this process can use 1 to {most}.{_ALONE if _is_alone else ''}")
    numba.set_num_threads(count)


_is_alone = False
"""Whether this process was forked from one that had OpenMP's threads."""

_ALONE = (
    " It was forked from a process that had run kernels on several threads, which GNU's OpenMP does not survive. Start "
    'it with multiprocessing.get_context("forkserver") or "spawn" instead, or fork before the first kernel runs.'
)


def _after_fork() -> None:
    """Limit a forked process to one thread if the layer's threads do not survive a fork: same bits, same code.

    GNU OpenMP would wait for them, and Numba ends the process (signal 15) before, even for one thread.
    """
    global _is_alone
    if numba_internals.is_layer_loaded() and (layer := numba_internals.layer()).dies_of_fork:
        layer.start(1)
        layer.set_count(1)
        _is_alone = True


os.register_at_fork(after_in_child=_after_fork)


class ThisThread(threading.local):
    """State of the calling thread: whether its calls are forced serial or parallel (None: neither), its choices, and
    whether
    many of its calls were parallel.
    """

    is_serial: bool | None = None
    calls_parallel = 0

    def __init__(self) -> None:
        """Start without measured times."""
        self.choices = Choices()


this_thread = ThisThread()

_asked: list[object] = []
"""One for each `parallel()` that some thread is inside of: only then little work may get all threads."""


@contextmanager
def _kept(is_serial: bool) -> Iterator[None]:
    """Force serial (True) or parallel (False) calls of this thread within the block; the previous state is restored."""
    before = this_thread.is_serial
    this_thread.is_serial = is_serial
    try:
        yield
    finally:
        this_thread.is_serial = before


def serial() -> AbstractContextManager[None]:
    """Return a context manager in which the calls of this thread run serially, whatever `set_threads` says.

    For a thread that prepares data in parallel with the computing one: the cores are busy with its parallel calls.
    """
    return _kept(is_serial=True)


@contextmanager
def parallel() -> Iterator[None]:
    """Run the calls of this thread within the block on all threads, even if that is slower.

    For loading code before it is timed, and for tests.
    """
    with _kept(is_serial=False):
        _asked.append(None)
        try:
            yield
        finally:
            _asked.pop()


def is_forced_parallel() -> bool:
    """Return whether the calls of this thread are forced on all threads, as within `parallel()`."""
    return this_thread.is_serial is False


def get_threads() -> int:
    """Return the number of threads of the next parallel call of this thread; 1 within `serial()`."""
    return 1 if this_thread.is_serial else numba_internals.layer().count()


def max_threads() -> int:
    """Return the largest count of threads of this process: NUMBA_NUM_THREADS, or the cores of its CPU quota."""
    return int(numba_internals.config.NUMBA_NUM_THREADS)


def available_threads() -> int:
    """Return the threads for work of this thread by other means than parallel calls; 1 within `serial()`.

    At most one for each core on which this thread may run. The threading layer is not started: a process that only
    reads a file may be forked afterwards.
    """
    if this_thread.is_serial or _is_alone:
        return 1
    count = get_threads() if numba_internals.is_layer_loaded() else numba_internals.config.NUMBA_NUM_THREADS
    return min(count, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else count


def is_serial(work: int, *, within: bool = False) -> bool:
    """Return whether a call of `work` multiply-adds that starts now should run on one thread; see `kernels.choosing`.

    Other work counts as the multiply-adds of vector code that take its time. `within` is for one of many regions in a
    compiled function: its threads are awake, so the work alone decides, and the order of sums is the same from run to
    run; `call_in_pieces` lets such a function yield to other programs. May wake the threads.
    """
    if work < LEAST_WORK and not _asked:
        return True
    own = this_thread
    count = get_threads()
    if count == 1:
        return True
    if own.is_serial is None:
        costs = choice.costs(count)
        if within:
            pays = choice.gain(work * costs.seconds_work, count, costs) > 0
        else:
            pays = own.choices.begin(work, count, costs)
        if not pays:
            return True
    own.calls_parallel += 1
    return False


ALONE: tuple[int, None] = 1, None


def share(work: int) -> tuple[int, Choices | None]:
    """Return (parts to cut a call of `work` multiply-adds into, choices to notify by `ended`, or None).

    One part if the call should be serial. May wake the threads.
    """
    if work < LEAST_WORK and not _asked:
        return ALONE
    own = this_thread
    count = get_threads()
    if count == 1:
        return ALONE
    choices = own.choices if own.is_serial is None else None
    if choices is not None and not choices.begin(work, count, choice.costs(count)):
        return 1, choices
    own.calls_parallel += 1
    return PARTS * count, choices


def may_overlap() -> bool:
    """Return whether parallel calls of two threads run at the same time, and not one after the other.

    In the layer "workqueue" they wait for each other.
    """
    return numba_internals.config.THREADING_LAYER in ("omp", "tbb", "safe", "threadsafe")


def call_parallel(function: Callable, work: int, *args: object) -> None:
    """Call the `compiled_parallel` function with `args`; on one thread if `work` (in multiply-adds) is small.

    The machine code is the same; its result is dropped.
    """
    layer = numba_internals.layer()
    parts, choices = share(work)
    if parts == 1 and (count := layer.count()) > 1:
        _alone(layer, count, function, *args)
    else:
        function(*args)
    if choices is not None:
        choices.ended()


def call_in_pieces(function: Callable[[int, int], int], steps: int, work: int) -> int:
    """Run `function(first, last)` over consecutive ranges of `steps` steps, on one thread if others hold the cores.

    Returns the first non-negative result, which ends the call, or -1. For compiled loops over steps of about equal
    `work` (multiply-adds). The caller cuts the work into parts by `is_serial(work, within=True)` and `get_threads`.
    Only the number of threads that execute the parts varies, so no sum changes its order or bits.
    """
    count = get_threads()
    if this_thread.is_serial is not None or count == 1:
        return function(0, steps) if steps else -1
    layer, costs = numba_internals.layer(), choice.costs(count)
    length = max(int(SECONDS_PIECE / (max(work, 1) * costs.seconds_work)), 1)
    for first in range(0, steps, length):
        last = min(first + length, steps)
        is_free = choosing.load.leaves(count, perf_counter())
        result = function(first, last) if is_free else _alone(layer, count, function, first, last)
        if result >= 0:
            return result
    return -1


def _alone(layer: numba_internals.Layer, count: int, function: Callable[..., Any], *args: object) -> Any:
    """Call `function(*args)` with the layer limited to this thread; return its result. `count` threads are restored."""
    layer.set_count(1)
    try:
        return function(*args)
    finally:
        layer.set_count(count)


def sum_of(sums: np.ndarray) -> float:
    """Return the sum of `sums` [n] as a Python float; without NumPy's sum (as slow as a block) for a single one."""
    return float(sums[0] if sums.size == 1 else sums.sum())


def parts() -> int:
    """Return the number of parts to cut a parallel call into: four for each thread."""
    return PARTS * get_threads()


choose_layer()


# Partition of rows or items into parts of equal cost for the threads of a call.


ROW_COST = 4
"""What starting a row costs, in stored entries; used to cut rows into parts of equal cost."""


@compiled
def _equal_cost(starts, count, per_row, bounds):
    """Write to bounds [count + 1] the rows at which parts of equal cost begin, by binary search.

    A row costs its entries, by row pointers `starts` [R + 1], plus `per_row`.
    """
    rows = starts.size - 1
    total = starts[rows] - starts[0] + per_row * rows
    for part in range(count + 1):
        target = total * part // count
        low, high = 0, rows
        while low < high:
            middle = (low + high) // 2
            if starts[middle] - starts[0] + per_row * middle < target:
                low = middle + 1
            else:
                high = middle
        bounds[part] = low


def equal_cost(starts: np.ndarray, count: int, per_row: int = ROW_COST) -> np.ndarray:
    """Cut rows with row pointers `starts` [rows + 1] into `count` parts of equal cost; return bounds int64 [count + 1].

    A row costs its entries plus `per_row`. Rows are never cut. One binary search per part.
    """
    bounds = np.empty(count + 1, np.int64)
    _equal_cost(starts, count, per_row, bounds)
    return bounds


@compiled
def _equal_count(size, bounds):
    """Overwrite bounds int64 [parts + 1] with the positions that divide `size` items into parts of equal count."""
    for part in range(bounds.size):
        bounds[part] = size * part // (bounds.size - 1)


def equal_count(size: int, count: int) -> np.ndarray:
    """Cut `size` items of equal cost into `count` parts; return bounds int64 [count + 1]."""
    bounds = np.empty(count + 1, np.int64)
    _equal_count(size, bounds)
    return bounds


# Setting arrays to zero, on several threads if that is faster.

CLEARED = 4
"""Elements that are set to zero in the time of a multiply-add."""


def clear(out: np.ndarray, bounds: np.ndarray | None = None) -> None:
    """Set every element of a C-contiguous array to zero, on several threads if that is faster.

    `bounds` int64 [parts + 1] are the first elements of the parts and the end, in the flat array, so that each part is
    then in the cache of its thread.
    """
    if is_serial(out.size // CLEARED) and bounds is None:
        out[...] = 0
    else:
        _clear_parts(out.reshape(-1), equal_count(out.size, parts()) if bounds is None else bounds)


@compiled_parallel
def _clear_parts(out, bounds):
    """Set the 1-d `out` to zero in place on several threads; part p is out[bounds[p]:bounds[p + 1]]."""
    for part in prange(bounds.size - 1):
        out[bounds[part] : bounds[part + 1]] = 0
