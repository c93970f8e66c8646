"""Races played back from recorded times: what a way to race would choose in a budget, over many draws; nothing runs.

The seconds of each contender are those that a full sweep has recorded. A trial in a replay gives them times lognormal
noise, and takes what a trial of that sweep took; rounds, who leaves, when time is out and what is chosen come from the
code that advice runs on. So ways to race are compared over many more draws than could be measured.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.advise.advising import SECONDS_START, affordable
from workbench.advise.contenders import contenders
from workbench.analysis.advice import SHARE, is_of
from workbench.measure.racing import least_expected
from workbench.measure.rounds import DEVIATION, LOOKS
from workbench.sweep.budget import LEAST_OF_RACE
from workbench.sweep.schedule import Comparison, Course
from workbench.sweep.spec import Cell


@dataclass(frozen=True)
class Way:
    """A way to spend the budget: with as many contenders as it affords or all of them, in a race or not, how often."""

    is_race: bool = True
    is_cut: bool = True
    rounds: int = LOOKS[-1]


WAYS = {
    "as advice does": Way(),
    "a race of all": Way(is_cut=False),
    "rounds of all": Way(is_race=False, is_cut=False),
    "one round of all": Way(is_race=False, is_cut=False, rounds=1),
}


@dataclass(frozen=True)
class Recorded:
    """A case as a full sweep has it: its contenders, likeliest first, their seconds of a step, what a trial takes."""

    case: str
    cells: tuple[Mapping[str, Any], ...]
    least: float
    seconds_trial: float
    seconds_sweep: float


@dataclass(frozen=True)
class Played:
    """Result of one race: times of the least that was chosen, whether its side was right, seconds it took."""

    regret: float
    is_right_side: bool
    seconds: float


def recorded(rows: Iterable[Mapping[str, Any]]) -> list[Recorded]:
    """The cases of good rows of the suite of advice (`store.ADVICE`), the newest row of each."""
    return list({row["case"]: _case(row) for row in rows if row["status"] == "ok"}.values())


def _case(row: Mapping[str, Any]) -> Recorded:
    able = [cell for cell in row["cells"] if cell["status"] == "ok" and cell["seconds"] and cell["is_faithful"]]
    settings = {name: row[name] for name in ("dataset", "model", "optimizer")}
    named = [{"launch": "kernels", "hold": "format", **one} for one in contenders(settings)]
    ordered = [cell for one in named for cell in able if is_of(cell, one)]
    least = min(cell["seconds"] for cell in able)
    each = row["seconds_sweep"] / max(row["trials_sweep"], 1)
    return Recorded(row["case"], tuple(ordered), least, each, row["seconds_sweep"])


def play(case: Recorded, way: Way, seconds: float, rng: np.random.Generator, noise: float = DEVIATION) -> Played:
    """One race in a budget of seconds; `noise` is the standard deviation of the log ratio of two trials."""
    named = {str(place): cell for place, cell in enumerate(case.cells[: _most(case, way, seconds)])}
    dense = frozenset(key for key, cell in named.items() if cell["format"] == "dense")
    course = Course(Comparison({key: Cell() for key in named}, dense), way.rounds, way.is_race)
    spent = SECONDS_START
    for key, number in _trials(course):
        if way.is_race and number >= LEAST_OF_RACE and spent + case.seconds_trial > seconds:
            break
        spent += case.seconds_trial
        drawn = named[key]["seconds"] * math.exp(noise / math.sqrt(2) * rng.standard_normal())
        course.add({"key": key, "status": "ok", "run": "", "round": course.measured, "seconds_step": drawn})
        if not way.is_race and spent > seconds and number + 1 >= len(named):
            break
    chosen = named[str(least_expected(course.seconds))]
    best = min(case.cells, key=lambda cell: cell["seconds"])
    is_right = (chosen["format"] == "dense") == (best["format"] == "dense")
    return Played(chosen["seconds"] / case.least, is_right, spent)


def _most(case: Recorded, way: Way, seconds: float) -> int:
    """Number of cells that a race begins with: two of them are dense, on all threads and on one."""
    return affordable(seconds, case.seconds_trial) + 1 if way.is_cut else len(case.cells)


def _trials(course: Course) -> Iterator[tuple[str, int]]:
    """Key and number of each trial, as long as one is due."""
    number = 0
    while course.due():
        for task in course.round():
            yield task.key, number
            number += 1


def replays(
    cases: Sequence[Recorded], draws: int = 50, seed: int = 0, share: float = SHARE, noise: float = DEVIATION
) -> dict[tuple[str, str], list[Played]]:
    """By case and way what came of so many races, each in that share of the time of the case's sweep."""
    return {
        (case.case, name): [play(case, way, share * case.seconds_sweep, rng, noise) for _ in range(draws)]
        for case in cases
        for name, way in WAYS.items()
        for rng in [np.random.default_rng([seed, *case.case.encode()])]
    }
