"""Runs configurations, each in a separate process with limits: a record of every candidate, whatever happens.

The records of a configuration are on the disk before the next one starts; a run that was stopped is resumed by starting
it again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from workbench import store
from workbench.bench import experiment
from workbench.bench.experiment import Progress, Record, Results, Worker
from workbench.bench.fair.competitors import get, list_competitors, names, origin
from workbench.bench.fair.configurations import Configuration
from workbench.bench.fair.measure import Policy
from workbench.measure import closure
from workbench.measure.machine import describe_stack
from workbench.sweeps import spec

WORK = "workbench.bench.fair.measure:answers"
PRELOAD = "workbench.bench.preload"
LIBRARIES = ("torch", "scikit-learn")
SECONDS_CANDIDATE = 120.0
"""Seconds until a candidate is ready, compiling included, and for all rounds together."""
AGAIN = ("failed", "timeout")
"""Statuses that a later start tries again."""


class Runner:
    """Measures configurations into a folder of results; `threads` of None means all cores that Numba sees."""

    def __init__(
        self, folder: Path, policy: Policy, threads: int | None = None, progress: Progress = lambda what, share: None
    ) -> None:
        """Open the results of a folder and set up the worker processes; nothing is measured yet."""
        self.policy, self.progress, self.threads = policy, progress, experiment.resolve_threads(threads)
        self.results = Results(store.FAIR, folder)
        self.worker = Worker(WORK, folder, [PRELOAD])

    def run(self, configurations: Sequence[Configuration]) -> bool:
        """Measure the configurations without final records; False if Ctrl-C stopped it, which loses nothing finished.

        Not final are "failed" and "timeout", which are measured again.
        """
        done = done_keys(self.results.open())
        return self.results.collect(lambda: self._measure_missing(configurations, done))

    def _measure_missing(self, configurations: Sequence[Configuration], done: set[str]) -> None:
        """Append the records of each configuration whose key is not in `done`."""
        for place, one in enumerate(configurations):
            if (key := self.key(one)) in done:
                continue
            self.progress(one.name, place / len(configurations))
            for name, record in self.measured(one).items():
                candidate = get(name)
                own = {"side": candidate.side, "kind": candidate.kind, "note": candidate.note, "threads": self.threads}
                columns = {"key": key, "candidate": name, "source": source_hash()} | one.columns() | own | record
                self.results.append(**columns)

    def measured(self, configuration: Configuration) -> dict[str, Record]:
        """Return {candidate: its columns} of one configuration, measured in new processes.

        Candidates that end their process, or do not fit in memory, have status and reason.
        """
        limit = self.worker.bytes_limit
        if configuration.bytes_needed > limit:
            reason = f"Needs {configuration.bytes_needed} bytes; the limit is {limit}."
            return {name: {"status": "memory", "reason": reason} for name in names()}
        return experiment.records_of_candidates(names(), lambda left_out: self._answers(configuration, left_out))

    def _answers(self, configuration: Configuration, left_out: list[str]) -> Iterator[Record]:
        """Yield the answers of a new process that measures all candidates except `left_out`."""
        request = {
            "configuration": asdict(configuration),
            "policy": asdict(self.policy),
            "threads": self.threads,
            "left_out": left_out,
        }
        return self.worker.answers(request, lambda _: SECONDS_CANDIDATE)

    def key(self, configuration: Configuration) -> str:
        """Return the hash of everything that the records of a configuration depend on: settings, code, versions."""
        settings = [asdict(configuration), asdict(self.policy), self.threads, names(), source_hash()]
        return closure.result_key([*settings, describe_stack(*LIBRARIES)])


def done_keys(records: Sequence[Record]) -> set[str]:
    """Return the keys whose candidates' newest records all have a final status (not "failed" or "timeout")."""
    newest = {(record["key"], record["candidate"]): record["status"] for record in records}
    return {key for key, _ in newest} - {key for (key, _), status in newest.items() if status in AGAIN}


def source_hash() -> str:
    """Return the digest of the code of all candidates, of drawing the rows and of timing."""
    roots = {"workbench.bench.fair.measure", "workbench.measure.child"} | {
        origin(competitor.name) for competitor in list_competitors()
    }
    for model in ("logistic", "softmax"):
        configurations = [
            {"gradient": "fused"},
            {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
        ]
        for settings in configurations:
            roots |= spec.roots_of(spec.Configuration(dataset="uniform", model=model, **settings))
    return closure.installed_code().digest(roots)
