"""A run folder: what is in it, how far it is, how to stop it. Panels, the command line and papermill only read it.

What reads the state of a run alone imports neither specs nor analysis: `workbench status` answers at once.

Files: `spec.json`; `plan.json` (keys of the configurations, what was dropped and why); `machine.json`; `trials.jsonl`
(the rows, append-only); `progress.json` (replaced as a whole, at least once a second while the run lives); `log.txt`
(what the supervisor printed); `identity` (what its rows name as their run);
`predicted.json` (what advice expects of configurations that it has not measured); `stop` (present when somebody
asked it to stop); `lock` (held by the supervisor). Of a run on several machines: `cluster` (the scheduler's address), a
`log-NAME.txt` each.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from workbench import atomic_files, store
from workbench.json_text import are_texts, check_fields, is_whole, parsed
from workbench.sweeps.progress import SECONDS_SILENT, Progress, parse

if TYPE_CHECKING:
    from workbench.sweeps.spec import Spec

# The file `plan.json` of a run folder: keys of the configurations, and how many combinations were left out for which
# reason.


PLAN = "plan.json"


def read_plan(folder: Path) -> dict[str, Any] | None:
    """Read the plan of a run from `folder`/plan.json: {"keys": configuration keys, "dropped": {reason: count}}.

    None if the file is absent, or damaged: then a warning names the file and the damage.
    """
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        plan = parsed(path.read_text(encoding="utf-8"))
        are_counts = lambda counts: isinstance(counts, dict) and all(map(is_whole, counts.values()))  # noqa: E731
        check_fields(plan, {"keys": (are_texts, "a list of texts"), "dropped": (are_counts, "counts by reason")})
        return plan
    except ValueError as error:
        reason = str(error)
    text = "all rows of its folder are shown. Start the sweep again to write it anew"
    warnings.warn(f"{path} is damaged ({reason}); {text}.", stacklevel=3)
    return None


ROOT = Path("runs")
PREDICTED = "predicted.json"
"""Predicted columns of the configurations that were asked about, of which not all may have been measured."""
SPEC, MACHINE, LOG, PROGRESS = "spec.json", "machine.json", "log.txt", "progress.json"
STOP, IDENTITY, CLUSTER = "stop", "identity", "cluster"
LOCAL = "local"
"""Stands for a Dask cluster in the process of the supervisor, to try one."""
WATCHED = (SPEC, PLAN, PROGRESS, store.FILE)
"""Files that say how far a run is: where none of them changed, there is nothing to read."""
SUPERVISORS = ("workbench.sweeps", "workbench.cluster")
"""What supervises a sweep on this machine alone, and one on several."""
SECONDS_HEARTBEAT = 1.0
PREPARED = "WORKBENCH_PREPARED"
"""The variable that tells a supervisor that its environment is the one to measure in."""


class RunError(RuntimeError):
    """A run folder that is not one, or is in use; the message says what to do."""


class NoRunError(RunError, LookupError):
    """Unknown run; the message lists those there are."""


def write_progress(folder: Path, progress: Progress) -> None:
    """Replace the progress file of the run in `folder`, setting `progress.heartbeat` to the current time.

    If that fails, for example on a full disk, an existing file is overwritten in place; without one OSError is raised.
    """
    progress.heartbeat = time.time()
    path, text = folder / PROGRESS, json.dumps(asdict(progress))
    try:
        atomic_files.write(path, text)
    except OSError:
        if not path.exists():
            raise
        handle = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(handle, text.encode().ljust(path.stat().st_size), 0)  # blanks after JSON are no part of it
        finally:
            os.close(handle)


def system_error_text(error: OSError) -> str:
    """Return the text of a system error with the file concerned, such as "No space left on device: trials.jsonl".

    Only str(error) if the error names no file.
    """
    return f"{error.strerror}: {error.filename}" if error.strerror and error.filename else str(error)


def read_progress(folder: str | Path) -> Progress:
    """Return the progress of the run in `folder`; a run whose supervisor died has the state "failed" and a message.

    Raises NoRunError if `folder` has no progress file, naming the runs next to it, and RunError if the file is damaged.
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
    """Return the progress of the run in `folder`; if its file is damaged, one of state "failed" that says so.

    Raises NoRunError if `folder` has no progress file.
    """
    try:
        return read_progress(folder)
    except NoRunError:
        raise
    except RunError as error:
        return Progress(folder.name, "failed", message=str(error), host="")


def seconds_since_start(folder: Path) -> float:
    """Return seconds since `start_run` was called, if no supervisor has written its progress yet; else 0.0.

    0.0 also if the progress file of `folder` is absent or damaged.
    """
    try:
        begun = parse((folder / PROGRESS).read_bytes())
    except (OSError, ValueError):
        return 0.0
    return max(time.time() - begun.heartbeat, 0.0) if begun.state == "starting" and not begun.stage else 0.0


def _last_line(log: Path) -> str:
    """Return ", and its log ends with '...'", quoting the last line of the file `log`.

    "" if it is empty or unreadable.
    """
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f", and its log ends with {lines[-1].strip()!r}" if lines else ""


def run_identity(folder: Path) -> str:
    """Return the text by which records name their run, "FOLDER 2024-05-01T12:00:00+0000".

    The file `identity` in `folder` keeps it; it is written on the first call.
    """
    path = folder / IDENTITY
    if not path.exists():
        atomic_files.write(path, f"{folder.name} {time.strftime('%Y-%m-%dT%H:%M:%S%z')}")
    return path.read_text(encoding="utf-8").strip()


def read_spec(folder: str | Path) -> "Spec":
    """Return the spec that the run in `folder` was started with; RunError if it is absent, damaged or invalid."""
    from workbench.sweeps.spec import SpecError, validate_spec

    path = Path(folder) / SPEC
    try:
        return validate_spec(parsed(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, SpecError) as error:
        raise RunError(f"{folder} holds no usable {SPEC}: {error}") from None


def read_title(folder: str | Path) -> str:
    """Return the description of the run in `folder`, else its name, from its spec; RunError as of `read_spec`.

    The settings of the spec are not validated: models, data and kernels stay unimported, and records of a model that is
    no longer registered can be reported.
    """
    spec = _parsed_spec(folder)
    return spec.get("description", "") or spec["name"]


def read_axes(folder: str | Path) -> dict[str, Any]:
    """Return {setting: list of values} of the spec of a run, as it is stored, not validated; RunError if unusable."""
    axes = _parsed_spec(folder).get("axes")
    if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
        raise RunError(f"{folder} holds no usable {SPEC}: its axes are no lists of values")
    return axes


def _parsed_spec(folder: str | Path) -> dict[str, Any]:
    """Return the spec of a run folder as parsed JSON with a name and a description; RunError if it is unusable."""
    path = Path(folder) / SPEC
    try:
        spec = parsed(path.read_text(encoding="utf-8"))
        if not isinstance(spec, dict):
            raise ValueError(f"it is a {type(spec).__name__}; expected an object")
        name, description = spec.get("name"), spec.get("description", "")
        if not (isinstance(name, str) and name and isinstance(description, str)):
            raise ValueError(f"name={name!r:.40}, description={description!r:.40}; expected texts")
    except (OSError, ValueError) as error:
        raise RunError(f"{folder} holds no usable {SPEC}: {error}") from None
    return spec


def check_cluster(where: str) -> None:
    """Raise SpecError unless `where` is "local" or the address of a Dask scheduler, and Dask is installed."""
    from workbench.sweeps.spec import SpecError

    if where != LOCAL and where.partition("://")[0] not in ("tcp", "tls"):
        raise SpecError(
            f"No place to measure: {where!r}; expected {LOCAL}, or the address of a Dask scheduler, tls://HOST:PORT.\n"
            "On machines behind ssh or in SLURM start Dask first: see 'Sweeps on several machines' in the docs."
        )
    if importlib.util.find_spec("distributed") is None:
        raise SpecError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.")


def read_cluster_option(folder: str | Path) -> str:
    """Return the scheduler's address or "local" with which the run in `folder` was started.

    "" if it was started to measure on this machine alone.
    """
    path = Path(folder) / CLUSTER
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def read_current_records(folder: str | Path) -> list[dict]:
    """Return the records of a run folder that match its present spec and code; empty before the first trial ended.

    In the order stored. Of a trial that was measured again only the newest record counts. All records if there is no
    plan.
    """
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


def count_finished_trials(folder: str | Path) -> int:
    """Return the number of current records of a run folder without those of stopped trials, which are measured anew."""
    return sum(row["status"] != "stopped" for row in read_current_records(folder))


def read_answer_records(folder: str | Path) -> list[dict]:
    """Return the records of a run folder that its answer is made of: the current ones, and predictions where needed."""
    return predict_missing(folder, read_current_records(folder))


def predict_missing(folder: str | Path, rows: Sequence[Mapping[str, Any]]) -> list[dict]:
    """Return the current records of a run folder with the predictions there, where trials are missing.

    A file that is damaged predicts nothing.
    """
    path = Path(folder) / PREDICTED
    try:
        predicted = parsed(path.read_text(encoding="utf-8")) if path.exists() else []
    except ValueError:
        predicted = []
    plan = read_plan(Path(folder))
    keys = None if plan is None else set(plan["keys"])
    return with_predictions(rows, [row for row in predicted if keys is None or row["key"] in keys])


def write_predictions(folder: Path, predicted: Iterable[Mapping[str, Any]]) -> None:
    """Replace the predictions of the run in `folder` by `predicted`, columns of unmeasured configurations."""
    atomic_files.write(folder / PREDICTED, json.dumps(list(predicted)))


def with_predictions(rows: Sequence[Mapping[str, Any]], predicted: Iterable[Mapping[str, Any]]) -> list[dict]:
    """Return records with predictions where trials are missing.

    Records without a time get what they lack. If no configuration of a side, sparse or dense, has a time, those of it
    that have no record get one. `predicted` are columns of configurations that were asked about.
    """
    by_key = {row["key"]: row for row in predicted}
    timed = {row["key"]: row["status"] in ("ok", "disturbed") for row in rows}
    sides = {by_key[row["key"]]["format"] == "dense" for row in rows if timed[row["key"]] and row["key"] in by_key}
    filled = [
        dict(row)
        if row["status"] in ("ok", "disturbed")
        else {**row, **{name: value for name, value in by_key.get(row["key"], {}).items() if row[name] is None}}
        for row in rows
    ]
    return filled + [
        store.new_row(**row)
        for key, row in by_key.items()
        if key not in timed and (row["format"] == "dense") not in sides
    ]


def list_runs(root: str | Path = ROOT) -> list[Path]:
    """Return the run folders directly below `root` (those with a progress file), most recently updated first."""
    files = sorted(Path(root).glob(f"*/{PROGRESS}"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.parent for path in files]


@contextlib.contextmanager
def lock_run_folder(folder: Path, seconds_wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a run folder within the context; RunError if another process holds it.

    Waits up to `seconds_wait` seconds for it. Creates the file `lock`, which stays.
    """
    with open(folder / "lock", "w", encoding="utf-8") as file:
        end = time.monotonic() + seconds_wait
        while not _take_lock(file):
            if time.monotonic() >= end:
                raise _in_use_message(folder)
            time.sleep(0.02)
        yield


def _in_use_message(folder: Path) -> RunError:
    """Return (not raise) the RunError that says that another sweep uses the run folder, and how to stop it."""
    return RunError(f"{folder} is in use by another sweep; wait for it, or stop it first: workbench stop {folder}")


def _take_lock(file: TextIO) -> bool:
    """Lock an open file exclusively without waiting; return False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start_run(spec: "Spec", folder: str | Path | None = None, cluster: str | None = None) -> Path:
    """Start the sweep in a separate process that outlives this one; return its run folder immediately.

    `folder` defaults to runs/NAME and is created; `cluster` is the address of a Dask scheduler or "local", None without
    Dask. Removes a stop request and replaces spec and progress. Raises NoRunError if the folder is a file, RunError if
    it is in use, SpecError for another `cluster`, OSError if no process can be started.
    """
    if cluster is not None:
        check_cluster(cluster)
    folder = Path(folder) if folder is not None else ROOT / spec.name
    with begin_run(spec, folder):
        if cluster is not None:
            atomic_files.write(folder / CLUSTER, cluster)
        begun = Progress(spec.name)
        try:  # the process waits for the lock before it writes its own progress
            supervisor = _start_supervisor(folder, SUPERVISORS[cluster is not None])
            begun.pid = supervisor.pid
        except OSError as error:
            begun.state, begun.message = "failed", f"Its process could not be started: {system_error_text(error)}."
            raise
        finally:
            write_progress(folder, begun)
    threading.Thread(target=supervisor.wait, daemon=True).start()  # or a dead one stays a zombie of a long-lived kernel
    return folder


@contextlib.contextmanager
def begin_run(spec: "Spec", folder: Path) -> Iterator[None]:
    """Make the folder of a run, write its spec and hold its lock within the context; a stop request is removed.

    Raises NoRunError if the folder is a file, RunError if another run uses it.
    """
    from workbench.sweeps.spec import dump_spec

    if folder.exists() and not folder.is_dir():
        raise NoRunError(f"{folder} is a file; a run needs a folder of its own.")
    folder.mkdir(parents=True, exist_ok=True)
    before = _progress_of(folder)
    ended = before is not None and before.over
    with lock_run_folder(
        folder, SECONDS_SILENT if ended else 0.0
    ):  # one that has ended frees its lock when its process has
        if before is not None and before.state == "starting" and before.alive:  # it takes the lock a moment later
            raise _in_use_message(folder)
        (folder / STOP).unlink(missing_ok=True)
        atomic_files.write(folder / SPEC, dump_spec(spec))
        (folder / CLUSTER).unlink(missing_ok=True)
        yield


def _start_supervisor(folder: Path, module: str) -> subprocess.Popen:
    """Start the process `python -m module FOLDER` in a new session, with its output appended to the run's log."""
    from workbench.measure import environment

    with open(folder / LOG, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment.measuring_environment() | {PREPARED: "1"},
        )


def _progress_of(folder: Path) -> Progress | None:
    """Return the progress of the run in a folder; None if there is none or its file is damaged."""
    try:
        return read_progress(folder)
    except RunError:
        return None


def stop_run(folder: str | Path) -> None:
    """Ask the run in `folder` to stop, by creating its stop file; returns at once.

    The trial at work ends within a second with status "stopped"; finished records stay.
    """
    (Path(folder) / STOP).touch()


@contextlib.contextmanager
def stopped_by_interrupt(folder: Path) -> Iterator[None]:
    """Ask the run in `folder` to stop if a KeyboardInterrupt, which is raised again, ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(FileNotFoundError):  # it was not started yet
            stop_run(folder)
        raise


def watch_progress(folder: str | Path, seconds_between: float = 0.2) -> Iterator[Progress]:
    """Yield the progress of a run every `seconds_between` seconds until the run is over.

    The last item is the final one. Blocks between items. Raises NoRunError or RunError as `read_progress` does.
    """
    while True:
        progress = read_progress(folder)
        yield progress
        if progress.over:
            return
        time.sleep(seconds_between)


def watch(folder: str | Path, show: Callable[[Progress, bool], None]) -> None:
    """Call `show(progress, is_stopping)` until a run is over; Ctrl-C asks it to stop, and a second one is raised."""
    is_stopping, states = False, watch_progress(folder)
    while True:
        try:
            state = next(states, None)
            if state is None:
                return
            show(state, is_stopping)
        except KeyboardInterrupt:
            if is_stopping:
                raise
            is_stopping = True
            stop_run(folder)
            states = watch_progress(folder)


# Run folder of a sweep: one folder has one sweep at a time, and rows of others in it are not shown.


MOST = {"budget", "seconds_end"}
"""Limits of a spec that end a sweep, and change nothing of a trial: with another budget a sweep goes on."""


def result_identity(spec: "Spec") -> dict[str, Any]:
    """Return the parts of a spec that determine its results, as a dict to compare by ==.

    All but name, description and how much may be measured (`MOST`); axes and candidates are sets, since the order of
    measuring does not matter.
    """
    axes = {axis: frozenset(values) for axis, values in spec.axes.items()}
    candidates = frozenset(frozenset(candidate.items()) for candidate in spec.candidates)
    kept = spec.model_dump(exclude={"name": True, "description": True, "limits": MOST})
    return kept | {"axes": axes, "candidates": candidates}


def matches_spec(folder: Path, spec: "Spec") -> bool:
    """Return whether the run in `folder` measures the same as `spec`; False if its spec cannot be read."""
    try:
        return result_identity(read_spec(folder)) == result_identity(spec)
    except RunError:
        return False


def read_all_records(folder: Path) -> list[dict[str, Any]]:
    """Return all records in a run folder in the order stored, those of earlier specs too; empty if there is no file."""
    return store.read(folder) if (folder / store.FILE).exists() else []


def _differences(folder: Path, spec: "Spec") -> str:
    """Return the names of the settings in which the sweep in `folder` differs from `spec`; "" if it cannot be read."""
    try:
        stored, wanted = result_identity(read_spec(folder)), result_identity(spec)
    except RunError:
        return ""
    pairs: dict[str, tuple[Any, Any]] = {}
    for name, value in wanted.items():
        if isinstance(value, dict):
            pairs |= {each: (stored[name].get(each), value.get(each)) for each in {**value, **stored[name]}}
        else:
            pairs[name] = stored[name], value
    return ", ".join(name for name, (before, now) in pairs.items() if before != now)


def find_runs(name: str, root: Path = ROOT) -> list[Path]:
    """Return the run folders under `root` whose spec has this name, most recently updated first.

    Folders without a readable progress file are left out.
    """
    runs = ((folder, _progress_of(folder)) for folder in list_runs(root))
    return [folder for folder, progress in runs if progress is not None and progress.name == name]


def replaced_records_warning(folder: Path, spec: "Spec") -> str:
    """Return a sentence if `folder` has records of another sweep than `spec`, which will not be shown; "" if not."""
    from workbench.analysis import formatting
    from workbench.sweeps.schedule import Schedule

    rows = read_all_records(folder)
    if not rows or matches_spec(folder, spec):
        return ""
    taken, names = Schedule.of(spec, rows).reused, _differences(folder, spec)
    how = f", which differs in {names}" if names else ""
    answer = f"{formatting.format_count(taken, 'trial')} of them answer" if taken else "none of them answers"
    return (
        f"{folder} has {formatting.format_count(len(rows), 'row')} of another sweep{how}: {answer} this one; the "
        f"others stay in {store.FILE} and are shown no more. --run names another folder."
    )


def require_no_active_sweep(folder: Path) -> None:
    """Raise RunError if another run next to `folder` is alive, since the trials of two sweeps disturb each other."""
    folder = folder.resolve()
    for other in list_runs(folder.parent):
        progress = _progress_of(other)
        if other.resolve() != folder and progress is not None and progress.alive:
            raise RunError(
                f"{other.name} is running, and two sweeps at once disturb each other. Wait for it, or stop it first: "
                f"workbench stop {other.name}"
            )


def resolve_run_folder(spec: "Spec", folder: Path, reused: int) -> Path:
    """Return the folder to start a sweep in: `folder`, or another one if it holds records of another sweep.

    `reused` is how many of its trials the folder's records answer; with any, `folder` is kept. The other one is a run
    of the same spec under any number, or the first free "NAME-2", "NAME-3", ... Creates nothing.
    """
    records = folder / store.FILE  # which may be damaged
    if reused or not (records.exists() and records.stat().st_size) or matches_spec(folder, spec):
        return folder
    root, number = folder.parent, 2
    same = (run for run in find_runs(spec.name, root) if matches_spec(run, spec))
    while (root / f"{spec.name}-{number}").exists():
        number += 1
    return next(same, root / f"{spec.name}-{number}")
