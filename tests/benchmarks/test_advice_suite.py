"""The suite of advice: its cases and full sweeps mean something, a stop leaves no row, races are played back."""

import pytest

from benchmarks import advice_suite as runner
from benchmarks import tables
from benchmarks.pages import suites
from workbench.sweeps import grid, run_folder
from workbench.sweeps.spec import SpecError


@pytest.mark.parametrize("case", runner.CASES, ids=lambda case: case.name)
def test_a_full_sweep_has_dense_and_every_sparse_format_in_rounds_that_decide(case):
    spec = runner.full_sweep(case)
    found = grid.expand_grid(spec)
    formats = [configuration.format for configuration in found.configurations]
    assert {"csr", "coo", "csc", "dense"} <= set(formats)
    dense = {
        (configuration.storage, configuration.execution)
        for configuration in found.configurations
        if configuration.format == "dense"
    }
    assert ("same", "step") in dense
    assert dense <= {(storage, execution) for storage in ("same", "csr") for execution in ("step", "epoch")}
    assert not any(configuration.serial for configuration in found.configurations if configuration.execution == "epoch")
    assert spec.measure.rounds == 4
    assert not found.dropped


@pytest.mark.parametrize("name", ["thick logistic", "full softmax", "columns linear"])
def test_a_full_sweep_has_dense_epochs_and_dense_data_held_as_csr(name):
    [case] = runner.choose_cases([name])
    dense = [one for one in runner.every_candidate(case.settings) if one["format"] == "dense"]
    ways = {(one["storage"], one["execution"]) for one in dense}
    assert ways == {("same", "step"), ("same", "epoch"), ("csr", "step"), ("csr", "epoch")}


@pytest.mark.parametrize("chosen", [runner.choose_cases(), runner.choose_cases(is_quick=True)], ids=["all", "quick"])
def test_the_cases_are_enough_and_some_are_as_dense_as_tables_are(chosen):
    drawn = [case.settings for case in chosen]
    assert len(drawn) >= 12
    dense = [one for one in drawn if one.get("density", 0) >= 0.4 and 64 <= one["features"] <= 512]
    assert len(dense) >= 4
    assert {"uniform", "power_law", "mixed", "stdlib"} <= {one["dataset"] for one in drawn}


def test_cases_are_chosen_by_name_and_unknown_ones_list_the_known():
    assert [case.name for case in runner.choose_cases(is_quick=True)] == list(runner.QUICK)
    with pytest.raises(SpecError, match=r"Unknown case 'thik'.*Expected one of: text softmax"):
        runner.choose_cases(["thik"])


def test_cases_of_the_same_data_are_told_so_whatever_their_model():
    data = {case.name: runner._data_of(case) for case in runner.CASES}
    assert data["words softmax"] == data["words logistic adam"] != data["narrow softmax"]


@pytest.mark.parametrize(
    ("statuses", "why"),
    [
        ("ok ok ok disturbed", ""),
        ("ok disturbed ok disturbed", "Other programs were running during 2 of 4 configurations"),
        ("failed failed memory failed", "No configuration of the full sweep has a time."),
    ],
)
def test_a_sweep_that_other_programs_disturbed_judges_nothing(statuses, why):
    judged = [{"is_faithful": True, "status": status} for status in statuses.split()]
    assert runner.why_not_judged([*judged, {"is_faithful": False, "status": "disturbed"}]).startswith(why)
    assert bool(runner.why_not_judged(judged)) == bool(why)


def test_a_suite_that_is_stopped_has_no_row_of_the_case_at_work(tmp_path, monkeypatch):
    monkeypatch.setattr(runner.run_folder, "start_run", lambda spec, folder: folder)
    monkeypatch.setattr(runner.run_folder, "read_progress", lambda folder: run_folder.Progress("x", state="stopped"))
    [case] = runner.choose_cases(["thick logistic"])
    assert runner.run([case], tmp_path, tmp_path / "runs", follow=lambda *_: None) is False
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_case_that_fails_has_a_row_that_says_why_the_others_go_on_and_it_is_tried_again(tmp_path, monkeypatch):
    def fails(case, *_):
        tried.append(case.name)
        raise run_folder.RunError("The disk is full.")

    monkeypatch.setattr(runner, "_measure_case", fails)
    both, tried = runner.choose_cases(["thick logistic", "half linear"]), []
    assert runner.run(both, tmp_path, tmp_path / "runs") is True
    rows = tables.ADVICE.read(tmp_path)
    assert [(row["case"], row["status"], row["reason"]) for row in rows] == [
        ("thick logistic", "failed", "The disk is full."),
        ("half linear", "failed", "The disk is full."),
    ]
    assert runner.run(both, tmp_path, tmp_path / "runs") is True
    assert tried == ["thick logistic", "half linear"] * 2
    page = suites.write_advice(tmp_path, predicted=("Error where uniform was left out: 12 %.",)).read_text(
        encoding="utf-8"
    )
    assert "The disk is full." in page
    assert "- Error where uniform was left out: 12 %." in page


def test_a_case_is_measured_anew_when_what_advises_is_other_code(tmp_path, monkeypatch):
    [case] = runner.choose_cases(["thick logistic"])
    tmp_path.mkdir(exist_ok=True)
    known = {"case": case.name, "cells": [], "recommended": {}, "versions": {}}
    tables.ADVICE.append(
        tmp_path / tables.ADVICE.file, tables.ADVICE.new_row(key=runner._keys(case)[1], status="ok", **known)
    )
    assert runner.remaining_cases([case], tmp_path) == []
    monkeypatch.setattr(runner, "ADVISING", ("workbench.advising.candidates",))
    assert runner.remaining_cases([case], tmp_path) == [case]


EPOCH = {"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "execution": "epoch"}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "execution": "step"}
COO = {**EPOCH, "format": "coo", "gradient": "fused", "execution": "step"}


def recorded(*seconds, seconds_sweep=60.0) -> runner.RecordedCase:
    """A case whose configurations epoch, dense and COO take so long; a trial took a second."""
    judged = [
        {**line, "serial": False, "status": "ok", "seconds": each, "is_faithful": True}
        for line, each in zip((EPOCH, DENSE, COO), seconds, strict=True)
    ]
    row = {"status": "ok", "case": "made", "dataset": "uniform", "model": "logistic", "optimizer": "sgd"}
    row |= {"cells": judged, "trials_sweep": seconds_sweep, "seconds_sweep": seconds_sweep}
    [found] = runner.read_recorded_cases([row])
    return found


def test_a_race_that_is_played_back_keeps_to_its_time_and_finds_what_is_far_ahead():
    found = runner.replay_races([recorded(1.0, 3.0, 4.0)], draws=5)
    assert {name for _, name in found} == set(runner.WAYS)
    own = found["made", "as advice does"]
    assert {one.regret for one in own} == {1.0}
    assert all(one.is_right_side and one.seconds <= 12.0 for one in own)


def test_more_rounds_lose_less_to_noise_when_races_are_played_back():
    found = runner.replay_races([recorded(1.0, 1.3, 9.0, seconds_sweep=80.0)], draws=60, noise=0.4)
    mean = {way: sum(one.regret for one in came) / len(came) for (_, way), came in found.items()}
    assert mean["as advice does"] < mean["one round of all"]
