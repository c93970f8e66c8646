"""The part about the check for other programs: which trials do they slow down, and does the check tell those?

Trials on one thread and on all are measured in turns with nothing beside them and beside each load, each once and
whatever ran beside it. A trial that the check lets pass must not be slower than a quiet one.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import cell_of, compared, split_key
from workbench.measure import loads
from workbench.measure.machine import disturbance_limit
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, ratio_of
from workbench.sweeps.spec import Cell

FILE = "self-threshold.jsonl"
BESIDE = (loads.QUIET, *loads.LOADS)
SLOWED = 1.1
"""The most that a trial which passes may be slower than a quiet one."""


def cells() -> dict[str, Cell]:
    """Return the configurations to measure, by name."""
    return {
        f"{candidate}, {'one thread' if threads else 'all threads'}": cell_of(candidate, 512, 0.03, threads=threads)
        for candidate in ("csr", "dense")
        for threads in (1, None)
    }


def threshold(folder: Path, budget: trials.Budget, most: int = INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure up to `most` rounds, at least those of a first look; outcomes of these rounds."""
    rows, every = [], cells()
    with trials.Trials(folder / FILE, trials.experiment("threshold")) as measured:
        for number in range(most):
            if number >= INTERIM_ANALYSES[0] and budget.is_over:
                break
            for load in counterbalanced_order(BESIDE, number):
                with loads.run_load(load):
                    for cell in counterbalanced_order(list(every.values()), number):
                        budget.tell(f"{load} next to a trial, round {number + 1}")
                        rows.append(measured.measure_once(trials.task_of(cell, load, number)))
    return list(outcomes(rows))


def outcomes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield ratio loaded / quiet of each configuration and load, and how many of its trials the check holds to be
    disturbed."""
    by_cell: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        key, load = split_key(row["key"])
        by_cell.setdefault(key, {}).setdefault(load, []).append(row)
    for by_load in by_cell.values():
        quiet = _seconds(by_load.get(loads.QUIET, []))
        for load in loads.LOADS:
            if own := by_load.get(load, []):
                yield _outcome(own, load, ratio_of(_seconds(own), quiet))


def _outcome(rows: list[Mapping[str, Any]], load: str, ratio: Any) -> dict[str, Any]:
    """Return the record of whether trials beside a load were flagged as disturbed, or not slowed."""
    flagged = sum((row["busy_others"] or 0.0) > disturbance_limit(row["threads"]) for row in rows)
    threads = f"{rows[0]['threads']} thread{'s' if rows[0]['threads'] > 1 else ''}"
    what = f"{rows[0]['format']} on {threads}: beside {load} / quiet"
    is_met = None if ratio is None else 2 * flagged > len(rows) or ratio.low <= SLOWED
    return compared("threshold", what, load, ratio, hits=flagged, count=len(rows), met=is_met)


def _seconds(rows: list[Mapping[str, Any]]) -> dict[tuple[str, int], float]:
    """Return the step seconds of successful trials by (run, round)."""
    return {(row["run"], row["round"]): row["seconds_step"] for row in rows if row["status"] == "ok"}
