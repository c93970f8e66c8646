"""The machine and the software of a result: what identifies the machine, what it has, versions, BLAS and processor."""

import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, final

import psutil
import threadpoolctl

from kernels import devices, threads
from workbench.measure import environment

# Meters of the machine during a trial: energy, throttling, swapping, frequency; null if unknown it.
#
# Energy is that of the processor packages (RAPL, which many systems let the administrator alone read), or that of the
# CUDA device, where its library is loaded already. There is no estimate: without a meter there is no number.


POWERCAP = Path("/sys/class/powercap")
CORES = Path("/sys/devices/system/cpu")
FREQUENCY = "cpufreq/scaling_cur_freq"
NVML = "pynvml"


@final
class Meters:
    """Readings from its making on; `columns` says what came since, but for what was between `pause` and `resume`."""

    def __init__(self, device: str = "cpu", powercap: Path = POWERCAP, cores: Path = CORES) -> None:
        """Read the counters, which are the start of the measurement; `device` "cuda" takes its energy meter."""
        self.device, self.cores = device, cores
        self.packages = [zone for zone in sorted(powercap.glob("intel-rapl:*")) if zone.name.count(":") == 1]
        self.start = self.paused = self._counters()
        self.has_energy = self.start[0] is not None

    def _counters(self) -> tuple[float | None, ...]:
        """Return (joules, throttle events, bytes swapped) since arbitrary origins.

        None if a counter is not available.
        """
        return self._joules(), self._throttled(), _swapped()

    def pause(self) -> None:
        """Exclude what happens until `resume`."""
        self.paused = self._counters()

    def resume(self) -> None:
        """Continue counting after `pause`; what happened since is excluded."""
        grown = (_since(then, now) for then, now in zip(self.paused, self._counters(), strict=True))
        both = zip(self.start, grown, strict=True)
        self.start = tuple(None if start is None or more is None else start + more for start, more in both)

    def columns(self, steps: int) -> dict[str, Any]:
        """Return the record columns joules_step, meter, throttled, bytes_swapped and hertz, measured since the start.

        Energy is divided by `steps`; columns are None if unavailable.
        """
        joules, throttled, swapped = (_since(*both) for both in zip(self.start, self._counters(), strict=True))
        return {
            "joules_step": None if joules is None or not steps else joules / steps,
            "meter": self.meter(),
            "throttled": throttled,
            "bytes_swapped": swapped,
            "hertz": self._hertz(),
        }

    def meter(self) -> str:
        """Return the name of the energy meter, such as "RAPL, the processor packages", or "no meter"."""
        if not self.has_energy:
            return "no meter"
        return "NVML, the device" if self.device == "cuda" else "RAPL, the processor packages"

    def _joules(self) -> float | None:
        """Return the energy counter (J) of the CUDA device, or of all processor packages; None if unavailable."""
        if self.device == "cuda":
            return _joules_of_device()
        read = [_number(zone / "energy_uj") for zone in self.packages]
        known = [value for value in read if value is not None]
        return sum(known) / 1e6 if known and len(known) == len(read) else None

    def _throttled(self) -> int | None:
        """Return how often all cores were throttled since boot; None if unavailable."""
        counts = [_number(file) for file in self.cores.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
        known = [int(count) for count in counts if count is not None]
        return sum(known) if known else None

    def _hertz(self) -> float | None:
        """Return the mean frequency of the cores now, in Hz; None if the system does not report it."""
        known = [1e3 * value for file in self.cores.glob(f"cpu[0-9]*/{FREQUENCY}") if (value := _number(file))]
        return _mean(known)


def _since(before: Any, now: Any) -> Any:
    """Return `now - before` of a counter; None if either is None or the counter was reset."""
    return None if before is None or now is None or now < before else now - before


def _mean(values: Iterable[float]) -> float | None:
    """Return the mean of the values; None if there are none."""
    known = list(values)
    return sum(known) / len(known) if known else None


def _number(file: Path) -> float | None:
    """Return the number in a file; None if it cannot be read or holds none."""
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None


def _swapped() -> int:
    """Return the bytes that the machine has moved to and from swap since boot."""
    swap = psutil.swap_memory()
    return swap.sin + swap.sout


def _joules_of_device() -> float | None:
    """Return the energy (J) used by the first CUDA device since its driver was loaded.

    None if NVML is not imported in this process or does not report it.
    """
    nvml = sys.modules.get(NVML)
    if nvml is None:
        return None
    try:
        return float(nvml.nvmlDeviceGetTotalEnergyConsumption(nvml.nvmlDeviceGetHandleByIndex(0))) / 1e3
    except nvml.NVMLError:
        return None


# Software and processor that code runs on: what two results must share to be pooled.


CODE_PACKAGES = ("numpy", "scipy", "numba", "llvmlite")
"""Packages whose code is in every result."""

_LOADED = "import json, numpy, scipy.linalg, threadpoolctl as t; print(json.dumps(t.threadpool_info()))"


@functools.cache
def describe_stack(*more: str) -> dict[str, str]:
    """Return {name: version} of Python, `CODE_PACKAGES`, BLAS and `more` packages, and the processor's name.

    "" for a package that is not installed; cached.
    """
    return code_versions(*more) | {"blas": _blas(), "cpu": cpu_name()}


def code_versions(*more: str) -> dict[str, str]:
    """Return {name: version} of Python, of `CODE_PACKAGES` and of the packages `more`; "" if not installed."""
    return {"python": platform.python_version()} | {name: _version(name) for name in (*CODE_PACKAGES, *more)}


@functools.cache
def _version(package: str) -> str:
    """Return the installed version of a package, "" if it is not installed; looked up once in a process."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


WHEELS = {"numpy.libs", "scipy.libs"}
"""Folders of the BLAS of the wheels of NumPy and SciPy, the same in each process without distorting variables."""


@functools.cache
def _blas() -> str:
    """Return name, version and architecture of the BLAS that a measuring process loads; cached.

    If this process has loaded others, or under variables that are removed for measuring, a process is started to find
    it, which takes 0.3 s.
    """
    importlib.import_module("scipy.linalg")
    info = threadpoolctl.threadpool_info()
    folders = {Path(entry["filepath"]).parent.name for entry in info if entry["user_api"] == "blas"}
    if folders == WHEELS and not environment.distorting_variables():
        return environment.blas_name(info)
    done = subprocess.run(
        [sys.executable, "-c", _LOADED],
        capture_output=True,
        text=True,
        check=True,
        env=environment.measuring_environment(),
    )
    return environment.blas_name(json.loads(done.stdout))


PACKAGES = (
    "sparse-workbench",
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "pandas",
    "scikit-learn",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "torch",
)
CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def versions() -> dict[str, str]:
    """Return {name: version} of Python and of the packages that change results; absent ones are left out."""
    installed = {name: version for name in PACKAGES if (version := _version(name))}
    return {"python": platform.python_version()} | installed


def cpu_name() -> str:
    """Return the processor's model name, with family and model numbers if the system gives them."""
    text = CPUINFO.read_text() if CPUINFO.exists() else ""
    fields = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+)$", text, re.M))
    name = fields.get("model name") or platform.processor() or platform.machine()
    return f"{name} (family {fields['cpu family']}, model {fields['model']})" if "cpu family" in fields else name


def caches() -> dict[str, str]:
    """Return {"L1 data": "32K", ...}, the size of each cache of the first core.

    {} if the system does not report them.
    """
    sizes = {}
    for folder in sorted(CACHES.glob("index*")):
        level, kind, size = ((folder / part).read_text().strip() for part in ("level", "type", "size"))
        sizes[f"L{level} {kind.lower()}"] = size
    return sizes


BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""Kinds of processor time in which a core was not free: that of programs that give way is among them, ours too."""


class OtherPrograms:
    """Share of the cores that other programs take, since it was made: they spoil times, above all of parallel code.

    Time between `pause` and `resume` is left out, as is what any program did then.
    """

    def __init__(self) -> None:
        """Read the processor times now, which are the start of the measurement."""
        self.start = self.paused = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Return (CPU s of all processes, of this and those it waited for, wall s), since arbitrary origins."""
        times, own = psutil.cpu_times(), os.times()
        busy = sum(getattr(times, kind, 0.0) for kind in BUSY)
        return busy, time.process_time() + own.children_user + own.children_system, time.perf_counter()

    def pause(self) -> None:
        """Exclude what happens until `resume`."""
        self.paused = self._now()

    def resume(self) -> None:
        """Continue counting after `pause`; what happened since is excluded."""
        since = (now - then for now, then in zip(self._now(), self.paused, strict=True))
        busy, own, seconds = (start + passed for start, passed in zip(self.start, since, strict=True))
        self.start = busy, own, seconds

    def share(self) -> float:
        """Return the mean share of all cores, 0 to 1, that other programs took since the start.

        Guests of the same host (stolen time) count as other programs.
        """
        return share_of(*self.taken())

    def taken(self) -> tuple[float, float]:
        """Return the seconds of processors that other programs took since the start, and those of all cores.

        The system counts in ticks of 10 ms: of a shorter time the first is far off, also below 0, but not on average.
        """
        busy, own, seconds = (now - then for now, then in zip(self._now(), self.start, strict=True))
        return busy - own, (os.cpu_count() or 1) * seconds


def share_of(taken: float, of_all: float) -> float:
    """Return the share, 0 to 1, that other programs took, from what `OtherPrograms.taken` returned or a sum of it.

    >>> share_of(0.5, 2.0), share_of(-0.01, 2.0)
    (0.25, 0.0)
    """
    return min(max(taken / of_all, 0.0), 1.0) if of_all > 0 else 0.0


DISTURBED = 0.1
"""Share of the cores that a trial runs on which other programs may take before they disturb it."""
FREE = 0.125
"""Share of the cores that a trial leaves free which they may take: those share its caches and its memory.

Measured on two cores next to a program on the free one, 10 rounds, times slower than alone: dense on one thread 1.01
(0.90 to 1.14) next to arithmetic, 1.46 (1.05 to 2.04) next to one that copies memory; CSR 1.28 (0.78 to 2.10) there.
"""


def disturbance_limit(threads: int) -> float:
    """Return the share of all cores, 0 to 1, that other programs may take during a trial on `threads` threads."""
    cores = os.cpu_count() or 1
    used = min(threads, cores)
    return (DISTURBED * used + FREE * (cores - used)) / cores


def describe_machine() -> dict:
    """Return the description of this machine for stored results, a dict for JSON.

    It has id, cpu, cores, caches, memory (bytes), system, BLAS, GPU, threading layers and versions.
    """
    return {
        "id": machine_id(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "caches": caches(),
        "bytes_memory": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "blas": environment.loaded_libraries(),
        "gpu": gpu(),
        "numba_threading_layer": threads.choose_layer(),
        "numba_threading_layers": threads.available_layers(),
        "versions": versions(),
    }


def gpu() -> dict:
    """Return the fields of `devices.Gpu`, probed in a child process; {"reason": ...} without a CUDA device."""
    device = devices.probe()
    return dataclasses.asdict(device) if device.present else {"reason": device.reason}


def machine_id() -> str:
    """Return a name for this machine, usable as a folder name: processor, cores, and four digits of a hash.

    The hash is of processor, cores, caches and memory.
    """
    gigabytes = round(psutil.virtual_memory().total / 2**30)
    detail = f"{cpu_name()}|{os.cpu_count()}|{caches()}|{gigabytes}"
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(.*?\)|@.*|processor|cpu", "", cpu_name(), flags=re.I).lower())
    return f"{words.strip('-')}-{os.cpu_count()}-cores-{hashlib.sha256(detail.encode()).hexdigest()[:4]}"
