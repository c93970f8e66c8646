"""The part that runs the demo's sweep of densities again and again: each run must give the same answer.

A run is measured as `workbench demo` measures it, with its budget, quiet or beside a busy core; its trials are kept no
longer than its decisions are. An undecided density contradicts nothing; two winners at one density would.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench import store
from workbench.bench.self_trial import trials
from workbench.bench.self_trial.outcomes import counted, outcome
from workbench.measure import loads
from workbench.measure.rounds import Decision, Ratio
from workbench.sweep import spec
from workbench.sweep.schedule import Schedule
from workbench.sweep.spec import Spec

FILE = "self-demo.jsonl"
SPEC = Path(__file__).parents[2] / "specs" / "demo_density.toml"
CONDITIONS = (loads.QUIET, "busy core")
RUNS = 10
"""Runs beside each."""
HELD = 0.95
"""Share of the intervals that should hold the ratio that the quiet runs agree on."""


def demo(folder: Path, budget: trials.Budget, count: int = RUNS) -> list[dict[str, Any]]:
    """Run the demo `count` times beside each load, with the runs of earlier calls, or until the budget is over."""
    settings, path = spec.load(SPEC), folder / FILE
    found = trials.of_this_machine(stored(path))
    while not budget.is_over:
        done = {load: len({row["condition"] for row in found if load_of(row) == load}) for load in CONDITIONS}
        load = min(CONDITIONS, key=lambda name: done[name])
        if done[load] >= count:
            break
        budget.tell(f"the demo, {load}, run {done[load] + 1} of {count}")
        rows = list(decided(run(settings, load), f"{load}, run {done[load] + 1}"))
        for row in rows:
            store.SELF.append(path, row)
        found += rows
    return list(outcomes(found))


def stored(path: Path) -> list[dict[str, Any]]:
    """The decisions of earlier runs; none where the file is not there yet."""
    return store.SELF.read(path) if path.exists() else []


def run(settings: Spec, load: str) -> Schedule:
    """The schedule of one run of the sweep, as far as its budget went."""
    patience = settings.measure.seconds_quiet if load == loads.QUIET else 0.0
    budget, name = trials.Budget(settings.limits.seconds_sweep or float("inf")), trials.experiment("demo", load)
    schedule = Schedule.of(settings, [])
    with (
        tempfile.TemporaryDirectory(prefix="self-demo-") as home,
        loads.running(load),
        trials.Trials(Path(home) / FILE, name, seconds_quiet=patience) as measured,
    ):
        for tasks in schedule.rounds():
            if budget.is_over:
                break
            for task in tasks:
                schedule.add(measured.measure(task))
    return schedule


def decided(schedule: Schedule, condition: str) -> Iterator[dict[str, Any]]:
    """A row for each density of a run: the ratio of the best, with its interval, or that there is none."""
    for course in schedule.courses:
        (density,) = {cell.density for cell in course.comparison.cells.values()}
        what = "natural density" if density is None else f"density {density:g}"
        yield _row(course.decision(), what, condition)


def _row(decision: Decision, what: str, condition: str) -> dict[str, Any]:
    ratio = decision.ratio
    if ratio is None:
        reason = "Other programs were at work in every round."
        return outcome("demo", what, condition, status="failed", reason=reason, rounds=0)
    columns = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "rounds": ratio.rounds}
    return outcome("demo", what, condition, **columns)


def load_of(row: Mapping[str, Any]) -> str:
    """The load that a run was measured beside."""
    return row["condition"].partition(",")[0]


def outcomes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Whether runs contradict each other, how often they name a winner, and whether their intervals hold."""
    names = list(dict.fromkeys(row["what"] for row in rows))
    for load in CONDITIONS:
        own = [row for row in rows if load_of(row) == load]
        winners = {name: [winner for row in own if row["what"] == name and (winner := _winner(row))] for name in names}
        agreed = sum(max(map(found.count, set(found))) for found in winners.values() if found)
        named = sum(map(len, winners.values()))
        yield counted("demo", "a density's winner is the same in all runs", load, agreed, named, (1.0, None))
        for name in names:
            runs = sum(row["what"] == name for row in own)
            yield counted("demo", f"{name}: a winner is named", load, len(winners[name]), runs, (None, None))
        held = list(_held(own, rows, names))
        yield counted("demo", "an interval holds the quiet runs' ratio", load, sum(held), len(held), (HELD, None))


def _winner(row: Mapping[str, Any]) -> str:
    """sparse or dense; "" where neither was named."""
    if row["ratio"] is None:
        return ""
    verdict = Ratio(row["ratio"], row["low"], row["high"], row["rounds"], 1).verdict
    return verdict if verdict in ("sparse", "dense") else ""


def _held(own: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[bool]:
    """Of each interval, whether it holds the median of the ratios of the quiet runs."""
    for name in names:
        quiet = [row["ratio"] for row in rows if row["what"] == name and load_of(row) == loads.QUIET and row["ratio"]]
        if quiet:
            middle = float(np.median(quiet))
            yield from (row["low"] <= middle <= row["high"] for row in own if row["what"] == name and row["ratio"])
