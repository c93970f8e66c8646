"""One configuration: every candidate is made ready and checked, then all that are right are timed in turned rounds."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from workbench.bench.child import set_threads
from workbench.bench.fair.competitors import Competitor, Trainer, list_competitors
from workbench.bench.fair.configurations import Configuration, Problem, draw, error_of
from workbench.measure.clock import median_interval
from workbench.measure.machine import OtherPrograms
from workbench.measure.rounds import counterbalanced_order

# Process of a configuration: it draws the rows, tells which candidate it is at, and answers with records.


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `{"at": name}` before each candidate is prepared, then `{"name": ..., "record": columns}` of each.

    `request` has `configuration`, `policy`, `threads` and `left_out`, names of candidates that ended an earlier
    process.
    """
    set_threads(request["threads"])
    configuration = Configuration(**request["configuration"])
    yield {"at": "rows"}
    problem = draw(configuration, request["threads"])
    facts = {"nnz": int(problem.csr.nnz), "batches": problem.batches}
    able = [competitor for competitor in list_competitors() if competitor.name not in request["left_out"]]
    yield from with_facts(facts, measure(problem, able, Policy(**request["policy"])))


def with_facts(facts: "Record", answers: Iterable["Record"]) -> Iterator["Record"]:
    """Yield the answers of a process, their records with the columns `facts`, which those of a record override."""
    for answer in answers:
        yield answer | ({"record": facts | answer["record"]} if "record" in answer else {})


Record = dict[str, Any]
Clock = Callable[[], float]

ALLOWED = 1e-3
"""Largest relative error after the batches checked: float32 sums, of which the next steps are made."""
WORK_CHECKED = 2e8
"""Multiply-adds of the plain loops that check, about: a second."""
BATCHES_CHECKED = 2000
"""Batches checked at most; at least two, so that the second one's loss shows the first one's update."""


@dataclass(frozen=True)
class Policy:
    """Times of measuring: a call trains batches for about `seconds_call`, `rounds` times.

    A candidate that takes `slow` times the fastest one's time of its side and kind has only `rounds_slow` rounds. After
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
    """A candidate that is ready: seconds a batch (or epoch) as estimated, and the samples of each round.

    Candidates are compared with the fastest of their `group`. `call()` trains for about the time of a call and returns
    seconds a batch.
    """

    group: tuple[str, ...]
    call: Callable[[], float]
    estimate: float
    samples: list[float] = field(default_factory=list)


Prepared = tuple[Record, ReadyCandidate | None]
"""Columns of a record, and the candidate, or None for one that is not timed."""
Prepare = Callable[[Mapping[str, ReadyCandidate]], Prepared]
"""Makes a candidate ready, given those that were made ready before it."""


def batches_checked(problem: Problem) -> int:
    """Return how many batches a candidate trains before its weights are checked: at least 2, about a second's work."""
    work = max(problem.csr.nnz / max(problem.batches, 1) * problem.outputs * 2, 1.0)
    return min(problem.batches, BATCHES_CHECKED, max(2, int(WORK_CHECKED / work)))


def measure(
    problem: Problem, competitors: Sequence[Competitor], policy: Policy, clock: Clock = perf_counter
) -> Iterator[Record]:
    """Yield `{"at": name}` before each candidate is prepared, then `{"name": ..., "record": columns}` of each.

    Candidates that do not take part are answered at once, the others after the last round of timing. `competitors` are
    the candidates, `policy` the times of measuring, `clock` gives seconds.
    """

    def prepare(competitor: Competitor, able: Mapping[str, ReadyCandidate]) -> Prepared:
        """Make a competitor ready unless there is a reason to leave it out."""
        record = skipped_record(competitor, problem, able)
        return (record, None) if record else prepare_candidate(competitor, problem, policy, clock)

    return measure_candidates({one.name: partial(prepare, one) for one in competitors}, policy, clock)


def measure_candidates(
    candidates: Mapping[str, Prepare], policy: Policy, clock: Clock = perf_counter
) -> Iterator[Record]:
    """Prepare each candidate, then time all that are ready in rounds; yield answers as `measure` does."""
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


def failure_record(failure: Exception) -> Record:
    """Return the columns `status` and `reason` of a candidate that raised; prints the traceback unless memory lacked.

    Call it where the exception is handled.
    """
    if isinstance(failure, MemoryError):
        return {"status": "memory", "reason": f"Out of memory: {failure or 'an allocation failed'}."}
    traceback.print_exc()
    return {"status": "failed", "reason": f"{type(failure).__name__}: {failure}"}


def wrong_record(error: float | None) -> Record:
    """Return the columns `status` and `reason` of a candidate whose error is above `ALLOWED`; {} for another one.

    An error of None was not found out.
    """
    if error is None or error <= ALLOWED:
        return {}
    reason = f"Differs from float64 loops over the same batches by {error:.2g}; allowed is {ALLOWED:g}."
    return {"status": "wrong", "reason": reason}


def skipped_record(competitor: Competitor, problem: Problem, able: Mapping[str, ReadyCandidate]) -> Record:
    """Return the columns of a candidate that is not prepared: unavailable, or similar to a far slower one; else {}.

    `able` are the candidates prepared before it.
    """
    if reason := competitor.unavailable(problem):
        return {"status": "unsupported", "reason": reason}
    competitors = [one.estimate for one in able.values() if one.group == (competitor.side, competitor.kind)]
    if competitor.like not in able or not competitors:
        return {}
    factor = able[competitor.like].estimate / min(competitors)
    reason = (
        f"{competitor.like} takes {factor:.3g} times the fastest one's time; beyond {competitor.near:g} "
        f"times it is left out."
    )
    return {"status": "skipped", "reason": reason} if factor > competitor.near else {}


def prepare_candidate(competitor: Competitor, problem: Problem, policy: Policy, clock: Clock) -> Prepared:
    """Return (columns, ready candidate or None): make it, check its first run in float64, calibrate the call.

    An exception becomes the columns `status` and `reason`. Prints the traceback of an unexpected exception.
    """
    start = clock()
    try:
        trainer = competitor.make(problem)
        done = trainer.run(batches_checked(problem))
        order = trainer.first_order()[: done * problem.batch_rows]
        error = error_of(trainer.state(), problem.expected(order, trainer.rate_intercept))
    except Exception as failure:
        return failure_record(failure), None
    known: Record = {"error": error, "error_allowed": ALLOWED, "batches_checked": done}
    known["seconds_ready"] = clock() - start
    if wrong := wrong_record(error):
        return wrong | known, None
    batches, estimate = calibrate(trainer, problem, policy, clock)

    def call() -> float:
        """Train the batches of a call and return the seconds of a batch."""
        seconds, done = time_run(trainer, batches, clock)
        return seconds / done

    known |= {"status": "ok", "reason": "", "batches_call": batches}
    return known, ReadyCandidate((competitor.side, competitor.kind), call, estimate)


def calibrate(trainer: Trainer, problem: Problem, policy: Policy, clock: Clock) -> tuple[int, float]:
    """Return (batches per call, seconds per batch).

    Batches are added until a call takes about `policy.seconds_call`.
    """
    batches = batches_checked(problem)
    for _ in range(4):
        seconds, done = time_run(trainer, batches, clock)
        estimate = seconds / done
        wanted = min(max(1, round(policy.seconds_call / max(estimate, 1e-9))), problem.batches)
        if wanted <= 1.5 * batches:
            break
        batches = wanted
    again, done = time_run(trainer, wanted, clock)
    return wanted, min(estimate, again / done)


def time_run(trainer: Trainer, batches: int, clock: Clock) -> tuple[float, int]:
    """Return (seconds, batches trained) of one run of at least `batches` batches."""
    start = clock()
    done = trainer.run(batches)
    return clock() - start, done


def time_rounds(able: Mapping[str, ReadyCandidate], policy: Policy, clock: Clock) -> None:
    """Time the candidates in rounds of counterbalanced order, as the policy says; fills their `samples`."""
    fastest: dict[tuple[str, ...], float] = {}
    for one in able.values():
        fastest[one.group] = min(one.estimate, fastest.get(one.group, one.estimate))
    start = clock()
    for number in range(policy.rounds):
        if number >= policy.rounds_least and clock() - start > policy.seconds_most:
            break
        for name in counterbalanced_order(list(able), number):
            one = able[name]
            if number < policy.rounds_slow or one.estimate <= policy.slow * fastest[one.group]:
                one.samples.append(one.call())


def times_of(samples: list[float]) -> Record:
    """Return the columns of times: `samples` in the order of the rounds, their median and its interval."""
    median, low, high = median_interval(samples)
    return {"samples": samples, "seconds": median, "seconds_low": low, "seconds_high": high}
