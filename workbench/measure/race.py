"""Time callables against each other: each made ready and checked, then all timed in rounds of turned order.

`measure_candidates` runs in one process. `Worker` starts that process with limits of time and memory, and
`records_of_candidates` measures the others again without a candidate that ended it.
"""

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, final

import threadpoolctl

from kernels import threads
from workbench.measure import memory
from workbench.measure.child import Child, Ended, fork_server, start, why_too_long
from workbench.measure.clock import median_interval
from workbench.measure.machine import OtherPrograms
from workbench.measure.rounds import counterbalanced_order

Record = dict[str, Any]
Clock = Callable[[], float]

LOG = "log.txt"
SHARE_MEMORY = 0.85
"""Share of the memory that is free when a run starts that a process may own."""


@dataclass(frozen=True)
class Policy:
    """Times of measuring: a call lasts about `seconds_call`, and each candidate has one in each of `rounds` rounds.

    A candidate that takes `slow` times the fastest one's time of its group has only `rounds_slow` rounds. After
    `seconds_most` no round is begun, but there are `rounds_least`.
    """

    seconds_call: float = 0.1
    rounds: int = 7
    rounds_slow: int = 2
    slow: float = 2.5
    rounds_least: int = 3
    seconds_most: float = 15.0


@dataclass
class ReadyCandidate:
    """A candidate that is ready: its estimated seconds, and the samples of each round.

    Candidates are compared with the fastest of their `group`. `call()` runs it for about the time of a call and returns
    the seconds of one unit of work.
    """

    group: tuple[str, ...]
    call: Callable[[], float]
    estimate: float
    samples: list[float] = field(default_factory=list)


Prepared = tuple[Record, ReadyCandidate | None]
"""Columns of a record, and the candidate, or None for one that is not timed."""
Prepare = Callable[[Mapping[str, ReadyCandidate]], Prepared]
"""Makes a candidate ready, given those that were made ready before it."""


def measure_candidates(
    candidates: Mapping[str, Prepare], policy: Policy, clock: Clock = perf_counter
) -> Iterator[Record]:
    """Prepare each candidate, then time all that are ready in rounds.

    Yield `{"at": name}` before each is prepared, then `{"name": name, "record": columns}` of each: at once for those
    that do not take part, after the last round for the others. `clock` returns seconds.
    """
    able: dict[str, ReadyCandidate] = {}
    records: dict[str, Record] = {}
    for name, prepare in candidates.items():
        yield {"at": name}
        record, entered = prepare(able)
        if entered is None:
            yield {"name": name, "record": record}
            continue
        able[name], records[name] = entered, record
    yield {"at": "rounds"}
    others = OtherPrograms()
    time_rounds(able, policy, clock)
    busy = others.share()
    for name, entered in able.items():
        yield {"name": name, "record": records[name] | times_of(entered.samples) | {"busy_others": busy}}


def time_rounds(able: Mapping[str, ReadyCandidate], policy: Policy, clock: Clock) -> None:
    """Time the candidates in rounds of counterbalanced order, as the policy says; fills their `samples`."""
    fastest: dict[tuple[str, ...], float] = {}
    for one in able.values():
        fastest[one.group] = min(one.estimate, fastest.get(one.group, one.estimate))
    begun = clock()
    for number in range(policy.rounds):
        if number >= policy.rounds_least and clock() - begun > policy.seconds_most:
            break
        for name in counterbalanced_order(list(able), number):
            one = able[name]
            if number < policy.rounds_slow or one.estimate <= policy.slow * fastest[one.group]:
                one.samples.append(one.call())


def times_of(samples: list[float]) -> Record:
    """Return the columns of times: `samples` in the order of the rounds, their median and its interval."""
    median, low, high = median_interval(samples)
    return {"samples": samples, "seconds": median, "seconds_low": low, "seconds_high": high}


def failure_record(failure: Exception) -> Record:
    """Return the columns `status` and `reason` of a candidate that raised; prints the traceback unless memory lacked.

    Call it where the exception is handled.
    """
    if isinstance(failure, MemoryError):
        return {"status": "memory", "reason": f"Out of memory: {failure or 'an allocation failed'}."}
    traceback.print_exc()
    return {"status": "failed", "reason": f"{type(failure).__name__}: {failure}"}


def set_threads(count: int) -> None:
    """Set the number of threads of the kernels, and of BLAS and OpenMP as far as they are loaded."""
    threads.set_threads(count)
    threadpoolctl.threadpool_limits(limits=count)


@final
class Worker:
    """Fresh processes that answer requests, watched by limits of time and memory; what they print goes to the log.

    `work` is "module:function", which yields the answers; `preload` are modules that the processes begin with.
    """

    def __init__(
        self, work: str, folder: Path, preload: Sequence[str] = (), share_memory: float = SHARE_MEMORY
    ) -> None:
        """Set the memory limit of the processes to a share of what is available now; none is started yet."""
        self.work, self.log, self.preload = work, folder / LOG, preload
        self.bytes_limit = int(share_memory * memory.available_bytes())

    def answers(
        self, request: Mapping[str, Any], seconds: Callable[[Record | None], float], started: float | None = None
    ) -> Iterator[Record]:
        """Yield each answer of a new process; raises Ended if it ends early or reaches a limit.

        `seconds` gives the time limit of the next answer from the one before, None for the first. It counts from that
        answer, or from `started` (of `time.monotonic`).
        """
        process, connection = start(fork_server(self.preload), self.work, request, self.log)
        since, limit = started or time.monotonic(), seconds(None)

        def why_end() -> Record:
            """Return the columns of an exceeded limit of time or memory; {} within both."""
            return why_too_long(since, limit) or child.why_too_large(self.bytes_limit, self.bytes_limit)

        with Child(process, connection) as child:
            for answer in child.answers(why_end):
                yield answer
                since, limit = started or time.monotonic(), seconds(answer)


def end_columns(ended: Ended) -> Record:
    """Return {"status", "reason"} of a process that ended early."""
    return {name: ended.row[name] for name in ("status", "reason")}


def records_of_candidates(names: Iterable[str], answers: Callable[[list[str]], Iterator[Record]]) -> dict[str, Record]:
    """Return {candidate: record}, measured together in one process, if possible.

    `answers` measures all candidates but those it is given, as `measure_candidates` does. A candidate that ends the
    process has a record that says how, and the others are measured again without it; if no candidate was running, all
    without a record have the reason.
    """
    known = list(names)
    ended: dict[str, Record] = {}
    while True:
        records: dict[str, Record] = {}
        at = ""
        try:
            for answer in answers(list(ended)):
                at = answer.get("at", at)
                if "record" in answer:
                    records[answer["name"]] = answer["record"]
        except Ended as end:
            if at in known and at not in ended:
                ended[at] = end_columns(end)
                continue
            missing = [name for name in known if name not in ended | records]
            records |= dict.fromkeys(missing, end_columns(end))
        return ended | records
