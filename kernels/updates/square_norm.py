"""The sum of squares of all elements, in float64: the square of a gradient's norm.

Arguments  values float32|float64 [U, N]
Writes     nothing; returns the sum, a Python float, 0.0 when there are no elements
Assumes    nothing
Cost       2*U*N flops; reads U*N*value bytes
Parallel   over blocks of fixed size, summed in float64 and then in their order: same bits on every run and thread count
Limits     U*N < 2**63; squares beyond 1e308 make it infinite
Source     Definition
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.losses import ELEMENTS, names_of, total
from kernels.gpu.source import c_name, grid, source
from kernels.threads import BLOCK, call_parallel, compiled_parallel, compiled_sums, sum_of


def reference(values):
    """Sum the squares of all elements in plain loops.

    values float32|float64 [U, N]. Returns a Python float, summed in float64, 0.0 without elements: the squared norm of
    a gradient.
    """
    total = 0.0
    for row in values:
        for value in row:
            total += float(value) * float(value)
    return total


@compiled_sums
def _block(values):
    """Return the sum of squares of the 1-d `values`, in float64; the order of the terms is up to the compiler."""
    total = 0.0
    for k in range(values.size):
        total += np.float64(values[k]) * np.float64(values[k])
    return total


@compiled_parallel
def _blocks(values, length, sums):
    """Write the sum of squares of each block of `length` values to sums [blocks], in parallel; values is 1-d."""
    for block in prange(sums.size):
        sums[block] = _block(values[block * length : min((block + 1) * length, values.size)])


def cpu(values):
    """Sum the squares of all elements on the CPU.

    values float32|float64 [U, N]. Returns a Python float, summed in float64, 0.0 without elements: the squared norm of
    a gradient.
    """
    sums = np.empty(-(-values.size // BLOCK))
    call_parallel(_blocks, values.size, values.reshape(-1), BLOCK, sums)
    return sum_of(sums)


_CUDA = source(__file__, names_of("square_norm"))


def gpu(values):
    """Sum the squares of all elements on a CUDA device.

    values float32|float64 [U, N]. Returns a Python float, summed in float64, 0.0 without elements: the squared norm of
    a gradient.
    """
    device, count = devices.device_of(values), -(-values.size // ELEMENTS)
    if not count:
        return 0.0
    sums = device.empty(count, np.float64)  # [blocks]
    name = f"square_norm<{c_name(values.dtype)}>"
    device.launch(_CUDA, name, grid(count), values, values.size, sums, count)
    return total(sums)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: each element is read once."""
    return Cost(2 * s.U * s.N, s.U * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands of a call from `case`: a gradient for the active columns of A."""
    return (case.dense(np.unique(case.indices).size, case.N),)


register_kernel(__name__, "square_norm", "values:f[U,N]", writes=())
