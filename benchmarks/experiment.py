"""What the suites of measuring processes share: a folder of results that a run goes on in, and watched processes.

    results = Results(tables.FAIR, folder)
    known = results.open()
    worker = Worker("benchmarks.fair.measure:answers", folder, preload=["benchmarks.preload"])
    for answer in worker.answers(request, lambda answer: 120.0):
        results.append(key=closure.result_key(parts), **answer)

A suite says what its configurations are, what the key of a record is made of, what a process is asked for, and what
its answers become. A record is on the disk before the next process starts, so a stopped run goes on where it was.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, final

from benchmarks.shapes import BenchError
from kernels import threads as threads_of_kernels
from kernels.registry import unknown_name
from workbench import store
from workbench.measure import closure, machine
from workbench.measure.race import LOG, Worker, records_of_candidates

MACHINE = "machine.json"

Record = dict[str, Any]
Progress = Callable[[str, float], None]
"""Called with what is measured now, and the share of the whole that is done."""


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """Name by which the configuration is requested."""


NamedOne = TypeVar("NamedOne", bound=Named)


def find_by_name(configurations: Iterable[NamedOne], names: Iterable[str]) -> list[NamedOne]:
    """Return the configurations with these names, in the order of `names`; BenchError for an unknown name."""
    known, found = {one.name: one for one in configurations}, []
    for name in names:
        if name not in known:
            raise BenchError(unknown_name("configuration", name, known))
        found.append(known[name])
    return found


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads, by default all that this process can use; BenchError if out of range."""
    most = threads_of_kernels.max_threads()
    if threads is not None and not 1 <= threads <= most:
        raise BenchError(f"threads is {threads}; this process can use 1 to {most}.")
    return threads or most


@final
class Results:
    """Records of one table in a folder of results, with the description of the machine next to them."""

    def __init__(self, table: store.Table, folder: Path) -> None:
        """Store the table and the folder; nothing is read or created yet."""
        self.table, self.folder, self.file = table, folder, folder / table.file

    def open(self) -> list[Record]:
        """Create the folder, write `machine.json` into it, and return its records, oldest first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MACHINE).write_text(json.dumps(machine.describe_machine(), indent=1), encoding="utf-8")
        return self.table.read(self.file) if store.is_stored(self.file) else []

    def new_record(self, **columns: Any) -> Record:
        """Return a record with these columns, and time, machine id and versions unless given; nothing is written."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        own = {"time": now, "machine": machine.machine_id(), "versions": machine.versions()}
        return self.table.new_row(**own | columns)

    def append(self, **columns: Any) -> Record:
        """Append a record with these columns to the file, on disk when this returns, and return it."""
        record = self.new_record(**columns)
        self.table.append(self.file, record)
        return record

    def collect(self, work: Callable[[], object]) -> bool:
        """Call `work`, which appends records; return False if Ctrl-C stopped it, else True.

        An empty log file is removed after a complete run.
        """
        try:
            work()
        except KeyboardInterrupt:
            return False
        log = self.folder / LOG
        if log.exists() and not log.stat().st_size:
            log.unlink()  # no library printed anything
        return True


SECONDS_CANDIDATE = 120.0
"""Seconds until a candidate is ready, compiling included, and for all rounds together."""
AGAIN = ("failed", "timeout")
"""Statuses that a later start tries again."""


class Configuration(Named, Protocol):
    """What a suite of candidates measures: a dataclass with a name, and with columns of a record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def bytes_needed(self) -> float:
        """Bytes of memory that the process of the configuration needs."""

    def columns(self) -> Record:
        """Return the columns of a record that say what was measured."""


@dataclass(frozen=True)
class Suite:
    """The parts that differ between suites whose candidates are timed in turned rounds.

    `work` is "module:function", the work of a process, which `preload` is imported for; `candidates()` gives the
    columns of each candidate by its name, `source_hash()` is that of the code that draws the rows, trains and times,
    and `libraries` are those whose versions matter.
    """

    table: store.Table
    work: str
    preload: str
    candidates: Callable[[], dict[str, Record]]
    source_hash: Callable[[], str]
    libraries: tuple[str, ...]


@final
class CandidateRunner:
    """Measures configurations of a suite into a folder of results, each in a separate process with limits.

    The records of a configuration are on the disk before the next one starts. `policy` is the dataclass that the work
    is asked with, `threads` of None means all that this process can use, and no configuration is begun `budget` seconds
    after the start.
    """

    def __init__(
        self,
        suite: Suite,
        folder: Path,
        policy: Any,
        threads: int | None = None,
        progress: Progress = lambda what, share: None,
        budget: float = float("inf"),
    ) -> None:
        """Open the results of a folder and set the limits; nothing is measured yet."""
        self.suite, self.policy, self.progress, self.budget = suite, policy, progress, budget
        self.threads = resolve_threads(threads)
        self.results = Results(suite.table, folder)
        self.worker = Worker(suite.work, folder, [suite.preload])

    def run(self, configurations: Sequence[Configuration]) -> bool:
        """Measure the configurations without final records; False if Ctrl-C stopped it, which loses nothing finished.

        Not final are "failed" and "timeout", which are measured again.
        """
        done = done_keys(self.results.open())
        return self.results.collect(lambda: self._measure_missing(configurations, done))

    def _measure_missing(self, configurations: Sequence[Configuration], done: set[str]) -> None:
        """Append the records of each configuration whose key is not in `done`, until the budget is spent."""
        start, candidates = time.monotonic(), self.suite.candidates()
        for place, one in enumerate(configurations):
            if (key := self.key(one)) in done:
                continue
            if time.monotonic() - start >= self.budget:
                return
            self.progress(one.name, place / len(configurations))
            known = {"key": key, "source": self.suite.source_hash(), "threads": self.threads} | one.columns()
            for name, record in self.measured(one).items():
                self.results.append(**known | {"candidate": name} | candidates[name] | record)

    def measured(self, configuration: Configuration) -> dict[str, Record]:
        """Return {candidate: its columns} of one configuration, measured in new processes.

        Candidates that end their process, or do not fit in memory, have status and reason.
        """
        limit, names = self.worker.bytes_limit, list(self.suite.candidates())
        if configuration.bytes_needed > limit:
            reason = f"Needs {configuration.bytes_needed} bytes; the limit is {limit}."
            return {name: {"status": "memory", "reason": reason} for name in names}
        return records_of_candidates(names, lambda left_out: self._answers(configuration, left_out))

    def _answers(self, configuration: Configuration, left_out: list[str]) -> Iterator[Record]:
        """Yield the answers of a new process that measures all candidates except `left_out`."""
        settings = {"configuration": asdict(configuration), "policy": asdict(self.policy)}
        request = settings | {"threads": self.threads, "left_out": left_out}
        return self.worker.answers(request, lambda _: SECONDS_CANDIDATE)

    def key(self, configuration: Configuration) -> str:
        """Return the hash of everything that the records of a configuration depend on: settings, code, versions."""
        settings = [asdict(configuration), asdict(self.policy), self.threads, list(self.suite.candidates())]
        versions = machine.describe_stack(*self.suite.libraries)
        return closure.result_key([*settings, self.suite.source_hash(), versions])


def done_keys(records: Sequence[Record]) -> set[str]:
    """Return the keys whose candidates' newest records all have a final status (not "failed" or "timeout")."""
    newest = {(record["key"], record["candidate"]): record["status"] for record in records}
    return {key for key, _ in newest} - {key for (key, _), status in newest.items() if status in AGAIN}
