"""Launches of losses: the elementwise kernel, and the sum of its blocks."""

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
    """Return the C++ names of all instances of a loss kernel: ["logistic<float>", "logistic<double>"]."""
    return [f"{kernel}<{value}>" for value in FLOATS]


def add_up(sums: Any, parts: Any, result: Any) -> None:
    """Queue result[0] = sum of `sums`, float64, added in a fixed order.

    `parts` float64 is scratch memory with one element per `ELEMENTS`.
    """
    device, size, count = devices.device_of(sums), sums.size, -(-sums.size // ELEMENTS)
    if count > 1:
        device.launch(_SUM, "sum_parts", grid(count), sums, size, parts, count)
        sums, size = parts, count
    device.launch(_SUM, "sum_all", 1, sums, size, result)


def room_for(device: devices.Device, size: int) -> tuple[Any, Any, Any]:
    """Return uninitialised float64 device arrays for `add_up` of `size` values: (values, parts, result [1])."""
    sizes = size, -(-size // ELEMENTS), 1
    return tuple(device.empty(size, np.float64) for size in sizes)


def total(sums: Any) -> float:
    """Return the sum of a float64 device array, added in a fixed order; waits for the device."""
    device = devices.device_of(sums)
    _, parts, result = room_for(device, sums.size)
    add_up(sums, parts, result)
    return float(device.read(result)[0])  # synchronize!


def rows_of(counted: Any, instead: Any) -> tuple[Any, bool]:
    """Return (array, whether it is used): the argument of loss kernels for `counted`, the number of valid rows.

    `counted` is int64 [1] on the device, or None if all rows count; then the array is `instead`, which is not read.
    """
    return (instead if counted is None else counted), counted is not None


def each_element(
    code: Source, kernel: str, scores: Any, targets: Any, gradient: Any, sums: Any, counted: Any = None
) -> None:
    """Queue an elementwise loss `kernel` of `code`: overwrites `gradient` [R, N] and `sums` float64 [blocks].

    Rows from `counted` (int64 [1] on the device) on are excluded; None: none. The gradient is divided by the row count.
    """
    name, count = f"{kernel}<{c_name(gradient.dtype)}>", sums.size
    arguments = scores, targets, gradient, *scores.shape, *rows_of(counted, sums), sums, count
    devices.device_of(gradient).launch(code, name, grid(count), *arguments)


def mean_loss(code: Source, kernel: str, scores: Any, targets: Any, gradient: Any) -> float:
    """Overwrite `gradient` [R, N] and return the mean loss over the rows, 0.0 without any; waits for the device.

    scores, targets [R, N]; `kernel` is the name of an elementwise loss in the source `code`.
    """
    if not scores.size:
        return 0.0
    sums = devices.device_of(gradient).empty(-(-scores.size // ELEMENTS), np.float64)  # [blocks]
    each_element(code, kernel, scores, targets, gradient, sums)
    return total(sums) / scores.shape[0]
