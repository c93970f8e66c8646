"""`budget` at every door, and the names that it had."""

import pytest
from typer.testing import CliRunner

import workbench as wb
from tests.front_door.test_doors import Done, called, ends_with
from workbench.api import sweeping as api_sweeping
from workbench.bench import self_trial
from workbench.command import advising, cli, sweeping
from workbench.sweeps.spec import SpecError, parse_spec

SPEC = 'name = "tiny"\n[axes]\ndataset = "uniform"\nrows = 200\nfeatures = 64\nformat = ["csr", "dense"]\n'


def typed(*words):
    came = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert isinstance(came.exception, Done), came.output
    return came.exception.args[0], came.output


@pytest.mark.parametrize("option", ["--budget", "--seconds"])
def test_budget_of_advise(option, monkeypatch):
    monkeypatch.setattr(advising, "advise", ends_with(lambda source, files, given, seconds, *_: seconds))
    assert typed("advise", "uniform", option, "7")[0] == 7.0
    came = CliRunner().invoke(cli.app, ["advise", "uniform", option, "x"])
    assert came.exit_code == 2
    assert option in came.output


@pytest.mark.parametrize("option", ["--budget", "--seconds-budget"])
def test_budget_of_bench_self(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(self_trial, "run", ends_with(lambda names, folder, seconds, *_: seconds))
    assert typed("bench", "self", "same", option, "9")[0] == 9.0


def test_budget_of_sweep_and_seconds_of_a_trial(monkeypatch):
    limits = ends_with(lambda spec, *_: (spec.limits.seconds_sweep, spec.measure.seconds_total))
    monkeypatch.setattr(sweeping, "start", limits)
    words = ("sweep", "--dataset", "uniform", "--yes", "--budget", "11")
    assert typed(*words, "--trial-seconds", "0.5")[0] == (11.0, 0.5)
    taken, said = typed(*words, "--seconds", "0.5")
    assert taken == (11.0, 0.5)
    assert "Note: --seconds is called --trial-seconds now" in said
    both = CliRunner().invoke(cli.app, [*words, "--seconds", "1", "--trial-seconds", "1"])
    assert "give one of the two" in " ".join(both.output.replace("│", " ").split())


@pytest.mark.parametrize("name", ["budget", "seconds_sweep"])
def test_budget_of_a_spec(name, tmp_path, monkeypatch, capsys):
    assert parse_spec(f"{SPEC}[limits]\n{name} = 13\n").limits.seconds_sweep == 13.0
    with pytest.raises(SpecError, match="budget and seconds_sweep are the same limit"):
        parse_spec(f"{SPEC}[limits]\nbudget = 13\nseconds_sweep = 13\n")
    (tmp_path / "spec.toml").write_text(f"{SPEC}[limits]\n{name} = 13\n")
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: spec.limits.seconds_sweep))
    assert called(wb.sweep, str(tmp_path / "spec.toml"), capsys=capsys)[0] == 13.0
    assert called(wb.sweep, str(tmp_path / "spec.toml"), budget=3, capsys=capsys)[0] == 3.0
    assert called(wb.sweep, "uniform", budget=4.5, capsys=capsys)[0] == 4.5


def test_budget_of_advise_in_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.advice.measure", ends_with(lambda settings, seconds, **_: seconds))
    assert called(wb.advise, "uniform", budget=8, capsys=capsys)[0] == 8.0
    assert called(wb.advise, "uniform", capsys=capsys)[0] == 60.0
    monkeypatch.setattr("workbench.api.advice._in_framework", ends_with(lambda name, loaded, seconds, *_: seconds))
    assert called(wb.advise, [[1.0], [2.0]], ["a", "b"], framework="sklearn", capsys=capsys)[0] == 120.0
