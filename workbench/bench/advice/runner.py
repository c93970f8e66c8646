"""A case is swept in full, then advised on within a share of the time that took; one row says what came of both."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench import formats, store
from workbench.advise import Answer, advise
from workbench.advise.advising import SECONDS_LEAST, wait
from workbench.advise.contenders import is_faithful
from workbench.analysis import cells
from workbench.analysis.advice import LINE, SHARE
from workbench.bench.advice.cases import Case, every_contender
from workbench.measure import closure, machine
from workbench.measure.rounds import LOOKS
from workbench.sweep import estimate, grid, run_folder
from workbench.sweep.problem import make_problem
from workbench.sweep.spec import Cell, Spec, validate

Follow = Callable[[str, Path, float, float], None]
SWEEP = "sweep"
"""The run folder of the full sweep of a case."""
ADVISING = ("workbench.advise.advising", "workbench.sweep.supervising")
"""Modules that advise: a case is measured anew where their code has changed."""
MOST_DISTURBED = 0.25
"""Largest share of cells that may be disturbed in all rounds of a full sweep: the fastest may be among them."""


def run(cases: Iterable[Case], results: Path, runs: Path, follow: Follow = wait) -> bool:
    """Measure the cases that have no good row in `results` yet; False where somebody stopped it.

    Trials are in run folders below `runs`. A case whose sweep or advice fails has a row that says why, and is tried
    again by the next start.
    """
    results.mkdir(parents=True, exist_ok=True)
    for case in left(cases, results):
        by_key, key = _keys(case)
        try:
            row = _measured(case, key, by_key, place_of(case, runs), follow)
        except run_folder.RunError as error:
            row = store.ADVICE.new_row(**_named(case, key), status="failed", reason=str(error))
        if row is None:
            return False
        store.ADVICE.append(results / store.ADVICE.file, row)
    return True


def place_of(case: Case, runs: Path) -> Path:
    """The folder of the run folders of a case: its sweep, its advice."""
    return runs / case.name.replace(" ", "-")


def left(cases: Iterable[Case], results: Path) -> list[Case]:
    """The cases that have no good row in `results` yet."""
    file = results / store.ADVICE.file
    done = store.ADVICE.done_keys(file, again=("failed",)) if file.exists() else set()
    return [case for case in cases if _keys(case)[1] not in done]


def seconds_of(case: Case) -> float:
    """About how long a case takes: all cells in as many rounds as decide, a trial what it takes where no row tells."""
    spec = full_sweep(case)
    return (1 + SHARE) * len(grid.expand(spec).cells) * spec.measure.rounds * estimate.seconds_a_trial(spec)


def _keys(case: Case) -> tuple[dict[str, Cell], str]:
    """The cells of the full sweep by key, and the key of the case: of its cells, and of the code that advises."""
    by_key = {grid.key(cell): cell for cell in grid.expand(full_sweep(case)).cells}
    code = closure.own().digest(ADVISING)
    return by_key, hashlib.sha256(" ".join([code, *by_key]).encode()).hexdigest()[:20]


def _measured(case: Case, key: str, by_key: Mapping[str, Cell], place: Path, follow: Follow) -> dict[str, Any] | None:
    """The row of a case that is swept and advised on; None where somebody stopped it."""
    seconds = _swept(case, full_sweep(case), place / SWEEP, follow)
    answer = _advised(case, seconds, place / "advice", follow) if seconds else None
    if answer is None or answer.is_stopped:
        return None
    return row_of(case, key, by_key, run_folder.rows(place / SWEEP), answer, seconds)


def full_sweep(case: Case) -> Spec:
    """Every configuration of a case, in as many rounds as a decision takes."""
    return validate(
        {
            "name": case.name.replace(" ", "-"),
            "axes": dict(case.settings),
            "contenders": every_contender(case.settings),
            "measure": {"rounds": LOOKS[0], "roofs": False},
            "limits": {"seconds_cell": 30.0},
        }
    )


def _swept(case: Case, spec: Spec, folder: Path, follow: Follow) -> float:
    """Seconds of the trials of the full sweep, also of a start before this one; 0 where it was stopped."""
    run_folder.start(spec, folder)
    follow(f"{case.name}: all cells", folder, 0.0, 0.0)
    state = run_folder.read(folder)
    if state.state == "failed":
        raise run_folder.RunError(f"The sweep in {folder} failed: {state.message}")
    if state.state == "stopped":
        return 0.0
    fresh = state.done - state.reused
    return state.seconds * state.done / fresh if fresh else _seconds_of_trials(folder)


def _seconds_of_trials(folder: Path) -> float:
    """Seconds of the rows of a sweep that had ended before: overhead and samples."""
    rows = run_folder.rows(folder)
    return sum((row["seconds_overhead"] or 0.0) + sum(row["samples"] or ()) for row in rows)


def _advised(case: Case, seconds_sweep: float, folder: Path, follow: Follow) -> Answer:
    """Advice that begins anew, since it is judged by its time, too."""
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"batch_rows": Cell().batch_rows, "device": "cpu", **case.settings}
    told: Follow = lambda _, run, spent, budget: follow(f"{case.name}: advice", run, spent, budget)  # noqa: E731
    return advise(settings, max(SHARE * seconds_sweep, SECONDS_LEAST), folder=folder, follow=told)


def row_of(
    case: Case,
    key: str,
    by_key: Mapping[str, Cell],
    rows: list[dict[str, Any]],
    answer: Answer,
    seconds_sweep: float,
) -> dict[str, Any]:
    """The row of a case."""
    pooled = cells.records(cells.latest(store.frame(rows)))
    problem = make_problem(next(iter(by_key.values())))
    sizes = (*problem.x.shape, problem.x.nnz, problem.x.dtype, "int32")
    known = answer.recommendation.settings
    judged = [_cell(row, by_key[row["key"]]) for row in pooled]
    reason = why_not_judged(judged) or ("" if known else answer.recommendation.headline.text)
    return store.ADVICE.new_row(
        **_named(case, key),
        status="failed" if reason else "ok",
        reason=reason,
        rows=problem.x.shape[0],
        features=problem.x.shape[1],
        width=problem.width,
        density=problem.x.nnz / max(problem.x.shape[0] * problem.x.shape[1], 1),
        bytes_csr=formats.predicted_bytes("csr", *sizes),
        bytes_dense=formats.predicted_bytes("dense", *sizes),
        cells=judged,
        recommended={name: known[name] for name in LINE} if known else {},
        verdict=answer.recommendation.verdict,
        seconds_sweep=seconds_sweep,
        seconds_advice=answer.seconds,
        trials_sweep=len(rows),
        trials_advice=answer.trials,
    )


def why_not_judged(judged: Iterable[Mapping[str, Any]]) -> str:
    """Reason why these cells of a full sweep tell too little of which is the fastest; empty where they tell it."""
    able = [cell for cell in judged if cell["is_faithful"]]
    busy = sum(cell["status"] == "disturbed" for cell in able)
    if busy > MOST_DISTURBED * len(able):
        among = f"{busy} of {len(able)} cells of the full sweep"
        return f"Other programs were at work beside {among}; start again to measure these anew."
    return "" if any(cell["status"] == "ok" for cell in able) else "No cell of the full sweep has a time."


def _named(case: Case, key: str) -> dict[str, Any]:
    """Facts of a case in a row, whatever came of it."""
    return {
        "key": key,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "case": case.name,
        "data": _data_of(case),
        "dataset": case.settings["dataset"],
        "model": case.settings["model"],
        "optimizer": case.settings["optimizer"],
        "batch_rows": case.settings.get("batch_rows", Cell().batch_rows),
        "machine": machine.machine_id(),
        "versions": machine.versions(),
    }


def _data_of(case: Case) -> str:
    """Identity of the data of a case, whatever is trained on it."""
    named = ("dataset", "rows", "features", "density")
    return " ".join(f"{name}={case.settings[name]}" for name in named if name in case.settings)


def _cell(row: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """Facts of a cell of the sweep that judging needs."""
    known = {name: row[name] for name in (*LINE, "status")}
    numbers = {"seconds": row["seconds_step"], "bytes": row["bytes_peak"], "rounds": row["rounds"]}
    return known | numbers | {"is_faithful": is_faithful(cell), "key": row["key"]}
