"""Rows of the front door that the other files of this folder do not type: a file's advice, Ctrl-C in a terminal,
every module imported first, and the documentation of all public names."""

import inspect
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading

import pytest
from typer.testing import CliRunner

import workbench as wb
from tests.support.clocks import SECONDS
from tests.support.sweeps import supervised_here

EVERY_MODULE_FIRST = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(sys.argv[2:]))  # as if these were not installed
import workbench as wb
names = sorted(found.name for found in pkgutil.walk_packages(wb.__path__, "workbench.", onerror=lambda name: None))
names = [name for name in names if not name.endswith(("__main__", ".worker"))]
for name in names[::int(sys.argv[1])]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        assert "workbench" not in (getattr(error, "name", "") or ""), error  # a framework that is not installed
    except ValueError as error:
        assert "pip install" in str(error), error
for verb in (wb.train, wb.sweep, wb.advise, wb.profile, wb.load, wb.lab, wb.open, wb.compare):
    assert callable(verb) and not isinstance(verb, type(sys)), verb
for verb in (wb.train, wb.sweep, wb.advise):
    try:
        verb()
    except TypeError as error:
        assert "'X'" in str(error), error
    else:
        raise AssertionError(verb)
print(len(names))
"""

SCRIPT = """
import numpy as np, workbench as wb
x = np.eye(64)[np.arange(256) % 64]
result = wb.sweep(x, np.arange(256) % 2, density=[0.01, 0.02, 0.03, 0.05, 0.07, 0.1],
                  format=["csr", "dense"], rounds=3, trial_seconds=0.2, engine="ours", execution="step",
                  storage="same", update="lazy")
print("RESULT", type(result).__name__, len(result.trials), result.is_running)
"""


@pytest.mark.parametrize(
    ("step", "without"),
    [
        ("1", ["tensorflow", "keras"]),  # which take most of the time
        pytest.param("1", [], marks=pytest.mark.exhaustive),
        pytest.param("-1", [], marks=pytest.mark.exhaustive),
    ],
)
def test_functions_are_functions_after_every_module_was_imported_in_either_order(step, without):
    command = [sys.executable, "-W", "ignore", "-c", EVERY_MODULE_FIRST, step, *without]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 200


def in_a_terminal(script, folder):
    """Start a script as a terminal does; returns the process and the terminal's end to read from."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"},
    )
    os.close(theirs)
    return process, ours


def test_a_sweep_in_a_terminal_has_a_bar_and_ctrl_c_returns_the_result_of_what_there_is(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    process, terminal = in_a_terminal(tmp_path / "script.py", tmp_path)
    said, is_stopped, ending = "", False, threading.Timer(SECONDS, process.kill)
    ending.start()
    try:
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
            said += more.decode("utf-8", "replace")
            if not is_stopped and any(f"{count} of " in said for count in range(2, 9)):
                is_stopped = True
                os.kill(process.pid, signal.SIGINT)
        assert process.wait(SECONDS) == 0, said[-2000:]
    finally:
        ending.cancel()
        process.kill()
        os.close(terminal)
    assert "━" in said
    _, name, trials, running = said[said.index("RESULT") :].split()[:4]
    assert (name, running) == ("Result", "False")
    assert 0 < int(trials) < 36
    assert len(wb.open(next((tmp_path / "runs").iterdir())).trials) == int(trials)


@pytest.fixture(scope="module")
def advice_of_a_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("file")
    with pytest.MonkeyPatch.context() as patch, supervised_here():
        patch.chdir(folder)
        lines = "".join(f"{1 if row % 2 else -1} {1 + row % 5}:1 {7 + row % 2}:1\n" for row in range(400))
        (folder / "train.txt").write_text(lines)
        made = wb.advise("train.txt", budget=5)
        made.result.folder = made.result.folder.resolve()
    return folder, made


def test_advise_of_a_file_has_the_command_that_trains_so(advice_of_a_file, monkeypatch):
    from workbench.command import cli

    folder, advice = advice_of_a_file
    monkeypatch.chdir(folder)
    words = shlex.split(advice.command)
    assert words[:2] == ["workbench", "train"]
    came = CliRunner().invoke(cli.app, [*words[1:], "--epochs", "1"] if "--epochs" not in words else words[1:])
    assert came.exit_code == 0, came.output
    assert hasattr(advice.fit(), "predict")


def test_guesses_are_said_in_one_line_each_with_what_to_type(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"o{row:04d},{row % 40},{row % 7}.5,{'yes' if row % 2 else 'no'}\n" for row in range(400))
    (tmp_path / "shop.csv").write_text(f"order,user_id,price,bought\n{rows}")
    wb.train("shop.csv", random_state=0)
    said = capsys.readouterr().err
    for guess in (
        'shop.csv is read by "table": it looks like comma-separated text. Type dataset="NAME"',
        "The label is the column 'bought' (the only column of two values). Another one: label=\"NAME\".",
        "The column user_id is a category: whole numbers that look like ids.",
        "The column order is left out: another value in every row, as a name of the row. As categories: ",
    ):
        assert any(line.startswith(guess) for line in said.splitlines()), (guess, said)


@pytest.mark.parametrize("name", sorted(set(wb.__all__) - {"__version__"}))
def test_public_names_are_documented_with_an_example(name):
    thing = getattr(wb, name)
    text = inspect.getdoc(thing) or ""
    assert text, name
    if not (inspect.isclass(thing) and issubclass(thing, Exception)):
        assert "Examples\n--------" in text, name
        assert ">>> " in text, name


@pytest.mark.parametrize(
    "name", [name for name in wb.__all__ if name.endswith(("Classifier", "Regressor", "ClassifierCV"))]
)
def test_estimators_are_documented_parameter_by_parameter(name):
    thing = getattr(wb, name)
    text = inspect.getdoc(thing)
    undocumented = [
        parameter for parameter in inspect.signature(thing).parameters if f"\n{parameter} : default" not in text
    ]
    assert not undocumented
