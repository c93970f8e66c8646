"""Meters of the machine beside a trial: energy, throttling, swapping, frequency; null if unknown it.

Energy is that of the processor packages (RAPL, which many systems let the administrator alone read), or that of the
CUDA device, where its library is loaded already. There is no estimate: without a meter there is no number.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, final

import psutil

POWERCAP = Path("/sys/class/powercap")
CORES = Path("/sys/devices/system/cpu")
FREQUENCY = "cpufreq/scaling_cur_freq"
NVML = "pynvml"


@final
class Meters:
    """Readings from its making on; `columns` says what came since, but for what was between `pause` and `resume`."""

    def __init__(self, device: str = "cpu", powercap: Path = POWERCAP, cores: Path = CORES) -> None:
        self.device, self.cores = device, cores
        self.packages = [zone for zone in sorted(powercap.glob("intel-rapl:*")) if zone.name.count(":") == 1]
        self.start = self.paused = self._counters()
        self.has_energy = self.start[0] is not None

    def _counters(self) -> tuple[float | None, ...]:
        """Joules, times throttled, bytes swapped, as the system counts them; None if it does not."""
        return self._joules(), self._throttled(), _swapped()

    def pause(self) -> None:
        """Leave out what comes until `resume`."""
        self.paused = self._counters()

    def resume(self) -> None:
        """Go on after a pause."""
        grown = (_since(then, now) for then, now in zip(self.paused, self._counters(), strict=True))
        both = zip(self.start, grown, strict=True)
        self.start = tuple(None if start is None or more is None else start + more for start, more in both)

    def columns(self, steps: int) -> dict[str, Any]:
        """Return the columns of a row, energy for each of so many steps."""
        joules, throttled, swapped = (_since(*both) for both in zip(self.start, self._counters(), strict=True))
        return {
            "joules_step": None if joules is None or not steps else joules / steps,
            "meter": self.meter(),
            "throttled": throttled,
            "bytes_swapped": swapped,
            "hertz": self._hertz(),
        }

    def meter(self) -> str:
        """Return the name of the meter of energy, or "no meter"."""
        if not self.has_energy:
            return "no meter"
        return "NVML, the device" if self.device == "cuda" else "RAPL, the processor packages"

    def _joules(self) -> float | None:
        """Return the energy counter in joules, of the device or all processor packages; None if unknown."""
        if self.device == "cuda":
            return _joules_of_device()
        read = [_number(zone / "energy_uj") for zone in self.packages]
        known = [value for value in read if value is not None]
        return sum(known) / 1e6 if known and len(known) == len(read) else None

    def _throttled(self) -> int | None:
        """Return how often cores were throttled since boot; None if unknown."""
        counts = [_number(file) for file in self.cores.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
        known = [int(count) for count in counts if count is not None]
        return sum(known) if known else None

    def _hertz(self) -> float | None:
        """Mean frequency of the cores now."""
        known = [1e3 * value for file in self.cores.glob(f"cpu[0-9]*/{FREQUENCY}") if (value := _number(file))]
        return _mean(known)


def _since(before: Any, now: Any) -> Any:
    """Return the growth of a counter; None if it is unavailable or was reset."""
    return None if before is None or now is None or now < before else now - before


def _mean(values: Iterable[float]) -> float | None:
    """Return the mean of the values; None without values."""
    known = list(values)
    return sum(known) / len(known) if known else None


def _number(file: Path) -> float | None:
    """Return the number in a file; None if it may not be read, or has none."""
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None


def _swapped() -> int:
    """Return the bytes that the machine moved to and from its swap, since it started."""
    swap = psutil.swap_memory()
    return swap.sin + swap.sout


def _joules_of_device() -> float | None:
    """Energy of the first CUDA device since its driver was loaded, where the library that tells it is imported."""
    nvml = sys.modules.get(NVML)
    if nvml is None:
        return None
    try:
        return float(nvml.nvmlDeviceGetTotalEnergyConsumption(nvml.nvmlDeviceGetHandleByIndex(0))) / 1e3
    except nvml.NVMLError:
        return None
