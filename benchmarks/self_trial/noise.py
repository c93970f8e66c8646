"""Recorded noise: what the trials of candidates next to each other do while nothing but the machine changes.

A recording is rows of trials in rounds that are measured in turns, as in a sweep, quiet or under a load. Each
candidate of a group takes part twice, as two processes, its halves; the `key` of a row ends with the name of its half.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import loads
from benchmarks.loads import QUIET
from benchmarks.self_trial import trials
from benchmarks.self_trial.trials import (
    CANDIDATE_SETTINGS,
    SelfTrialError,
    candidate_of,
    group_of,
    groups,
    split_key,
)
from workbench.measure import machine, rounds
from workbench.measure.posterior import severity_of
from workbench.measure.rounds import counterbalanced_order
from workbench.sweeps.alternation import ROUNDS_A_SET
from workbench.sweeps.schedule import Task
from workbench.sweeps.spec import Configuration

Record = Mapping[str, Any]

HALVES = ("there", "back")
LEAST = rounds.MOST
"""Whole rounds of a group below which a recording of it is no base for a simulation."""


@dataclass(frozen=True)
class Group:
    """Recorded rounds of a group under one load, arrays [rounds, candidates, halves] in the order of the recording.

    `logs` are log seconds less the mean of the candidate's undisturbed trials without a load, so what a load does to
    all trials of a candidate is in them. `disturbed` tells during which trials other programs ran. `sets` [rounds] has
    the same number for rounds that the same processes measured. `severity` tells how much other programs took.
    """

    logs: np.ndarray
    disturbed: np.ndarray
    sets: np.ndarray
    severity: np.ndarray


@dataclass(frozen=True)
class Noise:
    """The groups of a recording, by load; rounds in which a trial is missing are left out."""

    groups: Mapping[str, tuple[Group, ...]]

    def undisturbed(self) -> "Noise":
        """Return the quiet noise without rounds in which a trial was disturbed."""
        return Noise({QUIET: tuple(_without_disturbed(group) for group in self.groups[QUIET])})

    def pair_sd(self, first: int, second: int) -> float:
        """Return the standard deviation of the log ratio of two candidates (indices) in quiet rounds of all groups."""
        logs = [(group.logs[:, first] - group.logs[:, second]).ravel() for group in self.groups[QUIET]]
        return math.sqrt(float(np.mean([log.var() for log in logs])))

    def scaled(self, factor: float) -> "Noise":
        """Return the quiet noise with log times multiplied by `factor`."""
        return Noise({QUIET: tuple(replace(one, logs=factor * one.logs) for one in self.groups[QUIET])})

    def every_second(self, first: int) -> "Noise":
        """Return the noise of every second group from index `first`.

        Constants are fitted to one half, judged on the other.
        """
        return Noise({load: groups[first::2] for load, groups in self.groups.items()})


def noise_of(rows: Iterable[Record]) -> Noise:
    """Return the noise of recorded records; SelfTrialError if no group has twelve whole quiet rounds. O(rows)."""
    found: dict[tuple, dict[tuple, dict[tuple, tuple[float, bool, float]]]] = {}
    for row in rows:
        if row["status"] in ("ok", "disturbed") and row["seconds_step"]:
            name = candidate_of(row), HALVES.index(split_key(row["key"])[1])
            which = group_of(row), trials.load_of(row["experiment"])
            place = row["run"], row["round"] if row["process"] is None else row["process"], row["round"]
            of_round = found.setdefault(which, {}).setdefault(place, {})
            of_round[name] = math.log(row["seconds_step"]), is_disturbed(row), severity_of(row["busy_others"])
    whole = {which: _whole(by_round) for which, by_round in found.items()}
    middles = {group: _middle(one) for (group, load), one in whole.items() if load == QUIET}
    kept: dict[str, list[Group]] = {}
    for (group, load), one in sorted(whole.items(), key=str):
        middle = middles.get(group)
        if middle is not None and len(one.logs) >= LEAST:
            kept.setdefault(load, []).append(replace(one, logs=one.logs - middle))
    if QUIET not in kept:
        most = max((len(one.logs) for which, one in whole.items() if which[1] == QUIET), default=0)
        raise SelfTrialError(
            f"Simulations need noise of this machine: a group with {LEAST} recorded rounds without a load; there is "
            f"one with {most}. Record more first: python -m benchmarks self --case record"
        )
    return Noise({load: tuple(groups) for load, groups in kept.items()})


def _without_disturbed(group: Group) -> Group:
    """Return the rounds of a group without a disturbed trial, their sets renumbered from 0."""
    kept = ~group.disturbed.reshape(len(group.disturbed), -1).any(1)
    sets = np.unique(group.sets[kept], return_inverse=True)[1]
    return Group(group.logs[kept], group.disturbed[kept], sets, group.severity[kept])


def is_disturbed(row: Record) -> bool:
    """Return whether other programs took more of the cores during a trial than is allowed."""
    return (row["busy_others"] or 0.0) > machine.disturbance_limit(row["threads"] or 1)


def _middle(group: Group) -> np.ndarray | None:
    """Return the mean log seconds of each candidate's undisturbed trials, [candidates, 1]; None if one has none."""
    counts = (~group.disturbed).sum((0, 2), keepdims=True)[0]
    if not counts.all():
        return None
    return np.asarray(np.where(group.disturbed, 0.0, group.logs).sum((0, 2), keepdims=True)[0] / counts)


def _whole(by_round: Mapping[tuple, Mapping[tuple, tuple[float, bool, float]]]) -> Group:
    """Return the rounds that have all trials, as arrays in recorded order; keys are (run, set, round).

    Values are {(candidate, half): (log seconds, is disturbed, severity)}.
    """
    places = [(name, half) for name in CANDIDATE_SETTINGS for half in range(len(HALVES))]
    kept = [(place, found) for place, found in sorted(by_round.items()) if len(found) == len(places)]
    every = [[found[place] for place in places] for _, found in kept]
    values = np.array(every, float).reshape(len(every), len(CANDIDATE_SETTINGS), len(HALVES), 3)
    numbers = {place[:2]: number for number, (place, _) in enumerate(kept)}
    sets = np.array([numbers[place[:2]] for place, _ in kept], int)
    return Group(values[..., 0], values[..., 1].astype(bool), sets, values[..., 2])


# The part that records noise: rounds of all groups, each candidate there and back, as a sweep measures them.
#
# Quiet, and under each load, so that each condition has its share.


FILE = "self-noise.jsonl"
CONDITIONS = {loads.QUIET: 2, **dict.fromkeys(loads.LOADS, 1)}
"""Shares of the rounds that are recorded under each load; without one there are twice as many."""


def record(folder: Path, budget: trials.Budget) -> None:
    """Record rounds of noise until the budget is over, at least one set per condition.

    The condition furthest below its share is next, earlier recordings counted. Records are appended to a file in
    `folder`, which the simulations read.
    """
    every, counts = groups(), _rounds_recorded(folder)
    while not budget.is_over or not all(counts.values()):
        load = min(CONDITIONS, key=lambda name: counts[name] / CONDITIONS[name])
        with loads.run_load(load), trials.Trials(folder / FILE, trials.experiment("noise", load)) as measured:
            for group in random.Random(counts[load]).sample(every, len(every)):
                for number in range(counts[load], counts[load] + ROUNDS_A_SET):
                    budget.tell(f"recording noise, {load}, round {number + 1}")
                    measured.measure_in_turns(there_and_back(group, number))
        counts[load] += ROUNDS_A_SET


def _rounds_recorded(folder: Path) -> dict[str, int]:
    """Return {load: complete rounds of all groups recorded on this machine} in a folder."""
    rows = trials.read(folder / FILE)
    found = Counter(trials.load_of(row["experiment"]) for row in rows)
    each = len(groups()) * len(CANDIDATE_SETTINGS) * len(HALVES)
    return {load: found[load] // each for load in CONDITIONS}


def there_and_back(group: dict[str, Configuration], number: int) -> list[Task]:
    """Return the tasks of a group in a round: all candidates in its order, then all in reverse order."""
    order = counterbalanced_order(list(CANDIDATE_SETTINGS), number)
    there = [trials.task_of(group[name], HALVES[0], number) for name in order]
    return there + [trials.task_of(group[name], HALVES[1], number) for name in reversed(order)]
