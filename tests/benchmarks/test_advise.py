"""Advice is judged by the times of full sweeps, beside fixed rules, on cases that are drawn from a seed."""

import pytest

from benchmarks import advise, tables
from benchmarks.harness import Run
from workbench.sweeps import grid, run_folder

EPOCH = {"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "execution": "epoch"}
FUSED = EPOCH | {"gradient": "fused", "execution": "step"}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "execution": "step"}
DENSE_EPOCH = DENSE | {"execution": "epoch"}


def case(name, density, times, recommended, interval=None, **more):
    """A record whose configurations fused, csr epoch, dense and dense epoch take those seconds."""
    cells = [
        {**line, "storage": "same", "serial": False, "status": "ok", "seconds": seconds, "is_faithful": True}
        for line, seconds in zip((FUSED, EPOCH, DENSE, DENSE_EPOCH), times, strict=True)
    ]
    low, high = interval or (None, None)
    known = {"status": "ok", "case": name, "key": name, "density": density, "cells": cells, "recommended": recommended}
    known |= {"bytes_csr": 1, "bytes_dense": 2, "seconds_sweep": 100.0, "seconds_advice": 20.0, "load": "quiet"}
    return tables.ADVICE.new_row(**known | {"ratio_low": low, "ratio_high": high, "machine": "m"} | more)


CASES = (
    case("thin", 0.001, (2.0, 1.0, 9.0, 8.0), EPOCH, (7.0, 10.0)),
    case("middle", 0.08, (1.0, 2.0, 3.0, 4.0), EPOCH, (4.0, 8.0)),
    case("thick", 0.4, (9.0, 8.0, 2.0, 1.0), DENSE_EPOCH, (0.1, 0.2), bytes_csr=3),
)


@pytest.mark.parametrize("one", advise.draw_cases(12, seed=3), ids=lambda one: one.name)
def test_a_full_sweep_of_a_drawn_case_has_dense_and_every_sparse_format(one):
    found = grid.expand_grid(advise.full_sweep(one))
    assert {"csr", "coo", "csc", "dense"} <= {each.format for each in found.configurations}
    dense = {(each.storage, each.execution) for each in found.configurations if each.format == "dense"}
    assert dense == {(storage, execution) for storage in ("same", "csr") for execution in ("step", "epoch")}
    assert not found.dropped
    assert 4 * one.rows * one.features <= advise.BYTES_DENSE or one.rows == 1024


def test_cases_are_drawn_anew_by_another_seed_and_stay_if_more_are_drawn():
    assert advise.draw_cases(3, 5) == advise.draw_cases(9, 5)[:3]
    assert not set(advise.draw_cases(5, 5)) & set(advise.draw_cases(5, 6))
    many = advise.draw_cases(60)
    assert {one.load for one in many} == set(advise.LOADS)
    assert {one.dataset for one in many} == {"uniform", "power_law", "mixed"}
    assert min(one.density for one in many) < 0.001
    assert max(one.density for one in many) > 0.5
    assert len({one.name for one in many}) == 60


def test_regret_is_the_time_of_the_choice_over_the_least_and_rules_go_by_the_data_alone():
    found = advise.regrets(CASES)
    assert found["advice"] == {"thin": 1.0, "middle": 2.0, "thick": 1.0}
    assert found["always sparse"] == {"thin": 1.0, "middle": 2.0, "thick": 8.0}
    assert found["always dense"] == {"thin": 8.0, "middle": 4.0, "thick": 1.0}
    assert found["by bytes"] == {"thin": 1.0, "middle": 2.0, "thick": 1.0}
    assert found["dense from 5 %"] == {"thin": 1.0, "middle": 4.0, "thick": 1.0}
    assert found["dense from 50 %"]["thick"] == 8.0


def test_what_trains_another_model_or_did_not_run_is_no_choice_and_advice_on_it_is_charged_the_slowest():
    row = case("adam", 0.001, (4.0, 1.0, 9.0, 9.0), DENSE | {"serial": True})
    row["cells"][1]["is_faithful"] = False
    row["cells"][3]["status"] = "memory"
    found = advise.regrets([row])
    assert found["always sparse"]["adam"] == 1.0
    assert found["always dense"]["adam"] == 9.0 / 4.0
    assert found["advice"]["adam"] == 9.0 / 4.0
    for cell in row["cells"][2:]:
        cell["status"] = "memory"
    assert advise.regrets([row])["always dense"]["adam"] is None


def test_an_interval_is_judged_by_whether_it_holds_the_ratio_and_by_its_score():
    held = advise.intervals(CASES)
    assert {name: one[0] for name, one in held.items()} == {"thin": True, "middle": False, "thick": True}
    wide, narrow, off = (advise.interval_score(*bounds, 2.0) for bounds in ((0.2, 20.0), (1.9, 2.1), (2.2, 2.4)))
    assert narrow < off
    assert narrow < wide
    assert advise.true_ratio(CASES[0]) == 8.0


def test_targets_and_page_have_regret_rules_intervals_and_what_failed():
    failed = case("broken", 0.1, (1.0,) * 4, {}, status="failed", reason="The disk is full.")
    targets = {one.what: one for one in advise.list_targets(advise.newest_good([*CASES, failed]))}
    assert (targets["regret of advice, mean"].measured, targets["regret of advice, mean"].met) == (
        "1.33 (all cases)",
        False,
    )
    assert targets["95 % intervals that hold the sweep's ratio"].measured == "67 % (all cases)"
    assert targets["regret of advice, mean, below every rule's"].met is False  # by bytes is as good
    page = advise.page([*CASES, failed])
    rules, scores, cases, lost = (list(section.rows) for section in page.sections)
    assert rules[0] == ["advice", "1.333", "1.900", "2.000", "0"]
    assert scores[0][:2] == ["quiet", "2 of 3"]
    assert cases[0][:5] == ["thin", "quiet", "8.00", "7.00 to 10.00", ""] or cases[0][2] == "8.00"
    assert lost == [["broken", "The disk is full."]]
    assert {one.met for one in advise.list_targets([])} == {None}
    assert targets["cases advised the side of the best"].measured == "3 of 3"


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
    assert advise.why_not_judged([*judged, {"is_faithful": False, "status": "disturbed"}]).startswith(why)
    assert bool(advise.why_not_judged(judged)) == bool(why)


def test_a_stopped_case_has_no_record_and_a_failed_one_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(advise.run_folder, "start_run", lambda spec, folder: folder)
    monkeypatch.setattr(advise, "wait_silently", lambda *given: None)
    monkeypatch.setattr(advise.run_folder, "read_progress", lambda folder: run_folder.Progress("x", state="stopped"))
    run = Run(tables.ADVICE, tmp_path)
    assert run.collect(advise.measure(run, cases=2)) is False
    assert run.records == []
    failed = run_folder.Progress("x", state="failed", message="no luck")
    monkeypatch.setattr(advise.run_folder, "read_progress", lambda folder: failed)
    for count in (2, 4):
        run = Run(tables.ADVICE, tmp_path)
        assert run.collect(advise.measure(run, cases=2)) is True
        assert len(run.records) == count
    assert {one["status"] for one in run.records} == {"failed"}
    assert "no luck" in run.records[0]["reason"]
