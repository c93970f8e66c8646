"""The suite of advice: its cases and full sweeps mean something, and a stop leaves no row."""

import pytest

from workbench.bench.advice import cases, runner
from workbench.sweep import grid, run_folder
from workbench.sweep.spec import SpecError


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_a_full_sweep_has_dense_and_every_sparse_format_in_rounds_that_decide(case):
    spec = runner.full_sweep(case)
    found = grid.expand(spec)
    formats = [cell.format for cell in found.cells]
    assert {"csr", "coo", "csc", "dense"} <= set(formats)
    assert formats.count("dense") <= 2
    assert spec.measure.rounds == 4
    assert not found.dropped


def test_cases_are_chosen_by_name_and_unknown_ones_list_the_known():
    assert [case.name for case in cases.chosen(is_quick=True)] == list(cases.QUICK)
    with pytest.raises(SpecError, match="There is no case 'thik'; there is: text softmax"):
        cases.chosen(["thik"])


def test_cases_of_the_same_data_are_told_so_whatever_their_model():
    data = {case.name: runner._data_of(case) for case in cases.CASES}
    assert data["words softmax"] == data["words logistic adam"] != data["narrow softmax"]


def test_a_suite_that_is_stopped_has_no_row_of_the_case_at_work(tmp_path, monkeypatch):
    monkeypatch.setattr(runner.run_folder, "start", lambda spec, folder: folder)
    monkeypatch.setattr(runner.run_folder, "read", lambda folder: run_folder.Progress("x", state="stopped"))
    [case] = cases.chosen(["thick logistic"])
    assert runner.run([case], tmp_path, follow=lambda *_: None) is False
    assert not list(tmp_path.glob("*.jsonl"))
