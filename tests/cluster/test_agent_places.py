"""Sweeps whose agents are processes of the system: on this machine, behind ssh, and without their supervisor."""

import os
import shlex
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.cluster.test_agents import COMPARISONS, SPEC, agent, run, whole
from tests.support.sweeps import swept
from tests.sweep.test_sweep import _cache, finish, spec_of  # noqa: F401 - the fixture is used by being here
from workbench import store
from workbench.analysis.compare import contests
from workbench.analysis.pool import latest, records
from workbench.cluster import link
from workbench.sweep import places, run_folder

SECONDS_WAIT = 120.0
"""A limit for what comes at once on a machine that is free."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(link, "SECONDS_END", 5.0)


def ssh(folder: Path, monkeypatch, command: str) -> None:
    """Put a program ssh before all others, which runs a command of the shell: `$host`, `$remote`."""
    folder.mkdir()
    script = folder / "ssh"
    options = 'while [ "$1" = -o ]; do shift 2; done; host=$1; remote=$2'
    script.write_text(f"#!/bin/sh\n{options}\necho $$ > {folder}/pid-$host\n{command}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + SECONDS_WAIT
    while not is_so():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or has ended and nobody asks how."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_agents_behind_ssh_get_their_command_through_a_shell(tmp_path, monkeypatch):
    ssh(tmp_path / "bin", monkeypatch, 'exec sh -c "$remote"')
    a_path = "a b;c $HOME"
    monkeypatch.setattr(places, "AGENT", (*agent(a_path).command,))
    state, rows = run(tmp_path / "run", *places.places("ssh:n1,me@n2"))
    assert state.state == "finished", state.message
    assert {row["machine"] for row in rows} == {a_path}
    assert all(whole(rows, one) for one in COMPARISONS)
    assert {path.name for path in (tmp_path / "run").glob("log-*")} == {"log-n1.txt", "log-me-n2.txt"}


def test_without_its_supervisor_no_agent_stays_and_a_resume_does_the_rest(tmp_path, monkeypatch):
    fake = shlex.join(agent("MACHINE", "gives no row", 3).command).replace("MACHINE", '"$host"')
    ssh(tmp_path / "bin", monkeypatch, f"exec {fake}")
    folder = run_folder.start(SPEC, tmp_path / "run", cluster="ssh:a,b")
    wait_for(lambda: (folder / store.FILE).exists() and len(run_folder.rows(folder)) == 6)
    os.kill(run_folder.read(folder).pid, signal.SIGKILL)
    before = run_folder.rows(folder)
    for host in ("a", "b"):
        wait_for(lambda host=host: has_ended(int((tmp_path / "bin" / f"pid-{host}").read_text())))
    state, rows = run(folder, agent("a"), agent("b"))
    assert state.state == "finished"
    assert [row for row in rows if row in before] == before
    assert all(whole(rows, one) for one in COMPARISONS)
    assert max(Counter((row["key"], row["machine"], row["round"]) for row in rows).values()) == 1


def what_is_the_same(rows: list[dict]) -> set[tuple]:
    """What a trial gives again wherever and whenever it is measured."""
    same = ("key", "round", "status", "machine", "source", "loss_first", "loss_last", "quality")
    return {tuple(row[name] for name in same) for row in rows}


def test_two_agents_here_answer_what_one_process_answers(tmp_path):
    """Real trials, few and short: the same cells and statuses, each comparison by one agent, no other verdict."""
    spec = spec_of(density=[0.05, 0.5])
    alone = swept(spec, tmp_path / "alone")
    state = finish(run_folder.start(spec, tmp_path / "two", cluster="local:2"))
    assert (state.state, alone.state, state.message) == ("finished", "finished", "")
    rows, expected = run_folder.rows(tmp_path / "two"), run_folder.rows(tmp_path / "alone")
    assert what_is_the_same(rows) == what_is_the_same(expected)
    assert len(rows) == len(expected)
    verdicts = [
        {one.density: one.verdict for one in contests(records(latest(store.frame(some))), "seconds_step")}
        for some in (rows, expected)
    ]
    assert all(not {verdicts[0][at], verdicts[1][at]} >= {"sparse", "dense"} for at in verdicts[1])
    assert (tmp_path / "two" / "log-local-1.txt").exists()
