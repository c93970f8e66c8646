"""The agent itself: what it measures for whom, in whose turn, and how it ends."""

import json
import os
import subprocess
import sys
import threading

import psutil
import pytest

from tests.cluster.test_agents import SPEC
from tests.support.clocks import SECONDS, until
from tests.support.sweeps import have_trials_preloaded
from tests.support.tiny_sweeps import spec_of, trial_row
from workbench.cluster.agent import Agent, Lines, machine_turn
from workbench.cluster.coordinator import Placement
from workbench.measure import machine
from workbench.measure.machine import machine_id
from workbench.sweeps import grid
from workbench.sweeps.problem import Contents
from workbench.sweeps.spec import validate_spec


def test_an_agent_measures_what_it_is_asked_for_and_ends_with_its_input(tmp_path, monkeypatch):
    """The agent itself, on pipes: a row is that of the same trial in this process, but for time."""
    spoiled = {"OMP_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "65536"}
    for name, value in spoiled.items():
        monkeypatch.setenv(name, value)
    spec = spec_of(density=[0.1], epochs=[1])
    out = tmp_path / "out"
    tasks = Placement(spec, [])
    tasks.join("one", machine_id())
    lines, due = [greeting(spec)], tasks.next("one")
    lines += [asked(task, left) for task, left in zip(due, (1, 0), strict=True)]
    have_trials_preloaded()
    with open(out, "w", encoding="utf-8") as file:
        Agent(file).serve(_Waiting(lines))
    said = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [list(message) for message in said] == [["machine", "record"], ["row"], ["row"]]
    assert said[0]["machine"] == machine_id()
    for task, message in zip(due, said[1:], strict=True):
        row, run = message["row"], f"r on {machine_id()}"
        alone = trial_row(**task.configuration.model_dump())
        assert (row["key"], row["round"], row["run"], row["status"]) == (task.key, task.round, run, "ok")
        assert (row["loss_first"], row["loss_last"]) == (alone["loss_first"], alone["loss_last"])
        assert row["mended"].items() >= spoiled.items()


@pytest.mark.parametrize(
    ("which", "message"), [("versions", "The versions here"), ("source", "The source of this configuration")]
)
def test_an_agent_with_other_code_refuses(tmp_path, which, message):
    placement = Placement(SPEC, [])
    placement.join("one", "a")
    lines = [greeting(SPEC), asked(placement.next("one")[0], 0)]
    next(line for line in lines if which in line)[which] = "other"
    with open(tmp_path / "out", "w", encoding="utf-8") as file, pytest.raises(SystemExit, match=message):
        Agent(file).serve(_Waiting(lines))


def own_file(tmp_path):
    """A data file, and what an agent is asked for about it."""
    path = tmp_path / "rows.txt"
    path.write_text("1 1:1\n0 2:1\n" * 10)
    axes = {"dataset": "svmlight", "path": str(path), "model": "logistic"}
    spec = validate_spec({"name": "own", "axes": axes, "measure": {"rounds": 1}})
    placement = Placement(spec, [])
    placement.join("one", "a")
    return path, [greeting(spec), asked(placement.next("one")[0], 0)]


def test_an_agent_whose_file_has_other_content_refuses_and_one_without_the_file_reports_that(tmp_path, monkeypatch):
    path, lines = own_file(tmp_path)
    monkeypatch.setattr("workbench.cluster.agent.Supervisor.do", lambda *_: {"status": "done"})
    path.write_text("1 1:1\n0 3:1\n" * 10)
    message = (
        r"rows.txt has the content \w{32} here, and \w{32} where the sweep was started. Copy the same file to both"
    )
    with open(tmp_path / "out", "w", encoding="utf-8") as file:
        with pytest.raises(SystemExit, match=message):
            Agent(file).serve(_Waiting(lines))
        path.unlink()
        Agent(file).serve(_Waiting(lines))
    assert json.loads((tmp_path / "out").read_text().splitlines()[-1]) == {"row": {"status": "done"}}


def test_an_agent_whose_file_changes_ends_with_what_to_do(tmp_path, monkeypatch):
    path, lines = own_file(tmp_path)
    changing = "workbench.cluster.agent.Supervisor.try_once"
    monkeypatch.setattr(changing, lambda *_: {"status": "failed", "size": path.write_text("1 1:1\n0 3:1\n")})
    message = r"rows.txt changed while the sweep ran. .* Start the sweep again to measure the new content"
    with open(tmp_path / "out", "w", encoding="utf-8") as file, pytest.raises(SystemExit, match=message):
        Agent(file).serve(_Waiting(lines))


def test_agents_of_one_machine_take_turns_of_a_round(tmp_path, monkeypatch):
    """While a round is not over, no other agent of the machine measures."""
    placement, free = Placement(SPEC, []), []
    placement.join("one", "a")
    due = placement.next("one")

    def do(*_: object) -> dict:
        ended = threading.Event()
        threading.Timer(0.2, ended.set).start()
        with machine_turn(ended):
            free.append(not ended.is_set())
        return {}

    monkeypatch.setattr("workbench.cluster.agent.Supervisor.do", do)
    with open(tmp_path / "out", "w", encoding="utf-8") as file:
        Agent(file).serve(_Waiting([greeting(SPEC), *(asked(task, 1 - at) for at, task in enumerate(due))]))
    assert free == [False, False]


HOLDS = """
import fcntl, os, signal, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print(os.getpid(), file=file, flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_an_agent_that_was_halted_does_not_hold_its_machine_for_ever(tmp_path, monkeypatch):
    """One behind ssh, whose sweep has lost it, is killed by nobody."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    holder = subprocess.Popen([sys.executable, "-S", "-c", HOLDS, str(tmp_path / f"workbench-turn-{os.getuid()}")])
    until(lambda: psutil.Process(holder.pid).status() == psutil.STATUS_STOPPED)
    ended = threading.Event()
    too_late = threading.Timer(SECONDS, ended.set)
    too_late.start()
    with machine_turn(ended):
        assert not ended.is_set()
    too_late.cancel()
    assert holder.wait(SECONDS) == 0


def greeting(spec) -> dict:
    """What an agent is told first."""
    known = {"versions": machine.code_versions(), "folder": os.getcwd()}
    return {"spec": spec.model_dump(mode="json"), "run": "r", "work": "workbench.sweeps.trial:answers", **known}


def asked(task, left: int) -> dict:
    """What an agent is asked for: a trial, of whose round so many are left."""
    about = {"key": task.key, "round": task.round, "source": grid.source_hash(task.configuration), "left": left}
    about |= {"content": Contents().of(task.configuration)}
    return {"cell": task.configuration.model_dump(mode="json"), **about}


class _Waiting:
    """Messages that are there at once."""

    def __init__(self, lines: list[dict]) -> None:
        self.lines = list(lines)

    def next(self) -> dict | None:
        return self.lines.pop(0) if self.lines else None


def test_the_end_of_its_input_tells_an_agent_to_end(tmp_path):
    (tmp_path / "in").write_text('{"spec": 1}\n{"cell"')
    ended = threading.Event()
    with open(tmp_path / "in", "rb") as file:
        lines = Lines(file.fileno(), ended)
        assert ended.wait(SECONDS)
    assert lines.next() is None
