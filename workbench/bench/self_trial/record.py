"""The part that records noise: rounds of all groups, each contender there and back, as a sweep measures them."""

import random
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.groups import CONTENDERS, groups
from workbench.bench.self_trial.noise import HALVES
from workbench.measure.rounds import turned
from workbench.sweep.schedule import Task
from workbench.sweep.spec import Cell

FILE = "self-noise.jsonl"


def record(folder: Path, budget: trials.Budget) -> list[dict[str, Any]]:
    """Record rounds until the budget is over; the first is always finished. No outcome: simulations read the rows."""
    every, number = groups(), 0
    with trials.Trials(folder / FILE, trials.experiment("noise")) as measured:
        while not number or not budget.is_over:
            for group in random.Random(number).sample(every, len(every)):
                for task in there_and_back(group, number):
                    budget.tell(f"recording noise, round {number + 1}")
                    measured.measure(task)
            number += 1
    return []


def there_and_back(group: dict[str, Cell], number: int) -> list[Task]:
    """The trials of a group in a round: all contenders in the order of the round, then all in the opposite order."""
    order = turned(list(CONTENDERS), number)
    there = [trials.task_of(group[name], HALVES[0], number) for name in order]
    return there + [trials.task_of(group[name], HALVES[1], number) for name in reversed(order)]
