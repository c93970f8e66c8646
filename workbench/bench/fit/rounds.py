"""Rounds of a case: the best settings run again, each in turn, to the targets of all tolerances."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.bench.fit.asking import Asked
from workbench.bench.fit.cases import Case
from workbench.bench.fit.choosing import (
    ROUNDS_MOST,
    Best,
    Job,
    Row,
    Training,
    curve_columns,
    in_more_rounds,
    jobs_of,
    reached_at,
    soonest,
    targets_among,
)
from workbench.bench.fit.contract import Contender
from workbench.bench.fit.records import Records
from workbench.bench.fit.rungs import Rung
from workbench.measure.rounds import turned

Trainings = Callable[[Asked], Iterator[tuple[Training, Row]]]
"""Gives each training that is asked for, and the facts of the data."""


class Rounds:
    """Rounds of a case, from the rows of the settings that were `tried`, by contender.

    A target has the rounds of those that reached it with a setting, each with the setting that was soonest there. A
    setting that is the best of a contender for several targets goes to the tightest of them, once.
    """

    def __init__(
        self,
        records: Records,
        case: Case,
        contenders: Mapping[str, Contender],
        tried: Mapping[str, Sequence[Row]],
        trainings: Trainings,
        tell: Callable[[str], None],
    ) -> None:
        self.records, self.case, self.contenders, self.trainings, self.tell = records, case, contenders, trainings, tell
        self.targets, self.larger = targets_among([row for rows in tried.values() for row in rows])
        self.best = {tolerance: self._best(tried, target) for tolerance, target in self.targets.items()}
        self.is_ours = {name: one.side == "ours" for name, one in contenders.items()}
        self.jobs = jobs_of(self.best, self.is_ours)
        self.seconds: dict[float, dict[str, dict[int, float]]] = {tolerance: {} for tolerance in self.targets}

    def _best(self, tried: Mapping[str, Sequence[Row]], target: float) -> dict[str, Best]:
        every = {name: soonest(rows, target, self.larger) for name, rows in tried.items()}
        return {name: found for name, found in every.items() if found}

    def run(self) -> None:
        """The rounds that are asked for, in turned order; if they are as many as a first look takes, further ones.

        Those are, at each tolerance, of the soonest alone (`in_more_rounds`).
        """
        policy = self.records.policy
        for number in range(policy.rounds):
            self._round(self.jobs, number)
        for number in range(policy.rounds, ROUNDS_MOST if policy.is_steady else 0):
            names = {each: in_more_rounds(seconds, self.is_ours) for each, seconds in self.seconds.items()}
            wanted = (job.only([each for each in names if job.name in names[each]]) for job in self.jobs)
            if not (jobs := [job for job in wanted if job.numbers]):
                return
            self._round(jobs, number)

    def _round(self, jobs: Sequence[Job], number: int) -> None:
        """A round of these trainings, all again if one lacks: those of a round are neighbours in time."""
        known = [self._known(job, number) for job in jobs]
        if not all(known):
            most = max(self.records.policy.rounds, number + 1)
            for index in turned(range(len(jobs)), number):
                self.tell(f"{self.case.name}: {jobs[index].name}, round {number + 1} of {most}")
                known[index] = self._trained(jobs[index], number)
        for job, rows in zip(jobs, known, strict=True):
            for tolerance, row in rows.items():
                if row["seconds"] is not None:
                    self.seconds[tolerance].setdefault(job.name, {})[number] = row["seconds"]

    def _key(self, job: Job, tolerance: float, number: int) -> str:
        parts: tuple[Any, ...] = (number, tolerance, self.targets[tolerance], job.value, job.numbers[tolerance])
        return self.records.key(self.case, self.contenders[job.name], "round", *parts)

    def _known(self, job: Job, number: int) -> dict[float, Row]:
        """The rows of a training by tolerance, if all are stored."""
        keys = {tolerance: self._key(job, tolerance, number) for tolerance in job.numbers}
        known = self.records.known
        return {tolerance: known[key] for tolerance, key in keys.items()} if known.keys() >= set(keys.values()) else {}

    def _trained(self, job: Job, number: int) -> dict[float, Row]:
        """One training to the tightest of its targets; a row for each, of the last of its processes."""
        contender, tightest = self.contenders[job.name], self.targets[min(job.numbers)]
        ladder = sorted({int(iterations) for iterations in job.numbers.values()}) if contender.refit else []
        seconds = self.records.policy.seconds
        rows: dict[float, Row] = {}
        for training, facts in self.trainings(Asked(self.case, contender, [(0, job.value)], seconds, tightest, ladder)):
            for tolerance in job.numbers:
                key, columns = self._key(job, tolerance, number), self._columns(training, facts, tolerance)
                given = facts | columns | {"round": number}
                rows[tolerance] = self.records.append(
                    self.case, contender, "rounds", key, job.value, Rung(seconds), given
                )
        return rows

    def _columns(self, training: Training, facts: Row, tolerance: float) -> Row:
        """The columns of a training as far as the target of a tolerance."""
        target = self.targets[tolerance]
        reached = reached_at(training.points, target, facts.get("larger_is_better", False))
        points = training.points[: training.points.index(list(reached)) + 1] if reached else training.points
        known = {"tolerance": tolerance, "target": target, "seconds": reached[0] if reached else None}
        return curve_columns(replace(training, points=points), facts) | known
