"""Sessions: what a program needs of a device beside kernels. Copies on a second stream, times, dense products, memory.

Work is queued in the order in which it is asked for. What is done inside `beside()` is queued on a second stream, and
may run at the same time as the rest. Either stream waits for a place in the other by `wait_for`, the host by `until`.
Arrays that were made beside must live until `finish` was called after their last use: their memory is taken again by
the second stream, which does not wait.
"""

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from kernels import devices
from kernels.gpu.dense_products import DenseProducts

Mark = Any
"""A place in a stream."""


@dataclass
class Beside:
    """Work on the second stream: marks by name, the last of them its end; host memory that copies still read."""

    marks: dict[str, Mark] = field(default_factory=dict)
    host: list[np.ndarray] = field(default_factory=list)


class Session(ABC):
    """One device in use. All but `finish`, `until`, and what a launcher itself reads, returns before it is done."""

    device: devices.Device
    bytes_most: int = 0
    """Most bytes in use at once while `watching`."""

    @abstractmethod
    def beside(self) -> contextlib.AbstractContextManager[Beside]:
        """Queue what follows on the second stream; marks its `start` and its `end`."""

    @abstractmethod
    def wait_for(self, mark: Mark) -> None:
        """Let what follows on the current stream wait until `mark` is passed."""

    @abstractmethod
    def until(self, mark: Mark) -> None:
        """Wait, on the host, until `mark` is passed."""

    @abstractmethod
    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Host memory with any content that `fill` can copy from."""

    @abstractmethod
    def fill(self, target: Any, pinned: np.ndarray) -> None:
        """Queue a copy of pinned memory, or a part of it, into the first elements of a device's array of its type.

        The host must not change what is copied before it has seen that a mark made after this is passed.
        """

    @abstractmethod
    def copy(self, array: np.ndarray, work: Beside) -> Any:
        """A copy of `array` on the device, queued; `work` keeps what it reads."""

    @abstractmethod
    def mark(self) -> Mark:
        """The place where the current stream is."""

    @abstractmethod
    def seconds(self, start: Mark, end: Mark) -> float:
        """Seconds from one mark to another, both passed."""

    @abstractmethod
    def finish(self) -> None:
        """Wait for what was queued on this stream, and so for what it joined."""

    @abstractmethod
    def matmul(self, x: Any, y: Any, out: Any, transposed: bool = False) -> None:
        """out = x @ y or x.T @ y by the device's BLAS, in full float32 where that is the type.

        All are in C order. A graph may hold it, if it was done with the same shapes before.
        """

    @abstractmethod
    def watching(self) -> contextlib.AbstractContextManager[None]:
        """Keep `bytes_most` up to date. It costs time with every new array: do not time what is done meanwhile."""


@final
class CudaSession(Session):
    """The current CUDA device, through CuPy's pools of device memory and of pinned host memory."""

    def __init__(self) -> None:
        self.cupy = devices.cupy()
        self.device = devices.CupyDevice()
        self.second = self.cupy.cuda.Stream(non_blocking=True)
        self.pool = self.cupy.get_default_memory_pool()

    @contextlib.contextmanager
    def beside(self) -> Iterator[Beside]:
        """Queue work on a stream of its own, also from another thread."""
        work = Beside()
        with self.second:
            work.marks["start"] = self.mark()
            yield work
            work.marks["end"] = self.mark()

    def wait_for(self, mark: Mark) -> None:
        """Make the device wait, not this thread."""
        self.cupy.cuda.get_current_stream().wait_event(mark)

    def until(self, mark: Mark) -> None:
        """Wait for an event as the driver does."""
        mark.synchronize()  # synchronize!

    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An array from CuPy's pool of page-locked memory, which takes it back with the array."""
        size, kind = int(np.prod(shape)), np.dtype(dtype)
        if not size:
            return np.empty(shape, kind)
        return np.frombuffer(self.cupy.cuda.alloc_pinned_memory(size * kind.itemsize), kind, size).reshape(shape)

    def fill(self, target: Any, pinned: np.ndarray) -> None:
        """Copy pinned memory to `target` in the current stream."""
        if pinned.size:
            stream = self.cupy.cuda.get_current_stream()
            target.data.copy_from_host_async(pinned.ctypes.data, pinned.nbytes, stream)

    def copy(self, array: np.ndarray, work: Beside) -> Any:
        """Copy through pinned memory, without which the driver would wait for the copy."""
        copied, pinned = self.cupy.empty(array.shape, array.dtype), self.pinned(array.shape, array.dtype)
        pinned[...] = array
        work.host.append(pinned)
        self.fill(copied, pinned)
        return copied

    def mark(self) -> Mark:
        """An event of the current stream."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def seconds(self, start: Mark, end: Mark) -> float:
        """Seconds by the device's clock, which counts in half microseconds."""
        return self.cupy.cuda.get_elapsed_time(start, end) / 1e3

    def finish(self) -> None:
        """Wait for the current stream; the second one goes on with what nobody has joined yet."""
        self.cupy.cuda.get_current_stream().synchronize()  # synchronize!

    @functools.cached_property
    def products(self) -> DenseProducts:
        """cuBLAS, which is loaded when it is first needed."""
        return DenseProducts()

    def matmul(self, x: Any, y: Any, out: Any, transposed: bool = False) -> None:
        """Multiply by cuBLAS, TF32 off whatever the environment says; a transposed operand is not copied."""
        self.products.multiply(x, y, out, transposed)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch by a hook of CuPy's memory pool, in this thread: other threads' arrays count from the next one here."""
        with _hook(self.cupy, self._note):
            yield
        self._note()

    def _note(self) -> None:
        self.bytes_most = max(self.bytes_most, self.pool.used_bytes())


def _hook(cupy: Any, note: Any) -> Any:
    """Calls `note` after each allocation."""

    class Hook(cupy.cuda.MemoryHook):
        """CuPy's hook of its memory pool."""

        name = "most bytes in use"

        def malloc_postprocess(self, **_: Any) -> None:
            """CuPy calls this after each allocation."""
            note()

    return Hook()


def bytes_asked(error: MemoryError) -> int | None:
    """The bytes that CuPy was asked for when a device's memory ran out; None where the message does not tell.

    >>> bytes_asked(MemoryError("Out of memory allocating 4,294,967,296 bytes (allocated so far: 512 bytes)."))
    4294967296
    """
    words = str(error).partition("allocating ")[2].partition(" bytes")[0].replace(",", "")
    return int(words) if words.isdigit() else None
