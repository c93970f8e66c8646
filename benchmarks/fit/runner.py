"""Runs cases: every candidate with its settings, rung by rung, then the best of each in rounds; a row for each.

Rows are on the disk before the next training starts; what is stopped is resumed by starting it again.
"""

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import experiment, tables
from benchmarks.experiment import Progress
from benchmarks.fit.candidates import Candidate, get, list_candidates, origin
from benchmarks.fit.cases import (
    ROUNDS_MOST,
    TOLERANCES,
    Best,
    Case,
    Job,
    Row,
    Training,
    TrainingRequest,
    candidates_for_more_rounds,
    curve_columns,
    fastest_to_target,
    is_end,
    is_reached,
    jobs_of,
    reached_at,
    target_of,
    targets_of_records,
)
from benchmarks.shapes import BenchError
from workbench.measure import closure
from workbench.measure.child import Ended
from workbench.measure.machine import describe_stack
from workbench.measure.race import Worker, end_columns
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order
from workbench.sweeps import spec
from workbench.sweeps.spec import Configuration

# Records of a run of `benchmarks fit`: what is known of it, the key of each, and how they are stored.
#
# ([(0.4, None), (2.0, 2), (20.0, 1)], [(0.4, None), (1.0, 2)])


# Time for settings: all are tried for a short time, those that may still matter for longer, by one rule for all.
#
# Successive halving (Jamieson and Talwalkar 2016): of every candidate, ours or not, all settings train for the
# seconds of the first rung; then the best few for those of the next; then the best. None goes on that has ended by
# itself, nor one that at its pace, the gain of its last doubling of time, is out of reach at the end: neither at one
# more of the targets by then, nor better than the best of its side by the tightest tolerance. Who goes on is settled
# when all candidates have had the rung before, so that it does not matter who is first. In the end none was left
# before it had `LEAST` times the seconds of the soonest of its side: who is fastest is not decided by being left.


Tried = Mapping[str, Mapping[int, Row]]
"""The newest row of each setting by its number, by the name of the candidate."""

FIRST, SECOND = 0.4, (2.0, 2)
"""Seconds of the first rung, which all settings have; of the second, and how many settings of a candidate have it."""
AFTER = (2, 1)
"""How many the last rung has that is the second, or the third."""
LEAST = 2.0
"""Seconds of a candidate that does not reach the target, by those of the soonest of its side, at least."""
LIMIT = "limit"
"""Why a training ended whose seconds were over; it alone may go on."""


@dataclass(frozen=True)
class Rung:
    """Seconds of training, and how many settings of a candidate have them, None for all."""

    seconds: float
    settings: int | None = None


def rungs(seconds: float, first: float | None = None) -> list[Rung]:
    """Return the rungs (time limits) of a search up to `seconds`; the first is `first`, by default 0.4 s.

    >>> [rung.seconds for rung in rungs(3.0, first=0.1)], [rung.seconds for rung in rungs(3.0, first=2.5)]
    ([0.1, 2.0, 3.0], [2.5, 3.0])
    """
    first = FIRST if first is None else first
    before = [rung for rung in (Rung(first), Rung(*SECOND)) if first <= rung.seconds < seconds]
    return [*before, Rung(seconds, AFTER[len(before) - 1] if before else None)]


def settings_to_continue(tried: Tried, rung: Rung, seconds: float) -> dict[str, list[int]]:
    """Return {candidate: indices of its settings} that train in `rung`, from the records so far.

    `tried` is {candidate: {index: record}}; `seconds` is the limit of the last rung.
    """
    every = [row for rows in tried.values() for row in rows.values() if row["value_best"] is not None]
    return {name: _settings_of_candidate(rows, every, rung, seconds) for name, rows in tried.items()}


def _settings_of_candidate(rows: Mapping[int, Row], every: Sequence[Row], rung: Rung, seconds: float) -> list[int]:
    """Return the indices of a candidate's settings for the next rung: its best that may still reach a target.

    `every` holds the records of all candidates.
    """
    able = [number for number, row in rows.items() if row["value_best"] is not None]
    sign = -1.0 if any(row["larger_is_better"] for row in every) else 1.0
    best = sorted(able, key=lambda number: sign * rows[number]["value_best"])[: rung.settings]
    return sorted(number for number in best if may_reach_target(rows[number], every, seconds))


def may_reach_target(row: Row, every: Sequence[Row], seconds: float) -> bool:
    """Return whether a training continued to `seconds` may reach one more target, or improve on its side's best.

    False if it ended for another reason than its time limit. `row` is its record so far, `every` the records of all
    candidates.
    """
    if row["left"] != LIMIT:
        return False
    larger = bool(row["larger_is_better"])
    best = max if larger else min
    of_all = best(one["value_best"] for one in every)
    of_side = best(one["value_best"] for one in every if one["side"] == row["side"])
    expected = extrapolate_value(row["curve"], seconds, larger)
    if expected is None or is_reached(expected, _better_by_tolerance(of_side, larger), larger):
        return True
    targets = [target_of(of_all, larger, tolerance) for tolerance in TOLERANCES]
    missed = [target for target in targets if not is_reached(row["value_best"], target, larger)]
    return any(is_reached(expected, target, larger) for target in missed)


def settings_left_early(tried: Tried, seconds: float) -> dict[str, tuple[int, Rung]]:
    """Return {candidate: (index of its best setting, rung)} for those stopped too early, to be trained longer.

    Too early is before twice the time that the fastest of its side took to a target that it missed. `tried` is
    {candidate: {index: record}}; `seconds` is the longest time that any setting may have.
    """
    every = [row for rows in tried.values() for row in rows.values()]
    targets, larger = targets_of_records(every)
    found = {}
    for name, rows in tried.items():
        able = {number: row for number, row in rows.items() if row["value_best"] is not None}
        if not able:
            continue
        number = (max if larger else min)(able, key=lambda number: able[number]["value_best"])
        of_side = [row for row in every if row["side"] == able[number]["side"]]
        missed = [target for target in targets.values() if not fastest_to_target(list(able.values()), target, larger)]
        first = [there[0] for target in missed if (there := fastest_to_target(of_side, target, larger))]
        needed = min(LEAST * max(first, default=0.0), seconds)
        if able[number]["left"] == LIMIT and able[number]["seconds_rung"] < needed:
            found[name] = number, Rung(needed, 1)
    return found


def _better_by_tolerance(value: float, larger: bool) -> float:
    """Return a value that is better than `value` by as much as the tightest target may be worse."""
    return value - (target_of(value, larger, TOLERANCES[0]) - value)


def extrapolate_value(curve: Sequence[Sequence[float]], seconds: float, larger: bool) -> float | None:
    """Return the best value expected after `seconds`, if each doubling of time gains as much as the last one.

    `curve` holds (seconds, value or None, ...) points; None if fewer than two have a value.

    >>> extrapolate_value([[1.0, 0.7, 1], [2.0, 0.6, 2]], 8.0, False)
    0.4
    """
    known = [point for point in curve if point[1] is not None]
    if len(known) < 2:
        return None
    best = max if larger else min
    end = known[-1][0]
    before = best([point[1] for point in known if point[0] <= end / 2] or [known[0][1]])
    value = best(point[1] for point in known)
    doublings = math.log2(max(seconds / end, 1.0))
    return round(value + doublings * (value - before), 12)


LIBRARIES = ("torch", "scikit-learn", "implicit", "tensorflow-cpu", "vowpalwabbit")
FINAL = ("ok", "unsupported", "memory", "timeout")


@dataclass(frozen=True)
class Policy:
    """Limits: how long a setting is trained at most, rounds of the best setting, and threads of all libraries.

    Every setting is trained for `first` seconds, by default those of `rungs.FIRST`, the best for longer.
    """

    seconds: float = 20.0
    rounds: int = 4
    threads: int | None = None
    first: float | None = None

    def __post_init__(self) -> None:
        """Raise BenchError unless 0 < `first` <= `seconds` and the thread count is possible."""
        if self.first is not None and not 0 < self.first <= self.seconds:
            raise BenchError(f"first-seconds is {self.first:g}; it is above 0 and at most seconds, {self.seconds:g}.")
        experiment.resolve_threads(self.threads)

    @property
    def is_steady(self) -> bool:
        """Whether there are at least four rounds, so that more may be added if their times spread."""
        return self.rounds >= INTERIM_ANALYSES[0]

    @property
    def count(self) -> int:
        """Number of threads: the requested one, or all cores."""
        return experiment.resolve_threads(self.threads)


class Records:
    """Records in a folder of results: stored ones, found by key, and new ones."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        """Open the table of a folder and set the run's name to the current time; nothing is read yet."""
        self.policy, self.results = policy, experiment.Results(tables.FIT, folder)
        self.run_id = time.strftime("%Y-%m-%dT%H:%M:%S")
        self.known: dict[str, Row] = {}

    def open(self) -> None:
        """Make the folder, describe the machine in it, and read the finished records into `known`, by key."""
        self.known = {row["key"]: row for row in self.results.open() if row["status"] in FINAL}

    def append(
        self, case: Case, candidate: Candidate, stage: str, key: str, value: Row, rung: Rung, columns: Row
    ) -> Row:
        """Append the record of one training with the columns of case, candidate and setting, and return it.

        `stage` is "settings" or "rounds"; `columns` are those measured. The record gets `key`, the case's and
        candidate's columns and the rung's time limit.
        """
        configuration = case.configuration
        return self.results.append(
            key=key,
            run=self.run_id,
            case=case.name,
            dataset=configuration.dataset,
            path=configuration.path,
            model=configuration.model,
            held_out=str(case.held_out),
            candidate=candidate.name,
            side=candidate.side,
            is_dense=candidate.is_dense,
            stage=stage,
            setting=value,
            tried=len(candidate.values(case.model)),
            is_at_end=candidate.is_at_end(case.model, value) if value else None,
            seconds_limit=self.policy.seconds,
            seconds_rung=rung.seconds,
            threads=self.policy.count,
            seed=configuration.seed,
            source=source_hash(case, candidate),
            **columns,
        )

    def key(self, case: Case, candidate: Candidate, *more: Any) -> str:
        """Return the hash of case, candidate, policy, code and library versions, and of `more`."""
        policy = {"seconds": self.policy.seconds, "threads": self.policy.count}
        parts = [asdict(case), candidate.name, policy, source_hash(case, candidate), describe_stack(*LIBRARIES), *more]
        return closure.result_key(parts)


@functools.cache
def _source(candidate: str, dataset: str, model: str) -> str:
    """Return the digest of the code that a candidate's result depends on; cached."""
    roots = {"benchmarks.fit.child", "workbench.measure.child", origin(get(candidate))}
    roots |= closure.registering_modules("data set", [dataset]) | closure.registering_modules("model", [model])
    if get(candidate).side == "ours":
        roots |= spec.roots_of(Configuration(dataset=dataset, model=model, gradient="fused"))
    return closure.installed_code().digest(roots)


def source_hash(case: Case, candidate: Candidate) -> str:
    """Return the digest of the code that makes a case's data and trains a candidate on it."""
    return _source(candidate.name, case.configuration.dataset, case.model)


# Rounds of a case: the best settings run again, each in turn, to the targets of all tolerances.


Trainings = Callable[[TrainingRequest], Iterator[tuple[Training, Row]]]
"""Gives each training that is asked for, and the facts of the data."""


class Rounds:
    """Rounds of a case, from the rows of the settings that were `tried`, by candidate.

    The rounds of a target include each candidate that reached it, with its fastest setting. A setting that is best for
    several targets is trained once, to the tightest of them.
    """

    def __init__(
        self,
        records: Records,
        case: Case,
        candidates: Mapping[str, Candidate],
        tried: Mapping[str, Sequence[Row]],
        trainings: Trainings,
        tell: Callable[[str], None],
    ) -> None:
        """Determine the targets, each candidate's fastest setting to each, and the trainings of a round.

        `trainings` runs a request; `tell` reports progress.
        """
        self.records, self.case, self.candidates, self.trainings, self.tell = records, case, candidates, trainings, tell
        self.targets, self.larger = targets_of_records([row for rows in tried.values() for row in rows])
        self.best = {tolerance: self._best(tried, target) for tolerance, target in self.targets.items()}
        self.is_ours = {name: one.side == "ours" for name, one in candidates.items()}
        self.jobs = jobs_of(self.best, self.is_ours)
        self.seconds: dict[float, dict[str, dict[int, float]]] = {tolerance: {} for tolerance in self.targets}

    def _best(self, tried: Mapping[str, Sequence[Row]], target: float) -> dict[str, Best]:
        """Return {candidate: (seconds, setting, point index)} of its fastest setting, if it reached `target`."""
        every = {name: fastest_to_target(rows, target, self.larger) for name, rows in tried.items()}
        return {name: found for name, found in every.items() if found}

    def run(self) -> None:
        """Run the rounds of the policy; with four or more, add rounds while the fastest candidates are undecided.

        Records are stored; known ones are not measured again.
        """
        policy = self.records.policy
        for number in range(policy.rounds):
            self._round(self.jobs, number)
        for number in range(policy.rounds, ROUNDS_MOST if policy.is_steady else 0):
            names = {each: candidates_for_more_rounds(seconds, self.is_ours) for each, seconds in self.seconds.items()}
            wanted = (job.only([each for each in names if job.name in names[each]]) for job in self.jobs)
            if not (jobs := [job for job in wanted if job.numbers]):
                return
            self._round(jobs, number)

    def _round(self, jobs: Sequence[Job], number: int) -> None:
        """Train all jobs of round `number` in counterbalanced order, unless all their records are stored.

        If one is missing all are trained again, so that a round's times are neighbours. Fills `seconds`.
        """
        known = [self._stored_records(job, number) for job in jobs]
        if not all(known):
            most = max(self.records.policy.rounds, number + 1)
            for index in counterbalanced_order(range(len(jobs)), number):
                self.tell(f"{self.case.name}: {jobs[index].name}, round {number + 1} of {most}")
                known[index] = self._train_job(jobs[index], number)
        for job, rows in zip(jobs, known, strict=True):
            for tolerance, row in rows.items():
                if row["seconds"] is not None:
                    self.seconds[tolerance].setdefault(job.name, {})[number] = row["seconds"]

    def _key(self, job: Job, tolerance: float, number: int) -> str:
        """Return the key of the record of a job at a tolerance in round `number`."""
        parts: tuple[Any, ...] = (number, tolerance, self.targets[tolerance], job.value, job.numbers[tolerance])
        return self.records.key(self.case, self.candidates[job.name], "round", *parts)

    def _stored_records(self, job: Job, number: int) -> dict[float, Row]:
        """Return {tolerance: stored record} of a job in round `number`; {} unless all are stored."""
        keys = {tolerance: self._key(job, tolerance, number) for tolerance in job.numbers}
        known = self.records.known
        return {tolerance: known[key] for tolerance, key in keys.items()} if known.keys() >= set(keys.values()) else {}

    def _train_job(self, job: Job, number: int) -> dict[float, Row]:
        """Train a job to the tightest of its targets; append and return a record per tolerance."""
        candidate, tightest = self.candidates[job.name], self.targets[min(job.numbers)]
        ladder = sorted({int(iterations) for iterations in job.numbers.values()}) if candidate.refit else []
        seconds = self.records.policy.seconds
        rows: dict[float, Row] = {}
        for training, facts in self.trainings(
            TrainingRequest(self.case, candidate, [(0, job.value)], seconds, tightest, ladder)
        ):
            for tolerance in job.numbers:
                key, columns = self._key(job, tolerance, number), self._columns(training, facts, tolerance)
                given = facts | columns | {"round": number}
                rows[tolerance] = self.records.append(
                    self.case, candidate, "rounds", key, job.value, Rung(seconds), given
                )
        return rows

    def _columns(self, training: Training, facts: Row, tolerance: float) -> Row:
        """Return the columns of a training cut off at the point that reaches the target of a tolerance.

        `seconds` is None if none does.
        """
        target = self.targets[tolerance]
        reached = reached_at(training.points, target, facts.get("larger_is_better", False))
        points = training.points[: training.points.index(list(reached)) + 1] if reached else training.points
        known = {"tolerance": tolerance, "target": target, "seconds": reached[0] if reached else None}
        return curve_columns(replace(training, points=points), facts) | known


WORK = "benchmarks.fit.child:answers"
PRELOAD = "benchmarks.preload"
SECONDS_START = 120.0
"""Seconds for data, imports, and what is compiled."""
SECONDS_JUDGE = 15.0
"""Seconds that judging a point may take, in addition to those of the training."""


class Runner:
    """Measures cases into a folder of results."""

    def __init__(self, folder: Path, policy: Policy, progress: Progress = lambda what, share: None) -> None:
        """Open the results of a folder and set up the worker processes; nothing is measured yet."""
        self.policy, self.progress = policy, progress
        self.records = Records(folder, policy)
        self.worker = Worker(WORK, folder, [PRELOAD])
        self.over, self.total = 0, 1

    def run(self, cases: Sequence[Case], only: tuple[str, ...] = ()) -> bool:
        """Measure what the folder has no final records of, for candidates `only` or all; False if Ctrl-C stopped it.

        Final are the statuses "ok", "unsupported", "memory" and "timeout"; others are measured again. What was finished
        is kept. Returns True at the end.
        """
        each = [(case, list_candidates(case.model, only)) for case in cases]
        self.records.open()
        steps = len(rungs(self.policy.seconds, self.policy.first)) + self.policy.rounds
        self.total = sum(len(candidates) for _, candidates in each) * steps
        return self.records.results.collect(lambda: self._measure(each))

    def _measure(self, each: Sequence[tuple[Case, Sequence[Candidate]]]) -> None:
        """Try the settings of every candidate of each case, then run the rounds of the best ones.

        `each` has (case, candidates). Records are appended as they come; `over` counts the finished parts for the
        progress.
        """
        for case, candidates in each:
            tried = self.climb(case, candidates)
            named = {candidate.name: candidate for candidate in candidates}
            rounds = Rounds(self.records, case, named, tried, self._trainings, self._tell)
            self.over += self.policy.rounds * max(len(candidates) - len(rounds.jobs), 0)
            rounds.run()

    def climb(self, case: Case, candidates: Sequence[Candidate]) -> dict[str, list[Row]]:
        """Return {candidate: newest record of each setting} after all rungs; appends new records.

        A rung is a time limit; which settings have the next one is decided when all candidates had the one before.
        """
        tried: dict[str, dict[int, Row]] = {candidate.name: {} for candidate in candidates}
        numbers = {candidate.name: list(range(len(candidate.values(case.model)))) for candidate in candidates}
        for number, rung in enumerate(rungs(self.policy.seconds, self.policy.first)):
            if number:
                numbers = settings_to_continue(tried, rung, self.policy.seconds)
            for candidate in candidates:
                self._tell(f"{case.name}: {candidate.name}, settings for {rung.seconds:g} s")
                self.try_settings(case, candidate, rung, numbers[candidate.name], tried[candidate.name])
        for name, (number, rung) in settings_left_early(tried, self.policy.seconds).items():
            self.try_settings(case, get(name), rung, [number], tried[name])
        return {name: list(rows.values()) for name, rows in tried.items()}

    def try_settings(
        self, case: Case, candidate: Candidate, rung: Rung, numbers: Sequence[int], rows: dict[int, Row]
    ) -> None:
        """Train the settings with indices `numbers` for the seconds of a rung; put their records into `rows` in place.

        Settings with a stored record of this or a later rung are not trained. Stops at a record after which nothing
        more is tried (`is_end`).
        """
        values = candidate.values(case.model)
        keys = {number: self.records.key(case, candidate, "settings", values[number]) for number in numbers}
        found = {number: self.records.known[key] for number, key in keys.items() if key in self.records.known}
        rows |= {number: row for number, row in found.items() if row["seconds_rung"] >= rung.seconds}
        rest = [number for number in numbers if number not in rows or rows[number]["seconds_rung"] < rung.seconds]
        if any(is_end(row) for row in rows.values()):
            return
        if candidate.unavailable and rest:
            columns = {"status": "unsupported", "reason": candidate.unavailable}
            rows[rest[0]] = self.records.append(case, candidate, "settings", keys[rest[0]], {}, rung, columns)
            return
        while rest:  # in another process again what is left after a setting that did not end well
            before = {number: rows[number]["curve"] for number in rest if number in rows and candidate.refit}
            asked = TrainingRequest(
                case, candidate, [(number, values[number]) for number in rest], rung.seconds, before=before
            )
            for training, facts in self._trainings(asked):
                number = training.number
                columns = facts | curve_columns(training, facts)
                rows[number] = self.records.append(
                    case, candidate, "settings", keys[number], values[number], rung, columns
                )
                rest.remove(number)
                if is_end(rows[number]):
                    return

    def _trainings(self, asked: TrainingRequest) -> Iterator[tuple[Training, Row]]:
        """Yield (training, facts of the data) as each setting of a request ends, the last even if aborted."""
        facts: Row = {}
        training = Training(asked.values[0][0])
        is_open = True
        try:
            for answer in self._answers(asked):
                facts = answer.get("facts", facts)
                if "setting" in answer:
                    training, is_open = Training(answer["setting"]), True
                training.points += [answer["point"]] if "point" in answer else []
                if ending := answer.get("done", answer.get("ended")):
                    training.columns |= ending
                    is_open = False
                    yield training, facts
        except Ended as ended:
            training.columns |= end_columns(ended)
            if is_open:
                yield training, facts

    def _answers(self, asked: TrainingRequest) -> Iterator[Row]:
        """Yield the answers of a new process to a request; Ended if it fails or is silent for too long."""
        request = {
            "case": asdict(asked.case),
            "candidate": asked.candidate.name,
            "values": [(number, value, asked.before.get(number, [])) for number, value in asked.values],
            "target": asked.target,
            "ladder": list(asked.ladder),
            "seconds": asked.seconds,
            "threads": self.policy.count,
            "bytes_limit": self.worker.bytes_limit,
        }

        def seconds(answer: Row | None) -> float:
            """Return the time limit (s) of the answer that follows the given one (None: the first)."""
            return SECONDS_START if answer is None or "facts" in answer else asked.seconds + SECONDS_JUDGE

        return self.worker.answers(request, seconds)

    def _tell(self, what: str) -> None:
        """Report the next step and the completed share, then count one step as done."""
        self.progress(what, min(self.over / max(self.total, 1), 1.0))  # rounds may be added
        self.over += 1
