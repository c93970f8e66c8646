"""The part in which a candidate meets itself: a winner would be a false one.

Both names of a configuration are a comparison of a sweep's own schedule, with its rounds, tries and decisions; several
comparisons have their rounds in turns, as in a sweep. In a recording of noise each candidate meets itself, too, on the
way there and back.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from workbench.analysis.pool import group_by
from workbench.bench.self_trial import noise, trials
from workbench.bench.self_trial.noise import HALVES
from workbench.bench.self_trial.trials import groups, key_of, share_row, split_key
from workbench.measure import loads
from workbench.measure.posterior import Scatter, Trial, residuals, severity_of, usual_scatter
from workbench.measure.rounds import MOST as ROUNDS
from workbench.measure.rounds import Decision, decide_comparison, rounds_due
from workbench.sweeps.schedule import PATIENCE, TIMED, Comparison, ComparisonState, Schedule
from workbench.sweeps.spec import Configuration

FILE = "self-same.jsonl"
NAMES = ("first", "second")
AT_ONCE = 9
"""Comparisons of a run, whose rounds take turns."""
CONDITIONS = {loads.QUIET: 0.55, **dict.fromkeys(loads.LOADS, 0.15)}
"""Share of the comparisons under each load."""
RECORDED = ", in the recording"
MOST, SURE = 0.05, 0.02
"""False winners that are allowed, and those that are called faster with a certainty of 99 %."""


def same(folder: Path, budget: trials.Budget, count: int = 200) -> list[dict[str, Any]]:
    """Measure comparisons of a candidate with itself until there are `count`, or the budget is over.

    Earlier ones count; the condition furthest below its share is next. Returns outcomes of all records of this machine.
    """
    found = read_all_decisions(folder)
    while sum(map(len, found.values())) < count and not budget.is_over:
        load = min(CONDITIONS, key=lambda name: len(found.get(name, ())) / CONDITIONS[name])
        left = count - sum(map(len, found.values()))
        run_comparisons(folder, load, budget, min(AT_ONCE, left))
        found = read_all_decisions(folder)
    return list(outcomes(found))


def run_comparisons(folder: Path, load: str, budget: trials.Budget, count: int) -> None:
    """Measure `count` random configurations against themselves under a load, to the end; appends records.

    Records go to a file in `folder`; `budget` only receives the progress.
    """
    configurations = [configuration for group in groups() for configuration in group.values()]
    chosen = random.sample(configurations, count)
    name, patience = trials.experiment("same", load), 20.0 if load == loads.QUIET else 0.0
    with loads.run_load(load), trials.Trials(folder / FILE, name, seconds_quiet=patience) as measured:
        schedule = Schedule([ComparisonState(comparison_of(configuration)) for configuration in chosen])
        for tasks in schedule.rounds():
            for task in tasks:
                budget.tell(f"a candidate against itself, {load}")
                schedule.add(measured.measure(task))


def comparison_of(configuration: Configuration) -> Comparison:
    """Return the comparison of a configuration with itself, the second name as the baseline."""
    first, second = (key_of(configuration, name) for name in NAMES)
    return Comparison({first: configuration, second: configuration}, frozenset([second]))


def read_all_decisions(folder: Path) -> dict[str, list[Decision]]:
    """Return {load: decisions} of all finished comparisons of this machine, and of those in the noise recording."""
    met, recorded = (trials.read(folder / file) for file in (FILE, noise.FILE))
    by_load = group_by(recorded, lambda row: trials.load_of(row["experiment"]))
    return decisions(met) | {f"{load}{RECORDED}": decisions_in_recording(rows) for load, rows in by_load.items()}


def decisions(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Decision]]:
    """Return {load: decisions} of the comparisons among the records that were finished. O(rows)."""
    found: dict[str, list[Decision]] = {}
    for (experiment, _), of_run in group_by(rows, itemgetter("experiment", "run")).items():
        by_comparison = list(group_by(of_run, lambda row: split_key(row["key"])[0]).values())
        usual = usual_scatter(residuals(_trials(own)) for own in by_comparison)
        for own in by_comparison:
            if decision := _decision(own, usual):
                found.setdefault(trials.load_of(experiment), []).append(decision)
    return found


def _decision(rows: list[Mapping[str, Any]], usual: Scatter) -> Decision | None:
    """Return the decision of one comparison, None if it was cut off before its end.

    `usual` is the scatter of its run's rounds. A comparison is also finished if its last rounds were all disturbed.
    `rows` are its trial records.
    """
    decision, trials_done = _decide(rows, NAMES, usual), Counter(row["round"] for row in rows)
    measured = [number for number, count in sorted(trials_done.items()) if count == len(NAMES)]
    disturbed = {row["round"] for row in rows if row["status"] == "disturbed"}
    is_given_up = len(measured) >= PATIENCE and disturbed.issuperset(measured[-PATIENCE:])
    return None if rounds_due(decision, len(measured), ROUNDS) and not is_given_up else decision


def _decide(rows: Iterable[Mapping[str, Any]], names: Sequence[str], usual: Scatter | None = None) -> Decision:
    """Return the decision between two names; the second is the baseline. `usual` is the prior of the scatter.

    `rows` are its trial records.
    """
    own = _trials(rows)
    return decide_comparison(own, {names[1]}, scatter=(usual or Scatter()).shrunk(*residuals(own)))


def _trials(rows: Iterable[Mapping[str, Any]]) -> list[Trial]:
    """Return records as trials, without records that have no time."""
    return [
        Trial(
            split_key(row["key"])[1],
            row["seconds_step"],
            row["run"],
            row["round"],
            row["status"] == "disturbed" or noise.is_disturbed(row),
            row["process"],
            severity_of(row["busy_others"]),
        )
        for row in rows
        if row["status"] in TIMED and row["seconds_step"]
    ]


def decisions_in_recording(rows: Iterable[Mapping[str, Any]]) -> list[Decision]:
    """Return the decisions of each candidate against itself, per twelve rounds of a recording under one load."""
    found, most = [], ROUNDS
    for of_configuration in group_by(rows, lambda row: split_key(row["key"])[0]).values():
        by_round = group_by(of_configuration, itemgetter("run", "round"))
        whole = [by_round[place] for place in sorted(by_round) if len(by_round[place]) == len(HALVES)]
        found += [_replay_rounds(whole[start : start + most]) for start in range(0, len(whole) - most + 1, most)]
    return found


def _replay_rounds(rounds: Sequence[list[Mapping[str, Any]]]) -> Decision:
    """Return the decision on these rounds if they are added one by one until no more is due."""
    measured, due, decision = 0, 1, Decision()
    while due:
        measured += due
        decision = _decide((row for round in rounds[:measured] for row in round), HALVES)
        due = rounds_due(decision, measured, len(rounds))
    return decision


def outcomes(found: Mapping[str, list[Decision]]) -> Iterator[dict[str, Any]]:
    """Yield outcome records: how many comparisons of equals named a winner, in total and per load.

    `found` is {condition: decisions}.
    """
    every = [decision for decisions in found.values() for decision in decisions]
    what = "a candidate against itself gets a winner"
    for condition, chosen in ({"all": every} | {load: own for load, own in found.items() if own}).items():
        wins = sum(decision.verdict in ("sparse", "dense") for decision in chosen)
        rounds = sum(decision.rounds for decision in chosen) / max(len(chosen), 1)
        limits = (None, MOST) if condition == "all" else (None, None)
        yield share_row("same", what, condition, wins, len(chosen), limits, truth=1.0, candidates=1, rounds=rounds)
    sure = sum(_is_sure(decision) for decision in every)
    what = "a candidate against itself is called faster at 99 %"
    yield share_row("same", what, "all", sure, len(every), (None, SURE))
    level = sum(decision.verdict == "level" for decision in every)
    yield share_row("same", "a candidate against itself is found level", "all", level, len(every), (None, None))


def _is_sure(decision: Decision) -> bool:
    """Return whether one of the two is called faster with a certainty of more than 99 %."""
    ratio = decision.ratio
    return ratio is not None and max(ratio.probability, 1 - ratio.probability) > 0.99
