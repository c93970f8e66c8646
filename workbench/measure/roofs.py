"""Roofs of the kernels of a step on a machine: its memory, its cores and its BLAS, measured in about two seconds.

The rates are a few of the rates of `workbench bench kernels`. Beside them stand the operations a second of the
BLAS in a product of square matrices that its caches hold, for that is what bounds dense products.

>>> import kernels
>>> rates = [["read", 2**20, 0, 1, 8e10], ["gather", 2**20, 64, 1, 4e10]]
>>> roofs = Roofs({"rates": rates, "operations": {"1": 1e11}}, threads=1)
>>> seconds, by = roofs.bound(kernels.get("blas.dense_dense"), kernels.Sizes(R=256, z=0, D=1024, N=64, U=0))
>>> round(1e6 * seconds), by
(336, 'operations')
"""

import dataclasses
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import threadpoolctl

from kernels import Kernel, Sizes
from workbench.measure import bandwidth
from workbench.measure.bandwidth import LINE, MIB, Bandwidth, Limits

STREAM_SIZES = (MIB, 24 * MIB, 96 * MIB)
TABLE_SIZES = (MIB // 32, MIB, 8 * MIB, 64 * MIB)
ROW_SIZES = (4, 64, 256, 1024)
SECONDS = 0.005
"""Time spent on each rate, about."""
ORDER, PRODUCTS = 512, 6
"""Rows and columns of the matrices that BLAS multiplies, and how often; the fastest counts."""


def measure(counts: Iterable[int]) -> dict[str, Any]:
    """Return rates, as the fields of `Bandwidth`, and operations a second of float32 by BLAS, on so many threads.

    JSON.
    """
    counts = sorted(set(counts))
    rates = bandwidth.measure(counts, STREAM_SIZES, TABLE_SIZES, ROW_SIZES, SECONDS)
    return {
        "rates": [list(dataclasses.astuple(rate)) for rate in rates],
        "operations": {str(count): operations_of_blas(count) for count in counts},
    }


def operations_of_blas(threads: int) -> float:
    """Operations a second of float32 in the fastest of a few products of square matrices, on so many threads."""
    a, b = np.random.default_rng(0).random((2, ORDER, ORDER), np.float32)
    out, seconds = np.empty_like(a), []
    with threadpoolctl.threadpool_limits(limits=threads):
        for _ in range(PRODUCTS):
            start = perf_counter()
            np.matmul(a, b, out=out)
            seconds.append(perf_counter() - start)
    return 2 * ORDER**3 / min(seconds)


class Roofs:
    """Rates that `measure` found on so many threads, and the bounds that follow. KeyError without that count."""

    def __init__(self, measured: Mapping[str, Any], threads: int) -> None:
        self.limits = Limits([Bandwidth(*rate) for rate in measured["rates"]], threads)
        self.operations = measured["operations"][str(threads)]

    def bound(self, kernel: Kernel, sizes: Sizes) -> tuple[float, str]:
        """Return (seconds that no call can be faster than, what makes it so: stream, gather, instructions or
        operations).

        Rows are gathered from the caches as far as these can hold them, the most favourable order. BLAS is taken to do
        half as many operations of float64 as of float32.
        """
        cost = kernel.cost(sizes)
        memory = self.limits.bound(
            bytes_compulsory=cost.bytes_compulsory,
            bytes_gather=cost.bytes_gather,
            bytes_table=table_bytes(kernel, sizes),
            bytes_row=sizes.N * sizes.value,
            work=dict(cost.work),
        )
        return max(memory, (cost.flops * sizes.value / 4 / self.operations, "operations"))


def table_bytes(kernel: Kernel, sizes: Sizes) -> int:
    """Return the bytes of the table that the kernel gathers rows of.

    A gradient those of g [R, N], others those of x [D, N].
    """
    is_gradient = any(name == "g" for name, _, _ in kernel.parsed)
    return sizes.R * sizes.N * sizes.value if is_gradient else touched_bytes(sizes)


def touched_bytes(sizes: Sizes) -> int:
    """Return the bytes of the lines that U rows of a [D, N] table lie in."""
    row = sizes.N * sizes.value
    return min(sizes.U * max(row, LINE), sizes.D * row)
