"""The part in which two candidates on one thread each are measured in turns and at once, each on a core of its own.

What slows the machine for a moment slows both of a duet (Bulej et al. 2020, Duet Benchmarking, ICPE), but each also
takes caches and memory bandwidth from the other. It finds how much a round's ratio varies in either arrangement, and by
how much a duet shifts the ratio. Trials count whatever ran beside them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import cell_of
from workbench.bench.self_trial.turns import CONDITIONS, SIDES, Record, outcomes
from workbench.measure import loads
from workbench.measure.rounds import INTERIM_ANALYSES, counterbalanced_order
from workbench.sweeps.alternation import ROUNDS_A_SET
from workbench.sweeps.schedule import Task

FILE = "self-duets.jsonl"
NAMES = ("in turns, one thread", "at once, one thread")


def duets(folder: Path, budget: trials.Budget, most: int = 10 * INTERIM_ANALYSES[-1]) -> list[dict[str, Any]]:
    """Measure up to `most` rounds in either arrangement beside each load, at least those of a first look."""
    rows: dict[str, list[Record]] = {load: [] for load in CONDITIONS}
    for first in range(0, most, ROUNDS_A_SET):
        if first >= INTERIM_ANALYSES[0] and budget.is_over:
            break
        for load in CONDITIONS:
            name = trials.experiment("duets", load)
            with (
                loads.run_load(load),
                trials.Trials(folder / FILE, name) as one,
                trials.Trials(folder / FILE, name) as two,
            ):
                for number in range(first, first + ROUNDS_A_SET):
                    budget.tell(f"turns against duets, {load}, round {number + 1}")
                    in_turns = one.measure_in_turns(tasks_of(NAMES[0], number))
                    at_once = measured_at_once((one, two), tasks_of(NAMES[1], number))
                    rows[load] += [{**row, "run": "one"} for row in (*in_turns, *at_once)]
    return [found for load in CONDITIONS for found in outcomes("duets", NAMES, load, rows[load])]


def tasks_of(name: str, number: int) -> list[Task]:
    """Return the trials of both candidates, on one thread each, in an arrangement of that name."""
    order = counterbalanced_order(SIDES, number)
    return [trials.task_of(cell_of(side, 512, 0.03, threads=1), f"{name} {side}", number) for side in order]


def measured_at_once(each: Sequence[trials.Trials], tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Return the rows of tasks in fresh processes that run at the same time; each of `each` measures one."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(lambda one, task: one.measure_once(task), each, tasks))
