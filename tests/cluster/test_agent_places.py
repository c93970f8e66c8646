"""Sweeps whose agents are processes of the system: on this machine, behind ssh, and without their supervisor."""

import os
import shlex
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.cluster.test_agents import COMPARISONS, SPEC, agent, run, whole
from tests.support.clocks import SECONDS, until
from tests.support.tiny_sweeps import finish, spec_of, trial_row
from workbench import store
from workbench.cluster import link
from workbench.sweep import places, run_folder
from workbench.sweep.schedule import Schedule


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr(link, "SECONDS_END", 5.0)
    monkeypatch.setattr(link, "SECONDS_SILENT", 2 * SECONDS)


def ssh(folder: Path, monkeypatch, command: str) -> None:
    """Put a program ssh before all others, which runs a command of the shell: `$host`, `$remote`."""
    folder.mkdir()
    script = folder / "ssh"
    options = 'while [ "$1" = -o ]; do shift 2; done; host=$1; remote=$2'
    script.write_text(f"#!/bin/sh\n{options}\necho $$ > {folder}/pid-$host\n{command}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or has ended and nobody asks how."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_agents_behind_ssh_get_their_command_through_a_shell(tmp_path, monkeypatch):
    ssh(tmp_path / "bin", monkeypatch, 'exec sh -c "$remote"')
    a_path = "a b;c $HOME"
    state, rows = run(tmp_path / "run", *places.places("ssh:n1,me@n2", agent(a_path).command))
    assert state.state == "finished", state.message
    assert {row["machine"] for row in rows} == {a_path}
    assert all(whole(rows, one) for one in COMPARISONS)
    assert {path.name for path in (tmp_path / "run").glob("log-*")} == {"log-n1.txt", "log-me-n2.txt"}


def test_without_its_supervisor_no_agent_stays_and_a_resume_does_the_rest(tmp_path, monkeypatch):
    fake = shlex.join(agent("MACHINE", "gives no row", 3).command).replace("MACHINE", '"$host"')
    ssh(tmp_path / "bin", monkeypatch, f"exec {fake}")
    folder = run_folder.start(SPEC, tmp_path / "run", cluster="ssh:a,b")
    until(lambda: (folder / store.FILE).exists() and len(run_folder.rows(folder)) == 6)
    os.kill(run_folder.read(folder).pid, signal.SIGKILL)
    before = run_folder.rows(folder)
    for host in ("a", "b"):
        until(lambda host=host: has_ended(int((tmp_path / "bin" / f"pid-{host}").read_text())))
    state, rows = run(folder, agent("a"), agent("b"))
    assert state.state == "finished"
    assert [row for row in rows if row in before] == before
    assert all(whole(rows, one) for one in COMPARISONS)
    assert max(Counter((row["key"], row["machine"], row["round"]) for row in rows).values()) == 1


def test_two_agents_here_measure_what_one_process_measures(tmp_path):
    """Real trials, few and short: all cells with the numbers of a trial here, each comparison whole."""
    spec = spec_of(density=[0.05, 0.5])
    folder = run_folder.start(spec, tmp_path / "two", cluster="local:2")
    alone = {key: trial_row(**cell.model_dump()) for key, cell in Schedule.of(spec, []).cells.items()}
    state = finish(folder)
    assert (state.state, state.message) == ("finished", "")
    rows = {(row["key"], row["round"]): row for row in run_folder.rows(folder)}
    assert rows.keys() == {(key, 0) for key in alone}
    for (key, _), row in rows.items():
        same = ("status", "loss_first", "loss_last", "bytes_held", "density_measured")
        assert [row[name] for name in same] == [alone[key][name] for name in same]
    assert {path.name for path in folder.glob("log-*")} == {"log-local-1.txt", "log-local-2.txt"}
