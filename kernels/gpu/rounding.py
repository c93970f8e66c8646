"""Launches of `rounding.cu`, and how launches of other sources say how they round to two bytes a value."""

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
    """Rounding of float32 values to two bytes; `KernelError` for a seed or a step that is not taken.

    Without a seed to the nearest, of two to the even one. With one, up or down at random, so that the mean is right:
    steps that are too small to change a weight by rounding to the nearest then do so now and then. The random number of
    an element depends on the seed, the step and the element's place in the array alone, so that a repeated call gives
    the same bits.
    """

    seed: int | None = None
    """0 to 2**63 - 1, or None."""
    step: Any = 0
    """0 to 2**63 - 1, another one for every call on the same array; or int64 [1] on the device, where it changes from
    launch to launch of the same work."""

    def __post_init__(self) -> None:
        if self.seed is not None:
            _check("seed", self.seed, "and None to round to the nearest")
        if getattr(self.step, "dtype", None) != np.int64 or getattr(self.step, "shape", None) != (1,):
            _check("step", self.step, "and int64 [1] on the device")

    def arguments(self, array: Any) -> tuple:
        """Arguments that `ROUNDING` in rounding.cuh names; `array` is any of the device's."""
        if self.seed is None:
            return np.int32(0), 0, 0, array
        if hasattr(self.step, "shape"):
            return np.int32(2), self.seed, 0, self.step
        return np.int32(1), self.seed, self.step, array


def _check(name: str, number: Any, or_else: str) -> None:
    if type(number) is not int or not 0 <= number < 2**63:
        raise KernelError(f"{name} is {number!r}; allowed are int from 0 to 2**63 - 1, {or_else}.")


NEAREST = Rounding()


def rounded(values: Any, out: Any, rounding: Rounding = NEAREST) -> None:
    """out = `values` float32, both of one shape; `out` float16, or bfloat16 as uint16.

    Raises `KernelError` for other types and shapes, and `TypeError` for arrays of the host.
    """
    device = devices.of(values) and devices.of(out)
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
    """Add one to `counter` int64 [1], the step of a `Rounding` on the device: for work that is repeated as it is."""
    devices.of(counter).launch(_CUDA, "next_step", 1, counter)
