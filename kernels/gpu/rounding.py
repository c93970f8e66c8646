"""Launches of `rounding.cu`, and the rounding arguments of other kernels with two bytes per value."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import devices
from kernels.contract import KernelError
from kernels.gpu.source import NARROW, blocks, source

PACKS = (4, 1)
"""Values that a thread rounds at once."""

_ROUND = [f"round_values<{kind}, {pack}>" for kind in NARROW.values() for pack in PACKS]
_CUDA = source(__file__, [*_ROUND, "next_step"])


@dataclass(frozen=True)
class Rounding:
    """Rounding of float32 to two bytes per value. Raises KernelError for an invalid seed or step.

    Without a seed to nearest, ties to even. With a seed stochastically, so that the mean is exact: steps too small to
    change a weight then do so occasionally. The random number of an element depends on seed, step and position only, so
    that a repeated call gives the same bits.
    """

    seed: int | None = None
    """0 to 2**63 - 1, or None."""
    step: Any = 0
    """0 to 2**63 - 1, another one for every call on the same array; or int64 [1] on the device, where it changes from
    launch to launch of the same work."""

    def __post_init__(self) -> None:
        """Raise KernelError unless seed is None or int, step int64 [1] on the device or int, in [0, 2**63)."""
        if self.seed is not None:
            _check("seed", self.seed, "and None to round to the nearest")
        if getattr(self.step, "dtype", None) != np.int64 or getattr(self.step, "shape", None) != (1,):
            _check("step", self.step, "and int64 [1] on the device")

    def arguments(self, array: Any) -> tuple:
        """Return the kernel arguments (mode, seed, step, array) of `ROUNDING` in rounding.cuh.

        `array` is any device array.
        """
        if self.seed is None:
            return np.int32(0), 0, 0, array
        if hasattr(self.step, "shape"):
            return np.int32(2), self.seed, 0, self.step
        return np.int32(1), self.seed, self.step, array


def _check(name: str, number: Any, or_else: str) -> None:
    """Raise KernelError unless `number` is an int in [0, 2**63); `or_else` ends the message with the alternative."""
    if type(number) is not int or not 0 <= number < 2**63:
        raise KernelError(f"{name} is {number!r}; allowed are int from 0 to 2**63 - 1, {or_else}.")


NEAREST = Rounding()


def rounded(values: Any, out: Any, rounding: Rounding = NEAREST) -> None:
    """Round `values` float32 into `out`, float16 or bfloat16 as uint16, of the same shape; overwrites `out`.

    Raises KernelError for other dtypes and shapes, and TypeError for host arrays.
    """
    device = devices.device_of(values) and devices.device_of(out)
    kinds = values.dtype.name, out.dtype.name
    if kinds[0] != "float32" or kinds[1] not in NARROW:
        raise KernelError(
            f"values and out are {', '.join(kinds)}; allowed are float32, {' or '.join(NARROW)} (bfloat16)."
        )
    if values.shape != out.shape:
        raise KernelError(f"values {list(values.shape)} and out {list(out.shape)} have one shape.")
    if not out.size:
        return
    values, written = device.contiguous(values), device.contiguous(out)
    is_packed = out.size % PACKS[0] == 0 and device.is_aligned(values) and device.is_aligned(written)
    pack = PACKS[0] if is_packed else PACKS[1]
    name, packs = f"round_values<{NARROW[kinds[1]]}, {pack}>", out.size // pack
    device.launch(_CUDA, name, blocks(packs), values, written, packs, *rounding.arguments(written))
    if written is not out:
        device.assign(out, written)


def next_step(counter: Any) -> None:
    """Queue counter[0] += 1 on the device, int64 [1]: the step of a `Rounding` in work that is repeated as a graph."""
    devices.device_of(counter).launch(_CUDA, "next_step", 1, counter)
