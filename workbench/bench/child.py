"""Process of a shape: it gives an answer to its request when a cell is begun, and one with the cell's rows."""

import functools
from collections.abc import Iterator
from typing import Any

import threadpoolctl

from kernels import devices, threads
from kernels.rivals import tensorflow_sparse, torch_sparse
from workbench.bench import device_clock
from workbench.bench.cells import Cell, field_of
from workbench.bench.measure import measure
from workbench.bench.rounds import Policy
from workbench.measure import bandwidth

BYTES_COPIED = 2**31
"""Size of the array that is copied to find a device's bandwidth: no cache holds a share of it worth naming."""

SWEEPS = 2
"""Turns over all sizes: a rate that something disturbed in one is right in the other."""


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answer for every cell first that it started, then its rows; or the bandwidths where no cells are asked for."""
    count = request["threads"]
    set_threads(count)
    if request["device"] == "cuda":
        yield from on_cuda(request)
        return
    if not request["cells"]:
        measured = [vars(rate) for _ in range(SWEEPS) for rate in bandwidth.measure((count,))]
        yield {"bandwidths": measured}
        return
    rates = [bandwidth.Bandwidth(**rate) for rate in request["bandwidths"]]
    limits = bandwidth.Limits(rates, count) if rates else None
    for number, settings in request["cells"]:
        yield {"cell": number}
        field = field_of(Cell.of(settings))
        yield {"cell": number, "rows": measure(field, Policy(**request["policy"]), request["bytes_limit"], limits)}


def on_cuda(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answer the same request on a CUDA device; its bandwidth is that of a copy."""
    if not request["cells"]:
        rate = device_clock.copy_rate(BYTES_COPIED)
        copied = bandwidth.Bandwidth("copy", 2 * BYTES_COPIED, 0, request["threads"], rate)
        yield {"bandwidths": [vars(copied)]}
        return
    rates = [rate["bytes_per_second"] for rate in request["bandwidths"]]
    limits = device_clock.CopyLimit(max(rates)) if rates else None
    on = devices.CupyDevice()
    timers = functools.cache(lambda cache: device_clock.on_cuda(cache, request["bytes_cache"]))
    for number, settings in request["cells"]:
        yield {"cell": number}
        cell = Cell.of(settings)
        field, timer = field_of(cell, on), timers(cell.cache or "warm")
        rows = measure(field, Policy(**request["policy"]), request["bytes_limit"], limits, on_device=timer)
        yield {"cell": number, "rows": rows}


def set_threads(count: int) -> None:
    """Give every library that is there as many threads; each has its own way."""
    threads.set_threads(count)
    threadpoolctl.threadpool_limits(limits=count)
    for rival in (torch_sparse, tensorflow_sparse):
        rival.threads = count
