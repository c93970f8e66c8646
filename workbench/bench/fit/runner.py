"""Runs cases: every candidate with its settings, rung by rung, then the best of each in rounds; a row for each.

Rows are on the disk before the next training starts; what is stopped is resumed by starting it again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from workbench.bench.experiment import Progress, Worker, end_columns
from workbench.bench.fit.cases import Case, TrainingRequest
from workbench.bench.fit.contract import Candidate, get, list_candidates
from workbench.bench.fit.records import Policy, Records, Rung, rungs, settings_left_early, settings_to_continue
from workbench.bench.fit.selection import (
    ROUNDS_MOST,
    Best,
    Job,
    Row,
    Training,
    candidates_for_more_rounds,
    curve_columns,
    fastest_to_target,
    is_end,
    jobs_of,
    reached_at,
    targets_of_records,
)
from workbench.measure.child import Ended
from workbench.measure.rounds import counterbalanced_order

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
        contenders: Mapping[str, Candidate],
        tried: Mapping[str, Sequence[Row]],
        trainings: Trainings,
        tell: Callable[[str], None],
    ) -> None:
        self.records, self.case, self.candidates, self.trainings, self.tell = records, case, contenders, trainings, tell
        self.targets, self.larger = targets_of_records([row for rows in tried.values() for row in rows])
        self.best = {tolerance: self._best(tried, target) for tolerance, target in self.targets.items()}
        self.is_ours = {name: one.side == "ours" for name, one in contenders.items()}
        self.jobs = jobs_of(self.best, self.is_ours)
        self.seconds: dict[float, dict[str, dict[int, float]]] = {tolerance: {} for tolerance in self.targets}

    def _best(self, tried: Mapping[str, Sequence[Row]], target: float) -> dict[str, Best]:
        """Return the setting that reaches the target first, for each candidate that reaches it."""
        every = {name: fastest_to_target(rows, target, self.larger) for name, rows in tried.items()}
        return {name: found for name, found in every.items() if found}

    def run(self) -> None:
        """The rounds that are asked for, in turned order; if they are as many as a first look takes, further ones.

        Those are, at each tolerance, of the soonest alone (`candidates_for_more_rounds`).
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
        """A round of these trainings, all again if one lacks: those of a round are neighbours in time."""
        known = [self._known(job, number) for job in jobs]
        if not all(known):
            most = max(self.records.policy.rounds, number + 1)
            for index in counterbalanced_order(range(len(jobs)), number):
                self.tell(f"{self.case.name}: {jobs[index].name}, round {number + 1} of {most}")
                known[index] = self._trained(jobs[index], number)
        for job, rows in zip(jobs, known, strict=True):
            for tolerance, row in rows.items():
                if row["seconds"] is not None:
                    self.seconds[tolerance].setdefault(job.name, {})[number] = row["seconds"]

    def _key(self, job: Job, tolerance: float, number: int) -> str:
        """Return the key of a round's record."""
        parts: tuple[Any, ...] = (number, tolerance, self.targets[tolerance], job.value, job.numbers[tolerance])
        return self.records.key(self.case, self.candidates[job.name], "round", *parts)

    def _known(self, job: Job, number: int) -> dict[float, Row]:
        """Return the rows of a training by tolerance, if all are stored."""
        keys = {tolerance: self._key(job, tolerance, number) for tolerance in job.numbers}
        known = self.records.known
        return {tolerance: known[key] for tolerance, key in keys.items()} if known.keys() >= set(keys.values()) else {}

    def _trained(self, job: Job, number: int) -> dict[float, Row]:
        """Return one training to the tightest of its targets; a row for each, of the last of its processes."""
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
        """Return the columns of a training as far as the target of a tolerance."""
        target = self.targets[tolerance]
        reached = reached_at(training.points, target, facts.get("larger_is_better", False))
        points = training.points[: training.points.index(list(reached)) + 1] if reached else training.points
        known = {"tolerance": tolerance, "target": target, "seconds": reached[0] if reached else None}
        return curve_columns(replace(training, points=points), facts) | known


WORK = "workbench.bench.fit.child:answers"
PRELOAD = "workbench.bench.fit.preload"
SECONDS_START = 120.0
"""Seconds for data, imports, and what is compiled."""
SECONDS_JUDGE = 15.0
"""Seconds that judging a point may take, beside those of the training."""


class Runner:
    """Measures cases into a folder of results."""

    def __init__(self, folder: Path, policy: Policy, told: Progress = lambda what, share: None) -> None:
        self.policy, self.told = policy, told
        self.records = Records(folder, policy)
        self.worker = Worker(WORK, folder, [PRELOAD])
        self.over, self.total = 0, 1

    def run(self, cases: Sequence[Case], only: tuple[str, ...] = ()) -> bool:
        """Measure what the folder has no rows of yet; False if Ctrl-C stopped it, which loses nothing finished."""
        each = [(case, list_candidates(case.model, only)) for case in cases]
        self.records.open()
        steps = len(rungs(self.policy.seconds, self.policy.first)) + self.policy.rounds
        self.total = sum(len(candidates) for _, candidates in each) * steps
        return self.records.results.collect(lambda: self._measure(each))

    def _measure(self, each: Sequence[tuple[Case, Sequence[Candidate]]]) -> None:
        """Try the settings of each candidate of a case, then train the best of them in rounds, case after case."""
        for case, candidates in each:
            tried = self.climb(case, candidates)
            named = {contender.name: contender for contender in candidates}
            rounds = Rounds(self.records, case, named, tried, self._trainings, self._tell)
            self.over += self.policy.rounds * max(len(candidates) - len(rounds.jobs), 0)
            rounds.run()

    def climb(self, case: Case, contenders: Sequence[Candidate]) -> dict[str, list[Row]]:
        """Return the newest row of each setting of each candidate, after all rungs."""
        tried: dict[str, dict[int, Row]] = {contender.name: {} for contender in contenders}
        numbers = {contender.name: list(range(len(contender.values(case.model)))) for contender in contenders}
        for number, rung in enumerate(rungs(self.policy.seconds, self.policy.first)):
            if number:
                numbers = settings_to_continue(tried, rung, self.policy.seconds)
            for contender in contenders:
                self._tell(f"{case.name}: {contender.name}, settings for {rung.seconds:g} s")
                self.try_settings(case, contender, rung, numbers[contender.name], tried[contender.name])
        for name, (number, rung) in settings_left_early(tried, self.policy.seconds).items():
            self.try_settings(case, get(name), rung, [number], tried[name])
        return {name: list(rows.values()) for name, rows in tried.items()}

    def try_settings(
        self, case: Case, contender: Candidate, rung: Rung, numbers: Sequence[int], rows: dict[int, Row]
    ) -> None:
        """Train settings of a candidate, by number, for the seconds of a rung, and put the row of each into `rows`.

        What has a row of that rung, or of a later one, has it already.
        """
        values = contender.values(case.model)
        keys = {number: self.records.key(case, contender, "settings", values[number]) for number in numbers}
        found = {number: self.records.known[key] for number, key in keys.items() if key in self.records.known}
        rows |= {number: row for number, row in found.items() if row["seconds_rung"] >= rung.seconds}
        rest = [number for number in numbers if number not in rows or rows[number]["seconds_rung"] < rung.seconds]
        if any(is_end(row) for row in rows.values()):
            return
        if contender.unavailable and rest:
            columns = {"status": "unsupported", "reason": contender.unavailable}
            rows[rest[0]] = self.records.append(case, contender, "settings", keys[rest[0]], {}, rung, columns)
            return
        while rest:  # in another process again what is left after a setting that did not end well
            before = {number: rows[number]["curve"] for number in rest if number in rows and contender.refit}
            asked = TrainingRequest(
                case, contender, [(number, values[number]) for number in rest], rung.seconds, before=before
            )
            for training, facts in self._trainings(asked):
                number = training.number
                columns = facts | curve_columns(training, facts)
                rows[number] = self.records.append(
                    case, contender, "settings", keys[number], values[number], rung, columns
                )
                rest.remove(number)
                if is_end(rows[number]):
                    return

    def _trainings(self, asked: TrainingRequest) -> Iterator[tuple[Training, Row]]:
        """Yield each training that came to an end, the last by whatever ended the process, and the facts of the
        data."""
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
        """Yield each answer of a process; `Ended` where it ends badly, or is silent for too long."""
        request = {
            "case": asdict(asked.case),
            "contender": asked.contender.name,
            "values": [(number, value, asked.before.get(number, [])) for number, value in asked.values],
            "target": asked.target,
            "ladder": list(asked.ladder),
            "seconds": asked.seconds,
            "threads": self.policy.count,
            "bytes_limit": self.worker.bytes_limit,
        }

        def seconds(answer: Row | None) -> float:
            return SECONDS_START if answer is None or "facts" in answer else asked.seconds + SECONDS_JUDGE

        return self.worker.answers(request, seconds)

    def _tell(self, what: str) -> None:
        """Report what is done next and the share that is over, then count one more."""
        self.told(what, min(self.over / max(self.total, 1), 1.0))  # rounds may be added
        self.over += 1
