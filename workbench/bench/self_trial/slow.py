"""The part in which one kernel is made slower: the cells that use it must move, by as much, and no others.

Inside the child's process the kernel's call is followed by a wait as long as the call took, so what it computes stays
as it is. Slowed and plain trials of a cell are contenders of the same rounds.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import kernels
from workbench.bench.self_trial import trials
from workbench.bench.self_trial.groups import cell_of, contender_of, split_key
from workbench.bench.self_trial.outcomes import compared, counted
from workbench.measure.rounds import LOOKS, Ratio, ratio_of, turned
from workbench.sweep import grid, trial
from workbench.sweep.spec import Cell

FILE = "self-slow.jsonl"
KERNEL = "adagrad_fused"
USERS = ("csr",)
"""Contenders whose step calls it."""
PHASE = "seconds_update"
"""Where its time is."""
WORK = f"{__name__}:slowed"
NAMES = ("plain", "slowed")


def slowed(request: dict) -> Iterator[dict]:
    """The answer of a trial's process in which the kernel takes twice as long."""
    kernel = kernels.get(KERNEL)
    for twin in ("cpu", "trusted"):
        object.__setattr__(kernel, twin, twice_as_long(getattr(kernel, twin)))
    yield trial.run_trial(request)


def twice_as_long(call: Callable, clock: Callable[[], float] = time.perf_counter) -> Callable:
    """The call, which returns only when as much time again is over."""

    def waits(*args: Any, **options: Any) -> Any:
        start = clock()
        result = call(*args, **options)
        end = 2 * clock() - start
        while clock() < end:
            pass
        return result

    return waits


def cells() -> dict[str, Cell]:
    """What is measured, by what it is called."""
    unfused = {"gradient": "row_sparse"}
    found = {}
    for batch_rows in (64, 512):
        found[f"csr fused, {batch_rows} rows a batch"] = cell_of("csr", batch_rows, 0.03)
        found[f"csr row_sparse, {batch_rows} rows a batch"] = cell_of("csr", batch_rows, 0.03).model_copy(
            update=unfused
        )
        found[f"vendor, {batch_rows} rows a batch"] = cell_of("vendor", batch_rows, 0.03)
        found[f"dense, {batch_rows} rows a batch"] = cell_of("dense", batch_rows, 0.03)
    return found


def slow(folder: Path, budget: trials.Budget, most: int = LOOKS[-1]) -> list[dict[str, Any]]:
    """Measure up to `most` rounds, at least those of a first look; outcomes of these rounds."""
    name, rows = trials.experiment("slow"), []
    with (
        trials.Trials(folder / FILE, name) as plain,
        trials.Trials(folder / FILE, name, work=WORK) as changed,
    ):
        by_name = dict(zip(NAMES, (plain, changed), strict=True))
        changed.supervisor.folder = plain.supervisor.folder  # one run: their rounds are compared
        for number in range(most):
            if number >= LOOKS[0] and budget.is_over:
                break
            for cell in cells().values():
                for way in turned(NAMES, number):
                    budget.tell(f"{KERNEL} twice as slow, round {number + 1}")
                    rows.append(by_name[way].measure(trials.task_of(cell, way, number)))
    return list(outcomes(rows))


def outcomes(rows: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The ratio slowed / plain of each cell beside what its phases let expect, and how many are right."""
    right = wrong = 0
    names = {grid.key(cell): name for name, cell in cells().items()}
    by_cell: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_cell.setdefault(split_key(row["key"])[0], []).append(row)
    for key, own in by_cell.items():
        name = names.get(key, key)
        ratio, expected = _ratio(own), _expected(own)
        is_right = ratio is not None and ratio.low <= expected <= ratio.high and (expected == 1 or ratio.low > 1)
        right, wrong = right + is_right, wrong + (not is_right)
        yield compared("slow", f"{name}: slowed / plain", "quiet", ratio, truth=expected, met=bool(is_right))
    what = f"{KERNEL} twice as slow moves a cell as far as it should, and no other"
    yield counted("slow", what, "quiet", right, right + wrong, (1.0, None))


def _ratio(rows: list[Mapping[str, Any]]) -> Ratio | None:
    plain, changed = (_seconds(rows, name) for name in NAMES)
    return ratio_of(changed, plain)


def _expected(rows: list[Mapping[str, Any]]) -> float:
    """The ratio that the phases let expect: 1, and for a cell that uses the kernel the kernel's share of the step."""
    if contender_of(rows[0]) not in USERS:
        return 1.0
    plain = [row for row in rows if split_key(row["key"])[1] == NAMES[0] and row["status"] == "ok"]
    return 1.0 + float(np.median([row[PHASE] / row["seconds_step"] for row in plain])) if plain else 1.0


def _seconds(rows: list[Mapping[str, Any]], name: str) -> dict[tuple[str, int], float]:
    own = (row for row in rows if split_key(row["key"])[1] == name and row["status"] == "ok")
    return {(row["run"], row["round"]): row["seconds_step"] for row in own}
