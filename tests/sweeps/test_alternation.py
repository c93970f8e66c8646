"""Rounds that are measured by processes which live side by side: their rows, their limits, and when there are none."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.support.clocks import Clock
from tests.support.sweeps import swept
from tests.support.tiny_sweeps import DENSE, QUICK, TINY, spec_of, trial_row
from workbench.measure import child, machine
from workbench.sweeps import alternation, budget, grid, run_folder, schedule, trial
from workbench.sweeps.budget import TrialClock
from workbench.sweeps.runner import Supervisor
from workbench.sweeps.schedule import Task
from workbench.sweeps.spec import Configuration, Measure

needs_turns = pytest.mark.skipif(not child.can_alternate(), reason="This system cannot end a stopped process.")
MEASURE = {**QUICK, "rounds": 4, "roofs": False}
DATA = {"rows": 3000, "features": 200, "density": [0.1]}
ONCE = ("bytes_peak", "bytes_held", "error", "curve", "loss_last", "seconds_first_step", "seconds_prepare")


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch):
    """Tests beside these disturb trials as short as theirs."""
    monkeypatch.setattr(machine, "disturbance_limit", lambda _: 1.0)


@needs_turns
def test_processes_measure_some_rounds_and_the_next_ones_are_new(tmp_path, monkeypatch):
    """However soon the times of these tiny trials would decide."""
    monkeypatch.setattr(schedule, "rounds_due", lambda _decision, measured, most, _is_race: int(measured < most))
    folder = tmp_path / "run"
    state = swept(spec_of(measure=MEASURE, density=[0.1]), folder)
    rows = run_folder.read_current_records(folder)
    assert (state.state, state.counts) == ("finished", {"ok": 8}), rows
    assert alternation.ROUNDS_A_SET == 3
    assert [(row["round"], row["process"]) for row in rows] == [(0, 0)] * 2 + [(1, 0)] * 2 + [(2, 0)] * 2 + [(3, 3)] * 2
    first, *_ = by_format = {row["format"]: [one for one in rows if one["format"] == row["format"]] for row in rows}
    assert len(by_format) == 2
    for own in by_format.values():
        assert len({row["seconds_step"] for row in own}) == 4, "each round has samples of its own"
        assert all(len(row["samples"]) >= QUICK["samples_least"] for row in own)
        for name in ONCE:
            assert own[0][name] is not None, name
            assert own[0][name] == own[1][name] == own[2][name], name
    assert by_format[first][0]["seconds_first_step"] != by_format[first][3]["seconds_first_step"]


@needs_turns
def test_what_does_not_fit_beside_the_other_is_measured_after_it(tmp_path):
    alone = [trial_row(**{**DATA, "density": 0.1}, **one)["bytes_predicted"] for one in ({}, DENSE)]
    limits = {"bytes_cell": max(alone) + min(alone) // 2}
    swept(spec_of(measure=MEASURE | {"rounds": 2}, limits=limits, **DATA), tmp_path / "run")
    rows = run_folder.read_current_records(tmp_path / "run")
    assert [(row["status"], row["process"]) for row in rows] == [("ok", 0)] * 2 + [("ok", 1)] * 2
    more = {"bytes_cell": 2 * sum(alone)}
    swept(spec_of(measure=MEASURE | {"rounds": 2}, limits=more, **DATA), tmp_path / "more")
    assert {row["process"] for row in run_folder.read_current_records(tmp_path / "more")} == {0}


@needs_turns
def test_a_candidate_that_never_fits_is_a_row_and_the_other_goes_on(tmp_path):
    limits = {"bytes_cell": trial_row(**{**DATA, "density": 0.1})["bytes_predicted"] + 1000}
    state = swept(spec_of(measure=MEASURE, limits=limits, **DATA), tmp_path / "run")
    assert state.counts == {"memory": 1, "ok": 4}


TURNS = {"cell": {**TINY, "density": 0.1}, "measure": Measure(**QUICK).model_dump(), "bytes_limit": 2**34}
TURNS |= {"in_turns": True, "seconds_limit": 60.0}
TURN = {"seconds": 0.0, "seconds_settle": 0.0}


def waiting(**more):
    """The answers of a trial's process, and its answer when it first waits."""
    answers = trial.answers(TURNS | more)
    for answer in answers:
        if "waits" in answer:
            return answers, answer
    raise AssertionError(answer)


def test_a_round_has_enough_after_as_many_turns_as_samples_are_asked_for():
    answers, first = waiting()
    assert first["bytes"] > 0
    enough = [answers.send(TURN)["is_enough"] for _ in range(3)]
    assert enough == [False, False, True]
    row = answers.send({"record": True})["row"]
    assert (row["status"], len(row["samples"])) == ("ok", 3)
    assert not answers.send(TURN)["is_enough"], "another round has begun"


def test_time_that_others_compute_in_counts_for_no_limit_of_the_process(monkeypatch):
    now = Clock()
    monkeypatch.setattr(trial, "time", SimpleNamespace(monotonic=now, perf_counter=time.perf_counter))
    answers, _ = waiting(started=0.0)
    for _ in range(3):
        now.now += 1000.0
        assert "waits" in answers.send(TURN)
    assert answers.send({"record": True})["row"]["status"] == "ok"


def test_a_process_whose_own_time_is_out_ends_with_what_it_has():
    answers, _ = waiting(seconds_limit=0.0)
    row = answers.send(TURN)
    assert row["status"] == "timeout"
    assert row["reason"] == "Stopped after 0 s (limits.seconds_cell), with 1 sample of 1 step."
    assert row["bytes_peak"] is not None


@pytest.fixture
def now(monkeypatch):
    clock = Clock()
    for module in (budget, child):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    return clock


def test_a_clock_stands_still_while_its_process_rests(now):
    clock = TrialClock(10.0)
    now.now = 4.0
    clock.rest()
    now.now = 1000.0
    assert clock.seconds == 4.0
    clock.resume()
    now.now = 1005.0
    assert (clock.seconds, clock.why_end) == (9.0, {})
    now.now = 1006.5
    assert clock.why_end["status"] == "timeout"


def test_a_clock_tells_what_the_first_step_had_taken_when_the_time_was_out(now):
    clock = TrialClock(10.0)
    now.now = 2.0
    clock.enter(budget.COMPILING)
    now.now = 5.0
    clock.enter("measuring")
    clock.enter_steps(4)
    now.now = 6.0
    clock.rest()
    now.now = 100.0
    clock.resume()
    now.now = 109.0
    assert clock.why_end["seconds_first_step"] == pytest.approx(10.0 / 4)
    clock.enter_steps(0)
    now.now = 120.0
    assert clock.why_end["seconds_first_step"] == pytest.approx(10.0 / 4), "it has ended, and no other one began"
    clock.begin()
    clock.end = 125.0
    clock.enter_steps(1)
    now.now = 125.1
    assert clock.why_end["seconds_first_step"] == pytest.approx(5.1)
    assert clock.why_end["status"] == "stopped"


def test_a_first_step_bounds_nothing_if_it_is_short_or_compiles(now):
    clock = TrialClock(10.0)
    clock.enter_steps(1)
    now.now = 0.4
    clock.enter_steps(0)
    clock.enter_steps(1)
    clock.enter(budget.COMPILING)
    now.now = 11.0
    clock.end = 10.0
    assert clock.why_end == {"status": "stopped", "reason": "The budget was out while this trial ran."}


def test_a_trial_says_when_a_part_of_a_checked_step_and_its_first_step_begin_and_end(monkeypatch):
    said = []
    monkeypatch.setattr(child, "tell", said.append)
    list(trial.answers({name: value for name, value in TURNS.items() if name != "in_turns"}))
    assert [answer["steps_begun"] for answer in said if "steps_begun" in answer] == [1, 0] * (2 * 3 + 1)


def tasks(count: int = 2, **settings: object) -> list[Task]:
    configurations = [Configuration(**{**TINY, "density": 0.1, "seed": seed, **settings}) for seed in range(count)]
    return [Task(configuration, grid.configuration_key(configuration), 0) for configuration in configurations]


@needs_turns
@pytest.mark.parametrize(
    ("given", "suits"),
    [
        ({}, True),
        ({"count": 6}, True),
        ({"count": 7}, False),
        ({"count": 1}, False),
        ({"epochs": 1}, False),
        ({"device": "cuda"}, False),
        ({"trainers": 2, "threads": 2, "batch_rows": 20}, False),
    ],
    ids=["two", "six", "seven", "one", "epochs", "cuda", "trainers"],
)
def test_few_candidates_that_take_steps_on_the_cpu_take_turns(tmp_path, monkeypatch, given, suits):
    supervisor, few = Supervisor(spec_of(), tmp_path), tasks(**given)
    assert supervisor.in_turns.suits(few) == suits
    monkeypatch.setattr(child, "can_alternate", lambda: False)
    assert not supervisor.in_turns.suits(few)


@needs_turns
def test_the_first_round_of_a_race_is_measured_one_after_the_other_since_one_may_take_too_long_to_begin(tmp_path):
    supervisor = Supervisor(spec_of(measure={**MEASURE, "race": True}), tmp_path)
    for number, suits in ((0, False), (1, True)):
        of_round = [replace(task, round=number) for task in tasks()]
        assert supervisor.in_turns.suits(of_round) == suits
