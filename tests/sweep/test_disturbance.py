"""Trials beside which other programs are at work: tried again, waited for, kept out, and never a winner."""

import pytest

from tests.support.sweeps import row_of_trial
from tests.support.tiny_sweeps import DENSE, QUICK, TINY, spec_of
from workbench import store
from workbench.measure import machine
from workbench.sweep import run_folder, runner
from workbench.sweep.budget import Budget
from workbench.sweep.spec import Measure
from workbench.sweep.trial import settings_of

ROUNDS = {"seconds_total": 0.0, "rounds": 12}


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    """A supervisor whose trials take no time; `busy` gives what other programs took beside each try."""
    monkeypatch.setattr(machine, "record", dict)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(runner, "SECONDS_LOOK", 0.0)
    made = runner.Supervisor(spec_of(density=[0.1], measure=ROUNDS), tmp_path)
    made.busy, made.tried = [], 0

    def try_once(task, busy_most):
        share = made.busy[made.tried % len(made.busy)]
        made.tried += 1
        known = {"key": task.key, "round": task.round, "run": "run", "status": "ok", "busy_others": share}
        seconds = 3.0 if task.cell.format == "dense" else 1.0
        return store.new_row(**settings_of(task.cell) | known, seconds_step=seconds, bytes_peak=7)

    monkeypatch.setattr(made, "try_once", try_once)
    return made


def rows_of(supervisor) -> list[dict]:
    supervisor.run()
    return run_folder.rows(supervisor.folder)


def test_on_a_quiet_machine_each_trial_is_tried_once(supervisor):
    supervisor.busy = [0.02]
    rows = rows_of(supervisor)
    assert {(row["status"], row["tries"]) for row in rows} == {("ok", 1)}
    assert len(rows) == 8


def test_a_disturbed_trial_is_tried_again_and_the_last_try_counts(supervisor):
    supervisor.busy = [0.9, 0.0]
    rows = rows_of(supervisor)
    assert {(row["status"], row["tries"], row["busy_others"]) for row in rows} == {("ok", 2, 0.0)}


def test_a_trial_that_never_was_alone_says_so_and_keeps_its_memory(supervisor):
    supervisor.busy = [0.9]
    rows = rows_of(supervisor)
    assert len(rows) == 8, "four rounds, then the comparison is given up"
    assert {row["status"] for row in rows} == {"disturbed"}
    assert {row["bytes_peak"] for row in rows} == {7}
    assert rows[0]["reason"] == "Other programs were at work in each try."
    state = run_folder.read(supervisor.folder)
    assert (state.state, state.counts) == ("finished", {"disturbed": 8})


def test_disturbed_rounds_are_measured_anew_when_the_sweep_is_started_again(supervisor, monkeypatch):
    supervisor.busy = [0.9]
    rows_of(supervisor)
    again = runner.Supervisor(supervisor.spec, supervisor.folder)
    monkeypatch.setattr(again, "try_once", supervisor.try_once)
    supervisor.busy = [0.0]
    again.run()
    rows = run_folder.rows(supervisor.folder)
    assert [row["status"] for row in rows] == ["disturbed"] * 8 + ["ok"] * 8
    assert {row["round"] for row in rows if row["status"] == "ok"} == {4, 5, 6, 7}


def test_rounds_too_few_to_decide_need_not_be_alone(supervisor):
    supervisor.spec = spec_of(density=[0.1], measure={**ROUNDS, "rounds": 3})
    supervisor.busy = [0.9]
    assert {(row["status"], row["tries"]) for row in rows_of(supervisor)} == {("ok", 1)}


def test_waiting_ends_with_the_patience_of_the_sweep_with_quiet_or_with_a_stop(supervisor, monkeypatch):
    monkeypatch.setattr(runner, "SECONDS_LOOK", 0.001)
    shares = iter([0.9, 0.9, 0.0])
    monkeypatch.setattr(machine.OtherPrograms, "share", lambda self: next(shares))
    supervisor.seconds_patience = 1.0
    supervisor.await_quiet(0.1)
    assert next(shares, None) is None, "it waits no longer than needed"
    supervisor.seconds_patience = 0.0
    supervisor.await_quiet(0.1)
    supervisor.seconds_patience = 1.0
    supervisor.is_asked_to_stop.set()
    supervisor.await_quiet(0.1)


@pytest.mark.parametrize(
    ("cores", "threads", "limit"),
    [(2, 2, 0.1), (2, 1, 0.1125), (8, 8, 0.1), (8, 2, 0.95 / 8), (1, 1, 0.1), (1, 2, 0.1)],
)
def test_a_little_of_the_cores_may_be_taken_a_little_more_of_those_left_free(monkeypatch, cores, threads, limit):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: cores)
    assert machine.disturbance_limit(threads) == pytest.approx(limit)


def test_a_budget_that_is_out_ends_the_sweep_with_what_it_has(supervisor):
    supervisor.spec = spec_of(
        density=[0.1, 0.2], measure=ROUNDS, limits={"seconds_sweep": 1e-9}, contenders=({}, DENSE)
    )
    supervisor.budget, supervisor.busy = Budget(supervisor.spec), [0.0]
    assert rows_of(supervisor) == []
    state = run_folder.read(supervisor.folder)
    assert state.state == "finished"
    assert "The budget seconds_sweep = 1e-09 s is out; up to 48 more trials" in state.message


def test_a_race_whose_time_is_out_begins_no_trial_that_would_end_too_late(supervisor):
    supervisor.spec = spec_of(
        density=[0.1],
        measure={**ROUNDS, "race": True},
        limits={"seconds_sweep": 1000.0},
        contenders=({}, {"format": "coo"}, {"format": "csc"}, DENSE),
    )
    supervisor.budget, supervisor.busy = Budget(supervisor.spec, seconds_before=900.0), [0.0]
    try_once = supervisor.try_once

    def lasting(task, busy_most):
        supervisor.budget.lasted(task.key, 150.0)
        return try_once(task, busy_most)

    supervisor.try_once = lasting
    assert len(rows_of(supervisor)) == 2, "one of each side, whatever they take"
    assert "The budget seconds_sweep = 1000 s is out" in run_folder.read(supervisor.folder).message


def test_under_a_load_that_stays_trials_are_tried_once_when_waiting_has_not_helped(supervisor):
    supervisor.busy, supervisor.seconds_patience = [0.9], 0.0
    assert [row["tries"] for row in rows_of(supervisor)] == [3] + 7 * [1]


def test_a_trial_that_is_disturbed_trains_no_epochs_in_vain():
    request = {"cell": {**TINY, "density": 0.1, "epochs": 10**6}, "measure": Measure(**QUICK).model_dump()}
    row = row_of_trial(request | {"bytes_limit": 2**34, "busy_most": -1.0})
    assert (row["status"], row["reason"]) == ("disturbed", "Other programs were at work.")
    assert row["seconds_step"] > 0
