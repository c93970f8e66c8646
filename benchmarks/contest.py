"""The work of a measuring process: the candidates of each case are made ready, judged, and timed in turned rounds.

A suite names a function as its work; it draws the data of a case, from its settings, and returns a `Contest`: facts of
the data and a way to make each candidate ready. The objective judges outside of the timed call what that call returned
or wrote. Rounds are those of `workbench.measure.race`, as in `wb.race`.
"""

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import threadpoolctl

from benchmarks.competitors import tensorflow_sparse, torch_sparse
from benchmarks.shapes import BenchError
from kernels import threads
from kernels.devices import bytes_asked
from workbench.measure import race

Record = dict[str, Any]


@dataclass
class Ready:
    """A candidate that can be called: `call` does `steps` units of work, `judge` gives the error of what it returned.

    `sample` times a number of calls and returns the seconds of one, by default by the clock of the process. Before a
    sample the call runs for `seconds_settle` untimed: threads of the candidate before it go to sleep, and its own data
    come into the caches.
    """

    call: Callable[[], Any]
    judge: Callable[[Any], float | None] = lambda returned: None
    steps: int = 1
    sample: Callable[[Callable[[], Any], int], float] | None = None
    seconds_settle: float = 0.0
    seconds_warmup: float = 0.0
    columns: Record = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """A case in a process: columns of all its records, and how each candidate is made ready, by name.

    `finish(name, record)` adds columns that follow from the times.
    """

    facts: Mapping[str, Any]
    candidates: Mapping[str, race.Prepare]
    finish: Callable[[str, Record], Record] = lambda name, record: record


def answers(request: Mapping[str, Any]) -> Iterator[Record]:
    """Yield `{"case": n}` as each case begins, `{"at": name}` for each candidate, its record, and `{"done": n}`.

    `request` has `work` ("module:function"), `cases` (number, settings and names left out of each), `policy`, `threads`
    and what else the work asks for.
    """
    set_threads(request["threads"])
    make, policy = pkgutil.resolve_name(request["work"]), race.Policy(**request["policy"])
    for number, settings, left_out in request["cases"]:
        yield {"case": number, "at": ""}
        contest: Contest = make(settings, request)
        able = {name: prepare for name, prepare in contest.candidates.items() if name not in left_out}
        for answer in race.measure_candidates(able, policy):
            if "record" in answer:
                answer["record"] = contest.finish(answer["name"], dict(contest.facts) | answer["record"])
            yield answer
        yield {"done": number}


def prepare(
    make: Callable[[], Ready],
    policy: race.Policy,
    allowed: float | None = None,
    *,
    group: tuple[str, ...] = (),
    unavailable: str = "",
    bytes_needed: int = 0,
    bytes_limit: float = float("inf"),
) -> race.Prepared:
    """Return (columns, ready candidate or None): make it, judge its first call, calibrate its calls.

    An exception becomes the columns `status` and `reason`: "memory", "unsupported" for a BenchError, else "failed"; an
    error above `allowed` is "wrong".
    """
    if unavailable:
        return {"status": "unsupported", "reason": unavailable}, None
    if bytes_needed > bytes_limit:
        reason = f"Needs {bytes_needed} bytes; the limit is {bytes_limit:g}."
        return {"status": "memory", "reason": reason}, None
    start = perf_counter()
    try:
        ready = make()
        error = ready.judge(ready.call())
    except MemoryError as failure:
        return race.failure_record(failure) | {"bytes_needed": bytes_asked(failure)}, None
    except BenchError as failure:
        return {"status": "unsupported", "reason": str(failure)}, None
    except Exception as failure:
        return race.failure_record(failure), None
    known = ready.columns | {"error": error, "error_allowed": allowed, "seconds_ready": perf_counter() - start}
    if error is not None and allowed is not None and not error <= allowed:
        reason = f"Wrong against the float64 reference by {error:.2g}; allowed is {allowed:g}."
        return known | {"status": "wrong", "reason": reason}, None
    sample = ready.sample or mean_seconds
    estimate = _estimate(ready, sample)
    count = max(1, round(policy.seconds_call / estimate))
    settling = round(ready.seconds_settle / estimate) or int(estimate < 10 * ready.seconds_settle)

    def call() -> float:
        """Settle, then return the seconds of a unit of work over the calls of a sample."""
        for _ in range(settling):
            ready.call()
        return sample(ready.call, count) / ready.steps

    known |= {"status": "ok", "reason": "", "calls": count * ready.steps}
    return known, race.ReadyCandidate(group, call, estimate / ready.steps)


def mean_seconds(call: Callable[[], Any], count: int) -> float:
    """Return the mean seconds of `count` calls."""
    start = perf_counter()
    for _ in range(count):
        call()
    return max((perf_counter() - start) / count, 1e-9)


def _estimate(ready: Ready, sample: Callable[[Callable[[], Any], int], float]) -> float:
    """Return the seconds of the fastest call, after `seconds_warmup` and two calls at least."""
    start = perf_counter()
    best = min(sample(ready.call, 1) for _ in range(2 if ready.seconds_warmup else 1))
    while perf_counter() - start < ready.seconds_warmup:
        best = min(best, sample(ready.call, 1))
    return max(best, 1e-9)


def set_threads(count: int) -> None:
    """Set the number of threads of the kernels, BLAS and OpenMP, PyTorch and TensorFlow, as far as they are loaded."""
    threads.set_threads(count)
    threadpoolctl.threadpool_limits(limits=count)
    torch_sparse.threads = tensorflow_sparse.threads = count


def roots_of(models: Iterable[str], settings: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the modules that the project's trainings of these models depend on, with each of these settings."""
    from workbench.sweeps import spec

    each = [spec.Configuration(dataset="uniform", model=model, **one) for model in models for one in settings]
    return frozenset().union(*map(spec.roots_of, each))
