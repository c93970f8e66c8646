"""The part in which our kernels on all threads meet themselves on one: more threads must never be slower."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import BATCH_ROWS, DENSITIES, cell_of, compared, counted, key_of
from workbench.measure.rounds import Decision
from workbench.sweeps.schedule import Comparison, ComparisonState, Schedule
from workbench.sweeps.spec import Cell

FILE = "self-threads.jsonl"
NAMES = ("all threads", "one thread")
WIDTHS = (1, 16)
GRADIENTS = {"fused": {}, "dense gradient": {"gradient": "dense", "update": "standard"}}


def cells() -> dict[str, Cell]:
    """Return the configurations to measure, by name."""
    return {
        f"csr, {name}, {rows} rows a batch, density {density:g}, width {width}": cell_of(
            "csr", rows, density, width=width, model="linear"
        ).model_copy(update=line)
        for name, line in GRADIENTS.items()
        for rows in BATCH_ROWS
        for density in DENSITIES
        for width in WIDTHS
    }


def threads(folder: Path, budget: trials.Budget, most: int = 6) -> list[dict[str, Any]]:
    """Measure up to `most` rounds, at least those of a first look; outcomes of these rounds."""
    courses = {name: ComparisonState(comparison_of(cell), most) for name, cell in cells().items()}
    with trials.Trials(folder / FILE, trials.experiment("threads")) as measured:
        schedule = Schedule(list(courses.values()))
        for tasks in schedule.rounds():
            if budget.is_over:
                break
            for task in tasks:
                budget.tell("all threads against one")
                schedule.add(measured.measure(task))
    return list(outcomes({name: course.decision() for name, course in courses.items()}))


def comparison_of(cell: Cell) -> Comparison:
    """Return a configuration on all threads, in the place of sparse, against the same configuration on one."""
    serial = cell.model_copy(update={"serial": True})
    keys = {key_of(cell, NAMES[0]): cell, key_of(serial, NAMES[1]): serial}
    return Comparison(keys, frozenset([key_of(serial, NAMES[1])]))


def outcomes(found: Mapping[str, Decision]) -> Iterator[dict[str, Any]]:
    """Yield the ratio one thread / all threads of each configuration, and in how many of them one thread wins."""
    for name, decision in found.items():
        yield compared("threads", f"{name}: one thread / all", "quiet", decision.ratio)
    lost = sum(decision.verdict == "dense" for decision in found.values())  # the baseline is one thread
    yield counted("threads", "all threads lose to one", "quiet", lost, len(found), (None, 0.0))
