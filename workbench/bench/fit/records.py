"""Records of a run of `bench fit`: what is known of it, the key of each, and how they are stored.

>>> [(rung.seconds, rung.settings) for rung in rungs(20.0)], [(rung.seconds, rung.settings) for rung in rungs(1.0)]
([(0.4, None), (2.0, 2), (20.0, 1)], [(0.4, None), (1.0, 2)])
"""

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench import store
from workbench.bench import experiment
from workbench.bench.fit.cases import Case
from workbench.bench.fit.contract import Candidate, get, origin
from workbench.bench.fit.selection import TOLERANCES, Row, fastest_to_target, is_reached, target_of, targets_of_records
from workbench.bench.shapes import BenchError
from workbench.measure import closure
from workbench.measure.rounds import INTERIM_ANALYSES
from workbench.measure.stack import describe_stack
from workbench.sweeps import spec
from workbench.sweeps.spec import Cell

# Time for settings: all are tried for a short time, those that may still matter for longer, by one rule for all.
#
# Successive halving (Jamieson and Talwalkar 2016): of every candidate, ours or not, all settings train for the
# seconds of the first rung; then the best few for those of the next; then the best. None goes on that has ended by
# itself, nor one that at its pace, the gain of its last doubling of time, is out of reach at the end: neither at one
# more of the targets by then, nor better than the best of its side by the tightest tolerance. Who goes on is settled
# when all candidates have had the rung before, so that it does not matter who is first. In the end none was left
# before it had `LEAST` times the seconds of the soonest of its side: who is fastest is not decided by being left.


Tried = Mapping[str, Mapping[int, Row]]
"""The newest row of each setting by its number, by the name of the contender."""

FIRST, SECOND = 0.4, (2.0, 2)
"""Seconds of the first rung, which all settings have; of the second, and how many settings of a contender have it."""
AFTER = (2, 1)
"""How many the last rung has that is the second, or the third."""
LEAST = 2.0
"""Seconds of a contender that does not reach the target, by those of the soonest of its side, at least."""
LIMIT = "limit"
"""Why a training ended whose seconds were over; it alone may go on."""


@dataclass(frozen=True)
class Rung:
    """Seconds of training, and how many settings of a candidate have them, None for all."""

    seconds: float
    settings: int | None = None


def rungs(seconds: float, first: float | None = None) -> list[Rung]:
    """Return the rungs up to that time, from those of the first on.

    >>> [rung.seconds for rung in rungs(3.0, first=0.1)], [rung.seconds for rung in rungs(3.0, first=2.5)]
    ([0.1, 2.0, 3.0], [2.5, 3.0])
    """
    first = FIRST if first is None else first
    before = [rung for rung in (Rung(first), Rung(*SECOND)) if first <= rung.seconds < seconds]
    return [*before, Rung(seconds, AFTER[len(before) - 1] if before else None)]


def settings_to_continue(tried: Tried, rung: Rung, seconds: float) -> dict[str, list[int]]:
    """Return the numbers of the settings of each candidate that train in a rung.

    `seconds` are those of the last one.
    """
    every = [row for rows in tried.values() for row in rows.values() if row["value_best"] is not None]
    return {name: _of_contender(rows, every, rung, seconds) for name, rows in tried.items()}


def _of_contender(rows: Mapping[int, Row], every: Sequence[Row], rung: Rung, seconds: float) -> list[int]:
    """Return the numbers of a candidate's settings that go on to the next rung: the best that may reach the target."""
    able = [number for number, row in rows.items() if row["value_best"] is not None]
    sign = -1.0 if any(row["larger_is_better"] for row in every) else 1.0
    best = sorted(able, key=lambda number: sign * rows[number]["value_best"])[: rung.settings]
    return sorted(number for number in best if may_reach_target(rows[number], every, seconds))


def may_reach_target(row: Row, every: Sequence[Row], seconds: float) -> bool:
    """Return whether a training that goes on for so many seconds may reach, or move, one of the targets."""
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
    """Return, by candidate, the index of its best setting and the seconds it was trained, if it was stopped before the
    target."""
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
    """Value that is better by as much as the tightest target may be worse."""
    return value - (target_of(value, larger, TOLERANCES[0]) - value)


def extrapolate_value(curve: Sequence[Sequence[float]], seconds: float, larger: bool) -> float | None:
    """Return the best value that is to be expected after so many seconds, with the gain of the last doubling of time
    in each.

    None if there are not two points to tell a pace by.

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
        if self.first is not None and not 0 < self.first <= self.seconds:
            raise BenchError(f"first-seconds is {self.first:g}; it is above 0 and at most seconds, {self.seconds:g}.")
        experiment.resolve_threads(self.threads)

    @property
    def is_steady(self) -> bool:
        """Whether there are rounds enough to judge by that more may be added where they spread."""
        return self.rounds >= INTERIM_ANALYSES[0]

    @property
    def count(self) -> int:
        """Threads: those asked for, or all cores."""
        return experiment.resolve_threads(self.threads)


class Records:
    """Records in a folder of results: stored ones, found by key, and new ones."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.policy, self.results = policy, experiment.Results(store.FIT, folder)
        self.run_id = time.strftime("%Y-%m-%dT%H:%M:%S")
        self.known: dict[str, Row] = {}

    def open(self) -> None:
        """Make the folder, describe the machine in it, read the records it has."""
        self.known = {row["key"]: row for row in self.results.open() if row["status"] in FINAL}

    def append(
        self, case: Case, contender: Candidate, stage: str, key: str, value: Row, rung: Rung, columns: Row
    ) -> Row:
        """Store the record of one training of a setting and return it."""
        cell = case.cell
        return self.results.append(
            key=key,
            run=self.run_id,
            case=case.name,
            dataset=cell.dataset,
            path=cell.path,
            model=cell.model,
            held_out=str(case.held_out),
            contender=contender.name,
            side=contender.side,
            is_dense=contender.is_dense,
            stage=stage,
            setting=value,
            tried=len(contender.values(case.model)),
            is_at_end=contender.is_at_end(case.model, value) if value else None,
            seconds_limit=self.policy.seconds,
            seconds_rung=rung.seconds,
            threads=self.policy.count,
            seed=cell.seed,
            source=source_hash(case, contender),
            **columns,
        )

    def key(self, case: Case, contender: Candidate, *more: Any) -> str:
        """Return the hash of case, candidate, policy, code and libraries, and of what else tells a training from
        others."""
        policy = {"seconds": self.policy.seconds, "threads": self.policy.count}
        parts = [asdict(case), contender.name, policy, source_hash(case, contender), describe_stack(*LIBRARIES), *more]
        return closure.result_key(parts)


@functools.cache
def _source(contender: str, dataset: str, model: str) -> str:
    """Return the digest of the code that a candidate's result depends on."""
    roots = {"workbench.bench.fit.child", "workbench.measure.child", origin(get(contender))}
    roots |= closure.registering_modules("data set", [dataset]) | closure.registering_modules("model", [model])
    if get(contender).side == "ours":
        roots |= spec.roots_of(Cell(dataset=dataset, model=model, gradient="fused"))
    return closure.installed_code().digest(roots)


def source_hash(case: Case, contender: Candidate) -> str:
    """Return the hash of the code that makes the data and trains."""
    return _source(contender.name, case.cell.dataset, case.model)
