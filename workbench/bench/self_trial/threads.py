"""The parts that compare all threads with one thread: kernels on a quiet machine, training also next to a busy core.

More threads must never be slower. Next to a program that holds one of the cores, threads that wait for each other would
take many times as long as one; calls that yield to it (`kernels.choosing`) take at most `MOST` times as long. Trials
next to a busy core count whatever else ran.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import (
    BATCH_ROWS,
    CANDIDATE_SETTINGS,
    DENSITIES,
    configuration_of,
    key_of,
    ratio_row,
    seconds_by_round,
    share_row,
    split_key,
)
from workbench.measure import loads
from workbench.measure.rounds import INTERIM_ANALYSES, Decision, counterbalanced_order, ratio_of
from workbench.sweeps import grid
from workbench.sweeps.schedule import Comparison, ComparisonState, Schedule
from workbench.sweeps.spec import Configuration

FILE = "self-threads.jsonl"
NAMES = ("all threads", "one thread")
WIDTHS = (1, 16)
GRADIENTS = {"fused": {}, "dense gradient": {"gradient": "dense", "update": "standard"}}


def configurations() -> dict[str, Configuration]:
    """Return {name: configuration} of what is measured: csr with two gradients at several sizes."""
    return {
        f"csr, {name}, {rows} rows a batch, density {density:g}, width {width}": configuration_of(
            "csr", rows, density, width=width, model="linear"
        ).model_copy(update=line)
        for name, line in GRADIENTS.items()
        for rows in BATCH_ROWS
        for density in DENSITIES
        for width in WIDTHS
    }


def threads(folder: Path, budget: trials.Budget, most: int = 6) -> list[dict[str, Any]]:
    """Compare all threads with one in up to `most` rounds, until the budget is over; return outcome records."""
    courses = {
        name: ComparisonState(comparison_of(configuration), most) for name, configuration in configurations().items()
    }
    with trials.Trials(folder / FILE, trials.experiment("threads")) as measured:
        schedule = Schedule(list(courses.values()))
        for tasks in schedule.rounds():
            if budget.is_over:
                break
            for task in tasks:
                budget.tell("all threads against one")
                schedule.add(measured.measure(task))
    return list(outcomes({name: course.decision() for name, course in courses.items()}))


def comparison_of(configuration: Configuration) -> Comparison:
    """Return the comparison of a configuration on all threads (as sparse) with itself on one (the baseline)."""
    serial = configuration.model_copy(update={"serial": True})
    keys = {key_of(configuration, NAMES[0]): configuration, key_of(serial, NAMES[1]): serial}
    return Comparison(keys, frozenset([key_of(serial, NAMES[1])]))


def outcomes(found: Mapping[str, Decision]) -> Iterator[dict[str, Any]]:
    """Yield an outcome record with the ratio one thread / all per configuration, then in how many one thread wins.

    `found` is {configuration: decision}.
    """
    for name, decision in found.items():
        yield ratio_row("threads", f"{name}: one thread / all", "quiet", decision.ratio)
    lost = sum(decision.verdict == "dense" for decision in found.values())  # the baseline is one thread
    yield share_row("threads", "all threads lose to one", "quiet", lost, len(found), (None, 0.0))


BUSY_FILE = "self-busy.jsonl"
CONDITIONS = (loads.QUIET, "busy core")
MOST = 1.3
"""Most time on all threads, as a multiple of that on one thread, next to a busy core."""

LOGISTIC = {"dataset": "uniform", "rows": 20_000, "features": 1024, "density": 0.15, "model": "logistic"}
SOFTMAX = {"dataset": "uniform", "rows": 8192, "features": 2048, "density": 0.05, "model": "softmax", "width": 16}
BATCHES = {"batch_rows": 256, "optimizer": "sgd"}

Record = Mapping[str, Any]


def busy_configurations() -> dict[str, Configuration]:
    """Return {name: configuration} of what is measured: epochs in one call and steps, csr and dense."""
    csr, dense = CANDIDATE_SETTINGS["csr"], CANDIDATE_SETTINGS["dense"]
    return {
        "csr epoch, logistic": Configuration(**LOGISTIC, **BATCHES, **csr, launch="epoch"),
        "dense epoch, logistic": Configuration(**LOGISTIC, **BATCHES, **dense, launch="epoch"),
        "csr steps, softmax": Configuration(**SOFTMAX, **BATCHES, **csr),
        "dense steps, softmax": Configuration(**SOFTMAX, **BATCHES, **dense),
    }


def busy(folder: Path, budget: trials.Budget, most: int = INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Compare all threads with one, quiet and next to a busy core, in up to `most` rounds, at least four.

    Records are appended to a file in `folder`; returns outcome records.
    """
    rows: dict[str, list[Record]] = {load: [] for load in CONDITIONS}
    for number in budget.rounds(most):
        for load in CONDITIONS:
            with loads.run_load(load), trials.Trials(folder / BUSY_FILE, trials.experiment("busy", load)) as measured:
                for configuration in busy_configurations().values():
                    for name in counterbalanced_order(NAMES, number):
                        budget.tell(f"all threads against one, {load}, round {number + 1}")
                        on_threads = configuration.model_copy(update={"serial": name == NAMES[1]})
                        task = trials.task_of(on_threads, name, number)
                        rows[load].append(
                            {**measured.measure_once(task), "key": key_of(configuration, name), "run": "one"}
                        )
    return [found for load in CONDITIONS for found in busy_outcomes(load, rows[load])]


def busy_outcomes(load: str, rows: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield the ratio all threads / one thread per configuration, then the count significantly above 1.3.

    `rows` are the records measured under `load`.
    """
    names, slow, known = (
        {grid.configuration_key(configuration): name for name, configuration in busy_configurations().items()},
        0,
        0,
    )
    for key in dict.fromkeys(split_key(row["key"])[0] for row in rows):
        ratio = ratio_of(_seconds(rows, key, NAMES[0]), _seconds(rows, key, NAMES[1]))
        known += ratio is not None
        slow += ratio is not None and ratio.low > MOST
        yield ratio_row("busy", f"{names[key]}: all threads / one thread", load, ratio)
    yield share_row("busy", f"all threads take {MOST:g} times as long as one", load, slow, known, (None, 0.0))


def _seconds(rows: Sequence[Record], key: str, name: str) -> dict[tuple[str, int], float]:
    """Return {(run, round): step seconds} of the successful trials of a configuration under one name."""
    return seconds_by_round(row for row in rows if row["key"] == f"{key} {name}")
