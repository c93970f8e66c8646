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
from benchmarks.end import Candidate, Paths, get, large, script
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


def test_a_process_is_refused_memory_above_its_limit():
    allocating = [sys.executable, "-c", "b = b'1' * 300_000_000"]
    assert suite.run_process(allocating, dict(os.environ), 10**9)[0] == "ok"
    status, reason, *_ = suite.run_process(allocating, dict(os.environ), 200_000_000)
    assert (status, reason) == ("failed", "MemoryError")


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
    assert len((tmp_path / "predictions.csv").read_text("utf-8").splitlines()) == 1 + len(suite.labels_in(held_out))
    assert "clicks only" in get("project, logarithms").unavailable("svmlight", {})


def test_rows_are_written_as_vowpal_wabbit_reads_them(tmp_path):
    (tmp_path / "a.svm").write_text("1 3:1 7:0.5\n0 2:1\n")
    assert suite.text_of(tmp_path / "a.svm").read_text() == "1 | 3:1 7:0.5\n-1 | 2:1\n"
    paths = Paths("svmlight", *[tmp_path / "a.svm"] * 2, tmp_path)
    commands = dict(get("Vowpal Wabbit, cache").commands(paths, {"passes": 2}))
    assert "--cache_file" in commands["train"]
    (tmp_path / "b.csv").write_text("label,I1,C1,price\n1,3,va,\n0,,vb,1\n")
    assert suite.text_of(tmp_path / "b.csv").read_text() == "1 | I1:0.173287 C1=va\n-1 | C1=vb price:0.0866434\n"


@pytest.mark.parametrize(
    "case", [large.LargeCase("texts", 1), large.LargeCase("clicks", 1, 21)], ids=lambda case: case.name
)
def test_every_line_of_a_large_file_is_trained_on_or_held_out(case, tmp_path):
    train, held_out = large.write_files(case, tmp_path)
    made = large.KINDS[case.kind][1]
    drawn = next(made(0)).splitlines()
    header = drawn[: case.format == "clicks"]
    lines, others = (path.read_bytes().splitlines()[len(header) :] for path in (train, held_out))
    assert sorted([*lines, *others]) == sorted(drawn[len(header) : len(header) + len(lines) + len(others)])
    assert len(others) == pytest.approx((len(lines) + len(others)) / case.held_out, rel=0.02)
    assert train.stat().st_size == pytest.approx(1e6, rel=0.7)
    assert set(suite.labels_in(train)) == {0, 1}


def test_large_files_have_a_record_of_each_entrant_with_stages_and_memory_and_the_page_compares_them(
    tmp_path, monkeypatch
):
    case, setting = large.LargeCase("clicks", 1, bytes_limit=10**9), {"streamed": 1}
    candidates = {
        "project, streamed": constant("project", ANSWER),
        "Vowpal Wabbit": constant("other", ANSWER),
        "absent": constant("absent", ANSWER, package="no_such_package", install="get it"),
    }
    both = lambda stages: [("train", stages[0][1]), ("apply", stages[0][1])]  # noqa: E731
    for name, one in candidates.items():
        commands = lambda paths, setting, one=one: both(one.commands(paths, setting))  # noqa: E731
        candidates[name] = Candidate(name, one.side, commands, one.settings, package=one.package, install=one.install)
    monkeypatch.setattr(large, "get", candidates.__getitem__)
    monkeypatch.setattr(large, "CASES", (case,))
    entrants = {name: (name, setting, "warm") for name in candidates}
    monkeypatch.setattr(large.LargeCase, "entrants", lambda self: entrants)
    run = Run(tables.END, tmp_path, [case.name])
    assert run.collect(end.measure(run, large=True))
    records = {record["candidate"]: record for record in run.records}
    assert list(records) == ["absent", "project, streamed", "Vowpal Wabbit"]
    own = records["project, streamed"]
    assert {stage: len(each) for stage, each in own["samples_stages"].items()} == {"train": 3, "apply": 3}
    assert own["bytes_peak"] == max(own["bytes_stages"].values()) > 0
    assert own["loss"] == pytest.approx(np.log(2))
    page = write(end.SUITE, tmp_path).read_text("utf-8")
    assert "generated clicks, 1 MB, in 1 GB" in page
    assert "absent: no_such_package is not installed: get it." in page
    assert "| held-out loss, best of one to three passes / Vowpal Wabbit's | ≤ 1 | 1 " in page
    assert "One pass, by size" in page
    again = Run(tables.END, tmp_path, [case.name])
    assert again.collect(end.measure(again, large=True))
    assert len(again.records) == len(run.records)
    assert not list(tmp_path.glob("bench-end-*/"))


def test_files_that_would_fill_the_disk_are_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(large.shutil, "disk_usage", lambda folder: large.shutil._ntuple_diskusage(100e9, 80e9, 20e9))
    case = large.LargeCase("texts", 10_000, 51)
    assert "Its files take " in large.refused(case, tmp_path)
    found = list(large.measured(case, tmp_path, sys.executable, {}, print))
    assert {record["status"] for record in found} == {"failed"}, "and is tried again when there is room"
    assert not large.refused(large.LargeCase("texts", 1000), tmp_path)
    assert not list(tmp_path.iterdir())
