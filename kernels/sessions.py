"""Sessions: what training needs of a device besides kernels: copies on a second stream, timing, dense products, memory.

Work is queued in the order of the calls. Work inside `second_stream()` is queued on another and may run at once.
A stream waits for a mark in the other by `wait_for`, the host by `until`. Arrays created on the second must live until
`finish` was called after their last use: their memory is reused by the second stream, which does not wait.
"""

import contextlib
import ctypes
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from kernels import devices
from kernels.contract import KernelError

# Dense products by cuBLAS, called directly: CuPy refuses cuBLAS calls while a CUDA graph is captured.
#
# This can be removed when https://github.com/cupy/cupy/issues/6290 is fixed.


_PLAIN, _TRANSPOSED = 0, 1
_DEFAULT_ALGORITHM = -1
_TYPES = {"float32": (0, 68), "float64": (1, 70)}
"""Values of cudaDataType_t, and of cublasComputeType_t: float32 in full, not as TF32."""

_SET_STREAM = ctypes.c_void_p, ctypes.c_void_p
_SET_WORKSPACE = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
_OPERAND = ctypes.c_void_p, ctypes.c_int, ctypes.c_int
"""Where it starts, its type, its leading dimension."""
_SIZES = (ctypes.c_int,) * 3
_GEMM = ctypes.c_void_p, ctypes.c_int, ctypes.c_int, *_SIZES, ctypes.c_void_p, *_OPERAND, *_OPERAND
_FUNCTIONS = {
    "cublasSetStream_v2": _SET_STREAM,
    "cublasSetWorkspace_v2": _SET_WORKSPACE,
    "cublasGemmEx": (*_GEMM, ctypes.c_void_p, *_OPERAND, ctypes.c_int, ctypes.c_int),
}


def bytes_workspace(capability: str) -> int:
    """Return the bytes that NVIDIA recommends for `cublasSetWorkspace` on a device of this compute capability.

    >>> bytes_workspace("90") // 2**20, bytes_workspace("86") // 2**20
    (32, 4)
    """
    return 2**25 if int(capability) >= 90 else 2**22


def load_library(version: int) -> ctypes.CDLL:
    """Return the cuBLAS library that CuPy has loaded, for a CUDA runtime version such as 12090. Raises OSError."""
    return ctypes.CDLL(f"libcublas.so.{version // 1000}")


class DenseProducts:
    """Products on the current CUDA device, queued in CuPy's current stream, which may be captured.

    cuBLAS uses one workspace for all of them, so that it allocates nothing during a capture.
    """

    def __init__(self) -> None:
        """Load cuBLAS for the current device, declare its functions, and allocate its workspace. Raises OSError."""
        self.cuda = devices.cupy().cuda
        self._handle()  # of this thread; CuPy loads the library for it
        library = load_library(self.cuda.runtime.runtimeGetVersion())
        self.functions = {name: getattr(library, name) for name in _FUNCTIONS}
        for name, types in _FUNCTIONS.items():
            self.functions[name].argtypes = types
        self.bytes_workspace = bytes_workspace(self.cuda.Device().compute_capability)
        self.workspace = self.cuda.Memory(self.bytes_workspace)  # not of the pool: it is the library's, not an array

    def multiply(self, x: Any, y: Any, out: Any, transposed: bool = False) -> None:
        """Queue out = x @ y, or x.T @ y if `transposed`, all of one dtype, float32 or float64, in C order.

        For cuBLAS, in Fortran order: out.T = y.T @ x. Raises KernelError if cuBLAS reports an error.
        """
        rows, columns = out.shape
        inner = y.shape[0]
        if not (out.size and inner):
            out.fill(0)
            return
        handle, (kind, compute) = self._handle(), _TYPES[out.dtype.name]
        self._call("cublasSetStream_v2", handle, self.cuda.get_current_stream().ptr)  # takes the workspace away
        self._call("cublasSetWorkspace_v2", handle, self.workspace.ptr, self.bytes_workspace)
        one, nought = (np.array(value, out.dtype) for value in (1, 0))
        left, right = (y.data.ptr, kind, columns), (x.data.ptr, kind, x.shape[1])
        operations = _PLAIN, (_TRANSPOSED if transposed else _PLAIN)
        operands = *left, *right, nought.ctypes.data, out.data.ptr, kind, columns
        sizes = columns, rows, inner
        self._call("cublasGemmEx", handle, *operations, *sizes, one.ctypes.data, *operands, compute, _DEFAULT_ALGORITHM)

    def _handle(self) -> int:
        """Return the cuBLAS handle of this thread and device, as an address."""
        return self.cuda.device.get_cublas_handle()

    def _call(self, name: str, *arguments: Any) -> None:
        """Call the cuBLAS function `name`. Raises KernelError for a status other than 0."""
        if status := self.functions[name](*arguments):
            raise KernelError(f"{name} of cuBLAS failed with status {status}; its arguments were {arguments}.")


Mark = Any
"""A place in a stream."""


@dataclass
class SecondStream:
    """Work on the second stream: its marks by name (the last one is its end), and host memory that copies still
    read.
    """

    marks: dict[str, Mark] = field(default_factory=dict)
    host: list[np.ndarray] = field(default_factory=list)


class Session(ABC):
    """A device in use. All methods but `finish` and `until` return before the work is done."""

    device: devices.Device
    bytes_most: int = 0
    """Most bytes in use at once while `watching`."""

    @abstractmethod
    def second_stream(self) -> contextlib.AbstractContextManager[SecondStream]:
        """Return a context manager: work of its block is queued on the second stream.

        Adds the marks `start` and `end`.
        """

    @abstractmethod
    def wait_for(self, mark: Mark) -> None:
        """Make the current stream wait until `mark` is passed; the host does not wait."""

    @abstractmethod
    def until(self, mark: Mark) -> None:
        """Block the host until `mark` is passed."""

    @abstractmethod
    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return uninitialised page-locked host memory of this shape and dtype that `fill` can copy from."""

    @abstractmethod
    def fill(self, target: Any, pinned: np.ndarray) -> None:
        """Queue a copy of pinned memory into the first elements of a device array of the same dtype.

        The host must not change the memory before a later mark is passed.
        """

    @abstractmethod
    def copy(self, array: np.ndarray, work: SecondStream) -> Any:
        """Queue a copy of host `array` to the device and return the device array.

        `work.host` keeps the source alive.
        """

    @abstractmethod
    def mark(self) -> Mark:
        """Return a mark, a CUDA event for example, at the current position of the current stream."""

    @abstractmethod
    def seconds(self, start: Mark, end: Mark) -> float:
        """Return the seconds of device time between two marks, both of which must have been passed."""

    @abstractmethod
    def finish(self) -> None:
        """Block the host until all work queued on this stream, and what it waits for, is done."""

    @abstractmethod
    def matmul(self, x: Any, y: Any, out: Any, transposed: bool = False) -> None:
        """Overwrite out [R, N] with x @ y, or x.T @ y if `transposed`, by the device's BLAS in full float32 (no TF32).

        All arrays are device arrays in C order. A CUDA graph may include it if it ran with the same shapes before.
        """

    @abstractmethod
    def watching(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager that keeps `bytes_most` up to date.

        Allocations become slower: do not time work in it.
        """


@final
class CudaSession(Session):
    """The current CUDA device, with CuPy's pools of device memory and pinned host memory."""

    def __init__(self) -> None:
        """Use the current CUDA device, with a separate second stream. Raises ImportError without CuPy."""
        self.cupy = devices.cupy()
        self.device = devices.CupyDevice()
        self.second = self.cupy.cuda.Stream(non_blocking=True)
        self.pool = self.cupy.get_default_memory_pool()

    @contextlib.contextmanager
    def second_stream(self) -> Iterator[SecondStream]:
        """Queue the work of the block on the second stream, also from another thread.

        Yields its `SecondStream` with marks.
        """
        work = SecondStream()
        with self.second:
            work.marks["start"] = self.mark()
            yield work
            work.marks["end"] = self.mark()

    def wait_for(self, mark: Mark) -> None:
        """Make the current stream wait for the event `mark`; this thread does not wait."""
        self.cupy.cuda.get_current_stream().wait_event(mark)

    def until(self, mark: Mark) -> None:
        """Block this thread until the device has reached the event `mark`."""
        mark.synchronize()  # synchronize!

    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return an uninitialised host array of this shape and dtype in pinned memory of CuPy's pool.

        The pool takes the memory back when the array is no longer referred to.
        """
        size, kind = int(np.prod(shape)), np.dtype(dtype)
        if not size:
            return np.empty(shape, kind)
        return np.frombuffer(self.cupy.cuda.alloc_pinned_memory(size * kind.itemsize), kind, size).reshape(shape)

    def fill(self, target: Any, pinned: np.ndarray) -> None:
        """Queue a copy of `pinned` into the first elements of `target`, in the current stream."""
        if pinned.size:
            stream = self.cupy.cuda.get_current_stream()
            target.data.copy_from_host_async(pinned.ctypes.data, pinned.nbytes, stream)

    def copy(self, array: np.ndarray, work: SecondStream) -> Any:
        """Queue a copy of `array` to the device through pinned memory, kept alive by work.host.

        Return the device array. From other memory the driver would wait.
        """
        copied, pinned = self.cupy.empty(array.shape, array.dtype), self.pinned(array.shape, array.dtype)
        pinned[...] = array
        work.host.append(pinned)
        self.fill(copied, pinned)
        return copied

    def mark(self) -> Mark:
        """Record and return an event of the current stream."""
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def seconds(self, start: Mark, end: Mark) -> float:
        """Return the seconds between two events by the device's clock, which has a resolution of half a microsecond."""
        return self.cupy.cuda.get_elapsed_time(start, end) / 1e3

    def finish(self) -> None:
        """Synchronize the current stream; work on the second stream that was not waited for continues."""
        self.cupy.cuda.get_current_stream().synchronize()  # synchronize!

    @functools.cached_property
    def products(self) -> DenseProducts:
        """Return the dense products of the device; cuBLAS is loaded on first access."""
        return DenseProducts()

    def matmul(self, x: Any, y: Any, out: Any, transposed: bool = False) -> None:
        """Queue out = x @ y, or x.T @ y if `transposed`, with cuBLAS and TF32 off.

        A transposed operand is not copied.
        """
        self.products.multiply(x, y, out, transposed)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Update `bytes_most` from CuPy's memory pool within the block, by a hook in this thread.

        Allocations of other threads count from the next one here.
        """
        with _hook(self.cupy, self._note):
            yield
        self._note()

    def _note(self) -> None:
        """Raise `bytes_most` to the bytes in use now, if they are more."""
        self.bytes_most = max(self.bytes_most, self.pool.used_bytes())


def _hook(cupy: Any, note: Any) -> Any:
    """Return a memory hook of CuPy, a context manager, that calls `note()` after each allocation."""

    class Hook(cupy.cuda.MemoryHook):
        """CuPy's hook of its memory pool."""

        name = "most bytes in use"

        def malloc_postprocess(self, **_: Any) -> None:
            """Call `note()`; CuPy calls this after each allocation with keyword arguments, which are ignored."""
            note()

    return Hook()
