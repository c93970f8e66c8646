"""The parts that slow trials on purpose: one kernel is made slower, or other programs run next to the trials.

The configurations that use the kernel must become slower, by as much, and no others. In the child process the kernel's
call is followed by a wait some times as long as the call, so its results do not change. Slowed and plain trials of a
configuration are candidates of the same rounds; batches repeat, so that the kernel has a large part of the step.

Other programs test the check for them: trials on one thread and on all are measured in turns without a load and next
to each load, each once and whatever else ran. A trial that the check lets pass must not be slower than a quiet one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import kernels
from workbench.analysis.pool import group_by
from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import (
    CANDIDATE_SETTINGS,
    candidate_of,
    configuration_of,
    ratio_row,
    seconds_by_round,
    share_row,
    split_key,
)
from workbench.measure import loads
from workbench.measure.machine import disturbance_limit
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order, ratio_of
from workbench.sweeps import grid, trial
from workbench.sweeps.spec import Configuration

FILE = "self-slow.jsonl"
KERNEL = "adagrad_fused"
USERS = ("csr",)
"""Candidates whose step calls it."""
PHASE = "seconds_update"
"""Where its time is."""
TIMES = 4
"""How many times as long it takes."""
OWN = 0.5
"""The least part of that phase that is the kernel's; the rest calls it."""
WORK = f"{__name__}:slowed"
NAMES = ("plain", "slowed")


def slowed(request: dict) -> Iterator[dict]:
    """Yield the answers of a trial's process in which the kernel under test takes `TIMES` as long.

    Replaces the kernel's functions in this process.
    """
    kernel = kernels.get(KERNEL)
    for implementation in ("cpu", "trusted"):
        object.__setattr__(kernel, implementation, longer(getattr(kernel, implementation)))
    yield from trial.answers(request)


def longer(call: Callable, clock: Callable[[], float] = time.perf_counter) -> Callable:
    """Return a function that calls `call`, then busy-waits until `TIMES` its duration has passed."""

    def waits(*args: Any, **options: Any) -> Any:
        """Call the function, busy-wait until it took the longer time, and return its result."""
        start = clock()
        result = call(*args, **options)
        end = start + TIMES * (clock() - start)
        while clock() < end:
            pass
        return result

    return waits


def configurations() -> dict[str, Configuration]:
    """Return {name: configuration} of what is measured: each candidate at two batch sizes."""
    found: dict[str, Configuration] = {}
    for batch_rows in (64, 512):
        of_size = {name: configuration_of(name, batch_rows, 0.1, shuffle=False) for name in CANDIDATE_SETTINGS}
        of_size["csr row_sparse"] = of_size["csr"].model_copy(update={"gradient": "row_sparse"})
        found |= {f"{name}, {batch_rows} rows a batch": configuration for name, configuration in of_size.items()}
    return found


def slow(folder: Path, budget: trials.Budget, most: int = INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure plain and slowed trials in up to `most` rounds, at least four; return outcome records.

    Records are appended to a file in `folder`.
    """
    name, rows = trials.experiment("slow"), []
    with trials.Trials(folder / FILE, name) as plain, trials.Trials(folder / FILE, name, work=WORK) as changed:
        by_name = dict(zip(NAMES, (plain, changed), strict=True))
        changed.supervisor.run_name = plain.supervisor.run_name  # one run: their rounds are compared
        for number in budget.rounds(most):
            for configuration in configurations().values():
                for way in counterbalanced_order(NAMES, number):
                    budget.tell(f"{KERNEL} {TIMES} times as slow, round {number + 1}")
                    rows.append(by_name[way].measure(trials.task_of(configuration, way, number)))
    return list(outcomes(rows))


def outcomes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield an outcome record with the ratio slowed / plain per configuration, then one of how many are right.

    Right is a ratio as the configuration's phases predict it. `rows` are the trial records.
    """
    right = wrong = 0
    names = {grid.configuration_key(configuration): name for name, configuration in configurations().items()}
    by_configuration = group_by(rows, lambda row: split_key(row["key"])[0])
    for key, own in by_configuration.items():
        name = names.get(key, key)
        ratio, expected = _ratio(own), _expected_ratio(own)
        is_right = ratio is not None and _is_right(ratio, expected)
        right, wrong = right + is_right, wrong + (not is_right)
        yield ratio_row("slow", f"{name}: slowed / plain", "quiet", ratio, truth=expected, met=bool(is_right))
    what = f"{KERNEL} {TIMES} times as slow moves the cells that use it as far as it should, and no others"
    yield share_row("slow", what, "quiet", right, right + wrong, (1.0, None))


def _ratio(rows: list[Mapping[str, Any]]) -> Ratio | None:
    """Return the time ratio slowed / plain over common rounds; None if there is none.

    `rows` are the trial records of one configuration, plain and slowed.
    """
    plain, changed = (seconds_by_round(rows, name) for name in NAMES)
    return ratio_of(changed, plain)


def _is_right(ratio: Ratio, expected: float) -> bool:
    """Return whether a configuration did not change if `expected` is 1, else whether it slowed as much as predicted."""
    if expected == 1.0:
        return ratio.low <= 1.0 <= ratio.high
    return 1.0 < ratio.low <= expected and ratio.high >= 1 + OWN * (expected - 1)


def _expected_ratio(rows: list[Mapping[str, Any]]) -> float:
    """Return the predicted ratio slowed / plain at most, from the phase's share of the step; 1.0 for non-users.

    `rows` are the trial records of one configuration, plain and slowed.
    """
    if candidate_of(rows[0]) not in USERS:
        return 1.0
    plain = [row for row in rows if split_key(row["key"])[1] == NAMES[0] and row["status"] == "ok"]
    shares = [row[PHASE] / row["seconds_step"] for row in plain]
    return 1.0 + (TIMES - 1) * float(np.median(shares)) if shares else 1.0


THRESHOLD_FILE = "self-threshold.jsonl"
LOADS_TESTED = (loads.QUIET, *loads.LOADS)
SLOWED = 1.1
"""The most that a trial which passes may be slower than a quiet one."""


def threshold_configurations() -> dict[str, Configuration]:
    """Return {name: configuration} of what is measured: csr and dense, on one thread and on all."""
    return {
        f"{candidate}, {'one thread' if threads else 'all threads'}": configuration_of(
            candidate, 512, 0.03, threads=threads
        )
        for candidate in ("csr", "dense")
        for threads in (1, None)
    }


def threshold(folder: Path, budget: trials.Budget, most: int = INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure trials next to each load in up to `most` rounds, at least four; return outcome records.

    Records are appended to a file in `folder`.
    """
    rows, every = [], threshold_configurations()
    with trials.Trials(folder / THRESHOLD_FILE, trials.experiment("threshold")) as measured:
        for number in budget.rounds(most):
            for load in counterbalanced_order(LOADS_TESTED, number):
                with loads.run_load(load):
                    for configuration in counterbalanced_order(list(every.values()), number):
                        budget.tell(f"{load} next to a trial, round {number + 1}")
                        rows.append(measured.measure_once(trials.task_of(configuration, load, number)))
    return list(threshold_outcomes(rows))


def threshold_outcomes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the ratio loaded / quiet per configuration and load, with how many trials the check calls disturbed."""
    for of_configuration in group_by(rows, lambda row: split_key(row["key"])[0]).values():
        by_load = group_by(of_configuration, lambda row: split_key(row["key"])[1])
        quiet = seconds_by_round(by_load.get(loads.QUIET, []))
        for load in loads.LOADS:
            if own := by_load.get(load, []):
                yield _outcome(own, load, ratio_of(seconds_by_round(own), quiet))


def _outcome(rows: list[Mapping[str, Any]], load: str, ratio: Any) -> dict[str, Any]:
    """Return the outcome record: met if most trials under the load were flagged, or they were not slowed.

    `rows` are its records under `load`, `ratio` is loaded / quiet.
    """
    flagged = sum((row["busy_others"] or 0.0) > disturbance_limit(row["threads"]) for row in rows)
    threads = f"{rows[0]['threads']} thread{'s' if rows[0]['threads'] > 1 else ''}"
    what = f"{rows[0]['format']} on {threads}: beside {load} / quiet"
    is_met = None if ratio is None else 2 * flagged > len(rows) or ratio.low <= SLOWED
    return ratio_row("threshold", what, load, ratio, hits=flagged, count=len(rows), met=is_met)
