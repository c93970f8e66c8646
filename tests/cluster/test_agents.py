"""Sweeps by agents: a comparison is one machine's, and whatever agents do, every row is there once."""

import json
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.support import fake_agent
from tests.support.sweeps import have_trials_preloaded
from tests.sweep.test_sweep import QUICK, _cache, spec_of, trial_row  # noqa: F401 - the fixture is used by being here
from workbench.cluster import link
from workbench.cluster.agent import Agent, Lines
from workbench.cluster.coordinator import Coordinator
from workbench.cluster.placement import Placement
from workbench.measure import machine
from workbench.sweep import run_folder
from workbench.sweep.places import Place, places
from workbench.sweep.spec import SpecError

DENSITIES = [0.05, 0.1, 0.2, 0.3, 0.5]
SPEC = spec_of(density=DENSITIES, measure={**QUICK, "rounds": 2})


def agent(machine: str, fault: str = "none", at: int = -1) -> Place:
    return Place(f"on {machine}", (sys.executable, "-S", fake_agent.__file__, machine, fault, str(at)))


def run(folder: Path, *agents: Place, spec=SPEC, stop=None) -> tuple[run_folder.Progress, list[dict]]:
    """How the sweep ended, and its rows."""
    folder.mkdir(exist_ok=True)
    made = Coordinator(spec, folder, stop, list(agents))
    made.run()
    return made.state, run_folder.rows(folder)


def whole(rows: list[dict], density: float) -> set[str]:
    """The machines that have both contenders in as many rounds as are due."""
    rounds = Counter((row["machine"], row["round"]) for row in rows if row["density"] == density)
    machines = Counter(machine for (machine, _), count in rounds.items() if count == 2)
    return {machine for machine, count in machines.items() if count == 2}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(link, "SECONDS_SILENT", 0.5)
    monkeypatch.setattr(link, "SECONDS_END", 0.3)


def test_a_comparison_is_measured_on_one_machine_and_the_first_on_every(tmp_path):
    state, rows = run(tmp_path, agent("a"), agent("b"))
    assert (state.state, state.message) == ("finished", "")
    by_density = {density: {row["machine"] for row in rows if row["density"] == density} for density in DENSITIES}
    first = by_density.pop(DENSITIES[0])
    assert first == {"a", "b"}
    assert all(len(machines) == 1 for machines in by_density.values())
    assert {machine for machines in by_density.values() for machine in machines} == {"a", "b"}
    assert len(rows) == 2 * 2 * (len(DENSITIES) + 1)
    assert json.loads((tmp_path / run_folder.MACHINE).read_text()) == {"a": {"id": "a"}, "b": {"id": "b"}}


def test_two_agents_of_one_machine_share_its_comparisons(tmp_path):
    one, two = (Place(name, agent("a").command) for name in ("one", "two"))
    state, rows = run(tmp_path, one, two)
    assert state.state == "finished"
    assert len(rows) == 2 * 2 * len(DENSITIES)
    assert all(whole(rows, density) == {"a"} for density in DENSITIES)


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("dies", "The agent on b ended. Its log ends with: it burns"),
        ("dies in the middle of a row", "The agent on b ended"),
        ("falls silent", "The agent on b has not said a word for 0.5 s"),
        ("talks nonsense", "The agent on b said b'[1, 2', which is no message"),
    ],
)
def test_what_a_lost_agent_had_is_measured_by_another_and_no_row_is_lost_or_there_twice(tmp_path, fault, told, at):
    state, rows = run(tmp_path, agent("a"), agent("b", fault, at))
    assert state.state == "finished"
    assert told in state.message
    assert all(whole(rows, density) for density in DENSITIES)
    lines = (tmp_path / "trials.jsonl").read_text().splitlines()
    assert len(lines) == len(rows) == len({(row["key"], row["machine"], row["round"]) for row in rows})


def test_without_an_agent_left_the_sweep_has_failed_and_goes_on_when_started_again(tmp_path):
    state, before = run(tmp_path, agent("a", "dies", 5), Place("no such program", ("/no/such/program",)))
    assert state.state == "failed"
    assert "The agent no such program cannot be started" in state.message
    assert "No agent is left; start the sweep again to do the rest, all rows are kept." in state.message
    assert len(before) == 5
    state, rows = run(tmp_path, agent("a"))
    assert (state.state, state.reused) == ("finished", 4)  # the half of a round is measured anew
    assert [row for row in rows if row in before] == before
    assert all(whole(rows, density) == {"a"} for density in DENSITIES)


def test_rows_of_another_machine_are_not_measured_again_and_never_mixed(tmp_path):
    run(tmp_path, agent("a"))
    state, rows = run(tmp_path, agent("b"))
    assert state.reused == 2 * 2 * len(DENSITIES)
    assert Counter(row["machine"] for row in rows) == {"a": 2 * 2 * len(DENSITIES), "b": 2 * 2}
    assert whole(rows, DENSITIES[0]) == {"a", "b"}


def test_a_stop_ends_agents_that_do_not_listen(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "SECONDS_SILENT", 30.0)
    stop = threading.Event()
    threading.Timer(0.4, stop.set).start()
    state, rows = run(tmp_path, agent("a", "falls silent", 2), agent("b", "falls silent", 1), stop=stop)
    assert (state.state, len(rows)) == ("stopped", 3)


def test_an_agent_takes_turns_with_a_few_comparisons_and_leaves_others_theirs():
    placement = Placement(SPEC, [])
    placement.join("one", "a")
    placement.join("two", "b")
    first = [{task.cell.density for task in placement.next("one")} for _ in range(3)]
    second = [{task.cell.density for task in placement.next("two")} for _ in range(3)]
    assert all(len(densities) == 1 for densities in (*first, *second))
    taken = [set().union(*densities) for densities in (first, second)]
    assert taken[0] & taken[1] == {DENSITIES[0]}
    assert len(taken[0]) == len(taken[1]) == 3


def test_an_agent_measures_what_it_is_asked_for_and_ends_with_its_input(tmp_path):
    """The agent itself, on pipes: a row is that of the same trial in this process, but for time."""
    spec = spec_of(density=[0.1], epochs=[1])
    out = tmp_path / "out"
    tasks = Placement(spec, [])
    tasks.join("one", machine.machine_id())
    lines = [{"spec": spec.model_dump(mode="json"), "run": "r", "work": "workbench.sweep.trial:answers"}]
    due = tasks.next("one")
    lines += [{"cell": t.cell.model_dump(mode="json"), "key": t.key, "round": t.round} for t in due]
    have_trials_preloaded()
    with open(out, "w", encoding="utf-8") as file:
        Agent(file).serve(_Waiting(lines))
    said = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [list(message) for message in said] == [["machine", "record"], ["row"], ["row"]]
    assert said[0]["machine"] == machine.machine_id()
    for task, message in zip(due, said[1:], strict=True):
        row, run = message["row"], f"r on {machine.machine_id()}"
        alone = trial_row(**task.cell.model_dump())
        assert (row["key"], row["round"], row["run"], row["status"]) == (task.key, task.round, run, "ok")
        assert (row["loss_first"], row["loss_last"]) == (alone["loss_first"], alone["loss_last"])


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
        assert ended.wait(5)
    assert lines.next() is None


@pytest.mark.parametrize(
    "where", ["local", "local:0", "local:x", "ssh:", "ssh:a,-oProxy", "ssh:a,a", "tcp://1.2.3.4:1"]
)
def test_where_no_agent_can_be_is_refused(where):
    with pytest.raises(SpecError, match=r"local:|ssh:|host"):
        places(where)
