"""A run folder: what is in it, how far it is, how to stop it. Panels, the command line and papermill only read it.

Files: `spec.json`; `plan.json` (keys of the cells, what was dropped and why); `machine.json`; `trials.jsonl` (the rows,
append-only); `progress.json` (replaced as a whole, at least once a second while the run lives); `log.txt` (what the
supervisor printed); `identity` (what its rows name as their run); `stop` (present when somebody asked it to stop);
`lock` (held by the supervisor). Of a run on several machines: `cluster` (where agents are), a `log-NAME.txt` each.
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
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from workbench import store
from workbench.measure import blas
from workbench.sweep.places import refuse_unallocated
from workbench.sweep.progress import SECONDS_SILENT, Progress
from workbench.sweep.spec import Spec, SpecError, dump, validate

ROOT = Path("runs")
SPEC, PLAN, MACHINE, LOG, PROGRESS = "spec.json", "plan.json", "machine.json", "log.txt", "progress.json"
STOP, IDENTITY, CLUSTER = "stop", "identity", "cluster"
TOLD = (SPEC, PLAN, PROGRESS, store.FILE)
"""Files that say how far a run is: where none of them changed, there is nothing to read."""
SUPERVISORS = ("workbench.sweep", "workbench.cluster")
"""What supervises a sweep on this machine alone, and one on several."""
SECONDS_HEARTBEAT = 1.0
PREPARED = "WORKBENCH_PREPARED"
"""The variable that tells a supervisor that its environment is the one to measure in."""


class RunError(RuntimeError):
    """A run folder that is not one, or is in use; the message says what to do."""


class NoRunError(RunError, LookupError):
    """Unknown run; the message lists those there are."""


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new, never a part."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def write(folder: Path, progress: Progress) -> None:
    """Replace the progress file, stamped with the time; in its own place where the disk has no room for another."""
    progress.heartbeat = time.time()
    path, text = folder / PROGRESS, json.dumps(asdict(progress))
    try:
        replace_file(path, text)
    except OSError:
        if not path.exists():
            raise
        handle = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(handle, text.encode().ljust(path.stat().st_size), 0)  # blanks after JSON are no part of it
        finally:
            os.close(handle)


def why(error: OSError) -> str:
    """Reason of a failure by the system, and of which file: "No space left on device: runs/x/trials.jsonl".

    >>> why(OSError(28, "No space left on device", "runs/x/trials.jsonl"))
    'No space left on device: runs/x/trials.jsonl'
    """
    return f"{error.strerror}: {error.filename}" if error.strerror and error.filename else str(error)


def read(folder: str | Path) -> Progress:
    """Progress of the run in `folder`; a supervisor that died without a word shows as failed. `RunError` if no run."""
    path = Path(folder) / PROGRESS
    try:
        progress = Progress(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        known = ", ".join(str(run) for run in runs(Path(folder).parent)) or "none"
        raise NoRunError(f"{folder} is not a run folder (no {PROGRESS}). Runs beside it: {known}.") from None
    except (ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged ({error}); start the sweep again, its rows are kept.") from None
    if progress.state in ("starting", "running") and not progress.alive:
        last = _last_line(Path(folder) / LOG)
        progress.message = f"The supervisor died{last}; start the sweep again to do the rest."
        progress.state = "failed"
    return progress


def seconds_since_start(folder: Path) -> float:
    """Seconds since `start` was called, as long as no supervisor has written anything; 0 after that, or without it."""
    try:
        begun = Progress(**json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return 0.0
    return max(time.time() - begun.heartbeat, 0.0) if begun.state == "starting" and not begun.pid else 0.0


def _last_line(log: Path) -> str:
    """The end of the log for the inside of a sentence, or "" where it is empty."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f", and its log ends with {lines[-1].strip()!r}" if lines else ""


def identity(folder: Path) -> str:
    """Identity by which rows name the run as theirs, made when first asked for: folder and time.

    The time is in it because folders are used again, and rounds of two runs must never be taken for one another.
    """
    path = folder / IDENTITY
    if not path.exists():
        replace_file(path, f"{folder.name} {time.strftime('%Y-%m-%dT%H:%M:%S%z')}")
    return path.read_text(encoding="utf-8").strip()


def read_spec(folder: str | Path) -> Spec:
    """The spec that the run in `folder` was started with (`RunError` if there is none)."""
    path = Path(folder) / SPEC
    try:
        return validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, SpecError) as error:
        raise RunError(f"{folder} holds no usable {SPEC}: {error}") from None


def where(folder: str | Path) -> str:
    """Place of the agents of the run in `folder`, as it was started; "" where this machine alone measures."""
    path = Path(folder) / CLUSTER
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def rows(folder: str | Path) -> list[dict]:
    """The rows of a run folder that answer its present spec and code; none before the first trial ended."""
    if not (Path(folder) / store.FILE).exists():
        return []
    stored = store.read(folder)
    plan = Path(folder) / PLAN
    if not plan.exists():
        return stored
    keys = set(json.loads(plan.read_text(encoding="utf-8"))["keys"])
    last: dict[tuple, dict] = {}
    for row in stored:
        if row["key"] in keys:
            trial = row["key"], row["machine"], row["round"]
            last.pop(trial, None)  # a trial that was done again counts once, as the newer
            last[trial] = row
    return list(last.values())


def dropped(folder: str | Path) -> dict[str, int]:
    """Number of combinations that the run in `folder` left out, by reason; none before it was planned."""
    plan = Path(folder) / PLAN
    return json.loads(plan.read_text(encoding="utf-8"))["dropped"] if plan.exists() else {}


def runs(root: str | Path = ROOT) -> list[Path]:
    """The run folders under `root`, the newest first."""
    files = sorted(Path(root).glob(f"*/{PROGRESS}"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.parent for path in files]


@contextlib.contextmanager
def locked(folder: Path, seconds_wait: float = 0.0) -> Iterator[None]:
    """Hold the run folder's lock; `RunError` when another supervisor has it. The system frees it with the process."""
    with open(folder / "lock", "w", encoding="utf-8") as file:
        end = time.monotonic() + seconds_wait
        while not _take_lock(file):
            if time.monotonic() >= end:
                raise RunError(
                    f"{folder} is in use by another sweep; wait for it, or stop it first: workbench stop {folder}"
                )
            time.sleep(0.02)
        yield


def _take_lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(spec: Spec, folder: str | Path | None = None, cluster: str | None = None) -> Path:
    """Start the sweep in a process of its own that outlives this one; returns its run folder at once.

    A folder that holds rows is resumed: cells whose key has a row are not run again. `RunError` when it is in use.
    `cluster` says where agents measure (`workbench.cluster.places`), by default this machine alone does.
    """
    if cluster is not None:
        refuse_unallocated(cluster)
    folder = Path(folder) if folder is not None else ROOT / spec.name
    if folder.exists() and not folder.is_dir():
        raise NoRunError(f"{folder} is a file; a run needs a folder of its own.")
    folder.mkdir(parents=True, exist_ok=True)
    ended = (folder / PROGRESS).exists() and _is_over(folder)
    with locked(folder, SECONDS_SILENT if ended else 0.0):  # one that has ended frees its lock when its process has
        (folder / STOP).unlink(missing_ok=True)
        replace_file(folder / SPEC, dump(spec))
        (folder / CLUSTER).unlink(missing_ok=True)
        if cluster is not None:
            replace_file(folder / CLUSTER, cluster)
        write(folder, Progress(spec.name))
    with open(folder / LOG, "ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", SUPERVISORS[cluster is not None], str(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=blas.own_environment() | {PREPARED: "1"},
        )
    threading.Thread(target=supervisor.wait, daemon=True).start()  # or a dead one stays a zombie of a long-lived kernel
    return folder


def _is_over(folder: Path) -> bool:
    try:
        return read(folder).over
    except RunError:  # a damaged file says nothing of whoever holds the lock
        return False


def stop(folder: str | Path) -> None:
    """Ask the run to stop: the trial at work ends within a second, its row says stopped, finished rows stay."""
    (Path(folder) / STOP).touch()


def watch(folder: str | Path, seconds_between: float = 0.2) -> Iterator[Progress]:
    """The progress of a run, again and again until it is over; the last one is the final state."""
    while True:
        progress = read(folder)
        yield progress
        if progress.over:
            return
        time.sleep(seconds_between)
