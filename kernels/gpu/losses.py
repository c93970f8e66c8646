"""Launches of losses: the kernel of a loss by element, and the sum over its blocks."""

from typing import Any

import numpy as np

from kernels import devices
from kernels.gpu.source import FLOATS, Source, c_name, grid, source

LOSSES = ("softmax", "logistic", "squared")
"""Losses that a step in one graph can have."""

ELEMENTS = 4096
"""Elements of a block, as in `losses.cuh`, and of a part, as in `sums.cu`."""

_SUM = source(__file__, ["sum_all", "sum_parts"], "sums.cu")


def names_of(kernel: str) -> list[str]:
    """Every variant of a loss."""
    return [f"{kernel}<{value}>" for value in FLOATS]


def add_up(sums: Any, parts: Any, result: Any) -> None:
    """result [1] = the sum of float64 values, in one order; `parts` float64 has room for one in `ELEMENTS` of them."""
    device, size, count = devices.of(sums), sums.size, -(-sums.size // ELEMENTS)
    if count > 1:
        device.launch(_SUM, "sum_parts", grid(count), sums, size, parts, count)
        sums, size = parts, count
    device.launch(_SUM, "sum_all", 1, sums, size, result)


def room_for(device: devices.Device, size: int) -> tuple[Any, Any, Any]:
    """Arrays for `add_up` of `size` values: themselves, parts, result."""
    sizes = size, -(-size // ELEMENTS), 1
    return tuple(device.empty(size, np.float64) for size in sizes)


def total(sums: Any) -> float:
    """The sum of float64 values."""
    device = devices.of(sums)
    _, parts, result = room_for(device, sums.size)
    add_up(sums, parts, result)
    return float(device.read(result)[0])  # synchronize!


def rows_of(counted: Any, instead: Any) -> tuple[Any, bool]:
    """Argument of loss kernels for `counted` int64 [1], the number of rows where the arrays have room for more.

    Where it is None all rows count, and the kernel is given the array `instead`, which it does not read.
    """
    return (instead if counted is None else counted), counted is not None


def each_element(
    code: Source, kernel: str, scores: Any, targets: Any, gradient: Any, sums: Any, counted: Any = None
) -> None:
    """Fill `gradient`, and `sums` float64 with the losses of blocks of `ELEMENTS`, to be divided by the rows.

    Rows from `counted` on, int64 [1] on the device, have no part in either; by default all have.
    """
    name, count = f"{kernel}<{c_name(gradient.dtype)}>", sums.size
    arguments = scores, targets, gradient, *scores.shape, *rows_of(counted, sums), sums, count
    devices.of(gradient).launch(code, name, grid(count), *arguments)


def mean_loss(code: Source, kernel: str, scores: Any, targets: Any, gradient: Any) -> float:
    """The loss of a kernel by element, divided by the number of rows; fills `gradient`."""
    if not scores.size:
        return 0.0
    sums = devices.of(gradient).empty(-(-scores.size // ELEMENTS), np.float64)  # [blocks]
    each_element(code, kernel, scores, targets, gradient, sums)
    return total(sums) / scores.shape[0]
