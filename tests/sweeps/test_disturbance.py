"""Trials beside which other programs are at work: kept with their numbers, and tried again where it is quiet again."""

import pytest

from tests.support.tiny_sweeps import DENSE, spec_of
from workbench import store
from workbench.measure import child, machine
from workbench.sweeps import run_folder, runner
from workbench.sweeps.budget import Budget
from workbench.sweeps.runner import Disturbance
from workbench.sweeps.spec import Configuration, Measure
from workbench.sweeps.trial import settings_of

ROUNDS = {"seconds_total": 0.0, "rounds": 12}


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    """A supervisor whose trials take no time and are one after the other; `busy` gives what other programs took beside
    each try, `quiet_again` whether they are gone when they are looked for after it."""
    monkeypatch.setattr(machine, "describe_machine", dict)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(runner, "SECONDS_LOOK", 0.0)
    monkeypatch.setattr(child, "can_alternate", lambda: False)
    return Made(spec_of(density=[0.1], measure=ROUNDS), tmp_path, monkeypatch)


class Made(runner.Supervisor):
    """Supervisor of trials that take no time."""

    def __init__(self, spec, folder, monkeypatch):
        super().__init__(spec, folder)
        self.busy, self.tried, self.is_quiet_again = [0.0], 0, True
        monkeypatch.setattr(machine.OtherPrograms, "share", lambda _: 0.0 if self.is_quiet_again else 1.0)
        self.disturbance.seconds_patience = 0.0

    def of_spec(self, **given):
        """Take another spec."""
        self.spec = spec_of(**given)
        self.budget, self.disturbance = Budget(self.spec), Disturbance(self.spec.measure)
        return self

    def try_once(self, task):
        share = self.busy[self.tried % len(self.busy)]
        self.tried += 1
        known = {"key": task.key, "round": task.round, "run": "run", "status": "ok", "busy_others": share}
        seconds = 3.0 if task.configuration.format == "dense" else 1.0
        return store.new_row(**settings_of(task.configuration) | known, seconds_step=seconds, bytes_peak=7)


def rows_of(supervisor) -> list[dict]:
    supervisor.run()
    return run_folder.read_current_records(supervisor.folder)


def test_on_a_quiet_machine_each_trial_is_tried_once(supervisor):
    supervisor.busy = [0.02]
    rows = rows_of(supervisor)
    assert {(row["status"], row["tries"]) for row in rows} == {("ok", 1)}
    assert len(rows) == 6, "three rounds tell a factor of 3"


def test_a_trial_that_a_burst_disturbed_is_tried_again_and_the_last_try_counts(supervisor):
    supervisor.busy = [0.9] + 20 * [0.0]
    rows = rows_of(supervisor)
    assert [(row["status"], row["tries"]) for row in rows] == [("ok", 2)] + (len(rows) - 1) * [("ok", 1)]


def test_a_comparison_has_one_more_try_and_no_other(supervisor):
    supervisor.busy = [0.9]
    rows = rows_of(supervisor)
    assert [row["tries"] for row in rows] == [2] + 7 * [1]
    assert {row["status"] for row in rows} == {"disturbed"}


def test_under_a_load_that_stays_trials_are_tried_once_and_keep_their_numbers(supervisor):
    supervisor.busy, supervisor.is_quiet_again = [0.9], False
    rows = rows_of(supervisor)
    assert {(row["status"], row["tries"], row["bytes_peak"]) for row in rows} == {("disturbed", 1, 7)}
    assert {row["seconds_step"] for row in rows} == {1.0, 3.0}
    assert rows[0]["reason"] == "Other programs were running."
    state = run_folder.read_progress(supervisor.folder)
    assert (state.state, state.counts) == ("finished", {"disturbed": len(rows)})


def test_a_sweep_started_again_when_it_is_quiet_goes_on_where_all_was_disturbed(supervisor, monkeypatch):
    supervisor.busy, supervisor.is_quiet_again = [0.9], False
    first = rows_of(supervisor)
    again = Made(supervisor.spec, supervisor.folder, monkeypatch)
    again.run()
    rows = run_folder.read_current_records(supervisor.folder)
    assert [row["status"] for row in rows[: len(first)]] == ["disturbed"] * len(first)
    assert {row["status"] for row in rows[len(first) :]} == {"ok"}
    assert {row["round"] for row in rows if row["status"] == "ok"}.isdisjoint({row["round"] for row in first})


def test_a_spec_may_say_how_much_of_the_cores_other_programs_may_take(supervisor):
    supervisor.of_spec(density=[0.1], measure={**ROUNDS, "busy_most": 0.95})
    supervisor.busy = [0.9]
    assert {(row["status"], row["tries"]) for row in rows_of(supervisor)} == {("ok", 1)}


def test_waiting_ends_with_the_patience_of_the_sweep_with_quiet_or_with_a_stop(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS_LOOK", 0.001)
    configurations, shares = [Configuration()], iter([0.9, 0.9, 0.0])
    monkeypatch.setattr(machine.OtherPrograms, "share", lambda _: next(shares))
    assert Disturbance(Measure(seconds_quiet=1.0)).is_over(configurations)
    assert next(shares, None) is None, "it waits no longer than needed"
    monkeypatch.setattr(machine.OtherPrograms, "share", lambda _: 0.9)
    assert not Disturbance(Measure(seconds_quiet=0.003)).is_over(configurations)
    assert not Disturbance(Measure(seconds_quiet=1e9), lambda: False).is_over(configurations)
    assert not Disturbance(Measure(seconds_quiet=1e9, race=True)).is_over(configurations), "a race does not wait"


@pytest.mark.parametrize(
    ("cores", "threads", "limit"),
    [(2, 2, 0.1), (2, 1, 0.1125), (8, 8, 0.1), (8, 2, 0.95 / 8), (1, 1, 0.1), (1, 2, 0.1)],
)
def test_a_little_of_the_cores_may_be_taken_a_little_more_of_those_left_free(monkeypatch, cores, threads, limit):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: cores)
    assert machine.disturbance_limit(threads) == pytest.approx(limit)


def test_a_budget_that_is_out_ends_the_sweep_with_what_it_has(supervisor):
    limits = {"seconds_sweep": 1e-9}
    supervisor.of_spec(density=[0.1, 0.2], measure=ROUNDS, limits=limits, candidates=({}, DENSE))
    assert rows_of(supervisor) == []
    state = run_folder.read_progress(supervisor.folder)
    assert state.state == "finished"
    assert "The budget of 0 s is out; up to 48 more trials" in state.message


def test_a_race_whose_time_is_out_begins_no_trial_that_would_end_too_late(supervisor):
    supervisor.of_spec(
        density=[0.1],
        measure={**ROUNDS, "race": True},
        limits={"seconds_sweep": 1000.0},
        candidates=({}, {"format": "coo"}, {"format": "csc"}, DENSE),
    )
    supervisor.budget = Budget(supervisor.spec, seconds_before=900.0)
    try_once = supervisor.try_once

    def lasting(task):
        supervisor.budget.record_duration(task.key, 150.0)
        return try_once(task)

    supervisor.try_once = lasting
    assert len(rows_of(supervisor)) == 2, "one of each side, whatever they take"
    assert "The budget of 1,000 s is out; up to 2 more trials" in run_folder.read_progress(supervisor.folder).message
