"""The process of a shape: every candidate is made ready and judged, those that are right are timed together."""

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks import device
from benchmarks.candidates import Ready as KernelReady
from benchmarks.configurations import BenchmarkConfiguration, Entry, Field, field_of
from benchmarks.contest import Contest, Ready, Record, mean_seconds, prepare, set_threads
from benchmarks.device import CopyLimit
from kernels import devices, threads
from kernels.threads import this_thread
from workbench.measure import bandwidth, race
from workbench.measure.bandwidth import Limits

POLICY = race.Policy(seconds_call=0.004, rounds=9, rounds_slow=3, slow=12.0, rounds_least=5, seconds_most=3.0)
SECONDS_SETTLE, SECONDS_WARMUP = 0.002, 0.01
SECONDS_CELL = 150.0
BYTES_COPIED = 2**31
"""Size of the array that is copied to find a device's bandwidth: no cache holds a share of it worth naming."""
SWEEPS = 2
"""Turns over all sizes: a rate that something disturbed in one is right in the other."""


@functools.lru_cache(1)
def limits_of(rates: str, has_gpu: bool, count: int) -> Limits | CopyLimit | None:
    """Return what bounds the time of a call by these bandwidths, as text of JSON; None without any."""
    known = [bandwidth.Bandwidth(**rate) for rate in json.loads(rates)]
    if has_gpu and known:
        return CopyLimit(max(rate.bytes_per_second for rate in known))
    return Limits(known, count) if known else None


def contest(settings: Mapping[str, Any], request: Mapping[str, Any]) -> Contest:
    """Return the candidates of a configuration; its lower bounds follow from the bandwidths in the request."""
    one, has_gpu = BenchmarkConfiguration.of(dict(settings)), settings["device"] == "cuda"
    limits = limits_of(request["bandwidths"], has_gpu, request["threads"])
    timer = device.on_cuda(one.cache or "warm", request["bytes_cache"]) if has_gpu else None
    policy = race.Policy(**request["policy"])
    return contest_of(
        field_of(one, devices.CupyDevice() if has_gpu else None), policy, request["bytes_limit"], limits, timer
    )


def contest_of(
    field: Field,
    policy: race.Policy,
    bytes_limit: float,
    limits: Limits | CopyLimit | None = None,
    timer: device.OnDevice | None = None,
) -> Contest:
    """Return the contest of the candidates of a configuration (`field`), which share the memory `bytes_limit`.

    `limits` give the lower bound of a call, `timer` times calls by the events of a device.
    """
    able: dict[str, KernelReady] = {}
    shared: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    left = [bytes_limit]

    def sample(name: str, call: Callable[[], Any], count: int) -> float:
        """Time calls by the clock or by events, and count those that the project's kernels ran on all threads."""
        before = this_thread.calls_parallel
        seconds = timer.events(call, count) if timer else mean_seconds(call, count)
        shared[name] += this_thread.calls_parallel - before
        calls[name] += count
        return seconds

    def made(entry: Entry) -> Ready:
        """Make a candidate."""
        ready = able[entry.name] = entry.make()
        return Ready(
            ready.call,
            ready.judge,
            ready.steps,
            partial(sample, entry.name),
            SECONDS_SETTLE,
            SECONDS_WARMUP,
            {"seconds_once": ready.seconds_once},
        )

    def prepared(entry: Entry) -> race.Prepared:
        """Make a candidate ready; what it keeps in memory is no longer there for those after it."""
        most = left[0] if entry.bytes_most is None else min(entry.bytes_most, left[0])
        found = prepare(
            partial(made, entry),
            policy,
            field.allowed,
            unavailable=entry.unavailable and f"Unavailable because {entry.unavailable}",
            bytes_needed=entry.bytes_needed,
            bytes_limit=most,
        )
        if found[1]:
            left[0] -= entry.bytes_kept
            if phases := able[entry.name].phases:
                phases()  # begun anew: what check and calibration took is not of the phases
            shared[entry.name] = calls[entry.name] = 0
        return found

    def finish(name: str, record: Record) -> Record:
        """Add rates, the bound, phases and threads to the record of a candidate with a time."""
        if record["status"] != "ok":
            return record
        ready = able[name]
        if timer:
            record["seconds_host"] = timer.host_seconds(ready.call) / ready.steps
        elif name in own:
            used = 2 * shared[name] >= calls[name] * ready.steps
            record["threads_used"] = threads.get_threads() if used else 1
        return record | cost_columns(ready, record["seconds"], limits)

    own = {entry.name for entry in field.entries if entry.side == "project"}
    prepares: dict[str, race.Prepare] = {one.name: partial(_ignoring, prepared, one) for one in field.entries}
    return Contest(field.sizes, prepares, finish)


def _ignoring(prepared: Callable[[Entry], race.Prepared], entry: Entry, able: object) -> race.Prepared:
    """Return what `prepared` does of a candidate, whatever is ready before it."""
    return prepared(entry)


def cost_columns(ready: KernelReady, seconds: float, limits: Limits | CopyLimit | None) -> Record:
    """Return the columns of a candidate's rates, phases and lower bound; the bound only if the traffic is known."""
    cost, traffic = ready.cost, ready.traffic
    known: Record = {
        "flops": int(cost.flops),
        "bytes_compulsory": int(cost.bytes_compulsory),
        "bytes_gather": int(cost.bytes_gather),
    }
    if ready.phases:
        known |= {f"seconds_{phase}": each for phase, each in ready.phases().items()}
    if limits is None or not traffic.bytes_row:
        return known
    least, by = limits.bound(
        bytes_compulsory=cost.bytes_compulsory + traffic.bytes_lines,
        bytes_gather=cost.bytes_gather,
        bytes_table=traffic.bytes_table,
        bytes_row=traffic.bytes_row,
        cold=traffic.cold,
        work=dict(cost.work),
    )
    known |= {"seconds_bound": least, "bound_by": by, "bound_share": least / seconds, "why_below": ready.why_below}
    return known | {"bytes_lines": traffic.bytes_lines, "cold": traffic.cold}


def bandwidths(request: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the measured bandwidths of the machine, or of a CUDA device that of a copy, in this process."""
    count = request["threads"]
    set_threads(count)
    if request["device"] == "cuda":
        yield vars(bandwidth.Bandwidth("copy", 2 * BYTES_COPIED, 0, count, device.copy_rate(BYTES_COPIED)))
        return
    for _ in range(SWEEPS):
        yield from map(vars, bandwidth.measure((count,)))
