"""Starts of sweeps into one folder: one has it, the next is refused before anything is written, a dead one is not."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.tiny_sweeps import spec_of
from workbench.sweeps import run_folder
from workbench.sweeps.run_folder import RunError


@pytest.fixture
def started(monkeypatch) -> list[Path]:
    """Folders of the supervisors that were started; each is a process that does nothing: the one of the tests."""
    folders: list[Path] = []

    def begin(command, **_):
        folders.append(Path(command[-1]))
        return SimpleNamespace(pid=os.getpid(), wait=lambda: 0)

    fake = SimpleNamespace(Popen=begin, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(run_folder, "subprocess", fake)
    return folders


def ended_process() -> int:
    """The number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_second_start_before_the_first_holds_the_lock_is_refused_and_changes_nothing(tmp_path, started):
    folder = run_folder.start_run(spec_of("first"), tmp_path / "run")
    run_folder.stop_run(folder)
    with pytest.raises(
        RunError, match=r"run is in use by another sweep; wait for it, or stop it first: workbench stop"
    ):
        run_folder.start_run(spec_of("second"), folder)
    assert run_folder.read_spec(folder).name == run_folder.read_progress(folder).name == "first"
    assert (folder / run_folder.STOP).exists()
    assert len(started) == 1


def test_of_many_starts_at_once_one_is_accepted(tmp_path, started):
    def begin(number: int) -> bool:
        try:
            return bool(run_folder.start_run(spec_of(f"sweep-{number}"), tmp_path / "run"))
        except RunError:
            return False

    with ThreadPoolExecutor(8) as pool:
        accepted = [number for number, is_accepted in enumerate(pool.map(begin, range(16))) if is_accepted]
    assert len(accepted) == len(started) == 1
    assert run_folder.read_spec(tmp_path / "run").name == f"sweep-{accepted[0]}"


def test_a_folder_whose_supervisor_died_before_it_held_the_lock_is_taken_over(tmp_path, started, monkeypatch):
    dead = SimpleNamespace(pid=ended_process(), wait=lambda: 1)
    monkeypatch.setattr(run_folder.subprocess, "Popen", lambda command, **_: dead)
    folder = run_folder.start_run(spec_of("first"), tmp_path / "run")
    assert run_folder.read_progress(folder).state == "failed"
    run_folder.start_run(spec_of("second"), folder)
    assert run_folder.read_spec(folder).name == "second"


def test_a_process_that_cannot_be_started_leaves_the_folder_free(tmp_path, started, monkeypatch):
    def refuse(command, **_):
        raise OSError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.subprocess, "Popen", refuse)
        with pytest.raises(OSError, match="temporarily"):
            run_folder.start_run(spec_of("first"), tmp_path / "run")
    state = run_folder.read_progress(tmp_path / "run")
    assert (state.state, "could not be started" in state.message) == ("failed", True)
    run_folder.start_run(spec_of("second"), tmp_path / "run")
    assert len(started) == 1


def test_the_time_that_a_start_took_counts_until_the_supervisor_writes(tmp_path, started):
    folder = run_folder.start_run(spec_of(), tmp_path / "run")
    assert run_folder.seconds_since_start(folder) > 0
    run_folder.write_progress(folder, run_folder.Progress("tiny", pid=os.getpid(), stage="planning"))
    assert run_folder.seconds_since_start(folder) == 0
