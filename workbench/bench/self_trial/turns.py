"""The part in which two candidates are measured by fresh processes and in turns, quiet and beside a busy core.

It finds how much a round's ratio varies in either arrangement, and by how much living in turns shifts the ratio against
that of candidates that run alone, which is to stay within `SHIFT`. Trials count whatever ran beside them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import cell_of, compared, outcome, split_key
from workbench.measure import loads
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, ratio_of
from workbench.sweeps.alternation import ROUNDS_A_SET
from workbench.sweeps.schedule import Task

FILE = "self-turns.jsonl"
CONDITIONS = (loads.QUIET, "busy core")
NAMES = ("fresh", "in turns")
SIDES = ("dense", "csr")
SHIFT = (0.97, 1.03)
"""Ratio in turns against that of contenders that run alone, at least and at most."""

Record = Mapping[str, Any]
Rounds = Mapping[tuple[str, int], float]


def turns(folder: Path, budget: trials.Budget, most: int = 10 * INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure up to `most` rounds in either arrangement beside each load, at least those of a first look."""
    rows: dict[str, list[Record]] = {load: [] for load in CONDITIONS}
    for first in range(0, most, ROUNDS_A_SET):
        if first >= INTERIM_ANALYSES[0] and budget.is_over:
            break
        for load in CONDITIONS:
            with loads.run_load(load), trials.Trials(folder / FILE, trials.experiment("turns", load)) as measured:
                for number in range(first, first + ROUNDS_A_SET):
                    budget.tell(f"fresh processes against turns, {load}, round {number + 1}")
                    fresh = [measured.measure_once(task) for task in tasks_of(NAMES[0], number)]
                    in_turns = measured.measure_in_turns(tasks_of(NAMES[1], number))
                    rows[load] += [{**row, "run": "one"} for row in (*fresh, *in_turns)]
    return [found for load in CONDITIONS for found in outcomes("turns", NAMES, load, rows[load])]


def tasks_of(name: str, number: int) -> list[Task]:
    """Return the trials of both candidates in an arrangement of that name."""
    return [
        trials.task_of(cell_of(side, 512, 0.03), f"{name} {side}", number)
        for side in counterbalanced_order(SIDES, number)
    ]


def outcomes(part: str, names: Sequence[str], load: str, rows: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield the ratio dense / csr in each arrangement with the deviation of a round's logarithm, and the shift of the
    second arrangement against the first.
    """
    seconds = {name: [_seconds(rows, f"{name} {side}") for side in SIDES] for name in names}
    for name, (dense, csr) in seconds.items():
        logs = _logs(dense, csr)
        deviation = float(logs.std(ddof=1)) if logs.size > 1 else None
        yield compared(part, f"dense / csr, {name}", load, ratio_of(dense, csr), deviation=deviation)
    yield _shift(part, names, load, *(_logs(*seconds[name]) for name in names))


def _shift(part: str, names: Sequence[str], load: str, first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    """Return the ratio of the geometric means of both arrangements' ratios; its interval has two standard errors."""
    wanted = dict(zip(("wanted_low", "wanted_high"), SHIFT, strict=True)) if load == loads.QUIET else {}
    what = f"ratio {names[1]} / ratio {names[0]}"
    if min(first.size, second.size) < 2:
        return outcome(part, what, load, status="failed", reason="There are fewer than two rounds.", **wanted)
    log = float(second.mean() - first.mean())
    half = 2 * math.sqrt(sum(float(logs.var(ddof=1)) / logs.size for logs in (first, second)))
    low, shift, high = (math.exp(log + sign * half) for sign in (-1, 0, 1))
    is_within, is_beyond = SHIFT[0] <= shift <= SHIFT[1], low > SHIFT[1] or high < SHIFT[0]
    is_met = is_within if wanted and (is_within or is_beyond) else None  # rounds that vary much tell neither
    known = {"ratio": shift, "low": low, "high": high, "rounds": float(second.size)}
    return outcome(part, what, load, met=is_met, **known, **wanted)


def _logs(first: Rounds, second: Rounds) -> np.ndarray:
    """Return the logarithms of first / second in the rounds that both have."""
    return np.array([math.log(first[place] / second[place]) for place in sorted(first.keys() & second.keys())])


def _seconds(rows: Sequence[Record], name: str) -> dict[tuple[str, int], float]:
    """Return the step seconds of one candidate's trials by (run, round)."""
    own = (row for row in rows if split_key(row["key"])[1] == name and row["seconds_step"])
    return {(row["run"], row["round"]): row["seconds_step"] for row in own}
