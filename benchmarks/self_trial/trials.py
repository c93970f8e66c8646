"""Trials of the self-trial: measured by a sweep's own supervisor, each in a fresh process, and appended to a file.

The rows are rows of trials without what no part reads, as these are thousands; `experiment` says which part measured
them, and under which load. Versions of libraries are in the rows of outcomes.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from benchmarks.loads import QUIET
from workbench import settings, store
from workbench.measure import machine
from workbench.sweeps import grid
from workbench.sweeps.runner import TRIAL, Supervisor
from workbench.sweeps.schedule import Task
from workbench.sweeps.spec import Configuration, Measure, Spec

# Outcomes: what a part of the self-trial found, as rows of the table `tables.SELF`.


class SelfTrialError(ValueError):
    """A part of the self-trial cannot be done; the message says what to do first."""


def outcome(part: str, what: str, condition: str, **known: Any) -> dict[str, Any]:
    """Return the columns of an outcome with its key, and the columns `known`.

    `part`, `what` and `condition` make its key.
    """
    own = {"key": f"{part}: {what}; {condition}", "case": part, "status": "ok", "part": part}
    return own | {"what": what, "condition": condition} | known


def share_row(
    part: str, what: str, condition: str, hits: int, count: int, wanted: tuple[float | None, float | None], **known: Any
) -> dict[str, Any]:
    """Return the outcome record of a share, `hits` of `count`, with its interval; "failed" if `count` is 0.

    `wanted` are the least and the largest share allowed, None for no limit. `part`, `what` and `condition` make its
    key; `known` are further columns.
    """
    low, high = wanted
    columns = {"hits": int(hits), "count": int(count), "wanted_low": low, "wanted_high": high}
    if not count:
        reason = "There was none that could be counted."
        return outcome(part, what, condition, status="failed", reason=reason, **columns, **known)
    share = hits / count
    least, most = binomtest(int(hits), int(count)).proportion_ci(method="wilson")
    is_met = None if low is None and high is None else (low or 0.0) <= share <= (1.0 if high is None else high)
    columns |= {"share": share, "low": least, "high": most, "met": is_met}
    return outcome(part, what, condition, **columns, **known)


# Groups of configurations that the self-trial measures, alike but for the candidate, and how its rows name their
# candidates.
#
# A row's `key` is the key of its configuration, then a blank and the name under which the configuration took part:
# "there", "first", ...


CANDIDATE_SETTINGS: dict[str, dict[str, str]] = {
    "csr": {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy"},
    "vendor": {"format": "csr", "engine": "vendor", "gradient": "dense", "update": "standard"},
    "dense": {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
}
"""Settings of a line, by the name of the candidate."""
DATA: dict[str, Any] = {"dataset": "uniform", "rows": 2048, "features": 2048, "width": 16, "optimizer": "adagrad"}
BATCH_ROWS = (64, 512)
DENSITIES = (0.003, 0.03, 0.1)


def configuration_of(candidate: str, batch_rows: int, density: float, **more: Any) -> Configuration:
    """Return the sweep configuration of a candidate (a key of CANDIDATE_SETTINGS) at this batch size and density.

    `more` overrides other settings.
    """
    return Configuration(**DATA | CANDIDATE_SETTINGS[candidate] | {"batch_rows": batch_rows, "density": density} | more)


def groups() -> list[dict[str, Configuration]]:
    """Return the groups of configurations that are compared, each {candidate: configuration}."""
    return [
        {name: configuration_of(name, batch_rows, density) for name in CANDIDATE_SETTINGS}
        for batch_rows in BATCH_ROWS
        for density in DENSITIES
    ]


def key_of(configuration: Configuration, name: str) -> str:
    """Return the key of a record: the configuration's key, a blank, and the name under which it takes part."""
    return f"{grid.configuration_key(configuration)} {name}"


def split_key(key: str) -> tuple[str, str]:
    """Return (configuration's key, name) from what `key_of` returned.

    >>> split_key("1f00 second")
    ('1f00', 'second')
    """
    start, _, name = key.partition(" ")
    return start, name


def candidate_of(row: Mapping[str, Any]) -> str:
    """Return the candidate whose settings a record has (a key of CANDIDATE_SETTINGS), "other" if none matches."""
    for name, line in CANDIDATE_SETTINGS.items():
        if all(row[setting] == value for setting, value in line.items()):
            return name
    return "other"


def group_of(row: Mapping[str, Any]) -> tuple:
    """Return the settings that all records of a group share, as a hashable tuple."""
    return tuple(row[column] for column in (*settings.columns("group"), *settings.columns("axis"), "machine"))


KEPT = (
    *store.TRIALS.settings,
    *("schema", "key", "run", "experiment", "time", "round", "process", "tries", "status", "reason", "not_finite"),
    *("machine", "source", "busy_others", "seconds_step", "seconds_update"),
)
"""Columns of a trial that are appended: what was measured, where, and what the parts read."""
Progress = Callable[[str, float], None]
"""Hears what is done now, and how much of the part is over, 0 to 1."""


def ignore_progress(what: str, share: float) -> None:
    """Do nothing; the progress callback of callers that show none."""


@dataclass
class Budget:
    """Seconds that a part may take, from its making on; and who hears how far it is."""

    seconds: float
    progress: Progress = ignore_progress
    started: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the time has been used up."""
        return time.monotonic() - self.started >= self.seconds

    def tell(self, what: str) -> None:
        """Report what is done now, with the fraction of the budget that has passed."""
        self.progress(what, min((time.monotonic() - self.started) / max(self.seconds, 1e-9), 1.0))


def experiment(part: str, load: str = QUIET) -> str:
    """Return the experiment name of a part under a load, as records have it.

    >>> experiment("same", "busy core"), load_of("self-same-busy-core")
    ('self-same-busy-core', 'busy core')
    """
    return f"self-{part}-{load}".replace(" ", "-")


def load_of(name: str) -> str:
    """Return the load in an experiment name, such as "busy core"."""
    return name.split("-", 2)[2].replace("-", " ")


class Trials:
    """Measures into a file of rows; a context that has a working folder of its own, the run of the rows.

    `work` is what a trial's process does, "module:function".
    """

    def __init__(self, file: Path, experiment: str, work: str = TRIAL) -> None:
        """Prepare measuring into `file`; the supervisor is started by the context."""
        self.file, self.work = file, work
        self.spec = Spec(name=experiment, measure=Measure())
        self.folder = tempfile.TemporaryDirectory(prefix="self-trial-")
        self.supervisor: Supervisor

    def __enter__(self) -> "Trials":
        """Make a run folder named by the time in a temporary folder and start the supervisor; return this object."""
        run = Path(self.folder.name) / time.strftime("%Y%m%dT%H%M%S")
        run.mkdir()
        self.supervisor = Supervisor(self.spec, run, work=self.work)
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes measured in turns and remove the temporary folder."""
        self.supervisor.in_turns.close()
        self.folder.cleanup()

    def measure(self, task: Task) -> dict[str, Any]:
        """Measure a task as a sweep does, append its record to the file and return it."""
        return self._keep(self.supervisor.do(task))

    def measure_in_turns(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Measure a round of tasks in turns, whatever else runs; append and return their records.

        Their processes live on for further rounds, as in a sweep.
        """
        return [self._keep(row) for row in self.supervisor.in_turns.measure(tasks)]

    def _keep(self, row: dict[str, Any]) -> dict[str, Any]:
        """Append the columns KEPT of a record to the file and return the whole record."""
        store.append(self.file, store.new_row(**{name: row[name] for name in KEPT}))
        return row


def task_of(configuration: Configuration, name: str, round: int) -> Task:
    """Return the task of measuring a configuration, under a name, in round `round`."""
    return Task(configuration, key_of(configuration, name), round)


def read(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file that were measured on this machine, [] if it does not exist yet."""
    return rows_of_this_machine(store.read(file)) if store.is_stored(file) else []


def rows_of_this_machine(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records that were measured on this machine."""
    here = machine.machine_id()
    return [row for row in rows if row["machine"] == here]
