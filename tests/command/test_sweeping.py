"""`workbench sweep` before, while and after it runs: mistakes found first, questions, interrupts, verdicts."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from tests.command.test_cli import spec_file
from tests.support.clocks import SECONDS, until
from tests.support.commands import run
from workbench import store
from workbench.analysis import answer_text
from workbench.command import cli, exit_codes, sweeping
from workbench.study import suited
from workbench.study.suited import spec_of
from workbench.sweeps import estimate, run_folder, spec

HEAD = 'name = "x"\n[axes]\n'
LONG = (
    HEAD + 'dataset = "uniform"\nrows = 60\nfeatures = 30\n[measure]\ntrial_seconds = 60.0\nsamples_most = 1000000000\n'
)


def words(came) -> str:
    return " ".join(came.output.split())


def error_of(text: str | bytes, *options: str) -> Exception:
    """The error that ends a sweep of this spec; nothing may have been started."""
    Path("x.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    came = run("sweep", "x.toml", *options)
    assert exit_codes.status_of(came.exception) == exit_codes.WRONG_INPUT, came.exception
    assert not Path("runs").exists()
    return came.exception


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (HEAD + 'format = "cssr"', "Unknown value 'cssr'. Did you mean 'csr'? Expected one of: dense, csr"),
        (
            HEAD + 'dataset = "svmlight"',
            "No configuration is left of the spec 'x'. 1 left out: The data set svmlight needs",
        ),
        (HEAD + 'dataset = "svmlight"\npath = "none.txt"', "There is no file"),
        (HEAD + 'dataset = "svmlight"\npath = "x.toml"', "svmlight with the softmax model"),
        (
            HEAD + 'model = "logistic"\nwidth = 3',
            "No configuration is left of the spec 'x'. 1 left out: The logistic model has",
        ),
        (HEAD + "seed = [1, 2]\nrows = 1\n[measure]\nrounds = 0", "rounds = 0"),
        (b"\xff\xfe", "is not text in UTF-8"),
        ("name =", "This is not TOML"),
    ],
)
def test_a_mistake_in_a_spec_or_its_files_is_found_before_anything_runs(text, output):
    assert output in str(error_of(text))


def test_a_folder_in_the_place_of_a_spec_is_told_with_the_spec_in_it(tmp_path):
    Path("old").mkdir()
    with pytest.raises(sweeping.SpecError, match="old is a folder; give a TOML file"):
        sweeping.load_sweep(Path("old"), {})
    Path("old/spec.json").touch()
    with pytest.raises(sweeping.SpecError, match=r"old is a folder; take old/spec\.json"):
        sweeping.load_sweep(Path("old"), {})


CHOSEN = {
    "defaults": {"dataset": "uniform"},
    "lists": {"dataset": "power_law", "density": "1 %, 0.1", "format": ["csr", "coo"], "update": ["exact"]},
    "sizes": {"dataset": "uniform", "width": [4, 16], "rows": 300, "features": "64", "trial_seconds": 0.5, "rounds": 4},
    "a file": {"dataset": "svmlight", "path": "my news' file.svm", "model": "logistic", "epochs": 2, "positive": "1"},
}


@pytest.mark.parametrize("kind", CHOSEN)
def test_the_command_of_choices_measures_what_the_panel_would(kind, monkeypatch):
    Path("my news' file.svm").write_text("1 3:0.5\n0 4:1\n1 2:3\n0 1:1\n")
    complete = suited.complete_with_suggestions(CHOSEN[kind])
    seen = []
    monkeypatch.setattr(sweeping, "dry_run", lambda spec, *_: seen.append(spec))
    program, *arguments = shlex.split(suited.command_text(complete))
    assert program == "workbench"
    came = run(*arguments, "--dry-run")
    assert came.exit_code == 0, came.exception
    expected = spec_of(complete, "x")
    assert (seen[0].axes, seen[0].candidates, seen[0].measure) == (expected.axes, expected.candidates, expected.measure)


def test_the_reader_of_a_file_is_guessed_and_the_run_is_named_after_it(monkeypatch):
    Path("my news.svm").write_text("1 3:0.5\n0 4:1\n1 2:3\n0 1:1\n")
    seen = []
    monkeypatch.setattr(sweeping, "dry_run", lambda *given: seen.extend(given))
    came = run("sweep", "--path", "my news.svm", "--dry-run")
    assert "is read by the data set svmlight: it looks like svmlight text" in words(came)
    assert seen[0].axes["dataset"] == ("svmlight",)
    assert seen[2] == Path("runs/my_news")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "Type workbench sweep train.txt"),
        (("x.toml", "--width", "4", "--batch-rows", "8"), "Both a spec and --width and --batch-rows are given"),
        (("--dataset", "uniform", "--path", "x.toml"), "path = 'x.toml': the data set uniform reads none"),
        (("--path", "none.svm"), "There is no file none.svm"),
        (("--dataset", "uniform", "--density", "0.1, x"), "density = '0.1, x': 'x' is not a number."),
        (("--dataset", "uniform", "--format", "cst"), "Did you mean 'csr'?"),
    ],
)
def test_a_mistake_in_choices_is_told(arguments, text):
    Path("x.toml").write_text(HEAD)
    came = run("sweep", *arguments)
    assert exit_codes.status_of(came.exception) == exit_codes.WRONG_INPUT, came.exception
    assert text in str(came.exception)
    assert not Path("runs").exists()


def test_a_file_in_the_place_of_the_run_folder_is_told(tmp_path):
    Path("taken").touch()
    came = run("sweep", str(spec_file(tmp_path)), "--run", "taken")
    assert str(came.exception) == "taken is a file; a run needs a folder of its own."


def test_a_dry_run_tells_configurations_what_is_left_out_time_and_memory_and_starts_nothing(tmp_path):
    Path("x.toml").write_text(
        HEAD + 'dataset = "uniform"\nmodel = "logistic"\nwidth = [1, 3]\nformat = ["csr", "row_sparse"]\n'
        "features = [100, 1000]\nseed = [0, 1, 2]"
    )
    came = run("sweep", "x.toml", "--dry-run", "--cluster", "tls://node7:8786")
    assert came.exit_code == 0, came.output
    each, (least, most) = (
        estimate.seconds_a_trial(spec.load_spec("x.toml")),
        estimate.seconds_sampled(spec.load_spec("x.toml")),
    )
    for text in (
        "up to 12, fewer where a comparison is decided; 24 to 144 trials",
        "12 of the configurations left out: The logistic model has width 1.",
        "format = row_sparse, model = logistic: engine ours, gradient dense, update standard completed",
        f"time │ {estimate.format_time_span((24 * each, 144 * (each + most - least)))} │",
        "12 rounds can tell apart",
        "MB for the arrays of a trial",
        "runs/x",
        "measured by │ the machines of tls://node7:8786",
    ):
        assert text in words(came), text
    assert not Path("runs").exists()


LARGE = {
    "cells": (
        HEAD + f"dataset = 'uniform'\nrows = 60\nseed = {list(range(1001))}",
        "1,001 configurations, 2,002 to 12,012 trials",
    ),
    "time": (
        HEAD + "dataset = 'uniform'\nrows = 60\n[measure]\ntrial_seconds = 20000",
        "1 configuration, 2 to 12 trials, 2.2 to 67 hours",
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_large_is_not_started_where_nobody_can_be_asked(kind):
    text, size = LARGE[kind]
    output = str(error_of(text))
    assert size in output
    assert "There is no terminal to ask whether to start it; add --yes" in output


@pytest.mark.parametrize(("answer", "starts"), [("y", True), ("n", False)])
def test_what_is_large_is_asked_about_where_there_is_a_terminal(answer, starts, monkeypatch):
    folders = []
    monkeypatch.setattr(sweeping, "has_terminal", lambda: True)
    monkeypatch.setattr(sweeping.typer, "confirm", lambda text, abort: _confirm(answer))
    monkeypatch.setattr(run_folder, "start_run", lambda spec, folder, cluster: folders.append(folder))
    Path("x.toml").write_text(LARGE["cells"][0])
    came = run("sweep", "x.toml", "--detach")
    assert (folders == [Path("runs/x")], came.exit_code == 0) == (starts, starts)
    run("sweep", "x.toml", "--detach", "--yes")
    assert folders[-1:] == [Path("runs/x")], "unasked"


def _confirm(answer: str) -> None:
    if answer != "y":
        raise cli.typer.Abort


def test_a_million_configurations_are_refused():
    axes = f"batch_rows = {list(range(1, 1001))}\nseed = {list(range(1000))}"
    assert "1,000,000 combinations" in str(error_of(HEAD + axes, "--yes"))


@pytest.mark.usefixtures("sweeps_here")
def test_a_sweep_ends_with_the_verdict_of_its_report_and_the_way_to_it(tmp_path):
    came = run("sweep", str(spec_file(tmp_path)))
    assert came.exit_code == 0, came.output
    assert "Answer" in came.output
    assert words(came).endswith("Its report: workbench report runs/small")
    shown = " ".join(came.output.replace("│", " ").split())
    assert answer_text(store.frame(run_folder.read_current_records("runs/small"))).headline in shown


def typed(*arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "workbench.command.cli", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def until_at_work(folder: str) -> None:
    until(lambda: (Path(folder) / run_folder.PROGRESS).exists() and run_folder.read_progress(folder).current)


def test_a_process_ends_with_the_message_of_its_error_and_its_status():
    process = typed("report", "nowhere")
    out, text = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (exit_codes.WRONG_INPUT, "")
    assert text.startswith("workbench: There are no results at nowhere. Give a .jsonl file")
    assert "Traceback" not in text


def test_an_interrupted_sweep_stops_and_says_with_which_command_to_go_on():
    Path("x.toml").write_text(LONG)
    process = typed("sweep", "x.toml", "--run", "a folder")
    until_at_work("a folder")
    os.kill(process.pid, signal.SIGINT)
    out, text = process.communicate(timeout=SECONDS)
    assert process.returncode == exit_codes.INTERRUPTED
    assert "Runs in a folder, also without this terminal. Stop it with: workbench stop 'a folder'" in out
    assert text == "Stopped. Go on with: workbench sweep x.toml --run 'a folder'\n"
    assert run_folder.read_progress("a folder").state == "stopped"


@pytest.mark.usefixtures("no_other_runs")
def test_a_sweep_whose_terminal_is_killed_goes_on_until_it_is_stopped():
    Path("x.toml").write_text(LONG)
    process = typed("sweep", "x.toml")
    until_at_work("runs/x")
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert "x" in run("status").output
    assert run_folder.read_progress("runs/x").alive
    came = run("stop")
    assert came.output == "runs/x: stopped, 0 of 2 trials done.\n"
    assert not run_folder.read_progress("runs/x").alive


@pytest.mark.parametrize("command", [["report", "runs/x"], ["demo"]])
def test_an_interrupt_at_any_moment_ends_a_command_with_130_and_the_way_to_go_on(command, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    from workbench.reports import export

    monkeypatch.setattr(export, "write_report", interrupt)
    monkeypatch.setattr(spec, "load_spec", interrupt)
    came = run(*command)
    assert came.exit_code == exit_codes.INTERRUPTED
    how = "Start again" if command[0] == "report" else "Go on"
    assert came.stderr == f"Interrupted. {how} with: workbench {' '.join(command)}\n"


def test_a_budget_of_the_command_line_replaces_that_of_the_spec():
    Path("x.toml").write_text(LONG)
    assert sweeping.load_sweep(Path("x.toml"), {}, 7.0)[0].limits.budget == 7.0
    assert sweeping.load_sweep(Path("x.toml"), {})[0].limits.budget is None


@pytest.mark.parametrize(("label", "model"), [("bought", "logistic"), ("colour", "softmax")])
def test_a_data_file_in_place_of_a_spec_is_measured_with_the_model_of_its_labels(label, model):
    rows = [f"{row % 7},{['red', 'blue', 'green'][row % 3]},{row % 2}" for row in range(60)]
    Path("clicks.csv").write_text("\n".join(["size,colour,bought", *rows]) + "\n")
    came = run("sweep", "clicks.csv", "--label", label, "--dry-run")
    assert came.exit_code == 0, came.output
    assert f"The model is {model}" in words(came)


@pytest.mark.parametrize(
    ("name", "is_data"), [("x.toml", False), ("spec.json", False), ("x.json", True), ("x.csv", True)]
)
def test_what_is_swept_is_a_spec_by_its_name_or_else_data(tmp_path, name, is_data):
    (tmp_path / name).touch()
    assert sweeping.is_data(tmp_path / name) is is_data
    assert not sweeping.is_data(tmp_path / "missing.json")


def test_what_is_left_out_keeps_its_indent_on_lines_that_wrap(monkeypatch):
    narrow = Console(width=40)
    monkeypatch.setattr(sweeping.terminal, "console", narrow)
    size = SimpleNamespace(dropped={"a reason of many words that wraps twice or more often": 12}, notes=["a note"])
    with narrow.capture() as printed:
        sweeping.print_excluded(size)
    lines = printed.get().splitlines()
    assert len(lines) >= 4
    assert all(line.startswith("  ") and not line.startswith("   ") for line in lines)
