"""Devices: the only module that imports CuPy. It says whether there is a GPU, and the reason if not.

Probing starts the CUDA driver, which a process that forks later must not have done; `probe` therefore runs a child.
"""

import functools
import importlib.util
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from kernels.gpu.source import THREADS, Source

OPTIONS = ("-std=c++17",)
"""Options of the CUDA compiler. No fast mathematics: NaN, Inf and the order of sums are as written. CuPy adds
`-ftz=true` of its own: float32 values below 1.2e-38 count as zero."""

INSTALL = "pip install 'sparse-workbench[cuda12]' (or [cuda13])"
_PROBE = """
import cupy
import json
runtime = cupy.cuda.runtime
count = runtime.getDeviceCount()
found = runtime.getDeviceProperties(0)
print(json.dumps({
    "name": found["name"].decode(), "bytes_memory": found["totalGlobalMem"], "bytes_cache": found["l2CacheSize"],
    "capability": f"sm_{found['major']}{found['minor']}", "driver": runtime.driverGetVersion(),
    "runtime": runtime.runtimeGetVersion(), "cupy": cupy.__version__,
}))
"""


@dataclass(frozen=True)
class Gpu:
    """Result of `probe`: a device, or the reason why there is none."""

    name: str = ""
    bytes_memory: int = 0
    reason: str = ""
    bytes_cache: int = 0
    """Bytes of the cache of the second level."""
    capability: str = ""
    """Such as sm_90."""
    driver: int = 0
    """Newest CUDA that the driver knows, as CUDA counts: 12040 is 12.4."""
    runtime: int = 0
    cupy: str = ""

    @property
    def present(self) -> bool:
        """Return whether a CUDA device can be used."""
        return not self.reason

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what runs kernels on the device; empty without one.

        >>> Gpu("NVIDIA H200", driver=12080, runtime=12090, cupy="14.2.0").versions
        {'CUDA driver': '12.8', 'CUDA runtime': '12.9', 'cupy': '14.2.0'}
        """
        if not self.present:
            return {}
        versions = {"CUDA driver": _version(self.driver), "CUDA runtime": _version(self.runtime), "cupy": self.cupy}
        return {name: version for name, version in versions.items() if version}


def _version(number: int) -> str:
    """Return a CUDA version number such as 12080 as text, "12.8"; "" for 0."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


@functools.cache
def probe(seconds_timeout: float = 60) -> Gpu:
    """Return the CUDA device, or why there is none, as found by a child process that imports CuPy; cached.

    Never raises. After `seconds_timeout` the child is stopped and counts as no device.
    """
    if importlib.util.find_spec("cupy") is None:
        return Gpu(reason=f"CuPy is not installed; on a machine with an NVIDIA GPU: {INSTALL}")
    try:
        child = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=seconds_timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Gpu(reason=f"the CUDA driver did not answer within {seconds_timeout:g} s")
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"the probe ended with status {child.returncode}"]
        return Gpu(reason=f"no CUDA device: {lines[-1]}")
    return Gpu(**json.loads(child.stdout.strip().splitlines()[-1]))


def cupy() -> ModuleType:
    """Return the CuPy module, imported on first use. Raises ImportError with the install command if it is missing."""
    if importlib.util.find_spec("cupy") is None:
        raise ImportError(f"This needs CuPy: {INSTALL}")
    return __import__("cupy")


class Device(ABC):
    """Interface of a device that launchers allocate arrays and run kernels on: a GPU through CuPy, or an emulator in
    tests.
    """

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """Return a new uninitialised array of this shape and dtype on the device."""

    @abstractmethod
    def zeros(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """Return a new array of zeros of this shape and dtype on the device."""

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """Return a copy of a host array on the device."""

    @abstractmethod
    def clear(self, array: Any) -> None:
        """Set all elements of a device array to zero, in place."""

    @abstractmethod
    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return `work`, which only launches kernels, as a function that launches them all at once.

        Each kernel must have been launched before, since its first launch compiles it.
        """

    @abstractmethod
    def read(self, array: Any) -> np.ndarray:
        """Return a copy of `array` on the host; waits for the device."""

    @abstractmethod
    def contiguous(self, array: Any) -> Any:
        """Return `array` itself if it is C-contiguous, else a copy."""

    @abstractmethod
    def assign(self, target: Any, source: Any) -> None:
        """Copy the elements of `source`, of the host or the device, into `target` of the same shape and dtype."""

    @abstractmethod
    def is_aligned(self, array: Any) -> bool:
        """Return whether `array` starts at a multiple of 16 bytes."""

    @abstractmethod
    def launch(self, source: Source, name: str, blocks: int, *args: Any) -> None:
        """Launch a kernel of `source` with `blocks` blocks of `THREADS` threads.

        `args` are arrays of this device, NumPy scalars, int (passed as int64) or bool (passed as int).
        """


class CupyDevice(Device):
    """The current CUDA device, through CuPy. Work is queued in CuPy's current stream."""

    def __init__(self) -> None:
        """Use the current CUDA device. Raises ImportError without CuPy."""
        self.cupy = cupy()

    def empty(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """Return an uninitialised array of this shape and dtype from CuPy's pool."""
        return self.cupy.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """Return an array of zeros of this shape and dtype from CuPy's pool."""
        return self.cupy.zeros(shape, dtype)

    def put(self, array: np.ndarray) -> Any:
        """Return a copy of a host array on the device; an array that is there already is returned itself."""
        return self.cupy.asarray(array)

    def clear(self, array: Any) -> None:
        """Queue the fill of `array` with zeros in the current stream."""
        array.fill(0)

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return a function that launches `work` as a CUDA graph, captured in its first call."""
        return _Graph(self.cupy, work).run

    def read(self, array: Any) -> np.ndarray:
        """Return a copy of `array` on the host; waits for the device."""
        return self.cupy.asnumpy(array)  # synchronize!

    def contiguous(self, array: Any) -> Any:
        """Return `array` itself if it is in C order, else a copy."""
        return array if array.flags.c_contiguous else self.cupy.ascontiguousarray(array)

    def assign(self, target: Any, source: Any) -> None:
        """Copy `source` into `target` of the same shape with CuPy's kernel."""
        target[...] = source

    def is_aligned(self, array: Any) -> bool:
        """Return whether the address is a multiple of 16; true for arrays of CuPy's pool, not for all views."""
        return array.data.ptr % 16 == 0

    def launch(self, source: Source, name: str, blocks: int, *args: Any) -> None:
        """Queue the kernel `name` with `blocks` blocks of 128 threads; compiled on first use.

        KernelError for an unknown name.
        """
        compile_kernel(source, name)((blocks,), (THREADS,), tuple(map(as_argument, args)))


class _Graph:
    """Work as a CUDA graph, captured in the first call; no kernel runs or is compiled during the capture."""

    def __init__(self, module: ModuleType, work: Callable[[], None]) -> None:
        """Keep `work` to be captured in the first `run`; `module` is CuPy."""
        self.cuda, self.work = module.cuda, work
        self.graph: Any = None

    def run(self) -> None:
        """Queue the graph in the current stream; captures it first if that was not done."""
        if self.graph is None:
            self.graph = self._capture()
        self.graph.launch(self.cuda.get_current_stream())

    def _capture(self) -> Any:
        """Return the graph of the work, captured in a temporary stream: there may be many, and it may raise."""
        stream = self.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            self.work()
            return stream.end_capture()


_BOOLS = np.int32(0), np.int32(1)


def as_argument(arg: Any) -> Any:
    """Return a launch argument as its C type: bool as int32, int as int64, others unchanged. TypeError for a float.

    Floats must be NumPy scalars.
    """
    kind = type(arg)  # `isinstance` of an array takes longer, and a launch has twenty arguments
    if kind is int:
        return np.int64(arg)
    if kind is bool:
        return _BOOLS[arg]
    if kind is float:
        raise TypeError(
            f"A kernel was given the Python float {arg}; pass it as dtype.type({arg}), for it is taken as it is."
        )
    return arg


@functools.cache
def compile_kernel(source: Source, name: str) -> Any:
    """Return the kernel `name` of a source, compiled on first use; cached, by CuPy 14.2 and later also on disk.

    Raises KernelError if the source does not list the name.
    """
    source.check(name)
    module = cupy().RawModule(code=source.text, options=OPTIONS, name_expressions=(name,))
    return module.get_function(name)


_devices: dict[type, Device] = {}


def register_device(array_type: type, device: Device) -> None:
    """Declare that arrays of type `array_type` are on `device`, for `device_of`."""
    _devices[array_type] = device


def device_of(array: Any) -> Device:
    """Return the device of an array, registering CuPy's on first use. Raises TypeError for host arrays."""
    kind = type(array)
    if kind not in _devices:
        if kind.__module__.split(".")[0] != "cupy":
            raise TypeError(f"A GPU implementation was given a {kind.__module__}.{kind.__name__}; pass CuPy arrays.")
        register_device(kind, CupyDevice())
    return _devices[kind]


def bytes_asked(error: MemoryError) -> int | None:
    """Return the bytes of the allocation that failed, from CuPy's message; None if it does not say.

    >>> bytes_asked(MemoryError("Out of memory allocating 4,294,967,296 bytes (allocated so far: 512 bytes)."))
    4294967296
    """
    words = str(error).partition("allocating ")[2].partition(" bytes")[0].replace(",", "")
    return int(words) if words.isdigit() else None
