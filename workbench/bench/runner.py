"""Runs a suite: each shape in a separate process, with limits; a row of every candidate, whatever happens.

A configuration's rows are on the disk before the next one starts; what is stopped is resumed by starting it again.
"""

import contextlib
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels import devices
from kernels import threads as threads_of_kernels
from workbench import store
from workbench.bench.configurations import Cell, key, names_of, source_hash
from workbench.bench.device import refuse_without_gpu
from workbench.bench.rounds import Policy
from workbench.bench.shapes import BenchError
from workbench.measure import loads, machine, memory
from workbench.measure.child import Child, Ended, fork_server, start, why_too_long
from workbench.measure.clock import median_interval

SECONDS_CELL = 150.0
SECONDS_START = 120.0
WORK = "workbench.bench.child:answers"
ELEMENTS_ALONE = 2**27
"""D * N from which a cell of the suite of steps has a process of its own."""
FINAL = ("ok", "memory", "unsupported", "wrong")
ONCE = {"import": "import kernels", "numba": "start of Numba"}
"""Names in the rows of what a process pays once."""

MACHINE, LOG = "machine.json", "log.txt"

Told = Callable[[str, int, int], None]
"""Hears what is measured now, how many cells are done, and how many there are."""


@dataclass
class Outcome:
    """Outcome of a run: configurations done now, found done, rows by status; whether it was stopped."""

    folder: Path
    done: int = 0
    reused: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    stopped: bool = False


class Runner:
    """Measures configurations into a run folder. `threads` of None means all cores that Numba sees."""

    def __init__(
        self, folder: str | Path, policy: Policy, threads: int | None = None, told: Told | None = None
    ) -> None:
        self.folder, self.policy, self.told = Path(folder), policy, told or (lambda *_: None)
        most = threads_of_kernels.max_threads()
        if threads is not None and not 1 <= threads <= most:
            raise BenchError(f"threads is {threads}; this process can use 1 to {most}.")
        self.threads = threads or most
        self.bytes_limit = int(0.85 * memory.available_bytes())
        self.outcome = Outcome(self.folder)
        self.bandwidths: list[dict] = []
        self.device, self.gpu = "cpu", devices.Gpu()

    @property
    def rows_file(self) -> Path:
        """The file of the folder that rows are appended to."""
        return self.folder / store.BENCH.file

    def run(self, cells: Sequence[Cell], starts: Sequence[str] = ()) -> Outcome:
        """Measure the configurations that have no rows yet, and the first call of the kernels named.

        Ctrl-C ends it and loses nothing that was finished.
        """
        self._take_device(cells)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MACHINE).write_text(json.dumps(machine.describe_machine(), indent=1), encoding="utf-8")
        rows = store.BENCH.read(self.rows_file) if store.is_stored(self.rows_file) else []
        done = {row["key"] for row in rows if row["status"] in FINAL}
        self.cells, self.keys = list(cells), [key(cell, self.policy) for cell in cells]
        rest = [number for number, each in enumerate(self.keys) if each not in done]
        self.outcome.reused = len(cells) - len(rest)
        try:
            if rest:
                self._bandwidths()
            for numbers in _by_shape(cells, rest):
                self._shape(numbers)
            if rest:
                self.starts(starts)
        except KeyboardInterrupt:
            self.outcome.stopped = True
        return self.outcome

    def _take_device(self, cells: Sequence[Cell]) -> None:
        """The device of the configurations, one for all; `BenchError` if it is not there."""
        device_names = {cell.device for cell in cells} or {"cpu"}
        if len(device_names) > 1:
            raise BenchError(f"A run is of one device; the cells are of {', '.join(sorted(device_names))}.")
        (self.device,) = device_names
        if self.device == "cuda":
            self.gpu = refuse_without_gpu()
            self.bytes_limit = min(self.bytes_limit, int(0.85 * self.gpu.bytes_memory))

    def _bandwidths(self) -> None:
        """Measure streams and gathers of this machine; every run has its own."""
        self._tell("bandwidth of this machine")
        with contextlib.suppress(Ended):  # shares of the bound are unknown then, and said to be
            for answer in self._answers([]):
                self.bandwidths = answer.get("bandwidths", [])
        for rate in self.bandwidths:
            settled = {"suite": self.cells[0].suite, "task": "bandwidth", "contender": rate["level"], "side": "ours"}
            settled["device"] = self.device
            self._append({"key": "bandwidth", "status": "ok"} | settled | rate)

    def starts(self, names: Sequence[str]) -> None:
        """Costs of a new process: the import, and the first call of each kernel with a warm cache; a row each."""
        once: dict[str, list[float]] = {"import": [], "numba": []}
        settled = {"key": "start", "suite": "kernels", "task": "start", "side": "ours", "rows": 64, "width": 16}
        for name in names:
            self._tell(f"first call of {name}")
            for _ in range(2):  # the first fills the cache
                timings = _started(name)
            if timings is None:
                self._append({"status": "failed", "reason": "its process failed", "contender": name} | settled)
                continue
            for what, samples in once.items():
                samples.append(timings[what])
            self._append({"status": "ok", "contender": name, "seconds": timings["call"]} | settled)
        for what, samples in once.items():
            if samples:
                seconds, low, high = median_interval(samples)
                row = {"samples": samples, "seconds": seconds, "seconds_low": low, "seconds_high": high}
                self._append({"status": "ok", "contender": ONCE[what]} | settled | row)

    def _shape(self, numbers: list[int]) -> None:
        """Measure the configurations of one shape in a process; after a failure the remaining ones in a new process."""
        while numbers:
            current, end = numbers[0], None
            try:
                for answer in self._answers(numbers):
                    current = answer.get("cell", current)
                    self._tell(self.cells[current].told)
                    if "rows" in answer:
                        numbers = [number for number in numbers if number != current]
                        self._done(current, answer["rows"])
            except Ended as ended:  # the configuration that was at work has no rows
                end = {name: ended.row[name] for name in ("status", "reason")}
            if end:
                numbers = [number for number in numbers if number != current]
                entries = names_of(self.cells[current])
                self._done(current, [{"contender": name, "side": side} | end for name, side, _ in entries])

    def _done(self, number: int, rows: Iterable[dict]) -> None:
        """Append the records of configuration `number` and count it as done."""
        for row in rows:
            settled = {"key": self.keys[number], "source": source_hash(self.cells[number])}
            self._append(settled | self.cells[number].columns() | row)
        self.outcome.done += 1

    def _append(self, row: dict[str, Any]) -> None:
        """Append a record to the file, with machine, versions and time, and count its status."""
        own = {"machine": machine.machine_id(), "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "threads": self.threads}
        own |= {
            "versions": machine.versions() | self.gpu.versions,
            "source": source_hash(),
            "gpu": self.gpu.name or None,
        }
        store.BENCH.append(self.rows_file, store.BENCH.new_row(**own | row))
        self.outcome.counts[row["status"]] = self.outcome.counts.get(row["status"], 0) + 1

    def _tell(self, what: str) -> None:
        """Report what is done next, the count that is over, and the total."""
        self.told(what, self.outcome.done + self.outcome.reused, len(self.cells))

    def _answers(self, numbers: list[int]) -> Iterator[dict[str, Any]]:
        """Yield each answer of a child about these configurations, or of the machine's bandwidths.

        `Ended` where it ends badly.
        """
        request = {
            "cells": [(number, dataclasses.asdict(self.cells[number])) for number in numbers],
            "policy": dataclasses.asdict(self.policy),
            "threads": self.threads,
            "bytes_limit": self.bytes_limit,
            "bandwidths": self.bandwidths,
            "device": self.device,
            "bytes_cache": self.gpu.bytes_cache,
        }
        process, connection = start(fork_server(), WORK, request, self.folder / LOG)
        since, limit = time.monotonic(), SECONDS_START

        def why_end() -> dict[str, Any]:
            return why_too_long(since, limit) or child.why_too_large(self.bytes_limit, self.bytes_limit)

        with Child(process, connection) as child:
            for answer in child.answers(why_end):
                yield answer
                since, limit = time.monotonic(), SECONDS_CELL


def _started(name: str) -> dict[str, float] | None:
    """Return the seconds of the phases of starting a fresh process, or None if it failed."""
    command = [sys.executable, "-m", "workbench.bench.child", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=loads.measuring_environment())
    return None if done.returncode else json.loads(done.stdout)


def _by_shape(cells: Sequence[Cell], numbers: Iterable[int]) -> list[list[int]]:
    """Return the numbers of the configurations of each shape, of all its numbers of rows, shapes in the order of the
    suite.

    A step on large tables has a process of its own: not every library gives their memory back.
    """
    groups: dict[tuple, list[int]] = {}
    for number in numbers:
        cell = cells[number]
        large = cell.is_step and cell.shape.features * cell.width >= ELEMENTS_ALONE
        groups.setdefault((cell.shape.name, number if large else None), []).append(number)
    return list(groups.values())
