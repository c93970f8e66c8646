"""The part in which training on all threads meets training on one, on a quiet machine and beside a busy core.

Beside a program that holds one of the cores, threads that wait for each other would take many times as long as one.
Calls that yield to it (`kernels.choosing`) take at most `MOST` times as long. Trials count whatever ran beside them.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.threads import NAMES
from workbench.bench.self_trial.trials import CONTENDERS, compared, counted, key_of, split_key
from workbench.measure import loads
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, ratio_of
from workbench.sweeps import grid
from workbench.sweeps.spec import Cell

FILE = "self-busy.jsonl"
CONDITIONS = (loads.QUIET, "busy core")
MOST = 1.3
"""Time on all threads beside a busy core, in that on one thread beside it, at most."""

LOGISTIC = {"dataset": "uniform", "rows": 20_000, "features": 1024, "density": 0.15, "model": "logistic"}
SOFTMAX = {"dataset": "uniform", "rows": 8192, "features": 2048, "density": 0.05, "model": "softmax", "width": 16}
BATCHES = {"batch_rows": 256, "optimizer": "sgd"}

Record = Mapping[str, Any]


def cells() -> dict[str, Cell]:
    """Return the configurations to measure, by name: an epoch on either side, and steps one by one on either side."""
    csr, dense = CONTENDERS["csr"], CONTENDERS["dense"]
    return {
        "csr epoch, logistic": Cell(**LOGISTIC, **BATCHES, **csr, launch="epoch"),
        "dense epoch, logistic": Cell(**LOGISTIC, **BATCHES, **dense, launch="epoch"),
        "csr steps, softmax": Cell(**SOFTMAX, **BATCHES, **csr),
        "dense steps, softmax": Cell(**SOFTMAX, **BATCHES, **dense),
    }


def busy(folder: Path, budget: trials.Budget, most: int = INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure up to `most` rounds beside each load, at least those of a first look; outcomes of these rounds."""
    rows: dict[str, list[Record]] = {load: [] for load in CONDITIONS}
    for number in range(most):
        if number >= INTERIM_ANALYSES[0] and budget.is_over:
            break
        for load in CONDITIONS:
            with loads.run_load(load), trials.Trials(folder / FILE, trials.experiment("busy", load)) as measured:
                for cell in cells().values():
                    for name in counterbalanced_order(NAMES, number):
                        budget.tell(f"all threads against one, {load}, round {number + 1}")
                        on_threads = cell.model_copy(update={"serial": name == NAMES[1]})
                        task = trials.task_of(on_threads, name, number)
                        rows[load].append({**measured.measure_once(task), "key": key_of(cell, name), "run": "one"})
    return [found for load in CONDITIONS for found in outcomes(load, rows[load])]


def outcomes(load: str, rows: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Return the ratio all threads / one thread of each configuration, and the count with significantly more than
    `MOST`."""
    names, slow, known = {grid.configuration_key(cell): name for name, cell in cells().items()}, 0, 0
    for key in dict.fromkeys(split_key(row["key"])[0] for row in rows):
        ratio = ratio_of(_seconds(rows, key, NAMES[0]), _seconds(rows, key, NAMES[1]))
        known += ratio is not None
        slow += ratio is not None and ratio.low > MOST
        yield compared("busy", f"{names[key]}: all threads / one thread", load, ratio)
    yield counted("busy", f"all threads take {MOST:g} times as long as one", load, slow, known, (None, 0.0))


def _seconds(rows: Sequence[Record], key: str, name: str) -> dict[tuple[str, int], float]:
    """Return the step seconds of one candidate's successful trials by (run, round)."""
    own = (row for row in rows if row["key"] == f"{key} {name}" and row["status"] == "ok")
    return {(row["run"], row["round"]): row["seconds_step"] for row in own}
