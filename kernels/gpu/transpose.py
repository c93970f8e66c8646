"""Launches of `transpose.cu`."""

from typing import Any

from kernels import devices
from kernels.gpu.source import FLOATS, c_name, grid, source

SIDE = 32
"""Rows and columns of a square, as in `transpose.cu`."""

_CUDA = source(__file__, [f"transpose<{value}>" for value in FLOATS])


def transpose(x: Any, out: Any = None) -> Any:
    """Return x.T [N, R] of `x` [R, N], in C order; written to `out` if given."""
    device, (rows, columns) = devices.device_of(x), x.shape
    if out is None:
        out = device.empty((columns, rows), x.dtype)
    squares = -(-rows // SIDE) * -(-columns // SIDE)
    if squares:
        device.launch(_CUDA, f"transpose<{c_name(x.dtype)}>", grid(squares), x, out, rows, columns)
    return out
