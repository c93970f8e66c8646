"""Process of a shape: it gives an answer to its request when a configuration is begun, and one with the
configuration's rows."""

import functools
import json
import sys
import traceback
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import threadpoolctl

from benchmarks import device
from benchmarks.candidates import Ready
from benchmarks.competitors import tensorflow_sparse, torch_sparse
from benchmarks.configurations import BenchmarkConfiguration, Entry, Field, field_of
from benchmarks.device import CopyLimit, OnDevice
from benchmarks.interleaved import CallTimings, Clock, Policy, interleave, median_ratio
from benchmarks.shapes import BenchError
from kernels import devices, threads
from kernels.devices import bytes_asked
from workbench.measure import bandwidth
from workbench.measure.bandwidth import Limits
from workbench.measure.clock import median_interval
from workbench.measure.machine import OtherPrograms

# Costs of a new process before a kernel has computed: `python -m benchmarks.start NAME` prints three times.
#
# The import of `kernels` with all names looked up; the first call of any compiled function, in which Numba makes itself
# ready, once in a process; and the first call of one kernel on a small batch after that. All in seconds.


def main() -> None:
    """Print {"import", "numba", "call": seconds} of this new process as JSON; the kernel is `sys.argv[1]`."""
    begun = perf_counter()
    import numpy as np

    import kernels
    from kernels import threads

    kernels.names()
    imported = perf_counter()
    threads.equal_cost(np.array([0, 1]), 1)
    started = perf_counter()

    from benchmarks.shapes import Shape, draw_batch

    kernel = kernels.get(sys.argv[1])
    batch: Any = draw_batch(Shape("small batch", 64, 10_000, 20, slope=1.0), N=16)  # the face of a `kernels.Case`
    args = kernel.arguments(batch)
    if kernel.cpu is None:
        raise SystemExit(f"{kernel.name} has no CPU implementation.")
    ready = perf_counter()
    kernel.cpu(*args)
    print(json.dumps({"import": imported - begun, "numba": started - imported, "call": perf_counter() - ready}))


if __name__ == "__main__":
    main()


# One configuration: every candidate is made ready and checked, those that are right are timed together; one row each.


Row = dict[str, Any]


def measure(
    field: Field,
    policy: Policy,
    bytes_limit: int,
    limits: Limits | CopyLimit | None = None,
    clock: Clock = perf_counter,
    on_device: OnDevice | None = None,
) -> list[Row]:
    """Return a record of each candidate of a configuration: checked, then timed in interleaved rounds.

    `bytes_limit` is the memory of all together, `limits` give the lower bound of a call, `on_device` times calls by
    device events. Candidates that cannot run have status and reason. `field` holds the candidates, `policy` the times
    of measuring.
    """
    rows: dict[str, Row] = {}
    able: dict[str, Ready] = {}
    for entry in field.entries:
        row, ready = prepare_and_check(entry, field.allowed, bytes_limit)
        bytes_limit -= entry.bytes_kept if ready else 0
        rows[entry.name] = {"candidate": entry.name, "side": entry.side} | field.sizes | row
        if ready:
            able[entry.name] = ready
    others = OtherPrograms()
    for ready in able.values():
        if ready.phases:
            ready.phases()  # asked for here to start anew: what the check and the making took is not of the phases
    calls = {name: ready.call for name, ready in able.items()}
    times = interleave(calls, policy, clock, *([on_device.events] if on_device else []))
    busy = others.share()
    reference = next((entry.name for entry in field.entries if entry.side == "ours" and entry.name in able), None)
    for name, ready in able.items():
        rows[name] |= timing_columns(ready, times[name], limits) | {"busy_others": busy}
        if rows[name]["side"] == "ours" and not on_device:
            rows[name]["threads_used"] = threads_used(times[name], ready.steps)
        if on_device:
            rows[name]["seconds_host"] = on_device.host_seconds(ready.call) / ready.steps
        if reference:
            rows[name] |= ratio_columns(times[name], times[reference], ready.steps, able[reference].steps, reference)
    return list(rows.values())


def prepare_and_check(entry: Entry, allowed: float, bytes_limit: int) -> tuple[Row, Ready | None]:
    """Prepare a candidate and check its first call; return (columns, candidate, None unless it was correct).

    Exceptions become status and reason: "memory", "unsupported" (BenchError) or "failed". `allowed` is the largest
    relative error, `bytes_limit` the memory that it may need.
    """
    if entry.unavailable:
        return _record_without_time("unsupported", f"Unavailable because {entry.unavailable}"), None
    most = bytes_limit if entry.bytes_most is None else min(entry.bytes_most, bytes_limit)
    if entry.bytes_needed > most:
        reason = f"Needs {entry.bytes_needed} bytes; the limit is {most}."
        return _record_without_time("memory", reason) | {"bytes_needed": entry.bytes_needed}, None
    try:
        ready = entry.make()
        error = ready.judge(ready.call())
    except MemoryError as failure:
        need = {"bytes_needed": bytes_asked(failure)}
        return _record_without_time("memory", f"Out of memory: {failure or 'an allocation failed'}.") | need, None
    except BenchError as failure:
        return _record_without_time("unsupported", str(failure)), None
    except Exception as failure:
        traceback.print_exc()
        return _record_without_time("failed", f"{type(failure).__name__}: {failure}"), None
    row = {"error": error, "error_allowed": allowed}
    if not error <= allowed:
        reason = f"Wrong against the float64 reference by {error:.2g}; allowed is {allowed:g}."
        return _record_without_time("wrong", reason) | row, None
    return {"status": "ok", "reason": ""} | row, ready


def _record_without_time(status: str, reason: str) -> Row:
    """Return the columns `status` and `reason` of a candidate without a time."""
    return {"status": status, "reason": reason}


def timing_columns(ready: Ready, times: CallTimings, limits: Limits | CopyLimit | None) -> Row:
    """Return the columns of a candidate's times (s per step), rates, phases and lower bound.

    `times` are the interleaved timings of its call; `limits` None leaves out the bound.
    """
    samples = [seconds / ready.steps for seconds in times.seconds.values()]
    median, low, high = median_interval(samples)
    cost = ready.cost
    row = {
        "calls": times.calls * ready.steps,
        "samples": samples,
        "seconds": median,
        "seconds_low": low,
        "seconds_high": high,
        "seconds_once": ready.seconds_once,
        "flops": int(cost.flops),
        "bytes_compulsory": int(cost.bytes_compulsory),
        "bytes_gather": int(cost.bytes_gather),
        "bytes_per_second": max(cost.bytes_compulsory, cost.bytes_gather) / median,
        "flops_per_second": cost.flops / median,
    }
    if ready.phases:
        row |= {f"seconds_{phase}": seconds for phase, seconds in ready.phases().items()}
    return row | bound_column(ready, median, limits)


def threads_used(times: CallTimings, steps: int) -> int:
    """Return how many threads most of the timed calls ran on: all that are allowed, or one."""
    return threads.get_threads() if 2 * times.shared >= times.calls * steps * len(times.seconds) else 1


def bound_column(ready: Ready, seconds: float, limits: Limits | CopyLimit | None) -> Row:
    """Return the columns on a call's lower bound in time, and the share of it reached; {} if the traffic is unknown.

    `seconds` is the measured time of the call; {} also if `limits` is None.
    """
    cost, traffic = ready.cost, ready.traffic
    if limits is None or not traffic.bytes_row:
        return {}
    least, by = limits.bound(
        bytes_compulsory=cost.bytes_compulsory + traffic.bytes_lines,
        bytes_gather=cost.bytes_gather,
        bytes_table=traffic.bytes_table,
        bytes_row=traffic.bytes_row,
        cold=traffic.cold,
        work=dict(cost.work),
    )
    row = {"seconds_bound": least, "bound_by": by, "bound_share": least / seconds, "why_below": ready.why_below}
    return row | {"bytes_lines": traffic.bytes_lines, "cold": traffic.cold}


def ratio_columns(times: CallTimings, reference: CallTimings, steps: int, steps_reference: int, name: str) -> Row:
    """Return the columns of the time ratio to the reference candidate `name`, per step, with its interval."""
    scale = steps_reference / steps
    columns = ("ratio", "ratio_low", "ratio_high")
    return {"reference": name} | dict(zip(columns, (scale * r for r in median_ratio(times, reference)), strict=True))


BYTES_COPIED = 2**31
"""Size of the array that is copied to find a device's bandwidth: no cache holds a share of it worth naming."""

SWEEPS = 2
"""Turns over all sizes: a rate that something disturbed in one is right in the other."""


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `{"cell": n}` as each configuration begins, then `{"cell": n, "rows": records}`.

    Without configurations in `request["cells"]` it yields `{"bandwidths": ...}` of this machine.
    """
    count = request["threads"]
    set_threads(count)
    has_gpu = request["device"] == "cuda"
    if not request["cells"]:
        yield {"bandwidths": [vars(rate) for rate in bandwidths(has_gpu, count)]}
        return
    limits = limits_of([bandwidth.Bandwidth(**rate) for rate in request["bandwidths"]], has_gpu, count)
    on = devices.CupyDevice() if has_gpu else None
    timers = functools.cache(lambda cache: device.on_cuda(cache, request["bytes_cache"]) if has_gpu else None)
    for number, settings in request["cells"]:
        yield {"cell": number}
        configuration = BenchmarkConfiguration.of(settings)
        field, timer = field_of(configuration, on), timers(configuration.cache or "warm")
        rows = measure(field, Policy(**request["policy"]), request["bytes_limit"], limits, on_device=timer)
        yield {"cell": number, "rows": rows}


def bandwidths(has_gpu: bool, count: int) -> list[bandwidth.Bandwidth]:
    """Return the measured bandwidths of the machine with `count` threads; of a CUDA device that of a copy."""
    if has_gpu:
        return [bandwidth.Bandwidth("copy", 2 * BYTES_COPIED, 0, count, device.copy_rate(BYTES_COPIED))]
    return [rate for _ in range(SWEEPS) for rate in bandwidth.measure((count,))]


def limits_of(rates: list[bandwidth.Bandwidth], has_gpu: bool, count: int) -> Limits | CopyLimit | None:
    """Return what bounds the time of a call by these bandwidths; None without any."""
    if has_gpu and rates:
        return CopyLimit(max(rate.bytes_per_second for rate in rates))
    return Limits(rates, count) if rates else None


def set_threads(count: int) -> None:
    """Set the number of threads of the kernels, BLAS and OpenMP, PyTorch and TensorFlow, as far as they are loaded."""
    threads.set_threads(count)
    threadpoolctl.threadpool_limits(limits=count)
    torch_sparse.threads = tensorflow_sparse.threads = count
