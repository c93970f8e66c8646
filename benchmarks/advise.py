"""`benchmarks advise`: advice judged by what it costs, on cases drawn from a seed, beside fixed rules.

A case is data of a shape and structure, a model, and a load that runs next to the advice. It is swept in full without
the load, then advised on within a share of the time that took. Regret is the time of the recommended configuration over
that of the best of the sweep, of those that train the same model as dense. Rules know nothing of the machine: one side
always, by bytes, or dense from a density on; they train as this project does by default on that side.

The interval of the advice is judged by the sweep's own ratio dense / sparse: how often it holds it, and by its interval
score (Gneiting and Raftery 2007, JASA 102, 359), the width in logarithms plus 40 times what it misses by, so that wide
intervals lose, too.
"""

import itertools
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import loads, tables
from benchmarks.compare import Target, geometric_mean, target
from benchmarks.contest import Record
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section
from workbench import formats, settings, store
from workbench.advising import Answer, advise
from workbench.advising.advising import SECONDS_LEAST, wait_silently
from workbench.advising.candidates import is_faithful, is_lazy_exact
from workbench.analysis import configurations
from workbench.analysis.formatting import format_density, format_number, name_configuration
from workbench.settings import BY_NAME
from workbench.sweeps import grid, run_folder
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration, Spec, allowed_values, validate_spec

VARIED = ("format", "engine", "gradient", "update", "execution")
"""Settings of which a full sweep has all values that go together."""
STORAGES = ("same", "csr")
"""How dense data is stored: smaller types hold few data sets exactly, and none of the synthetic ones."""
LINE = ("format", "storage", "engine", "gradient", "update", "execution", "serial")
STEPS = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "storage": "same"}
SIDES: dict[bool, tuple[Record, ...]] = {
    True: tuple(STEPS | {"execution": execution, "serial": False} for execution in ("epoch", "step")),
    False: tuple(
        {"format": "csr", "engine": "ours", "gradient": gradient, "update": update, "execution": execution}
        for gradient, execution in (("row_sparse", "epoch"), ("fused", "step"))
        for update in ("lazy", "exact")
    ),
}
"""What a rule trains with that takes dense (True) or sparse: the first of these that ran."""
ROUNDS = 4
"""Rounds of a full sweep at most."""
SHARE = 0.2
"""Budget of the advice, of the sweep's time."""
MOST_DISTURBED = 0.25
"""Largest share of configurations that may be disturbed in all rounds of a full sweep, as these may be the fastest."""
MEAN, TAIL = 1.03, 1.10
"""Wanted: mean regret and its 95th percentile at most."""
COVERED, MISS = 0.95, 40.0
"""What intervals claim, and what an interval is charged for missing: 2 / (1 - COVERED)."""
BYTES_DENSE = 2**28
"""X dense at most."""
LOADS = (loads.QUIET, "busy core", "bursts")
MODELS = (("logistic", 1), ("softmax", 4), ("softmax", 16), ("linear", 1), ("linear", 16), ("softmax", 64))
OPTIMIZERS = ("sgd", "adagrad", "adagrad", "adam", "momentum")


@dataclass(frozen=True)
class Case:
    """Data drawn from a seed, a model with its optimizer, and the load that the advice is given under."""

    name: str
    dataset: str
    rows: int
    features: int
    density: float
    model: str
    width: int
    optimizer: str
    batch_rows: int
    load: str
    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of a configuration that the data and the model have."""
        names = ("dataset", "rows", "features", "density", "model", "width", "optimizer", "batch_rows", "seed")
        return {name: getattr(self, name) for name in names}

    def columns(self) -> Record:
        """Return the columns that say what was drawn."""
        return {name: value for name, value in self.settings.items() if name != "density"} | {"load": self.load}


def draw_cases(count: int, seed: int = 0) -> list[Case]:
    """Return cases whose shapes, structures, models and loads are drawn from a seed; the first ones stay if more are.

    Densities and sizes are uniform in their logarithms; rows have an entry at least, and X dense 256 MB at most.
    """
    cases = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        features = int(2 ** rng.uniform(6, 18))
        rows = int(2 ** rng.uniform(11, 14.5))
        rows = max(min(rows, BYTES_DENSE // (4 * features)), 1024)
        density = float(np.exp(rng.uniform(np.log(max(1e-4, 2 / features)), 0)))
        density = min(density, 2e7 / (rows * features))
        model, width = MODELS[rng.integers(len(MODELS))]
        dataset = ("uniform", "power_law", "mixed")[rng.integers(3)]
        optimizer, load = OPTIMIZERS[rng.integers(len(OPTIMIZERS))], LOADS[rng.integers(len(LOADS))]
        batch_rows = int(2 ** rng.integers(5, 11))
        name = f"{seed}-{number}: {dataset}, {rows:,} x {features:,}, {format_density(density, 2)}, {model} {width}"
        drawn = dataset, rows, features, float(f"{density:.3g}"), model, width, optimizer, batch_rows, load, seed
        cases.append(Case(name, *drawn))
    return cases


def every_candidate(known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all valid combinations of candidate settings on the CPU for these case settings.

    Exact updates are left out if a lazy update trains the same model.
    """
    values = {**{name: allowed_values(BY_NAME[name]) for name in VARIED}, "storage": STORAGES}
    named = [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
    is_same = is_lazy_exact(Configuration(**known))
    able = [one for one in named if one["execution"] != "cuda_graph" and not (is_same and one["update"] == "exact")]
    return [one for one in able if _is_configuration({**known, **one})]


def _is_configuration(known: Mapping[str, Any]) -> bool:
    """Return whether a configuration is valid, and no redundant dense one."""
    is_baseline = known["engine"] == "dense" and known["gradient"] == "dense"
    return not grid.why_dropped(Configuration(**known)) and (known["format"] != "dense" or is_baseline)


def full_sweep(case: Case, rounds: int = ROUNDS) -> Spec:
    """Return the spec of a sweep over every configuration of a case, in up to so many rounds."""
    return validate_spec(
        {
            "name": f"advise-{case.seed}",
            "axes": case.settings,
            "candidates": every_candidate(case.settings),
            "measure": {"rounds": rounds, "roofs": False},
            "limits": {"seconds_cell": 30.0},
        }
    )


def measure(run: Run, cases: int = 100, seed: int = 0, rounds: int = ROUNDS) -> Iterator[Record]:
    """Judge `advise` by full sweeps of cases drawn from a seed, next to loads, compared with fixed rules.

    Records and page are in the folder of --results, the trials below it. Exit status: 130 after Ctrl-C.

    Parameters
    ----------
    cases
        Cases to draw; 12 in a quick run. A case takes two to five minutes.
    seed
        Draws the cases and their data; another one gives cases that nobody has seen.
    rounds
        Rounds of a full sweep at most.

    Examples
    --------
    python -m benchmarks advise --quick
    python -m benchmarks advise --cases 20 --seed 7
    """
    every = draw_cases(cases, seed)
    about = lambda case: run.about(case, ["workbench.advising.advising", "workbench.sweeps.runner"], (), rounds)  # noqa: E731
    for case, known in run.new(run.choose(every, every[:12]), about):
        try:
            columns = measured(case, run.folder / "runs" / case.name.partition(":")[0], rounds)
        except run_folder.RunError as error:
            columns = {"status": "failed", "reason": str(error)}
        yield known | {"candidate": "advice", "side": "project"} | columns


def measured(case: Case, folder: Path, rounds: int) -> Record:
    """Return the columns of a case after its sweep, which is resumed, and its advice; KeyboardInterrupt if stopped."""
    spec = full_sweep(case, rounds)
    by_key = {grid.configuration_key(one): one for one in grid.expand_grid(spec).configurations}
    run_folder.start_run(spec, folder / "sweep")
    wait_silently("", folder / "sweep", 0.0, 0.0)
    state = run_folder.read_progress(folder / "sweep")
    if state.state == "failed":
        raise run_folder.RunError(f"The sweep in {folder} failed: {state.message}")
    if state.state == "stopped":
        raise KeyboardInterrupt
    rows = run_folder.read_current_records(folder / "sweep")
    seconds = sum((row["seconds_overhead"] or 0.0) + sum(row["samples"] or ()) for row in rows)
    shutil.rmtree(folder / "advice", ignore_errors=True)
    with loads.run_load(case.load):
        budget = max(SHARE * seconds, SECONDS_LEAST)
        answer = advise({"device": "cpu", **case.settings}, budget, folder=folder / "advice")
    if answer.is_stopped:
        raise KeyboardInterrupt
    return columns_of(by_key, rows, answer, seconds)


def columns_of(by_key: Mapping[str, Configuration], rows: list[Record], answer: Answer, seconds: float) -> Record:
    """Return the columns of a case from its sweep's records, which took `seconds`, and the advice."""
    pooled = configurations.records(configurations.pool_rounds(store.frame(rows)))
    problem = make_problem(next(iter(by_key.values())))
    sizes = (*problem.x.shape, problem.x.nnz, problem.x.dtype, "int32")
    chosen, ratio = answer.recommendation.settings, answer.recommendation.time.ratio
    judged = [_configuration(row, by_key[row["key"]]) for row in pooled]
    reason = why_not_judged(judged) or ("" if chosen else answer.text.headline)
    return {
        "status": "failed" if reason else "ok",
        "reason": reason,
        "density": problem.x.nnz / max(problem.x.shape[0] * problem.x.shape[1], 1),
        "bytes_csr": formats.predicted_bytes("csr", *sizes),
        "bytes_dense": formats.predicted_bytes("dense", *sizes),
        "cells": judged,
        "recommended": {name: chosen[name] for name in LINE} if chosen else {},
        "verdict": answer.recommendation.verdict,
        "ratio": ratio.value if ratio else None,
        "ratio_low": ratio.low if ratio else None,
        "ratio_high": ratio.high if ratio else None,
        "seconds_sweep": seconds,
        "seconds_advice": answer.seconds,
        "trials_sweep": len(rows),
        "trials_advice": answer.trials,
    }


def _configuration(row: Mapping[str, Any], configuration: Configuration) -> Record:
    """Return settings, status, time and memory of a configuration of the sweep, `row` being its pooled record."""
    known = {name: row[name] for name in (*LINE, "status", "rounds", "key")}
    numbers = {"seconds": row["seconds_step"], "bytes": row["bytes_peak"]}
    return known | numbers | {"is_faithful": is_faithful(configuration)}


def why_not_judged(judged: Sequence[Mapping[str, Any]]) -> str:
    """Return why a full sweep cannot tell which configuration is fastest; "" if it can.

    More than a quarter of the configurations were disturbed, or none has a time.
    """
    able = [one for one in judged if one["is_faithful"]]
    busy = sum(one["status"] == "disturbed" for one in able)
    if busy > MOST_DISTURBED * len(able):
        among = f"{busy} of {len(able)} configurations of the full sweep"
        return f"Other programs were running during {among}; start again to measure these anew."
    return "" if any(one["status"] == "ok" for one in able) else "No configuration of the full sweep has a time."


# Judging: regret of the advice and of rules, coverage and score of the intervals.


def newest_good(records: Sequence[Record]) -> list[Record]:
    """Return the newest record of each case with status "ok" and a time."""
    return list({one["case"]: one for one in records if one["status"] == "ok" and able_of(one)}.values())


def able_of(record: Record) -> list[Record]:
    """Return the configurations of a case with a time that train the same model as dense."""
    return [one for one in record["cells"] if one["status"] == "ok" and one["seconds"] and one["is_faithful"]]


def matches(configuration: Record, chosen: Record) -> bool:
    """Return whether a configuration equals `chosen` in the settings of LINE that `chosen` has."""
    told = settings.value_or_default
    return all(told(name, configuration.get(name)) == told(name, chosen[name]) for name in LINE if name in chosen)


def regret_of(record: Record, chosen: Record | None) -> float | None:
    """Return the seconds of the chosen configuration over the least; None if it did not run."""
    able = able_of(record)
    seconds = next((one["seconds"] for one in able if chosen and matches(one, chosen)), None)
    return seconds / min(one["seconds"] for one in able) if seconds else None


def chosen_by(record: Record, is_dense: bool) -> Record | None:
    """Return what a rule trains with on a side: the first of `SIDES` that ran; None if none did."""
    able = able_of(record)
    return next((one for one in SIDES[is_dense] if any(matches(each, one) for each in able)), None)


RULES = {
    "always sparse": lambda record: False,
    "always dense": lambda record: True,
    "by bytes": lambda record: record["bytes_dense"] <= record["bytes_csr"],
    "dense from 5 %": lambda record: record["density"] >= 0.05,
    "dense from 12.5 %": lambda record: record["density"] >= 0.125,
    "dense from 50 %": lambda record: record["density"] >= 0.5,
}
"""Rules by name: whether a case is trained dense."""
ADVICE = "advice"


def regrets(found: Sequence[Record]) -> dict[str, dict[str, float | None]]:
    """Return {rule: {case: regret}}, the advice first; None where the choice of a rule did not run.

    Advice that recommends what did not run is charged the slowest configuration.
    """
    slowest = {one["case"]: max(each["seconds"] for each in able_of(one)) for one in found}
    best = {one["case"]: min(each["seconds"] for each in able_of(one)) for one in found}
    own = {one["case"]: regret_of(one, one["recommended"]) or slowest[one["case"]] / best[one["case"]] for one in found}
    rules = {
        name: {one["case"]: regret_of(one, chosen_by(one, rule(one))) for one in found} for name, rule in RULES.items()
    }
    return {ADVICE: own, **rules}


def true_ratio(record: Record) -> float | None:
    """Return the sweep's fastest dense over its fastest sparse configuration; None if a side did not run."""
    dense, sparse = (
        [one["seconds"] for one in able_of(record) if (one["format"] == "dense") == side] for side in (True, False)
    )
    return min(dense) / min(sparse) if dense and sparse else None


def is_right_side(record: Record) -> bool:
    """Return whether the recommended configuration is of the side, dense or sparse, of the fastest one."""
    best = min(able_of(record), key=lambda one: one["seconds"])
    return (record["recommended"]["format"] == "dense") == (best["format"] == "dense")


def interval_score(low: float, high: float, truth: float) -> float:
    """Return the score of a 95 % interval of a ratio, in logarithms: its width, and 40 times what it misses by.

    >>> round(interval_score(0.5, 2.0, 1.0), 3), round(interval_score(2.0, 4.0, 1.0), 2)
    (1.386, 28.42)
    """
    bottom, top, value = math.log(low), math.log(high), math.log(truth)
    return top - bottom + MISS * (max(bottom - value, 0.0) + max(value - top, 0.0))


def intervals(found: Sequence[Record]) -> dict[str, tuple[bool, float, float]]:
    """Return {case: (whether the interval holds the sweep's ratio, upper over lower bound, score)}."""
    each = {}
    for one in found:
        low, high, truth = one["ratio_low"], one["ratio_high"], true_ratio(one)
        if low and high and truth and math.isfinite(high):
            each[one["case"]] = low <= truth <= high, high / low, interval_score(low, high, truth)
    return each


def summary_of(values: Mapping[str, float | None]) -> tuple[float, float, float] | None:
    """Return (mean, 95th percentile, largest) of the known regrets; None without any."""
    known = [value for value in values.values() if value is not None]
    return (float(np.mean(known)), float(np.quantile(known, 0.95)), max(known)) if known else None


def list_targets(found: Sequence[Record]) -> list[Target]:
    """Return the targets: mean and 95th percentile of the regret, below every rule; coverage of the intervals."""
    every = regrets(found)
    each = {name: summary_of(values) for name, values in every.items()}
    own, held = each[ADVICE], intervals(found)
    rules = {name: one[0] for name, one in each.items() if one and name != ADVICE}
    least = min(rules, key=lambda name: rules[name], default="")
    share = {one["case"]: one["seconds_advice"] / one["seconds_sweep"] for one in found}
    covered = {"all cases": sum(one[0] for one in held.values()) / len(held)} if held else {}
    percent = lambda value: f"{100 * value:.0f} %"  # noqa: E731
    targets = [
        target("regret of advice, mean", {"all cases": own[0]} if own else {}, most=MEAN),
        target("regret of advice, 95th percentile", {"all cases": own[1]} if own else {}, most=TAIL),
        target("95 % intervals that hold the sweep's ratio", covered, least=COVERED, tell=percent),
        target("time of the advice, of the sweep's", share, most=SHARE + 0.05, tell=percent),
    ]
    right = sum(is_right_side(one) for one in found)
    targets.append(Target("cases advised the side of the best", "", f"{right} of {len(found)}", None))
    if own and least:
        said = f"{format_number(own[0])}, {least} {format_number(rules[least])}"
        targets.insert(2, Target("regret of advice, mean, below every rule's", "", said, own[0] < rules[least]))
    return targets


def page(records: Sequence[Record]) -> Page:
    """Return the page: rules beside the advice, intervals, and every case."""
    found = newest_good(records)
    every, held = regrets(found), intervals(found)
    rules = []
    for name, values in every.items():
        numbers = summary_of(values)
        if numbers:
            untried = sum(value is None for value in values.values())
            rules.append([name, *(f"{one:.3f}" for one in numbers), str(untried)])
    scores = []
    for load in dict.fromkeys(one["load"] or loads.QUIET for one in found):
        own = [held[one["case"]] for one in found if (one["load"] or loads.QUIET) == load and one["case"] in held]
        if own:
            widths = geometric_mean(one[1] for one in own) or 0.0
            shares = f"{sum(one[0] for one in own)} of {len(own)}"
            scores.append([load, shares, f"{widths:.2f}", f"{np.mean([one[2] for one in own]):.2f}"])
    lines = []
    for one in found:
        truth = true_ratio(one)
        interval = f"{one['ratio_low']:.2f} to {one['ratio_high']:.2f}" if one["case"] in held else ""
        sides = [f"{truth:.2f}" if truth else "one side did not run", interval, one["verdict"]]
        chosen = name_configuration(one["recommended"])
        lines.append([one["case"], one["load"] or "", *sides, chosen, f"{every[ADVICE][one['case']]:.3f}"])
    newest = {one["case"]: one for one in records}
    failed = [[name, one["reason"]] for name, one in newest.items() if name not in {good["case"] for good in found}]
    columns = ("case", "load", "dense / sparse", "advised interval", "verdict", "recommended", "regret")
    return Page(
        list_targets(found),
        [
            Section("Advice and rules", ("rule", "mean", "95th percentile", "worst", "did not run"), rules),
            Section("Intervals", ("load", "hold the ratio", "upper / lower", "interval score"), scores),
            Section("Cases", columns, lines),
            Section("Cases without a result", ("case", "why"), failed),
        ],
    )


SUITE = Suite("advise", tables.ADVICE, measure, page)
