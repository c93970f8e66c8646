"""The part in which a contender meets itself: a winner would be a false one.

Both names of a cell are a comparison of a sweep's own schedule, with its rounds, looks, tries and decisions; several
comparisons have their rounds in turns, as in a sweep. In a recording of noise each contender meets itself, too, on the
way there and back.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import record, trials
from workbench.bench.self_trial.groups import groups, key_of, split_key
from workbench.bench.self_trial.noise import HALVES
from workbench.bench.self_trial.outcomes import counted
from workbench.measure import loads
from workbench.measure.rounds import LOOKS, Decision, decide, rounds_due
from workbench.sweep.schedule import Comparison, Course, Schedule
from workbench.sweep.spec import Cell

FILE = "self-same.jsonl"
NAMES = ("first", "second")
AT_ONCE = 9
"""Comparisons of a run, whose rounds take turns."""
CONDITIONS = {loads.QUIET: 0.55, **dict.fromkeys(loads.LOADS, 0.15)}
"""Share of the comparisons beside each load."""
RECORDED = "quiet, in the recording"
MOST = 0.05
"""False winners that are allowed."""


def same(folder: Path, budget: trials.Budget, count: int = 200) -> list[dict[str, Any]]:
    """Measure comparisons until there are `count` in all, with those of earlier runs, or the budget is over.

    The condition that has least of its share is next. Outcomes are of all rows of this machine.
    """
    found = judged(folder)
    while sum(map(len, found.values())) < count and not budget.is_over:
        load = min(CONDITIONS, key=lambda name: len(found.get(name, ())) / CONDITIONS[name])
        left = count - sum(map(len, found.values()))
        run_comparisons(folder, load, budget, min(AT_ONCE, left))
        found = judged(folder)
    return list(outcomes(found))


def run_comparisons(folder: Path, load: str, budget: trials.Budget, count: int) -> None:
    """Measure so many comparisons beside a load, to their ends."""
    cells = [cell for group in groups() for cell in group.values()]
    chosen = random.sample(cells, count)
    name, patience = trials.experiment("same", load), 20.0 if load == loads.QUIET else 0.0
    with loads.running(load), trials.Trials(folder / FILE, name, seconds_quiet=patience) as measured:
        schedule = Schedule([Course(comparison_of(cell)) for cell in chosen])
        for tasks in schedule.rounds():
            for task in tasks:
                budget.tell(f"a contender against itself, {load}")
                schedule.add(measured.measure(task))


def comparison_of(cell: Cell) -> Comparison:
    """A cell against itself, as a sweep's comparison."""
    first, second = (key_of(cell, name) for name in NAMES)
    return Comparison({first: cell, second: cell}, frozenset([second]))


def judged(folder: Path) -> dict[str, list[Decision]]:
    """Decisions of all comparisons of this machine that came to their end, by load, and of those in the recording."""
    met, recorded = (trials.of_this_machine(trials.read(folder / file)) for file in (FILE, record.FILE))
    return decisions(met) | {RECORDED: in_recording(recorded)}


def decisions(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Decision]]:
    """Decisions by load of the comparisons among the rows that came to their end. O(rows)."""
    by_comparison: dict[tuple, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_comparison.setdefault((row["experiment"], row["run"], split_key(row["key"])[0]), []).append(row)
    found: dict[str, list[Decision]] = {}
    for (experiment, *_), own in by_comparison.items():
        if decision := _decision(own):
            found.setdefault(trials.load_of(experiment), []).append(decision)
    return found


def _decision(rows: list[Mapping[str, Any]]) -> Decision | None:
    """The decision of one comparison; None where it was cut off."""
    decision, trials_done = _decided(rows, NAMES), Counter(row["round"] for row in rows)
    measured = sum(count == len(NAMES) for count in trials_done.values())
    return None if rounds_due(decision, measured, LOOKS[-1]) else decision


def _decided(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> Decision:
    sides: dict[str, dict] = {name: {} for name in names}
    for row in rows:
        if row["status"] == "ok" and row["seconds_step"]:
            sides[split_key(row["key"])[1]][row["run"], row["round"]] = row["seconds_step"]
    first, second = ({name: sides[name]} for name in names)
    return decide(first, second)


def in_recording(rows: Iterable[Mapping[str, Any]]) -> list[Decision]:
    """Decisions of each contender against itself in each twelve rounds of a recording, as a sweep looks at them."""
    by_cell: dict[tuple, dict[int, list[Mapping[str, Any]]]] = {}
    for row in rows:
        by_cell.setdefault((row["run"], split_key(row["key"])[0]), {}).setdefault(row["round"], []).append(row)
    found, most = [], LOOKS[-1]
    for by_round in by_cell.values():
        whole = [by_round[number] for number in sorted(by_round) if len(by_round[number]) == len(HALVES)]
        found += [_played(whole[start : start + most]) for start in range(0, len(whole) - most + 1, most)]
    return found


def _played(rounds: Sequence[list[Mapping[str, Any]]]) -> Decision:
    """The decision that comes of these rounds where they are added until none is due."""
    measured, due, decision = 0, LOOKS[0], Decision()
    while due:
        measured += due
        decision = _decided((row for round in rounds[:measured] for row in round), HALVES)
        due = rounds_due(decision, measured, len(rounds))
    return decision


def outcomes(found: Mapping[str, list[Decision]]) -> Iterator[dict[str, Any]]:
    """Count those with a winner, in all, then beside each load, and those that were decided to be level."""
    every = [decision for decisions in found.values() for decision in decisions]
    what = "a contender against itself gets a winner"
    for condition, chosen in ({"all": every} | {load: own for load, own in found.items() if own}).items():
        wins = sum(decision.verdict in ("sparse", "dense") for decision in chosen)
        rounds = sum(decision.rounds for decision in chosen) / max(len(chosen), 1)
        limits = (None, MOST) if condition == "all" else (None, None)
        yield counted("same", what, condition, wins, len(chosen), limits, truth=1.0, rivals=1, rounds=rounds)
    level = sum(decision.verdict == "level" for decision in every)
    yield counted("same", "a contender against itself is found level", "all", level, len(every), (None, None))
