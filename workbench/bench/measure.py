"""One cell: every contender is made ready and checked, those that are right are timed together; one row each."""

import traceback
from time import perf_counter
from typing import Any

from kernels import threads
from kernels.sessions import bytes_asked
from workbench.bench.cells import Entry, Field
from workbench.bench.contenders import Ready
from workbench.bench.device_clock import CopyLimit, OnDevice
from workbench.bench.rounds import Clock, Policy, Taken, interleave, ratio
from workbench.bench.shapes import BenchError
from workbench.measure.bandwidth import Limits
from workbench.measure.machine import OtherPrograms
from workbench.measure.stats import median_interval

Row = dict[str, Any]


def measure(
    field: Field,
    policy: Policy,
    bytes_limit: int,
    limits: Limits | CopyLimit | None = None,
    clock: Clock = perf_counter,
    on_device: OnDevice | None = None,
) -> list[Row]:
    """The measured columns, status and reason of each contender of a cell, in the field's order.

    `on_device` tells how calls are timed that a device does: by its events, and by the host's clock.
    """
    rows: dict[str, Row] = {}
    able: dict[str, Ready] = {}
    for entry in field.entries:
        row, ready = checked(entry, field.allowed, bytes_limit)
        bytes_limit -= entry.bytes_kept if ready else 0
        rows[entry.name] = {"contender": entry.name, "side": entry.side} | field.sizes | row
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
        rows[name] |= timed(ready, times[name], limits) | {"busy_others": busy}
        if rows[name]["side"] == "ours" and not on_device:
            rows[name]["threads_used"] = threads_used(times[name], ready.steps)
        if on_device:
            rows[name]["seconds_host"] = on_device.host_seconds(ready.call) / ready.steps
        if reference:
            rows[name] |= compared(times[name], times[reference], ready.steps, able[reference].steps, reference)
    return list(rows.values())


def checked(entry: Entry, allowed: float, bytes_limit: int) -> tuple[Row, Ready | None]:
    """Make a contender ready and judge its first call; it comes back only where the call was right."""
    if entry.unavailable:
        return _without("unsupported", f"Unavailable because {entry.unavailable}"), None
    most = bytes_limit if entry.bytes_most is None else min(entry.bytes_most, bytes_limit)
    if entry.bytes_needed > most:
        reason = f"Needs {entry.bytes_needed} bytes; the limit is {most}."
        return _without("memory", reason) | {"bytes_needed": entry.bytes_needed}, None
    try:
        ready = entry.make()
        error = ready.judge(ready.call())
    except MemoryError as failure:
        need = {"bytes_needed": bytes_asked(failure)}
        return _without("memory", f"Out of memory: {failure or 'an allocation failed'}.") | need, None
    except BenchError as failure:
        return _without("unsupported", str(failure)), None
    except Exception as failure:
        traceback.print_exc()
        return _without("failed", f"{type(failure).__name__}: {failure}"), None
    row = {"error": error, "error_allowed": allowed}
    if not error <= allowed:
        reason = f"Wrong against the float64 reference by {error:.2g}; allowed is {allowed:g}."
        return _without("wrong", reason) | row, None
    return {"status": "ok", "reason": ""} | row, ready


def _without(status: str, reason: str) -> Row:
    return {"status": status, "reason": reason}


def timed(ready: Ready, times: Taken, limits: Limits | CopyLimit | None) -> Row:
    """Columns of a contender's own times, its rates, and the bound."""
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
    return row | bound(ready, median, limits)


def threads_used(times: Taken, steps: int) -> int:
    """Threads that most of the timed calls ran on: all those allowed, or one."""
    return threads.get_threads() if 2 * times.shared >= times.calls * steps * len(times.seconds) else 1


def bound(ready: Ready, seconds: float, limits: Limits | CopyLimit | None) -> Row:
    """Bound by the memory and the cores, where the call's traffic is known."""
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


def compared(times: Taken, reference: Taken, steps: int, steps_reference: int, name: str) -> Row:
    """The ratio to the reference's time, round by round."""
    scale = steps_reference / steps
    columns = ("ratio", "ratio_low", "ratio_high")
    return {"reference": name} | dict(zip(columns, (scale * r for r in ratio(times, reference)), strict=True))
