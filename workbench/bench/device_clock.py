"""Times of calls by the events of a CUDA device: of the device's own work, with its second-level cache warm or cold.

A call takes the host longer to ask for than the device to do, when it is small. The device is therefore kept busy with
something else until all calls of a sample are asked for; what lies between two events is then its work and nothing
else. Cold: a buffer larger than the cache is written before each call, which keeps the device busy as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, final

import numpy as np

from kernels import devices
from workbench.bench.rounds import Call, Clock

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
    """Seconds a call, as `rounds.interleave` asks for them; `cupy` may be another module in tests."""

    def __init__(self, cache: str, bytes_cache: int, cupy: Any = None) -> None:
        self.cupy, self.is_cold = cupy or devices.cupy(), cache == "cold"
        size = max(int(FLUSHES * bytes_cache), BYTES_LEAST) if self.is_cold else 0
        self.buffer = self.cupy.empty(size, "int8")
        self.hold = self.cupy.RawKernel(_HOLD, "hold")

    def __call__(self, call: Call, count: int, clock: Clock = perf_counter) -> float:
        """Mean seconds of `count` calls."""
        total, left = 0.0, count
        while left:
            now = min(left, MOST_CALLS)
            total += self._cold(call, now) if self.is_cold else self._warm(call, now)
            left -= now
        return total / count

    def _event(self) -> Any:
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def _warm(self, call: Call, count: int) -> float:
        start = perf_counter()
        call()
        seconds_launch = perf_counter() - start
        seconds = min(1.5 * seconds_launch * count, SECONDS_HOLD)
        self.hold((1,), (1,), (np.int64(seconds * CYCLES_A_SECOND),))
        return self._between(call, count)

    def _between(self, call: Call, count: int) -> float:
        first = self._event()
        for _ in range(count):
            call()
        last = self._event()
        last.synchronize()  # synchronize!
        return self.cupy.cuda.get_elapsed_time(first, last) / 1e3

    def _cold(self, call: Call, count: int) -> float:
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

    events: Callable[[Call, int, Clock], float]
    finish: Callable[[], None]

    def host_seconds(self, call: Call) -> float:
        """Mean seconds of calls by the host's clock, launches and the wait at the end included."""
        self.finish()
        start = perf_counter()
        for _ in range(CALLS_HOST):
            call()
        self.finish()
        return (perf_counter() - start) / CALLS_HOST


def on_cuda(cache: str, bytes_cache: int) -> OnDevice:
    """The clock of the current CUDA device; steps, which have no `cache`, are timed warm."""
    cuda = devices.cupy().cuda
    return OnDevice(Events(cache, bytes_cache), lambda: cuda.get_current_stream().synchronize())  # synchronize!


class CopyLimit:
    """Bound of the device's memory by a copy of what no cache holds: `bound`, as `bandwidth.Limits` has it."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second

    def bound(self, *, bytes_compulsory: float, **_: Any) -> tuple[float, str]:
        """(seconds that no call can be faster than, stream): every distinct row moves once, no less."""
        return bytes_compulsory / self.bytes_per_second, "stream"


def copy_rate(bytes_array: int, cupy: Any = None) -> float:
    """Bytes a second that a copy reads and writes, the fastest of some."""
    cupy = cupy or devices.cupy()
    source, target = cupy.zeros(bytes_array, "int8"), cupy.empty(bytes_array, "int8")
    timer = Events("warm", 0, cupy)
    copy = lambda: target.data.copy_from_device_async(source.data, bytes_array)  # noqa: E731
    return 2 * bytes_array / min(timer(copy, 5) for _ in range(5))
