"""The part that runs the demo's sweep of densities again and again: each run must give the same answer.

A run is measured as `workbench demo` measures it, with its budget, quiet or beside a load; its trials are kept no
longer than its decisions are. An inconclusive density contradicts nothing; two winners at one density would. Beside a
core that is always busy nothing is decided on a small machine, so most loaded runs are beside loads with gaps.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench import store
from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import counted, outcome
from workbench.measure import loads
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import Decision
from workbench.sweeps import spec
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import Spec

FILE = "self-demo.jsonl"
SPEC = Path(__file__).parents[2] / "specs" / "demo_density.toml"
RUNS = {loads.QUIET: 10, "busy core": 2, "bursts": 4, "memory traffic": 4}
"""Runs beside each load."""
HELD = 0.95
"""Share of the intervals that should hold the ratio that the quiet runs agree on."""


def demo(folder: Path, budget: trials.Budget, runs: Mapping[str, int] = RUNS) -> list[dict[str, Any]]:
    """Run the demo so many times beside each load, with the runs of earlier calls, or until the budget is over."""
    settings, path = spec.load_spec(SPEC), folder / FILE
    found = trials.of_this_machine(read_decisions(path))
    while not budget.is_over:
        done = {load: len({row["condition"] for row in found if load_of(row) == load}) for load in runs}
        load = min(runs, key=lambda name: done[name] / runs[name])
        if done[load] >= runs[load]:
            break
        budget.tell(f"the demo, {load}, run {done[load] + 1} of {runs[load]}")
        rows = list(decision_records(run(settings, load), f"{load}, run {done[load] + 1}"))
        for row in rows:
            store.SELF.append(path, row)
        found += rows
    return list(outcomes(found))


def read_decisions(path: Path) -> list[dict[str, Any]]:
    """Return the decisions of earlier runs; none if the file is not there yet."""
    return store.SELF.read(path) if store.is_stored(path) else []


def run(settings: Spec, load: str) -> Schedule:
    """Return the schedule of one run of the sweep, as far as its budget went."""
    patience = settings.measure.seconds_quiet if load == loads.QUIET else 0.0
    budget, name = trials.Budget(settings.limits.seconds_sweep or float("inf")), trials.experiment("demo", load)
    schedule = Schedule.of(settings, [])
    with (
        tempfile.TemporaryDirectory(prefix="self-demo-") as home,
        loads.run_load(load),
        trials.Trials(Path(home) / FILE, name, seconds_quiet=patience) as measured,
    ):
        for tasks in schedule.rounds():
            if budget.is_over:
                break
            for task in tasks:
                schedule.add(measured.measure(task))
    return schedule


def decision_records(schedule: Schedule, condition: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each density of a run: the ratio of the best, with its interval, or that there is none."""
    for course in schedule.courses:
        (density,) = {cell.density for cell in course.comparison.cells.values()}
        what = "natural density" if density is None else f"density {density:g}"
        yield _row(course.decision(), what, condition)


def _row(decision: Decision, what: str, condition: str) -> dict[str, Any]:
    """Return the record of a decision: ratio with its interval, or failed if every round was disturbed."""
    ratio = decision.ratio
    if ratio is None:
        reason = "Other programs were at work in every round."
        return outcome("demo", what, condition, status="failed", reason=reason, rounds=0)
    columns = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "rounds": ratio.rounds}
    return outcome("demo", what, condition, **columns)


def load_of(row: Mapping[str, Any]) -> str:
    """Return the load that a run was measured beside."""
    return row["condition"].partition(",")[0]


def outcomes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield whether runs contradict each other, how often they name a winner, and whether their intervals hold."""
    names = list(dict.fromkeys(row["what"] for row in rows))
    of_load: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_load.setdefault(load_of(row), []).append(row)
    quiet = of_load.get(loads.QUIET, [])
    winners = {name: [winner for row in rows if row["what"] == name and (winner := _winner(row))] for name in names}
    agreed = sum(max(map(found.count, set(found))) for found in winners.values() if found)
    named = sum(map(len, winners.values()))
    yield counted("demo", "a density's winner is the same in all runs", "all", agreed, named, (1.0, None))
    for load, own in of_load.items():
        held = list(_intervals_hold(own, quiet))
        yield counted("demo", "a winner is named", load, sum(map(bool, map(_winner, own))), len(own), (None, None))
        if held:
            limits = (HELD if load == loads.QUIET else None, None)
            yield counted("demo", "an interval holds the quiet runs' ratio", load, sum(held), len(held), limits)


def _winner(row: Mapping[str, Any]) -> str:
    """sparse or dense; "" if neither was named."""
    if row["ratio"] is None:
        return ""
    verdict = Ratio(row["ratio"], row["low"], row["high"], row["rounds"], 1).verdict
    return verdict if verdict in ("sparse", "dense") else ""


def _intervals_hold(own: Sequence[Mapping[str, Any]], quiet: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
    """Yield whether each interval holds the median of the ratios of the quiet runs at its density."""
    for row in own:
        others = [other["ratio"] for other in quiet if other["what"] == row["what"] and other["ratio"]]
        if row["ratio"] and others:
            yield row["low"] <= float(np.median(others)) <= row["high"]
