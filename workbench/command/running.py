"""Runs at work and how to stop them: sweeps by their folders under `runs`, and those at work elsewhere."""

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

from kernels.registry import format_count
from workbench.command.console import make_table
from workbench.option_text import on_command_line
from workbench.sweeps import run_folder
from workbench.sweeps.progress import Progress, format_duration
from workbench.sweeps.run_folder import NoRunError, RunError

SECONDS_STOP = 60.0
"""How long to wait for a sweep to have stopped; its trial ends within a second, where no disk holds it up."""

BELOW = "\n           "
"""Between lines of what several machines do, each below the first."""

DEEPEST = 3
"""Folders below the root in which a run is looked for: the demo has two runs in a folder of its own."""


@dataclass(frozen=True)
class Run:
    """A run and how far it is."""

    folder: Path
    progress: Progress


def find(root: Path = run_folder.ROOT) -> list[Run]:
    """Return the runs up to `DEEPEST` folders below `root`, and those running anywhere on this machine.

    Running ones first, then the most recent.
    """
    patterns = ("/".join(["*"] * depth + [run_folder.PROGRESS]) for depth in range(1, DEEPEST + 1))
    folders = {path.parent.resolve() for pattern in patterns for path in root.glob(pattern)} | set(_active_folders())
    known = [run for folder in folders if (run := _read(folder))]
    return sorted(known, key=lambda run: (run.progress.alive, run.progress.heartbeat), reverse=True)


def _read(folder: Path) -> Run | None:
    """Return the run in a folder, by its path from the working directory if it lies below; None if it was deleted."""
    try:
        return Run(_from_here(folder), run_folder.read_progress_or_failure(folder))
    except NoRunError:  # it was deleted meanwhile
        return None


def _active_folders() -> Iterable[Path]:
    """Yield the run folders of all supervisor processes of this machine, from their command lines."""
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if len(line) == 4 and line[1] == "-m" and line[2] in run_folder.SUPERVISORS:
            yield Path(line[3])


def choose(name: str, root: Path = run_folder.ROOT) -> Run:
    """Return the run in the folder `name`, or of that name below `root`; NoRunError lists the runs there are."""
    if (Path(name) / run_folder.PROGRESS).exists():
        return Run(Path(name), run_folder.read_progress(name))
    runs = find(root)
    for run in runs:
        if name in (str(run.folder), run.folder.name):
            return run
    known = ", ".join(str(run.folder) for run in runs)
    expected = (
        f"Expected one of: {known}." if known else f"There are no runs under {root}; name their folder by --root."
    )
    raise NoRunError(f"There is no run {name!r}. {expected}")


def table(runs: Sequence[Run]) -> Table:
    """Return a table with a line for each run: name, state, trials done and in all, time left, process, folder."""
    rows, styles = [], []
    for run in runs:
        state = run.progress
        left = format_duration(state.seconds_left) if state.alive and state.seconds_left else "-"
        pid = str(state.pid) if state.alive else "-"
        trials = f"{state.done} of {state.total}" if state.total else "-"
        rows.append((state.name, state.state, trials, left, pid, str(run.folder)))
        styles.append({"failed": "red", "running": "green", "starting": "green"}.get(state.state))
    columns = ("name", "state", "trials", "time left", "pid", "folder")
    return make_table(columns, rows, styles=styles, right=("trials", "pid"))


def lines(run: Run) -> list[str]:
    """Return lines of text about a run: message, what it does now, records by status, and what to type next."""
    state = run.progress
    counts = ", ".join(f"{count} {status}" for status, count in sorted(state.counts.items()))
    doing = [*filter(None, [state.current]), *state.by_agent] if state.alive else []
    at_work = f"Running: {BELOW.join(doing)}" if doing else ""
    now = f"Now: {state.now}" if state.alive and state.stage else ""
    reused = f"Done before: {format_count(state.reused, 'trial')}" if state.reused else ""
    stop = f"Stop it with: {_command('stop', run.folder)}" if state.alive else ""
    report = f"Its report: {_command('report', run.folder)}" if state.state == "finished" else ""
    is_cut = state.state != "finished" or state.done < state.total  # a finished run with trials left was out of budget
    go_on = f"Go on with: {command_to_go_on(run.folder)}" if is_cut and not state.alive else ""
    records = f"Records: {counts}" if counts else ""
    return [line for line in (state.message, now, at_work, records, reused, stop, report, go_on) if line]


OF_ADVICE = ("dataset", "labels", "columns", "kind", "model", "optimizer")
"""Settings of a run of advice that were given, or guessed, when it was asked for."""


def command_to_go_on(folder: Path) -> str:
    """Return the command that goes on with the run in a folder: `advise` of what advice began, else `sweep`."""
    with contextlib.suppress(RunError):  # `sweep` says what is wrong with the spec
        if (folder / run_folder.PREDICTED).exists():
            return _advise_command(folder, run_folder.read_axes(folder))
    where = ("--cluster", cluster) if (cluster := run_folder.read_cluster_option(folder)) else ()
    return _command("sweep", folder / run_folder.SPEC, "--run", folder, *where)


def _advise_command(folder: Path, axes: Mapping[str, Sequence[Any]]) -> str:
    """Return the command `advise` of the run in a folder, of whose spec these are the axes."""
    values = {name: some[0] for name, some in axes.items()}
    path = values.get("path")
    given = {name: values[name] for name in OF_ADVICE if values.get(name) and (path or name != "dataset")}
    options = on_command_line(given | dict(values.get("reading") or {}))
    return (
        f"{_command('advise', _from_here(Path(path or values['dataset'])))} {options} --run {shlex.quote(str(folder))}"
    )


def _from_here(path: Path) -> Path:
    """Return the path as it is typed in the working directory."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _command(*words: str | Path) -> str:
    """Return a command line of `workbench`, quoted for a shell."""
    return shlex.join(["workbench", *map(str, words)])


def to_stop(name: str | None, every: bool, root: Path = run_folder.ROOT) -> list[Run]:
    """Return the running runs that are meant: that named, with `every` all, else the only one.

    RunError if none runs, NoRunError if it is unclear which of several is meant.
    """
    if name is not None and every:
        raise NoRunError("Name a run, or give --all; not both.")
    chosen = [choose(name, root)] if name is not None else find(root)
    at_work = [run for run in chosen if run.progress.alive]
    if name is not None and not at_work:
        raise RunError(f"{chosen[0].folder} is not running: it is {chosen[0].progress.state}.")
    if not at_work:
        raise RunError(f"No sweep is running under {root} or elsewhere.")
    if name is None and not every and len(at_work) > 1:
        names = ", ".join(str(run.folder) for run in at_work)
        raise NoRunError(f"Several sweeps are running: {names}. Name one of them, or give --all.")
    return at_work


def stop(run: Run, seconds: float = SECONDS_STOP) -> Progress:
    """Ask a run to stop and wait up to `seconds` until it has; return its final progress.

    If its folder cannot be written, SIGTERM is sent to its process here. RunError, with what to do, if it does not
    stop.
    """
    try:
        run_folder.stop_run(run.folder)
    except OSError as error:  # no room for the file that asks; the signal asks, too
        if not run.progress.is_here:  # that number is another process here, or none: 0 is this one and its neighbours
            raise RunError(
                f"{run_folder.system_error_text(error)}. Make room there, and stop {run.folder} again."
            ) from None
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(run.progress.pid, signal.SIGTERM)
    end = time.monotonic() + seconds
    for progress in run_folder.watch_progress(run.folder):
        if progress.over:
            return progress
        if time.monotonic() > end:
            break
    raise RunError(
        f"{run.folder} was asked to stop and is still running after {seconds:g} s. "
        f"End its process with: kill -9 {progress.pid}. Its rows stay."
    )
