"""A case is swept in full, then advised on within a share of the time that took; one row says what came of both."""

import hashlib
import itertools
import math
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tables
from benchmarks.analysis.advice import LINE, SHARE, matches_settings
from benchmarks.experiment import Results
from kernels.registry import unknown_name
from workbench import formats, store
from workbench.advising import Answer, advise
from workbench.advising.advising import SECONDS_LEAST, SECONDS_START, affordable_candidates, wait_silently
from workbench.advising.candidates import is_faithful, is_lazy_exact, list_candidates
from workbench.analysis import configurations
from workbench.measure import closure
from workbench.measure.posterior import DEVIATION
from workbench.measure.rounds import MOST
from workbench.settings import BY_NAME
from workbench.sweeps import estimate, grid, run_folder
from workbench.sweeps.budget import LEAST_OF_RACE
from workbench.sweeps.problem import make_problem
from workbench.sweeps.schedule import Comparison, ComparisonState
from workbench.sweeps.spec import Configuration, Spec, SpecError, allowed_values, validate_spec

# Races played back from recorded times: what a way to race would choose in a budget, over many draws; nothing runs.
#
# The seconds of each candidate are those that a full sweep has recorded. A trial in a replay gives them times
# lognormal noise, and takes what a trial of that sweep took; rounds, who leaves, when time is out and what is chosen
# come from the code that advice runs on. So ways to race are compared over many more draws than could be measured.


@dataclass(frozen=True)
class BudgetStrategy:
    """A way to spend the budget: with as many candidates as it affords or all of them, in a race or not, how often."""

    is_race: bool = True
    is_cut: bool = True
    rounds: int = MOST


WAYS = {
    "as advice does": BudgetStrategy(),
    "a race of all": BudgetStrategy(is_cut=False),
    "rounds of all": BudgetStrategy(is_race=False, is_cut=False),
    "one round of all": BudgetStrategy(is_race=False, is_cut=False, rounds=1),
}


@dataclass(frozen=True)
class RecordedCase:
    """A case as a full sweep has it: its candidates, likeliest first, their seconds of a step, what a trial takes."""

    case: str
    configurations: tuple[Mapping[str, Any], ...]
    least: float
    seconds_trial: float
    seconds_sweep: float


@dataclass(frozen=True)
class RaceResult:
    """Result of one race: times of the least that was chosen, whether its side was right, seconds it took."""

    regret: float
    is_right_side: bool
    seconds: float


def read_recorded_cases(rows: Iterable[Mapping[str, Any]]) -> list[RecordedCase]:
    """Return the cases of successful advice records, from the newest record of each."""
    return list({row["case"]: _case(row) for row in rows if row["status"] == "ok"}.values())


def _case(row: Mapping[str, Any]) -> RecordedCase:
    """Return a recorded case with its faithful configurations, in the order in which the advisor would try them."""
    able = [
        configuration
        for configuration in row["cells"]
        if configuration["status"] == "ok" and configuration["seconds"] and configuration["is_faithful"]
    ]
    settings = {name: row[name] for name in ("dataset", "model", "optimizer")}
    named = [{"execution": "step", "storage": "same", **candidate} for candidate in list_candidates(settings)]
    ordered = [configuration for one in named for configuration in able if matches_settings(configuration, one)]
    least = min(configuration["seconds"] for configuration in able)
    each = row["seconds_sweep"] / max(row["trials_sweep"], 1)
    return RecordedCase(row["case"], tuple(ordered), least, each, row["seconds_sweep"])


def play_race(
    case: RecordedCase, way: BudgetStrategy, seconds: float, rng: np.random.Generator, noise: float = DEVIATION
) -> RaceResult:
    """Simulate one race within `seconds` from recorded times; return its regret and time.

    `noise` is the standard deviation of the log ratio of two trials; `rng` draws it. `case` has the recorded times,
    `way` is the strategy by which the budget is spent.
    """
    named = {
        str(place): configuration
        for place, configuration in enumerate(case.configurations[: _initial_candidates(case, way, seconds)])
    }
    dense = frozenset(key for key, configuration in named.items() if configuration["format"] == "dense")
    course = ComparisonState(Comparison({key: Configuration() for key in named}, dense), way.rounds, way.is_race)
    spent = SECONDS_START
    for key, number in _trials(course):
        if way.is_race and number >= LEAST_OF_RACE and spent + case.seconds_trial > seconds:
            break
        spent += case.seconds_trial
        sampled = named[key]["seconds"] * math.exp(noise / math.sqrt(2) * rng.standard_normal())
        course.add({"key": key, "status": "ok", "run": "", "round": course.measured, "seconds_step": sampled})
        if not way.is_race and spent > seconds and number + 1 >= len(named):
            break
    chosen = named[str(course.posterior.best())]
    best = min(case.configurations, key=lambda configuration: configuration["seconds"])
    is_right = (chosen["format"] == "dense") == (best["format"] == "dense")
    return RaceResult(chosen["seconds"] / case.least, is_right, spent)


def _initial_candidates(case: RecordedCase, way: BudgetStrategy, seconds: float) -> int:
    """Return the number of configurations that a race begins with: all, or what the budget affords plus one.

    Plus one, since two are dense: on all threads and on one. `way` is the strategy, `seconds` the budget.
    """
    return affordable_candidates(seconds, case.seconds_trial) + 1 if way.is_cut else len(case.configurations)


def _trials(course: ComparisonState) -> Iterator[tuple[str, int]]:
    """Yield (configuration key, trial number from 0) as long as the race has a trial due."""
    number = 0
    while course.due():
        for task in course.round():
            yield task.key, number
            number += 1


def replay_races(
    cases: Sequence[RecordedCase], draws: int = 50, seed: int = 0, share: float = SHARE, noise: float = DEVIATION
) -> dict[tuple[str, str], list[RaceResult]]:
    """Return {(case, strategy): results of `draws` simulated races}, each within `share` of the sweep's time.

    `noise` is the standard deviation of the log ratio of two trials; `seed` makes the draws reproducible.
    """
    return {
        (case.case, name): [play_race(case, way, share * case.seconds_sweep, rng, noise) for _ in range(draws)]
        for case in cases
        for name, way in WAYS.items()
        for rng in [np.random.default_rng([seed, *case.case.encode()])]
    }


# The cases that advice is judged by: they stand in `advice_suite.toml`.


VARIED = ("format", "engine", "gradient", "update", "execution")
"""Settings of which a full sweep has all values that go together."""
STORAGES = ("same", "csr")
"""How dense data is stored: smaller types hold few data sets exactly, and none of the synthetic ones."""


@dataclass(frozen=True)
class Case:
    """A data set, a model and how it is trained: settings of a configuration."""

    name: str
    settings: Mapping[str, Any]


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
QUICK = tuple(_TABLE["quick"])
CASES = tuple(Case(name, _TABLE["data"][one.pop("data")] | one) for name, one in _TABLE["cases"].items())


def choose_cases(names: Iterable[str] = (), is_quick: bool = False) -> list[Case]:
    """Return the cases with these names, or without names all or the quick ones; SpecError for an unknown name."""
    by_name = {case.name: case for case in CASES}
    wanted = list(names) or (QUICK if is_quick else by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        raise SpecError(unknown_name("case", unknown[0], by_name))
    return [by_name[name] for name in wanted]


def every_candidate(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all valid combinations of candidate settings on the CPU for these case settings.

    Exact updates are left out if a lazy update trains the same model.
    """
    values = {**{name: allowed_values(BY_NAME[name]) for name in VARIED}, "storage": STORAGES}
    named = [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
    is_same = is_lazy_exact(Configuration(**settings))
    able = [one for one in named if one["execution"] != "cuda_graph" and not (is_same and one["update"] == "exact")]
    return [one for one in able if not _is_no_configuration({**settings, **one})]


def _is_no_configuration(settings: Mapping[str, Any]) -> str | bool:
    """Return a truthy value (the reason, or True) if a configuration is invalid or a redundant dense one."""
    is_baseline = settings["engine"] == "dense" and settings["gradient"] == "dense"
    return grid.why_dropped(Configuration(**settings)) or (settings["format"] == "dense" and not is_baseline)


Follow = Callable[[str, Path, float, float], None]
SWEEP = "sweep"
"""The run folder of the full sweep of a case."""
ADVISING = ("workbench.advising.advising", "workbench.sweeps.runner")
"""Modules that advise: a case is measured anew where their code has changed."""
ROUNDS = 4
"""Rounds of a full sweep at most."""
MOST_DISTURBED = 0.25
"""Largest share of configurations that may be disturbed in all rounds of a full sweep, as these may be the fastest."""


def run(cases: Iterable[Case], results: Path, runs: Path, follow: Follow = wait_silently) -> bool:
    """Measure the cases without a record in `results`, or with failed ones only; False if the user stopped it.

    Trials are in run folders below `runs`. A case whose sweep or advice fails gets a record with the reason, and is
    tried again by the next start. `follow` shows the progress.
    """
    found = Results(tables.ADVICE, results)
    found.open()
    for case in remaining_cases(cases, results):
        by_key, key = _keys(case)
        try:
            row = _measure_case(case, by_key, place_of(case, runs), follow)
        except run_folder.RunError as error:
            row = {"status": "failed", "reason": str(error)}
        if row is None:
            return False
        found.append(**_case_columns(case, key) | row)
    return True


def place_of(case: Case, runs: Path) -> Path:
    """Return the folder below `runs` that holds the run folders of a case."""
    return runs / case.name.replace(" ", "-")


def remaining_cases(cases: Iterable[Case], results: Path) -> list[Case]:
    """Return the cases that have no record in `results` of the present code, or only failed ones."""
    file = results / tables.ADVICE.file
    done = tables.ADVICE.done_keys(file, again=("failed",)) if store.is_stored(file) else set()
    return [case for case in cases if _keys(case)[1] not in done]


def seconds_of(case: Case) -> float:
    """Return the estimated time (s) of a case: its full sweep plus the share for advice."""
    spec = full_sweep(case)
    return (
        (1 + SHARE) * len(grid.expand_grid(spec).configurations) * spec.measure.rounds * estimate.seconds_a_trial(spec)
    )


def _keys(case: Case) -> tuple[dict[str, Configuration], str]:
    """Return ({key: configuration} of the full sweep, key of the case: a hash of these and the advisor's code)."""
    by_key = {
        grid.configuration_key(configuration): configuration
        for configuration in grid.expand_grid(full_sweep(case)).configurations
    }
    code = closure.installed_code().digest(ADVISING)
    return by_key, hashlib.sha256(" ".join([code, *by_key]).encode()).hexdigest()[:20]


def _measure_case(
    case: Case, by_key: Mapping[str, Configuration], place: Path, follow: Follow
) -> dict[str, Any] | None:
    """Return the record columns of a case after its sweep and its advice; None if the user stopped it.

    `by_key` are the sweep's configurations, `place` is the folder of both runs, `follow` reports progress.
    """
    seconds = _sweep_case(case, full_sweep(case), place / SWEEP, follow)
    answer = _advise_case(case, seconds, place / "advice", follow) if seconds else None
    if answer is None or answer.is_stopped:
        return None
    return columns_of(by_key, run_folder.read_current_records(place / SWEEP), answer, seconds)


def full_sweep(case: Case) -> Spec:
    """Return the spec of a sweep over every configuration of a case, in up to four rounds."""
    return validate_spec(
        {
            "name": case.name.replace(" ", "-"),
            "axes": dict(case.settings),
            "candidates": every_candidate(case.settings),
            "measure": {"rounds": ROUNDS, "roofs": False},
            "limits": {"seconds_cell": 30.0},
        }
    )


def _sweep_case(case: Case, spec: Spec, folder: Path, follow: Follow) -> float:
    """Run the full sweep in a folder, or resume it; return the seconds of its trials, 0.0 if it was stopped.

    Raises RunError if the sweep failed. `follow(title, folder, spent, budget)` blocks until the run has ended and
    reports its progress.
    """
    run_folder.start_run(spec, folder)
    follow(f"{case.name}: all configurations", folder, 0.0, 0.0)
    state = run_folder.read_progress(folder)
    if state.state == "failed":
        raise run_folder.RunError(f"The sweep in {folder} failed: {state.message}")
    if state.state == "stopped":
        return 0.0
    fresh = state.done - state.reused
    return state.seconds * state.done / fresh if fresh else _seconds_of_trials(folder)


def _seconds_of_trials(folder: Path) -> float:
    """Return the seconds of all trials of a finished sweep, overhead plus samples."""
    rows = run_folder.read_current_records(folder)
    return sum((row["seconds_overhead"] or 0.0) + sum(row["samples"] or ()) for row in rows)


def _advise_case(case: Case, seconds_sweep: float, folder: Path, follow: Follow) -> Answer:
    """Return the advice on a case, started anew in an emptied folder since its own time is judged.

    Its budget is a share of `seconds_sweep`, with a minimum; `follow` reports progress.
    """
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"batch_rows": Configuration().batch_rows, "device": "cpu", **case.settings}
    follow_case: Follow = lambda _, run, spent, budget: follow(f"{case.name}: advice", run, spent, budget)  # noqa: E731
    return advise(settings, max(SHARE * seconds_sweep, SECONDS_LEAST), folder=folder, follow=follow_case)


def columns_of(
    by_key: Mapping[str, Configuration], rows: list[dict[str, Any]], answer: Answer, seconds_sweep: float
) -> dict[str, Any]:
    """Return the record columns of a case from its sweep's records and the advice.

    `by_key` are the sweep's configurations; `seconds_sweep` is the time of its trials.
    """
    pooled = configurations.records(configurations.pool_rounds(store.frame(rows)))
    problem = make_problem(next(iter(by_key.values())))
    sizes = (*problem.x.shape, problem.x.nnz, problem.x.dtype, "int32")
    known = answer.recommendation.settings
    judged = [_configuration(row, by_key[row["key"]]) for row in pooled]
    reason = why_not_judged(judged) or ("" if known else answer.text.headline)
    return {
        "status": "failed" if reason else "ok",
        "reason": reason,
        "rows": problem.x.shape[0],
        "features": problem.x.shape[1],
        "width": problem.width,
        "density": problem.x.nnz / max(problem.x.shape[0] * problem.x.shape[1], 1),
        "bytes_csr": formats.predicted_bytes("csr", *sizes),
        "bytes_dense": formats.predicted_bytes("dense", *sizes),
        "cells": judged,
        "recommended": {name: known[name] for name in LINE} if known else {},
        "verdict": answer.recommendation.verdict,
        "seconds_sweep": seconds_sweep,
        "seconds_advice": answer.seconds,
        "trials_sweep": len(rows),
        "trials_advice": answer.trials,
    }


def why_not_judged(judged: Iterable[Mapping[str, Any]]) -> str:
    """Return why a full sweep cannot tell which configuration is fastest; "" if it can.

    More than a quarter of the configurations were disturbed, or none has a time.
    """
    able = [configuration for configuration in judged if configuration["is_faithful"]]
    busy = sum(configuration["status"] == "disturbed" for configuration in able)
    if busy > MOST_DISTURBED * len(able):
        among = f"{busy} of {len(able)} configurations of the full sweep"
        return f"Other programs were running during {among}; start again to measure these anew."
    return (
        ""
        if any(configuration["status"] == "ok" for configuration in able)
        else "No configuration of the full sweep has a time."
    )


def _case_columns(case: Case, key: str) -> dict[str, Any]:
    """Return the record columns that describe a case, whatever its result."""
    return {
        "key": key,
        "case": case.name,
        "data": _data_of(case),
        "dataset": case.settings["dataset"],
        "model": case.settings["model"],
        "optimizer": case.settings["optimizer"],
        "batch_rows": case.settings.get("batch_rows", Configuration().batch_rows),
    }


def _data_of(case: Case) -> str:
    """Return the settings of a case's data as text, such as "dataset=uniform rows=8192 density=0.03"."""
    named = ("dataset", "rows", "features", "density")
    return " ".join(f"{name}={case.settings[name]}" for name in named if name in case.settings)


def _configuration(row: Mapping[str, Any], configuration: Configuration) -> dict[str, Any]:
    """Return settings, status, times and memory of one configuration of the sweep, as the record stores them.

    `row` is its pooled record, `configuration` its settings.
    """
    known = {name: row[name] for name in (*LINE, "status")}
    numbers = {"seconds": row["seconds_step"], "bytes": row["bytes_peak"], "rounds": row["rounds"]}
    return known | numbers | {"is_faithful": is_faithful(configuration), "key": row["key"]}
