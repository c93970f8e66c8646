"""The parts that measure two candidates by fresh processes, in turns, and at the same time on a core each (duets).

They find how much a round's ratio varies in each arrangement, quiet and next to a busy core, and by how much the ratio
in turns differs from that of candidates that run alone (at most `SHIFT`), and that of duets from that in turns. What
slows the machine for a moment slows both of a duet (Bulej et al. 2020, Duet Benchmarking, ICPE), but each also takes
caches and memory bandwidth from the other. Trials count whatever else ran.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import configuration_of, outcome, ratio_row, split_key
from workbench.measure import loads
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, ratio_of
from workbench.sweeps.alternation import ROUNDS_A_SET
from workbench.sweeps.schedule import Task

FILE, DUETS_FILE = "self-turns.jsonl", "self-duets.jsonl"
CONDITIONS = (loads.QUIET, "busy core")
NAMES = ("fresh", "in turns")
DUET_NAMES = ("in turns, one thread", "at once, one thread")
SIDES = ("dense", "csr")
SHIFT = (0.97, 1.03)
"""Ratio in turns against that of candidates that run alone, at least and at most."""

Record = Mapping[str, Any]
Rounds = Mapping[tuple[str, int], float]


Arranged = Callable[[trials.Trials, trials.Trials, int], list[dict[str, Any]]]
"""Measures round `number` of both arrangements by one or two groups of processes, and returns the records."""


def turns(folder: Path, budget: trials.Budget, most: int = 10 * INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure candidates in fresh processes and in turns, in up to `most` rounds per load, at least four.

    Records are appended to a file in `folder`; returns outcome records.
    """

    def measure(one: trials.Trials, _two: trials.Trials, number: int) -> list[dict[str, Any]]:
        """Return the records of a round, appended to the file as well."""
        fresh = [one.measure_once(task) for task in tasks_of(NAMES[0], number)]
        return fresh + one.measure_in_turns(tasks_of(NAMES[1], number))

    return _compare_arrangements(folder / FILE, "turns", NAMES, "fresh processes against turns", budget, most, measure)


def duets(folder: Path, budget: trials.Budget, most: int = 10 * INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure candidates on one thread each in turns and simultaneously, in up to `most` rounds per load.

    At least four rounds; records are appended to a file in `folder`; returns outcome records.
    """

    def measure(one: trials.Trials, two: trials.Trials, number: int) -> list[dict[str, Any]]:
        """Return the records of a round, appended to the file as well."""
        in_turns = one.measure_in_turns(tasks_of(DUET_NAMES[0], number, threads=1))
        return in_turns + measured_at_once((one, two), tasks_of(DUET_NAMES[1], number, threads=1))

    return _compare_arrangements(folder / DUETS_FILE, "duets", DUET_NAMES, "turns against duets", budget, most, measure)


def _compare_arrangements(
    file: Path, part: str, names: Sequence[str], what: str, budget: trials.Budget, most: int, measure: Arranged
) -> list[dict[str, Any]]:
    """Measure two arrangements under each load, in sets of rounds that alternate between the loads.

    Records are appended to `file`, progress is reported as `what`; returns the outcome records of the part.
    """
    rows: dict[str, list[Record]] = {load: [] for load in CONDITIONS}
    for first in budget.rounds(most, ROUNDS_A_SET):
        for load in CONDITIONS:
            name = trials.experiment(part, load)
            with loads.run_load(load), trials.Trials(file, name) as one, trials.Trials(file, name) as two:
                for number in range(first, first + ROUNDS_A_SET):
                    budget.tell(f"{what}, {load}, round {number + 1}")
                    rows[load] += [{**row, "run": "one"} for row in measure(one, two, number)]
    return [found for load in CONDITIONS for found in outcomes(part, names, load, rows[load])]


def tasks_of(name: str, number: int, **settings: Any) -> list[Task]:
    """Return the tasks of both candidates in round `number`, in counterbalanced order, named for an arrangement."""
    order = counterbalanced_order(SIDES, number)
    return [trials.task_of(configuration_of(side, 512, 0.03, **settings), f"{name} {side}", number) for side in order]


def measured_at_once(each: Sequence[trials.Trials], tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Measure the tasks simultaneously in fresh processes, one by each of `each`; return their records."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(lambda one, task: one.measure_once(task), each, tasks))


def outcomes(part: str, names: Sequence[str], load: str, rows: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield the ratio dense / csr in each arrangement with its deviation per round, then the shift between both.

    `names` are the two arrangements, `rows` the records measured under `load`.
    """
    seconds = {name: [_seconds(rows, f"{name} {side}") for side in SIDES] for name in names}
    for name, (dense, csr) in seconds.items():
        logs = _logs(dense, csr)
        deviation = float(logs.std(ddof=1)) if logs.size > 1 else None
        yield ratio_row(part, f"dense / csr, {name}", load, ratio_of(dense, csr), deviation=deviation)
    yield _shift(part, names, load, *(_logs(*seconds[name]) for name in names))


def _shift(part: str, names: Sequence[str], load: str, first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    """Return the outcome of the second arrangement's mean ratio over the first's, bounds at two standard errors.

    `first` and `second` have the log ratios of the rounds; failed with fewer than two.
    """
    wanted = dict(zip(("wanted_low", "wanted_high"), SHIFT, strict=True)) if load == loads.QUIET else {}
    what = f"ratio {names[1]} / ratio {names[0]}"
    if min(first.size, second.size) < 2:
        return outcome(part, what, load, status="failed", reason="There are fewer than two rounds.", **wanted)
    log = float(second.mean() - first.mean())
    half = 2 * math.sqrt(sum(float(logs.var(ddof=1)) / logs.size for logs in (first, second)))
    low, shift, high = (math.exp(log + sign * half) for sign in (-1, 0, 1))
    is_within, is_beyond = SHIFT[0] <= shift <= SHIFT[1], low > SHIFT[1] or high < SHIFT[0]
    is_met = is_within if wanted and (is_within or is_beyond) else None  # rounds that vary much tell neither
    known = {"ratio": shift, "low": low, "high": high, "rounds": float(second.size)}
    return outcome(part, what, load, met=is_met, **known, **wanted)


def _logs(first: Rounds, second: Rounds) -> np.ndarray:
    """Return the natural logs of first / second in common rounds, float64 [rounds]."""
    return np.array([math.log(first[place] / second[place]) for place in sorted(first.keys() & second.keys())])


def _seconds(rows: Sequence[Record], name: str) -> dict[tuple[str, int], float]:
    """Return {(run, round): step seconds} of the trials of one name."""
    own = (row for row in rows if split_key(row["key"])[1] == name and row["seconds_step"])
    return {(row["run"], row["round"]): row["seconds_step"] for row in own}
