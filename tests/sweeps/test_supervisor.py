"""Supervisors when the world is against them: trials killed, disks full, progress files damaged."""

import dataclasses
import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.support.clocks import until
from tests.support.processes import deaf_starter, grandchildren
from tests.support.sweeps import swept
from tests.support.tiny_sweeps import QUICK, TINY, finish, spec_of
from workbench import atomic_files, store
from workbench.command import running
from workbench.sweeps import run_folder, runner
from workbench.sweeps.schedule import Task
from workbench.sweeps.spec import Configuration

SLOW = {**QUICK, "trial_seconds": 60.0, "samples_most": 10**9}


def child_at_work(folder, other_than: int = 0) -> psutil.Process:
    """The process of the trial that the run is at."""

    def found() -> psutil.Process | None:
        state = run_folder.read_progress(folder)
        trials = grandchildren(state.pid) if state.stage == "measuring" else []  # the fork server's children
        return trials[0] if trials and trials[0].pid != other_than else None

    return until(found)


def test_a_trial_killed_from_outside_has_failed_and_a_supervisor_that_is_terminated_stops_as_when_asked(tmp_path):
    """Also where whoever started it ignores and blocks signals, which a process begins with."""
    with deaf_starter():
        folder = run_folder.start_run(spec_of(measure=SLOW), tmp_path / "run")
    killed = child_at_work(folder)
    killed.kill()
    until(lambda: not psutil.pid_exists(killed.pid))  # its end has been told to the supervisor
    child_at_work(folder, other_than=killed.pid)
    os.kill(run_folder.read_progress(folder).pid, signal.SIGTERM)
    assert finish(folder).state == "stopped"
    failed, stopped = sorted(run_folder.read_current_records(folder), key=lambda row: row["status"])
    assert (failed["status"], failed["reason"]) == ("failed", "The process was killed from outside by SIGKILL.")
    assert stopped["status"] == "stopped"
    assert swept(spec_of(), folder).counts == {"ok": 2}


def test_a_run_has_the_process_of_its_supervisor_from_its_start(tmp_path):
    folder = run_folder.start_run(spec_of(measure=SLOW), tmp_path / "run")
    begun = run_folder.read_progress(folder)
    assert (begun.state, begun.stage) == ("starting", "")
    child_at_work(folder)
    assert folder.resolve() in set(running._active_folders())
    assert run_folder.read_progress(folder).pid == begun.pid
    run_folder.stop_run(folder)
    assert finish(folder).state == "stopped"


def test_an_interrupt_while_a_run_starts_stops_it(tmp_path):
    folder = run_folder.start_run(spec_of(measure=SLOW), tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), run_folder.stopped_by_interrupt(folder):
        raise KeyboardInterrupt
    assert finish(folder).state == "stopped"


def test_stages_are_told_as_they_begin_and_a_trial_that_ends_in_one_has_failed(tmp_path, monkeypatch):
    messages = []
    enter = runner.Supervisor.enter

    def heard(supervisor, stage):
        enter(supervisor, stage)
        messages.append(run_folder.read_progress(supervisor.folder).now.partition(", ")[0])

    monkeypatch.setattr(runner.Supervisor, "enter", heard)
    state = swept(spec_of(candidates=({},), density=[0.1]), tmp_path / "run")
    line = "sparse"
    assert messages == [
        f"starting: {line}",
        f"compiling: {line}",
        f"preparing data: {line}",
        f"measuring round 1 of 1: {line}",
    ]
    assert (state.state, state.now) == ("finished", "")
    cut = runner.Supervisor(spec_of(), tmp_path / "run", work="tests.support.children:a_stage_alone")
    row = cut.try_once(Task(Configuration(**TINY), "key", 0))
    assert (row["status"], row["reason"]) == ("failed", "The process ended with status 0 before it had answered.")


def test_a_trial_is_not_ended_while_it_compiles_and_what_that_took_is_apart(tmp_path):
    spec = spec_of(limits={"seconds_cell": 0.2})
    supervisor = runner.Supervisor(spec, tmp_path, work="tests.support.children:compiles_long")
    row = supervisor.try_once(Task(Configuration(**TINY), "key", 0))
    assert (row["status"], row["reason"]) == ("ok", "compiled")
    assert supervisor.state.seconds_compiled == 0.5
    assert row["seconds_overhead"] == supervisor.budget._lasted["key"] - 0.25, "what later trials are expected to take"
    waits = runner.Supervisor(spec, tmp_path, work="tests.support.children:waits_after_compiling")
    assert (
        waits.try_once(Task(Configuration(**TINY), "key", 0))["reason"] == "It took longer than seconds_cell = 0.2 s."
    )


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from workbench.sweeps import runner
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
sys.exit(runner.supervise(Path(sys.argv[1])))
"""


def test_a_full_disk_is_named_and_what_was_measured_stays(tmp_path):
    folder = tmp_path / "run"
    swept(spec_of(candidates=({},), density=[0.1]), folder)
    rows = (folder / store.FILE).read_bytes()
    more = spec_of(candidates=({},), density=[0.1, 0.2])
    atomic_files.write(folder / run_folder.SPEC, more.model_dump_json())
    size = len(rows) + 100
    assert size > 2000, "which is room for all the other files"
    end = subprocess.run(
        [sys.executable, "-c", FULL_DISK, folder, str(size)], capture_output=True, text=True, check=False
    )
    state = run_folder.read_progress(folder)
    assert (end.returncode, state.state) == (1, "failed")
    assert state.message.startswith(f"File too large, the row is lost: {folder / store.FILE}. Fix that and start")
    assert (folder / store.FILE).read_bytes() == rows
    assert swept(more, folder).counts == {"ok": 1}


def test_progress_is_written_in_place_where_there_is_no_room_for_another_file(tmp_path, monkeypatch):
    progress = run_folder.Progress("x", state="running", pid=os.getpid(), current="a cell with a long name " * 9)
    run_folder.write_progress(tmp_path, progress)

    def full(path, text):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(atomic_files, "write", full)
    run_folder.write_progress(
        tmp_path, dataclasses.replace(progress, state="failed", current="", message="No space left")
    )
    state = run_folder.read_progress(tmp_path)
    assert (state.state, state.current, state.message) == ("failed", "", "No space left")
    with pytest.raises(OSError, match="No space left"):
        run_folder.write_progress(tmp_path / "elsewhere", progress)


def test_a_file_that_could_not_be_written_leaves_no_part_of_itself(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        atomic_files.write(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_supervisor_whose_process_is_gone_is_dead_at_once_and_its_last_words_are_told(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    run_folder.write_progress(tmp_path, run_folder.Progress("x", state="running", pid=ended.pid))
    assert "The supervisor died; start" in run_folder.read_progress(tmp_path).message
    (tmp_path / run_folder.LOG).write_text("first\nImportError: no numba\n")
    assert "died, and its log ends with 'ImportError: no numba'; start" in run_folder.read_progress(tmp_path).message
    run_folder.write_progress(
        tmp_path, run_folder.Progress("x", state="running", pid=ended.pid, host="another machine")
    )
    assert run_folder.read_progress(tmp_path).alive


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x", "unheard": 1}'])
def test_a_damaged_progress_file_is_an_error_that_says_what_to_do(tmp_path, text):
    (tmp_path / run_folder.PROGRESS).write_text(text)
    with pytest.raises(run_folder.RunError, match=r"is damaged .* start the sweep again, its rows are kept"):
        run_folder.read_progress(tmp_path)
