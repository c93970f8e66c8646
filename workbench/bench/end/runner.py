"""Runs the processes of `bench end`: the settings of each candidate, then the first setting that reaches the loss,
warm and cold.

Warm is a start after another one of the same candidate: files in memory, compiled code and parsed copies in their
caches. Cold is a start with these caches empty and the files dropped from memory. A run is measured as a whole, from
the start of the first process to the end of the last; memory is the largest of a process.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench import store
from workbench.analysis.end import within
from workbench.bench.end.contract import Candidate, Paths, get, names
from workbench.bench.end.files import Case, labels_in, write_files
from workbench.bench.experiment import Progress, Record, Results
from workbench.data.content import VARIABLE

SECONDS_RUN = 900.0
"""Seconds of a process, at most."""
WARM_RUNS = 3


class Runner:
    """Measures cases into a folder of results; the files that are read are in its folder `files`."""

    def __init__(self, folder: Path, told: Progress = lambda what, share: None) -> None:
        self.results, self.told = Results(store.END, folder), told

    def run(self, cases: Sequence[Case], only: Sequence[str] = ()) -> bool:
        """Measure the cases that have no records yet; False if Ctrl-C stopped it, which loses nothing finished."""
        candidates = [get(name) for name in only or names()]
        known = self.results.open()
        return self.results.collect(lambda: self._measure_missing(cases, candidates, known))

    def _measure_missing(self, cases: Sequence[Case], candidates: Sequence[Candidate], known: Sequence[Record]) -> None:
        """Append the records of each case and candidate of which `known` has none."""
        done = {(record["case"], record["candidate"]) for record in known}
        for place, case in enumerate(cases):
            rest = [one for one in candidates if (case.name, one.name) not in done]
            for record in self._measured(case, rest, known, place / len(cases)) if rest else ():
                store.END.append(self.results.file, record)

    def _measured(
        self, case: Case, candidates: Sequence[Candidate], known: Sequence[Record], share: float
    ) -> list[Record]:
        """Return the records of these candidates in a case: all settings, then the chosen one of each."""
        self.told(f"{case.name}: writing the files", share)
        files = write_files(case, self.results.folder / "files")
        labels = labels_in(files[1])
        with tempfile.TemporaryDirectory(prefix="bench-end-") as caches:
            tried = [record for one in candidates for record in self._settings(case, one, files, labels, caches, share)]
            losses = [
                record["loss"]
                for record in (*known, *tried)
                if record["case"] == case.name and record["loss"] is not None
            ]
            chosen = []
            for one in candidates:
                own = [record for record in tried if record["candidate"] == one.name and record["status"] == "ok"]
                able = [record for record in own if within(record["loss"], min(losses))]
                if able:
                    setting = min(able, key=lambda record: record["seconds"])["setting"]
                    chosen += self._timed(case, one, setting, files, labels, caches, share)
        return tried + chosen

    def _settings(
        self, case: Case, candidate: Candidate, files: tuple[Path, Path], labels: np.ndarray, caches: str, share: float
    ) -> list[Record]:
        """Return a record of each setting, run once, after a first run that fills the caches."""
        if reason := candidate.unavailable(case.format):
            return [self._record(case, candidate, {}, "settings", status="unsupported", reason=reason)]
        self.told(f"{case.name}: {candidate.name}, settings", share)
        run_once(case, candidate, candidate.settings[0], files, labels, caches)
        records = []
        for setting in candidate.settings:
            measured = run_once(case, candidate, setting, files, labels, caches)
            records.append(self._record(case, candidate, setting, "settings", **measured))
        return records

    def _timed(
        self,
        case: Case,
        candidate: Candidate,
        setting: Mapping[str, Any],
        files: tuple[Path, Path],
        labels: np.ndarray,
        caches: str,
        share: float,
    ) -> list[Record]:
        """Return records of warm runs of a setting, and of a cold one."""
        self.told(f"{case.name}: {candidate.name}, warm and cold", share)
        records = []
        for _ in range(WARM_RUNS):
            measured = run_once(case, candidate, setting, files, labels, caches)
            records.append(self._record(case, candidate, setting, "warm", **measured))
        for path in files:
            drop_from_memory(path)
        with tempfile.TemporaryDirectory(prefix="bench-end-") as empty:
            measured = run_once(case, candidate, setting, files, labels, empty)
        return [*records, self._record(case, candidate, setting, "cold", **measured)]

    def _record(
        self, case: Case, candidate: Candidate, setting: Mapping[str, Any], start: str, **measured: Any
    ) -> Record:
        """Return the record of a run."""
        return self.results.new_record(
            key=f"{case.name}, {candidate.name}, {start}, {json.dumps(setting)}",
            case=case.name,
            format=case.format,
            megabytes=case.megabytes,
            candidate=candidate.name,
            side=candidate.side,
            setting=dict(setting),
            start=start,
            **measured,
        )


def run_once(
    case: Case,
    candidate: Candidate,
    setting: Mapping[str, Any],
    files: tuple[Path, Path],
    labels: np.ndarray,
    caches: str,
) -> Record:
    """Return seconds by stage, peak memory and held-out loss of one run, with the caches in that folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": f"{caches}/code", VARIABLE: f"{caches}/data"}
    with tempfile.TemporaryDirectory(prefix="bench-end-") as folder:
        paths = Paths(case.format, *files, Path(folder))
        stages: dict[str, float] = {}
        peak = 0
        commands = candidate.commands(paths, setting)
        for stage, command in commands:
            start = time.perf_counter()
            status, reason, bytes_peak = run_process(command, environment)
            stages[stage] = time.perf_counter() - start
            peak = max(peak, bytes_peak)
            if status != "ok":
                return {"status": status, "reason": reason}
        seconds = sum(stages.values())
        if paths.stages.exists():
            stages = json.loads(paths.stages.read_text(encoding="utf-8"))
            stages["start"] = seconds - sum(stages.values())
        chances = np.array([float(line.split(",")[-1]) for line in _lines(paths.predictions, len(labels))])
    return {
        "status": "ok",
        "seconds": seconds,
        "stages": stages,
        "bytes_peak": peak,
        "loss": log_loss(labels, chances),
        "bytes_file": files[0].stat().st_size,
    }


def _lines(path: Path, count: int) -> list[str]:
    """Return the last `count` lines of a file, behind a header if it has one."""
    return path.read_text(encoding="utf-8").splitlines()[-count:]


def run_process(command: Sequence[str], environment: dict[str, str]) -> tuple[str, str, int]:
    """Run a process to its end; returns (status, reason, peak of its resident memory in bytes)."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        end = time.monotonic() + SECONDS_RUN
        while True:
            done, code, usage = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                process.kill()
                os.wait4(process.pid, 0)
                process.returncode = -9
                return "timeout", f"Took longer than {SECONDS_RUN:g} s.", 0
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(code)
        if process.returncode:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
            return "failed", (lines[-1] if lines else f"Ended with {process.returncode}."), 0
    return "ok", "", usage.ru_maxrss * (1 if os.uname().sysname == "Darwin" else 1024)


def log_loss(labels: np.ndarray, chances: np.ndarray) -> float:
    """Return the mean log loss of labels 0 and 1, with chances of 1 kept 1e-6 from 0 and 1."""
    kept = np.clip(chances, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(labels == 1, np.log(kept), np.log(1 - kept))))


def drop_from_memory(path: Path) -> None:
    """Ask the system to keep nothing of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
