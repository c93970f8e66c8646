"""Candidates on a CUDA device: this project's kernels and competitors on the same arguments, checked the same way."""

import functools
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, final

import numpy as np

import kernels
from benchmarks import candidates as of_kernels
from benchmarks import competitors
from benchmarks.candidates import (
    BYTES_DENSE,
    Candidate,
    Judge,
    Ready,
    Setting,
    Traffic,
    largest_error,
    make_judge,
    operand_bytes,
    require_device,
)
from benchmarks.competitors import competitors_of
from benchmarks.shapes import BenchError, Shape
from kernels import Cost, Kernel, Sizes, devices
from kernels.devices import Device
from kernels.gpu import indices as plan_on_device
from kernels.gpu import narrow, rounding
from kernels.gpu.indices import lengths_of
from kernels.products.csr_dense import on_device
from kernels.registry import unknown_name
from kernels.vendor import cusparse

Call = Callable[[], object]

# Times of calls by the events of a CUDA device: of the device's own work, with its second-level cache warm or cold.
#
# A call takes the host longer to ask for than the device to do, when it is small. The device is therefore kept busy
# with something else until all calls of a sample are asked for; what lies between two events is then its work and
# nothing else. Cold: a buffer larger than the cache is written before each call, which keeps the device busy as well.


CACHES = ("warm", "cold")

MOST_CALLS = 200
"""Calls that are asked for at once: a stream has room for about a thousand launches."""

SECONDS_HOLD = 0.05
"""Longest that the device is kept busy."""

CYCLES_A_SECOND = 2.0e9
BYTES_LEAST = 256 * 2**20
FLUSHES = 2.0
"""A flush writes so many times the cache, at least `BYTES_LEAST`."""

_HOLD = """extern "C" __global__ void hold(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}"""


@final
class Events:
    """Mean seconds of calls, by events; `cupy` may be another module in tests."""

    def __init__(self, cache: str, bytes_cache: int, cupy: Any = None) -> None:
        """Set up timing by CUDA events; `cache` "cold" allocates a flush buffer of at least twice `bytes_cache`."""
        self.cupy, self.is_cold = cupy or devices.cupy(), cache == "cold"
        size = max(int(FLUSHES * bytes_cache), BYTES_LEAST) if self.is_cold else 0
        self.buffer = self.cupy.empty(size, "int8")
        self.hold = self.cupy.RawKernel(_HOLD, "hold")

    def __call__(self, call: Call, count: int) -> float:
        """Return the mean device time (s) of a call, over `count` calls with warm or cold caches."""
        total, left = 0.0, count
        while left:
            now = min(left, MOST_CALLS)
            total += self._time_cold(call, now) if self.is_cold else self._time_warm(call, now)
            left -= now
        return total / count

    def _event(self) -> Any:
        """Record a CUDA event in the current stream and return it."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def _time_warm(self, call: Call, count: int) -> float:
        """Return the device seconds of `count` calls; a spin kernel holds the stream until all are queued."""
        start = perf_counter()
        call()
        seconds_launch = perf_counter() - start
        seconds = min(1.5 * seconds_launch * count, SECONDS_HOLD)
        self.hold((1,), (1,), (np.int64(seconds * CYCLES_A_SECOND),))
        return self._seconds_between_events(call, count)

    def _seconds_between_events(self, call: Call, count: int) -> float:
        """Return the seconds between two events around `count` calls; waits for the device."""
        first = self._event()
        for _ in range(count):
            call()
        last = self._event()
        last.synchronize()  # synchronize!
        return self.cupy.cuda.get_elapsed_time(first, last) / 1e3

    def _time_cold(self, call: Call, count: int) -> float:
        """Return the device seconds of `count` calls.

        The flush buffer is overwritten before each to empty the cache.
        """
        ends = []
        for _ in range(count):
            self.buffer.fill(1)
            first = self._event()
            call()
            ends.append((first, self._event()))
        ends[-1][1].synchronize()  # synchronize!
        return sum(self.cupy.cuda.get_elapsed_time(*pair) for pair in ends) / 1e3


CALLS_HOST = 20
"""Calls that are timed by the host's clock."""


@dataclass(frozen=True)
class OnDevice:
    """Clock for calls on a device: by `events`, and by the host's clock up to `finish`, which waits for the device."""

    events: Callable[[Call, int], float]
    finish: Callable[[], None]

    def host_seconds(self, call: Call) -> float:
        """Return the mean host time (s) of a call over 20 calls, launches and the final wait included."""
        self.finish()
        start = perf_counter()
        for _ in range(CALLS_HOST):
            call()
        self.finish()
        return (perf_counter() - start) / CALLS_HOST


def on_cuda(cache: str, bytes_cache: int) -> OnDevice:
    """Return the clock of the current CUDA device for `cache` "warm" or "cold".

    `bytes_cache` is the L2 cache's size.
    """
    cuda = devices.cupy().cuda
    return OnDevice(Events(cache, bytes_cache), lambda: cuda.get_current_stream().synchronize())  # synchronize!


class CopyLimit:
    """Bound of the device's memory by a copy of what no cache holds: `bound`, as `bandwidth.Limits` has it."""

    def __init__(self, bytes_per_second: float) -> None:
        """Store the copy bandwidth (bytes/s) that bounds memory traffic."""
        self.bytes_per_second = bytes_per_second

    def bound(self, *, bytes_compulsory: float, **_: Any) -> tuple[float, str]:
        """Return (lower bound of a call in s, "stream"): each distinct byte moves once at copy bandwidth.

        Other keyword arguments are accepted and ignored, so that it can stand for `bandwidth.Limits`.
        """
        return bytes_compulsory / self.bytes_per_second, "stream"


def copy_rate(bytes_array: int, cupy: Any = None) -> float:
    """Return the bandwidth (bytes/s, reads plus writes) of a device copy of `bytes_array` bytes, the best of five."""
    cupy = cupy or devices.cupy()
    source, target = cupy.zeros(bytes_array, "int8"), cupy.empty(bytes_array, "int8")
    timer = Events("warm", 0, cupy)
    copy = lambda: target.data.copy_from_device_async(source.data, bytes_array)  # noqa: E731
    return 2 * bytes_array / min(timer(copy, 5) for _ in range(5))


DENSE = ("cublas", "cublas_tf32")


def refuse_without_gpu() -> devices.Gpu:
    """Return the CUDA device of this machine; raises BenchError if there is none."""
    gpu = devices.probe()
    if not gpu.present:
        reason = gpu.reason.removeprefix("no CUDA device: ")
        raise BenchError(f"This benchmark needs a CUDA device; there is none: {reason}. Take --device cpu.")
    return gpu


def list_device_tasks() -> list[str]:
    """Return the names of the tasks that a CUDA device can measure: "plan" and kernels with a CUDA implementation."""
    return [name for name in of_kernels.list_tasks() if name == "plan" or kernels.get(name).gpu is not None]


def list_device_candidates(task: str, shape: Shape, on: Device | None) -> list[Candidate]:
    """Return all candidates of `task` on a CUDA device, this project's first; BenchError for an unknown task.

    With `on` None they only have names and cannot be prepared.
    """
    if task not in (known := list_device_tasks()):
        raise BenchError(unknown_name("task on cuda", task, known))
    if task == "plan":
        return [Candidate("plan.build", "project", functools.partial(_plan, on))]
    entries = [_time_kernel(kernels.get(task), on)]
    if shape.values == "ones" and f"{task}_ones" in kernels.names():
        ones = f"{task}_ones"
        entries += [
            _time_kernel(kernels.get(ones), on),
            *(_time_kernel(each, on, "competitor") for each in _competitors(ones)),
        ]
    entries += [_time_kernel(competitor, on, "competitor") for competitor in _competitors(task)]
    if task == "csr_t_dense":
        entries += [_time_kernel(competitor, on, "competitor") for competitor in _competitors("csr_t_dense_full")]
    if task == "csr_dense":
        entries += [*list_variants(on), *(_dense(library, on) for library in DENSE)]
    return [*entries, _two_kernels(task, on)] if task.endswith("_fused") else entries


def _competitors(task: str) -> Sequence[Kernel]:
    """Return the competitors of a kernel that run on a CUDA device."""
    return [competitor for competitor in competitors_of(task) if competitor.gpu is not None]


def _time_kernel(kernel: Kernel, on: Device | None, side: str = "project") -> Candidate:
    """Return the candidate that times a kernel on the device `on`; `side` is "project" or "competitor"."""
    make, needed = functools.partial(_ready, kernel, on), functools.partial(operand_bytes, kernel)
    return Candidate(kernel.name, side, make, needed, unavailable=_unavailable(kernel))


def _unavailable(kernel: Kernel) -> str:
    """Return why a competitor is unavailable, "" if it is not; needing a GPU is no reason here."""
    is_there = importlib.util.find_spec("cupy") and kernel.unavailable == cusparse.UNAVAILABLE
    return "" if is_there else kernel.unavailable


def _copy_to_device(on: Device, args: Sequence) -> list:
    """Return the arguments as a list, with NumPy arrays copied to the device."""
    return [on.put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def _copy_to_host(on: Device, kernel: Kernel, args: Sequence, there: Sequence) -> None:
    """Copy the arrays that the call wrote on the device (`there`) into the host arrays of `args`, in place."""
    for arg, one, (name, _, _) in zip(args, there, kernel.parsed, strict=True):
        if name in kernel.writes:
            arg[...] = on.read(one)  # synchronize!


def _on_host(on: Device, kernel: Kernel, args: Sequence, there: Sequence, judged: Judge, scale: float = 1.0) -> Judge:
    """Return an error function that copies what the call wrote on the device into the host arrays of `args` first.

    `there` are the device arrays of `args`; `judged` compares on the host, and its error is multiplied by `scale`.
    """

    def judge_on_host(returned: Any) -> float:
        """Copy what the call wrote to the host, in place, and return the largest relative error."""
        _copy_to_host(on, kernel, args, there)
        return scale * judged(_copy_result_to_host(on, returned))

    return judge_on_host


def _copy_result_to_host(on: Device, returned: Any) -> Any:
    """Return a result with device arrays copied to the host, tuples element by element; scalars unchanged."""
    if isinstance(returned, tuple):
        return tuple(_copy_result_to_host(on, part) for part in returned)
    return on.read(returned) if hasattr(returned, "shape") and np.ndim(returned) else returned


def _ready(kernel: Kernel, on: Device | None, setting: Setting) -> Ready:
    """Return a kernel prepared on the device: timed call, error function that compares on the host, and cost.

    Copies the setting's arrays there. Raises BenchError if `on` is None.
    """
    on, args = require_device(on), setting.arguments(kernel)
    judged, there = make_judge(kernel, args), _copy_to_device(on, args)
    start = perf_counter()
    call = kernel.prepare(*there) if kernel.prepare else functools.partial(kernel.cuda, *there)
    once = perf_counter() - start if kernel.prepare else 0.0
    judge_on_host = _on_host(on, kernel, args, there, judged)
    return Ready(call, judge_on_host, kernel.cost(setting.sizes), _traffic(setting), once)


def _traffic(setting: Setting, value: int = 0) -> Traffic:
    """Return traffic with the bytes of a table row only, since no cache model is used on a device.

    `value` is the bytes of a value, 0 for those of the batch.
    """
    return Traffic(bytes_row=setting.sizes.N * (value or setting.sizes.value))


def _plan(on: Device | None, setting: Setting) -> Ready:
    """Return the call that builds the batch plan on the device, checked against NumPy's unique columns.

    Copies the batch there. Raises BenchError if `on` is None.
    """
    on, batch = require_device(on), setting.batch
    indptr, indices = _copy_to_device(on, (batch.indptr, batch.indices))
    call = functools.partial(plan_on_device.build, indptr, indices, batch.D)
    columns, counts = np.unique(batch.indices, return_counts=True)
    desired = [columns, np.concatenate([[0], np.cumsum(counts)])]
    judged = lambda result: largest_error([on.read(result.columns), on.read(result.segments)], desired)  # noqa: E731
    return Ready(call, judged, of_kernels.plan_cost(setting.sizes), _traffic(setting))


def _dense(library: str, on: Device | None) -> Candidate:
    """Return the candidate that multiplies the batch made dense by cuBLAS, in float32 or TF32 (10-bit mantissa).

    `library` is "cublas" or "cublas_tf32"; with `on` None it cannot be prepared.
    """
    kernel = (kernels if library == "cublas" else competitors).get(f"{library}.dense_dense")

    def make(setting: Setting) -> Ready:
        """Return the dense product on the device, ready to be timed; allocates the dense array [R, D] on both sides."""
        device, ours = require_device(on), kernels.get("csr_dense")
        *matrix, x, out = args = setting.arguments(ours)
        judged, dense = make_judge(ours, args), np.zeros((setting.sizes.R, setting.sizes.D), x.dtype)
        dense[np.repeat(np.arange(setting.sizes.R), np.diff(matrix[0])), matrix[1]] = matrix[2]
        there, scale = _copy_to_device(device, (dense, x, out)), TF32_FACTOR if library == "cublas_tf32" else 1.0
        judge_on_host = _on_host(device, kernel, (dense, x, out), there, judged, scale)
        return Ready(functools.partial(kernel.cuda, *there), judge_on_host, kernel.cost(setting.sizes))

    needed = lambda s: s.R * s.D * s.value  # noqa: E731
    return Candidate(kernel.name, "competitor", make, needed, BYTES_DENSE, _unavailable(kernel))


TF32_FACTOR = 2.0**-4
"""TF32 is allowed sixteen times the error of float32; what its row tells is a sixteenth of its error."""


def _two_kernels(task: str, on: Device | None) -> Candidate:
    """Return the candidate that replaces a fused kernel by the gradient kernel and then the lazy update kernel.

    `task` is the fused kernel's name; with `on` None it cannot be prepared.
    """
    lazy, gradient = kernels.get(task.replace("_fused", "_lazy")), kernels.get("csr_t_dense")

    def make(setting: Setting) -> Ready:
        """Return gradient and lazy update on the device as one timed call; computes the gradient once for the check."""
        device, first, second = require_device(on), setting.arguments(gradient), list(setting.arguments(lazy))
        place = [name for name, _, _ in lazy.parsed].index("gradient")
        there_first = _copy_to_device(device, first)
        gradient.cuda(*there_first)
        second[place] = device.read(there_first[-1])
        judged, there = make_judge(lazy, second), _copy_to_device(device, second)
        there[place] = there_first[-1]

        def call() -> None:
            """Compute the gradient, then update the active rows of the device tables in place from it."""
            gradient.cuda(*there_first)
            lazy.cuda(*there)

        both = gradient.cost(setting.sizes) + lazy.cost(setting.sizes)
        return Ready(call, _on_host(device, lazy, second, there, judged), both, _traffic(setting))

    both: Callable[[Any], int] = lambda sizes: operand_bytes(lazy, sizes) + operand_bytes(gradient, sizes)  # noqa: E731
    return Candidate(f"csr_t_dense + {lazy.name}", "project", make, both)


# Further candidates of ours for CSR @ dense on a CUDA device: rows whose lengths are known, and narrow tables.


TABLES = {"float16": "float16", "bfloat16": "uint16"}
"""Types of two bytes a value, and what holds them in NumPy and CuPy."""

_PRODUCT = kernels.get("csr_dense")
_NEEDED = functools.partial(operand_bytes, _PRODUCT)


def list_variants(on: Device | None) -> list[Candidate]:
    """Return the further CSR @ dense candidates of this project: row lengths known, and float16 and bfloat16 tables.

    With `on` None they only have names and cannot be prepared.
    """
    known = Candidate("csr_dense, lengths known", "project", functools.partial(_lengths_known, on), _NEEDED)
    tables = [
        Candidate(f"csr_dense, {name} x", "project", functools.partial(_narrow, on, name), _NEEDED) for name in TABLES
    ]
    return [known, *tables]


def _lengths_known(on: Device | None, setting: Setting) -> Ready:
    """Return CSR @ dense whose row lengths are found once before; rows are ordered by length if these differ much.

    Copies the setting's arrays to the device. Raises BenchError if `on` is None.
    """
    on, args = require_device(on), setting.arguments(_PRODUCT)
    judged, there = make_judge(_PRODUCT, args), [on.put(arg) for arg in args]
    start = perf_counter()
    lengths = lengths_of(there[0], in_order_of_length=True)
    once = perf_counter() - start
    call = functools.partial(on_device, *[*there, lengths])
    judge_on_host = _on_host(on, _PRODUCT, args, there, judged)
    return Ready(call, judge_on_host, _PRODUCT.cost(setting.sizes), _traffic(setting), once)


def _narrow(on: Device | None, name: str, setting: Setting) -> Ready:
    """Return CSR @ dense on a table of type `name` (2 bytes a value); rounding x to it does not count as error."""
    on = require_device(on)
    *matrix, x, out = args = setting.arguments(_PRODUCT)
    table = on.empty(x.shape, TABLES[name])
    rounding.rounded(on.put(x), table)
    judged, there = make_judge(_PRODUCT, (*matrix, _widen(on.read(table)), out)), [on.put(arg) for arg in args]
    there[-2] = table
    call = functools.partial(narrow.csr_dense, *there)
    judge_on_host = _on_host(on, _PRODUCT, args, there, judged)
    return Ready(call, judge_on_host, _table_cost(setting.sizes), _traffic(setting, table.dtype.itemsize))


def _widen(table: np.ndarray) -> np.ndarray:
    """Return a float16 array, or bfloat16 bits held as uint16, as float32."""
    if table.dtype == np.float16:
        return table.astype(np.float32)
    return (table.astype(np.uint32) << 16).view(np.float32)


def _table_cost(sizes: Sizes) -> Cost:
    """Return the cost of CSR @ dense if the rows of x have 2 instead of 4 bytes a value."""
    whole = _PRODUCT.cost(sizes)
    rows = sizes.U * sizes.N * sizes.value
    return Cost(whole.flops, whole.bytes_compulsory - rows // 2, whole.bytes_gather // 2)
