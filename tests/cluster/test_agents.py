"""Sweeps by agents: a comparison is one machine's, and whatever agents do, every row is there once."""

import json
import os
import random
import shlex
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.support import fake_agent
from tests.support.clocks import SECONDS, until
from tests.support.tiny_sweeps import QUICK, spec_of
from workbench.cluster import coordinator
from workbench.cluster.coordinator import Coordinator, Link, Placement
from workbench.sweeps import run_folder
from workbench.sweeps.agent_commands import AgentCommand, parse_agents, require_allocation
from workbench.sweeps.spec import SpecError

DENSITIES, BATCHES = [0.05, 0.1], [10, 20, 30]
SPEC = spec_of(density=DENSITIES, batch_rows=BATCHES, measure={**QUICK, "rounds": 2})
"""Three groups, each of two comparisons."""
COMPARISONS = [(density, rows) for density in DENSITIES for rows in BATCHES]
TRIALS = 2 * 2
"""Of a comparison: two candidates in two rounds."""


def agent(machine: str, fault: str = "none", at: int = -1) -> AgentCommand:
    return AgentCommand(f"on {machine}", (sys.executable, "-S", fake_agent.__file__, machine, fault, str(at)))


def run(folder: Path, *agents: AgentCommand, spec=SPEC, stop=None) -> tuple[run_folder.Progress, list[dict]]:
    """How the sweep ended, and its rows."""
    folder.mkdir(exist_ok=True)
    made = Coordinator(spec, folder, stop, list(agents))
    made.run()
    return made.state, run_folder.read_current_records(folder)


def comparison(row: dict) -> tuple[float, int]:
    return row["density"], row["batch_rows"]


def whole(rows: list[dict], one: tuple[float, int]) -> set[str]:
    """The machines that have both candidates in as many rounds as are due."""
    rounds = Counter((row["machine"], row["round"]) for row in rows if comparison(row) == one)
    machines = Counter(machine for (machine, _), count in rounds.items() if count == 2)
    return {machine for machine, count in machines.items() if count == 2}


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """No agent is lost for being slow; one that does not end with its input is killed soon."""
    monkeypatch.setattr(coordinator, "SECONDS_END", 0.3)
    monkeypatch.setattr(coordinator, "SECONDS_KILLED", SECONDS)
    monkeypatch.setattr(coordinator, "SECONDS_SILENT", 2 * SECONDS)


@pytest.fixture
def _silent_ones_are_soon_lost(monkeypatch):
    """Of agents that have said something, those that are to fall silent."""
    look, silent = coordinator.Link.look, {"falls silent", "is halted"}

    def impatient(self) -> None:
        look(self)
        if silent & set(self.place.command) and self.patience == coordinator.SECONDS_SILENT:
            self.patience = 1.0

    monkeypatch.setattr(coordinator.Link, "look", impatient)


def test_a_group_is_measured_on_one_machine_and_the_first_comparison_on_every(tmp_path):
    state, rows = run(tmp_path, agent("a"), agent("b"))
    assert (state.state, state.message) == ("finished", "")
    first = comparison(rows[0])
    assert whole(rows, first) == {"a", "b"}
    groups = {
        batch: {row["machine"] for row in rows if row["batch_rows"] == batch and comparison(row) != first}
        for batch in BATCHES
    }
    assert all(len(machines) == 1 for machines in groups.values())
    assert len(rows) == TRIALS * (len(COMPARISONS) + 1)
    assert json.loads((tmp_path / run_folder.MACHINE).read_text()) == {"a": {"id": "a"}, "b": {"id": "b"}}


def test_rounds_that_were_disturbed_are_not_measured_without_end(tmp_path):
    state, rows = run(tmp_path, agent("a", "is disturbed"), agent("b", "is disturbed"))
    assert state.state == "finished"
    assert (state.total, state.seconds_left) == (len(rows), 0), "nothing is left to be done"
    assert len(rows) == TRIALS * (len(COMPARISONS) + 1)


def test_machines_that_differ_share_the_groups():
    placement, machines = Placement(SPEC, []), {"one": "a", "two": "b"}
    for name, machine in machines.items():
        placement.join(name, machine)
    done: dict[int, set[str]] = {batch: set() for batch in BATCHES}
    for _ in range(20):
        for name, machine in machines.items():
            for task in placement.next(name):
                known = {"key": task.key, "round": task.round, "run": machine, "machine": machine, "status": "ok"}
                placement.add(name, {**known, "seconds_step": 1.0})
                if placement.place[task.key]:  # all but the common one
                    done[task.configuration.batch_rows].add(machine)
    assert placement.is_over
    assert sorted(map(sorted, done.values())) in ([["a"], ["a"], ["b"]], [["a"], ["b"], ["b"]])


def test_agents_on_machines_that_are_alike_share_a_group(tmp_path):
    one, two = (AgentCommand(name, agent("a").command) for name in ("one", "two"))
    state, rows = run(tmp_path, one, two, spec=spec_of(density=[0.05, 0.1, 0.2], measure={**QUICK, "rounds": 2}))
    assert state.state == "finished"
    assert len(rows) == TRIALS * 3


@pytest.mark.usefixtures("_silent_ones_are_soon_lost")
@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("dies", "The agent on b ended. Its log, log-on-b.txt, ends with: it burns"),
        ("dies in the middle of a row", "The agent on b ended"),
        ("falls silent", "The agent on b has not said a word for 1 s"),
        ("is halted", "The agent on b has not said a word for 1 s"),
        ("talks nonsense", "The agent on b said b'[1, 2', which is no message"),
    ],
)
def test_what_a_lost_agent_had_is_measured_by_another_and_no_row_is_lost_or_there_twice(tmp_path, fault, expected, at):
    state, rows = run(tmp_path, agent("a"), agent("b", fault, at))
    assert state.state == "finished"
    assert expected in state.message
    assert all(whole(rows, comparison) for comparison in COMPARISONS)
    lines = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(lines) == len(rows) == len({(row["key"], row["machine"], row["round"]) for row in rows})


def test_without_an_agent_left_the_sweep_has_failed_and_goes_on_when_started_again(tmp_path):
    state, before = run(tmp_path, agent("a", "dies", 5), AgentCommand("no such program", ("/no/such/program",)))
    assert state.state == "failed"
    assert "The agent no such program cannot be started" in state.message
    assert "No agent is left; start the sweep again to do the rest, all rows are kept." in state.message
    assert len(before) == 5
    state, rows = run(tmp_path, agent("a"))
    assert (state.state, state.reused, state.done) == ("finished", 5, len(rows))
    assert len(rows) == 1 + TRIALS * len(COMPARISONS)  # the half of a round is measured anew
    assert [row for row in rows if row in before] == before
    assert all(whole(rows, comparison) == {"a"} for comparison in COMPARISONS)


def test_rows_of_another_machine_are_not_measured_again_and_never_mixed(tmp_path):
    run(tmp_path, agent("a"))
    state, rows = run(tmp_path, agent("b"))
    assert state.reused == TRIALS * len(COMPARISONS)
    assert Counter(row["machine"] for row in rows) == {"a": TRIALS * len(COMPARISONS), "b": TRIALS}
    common = {comparison(row) for row in rows if row["machine"] == "b"}
    assert [whole(rows, one) for one in common] == [{"a", "b"}]


@pytest.mark.usefixtures("_silent_ones_are_soon_lost")
@pytest.mark.parametrize("seed", range(3))
def test_whatever_agents_do_and_when_no_row_is_lost_or_there_twice(tmp_path, seed):
    """Both agents are lost, each in some way at some message; starting again does what is left."""
    drawn, faults = random.Random(seed), ("dies", "dies in the middle of a row", "falls silent", "is halted")
    lost = [agent(name, drawn.choice(faults), drawn.randrange(TRIALS * 3)) for name in ("a", "b")]
    _, before = run(tmp_path, *lost)
    state, rows = run(tmp_path, agent("c"))
    assert state.state == "finished"
    assert [row for row in rows if row in before] == before
    assert all(whole(rows, comparison) for comparison in COMPARISONS)
    lines = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(lines) == len(rows) == len({(row["key"], row["machine"], row["round"]) for row in rows})


def test_what_is_too_long_for_a_pipe_is_not_waited_for_without_end(tmp_path):
    stop = threading.Event()
    deaf = Link(
        AgentCommand("deaf", (sys.executable, "-S", "-c", "import time; time.sleep(60)")), tmp_path, stop.is_set
    )
    threading.Timer(0.3, stop.set).start()
    deaf.ask({"much": "x" * 2**20})
    deaf.end()
    assert deaf.process.returncode == -signal.SIGKILL


def test_a_stop_ends_agents_that_do_not_listen(tmp_path):
    stop, rows_file = threading.Event(), tmp_path / "trials.jsonl"

    def stop_at_three_rows() -> None:
        try:
            until(lambda: rows_file.exists() and rows_file.read_text().count("\n") >= 3)
        finally:
            stop.set()

    threading.Thread(target=stop_at_three_rows, daemon=True).start()
    state, rows = run(tmp_path, agent("a", "is halted", 2), agent("b", "falls silent", 1), stop=stop)
    assert (state.state, len(rows)) == ("stopped", 3)


def test_an_agent_takes_turns_with_a_few_comparisons_and_leaves_others_theirs():
    placement = Placement(spec_of(density=[0.05, 0.1, 0.2, 0.3, 0.5], measure={**QUICK, "rounds": 2}), [])
    placement.join("one", "a")
    placement.join("two", "a")
    taken = []
    for name in ("one", "two"):
        turns = [{task.configuration.density for task in placement.next(name)} for _ in range(3)]
        assert all(len(densities) == 1 for densities in turns)
        taken.append(set().union(*turns))
    assert not taken[0] & taken[1]
    assert sorted(map(len, taken)) == [2, 3]


WRONG = ("local", "local:0", "local:x", "ssh:", "ssh:a,-oProxy", "ssh:a,a", "ssh:a:", "ssh:a:0", "ssh:a:ssh", "ssh::22")


@pytest.mark.parametrize("where", [*WRONG, "slurm", "http://1.2.3.4:1"])
def test_where_no_agent_can_be_is_refused(where, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NUM_NODES", raising=False)
    with pytest.raises(SpecError, match=r"local:|ssh:|slurm:|host"):
        parse_agents(where)


def test_ssh_is_told_the_port_and_where_code_and_data_are(monkeypatch):
    """What ssh leaves behind: without it another machine would run other code, or none."""
    monkeypatch.setenv("PYTHONPATH", f"some code{os.pathsep}/other")
    monkeypatch.delenv("WORKBENCH_CACHE", raising=False)
    plain, there = parse_agents("ssh:node1,me@node2:2222", ("python", "-m", "agent"))
    assert "-p" not in plain.command
    *_, option, port, host, remote = there.command
    assert (option, port, host) == ("-p", "2222", "me@node2")
    code = f"PYTHONPATH={os.path.abspath('some code')}{os.pathsep}/other"
    assert shlex.split(remote) == ["env", code, "python", "-m", "agent"]
    assert parse_agents("ssh:fe80::1", ("python",))[0].command[-2] == "fe80::1"


def test_slurm_takes_the_nodes_of_the_allocation_and_no_others(tmp_path, monkeypatch):
    """Without an allocation srun would ask for parts of nodes by itself, beside other jobs."""
    monkeypatch.delenv("SLURM_JOB_NUM_NODES", raising=False)
    assert len(parse_agents("slurm:3")) == 3
    with pytest.raises(SpecError, match=r"nothing is allocated here. Allocate them first: salloc --nodes=3 --excl"):
        require_allocation("slurm:3")
    with pytest.raises(SpecError, match="nothing is allocated here"):
        run_folder.start_run(SPEC, tmp_path / "run", cluster="slurm:1")
    assert not (tmp_path / "run").exists()
    require_allocation("local:3")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "2")
    assert len(parse_agents("slurm")) == 2
    require_allocation("slurm")
    with pytest.raises(SpecError, match="takes 3 nodes of an allocation of SLURM, and this allocation has 2"):
        require_allocation("slurm:3")
