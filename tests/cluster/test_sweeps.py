"""Sweeps on a Dask cluster: a comparison is one machine's, and whatever workers do, every record is there once."""

import json
import os
import random
import signal
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed")

from tests.cluster.test_placement import BATCHES, DENSITIES, SPEC  # noqa: E402 - after the skip
from tests.support import dask_process  # noqa: E402
from tests.support.clocks import SECONDS, until  # noqa: E402
from tests.support.processes import is_gone  # noqa: E402
from tests.support.sweeps import have_trials_preloaded  # noqa: E402
from tests.support.tiny_sweeps import QUICK, spec_of  # noqa: E402
from workbench import store  # noqa: E402
from workbench.analysis import answer_text, configurations, contests  # noqa: E402
from workbench.cluster import coordinator, machine_tasks  # noqa: E402
from workbench.cluster.coordinator import Coordinator  # noqa: E402
from workbench.cluster.security import OpenClusterError  # noqa: E402
from workbench.measure import machine  # noqa: E402
from workbench.sweeps import grid, run_folder  # noqa: E402
from workbench.sweeps.problem import Contents  # noqa: E402
from workbench.sweeps.runner import TRIAL, Supervisor  # noqa: E402
from workbench.sweeps.spec import SpecError, dump_spec, validate_spec  # noqa: E402

COMPARISONS = [(density, rows) for density in DENSITIES for rows in BATCHES]
TRIALS = 2 * 2
"""Of a comparison: two candidates in two rounds."""


@pytest.fixture(scope="module")
def scheduler():
    """Address of a scheduler on loopback."""
    with dask_process.started("scheduler") as (address, _):
        yield address


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(coordinator, "SECONDS_BETWEEN", 0.2)


def run(folder: Path, where: str, spec=SPEC, stop=None, work=TRIAL) -> tuple[run_folder.Progress, list[dict]]:
    """How the sweep ended, and its rows."""
    folder.mkdir(exist_ok=True)
    made = Coordinator(spec, folder, stop, where, work)
    made.run()
    return made.state, run_folder.read_current_records(folder)


def on(scheduler: str, folder: Path, *machines: tuple[str, ...], **options) -> tuple[run_folder.Progress, list[dict]]:
    """The same on workers (name, fault, trial) of the scheduler."""
    with ExitStack() as workers:
        for words in machines:
            workers.enter_context(dask_process.started("machine", scheduler, *map(str, words)))
        return run(folder, scheduler, **options)


def comparison(row: dict) -> tuple[float, int]:
    return row["density"], row["batch_rows"]


def whole(rows: list[dict], one: tuple[float, int]) -> set[str]:
    """The machines that have both candidates in as many rounds as are due."""
    rounds = Counter((row["machine"], row["round"]) for row in rows if comparison(row) == one)
    machines = Counter(machine for (machine, _), count in rounds.items() if count == 2)
    return {machine for machine, count in machines.items() if count == 2}


def check_complete(folder: Path, rows: list[dict], before: list[dict] = ()) -> None:
    """Every comparison is whole on one machine; no row is lost or there twice."""
    assert [row for row in rows if row in before] == list(before)
    assert all(whole(rows, comparison) for comparison in COMPARISONS)
    lines = (folder / "trials.jsonl").read_text().splitlines()
    assert len(lines) == len(rows) == len({(row["key"], row["machine"], row["round"]) for row in rows})


def test_a_group_is_measured_on_one_machine_and_the_first_comparison_on_every(scheduler, tmp_path):
    state, rows = on(scheduler, tmp_path, ("a",), ("b", "is disturbed"))
    assert (state.state, state.message) == ("finished", "")
    first = comparison(rows[0])
    assert whole(rows, first) == {"a", "b"}
    groups = {
        batch: {row["machine"] for row in rows if row["batch_rows"] == batch and comparison(row) != first}
        for batch in BATCHES
    }
    assert all(len(machines) == 1 for machines in groups.values())
    assert len(rows) == TRIALS * (len(COMPARISONS) + 1), "disturbed rounds are not measured without end"
    assert (state.total, state.seconds_left) == (len(rows), 0)
    assert json.loads((tmp_path / run_folder.MACHINE).read_text()) == {"a": {"id": "a"}, "b": {"id": "b"}}


def test_a_worker_more_on_a_host_is_not_used_and_a_host_that_joins_is(scheduler, tmp_path, monkeypatch):
    with ExitStack() as workers:
        for name in ("a", "other"):
            workers.enter_context(dask_process.started("machine", scheduler, name))
        keep = Supervisor.keep

        def join_after_a_row(self, *given) -> None:
            if not (tmp_path / store.FILE).exists():
                workers.enter_context(dask_process.started("machine", scheduler, "b"))
            keep(self, *given)

        monkeypatch.setattr(Supervisor, "keep", join_after_a_row)
        _, rows = run(tmp_path, scheduler)
    assert len({row["machine"] for row in rows} & {"a", "other"}) == 1
    assert "b" in {row["machine"] for row in rows}


@pytest.mark.parametrize(
    ("fault", "at"),
    [("dies", 0), pytest.param("dies", 3, marks=pytest.mark.exhaustive), ("is halted", 3), ("raises", 3)],
)
def test_what_a_lost_worker_had_is_measured_by_another(scheduler, tmp_path, fault, at):
    state, rows = on(scheduler, tmp_path, ("a",), ("b", fault, at))
    assert state.state == "finished"
    assert state.message.startswith("The worker tcp://127.0.0.2:")
    assert ("no space left" in state.message) == (fault == "raises")
    check_complete(tmp_path, rows)


def test_without_a_worker_left_the_sweep_has_failed_and_goes_on_when_started_again(scheduler, tmp_path):
    state, before = on(scheduler, tmp_path, ("a", "dies", 5))
    assert state.state == "failed"
    assert "Start the sweep again to measure the rest; all records are kept." in state.message
    assert len(before) == 5
    state, rows = on(scheduler, tmp_path, ("a",))
    assert (state.state, state.reused, state.done) == ("finished", 5, len(rows))
    assert len(rows) == 1 + TRIALS * len(COMPARISONS)  # the half of a round is measured anew
    check_complete(tmp_path, rows, before)
    state, rows = on(scheduler, tmp_path, ("b",))
    assert Counter(row["machine"] for row in rows)["b"] == TRIALS, "machines are never mixed: the common one alone"
    assert state.reused == len(rows) - TRIALS


@pytest.mark.faults(1, 20)
def test_whoever_is_killed_or_halted_and_when_no_row_is_lost(tmp_path, fault_seed, monkeypatch):
    """A worker at a trial, by itself or struck from outside, or the scheduler; the next start does the rest."""
    drawn = random.Random(fault_seed)
    victim, how = ("scheduler", "worker")[fault_seed % 2], ("SIGKILL", "SIGSTOP")[fault_seed // 2 % 2]
    if (victim, how) == ("scheduler", "SIGSTOP"):
        monkeypatch.setattr(coordinator, "SECONDS_ANSWER", 4.0)
    with dask_process.started("scheduler") as (address, process):
        fault = f"{how}:{process.pid}" if victim == "scheduler" else {"SIGKILL": "dies"}.get(how, "is halted")
        state, before = on(address, tmp_path, ("a", fault, drawn.randrange(TRIALS * 5)))
    assert state.state == "failed"
    monkeypatch.setattr(coordinator, "SECONDS_ANSWER", SECONDS)
    with dask_process.started("scheduler") as (address, _):
        state, rows = on(address, tmp_path, ("a",))
    assert state.state == "finished"
    check_complete(tmp_path, rows, before)


def test_a_stop_ends_the_trial_that_runs(scheduler, tmp_path):
    stop, waiting = threading.Event(), tmp_path / "waiting"

    def stop_at_the_fourth_trial() -> None:
        try:
            until(waiting.exists)
        finally:
            stop.set()

    threading.Thread(target=stop_at_the_fourth_trial, daemon=True).start()
    with dask_process.started("machine", scheduler, "a", f"waits:{waiting}", "3") as (_, worker):
        state, rows = run(tmp_path, scheduler, stop=stop)
        assert worker.wait(SECONDS) == 7, "its trial was told to stop"
    assert (state.state, len(rows)) == ("stopped", 3)


def test_without_its_supervisor_no_trial_stays_and_a_resume_does_the_rest(scheduler, tmp_path):
    waiting = tmp_path / "waiting"
    with dask_process.started("machine", scheduler, "a", f"waits:{waiting}", "3") as (_, worker):
        folder = run_folder.start_run(SPEC, tmp_path / "run", cluster=scheduler)
        until(waiting.exists)
        os.kill(pid := run_folder.read_progress(folder).pid, signal.SIGKILL)
        before = run_folder.read_current_records(folder)
        until(lambda: is_gone(pid))
        assert worker.wait(SECONDS) == 7
    state, rows = on(scheduler, folder, ("a",))
    assert state.state == "finished"
    check_complete(folder, rows, before)


def test_a_cluster_answers_what_one_process_answers(tmp_path):
    """The same configurations with the same numbers, whole comparisons, the same verdict; what trials do is a law."""
    spec = spec_of(density=[0.05, 0.5], measure={**QUICK, "rounds": 4, "roofs": False})
    one, two = (tmp_path / name for name in ("one", "two"))
    one.mkdir()
    work = "tests.support.lawful_trials:answers"
    have_trials_preloaded()
    alone = Supervisor(spec, one, work=work)
    alone.run()
    state, _ = run(two, run_folder.LOCAL, spec, work=work)
    assert (state.state, state.message) == ("finished", "")
    same = ("key", "round", "machine", "status", "source", "seconds_step", "bytes_peak")
    numbers = [
        {(row["key"], row["round"]): [row[name] for name in same] for row in run_folder.read_current_records(folder)}
        for folder in (one, two)
    ]
    assert all(numbers[0][trial] == numbers[1][trial] for trial in numbers[0].keys() & numbers[1].keys())
    assert all(2 * 2 * 2 <= len(rows) <= 2 * 2 * 4 for rows in numbers)
    frames = [store.frame(run_folder.read_current_records(folder)) for folder in (one, two)]
    (verdict, first), (again, second) = ((answer_text(frame).advice, _contests(frame)) for frame in frames)
    assert verdict == again == "Go sparse"
    assert first == second == [("sparse", "csr", "dense"), ("dense", "csr", "dense")]


def _contests(frame) -> list[tuple]:
    """Verdict and both sides at each density."""
    (group,) = configurations.groups(frame)
    return [
        (contest.verdict, contest.sparse["format"], contest.dense["format"])
        for contest in contests(group.rows, "seconds_step")
    ]


def test_variables_that_spoil_times_and_the_workers_own_watching_are_kept_from_trials(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setitem(coordinator.LOCAL, "distributed.worker.profile.enabled", True)
    have_trials_preloaded()
    state, rows = run(tmp_path, run_folder.LOCAL, spec_of(density=[0.1], measure={**QUICK, "rounds": 1}))
    assert state.state == "finished", state.message
    assert all(row["environment_removed"]["MALLOC_TRIM_THRESHOLD_"] == "65536" for row in rows)
    assert all(row["environment_removed"]["dask profile"] == "every 10 ms" for row in rows)


def asked_of(path: Path) -> tuple[dict, dict]:
    """A run on a file of one's own, and its first trial."""
    axes = {"dataset": "svmlight", "path": str(path), "model": "logistic"}
    spec = validate_spec({"name": "own", "axes": axes, "measure": {"rounds": 1}})
    configuration = grid.expand_grid(spec).configurations[0]
    asked = {"cell": configuration.model_dump(mode="json"), "key": "k", "round": 0}
    asked |= {"source": grid.source_hash(configuration), "content": Contents().of(configuration)}
    return {"name": str(path), "work": TRIAL, "spec": dump_spec(spec)}, asked


@pytest.mark.parametrize("which", ["source", "content", "changes", "is not there"])
def test_a_machine_with_other_code_or_data_refuses(tmp_path, monkeypatch, which):
    path = tmp_path / "rows.txt"
    path.write_text("1 1:1\n0 2:1\n" * 10)
    given, asked = asked_of(path)
    expected = f"The {which} of .* Install and copy the same to both"
    monkeypatch.setattr(Supervisor, "try_once", lambda *_: {"status": "failed"})
    if which == "source":
        asked["source"] = "other"
    elif which == "content":
        path.write_text("1 1:1\n0 3:1\n" * 10)
    elif which == "changes":
        changing = lambda *_: {"status": "failed", "size": path.write_text("1 1:1\n0 3:1\n")}  # noqa: E731
        monkeypatch.setattr(Supervisor, "try_once", changing)
        expected = r"rows.txt changed while the sweep ran. .* Start the sweep again to measure the new content"
    else:
        path.unlink()
    with coordinator.connect(run_folder.LOCAL) as client:
        future = client.submit(machine_tasks.measure, given, asked, pure=False)
        if which == "is not there":
            assert future.result(SECONDS)["status"] == "failed", "its record says so"
        else:
            with pytest.raises(machine_tasks.RefusedError, match=expected):
                future.result(SECONDS)


def test_a_machine_with_other_versions_is_not_used(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator, "code_versions", lambda: machine.code_versions() | {"numpy": "0.1"})
    state, rows = on(scheduler, tmp_path, ("a",))
    assert (state.state, rows) == ("failed", [])
    assert "The code is {'python'" in state.message


def test_a_cluster_that_others_can_read_is_refused_with_the_commands_that_encrypt_it():
    with pytest.raises(OpenClusterError, match=r"openssl req -x509[\s\S]*dask scheduler --tls-ca-file"):
        coordinator.connect("tcp://10.0.0.7:8786").__enter__()
    with pytest.raises(coordinator.NoMachinesError, match=r"tls://127.0.0.1:1 is not reached"):
        coordinator.connect("tls://127.0.0.1:1").__enter__()


def test_a_cluster_without_machines_says_how_a_worker_stands_for_one(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator, "SECONDS_JOIN", 1.0)
    with dask_process.started("worker", scheduler):
        state, _ = run(tmp_path, scheduler)
    assert state.state == "failed"
    assert f"dask worker {scheduler} --no-nanny" in state.message


@pytest.mark.parametrize("where", ["local:2", "ssh:node1", "slurm:4", "http://1.2.3.4:1", ""])
def test_where_no_machine_can_be_is_refused(where, tmp_path):
    with pytest.raises(SpecError, match="expected local, or the address of a Dask scheduler"):
        run_folder.start_run(SPEC, tmp_path / "run", cluster=where)
    assert not (tmp_path / "run").exists()
