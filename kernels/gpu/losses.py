"""Launches of losses: the kernel of a loss by element, and the sum over its blocks."""

import numpy as np

from kernels import devices
from kernels.gpu.source import FLOATS, Source, c_name, grid, source

ELEMENTS = 4096
"""Elements of a block, as in `losses.cuh`."""

_SUM = source(__file__, ["sum_all"], "sums.cu")


def names_of(kernel: str) -> list[str]:
    """Every variant of a loss."""
    return [f"{kernel}<{value}>" for value in FLOATS]


def total(sums) -> float:
    """The sum of float64 values, in one order."""
    device = devices.of(sums)
    result = device.empty(1, np.float64)
    device.launch(_SUM, "sum_all", 1, sums, sums.size, result)
    return float(device.read(result)[0])  # synchronize!


def mean_loss(code: Source, kernel: str, scores, targets, gradient) -> float:
    """The loss of a kernel by element, divided by the number of rows; fills `gradient`."""
    rows, size = max(scores.shape[0], 1), scores.size
    if not size:
        return 0.0
    device, count = devices.of(gradient), -(-size // ELEMENTS)
    sums, scale = device.empty(count, np.float64), gradient.dtype.type(1 / rows)  # [blocks]
    name = f"{kernel}<{c_name(gradient.dtype)}>"
    device.launch(code, name, grid(count), scores, targets, gradient, size, scale, sums, count)
    return total(sums) / rows
