"""The command line: every command as a user types it, its errors, and how fast its help is there."""

import html
import json
import os
import re
import sys
import tomllib
from types import SimpleNamespace

import pytest
import typer

from kernels import devices
from tests.support import rows as made
from tests.support.commands import run
from workbench import data, formats, store
from workbench.command import cli, console, demo, doctor, jupyter, terminal, training
from workbench.data.sources import stdlib
from workbench.measure import environment
from workbench.ops.products import ENGINES
from workbench.settings import BY_NAME
from workbench.sweeps import grid, run_folder, spec

SPEC = """
name = "small"
[axes]
dataset = "uniform"
rows = 60
features = 30
batch_rows = 20
threads = 1
density = [0.1, 0.3]
epochs = {epochs}
[[candidates]]
format = "csr"
[[candidates]]
format = "dense"
engine = "dense"
gradient = "dense"
update = "standard"
[measure]
seconds_warmup = 0.0
seconds_sample = 0.0
trial_seconds = 0.0
rounds = 1
busy_most = 1.0
"""


def spec_file(tmp_path, epochs: int = 0, name: str = "small"):
    path = tmp_path / f"{name}.toml"
    path.write_text(SPEC.format(epochs=epochs), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("dataset", ("lists", "all")),
        ("model", ("linear", "logistic", "softmax", "lists", "all")),
        ("format", formats.names()),
        ("engine", ENGINES),
        *[(name, BY_NAME[name].allowed) for name in ("gradient", "update", "device", "execution", "dtype")],
    ],
)
def test_the_help_of_an_option_names_all_that_it_takes(option, known):
    options = {each.name: each.help for each in typer.main.get_command(cli.app).commands["train"].params}
    assert set(re.findall(r"\w+", options[option])) >= set(known)


@pytest.mark.parametrize("option", ["--detach", "--dry-run"])
def test_a_sweep_that_measures_nothing_now_has_no_json(tmp_path, option):
    came = run("sweep", str(spec_file(tmp_path)), "--json", option)
    assert came.exit_code == 2
    assert "--json prints what was measured" in came.output


@pytest.mark.usefixtures("sweeps_here")
def test_a_sweep_then_its_report(tmp_path):
    came = run("sweep", str(spec_file(tmp_path)))
    assert came.exit_code == 0, came.output
    ends = re.search(r"finished: (\d+) ok(?:, (\d+) disturbed)?", came.output)
    assert ends, came.output
    assert sum(int(count or 0) for count in ends.groups()) == 4, "other programs may run beside the tests"
    again = run("sweep", str(tmp_path / "small.toml"))
    assert "4 done before" in again.output
    came = run("report", "runs/small")
    page = (tmp_path / "runs/small/report.html").read_text(encoding="utf-8")
    assert came.output.strip() == "runs/small/report.html"
    assert page.count("<svg") >= 3
    assert "workbench sweep spec.json" in page
    assert (tmp_path / "runs/small/spec.json").read_text(encoding="utf-8") in html.unescape(page)
    printed = run("sweep", str(tmp_path / "small.toml"), "--json")
    assert json.loads(printed.stdout) == json.loads(run("report", "runs/small", "--json").stdout)
    assert "4 done before" in printed.stderr
    for arguments in (("--markdown", "--out", "r.txt"), ("--out", "r.md")):
        assert run("report", "runs/small", *arguments).exit_code == 0
        assert "## Break-evens" in (tmp_path / arguments[-1]).read_text(encoding="utf-8")


def test_the_clock_of_a_training_starts_after_a_step_at_full_size(monkeypatch):
    log, made = [], training.make_run
    monkeypatch.setattr(training, "make_run", lambda *given: Watched(made(*given), log))
    assert run("train", "--dataset", "uniform", "--rows", "60", "--features", "20", "--epochs", "2").exit_code == 0
    assert log == ["events", "reset", "events 2"]


class Watched:
    """A run that notes what starts its steps."""

    def __init__(self, run, log: list[str]) -> None:
        self.run, self.log = run, log

    def __getattr__(self, name: str):
        return getattr(self.run, name)

    def events(self, *epochs: int):
        self.log.append(" ".join(["events", *map(str, epochs)]))
        return self.run.events(*epochs)

    def reset(self) -> None:
        self.log.append("reset")
        self.run.reset()


def test_a_detached_sweep_goes_on_by_itself(tmp_path):
    came = run("sweep", str(spec_file(tmp_path)), "--detach", "--run", "elsewhere")
    assert "Stop it with: workbench stop elsewhere" in came.output
    *_, last = run_folder.watch_progress("elsewhere", 0.05)
    assert last.counts["ok"] + last.counts.get("disturbed", 0) == 4 == sum(last.counts.values())


def test_training_shows_loss_phases_memory_and_quality():
    came = run(
        "train", "--dataset", "uniform", "--rows", "200", "--features", "50", "--density", "0.2", "--epochs", "2"
    )
    assert came.exit_code == 0, came.output
    for text in (
        "loss",
        "update",
        "held-out accuracy",
        "memory: ",
        "stored dense it would take",
        "always predicting the most frequent class gets 0.",
    ):
        assert text in came.output
    epochs = [line.split("│")[1:4] for line in came.output.splitlines() if line.startswith("│")]
    assert [[configuration.strip() for configuration in row[:2]] for row in epochs] == [["1", "1"], ["2", "1"]]
    assert float(epochs[1][2]) < float(epochs[0][2]), "the loss by epoch"


def test_lines_of_a_training_are_whole_in_a_file_and_wrapped_between_words_on_a_terminal(monkeypatch):
    words = ("train", "--dataset", "uniform", "--rows", "200", "--features", "50", "--density", "0.2", "--search", "4")
    monkeypatch.setattr(console.console, "width", 60)
    lines = run(*words).output.splitlines()
    shown = [line for line in lines if line.startswith(("uniform: ", "decay ", "target: ", "memory: "))]
    assert len(shown) == 4
    assert any(len(line) > 60 for line in shown)
    assert re.search(r"\d+ passes over the rows", "\n".join(lines))
    assert re.search(r"stored dense it would take [\d.]+ kB", "\n".join(shown))
    monkeypatch.setattr(type(console.console), "is_terminal", True)
    wrapped = run(*words).output
    assert shown[2] not in wrapped
    assert " ".join(shown[2].split()) in " ".join(wrapped.split())


def test_a_model_that_cannot_be_kept_is_not_trained(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr(training, "_train", lambda *given: pytest.fail("it is trained"))
    came = run("train", "--dataset", "uniform", "--rows", "60", "--features", "20", "--density", "0.3", "--save", "m")
    assert "cannot be written to; name another folder" in str(came.exception)


@pytest.mark.parametrize("format", ["dense", "csc", "coo", "row_sparse"])
def test_training_fills_in_what_suits_the_format(format):
    came = run(
        "train", "--dataset", "uniform", "--rows", "60", "--features", "20", "--density", "0.3", "--format", format
    )
    assert came.exit_code == 0, came.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["report", "nowhere"], "There are no results at nowhere. Give a .jsonl file"),
        (["sweep", "none.toml"], "There is no spec none.toml; give the path of a TOML file"),
        (["sweep", "none.svm"], "There is no file none.svm; give the path of data, or of a sweep in TOML."),
        (
            ["train", "--format", "cssr"],
            "workbench: --format 'cssr': Unknown value 'cssr'. Did you mean 'csr'? Expected one of: dense, csr",
        ),
        (["train", "--learning-rate", "0"], "workbench: --learning-rate 0.0: Input should be greater than 0"),
        (["train", "--dataset", "svmlight"], "needs path, a file of yours"),
        (["train", "--dataset", "npz", "--path", "x.npz"], "There is no file x.npz; give the path of a SciPy matrix"),
        (["train", "http://x.org/a.csv"], "http:/x.org/a.csv is an address, and data is read from files; download it"),
        (["train", "-"], "There is no file -; standard input is not read; save it as a file"),
        (["train", "--path", "x.txt"], "There is no file x.txt; give the path of a file or folder of data"),
        (["train", "--dataset", "stdlib", "--path", "x.txt"], "--path 'x.txt': the data set stdlib takes none"),
        (["advise", "uniform", "--reading", "rows=9"], "--reading 'rows=9': the data set uniform takes none; leave it"),
        (["advise", "stdlib", "--model", "x"], "--model 'x': Unknown value 'x'. Expected one of: bpr"),
        (["train", "--dataset", "uniform", "--rows", "99999999999999", "--features", "9"], "nable to allocate"),
        (["train", "--format", "dense", "--gradient", "row_sparse"], "No rule computes X.T @ G as row_sparse"),
    ],
)
def test_errors_a_user_can_mend_are_one_message_without_a_traceback(arguments, text, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["workbench", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == (1 if "allocate" in text else 2)
    assert text in (output := capsys.readouterr().err)
    assert "Traceback" not in output


def test_a_path_of_a_data_set_that_has_none_is_refused_before_the_set_is_made(monkeypatch):
    monkeypatch.setattr(data, "describe", None)
    assert "the data set stdlib takes none" in str(run("train", "--dataset", "stdlib", "--path", "x.txt").exception)


def test_a_seed_below_zero_is_refused_where_it_is_given():
    came = run("train", "--seed", "-1")
    assert came.exit_code == 2
    assert "--seed" in came.output
    with pytest.raises(spec.SpecError, match="seed = -1: Input should be greater than or equal to 0"):
        spec.parse_spec('name = "x"\naxes.seed = -1')


def test_the_doctor_names_what_it_looked_at():
    found = {finding.what: finding for finding in doctor.examine()}
    assert set(found) >= {"processor", "cores", "memory available", "BLAS", "Numba threading layer", "GPU", "versions"}
    came = run("doctor")
    assert all(what in came.output for what in found)


def test_the_doctor_says_what_holds_blas_back(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert environment.distorting_variables()["OPENBLAS_CORETYPE"] == "Haswell"
    advice = next(finding.advice for finding in doctor.examine() if finding.what == "BLAS")
    assert "OPENBLAS_CORETYPE=Haswell" in advice


def test_the_packaged_specs_are_valid_and_have_a_dense_baseline():
    files = sorted(demo.SPECS.glob("*.toml"))
    assert {file.stem for file in files} >= {"demo_train", "demo_density", "demo_quick"}
    for file in files:
        configurations = grid.expand_grid(spec.load_spec(file))
        assert not configurations.dropped, file
        assert {"dense", "csr"} <= {configuration.format for configuration in configurations.configurations}, file


def test_the_demo_trains_on_no_more_rows_than_a_library_without_its_tests_has():
    asked = spec.load_spec(demo.SPECS / "demo_train.toml").axes["rows"][0]
    assert asked <= 0.7 * stdlib.make(tests=False).rows


@pytest.mark.usefixtures("sweeps_here", "no_charts")
def test_the_demo_ends_with_a_verdict_and_a_report(tmp_path, monkeypatch):
    for name, epochs in (("demo_train", 2), ("demo_density", 0)):
        spec_file(tmp_path, epochs, name)
    monkeypatch.setattr(demo, "SPECS", tmp_path)
    came = run("demo", "--root", "runs/demo")
    assert came.exit_code == 0, came.output
    for text in (
        "held-out accuracy",
        "Answer",
        f"Report: {tmp_path / 'runs/demo/report.html'}",
    ):
        assert text in came.output
    rows = store.read("runs/demo/demo_train")
    assert {row["format"] for row in rows if row["quality"] is not None} == {"csr", "dense"}
    assert json.loads((tmp_path / "runs/demo/demo_density/machine.json").read_text(encoding="utf-8"))["cores"] >= 1


@pytest.mark.usefixtures("sweeps_here", "no_charts")
def test_the_quick_demo_sweeps_alone_and_ends_with_a_verdict_and_a_report(tmp_path, monkeypatch):
    spec_file(tmp_path, 0, "demo_quick")
    monkeypatch.setattr(demo, "SPECS", tmp_path)
    compiled: list = []
    monkeypatch.setattr(demo.warming, "warm_together", lambda configurations: compiled.extend(configurations) or 1.0)
    came = run("demo", "--quick", "--root", "runs/demo")
    assert {configuration.format for configuration in compiled} >= {"dense", "csr"}
    assert came.exit_code == 0, came.output
    assert "Answer" in came.output
    assert f"Report: {tmp_path / 'runs/demo/report.html'}" in came.output
    assert "workbench demo --quick" in (tmp_path / "runs/demo/report.md").read_text(encoding="utf-8")
    assert not (tmp_path / "runs/demo/demo_train").exists()
    assert run_folder.read_spec(tmp_path / "runs/demo/demo_quick").limits.budget == demo.SECONDS_QUICK - 1.0


def test_jupyterlab_that_is_missing_is_told_with_the_install_line(monkeypatch):
    monkeypatch.setattr(jupyter.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'sparse-workbench\[lab\]'"):
        jupyter.start()


@pytest.mark.parametrize(
    ("user", "contained", "typed", "options"),
    [
        (1000, False, [], []),
        (0, False, [], ["--allow-root"]),
        (1000, True, [], ["--no-browser"]),
        (0, True, ["--port", "9000", "--ip", "0.0.0.0"],
         ["--port=9000", "--ip=0.0.0.0", "--no-browser", "--allow-root"]),
        (1000, False, ["--no-browser", "--allow-root"], ["--no-browser", "--allow-root"]),
    ],
)  # fmt: skip
def test_lab_starts_with_what_root_and_containers_need(user, contained, typed, options, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(jupyter.os, "geteuid", lambda: user)
    monkeypatch.setattr(jupyter.os, "execv", lambda path, line: lines.append(line))
    monkeypatch.setattr(jupyter, "CONTAINERS", (tmp_path if contained else tmp_path / "none",))
    assert run("lab", str(tmp_path), *typed).exit_code == 0
    own = [f"--ServerApp.root_dir={tmp_path}", "--LabApp.default_url=/lab", *jupyter.QUIET]
    assert lines == [[sys.executable, "-m", "jupyterlab", *own, *options]]


def test_the_address_that_lab_prints_opens_the_first_notebook(monkeypatch):
    lines = []
    monkeypatch.setattr(jupyter.os, "execv", lambda path, line: lines.append(line))
    jupyter.start()
    assert f"--LabApp.default_url=/lab/tree/{jupyter.FIRST}" in lines[0]
    assert f"--ServerApp.root_dir={jupyter.NOTEBOOKS}" in lines[0]


def test_an_installed_lab_copies_its_first_notebook_once(tmp_path, monkeypatch):
    installed = tmp_path / "share" / jupyter.FIRST
    installed.parent.mkdir()
    installed.write_text("{}")
    file = SimpleNamespace(name=jupyter.FIRST, locate=lambda: installed)
    monkeypatch.setattr(jupyter.importlib.metadata, "files", lambda name: [file])
    assert jupyter.with_first_notebook(tmp_path) == tmp_path
    (tmp_path / jupyter.FIRST).write_text("changed")
    jupyter.with_first_notebook(tmp_path)
    assert (tmp_path / jupyter.FIRST).read_text() == "changed"


def test_the_first_notebook_is_in_the_wheel():
    files = tomllib.loads((jupyter.NOTEBOOKS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"notebooks/{jupyter.FIRST}" in files["tool"]["setuptools"]["data-files"]["share/sparse-workbench"]


def test_without_a_gpu_device_cuda_is_one_message_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "probe", lambda: devices.Gpu(reason="no CUDA device: cudaErrorNoDevice"))
    command = "train --dataset uniform --rows 60 --features 30 --density 0.1"
    came = run(*command.split(), "--device", "cuda")
    assert came.exit_code == 1
    assert "cudaErrorNoDevice. Take --device cpu." in str(came.exception)
    assert not list(tmp_path.glob("runs/*"))


def test_trainings_that_ran_next_to_other_programs_have_their_numbers_in_the_demo_s_table():
    known = {"quality": 0.8, "quality_name": "accuracy", "seconds_epoch": 0.125, "bytes_held": 2**20}
    rows = [made.disturbed(row) | known for row in made.sweep(densities=(0.05,))]
    columns = terminal.trained_table(rows).columns
    assert {str(cell) for cell in columns[1].cells} == {"0.12 (disturbed)"}
    assert {str(cell) for cell in columns[4].cells} == {"0.800"}
