"""`budget` at every door."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import workbench as wb
from tests.front_door.test_doors import Done, called, ends_with, typed
from workbench.api import sweeping as api_sweeping
from workbench.command import advising, cli, sweeping
from workbench.sweeps.spec import SpecError, parse_spec

SPEC = 'name = "tiny"\n[axes]\ndataset = "uniform"\nrows = 200\nfeatures = 64\nformat = ["csr", "dense"]\n'
DATA = ([[1.0], [2.0]], ["a", "b"])


def refused(*words):
    """What a command says of words that it does not take, on one line."""
    came = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert came.exit_code == 2
    return " ".join(re.sub("[│╭╮╰╯─]", " ", came.output).split())


def test_budget_of_advise(monkeypatch):
    monkeypatch.setattr(advising, "advise", ends_with(lambda source, files, given, seconds, *_: seconds))
    assert typed("advise", "uniform", "--budget", "7")[0] == 7.0
    assert "--budget" in refused("advise", "uniform", "--budget", "x")
    assert "No such option: --seconds" in refused("advise", "uniform", "--seconds", "7")


@pytest.mark.parametrize(("option", "asked"), [("--budget", 9.0), (None, None)])
def test_budget_of_advise_for_a_framework(option, asked, monkeypatch):
    monkeypatch.setattr(advising, "show_framework", ends_with(lambda source, name, files, budget, *_: budget))
    assert typed("advise", "uniform", "--for", "sklearn", *([option, "9"] if option else []))[0] == asked


def test_budget_of_sweep_and_seconds_of_a_trial(monkeypatch):
    limits = ends_with(lambda spec, *_: (spec.limits.budget, spec.measure.trial_seconds))
    monkeypatch.setattr(sweeping, "start", limits)
    words = ("sweep", "--dataset", "uniform", "--yes", "--budget", "11")
    assert typed(*words, "--trial-seconds", "0.5")[0] == (11.0, 0.5)


def test_budget_of_a_spec(tmp_path, monkeypatch, capsys):
    (tmp_path / "spec.toml").write_text(f"{SPEC}[limits]\nbudget = 13\n")
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: spec.limits.budget))
    table = {"name": "tiny", "axes": {"dataset": "uniform", "rows": 200}, "limits": {"budget": 13}}
    assert parse_spec(f"{SPEC}[limits]\nbudget = 13\n").limits.budget == 13.0
    assert called(wb.sweep, str(tmp_path / "spec.toml"), capsys=capsys)[0] == 13.0
    assert called(wb.sweep, str(tmp_path / "spec.toml"), budget=3, capsys=capsys)[0] == 3.0
    assert called(wb.sweep, table, capsys=capsys)[0] == 13.0


def test_budget_and_trial_seconds_in_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    limits = ends_with(lambda spec, *_: (spec.limits.budget, spec.measure.trial_seconds))
    monkeypatch.setattr(api_sweeping, "measured", limits)
    assert called(wb.sweep, "uniform", budget=4.5, trial_seconds=0.5, capsys=capsys)[0] == (4.5, 0.5)
    with pytest.raises(SpecError, match="Unknown setting 'seconds'"):
        wb.sweep("uniform", seconds=0.5)
    monkeypatch.setattr("workbench.api.advice.measure", ends_with(lambda settings, seconds, **_: seconds))
    monkeypatch.setattr("workbench.api.advice._ask_framework", ends_with(lambda name, loaded, seconds, *_: seconds))
    assert called(wb.advise, "uniform", budget=8, capsys=capsys)[0] == 8.0
    assert called(wb.advise, *DATA, framework="sklearn", budget=8, capsys=capsys)[0] == 8.0
    with pytest.raises(ValueError, match=r"expected 5 or more seconds, 60 is usual.\nType budget=60"):
        wb.advise("uniform", budget=float("nan"))


def test_usual_budgets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.advice.measure", ends_with(lambda settings, seconds, **_: seconds))
    assert called(wb.advise, "uniform", capsys=capsys)[0] == 60.0
    monkeypatch.setattr("workbench.api.advice._ask_framework", ends_with(lambda name, loaded, seconds, *_: seconds))
    assert called(wb.advise, *DATA, framework="sklearn", capsys=capsys)[0] == 120.0
    monkeypatch.setattr(advising, "advise", ends_with(lambda source, files, given, seconds, *_: seconds))
    assert typed("advise", "uniform")[0] == 60.0


def test_budget_of_the_panel(tmp_path, monkeypatch):
    """The field is called as the option; `wb.lab` takes the same name as `wb.advise`."""
    from workbench.panels import lab, tabs

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.panel.in_notebook", lambda: True)
    monkeypatch.setattr(lab, "answered", ends_with(lambda question, **asked: (question, asked)))
    with pytest.raises(Done) as done:
        wb.lab("uniform", question="advise", show_widgets=False, budget=9)
    assert done.value.args[0] == ("advise", {"source": "uniform", "seconds": 9.0})
    start = lab.Start(tabs.RequestState(source="uniform", seconds=9.0), "advise")
    try:
        field = start.view.seconds
        assert (field.description, field.value) == ("Budget (s)", "9")
    finally:
        start.close()


def test_a_budget_that_is_no_number_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for budget in (0, -1, float("inf"), "60", True):
        with pytest.raises(ValueError, match="budget is "):
            wb.sweep(np.eye(12)[np.arange(60) % 12], np.arange(60) % 2, budget=budget)
    assert not [*tmp_path.iterdir()]
