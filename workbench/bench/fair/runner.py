"""Runs configurations, each in a separate process with limits: a record of every candidate, whatever happens.

The records of a configuration are on the disk before the next one starts; a run that was stopped is resumed by starting
it again.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernels import threads as threads_of_kernels
from workbench import store
from workbench.bench.fair.configurations import Configuration
from workbench.bench.fair.contract import competitors, get, names, origin
from workbench.bench.fair.measure import Policy
from workbench.bench.shapes import BenchError
from workbench.measure import closure, machine, memory
from workbench.measure.child import Child, Ended, fork_server, start, why_too_long
from workbench.measure.stack import describe_stack
from workbench.sweeps import spec
from workbench.sweeps.spec import Cell

WORK = "workbench.bench.fair.child:answers"
PRELOAD = "workbench.bench.fair.preload"
LIBRARIES = ("torch", "scikit-learn")
SECONDS_CANDIDATE = 120.0
"""Seconds until a candidate is ready, compiling included, and for all rounds together."""
MACHINE, LOG = "machine.json", "log.txt"
AGAIN = ("failed", "timeout")
"""Statuses that a later start tries again."""

Record = dict[str, Any]
Told = Callable[[str, float], None]
"""Called with what is measured now, and the share of the configurations that is done."""


class Runner:
    """Measures configurations into a folder of results; `threads` of None means all cores that Numba sees."""

    def __init__(
        self, folder: Path, policy: Policy, threads: int | None = None, told: Told = lambda what, share: None
    ) -> None:
        most = threads_of_kernels.max_threads()
        if threads is not None and not 1 <= threads <= most:
            raise BenchError(f"threads is {threads}; expected 1 to {most}.")
        self.folder, self.policy, self.told, self.threads = folder, policy, told, threads or most
        self.file = folder / store.FAIR.file
        self.bytes_limit = int(0.85 * memory.available_bytes())

    def run(self, configurations: Sequence[Configuration]) -> bool:
        """Measure the configurations without records; False if Ctrl-C stopped it, which loses nothing finished."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MACHINE).write_text(json.dumps(machine.describe_machine(), indent=1), encoding="utf-8")
        done = done_keys(store.FAIR.read(self.file)) if store.is_stored(self.file) else set()
        try:
            for place, one in enumerate(configurations):
                if (key := self.key(one)) in done:
                    continue
                self.told(one.name, place / len(configurations))
                for name, record in self.measured(one).items():
                    self._append(one, key, name, record)
        except KeyboardInterrupt:
            return False
        log = self.folder / LOG
        if log.exists() and not log.stat().st_size:
            log.unlink()  # no library wrote anything
        return True

    def measured(self, configuration: Configuration) -> dict[str, Record]:
        """Return the record of each candidate by name.

        A candidate that ends its process has a record that says how; the others are measured again without it.
        """
        if configuration.bytes_needed > self.bytes_limit:
            reason = f"Needs {configuration.bytes_needed} bytes; the limit is {self.bytes_limit}."
            return {name: {"status": "memory", "reason": reason} for name in names()}
        left_out: dict[str, Record] = {}
        while True:
            records, at, end = self._answers(configuration, list(left_out))
            if end is None:
                return left_out | records
            known = names()
            if at not in known or len(left_out) == len(known):  # no candidate in particular: all without a record
                rest = [name for name in known if name not in left_out | records]
                return left_out | records | dict.fromkeys(rest, end)
            left_out[at] = end

    def _answers(
        self, configuration: Configuration, left_out: list[str]
    ) -> tuple[dict[str, Record], str, Record | None]:
        """Return (records by name, what the process was at last, how it ended if not well)."""
        request = {
            "configuration": asdict(configuration),
            "policy": asdict(self.policy),
            "threads": self.threads,
            "left_out": left_out,
        }
        process, connection = start(fork_server([PRELOAD]), WORK, request, self.folder / LOG)
        records: dict[str, Record] = {}
        since, at = time.monotonic(), ""

        def why_end() -> Record:
            return why_too_long(since, SECONDS_CANDIDATE) or child.why_too_large(self.bytes_limit, self.bytes_limit)

        try:
            with Child(process, connection) as child:
                for answer in child.answers(why_end):
                    since, at = time.monotonic(), answer.get("at", at)
                    if "record" in answer:
                        records[answer["name"]] = answer["record"]
        except Ended as ended:
            return records, at, {name: ended.row[name] for name in ("status", "reason")}
        return records, at, None

    def _append(self, configuration: Configuration, key: str, name: str, record: Record) -> None:
        """Append the record of a candidate to the file, with machine, versions and time."""
        candidate = get(name)
        own = {"side": candidate.side, "kind": candidate.kind, "note": candidate.note, "threads": self.threads}
        own |= {"machine": machine.machine_id(), "versions": machine.versions(), "source": source_hash()}
        ended = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        known = {"key": key, "time": ended, "candidate": name} | configuration.columns() | own | record
        store.FAIR.append(self.file, store.FAIR.new_row(**known))

    def key(self, configuration: Configuration) -> str:
        """Return the hash of all that the records of a configuration depend on."""
        settings = [asdict(configuration), asdict(self.policy), self.threads, names(), source_hash()]
        parts = json.dumps([*settings, describe_stack(*LIBRARIES)], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:20]


def done_keys(records: Sequence[Record]) -> set[str]:
    """Return the keys that need no new measurement: no newest record of their candidates has a status to retry."""
    newest = {(record["key"], record["candidate"]): record["status"] for record in records}
    return {key for key, _ in newest} - {key for (key, _), status in newest.items() if status in AGAIN}


def source_hash() -> str:
    """Return the hash of the code that draws the rows, trains, and times, that of all candidates."""
    roots = {"workbench.bench.fair.child", "workbench.measure.child"} | {
        origin(competitor.name) for competitor in competitors()
    }
    for model in ("logistic", "softmax"):
        cells = [
            {"gradient": "fused"},
            {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"},
        ]
        for settings in cells:
            roots |= spec.roots_of(Cell(dataset="uniform", model=model, **settings))
    return closure.installed_code().digest(roots)
