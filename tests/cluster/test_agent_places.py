"""Sweeps whose agents are processes of the system: on this machine, behind ssh, and without their supervisor."""

import os
import shlex
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.test_agents import COMPARISONS, SPEC, agent, run, whole
from tests.support.clocks import SECONDS, until
from tests.support.processes import is_gone
from tests.support.sweeps import have_trials_preloaded
from tests.support.tiny_sweeps import QUICK, spec_of
from workbench import store
from workbench.analysis import advise, configurations, contests
from workbench.cluster import coordinator
from workbench.cluster.coordinator import Coordinator
from workbench.sweeps import agent_commands, run_folder
from workbench.sweeps.runner import Supervisor


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    monkeypatch.setattr(coordinator, "SECONDS_END", 5.0)
    monkeypatch.setattr(coordinator, "SECONDS_SILENT", 2 * SECONDS)


def ssh(folder: Path, monkeypatch, command: str) -> None:
    """Put a program ssh before all others, which runs a command of the shell: `$host`, `$remote`."""
    folder.mkdir()
    script = folder / "ssh"
    options = 'while [ "$1" = -o ]; do shift 2; done; host=$1; remote=$2'
    script.write_text(f"#!/bin/sh\n{options}\necho $$ > {folder}/pid-$host\n{command}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_agents_behind_ssh_get_their_command_through_a_shell(tmp_path, monkeypatch):
    ssh(tmp_path / "bin", monkeypatch, 'echo "Welcome to $host!"; exec sh -c "$remote"')
    a_path = "a b;c $HOME"
    state, rows = run(tmp_path / "run", *agent_commands.parse_agents("ssh:n1,me@n2", agent(a_path).command))
    assert state.state == "finished", state.message
    assert {row["machine"] for row in rows} == {a_path}
    assert all(whole(rows, comparison) for comparison in COMPARISONS)
    logs = {path.name: path.read_text() for path in (tmp_path / "run").glob("log-*")}
    assert logs == {"log-n1.txt": "Welcome to n1!\n", "log-me-n2.txt": "Welcome to me@n2!\n"}


def test_without_its_supervisor_no_agent_stays_and_a_resume_does_the_rest(tmp_path, monkeypatch):
    fake = shlex.join(agent("MACHINE", "gives no row", 3).command).replace("MACHINE", '"$host"')
    ssh(tmp_path / "bin", monkeypatch, f"exec {fake}")
    folder = run_folder.start_run(SPEC, tmp_path / "run", cluster="ssh:a,b")
    until(lambda: (folder / store.FILE).exists() and len(run_folder.read_current_records(folder)) == 6)
    os.kill(run_folder.read_progress(folder).pid, signal.SIGKILL)
    before = run_folder.read_current_records(folder)
    for host in ("a", "b"):
        until(lambda host=host: is_gone(int((tmp_path / "bin" / f"pid-{host}").read_text())))
    state, rows = run(folder, agent("a"), agent("b"))
    assert state.state == "finished"
    assert [row for row in rows if row in before] == before
    assert all(whole(rows, comparison) for comparison in COMPARISONS)
    assert max(Counter((row["key"], row["machine"], row["round"]) for row in rows).values()) == 1


def test_two_agents_here_answer_what_one_process_answers(tmp_path):
    """The same configurations with the same numbers, whole comparisons, the same verdict; what trials do is a law."""
    spec = spec_of(density=[0.05, 0.5], measure={**QUICK, "rounds": 4, "roofs": False})
    one, two = (tmp_path / name for name in ("one", "two"))
    for folder in (one, two):
        folder.mkdir()
    work = "tests.support.lawful_trials:answers"
    have_trials_preloaded()
    alone, shared = (
        Supervisor(spec, one, work=work),
        Coordinator(spec, two, None, agent_commands.parse_agents("local:2"), work),
    )
    for each in (alone, shared):
        each.run()
        assert (each.state.state, each.state.message) == ("finished", "")
    same = ("key", "round", "machine", "status", "source", "seconds_step", "bytes_peak")
    found = [
        sorted([row[name] for name in same] for row in run_folder.read_current_records(folder)) for folder in (one, two)
    ]
    numbers = [{tuple(row[:2]): row for row in rows} for rows in found]
    assert all(numbers[0][trial] == numbers[1][trial] for trial in numbers[0].keys() & numbers[1].keys())
    assert all(2 * 2 * 2 <= len(rows) <= 2 * 2 * 4 for rows in found)  # an agent does not know the noise of the others
    frames = [store.frame(run_folder.read_current_records(folder)) for folder in (one, two)]
    (verdict, first), (again, second) = ((advise(frame).verdict, _contests(frame)) for frame in frames)
    assert all("For time, go sparse up to 5 % density" in text for text in (verdict, again))
    assert first == second == [("sparse", "csr", "dense"), ("dense", "csr", "dense")]
    assert {path.name for path in two.glob("log-*")} == {"log-local-1.txt", "log-local-2.txt"}


def _contests(frame) -> list[tuple]:
    """Verdict and both sides at each density."""
    (group,) = configurations.groups(frame)
    return [
        (contest.verdict, contest.sparse["format"], contest.dense["format"])
        for contest in contests(group.rows, "seconds_step")
    ]
