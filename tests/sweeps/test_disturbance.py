"""Trials beside which other programs are at work are kept with their numbers; a budget that is out ends a sweep."""

import pytest

from tests.support.tiny_sweeps import DENSE, spec_of
from workbench import store
from workbench.measure import child, machine
from workbench.sweeps import run_folder, runner
from workbench.sweeps.budget import Budget
from workbench.sweeps.trial import settings_of

ROUNDS = {"trial_seconds": 0.0, "rounds": 12}


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    """A supervisor whose trials take no time and are one after the other; `busy` gives what other programs took beside
    each."""
    monkeypatch.setattr(machine, "describe_machine", dict)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(child, "can_alternate", lambda: False)
    return Made(spec_of(density=[0.1], measure=ROUNDS), tmp_path)


class Made(runner.Supervisor):
    """Supervisor of trials that take no time."""

    def __init__(self, spec, folder):
        super().__init__(spec, folder)
        self.busy, self.tried = [0.0], 0

    def of_spec(self, **given):
        """Take another spec."""
        self.spec = spec_of(**given)
        self.budget = Budget(self.spec)
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


def test_on_a_quiet_machine_three_rounds_tell_a_factor_of_3(supervisor):
    supervisor.busy = [0.02]
    assert [row["status"] for row in rows_of(supervisor)] == 6 * ["ok"]


def test_a_disturbed_trial_keeps_its_numbers_and_says_so(supervisor):
    supervisor.busy = [0.9]
    rows = rows_of(supervisor)
    assert {(row["status"], row["reason"], row["bytes_peak"]) for row in rows} == {
        ("disturbed", "Other programs were running.", 7)
    }
    assert {row["seconds_step"] for row in rows} == {1.0, 3.0}
    state = run_folder.read_progress(supervisor.folder)
    assert (state.state, state.counts) == ("finished", {"disturbed": len(rows)})


def test_a_sweep_started_again_when_it_is_quiet_goes_on_where_all_was_disturbed(supervisor):
    supervisor.busy = [0.9]
    first = rows_of(supervisor)
    again = Made(supervisor.spec, supervisor.folder)
    again.run()
    rows = run_folder.read_current_records(supervisor.folder)
    assert [row["status"] for row in rows[: len(first)]] == ["disturbed"] * len(first)
    assert {row["status"] for row in rows[len(first) :]} == {"ok"}
    assert {row["round"] for row in rows if row["status"] == "ok"}.isdisjoint({row["round"] for row in first})


def test_a_spec_may_say_how_much_of_the_cores_other_programs_may_take(supervisor):
    supervisor.of_spec(density=[0.1], measure={**ROUNDS, "busy_most": 0.95})
    supervisor.busy = [0.9]
    assert {row["status"] for row in rows_of(supervisor)} == {"ok"}


@pytest.mark.parametrize(
    ("cores", "threads", "limit"),
    [(2, 2, 0.1), (2, 1, 0.1125), (8, 8, 0.1), (8, 2, 0.95 / 8), (1, 1, 0.1), (1, 2, 0.1)],
)
def test_a_little_of_the_cores_may_be_taken_a_little_more_of_those_left_free(monkeypatch, cores, threads, limit):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: cores)
    assert machine.disturbance_limit(threads) == pytest.approx(limit)


def test_a_budget_that_is_out_ends_the_sweep_with_what_it_has(supervisor):
    limits = {"budget": 1e-9}
    supervisor.of_spec(density=[0.1, 0.2], measure=ROUNDS, limits=limits, candidates=({}, DENSE))
    assert rows_of(supervisor) == []
    state = run_folder.read_progress(supervisor.folder)
    assert state.state == "finished"
    assert "The budget of 0 s is spent; up to 48 more trials" in state.message


def test_a_race_whose_time_is_out_begins_no_trial_that_would_end_too_late(supervisor):
    supervisor.of_spec(
        density=[0.1],
        measure={**ROUNDS, "race": True},
        limits={"budget": 1000.0},
        candidates=({}, {"format": "coo"}, {"format": "csc"}, DENSE),
    )
    supervisor.budget = Budget(supervisor.spec, seconds_before=900.0)
    try_once = supervisor.try_once

    def lasting(task):
        supervisor.budget.record_duration(task.key, 150.0)
        return try_once(task)

    supervisor.try_once = lasting
    assert len(rows_of(supervisor)) == 2, "one of each side, whatever they take"
    assert "The budget of 1,000 s is spent; up to 2 more trials" in run_folder.read_progress(supervisor.folder).message
