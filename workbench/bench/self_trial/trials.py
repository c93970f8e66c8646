"""Trials of the self-trial: measured by a sweep's own supervisor, each in a fresh process, and appended to a file.

The rows are rows of trials without what no part reads, as these are thousands; `experiment` says which part measured
them, and beside which load. Versions of libraries are in the rows of outcomes.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench import store
from workbench.bench.self_trial.groups import key_of
from workbench.measure import machine
from workbench.measure.loads import QUIET
from workbench.sweep.runner import TRIAL, Supervisor
from workbench.sweep.schedule import Task
from workbench.sweep.spec import Cell, Measure, Spec

KEPT = (
    *store.SETTINGS,
    *("schema", "key", "run", "experiment", "time", "round", "tries", "status", "reason", "not_finite"),
    *("machine", "source", "busy_others", "seconds_step", "seconds_update"),
)
"""Columns of a trial that are appended: what was measured, where, and what the parts read."""
Told = Callable[[str, float], None]
"""Hears what is done now, and how much of the part is over, 0 to 1."""


def silent(what: str, share: float) -> None:
    """Tell nobody."""


@dataclass
class Budget:
    """Seconds that a part may take, from its making on; and who hears how far it is."""

    seconds: float
    told: Told = silent
    started: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() - self.started >= self.seconds

    def tell(self, what: str) -> None:
        """Say what is done now."""
        self.told(what, min((time.monotonic() - self.started) / max(self.seconds, 1e-9), 1.0))


def experiment(part: str, load: str = QUIET) -> str:
    """The name of an experiment, as rows have it.

    >>> experiment("same", "busy core"), load_of("self-same-busy-core")
    ('self-same-busy-core', 'busy core')
    """
    return f"self-{part}-{load}".replace(" ", "-")


def load_of(name: str) -> str:
    """The load that rows of an experiment were measured beside."""
    return name.split("-", 2)[2].replace("-", " ")


class Trials:
    """Measures into a file of rows; a context that has a working folder of its own, the run of the rows.

    `work` is what a trial's process does, "module:function"; `seconds_quiet` how long all trials together may wait for
    other programs to be quiet.
    """

    def __init__(self, file: Path, experiment: str, work: str = TRIAL, seconds_quiet: float = 20.0) -> None:
        self.file, self.work = file, work
        self.spec = Spec(name=experiment, measure=Measure(seconds_quiet=seconds_quiet))
        self.home = tempfile.TemporaryDirectory(prefix="self-trial-")
        self.supervisor: Supervisor

    def __enter__(self) -> "Trials":
        run = Path(self.home.name) / time.strftime("%Y%m%dT%H%M%S")
        run.mkdir()
        self.supervisor = Supervisor(self.spec, run, work=self.work)
        return self

    def __exit__(self, *_: object) -> None:
        self.home.cleanup()

    def measure(self, task: Task) -> dict[str, Any]:
        """The row of a task with the tries that a sweep gives it, appended."""
        return self._keep(self.supervisor.do(task))

    def measure_once(self, task: Task) -> dict[str, Any]:
        """The row of one try, whatever ran beside it, appended."""
        return self._keep(self.supervisor.try_once(task))

    def _keep(self, row: dict[str, Any]) -> dict[str, Any]:
        store.append(self.file, store.new_row(**{name: row[name] for name in KEPT}))
        return row


def task_of(cell: Cell, name: str, round: int) -> Task:
    """A trial of a cell that takes part under a name."""
    return Task(cell, key_of(cell, name), round)


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a file; none where it is not there yet."""
    return store.read(file) if file.exists() else []


def of_this_machine(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that were measured on this machine."""
    here = machine.machine_id()
    return [row for row in rows if row["machine"] == here]
