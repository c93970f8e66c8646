"""Records of a run of `bench fit`: what is known of it, the key of each, and how they are stored."""

import functools
import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba

from workbench import store
from workbench.bench.fit.cases import Case
from workbench.bench.fit.choosing import Row
from workbench.bench.fit.contract import Contender, get, origin
from workbench.bench.fit.rungs import Rung
from workbench.bench.shapes import BenchError
from workbench.measure import closure, machine
from workbench.measure.rounds import LOOKS
from workbench.measure.stack import stack
from workbench.sweep import sources
from workbench.sweep.spec import Cell

LIBRARIES = ("torch", "scikit-learn", "implicit", "tensorflow-cpu", "vowpalwabbit")
FINAL = ("ok", "unsupported", "memory", "timeout")
MACHINE = "machine.json"


@dataclass(frozen=True)
class Policy:
    """Limits: how long a setting is trained at most, rounds of the best setting, and threads of all libraries.

    Every setting is trained for `first` seconds, by default those of `rungs.FIRST`, the best for longer.
    """

    seconds: float = 20.0
    rounds: int = 4
    threads: int | None = None
    first: float | None = None

    def __post_init__(self) -> None:
        if self.first is not None and not 0 < self.first <= self.seconds:
            raise BenchError(f"first-seconds is {self.first:g}; it is above 0 and at most seconds, {self.seconds:g}.")
        most = numba.config.NUMBA_NUM_THREADS
        if self.threads is not None and not 1 <= self.threads <= most:
            raise BenchError(f"threads is {self.threads}; this process can use 1 to {most}.")

    @property
    def is_steady(self) -> bool:
        """Whether there are rounds enough to judge by that more may be added where they spread."""
        return self.rounds >= LOOKS[0]

    @property
    def count(self) -> int:
        """Threads: those asked for, or all cores."""
        return self.threads or numba.config.NUMBA_NUM_THREADS


class Records:
    """Records in a folder of results: those that are known by their key, and new ones."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.folder, self.policy = folder, policy
        self.file = folder / store.FIT.file
        self.run_id = time.strftime("%Y-%m-%dT%H:%M:%S")
        self.known: dict[str, Row] = {}

    def open(self) -> None:
        """Make the folder, describe the machine in it, read the records it has."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MACHINE).write_text(json.dumps(machine.record(), indent=1), encoding="utf-8")
        rows = store.FIT.read(self.file) if self.file.exists() else []
        self.known = {row["key"]: row for row in rows if row["status"] in FINAL}

    def append(
        self, case: Case, contender: Contender, stage: str, key: str, value: Row, rung: Rung, columns: Row
    ) -> Row:
        """Store a training of a setting; returns its record."""
        cell = case.cell
        row = store.FIT.new_row(
            key=key,
            time=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            run=self.run_id,
            case=case.name,
            dataset=cell.dataset,
            path=cell.path,
            model=cell.model,
            held_out=str(case.held_out),
            contender=contender.name,
            side=contender.side,
            is_dense=contender.is_dense,
            stage=stage,
            setting=value,
            tried=len(contender.values(case.model)),
            is_at_end=contender.is_at_end(case.model, value) if value else None,
            seconds_limit=self.policy.seconds,
            seconds_rung=rung.seconds,
            threads=self.policy.count,
            seed=cell.seed,
            machine=machine.machine_id(),
            versions=machine.versions(),
            source=source_hash(case, contender),
            **columns,
        )
        store.FIT.append(self.file, row)
        return row

    def key(self, case: Case, contender: Contender, *more: Any) -> str:
        """Hash of case, contender, policy, code and libraries, and of what else tells a training from others."""
        policy = {"seconds": self.policy.seconds, "threads": self.policy.count}
        parts = [asdict(case), contender.name, policy, source_hash(case, contender), stack(*LIBRARIES), *more]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]


@functools.cache
def _source(contender: str, dataset: str, model: str) -> str:
    roots = {"workbench.bench.fit.child", "workbench.measure.serve", origin(get(contender))}
    roots |= closure.registered("data set", [dataset]) | closure.registered("model", [model])
    if get(contender).side == "ours":
        roots |= sources.roots_of(Cell(dataset=dataset, model=model, gradient="fused"))
    return closure.own().digest(roots)


def source_hash(case: Case, contender: Contender) -> str:
    """Hash of the code that makes the data and trains."""
    return _source(contender.name, case.cell.dataset, case.model)
