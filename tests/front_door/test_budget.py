"""`budget` at every door, and the names that it had: each of them works, with a note."""

import json
import re
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import workbench as wb
from tests.front_door.test_doors import Done, called, ends_with, typed
from workbench.api import sweeping as api_sweeping
from workbench.command import advising, cli, sweeping
from workbench.sweeps.spec import SpecError, parse_spec, parse_spec_json

SPEC = 'name = "tiny"\n[axes]\ndataset = "uniform"\nrows = 200\nfeatures = 64\nformat = ["csr", "dense"]\n'
DATA = ([[1.0], [2.0]], ["a", "b"])


def refused(*words):
    """What a command says of words that it does not take, on one line."""
    came = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert came.exit_code == 2
    return " ".join(re.sub("[│╭╮╰╯─]", " ", came.output).split())


@pytest.mark.parametrize(("option", "noted"), [("--budget", False), ("--seconds", True)])
def test_budget_of_advise(option, noted, monkeypatch):
    monkeypatch.setattr(advising, "advise", ends_with(lambda source, files, given, seconds, *_: seconds))
    taken, said = typed("advise", "uniform", option, "7")
    assert taken == 7.0
    assert ("Note: --seconds is called --budget now; the old name ends with version" in said) is noted
    assert option in refused("advise", "uniform", option, "x")
    assert "--seconds is its former name; give one of the two" in refused(
        "advise", "uniform", "--budget", "8", "--seconds", "7"
    )


@pytest.mark.parametrize(("option", "asked"), [("--budget", 9.0), ("--seconds", 9.0), (None, None)])
def test_budget_of_advise_for_a_framework(option, asked, monkeypatch):
    monkeypatch.setattr(advising, "show_framework", ends_with(lambda source, name, files, budget, *_: budget))
    assert typed("advise", "uniform", "--for", "sklearn", *([option, "9"] if option else []))[0] == asked


def test_budget_of_sweep_and_seconds_of_a_trial(monkeypatch):
    limits = ends_with(lambda spec, *_: (spec.limits.seconds_sweep, spec.measure.seconds_total))
    monkeypatch.setattr(sweeping, "start", limits)
    words = ("sweep", "--dataset", "uniform", "--yes", "--budget", "11")
    assert typed(*words, "--trial-seconds", "0.5")[0] == (11.0, 0.5)
    taken, said = typed(*words, "--seconds", "0.5")
    assert taken == (11.0, 0.5)
    assert "Note: --seconds is called --trial-seconds now" in said
    assert "give one of the two" in refused(*words, "--seconds", "1", "--trial-seconds", "1")


@pytest.mark.parametrize("word", ["--seconds", "--seconds-budget"])
@pytest.mark.parametrize("command", [("advise",), ("sweep",)])
def test_former_names_are_in_no_help(command, word):
    assert f"{word} " not in CliRunner().invoke(cli.app, [*command, "--help"]).output


@pytest.mark.parametrize("name", ["budget", "seconds_sweep"])
def test_budget_of_a_spec(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "spec.toml").write_text(f"{SPEC}[limits]\n{name} = 13\n")
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: spec.limits.seconds_sweep))
    table = {"name": "tiny", "axes": {"dataset": "uniform", "rows": 200}, "limits": {name: 13}}
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert parse_spec(f"{SPEC}[limits]\n{name} = 13\n").limits.seconds_sweep == 13.0
        assert called(wb.sweep, str(tmp_path / "spec.toml"), capsys=capsys)[0] == 13.0
        assert called(wb.sweep, str(tmp_path / "spec.toml"), budget=3, capsys=capsys)[0] == 3.0
        assert called(wb.sweep, table, capsys=capsys)[0] == 13.0
    texts = {str(note.message) for note in notes}
    expected = "The key 'seconds_sweep' is called 'budget' now; the old one is read until version 2.0."
    assert texts == ({expected} if name == "seconds_sweep" else set())
    with pytest.raises(SpecError, match="budget and seconds_sweep are the same limit"):
        parse_spec(f"{SPEC}[limits]\nbudget = 13\nseconds_sweep = 13\n")


def test_specs_of_stored_runs_are_read_without_a_note():
    stored = {"name": "tiny", "axes": {"dataset": ["uniform"]}, "limits": {"seconds_sweep": 13}}
    assert parse_spec_json(json.dumps(stored)).limits.seconds_sweep == 13.0


@pytest.mark.parametrize("name", ["budget", "seconds_sweep", "seconds_budget"])
def test_budget_of_sweep_in_python(name, monkeypatch, capsys):
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: spec.limits.seconds_sweep))
    if name == "budget":
        assert called(wb.sweep, "uniform", budget=4.5, capsys=capsys)[0] == 4.5
        return
    with pytest.warns(FutureWarning, match=f"{name} is called budget now; .* Type budget=4.5"):
        assert called(wb.sweep, "uniform", capsys=capsys, **{name: 4.5})[0] == 4.5
    with pytest.raises(
        ValueError, match=f"{name} is a former name of budget; expected one of the two.\nType budget=60"
    ):
        wb.sweep("uniform", budget=4, **{name: 4})


def test_seconds_of_sweep_in_python_are_those_of_a_trial_as_on_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: spec.measure.seconds_total))
    assert called(wb.sweep, "uniform", trial_seconds=0.5, capsys=capsys)[0] == 0.5
    with pytest.warns(FutureWarning, match="'seconds' is called 'trial_seconds' now"):
        assert called(wb.sweep, "uniform", seconds=0.5, capsys=capsys)[0] == 0.5


@pytest.mark.parametrize("name", ["budget", "seconds", "seconds_sweep", "seconds_budget"])
def test_budget_of_advise_in_python(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.advice.measure", ends_with(lambda settings, seconds, **_: seconds))
    monkeypatch.setattr("workbench.api.advice._ask_framework", ends_with(lambda name, loaded, seconds, *_: seconds))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert called(wb.advise, "uniform", capsys=capsys, **{name: 8})[0] == 8.0
        assert called(wb.advise, *DATA, framework="sklearn", capsys=capsys, **{name: 8})[0] == 8.0
    said = {str(note.message) for note in notes}
    new = f"{name} is called budget now; the old name is read until version 2.0. Type budget=8."
    assert said == (set() if name == "budget" else {new})
    message = r"expected 5 or more seconds, 60 is usual.\nType budget=60"
    with warnings.catch_warnings(action="ignore"), pytest.raises(ValueError, match=message):
        wb.advise("uniform", **{name: float("nan")})


def test_usual_budgets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.advice.measure", ends_with(lambda settings, seconds, **_: seconds))
    assert called(wb.advise, "uniform", capsys=capsys)[0] == 60.0
    monkeypatch.setattr("workbench.api.advice._ask_framework", ends_with(lambda name, loaded, seconds, *_: seconds))
    assert called(wb.advise, *DATA, framework="sklearn", capsys=capsys)[0] == 120.0
    monkeypatch.setattr(advising, "advise", ends_with(lambda source, files, given, seconds, *_: seconds))
    assert typed("advise", "uniform")[0] == 60.0


@pytest.mark.parametrize("name", ["budget", "seconds"])
def test_budget_of_the_panel(name, tmp_path, monkeypatch):
    """The field is called as the option; `wb.lab` takes the same names as `wb.advise`."""
    from workbench.panels import lab, tabs

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.panel.in_notebook", lambda: True)
    monkeypatch.setattr(lab, "answered", ends_with(lambda question, **asked: (question, asked)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name == "seconds" else "error", FutureWarning)
        with pytest.raises(Done) as done:
            wb.lab("uniform", question="advise", show_widgets=False, **{name: 9})
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
