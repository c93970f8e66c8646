"""Whole processes from a file to predictions: files, runs, records, the script and the page."""

import json
import os
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import end as suite
from benchmarks import tables
from benchmarks.end import Candidate, Paths, get, script
from benchmarks.end import suite as end
from benchmarks.harness import Run
from benchmarks.page import write
from workbench.command import cli

CASE = suite.Case("svmlight", 1)
ANSWER = "import sys; open(sys.argv[1], 'w').write('0.5\\n' * int(sys.argv[2]))"


@pytest.fixture
def small_files(monkeypatch):
    written = suite._write
    monkeypatch.setattr(suite, "_write", lambda case, path, size, seed: written(case, path, size // 50, seed))
    monkeypatch.setattr(suite, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(suite, "FEATURES", 40)  # so that few rows tell the weights
    monkeypatch.setattr(suite, "VALUES", (4,) * 26)


def constant(name, code, **more):
    command = lambda paths, setting: [  # noqa: E731
        ("train", [sys.executable, "-c", code, str(paths.predictions), str(len(suite.labels_in(paths.held_out)))])
    ]
    return Candidate(name, "project" if name == "project" else "competitor", command, ({"passes": 1},), **more)


def measured(folder, monkeypatch, candidates):
    monkeypatch.setattr(end, "names", lambda: list(candidates))
    monkeypatch.setattr(end, "get", candidates.__getitem__)
    run = Run(tables.END, folder, [CASE.name])
    assert run.collect(end.measure(run))
    return run.records


def test_each_candidate_has_records_of_settings_then_warm_and_cold_and_the_page_names_who_is_left_out(
    small_files, tmp_path, monkeypatch
):
    candidates = {
        "project": constant("project", ANSWER),
        "other": constant("other", ANSWER),
        "absent": constant("absent", ANSWER, package="no_such_package", install="get it"),
        "broken": constant("broken", "raise SystemExit('no luck')"),
    }
    records = measured(tmp_path, monkeypatch, candidates)
    starts = {record["start"]: record for record in records if record["candidate"] == "other"}
    assert list(starts) == ["settings", "warm", "cold"]
    assert len(starts["warm"]["samples"]) == end.WARM_RUNS
    assert starts["warm"]["seconds"] in starts["warm"]["samples"]
    assert all(record["loss"] == pytest.approx(np.log(2)) for record in records if record["status"] == "ok")
    assert {record["status"] for record in records if record["candidate"] == "broken"} == {"failed"}
    assert end.ratios(end.cases_of(records), "warm")[CASE.name] > 0
    page = write(end.SUITE, tmp_path).read_text("utf-8")
    assert "no_such_package is not installed: get it." in page
    assert "no luck" in page
    assert "List 1 of linear competitors. Measured: none. Not measured: liblinear primal, " in page
    assert re.search(r"Warm, project takes .*s, [\d.]+ times \w+ than other \(.*s\)\.", page)
    assert (tmp_path / "end-svmlight-1-mb.svg").stat().st_size > 1000


def test_losses_within_two_per_cent_of_the_best_suffice():
    records = [
        {"candidate": name, "status": "ok", "loss": loss} for name, loss in (("a", 1.0), ("b", 1.02), ("c", 1.03))
    ]
    assert list(end.sufficient([*records, {"candidate": "d", "status": "failed", "loss": None}])) == ["a", "b"]


def test_the_peak_of_a_process_is_its_own():
    """A process begins with the peak of the one that starts it, which has read and generated whole files."""
    large = np.ones(40_000_000)
    status, _, seconds, peak = suite.run_process([sys.executable, "-c", "pass"], dict(os.environ))
    assert (status, seconds > 0) == ("ok", True)
    assert peak < large.nbytes / 4
    allocating = [sys.executable, "-c", "b = b'1' * 200_000_000"]
    assert suite.run_process(allocating, dict(os.environ))[3] > 200_000_000


def test_a_process_that_fails_or_takes_too_long_says_so(monkeypatch):
    failing = [sys.executable, "-c", "import os; print('bad', flush=True); os.kill(os.getpid(), 9)"]
    assert suite.run_process(failing, dict(os.environ)) == ("failed", "bad", 0.0, 0)
    assert suite.run_process(["no_such_command"], dict(os.environ))[0] == "failed"
    monkeypatch.setattr(suite, "SECONDS_RUN", 0.5)
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert suite.run_process(sleeping, dict(os.environ)) == ("timeout", "Took longer than 0.5 s.", 0.0, 0)


@pytest.mark.parametrize("format", suite.FORMATS)
@pytest.mark.parametrize("library", ["liblinear", "SGDClassifier", "scikit-learn lbfgs", "polars, SGDClassifier"])
def test_the_script_predicts_better_than_chance(format, library, small_files, tmp_path):
    if library.startswith("polars"):
        pytest.importorskip("polars")
    train, held_out = suite.write_files(suite.Case(format, 10), tmp_path)
    paths = Paths(format, train, held_out, tmp_path)
    script.main(library, format, *map(str, (train, held_out, paths.predictions, paths.stages)), "0.01")
    labels = suite.labels_in(held_out)
    assert set(np.unique(labels)) == {0, 1}
    chances = np.loadtxt(paths.predictions)
    assert np.mean((chances > 0.5) == labels) > 0.55
    assert list(json.loads(paths.stages.read_text())) == ["import", "read", "fit", "write"]


def test_each_setting_of_the_project_is_a_command_that_trains(small_files, tmp_path):
    train, held_out = suite.write_files(CASE, tmp_path)
    labels = suite.labels_in(held_out)
    for setting in (*suite.PROJECT_SETTINGS, *get("project, streamed").settings[1:2]):
        (_, command), _ = suite.project_commands(False, Paths("svmlight", train, held_out, tmp_path), setting)
        arguments = command[command.index("train") :]
        ended = CliRunner().invoke(cli.app, [*arguments, "--force"])
        assert ended.exit_code == 0, ended.output
        assert ("rows were trained on; on these" in " ".join(ended.output.split())) == (
            "held_out" in setting and "streamed" not in setting
        )
    assert len(labels) > 10


def test_numbers_of_clicks_are_taken_as_logarithms_by_a_file_of_column_kinds(small_files, tmp_path):
    train, held_out = suite.write_files(suite.Case("clicks", 1), tmp_path)
    columns = suite.write_columns(Paths("clicks", train, held_out, tmp_path)).read_text("utf-8")
    assert columns.count('encoding = "log"') == suite.NUMBERS
    commands = get("project, logarithms").commands(Paths("clicks", train, held_out, tmp_path), {"held_out": 0})
    train_arguments, apply_arguments = (command[command.index("workbench") + 1 :] for _, command in commands)
    for arguments in (train_arguments, apply_arguments):
        ended = CliRunner().invoke(cli.app, arguments)
        assert ended.exit_code == 0, ended.output
    assert len(suite._lines(tmp_path / "predictions.csv", 10)) == 10
    assert "clicks only" in get("project, logarithms").unavailable("svmlight", {})


def test_rows_are_written_as_vowpal_wabbit_reads_them(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1 7:0.5\n0 2:1\n")
    assert suite.text_of(tmp_path / "a.svm").read_text() == "1 | 3:1 7:0.5\n-1 | 2:1\n"
    paths = Paths("svmlight", *[tmp_path / "a.svm"] * 2, tmp_path)
    commands = dict(get("Vowpal Wabbit, cache").commands(paths, {"passes": 2}))
    assert "--cache_file" in commands["train"]
    assert get("Vowpal Wabbit").unavailable("clicks", {}) == "It reads svmlight only."
