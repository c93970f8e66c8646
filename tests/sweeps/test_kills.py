"""kill -9 of a supervisor at any moment: no finished row is lost or measured again, and resume does the rest."""

import contextlib
import os
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.clocks import until
from tests.support.processes import is_gone
from tests.support.sweeps import swept
from tests.support.tiny_sweeps import QUICK, spec_of
from workbench import atomic_files, store
from workbench.measure import child, machine
from workbench.sweeps import run_folder, runner
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import dump_spec
from workbench.sweeps.trial import settings_of

SPEC = spec_of(density=[0.05, 0.1, 0.3], measure={**QUICK, "rounds": 2})
TOTAL = 2 * 2 * 3


def seen_in(folder: Path, before: dict) -> dict:
    """The rows there are by key and round, with what tells one measured anew; none of `before` is gone or another."""
    rows = {
        (row["key"], row["round"]): (row["time"], row["seconds_step"])
        for row in run_folder.read_current_records(folder)
    }
    assert before.items() <= rows.items(), "a finished row was lost or measured again"
    return rows


def assert_rest_is_done(folder: Path, state: run_folder.Progress, seen: dict, kills: int) -> None:
    """All rounds are there; a kill cuts a round, which is measured anew as a whole."""
    rows = run_folder.read_current_records(folder)
    rounds = Counter((row["density"], row["round"]) for row in rows)
    cut = sum(count == 1 for count in rounds.values())
    assert cut <= kills
    assert len(rows) == len({(row["key"], row["round"]) for row in rows}) == TOTAL + cut
    assert {row["status"] for row in rows} == {"ok"}
    assert (state.state, state.total, state.done) == ("finished", TOTAL + cut, TOTAL + cut)
    assert len(seen) - cut <= state.reused <= len(seen)


def write_in_two(path: Path, text: str, encoding: str) -> None:
    with open(path, "w", encoding=encoding) as file:
        file.write(text[:20])
        file.flush()
        sys.audit("tests.moment")
        file.write(text[20:])


@pytest.fixture
def instant(monkeypatch):
    """Trials that take no time and no process: only what the supervisor itself does is left to be killed in."""

    def try_once(supervisor, task):
        sys.audit("tests.moment")
        known = {"key": task.key, "round": task.round, "run": "run", "status": "ok", "busy_others": 0.0}
        return store.new_row(**settings_of(task.configuration) | known, seconds_step=time.perf_counter())

    monkeypatch.setattr(runner.Supervisor, "try_once", try_once)
    monkeypatch.setattr(child, "can_alternate", lambda: False)
    monkeypatch.setattr(runner.child, "fork_server", lambda *_: None)
    monkeypatch.setattr(machine, "describe_machine", dict)
    monkeypatch.setattr(Path, "write_text", write_in_two)
    Schedule.of(SPEC, [])  # reads the code that keys are made of; forks have it then


def in_a_fork(work: Callable[[], int]) -> int:
    """How a fork of this process ended that did the work, as `os.waitpid` tells it; what it prints is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads: this one runs nothing on them
        pid = os.fork()
    if pid == 0:
        status = 70
        try:
            with open(os.devnull, "w", encoding="utf-8") as nowhere:
                sys.stdout = sys.stderr = nowhere
                status = work()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def killed_at(moment: int, folder: Path) -> bool:
    """Supervise in a fork that kills itself before it opens or renames a file of the folder, in the middle of writing
    one, or before a trial, whichever is the `moment`-th of all; whether it came to that.
    """
    left = moment

    def count(event: str, arguments: tuple) -> None:
        nonlocal left
        if event == "tests.moment" or (event in ("open", "os.rename") and str(arguments[0]).startswith(str(folder))):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def supervise() -> int:
        sys.addaudithook(count)
        return runner.supervise(folder)

    status = in_a_fork(supervise)
    assert status in (0, signal.SIGKILL), status
    return status != 0


def planned(folder: Path, spec) -> Path:
    """The folder with what a supervisor needs to start."""
    folder.mkdir(exist_ok=True)
    atomic_files.write(folder / run_folder.SPEC, dump_spec(spec))
    run_folder.write_progress(folder, run_folder.Progress(spec.name))
    return folder


def test_kill_9_before_any_access_to_a_file_loses_no_finished_row_and_resume_does_the_rest(tmp_path, instant):
    """Before the first, then of what a resume does before the second, and so on, until one comes to its end."""
    folder, seen, kills = planned(tmp_path / "run", SPEC), {}, 0
    while killed_at(kills + 1, folder):
        kills += 1
        assert run_folder.read_progress(folder).state in ("starting", "failed")
        seen = seen_in(folder, seen)
    assert_rest_is_done(folder, run_folder.read_progress(folder), seen, kills)
    assert kills > 20, "accesses: some ten of a start, and of each trial"


def children_of(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def killed_at_work(root: Path) -> tuple[Path, list[int]]:
    """The folder of a run whose supervisor was killed before it was done, and the processes that it had started."""
    for attempt in range(9):  # where this process is held up, the other may be done before it is killed
        folder = run_folder.start_run(SPEC, root / f"run {attempt}")
        pid = wait_until_a_row_is_done(folder)
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            orphans = children_of(pid)
            os.kill(pid, signal.SIGKILL)
        wait_until_free(folder)
        if len(run_folder.read_current_records(folder)) < TOTAL:
            return folder, orphans
    raise AssertionError("It was done before it was killed, each time.")


def test_kill_9_of_a_supervisor_ends_its_trial_frees_its_folder_and_resume_does_the_rest(tmp_path):
    folder, orphans = killed_at_work(tmp_path)
    seen = seen_in(folder, {})
    assert 0 < len(seen) < TOTAL
    assert_rest_is_done(folder, swept(SPEC, folder), seen, kills=1)
    seen_in(folder, seen)
    assert orphans
    until(lambda: all(is_gone(pid) for pid in orphans))  # no trial outlives its supervisor


def wait_until_a_row_is_done(folder: Path) -> int:
    """Until the supervisor that was just started is at a trial after the first, or over; returns its pid."""

    def pid() -> int:
        state = run_folder.read_progress(folder)
        assert state.state in ("starting", "running", "finished"), state
        return state.pid if state.done and (state.current or state.over) else 0

    return until(pid)


def wait_until_free(folder: Path) -> None:
    """Until the lock of a dead supervisor is freed."""

    def is_free() -> bool:
        try:
            with run_folder.lock_run_folder(folder):
                return True
        except run_folder.RunError:
            return False

    until(is_free)
