"""A run folder: what is in it, how far it is, how to stop it. Panels, the command line and papermill only read it.

Files: `spec.json`; `plan.json` (keys of the cells, what was dropped and why); `machine.json`; `trials.jsonl` (the rows,
append-only); `progress.json` (replaced as a whole, at least once a second while the run lives); `log.txt` (what the
supervisor printed); `stop` (present when somebody asked it to stop); `lock` (held by the supervisor).
"""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

from workbench import store
from workbench.measure import blas
from workbench.sweep.spec import Spec, SpecError, dump, validate

ROOT = Path("runs")
SPEC, PLAN, MACHINE = "spec.json", "plan.json", "machine.json"
SECONDS_HEARTBEAT = 1.0
SECONDS_SILENT = 10.0
"""A run whose file is older than this is dead, whatever it says."""
SECONDS_START = 60.0
"""The same for a run that only starts: libraries are loaded from a cold disk once."""


class RunError(RuntimeError):
    """A run folder that is not one, or is in use; the message says what to do."""


@dataclass
class Progress:
    """How far a run is. `state` is starting, running, finished, stopped or failed (`message` says why)."""

    name: str
    state: str = "starting"
    pid: int = 0
    total: int = 0
    done: int = 0
    reused: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    current: str = ""
    seconds: float = 0.0
    seconds_left: float | None = None
    message: str = ""
    heartbeat: float = 0.0

    @property
    def alive(self) -> bool:
        """Whether the supervisor is at work, by its heartbeat."""
        silent = {"starting": SECONDS_START, "running": SECONDS_SILENT}.get(self.state, 0.0)
        return time.time() - self.heartbeat < silent

    @property
    def over(self) -> bool:
        """Whether nothing more will come: it ended, or its heartbeat stopped."""
        return not self.alive


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new, never a part."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def write(folder: Path, progress: Progress) -> None:
    """Replace the progress file, stamped with the time."""
    progress.heartbeat = time.time()
    replace_file(folder / "progress.json", json.dumps(asdict(progress)))


def read(folder: str | Path) -> Progress:
    """How far the run in `folder` is; a supervisor that died without a word shows as failed. `RunError` if no run."""
    path = Path(folder) / "progress.json"
    try:
        progress = Progress(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        known = ", ".join(str(run) for run in runs(Path(folder).parent)) or "none"
        raise RunError(f"{folder} is not a run folder (no progress.json). Runs beside it: {known}.") from None
    if progress.state in ("starting", "running") and not progress.alive:
        progress.state, progress.message = "failed", "The supervisor died; start the sweep again to do the rest."
    return progress


def read_spec(folder: str | Path) -> Spec:
    """The spec that the run in `folder` was started with (`RunError` if there is none)."""
    path = Path(folder) / SPEC
    try:
        return validate(json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, SpecError) as error:
        raise RunError(f"{folder} holds no usable spec.json: {error}") from None


def rows(folder: str | Path) -> list[dict]:
    """The rows of a run folder that answer its present spec and code; none before the first trial ended."""
    if not (Path(folder) / store.FILE).exists():
        return []
    found = store.read(folder)
    plan = Path(folder) / PLAN
    if not plan.exists():
        return found
    keys = set(json.loads(plan.read_text(encoding="utf-8"))["keys"])
    last: dict[tuple, dict] = {}
    for row in found:
        if row["key"] in keys:
            last.pop((row["key"], row["round"]), None)  # a trial that was done again counts once, as the newer
            last[row["key"], row["round"]] = row
    return list(last.values())


def dropped(folder: str | Path) -> dict[str, int]:
    """How many combinations of settings the run in `folder` left out, by reason; none before it was planned."""
    plan = Path(folder) / PLAN
    return json.loads(plan.read_text(encoding="utf-8"))["dropped"] if plan.exists() else {}


def runs(root: str | Path = ROOT) -> list[Path]:
    """The run folders under `root`, the newest first."""
    found = [path.parent for path in Path(root).glob("*/progress.json")]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


@contextlib.contextmanager
def locked(folder: Path, seconds_wait: float = 0.0) -> Iterator[None]:
    """Hold the run folder's lock; `RunError` when another supervisor has it. The system frees it with the process."""
    with open(folder / "lock", "w", encoding="utf-8") as file:
        end = time.monotonic() + seconds_wait
        while not _took(file):
            if time.monotonic() >= end:
                raise RunError(f"{folder} is in use by another sweep; wait for it, or stop it first.")
            time.sleep(0.02)
        yield


def _took(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(spec: Spec, folder: str | Path | None = None) -> Path:
    """Start the sweep in a process of its own that outlives this one; returns its run folder at once.

    A folder that holds rows is resumed: cells whose key has a row are not run again. `RunError` when it is in use.
    """
    folder = Path(folder) if folder is not None else ROOT / spec.name
    folder.mkdir(parents=True, exist_ok=True)
    ended = (folder / "progress.json").exists() and read(folder).over
    with locked(folder, SECONDS_SILENT if ended else 0.0):  # one that has ended frees its lock when its process has
        (folder / "stop").unlink(missing_ok=True)
        replace_file(folder / SPEC, dump(spec))
        write(folder, Progress(spec.name))
    with open(folder / "log.txt", "ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "workbench.sweep", str(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=blas.own_environment(),
        )
    threading.Thread(target=supervisor.wait, daemon=True).start()  # or a dead one stays a zombie of a long-lived kernel
    return folder


def stop(folder: str | Path) -> None:
    """Ask the run to stop: the trial at work ends within a second, its row says stopped, finished rows stay."""
    (Path(folder) / "stop").touch()


def watch(folder: str | Path, seconds_between: float = 0.2) -> Iterator[Progress]:
    """The progress of a run, again and again until it is over; the last one is the final state."""
    while True:
        progress = read(folder)
        yield progress
        if progress.over:
            return
        time.sleep(seconds_between)
