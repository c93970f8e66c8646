"""Devices: the only importer of CuPy. Everything else asks here whether there is a GPU, and gets a reason when not.

Probing starts the CUDA driver, which a process that later forks must not have done: `probe` therefore asks a child.
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
    "capability": f"sm_{found['major']}{found['minor']}", "multiprocessors": found["multiProcessorCount"],
    "driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion(), "cupy": cupy.__version__,
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
    multiprocessors: int = 0
    driver: int = 0
    """Newest CUDA that the driver knows, as CUDA counts: 12040 is 12.4."""
    runtime: int = 0
    cupy: str = ""

    @property
    def present(self) -> bool:
        """Whether a CUDA device can be used."""
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
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


@functools.cache
def probe(seconds_timeout: float = 60) -> Gpu:
    """Look for a CUDA device in a child process, so that this process stays free of the driver. Never raises."""
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
    """The CuPy module; `ImportError` with the install line where there is none."""
    if importlib.util.find_spec("cupy") is None:
        raise ImportError(f"This needs CuPy: {INSTALL}")
    return __import__("cupy")


class Device(ABC):
    """Device on which a launcher puts its arrays and runs its kernels: a GPU through CuPy, or a stand-in in tests."""

    @abstractmethod
    def empty(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """A new array with any content."""

    @abstractmethod
    def zeros(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """A new array of zeros."""

    @abstractmethod
    def put(self, array: np.ndarray) -> Any:
        """A copy of `array` on the device."""

    @abstractmethod
    def clear(self, array: Any) -> None:
        """array[...] = 0."""

    @abstractmethod
    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """`work`, which launches kernels and does nothing else, as a function that launches them all at once.

        Each of the kernels must have been launched before, for a kernel is compiled then.
        """

    @abstractmethod
    def read(self, array: Any) -> np.ndarray:
        """A copy of `array` on the host; waits for the device."""

    @abstractmethod
    def contiguous(self, array: Any) -> Any:
        """`array` itself where its elements lie side by side in C order, else a copy where they do."""

    @abstractmethod
    def assign(self, target: Any, source: Any) -> None:
        """target[...] = source."""

    @abstractmethod
    def is_aligned(self, array: Any) -> bool:
        """Whether `array` starts at a multiple of 16 bytes."""

    @abstractmethod
    def launch(self, source: Source, name: str, blocks: int, *args: Any) -> None:
        """Run a kernel of `source` in so many blocks of `THREADS` threads.

        `args` are arrays of this device, numbers of NumPy types, an int, which the kernel takes as int64, or a bool,
        which it takes as int.
        """


class CupyDevice(Device):
    """The current CUDA device, through CuPy. Work is put into CuPy's current stream."""

    def __init__(self) -> None:
        self.cupy = cupy()

    def empty(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """An array from CuPy's pool, with whatever values."""
        return self.cupy.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: object) -> Any:
        """An array of zeros from CuPy's pool."""
        return self.cupy.zeros(shape, dtype)

    def put(self, array: np.ndarray) -> Any:
        """A copy on the device."""
        return self.cupy.asarray(array)

    def clear(self, array: Any) -> None:
        """Fill `array` with zeros, in the current stream."""
        array.fill(0)

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        """A CUDA graph, captured in the first call."""
        return _Graph(self.cupy, work).run

    def read(self, array: Any) -> np.ndarray:
        """A copy on the host."""
        return self.cupy.asnumpy(array)  # synchronize!

    def contiguous(self, array: Any) -> Any:
        """`array` in C order, a copy where it is not."""
        return array if array.flags.c_contiguous else self.cupy.ascontiguousarray(array)

    def assign(self, target: Any, source: Any) -> None:
        """Copy `source` into `target` by CuPy's own kernel."""
        target[...] = source

    def is_aligned(self, array: Any) -> bool:
        """CuPy's own arrays are; views may not be."""
        return array.data.ptr % 16 == 0

    def launch(self, source: Source, name: str, blocks: int, *args: Any) -> None:
        """Compile the kernel where that was not done before, and launch it."""
        compiled(source, name)((blocks,), (THREADS,), tuple(map(as_argument, args)))


class _Graph:
    """Work as a CUDA graph, captured in the first call: nothing of it runs then, and none of it may be compiled."""

    def __init__(self, module: ModuleType, work: Callable[[], None]) -> None:
        self.cuda, self.work = module.cuda, work
        self.graph: Any = None

    def run(self) -> None:
        """Launch the graph in the current stream."""
        if self.graph is None:
            self.graph = self._capture()
        self.graph.launch(self.cuda.get_current_stream())

    def _capture(self) -> Any:
        """Capture in a stream of its own, then gone: there may be hundreds of graphs, and work may raise an error."""
        stream = self.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            self.work()
            return stream.end_capture()


_BOOLS = np.int32(0), np.int32(1)


def as_argument(arg: Any) -> Any:
    """`arg` of a launch with its C type told: bool as int, int as int64; a float must be of a NumPy type."""
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
def compiled(source: Source, name: str) -> Any:
    """The kernel `name` of a source, compiled on first use; CuPy from 14.2 on keeps it on disk, by text and options."""
    source.check(name)
    module = cupy().RawModule(code=source.text, options=OPTIONS, name_expressions=(name,))
    return module.get_function(name)


_devices: dict[type, Device] = {}


def register_device(array_type: type, device: Device) -> None:
    """Let launchers take arrays of `array_type`, which live on `device`."""
    _devices[array_type] = device


def of(array: Any) -> Device:
    """The device that `array` lives on; `TypeError` for arrays of the host."""
    kind = type(array)
    if kind not in _devices:
        if kind.__module__.split(".")[0] != "cupy":
            raise TypeError(f"A GPU twin was given a {kind.__module__}.{kind.__name__}; pass CuPy arrays.")
        register_device(kind, CupyDevice())
    return _devices[kind]
