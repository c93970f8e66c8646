"""A run folder: what is in it, how far it is, how to stop it. Panels, the command line and papermill only read it.

What reads the state of a run alone imports neither specs nor analysis: `workbench status` answers at once.

Files: `spec.json`; `plan.json` (keys of the configurations, what was dropped and why); `machine.json`; `trials.jsonl`
(the rows, append-only); `progress.json` (replaced as a whole, at least once a second while the run lives); `log.txt`
(what the supervisor printed); `run_identity` (what its rows name as their run); `stop_run` (present when somebody
asked it to stop); `lock` (held by the supervisor). Of a run on several machines: `cluster` (where agents are), a
`log-NAME.txt` each.
"""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from workbench import aliases, store
from workbench.json_text import is_whole, parsed
from workbench.sweeps.progress import SECONDS_SILENT, Progress, parse

if TYPE_CHECKING:
    from workbench.sweeps.spec import Spec

# The file `plan.json` of a run folder: keys of the configurations, and how many combinations were left out for which
# reason.


PLAN = "plan.json"


def read_plan(folder: Path) -> dict[str, Any] | None:
    """Read the plan of a run: {"keys": configuration keys, "dropped": {reason: count}}; None if it is absent, or
    damaged (with a warning).
    """
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        plan = parsed(path.read_text(encoding="utf-8"))
        if isinstance(plan, dict) and isinstance(plan.get("keys"), list) and _is_counts(plan.get("dropped")):
            return plan
        reason = "it has no keys and counts of what was left out"
    except ValueError as error:
        reason = str(error)
    text = "all rows of its folder are shown. Start the sweep again to write it anew"
    warnings.warn(f"{path} is damaged ({reason}); {text}.", stacklevel=3)
    return None


def _is_counts(counts: Any) -> bool:
    """Return whether a value is a dict of whole numbers."""
    return isinstance(counts, dict) and all(is_whole(count) for count in counts.values())


ROOT = Path("runs")
SPEC, MACHINE, LOG, PROGRESS = "spec.json", "machine.json", "log.txt", "progress.json"
STOP, IDENTITY, CLUSTER = "stop", "identity", "cluster"
TOLD = (SPEC, PLAN, PROGRESS, store.FILE)
"""Files that say how far a run is: where none of them changed, there is nothing to read."""
SUPERVISORS = ("workbench.sweeps", "workbench.cluster")
"""What supervises a sweep on this machine alone, and one on several."""
SECONDS_HEARTBEAT = 1.0
SECONDS_HAND_OVER = 0.1
WAIT = "-"
"""What stands for the folder of a supervisor that waits for one; it goes there once it has it."""
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


def write_progress(folder: Path, progress: Progress) -> None:
    """Replace the progress file, with the current time; overwrite it in place if the disk is full."""
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


def system_error_text(error: OSError) -> str:
    """Return the text of a system error with the file concerned, such as "No space left on device.

    Runs/x/trials.jsonl".
    """
    return f"{error.strerror}: {error.filename}" if error.strerror and error.filename else str(error)


def read_progress(folder: str | Path) -> Progress:
    """Return the progress of the run in `folder`; a supervisor that died without a word shows as failed.

    `RunError` if no run.
    """
    path = Path(folder) / PROGRESS
    try:
        progress = parse(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        known = ", ".join(str(run) for run in list_runs(Path(folder).parent)) or "none"
        raise NoRunError(f"{folder} is not a run folder (no {PROGRESS}). Runs next to it: {known}.") from None
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error}); start the sweep again, its rows are kept.") from None
    if progress.state in ("starting", "running") and not progress.alive:
        last = _last_line(Path(folder) / LOG)
        progress.message = f"The supervisor died{last}; start the sweep again to do the rest."
        progress.state = "failed"
    return progress


def read_progress_or_failure(folder: Path) -> Progress:
    """Return the progress of the run in `folder`; of one whose file is damaged a failed one, whose message says so."""
    try:
        return read_progress(folder)
    except NoRunError:
        raise
    except RunError as error:
        return Progress(folder.name, "failed", message=str(error), host="")


def seconds_since_start(folder: Path) -> float:
    """Return seconds since `start_run` was called, if no supervisor has written its progress yet; else 0."""
    try:
        begun = parse((folder / PROGRESS).read_bytes())
    except (OSError, ValueError):
        return 0.0
    return max(time.time() - begun.heartbeat, 0.0) if begun.state == "starting" and not begun.stage else 0.0


def _last_line(log: Path) -> str:
    """Return the end of the log for the inside of a sentence, or "" if it is empty."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f", and its log ends with {lines[-1].strip()!r}" if lines else ""


def run_identity(folder: Path) -> str:
    """Return the identity by which records name their run, created on first use: folder and time."""
    path = folder / IDENTITY
    if not path.exists():
        replace_file(path, f"{folder.name} {time.strftime('%Y-%m-%dT%H:%M:%S%z')}")
    return path.read_text(encoding="utf-8").strip()


def read_spec(folder: str | Path) -> "Spec":
    """Return the spec that the run in `folder` was started with (`RunError` if there is none)."""
    from workbench.sweeps.spec import SpecError, validate_spec

    path = Path(folder) / SPEC
    try:
        return validate_spec(parsed(path.read_text(encoding="utf-8")), is_stored=True)
    except (OSError, ValueError, SpecError) as error:
        raise RunError(f"{folder} holds no usable {SPEC}: {error}") from None


def read_agents_option(folder: str | Path) -> str:
    """Return the WHERE that the run in `folder` was started with; "" if only this machine measures."""
    path = Path(folder) / CLUSTER
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def read_current_records(folder: str | Path) -> list[dict]:
    """Return the records of a run folder that match its present spec and code; empty before the first trial ended."""
    if not (Path(folder) / store.FILE).exists():
        return []
    stored, plan = store.read(folder), read_plan(Path(folder))
    if plan is None:
        return stored
    keys = set(plan["keys"])
    last: dict[tuple, dict] = {}
    for row in stored:
        if row["key"] in keys:
            trial = row["key"], row["machine"], row["round"]
            last.pop(trial, None)  # a trial that was done again counts once, as the newer
            last[trial] = row
    return list(last.values())


def read_dropped_counts(folder: str | Path) -> dict[str, int]:
    """Return the number of combinations that the run in `folder` left out, by reason; none before it was planned."""
    plan = read_plan(Path(folder))
    return plan["dropped"] if plan is not None else {}


def list_runs(root: str | Path = ROOT) -> list[Path]:
    """Return the run folders directly below `root`, most recently updated first."""
    files = sorted(Path(root).glob(f"*/{PROGRESS}"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.parent for path in files]


@contextlib.contextmanager
def lock_run_folder(folder: Path, seconds_wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a run folder within the context; raises RunError if another supervisor holds it."""
    with open(folder / "lock", "w", encoding="utf-8") as file:
        end = time.monotonic() + seconds_wait
        while not _take_lock(file):
            if time.monotonic() >= end:
                raise _in_use_message(folder)
            time.sleep(0.02)
        yield


def _in_use_message(folder: Path) -> RunError:
    """Return the error for a run folder that another sweep uses."""
    return RunError(f"{folder} is in use by another sweep; wait for it, or stop it first: workbench stop {folder}")


def _take_lock(file: TextIO) -> bool:
    """Lock a file exclusively; return False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start_run(spec: "Spec", folder: str | Path | None = None, cluster: str | None = None) -> Path:
    """Start the sweep in a separate process that outlives this one; return its run folder immediately.

    `folder` defaults to runs/NAME and is created; `cluster` is the address of a cluster. Raises NoRunError if the
    folder is a file or in use.
    """
    from workbench.measure import loads
    from workbench.sweeps.agent_commands import require_allocation
    from workbench.sweeps.spec import dump_spec

    if cluster is not None:
        require_allocation(cluster)
    folder = Path(folder) if folder is not None else ROOT / spec.name
    if folder.exists() and not folder.is_dir():
        raise NoRunError(f"{folder} is a file; a run needs a folder of its own.")
    folder.mkdir(parents=True, exist_ok=True)
    environment = loads.measuring_environment() | {PREPARED: "1"}
    ended = (folder / PROGRESS).exists() and _is_over(folder)
    with lock_run_folder(
        folder, SECONDS_SILENT if ended else 0.0
    ):  # one that has ended frees its lock when its process has
        if _is_starting(folder):  # its supervisor loads libraries, and takes the lock after that
            raise _in_use_message(folder)
        (folder / STOP).unlink(missing_ok=True)
        replace_file(folder / SPEC, dump_spec(spec))
        (folder / CLUSTER).unlink(missing_ok=True)
        if cluster is not None:
            replace_file(folder / CLUSTER, cluster)
        write_progress(folder, Progress(spec.name, pid=os.getpid()))  # until the supervisor has a process
    try:
        supervisor = _supervisor(folder, SUPERVISORS[cluster is not None], environment)
    except OSError as error:  # else the folder would be in use as long as this process lives
        write_progress(
            folder,
            Progress(spec.name, "failed", message=f"Its process could not be started: {system_error_text(error)}."),
        )
        raise
    _write_supervisor_process(folder, supervisor.pid)
    threading.Thread(target=supervisor.wait, daemon=True).start()  # or a dead one stays a zombie of a long-lived kernel
    return folder


_waiting: list[subprocess.Popen] = []
"""Supervisors that have no run yet: none or one."""


@contextlib.contextmanager
def supervisor_in_waiting() -> Iterator[None]:
    """Have a supervisor load its libraries while a run is prepared inside; the first `start_run` there takes it.

    While other programs run that saves seconds: what two processes load at once one would load later. A process that no
    run took is ended.
    """
    from workbench.measure import loads

    environment = loads.measuring_environment() | {PREPARED: "1"}
    command = [sys.executable, "-m", SUPERVISORS[0], WAIT]
    with contextlib.suppress(OSError):  # the run then starts its own supervisor, which reports the error
        _waiting.append(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
        )
    try:
        yield
    finally:
        while _waiting:
            unused = _waiting.pop()
            assert unused.stdin is not None, "it is a pipe"
            unused.kill()
            unused.stdin.close()
            unused.wait()


def _supervisor(folder: Path, module: str, environment: dict[str, str]) -> subprocess.Popen:
    """Start a supervisor process for the run folder in a new session, its output appended to the run's log; uses a
    preloaded process if one waits.
    """
    while _waiting and module == SUPERVISORS[0]:
        waiting = _waiting.pop()
        assert waiting.stdin is not None, "it is a pipe"
        with contextlib.suppress(BrokenPipeError), waiting.stdin:
            waiting.stdin.write(os.fsencode(folder.resolve()))
            return waiting
    with open(folder / LOG, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )


def _write_supervisor_process(folder: Path, pid: int) -> None:
    """Write the process of the supervisor into the progress, unless the supervisor has written its own."""
    with (
        contextlib.suppress(RunError),
        lock_run_folder(folder, SECONDS_HAND_OVER),
    ):  # held by the supervisor: its progress is its own
        begun = read_progress(folder)
        if begun.state == "starting":
            begun.pid = pid
            write_progress(folder, begun)


def _is_starting(folder: Path) -> bool:
    """Return whether a supervisor was started and has not taken the lock yet; a dead one is not starting."""
    try:
        begun = read_progress(folder)
    except RunError:
        return False
    return begun.state == "starting" and begun.alive


def _is_over(folder: Path) -> bool:
    """Return whether the run in a folder has ended; False if there is none."""
    try:
        return read_progress(folder).over
    except RunError:  # a damaged file says nothing of whoever holds the lock
        return False


def stop_run(folder: str | Path) -> None:
    """Ask the run to stop: the trial at work ends within a second, its row says stopped, finished rows stay."""
    (Path(folder) / STOP).touch()


def watch_progress(folder: str | Path, seconds_between: float = 0.2) -> Iterator[Progress]:
    """Yield the progress of a run every `seconds_between` seconds until the run is over; the last item is the final
    state.
    """
    while True:
        progress = read_progress(folder)
        yield progress
        if progress.over:
            return
        time.sleep(seconds_between)


# Run folder of a sweep: one folder has one sweep at a time, and rows of others in it are not shown.


def result_identity(spec: "Spec") -> dict[str, Any]:
    """Return the parts of a spec that determine its results: all but name, description and order of measuring."""
    axes = {axis: frozenset(values) for axis, values in spec.axes.items()}
    candidates = frozenset(frozenset(candidate.items()) for candidate in spec.candidates)
    return spec.model_dump(exclude={"name", "description"}) | {"axes": axes, "candidates": candidates}


def matches_spec(folder: Path, spec: "Spec") -> bool:
    """Return whether the run in `folder` belongs to this sweep; False if its spec cannot be read."""
    try:
        return result_identity(read_spec(folder)) == result_identity(spec)
    except RunError:
        return False


def read_all_records(folder: Path) -> list[dict[str, Any]]:
    """Return all records in a run folder, including records of earlier specs; empty if there is no file."""
    return store.read(folder) if (folder / store.FILE).exists() else []


def find_runs(name: str, root: Path = ROOT) -> list[Path]:
    """Return the runs with this name under `root`, newest first; unreadable ones are left out."""
    return [folder for folder in list_runs(root) if _name_of(folder) == name]


def _name_of(folder: Path) -> str:
    """Return the name of the run in a folder; "" if there is none."""
    try:
        return read_progress(folder).name
    except RunError:
        return ""


def replaced_records_warning(folder: Path, spec: "Spec") -> str:
    """Return a warning if `folder` has records of another sweep that will no longer be shown; "" if not."""
    from workbench.analysis import formatting
    from workbench.sweeps.schedule import Schedule

    rows = read_all_records(folder)
    if matches_spec(folder, spec):
        return _without_content(folder, rows)
    if not rows:
        return ""
    taken = Schedule.of(spec, rows).reused
    answer = f"{formatting.format_count(taken, 'trial')} of them answer" if taken else "none of them answers"
    return (
        f"{folder} has {formatting.format_count(len(rows), 'row')} of another sweep: {answer} this one; the "
        f"others stay in "
        f"{store.FILE} and are shown no more. --run names another folder."
    )


def _without_content(folder: Path, rows: list[dict[str, Any]]) -> str:
    """Return the note on records that do not state the content of their files, or ""."""
    from workbench.analysis import formatting

    count = sum(row["path"] is not None and row["content"] is None for row in rows)
    if not count:
        return ""
    verbs = ("does", "its file was", "it stays", "is") if count == 1 else ("do", "their files was", "they stay", "are")
    return (
        f"{folder} has {formatting.format_count(count, 'row')} that {verbs[0]} not say which content of "
        f"{verbs[1]} measured: "
        f"{verbs[2]} in {store.FILE} and {verbs[3]} measured anew."
    )


def _has_rows(folder: Path) -> bool:
    """Return whether a run folder has records."""
    path = folder / store.FILE
    return path.exists() and path.stat().st_size > 0


def require_no_active_sweep(folder: Path) -> None:
    """Raise RunError if another run than `folder` is active, since the trials of two sweeps disturb each other."""
    folder = folder.resolve()
    for other in list_runs(folder.parent):
        if other.resolve() != folder and _is_alive(other):
            raise RunError(
                f"{other.name} is running, and two sweeps at once disturb each other. Wait for it, or stop it first: "
                f"workbench stop {other.name}"
            )


def _is_alive(folder: Path) -> bool:
    """Return whether the run in a folder is going on."""
    try:
        return read_progress(folder).alive
    except RunError:
        return False


def resolve_run_folder(spec: "Spec", folder: Path, reused: int) -> Path:
    """Return the folder to start a sweep in: `folder`, or another one if it holds records of another sweep."""
    if reused or not _has_rows(folder) or matches_spec(folder, spec):
        return folder
    root, number = folder.parent, 2
    same = (run for run in find_runs(spec.name, root) if matches_spec(run, spec))
    while (root / f"{spec.name}-{number}").exists():
        number += 1
    return next(same, root / f"{spec.name}-{number}")


def __getattr__(name: str) -> Any:
    """Return what a former name stands for, with a FutureWarning."""
    return aliases.find(__name__, name)
