"""Each script of `examples/` runs as it is copied, without arguments, small; with --exhaustive on own files, too."""

import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from tests.support.clocks import SECONDS
from tests.support.sweeps import supervised_here

ROOT = Path(__file__).parents[2]
SCRIPTS = {path.name: path for path in sorted((ROOT / "examples").glob("*.py"))}
MOST_LINES = 40
ONE = 'format="csr", update="lazy", execution="step", storage="same", trial_seconds=0.01, rounds=1'
SMALLER = {
    "own_file.py": {"budget=20": "budget=5"},
    "own_arrays.py": {"(20_000, 5_000)": "(2_000, 500)", "density=0.005": "density=0.05"},
    "sweep_and_plot.py": {
        "rows=4_000, features=2_000": "rows=300, features=100",
        "[0.01, 0.05, 0.2, 0.5]": "[0.02, 0.4]",
        'format="csr", update="lazy", rounds=2': ONE,
    },
    "pytorch_layer.py": {"rows=5_000, features=20_000": "rows=600, features=500", "density=0.002": "density=0.02"},
    "recommender.py": {"20_000), rng": "8_000), rng", "0, 90, 20_000": "0, 90, 8_000"},
}
"""What is made smaller in a script before it runs."""


TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra pytorch")
ROWS = "".join(f"{'ab'[row % 2]} {1 + row % 2}:1 {3 + row % 5}:1\n" for row in range(300))
"""A file of svmlight whose first two columns say the class."""


def smaller(name: str) -> str:
    text = SCRIPTS[name].read_text(encoding="utf-8")
    for shown, small in SMALLER[name].items():
        assert text.count(shown) == 1, shown
        text = text.replace(shown, small)
    return text


ALONE = ("own_file.py", "sweep_and_plot.py")
"""Scripts that measure in further processes, which import the script: they have a process of their own, as users have
it. The others run in this one, which has their libraries."""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Returns what a smaller script prints, in an empty folder and with its temporary files there."""

    def here(name: str, *words: object) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        with supervised_here():
            runpy.run_path(name, run_name="__main__")
        return capsys.readouterr()

    def alone(name: str, *words: object) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, name, *map(str, words)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    def call(name: str, *words: object) -> str:
        Path(name).write_text(smaller(name), encoding="utf-8")
        printed, errors = (alone if name in ALONE else here)(name, *words)
        assert "Warning" not in errors
        assert ("of disk" in errors) == ("sweep" in name), "a sweep says beforehand what it takes"
        return printed

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # looked up anew
    return call


def found(pattern: str, text: str) -> list[float]:
    """The numbers that a pattern catches."""
    return [float(number) for number in re.findall(pattern, text)]


def test_all_scripts_are_run_here():
    assert set(SCRIPTS) == set(SMALLER)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_says_what_it_does_and_how_it_is_run(name):
    text = SCRIPTS[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert f"python examples/{name}" in text.split('"""')[1]
    assert not re.search(r"^\s*def ", text, re.MULTILINE)
    assert not re.search(r"/(home|work|tmp|root)\b", text)


def assert_near(text: str) -> None:
    """Both estimators of `own_arrays.py` are there, and are right on most held-out rows."""
    assert re.findall(r"^(\w+): [\d.]+ s", text, re.MULTILINE) == ["SparseClassifier", "LogisticRegression"]
    ours, theirs = found(r"held-out rows ([\d.]+)", text)
    assert min(ours, theirs) > 0.7
    assert abs(ours - theirs) < 0.1


def test_own_file_is_advised_on_trained_saved_and_applied(tmp_path, run):
    text = run("own_file.py")
    assert "4,000 rows x" in text
    assert "Train it with: workbench train --dataset table" in text
    assert found(r"'accuracy': ([\d.]+)", text)[0] > 0.8
    assert len(list(tmp_path.glob("own-file-*/model/model.json"))) == 1


def test_own_arrays_compares_two_estimators_on_held_out_rows(run):
    text = run("own_arrays.py")
    assert "2000 rows x 500 columns, density 5.00%" in text
    assert_near(text)


def test_sweep_and_plot_says_where_dense_wins_and_writes_the_charts(tmp_path, run):
    text = run("sweep_and_plot.py")
    assert "at 2 %" in text or "2 to 40 %" in text
    assert "epochs of the data take" in text
    charts = re.findall(r"^chart: (.+)$", text, re.MULTILINE)
    assert [Path(chart).name for chart in charts] == ["time.png", "memory.png"]
    assert all((tmp_path / chart).read_bytes().startswith(b"\x89PNG") for chart in charts)


@TORCH
def test_pytorch_layer_learns(run):
    text = run("pytorch_layer.py")
    assert "600 rows x 500 features" in text
    losses = found(r"epoch \d: loss ([\d.]+)", text)
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert found(r"accuracy on these rows: ([\d.]+)", text)[0] > 0.5


def test_recommender_recommends_new_items_of_the_kind_that_the_user_likes(run):
    text = run("recommender.py")
    user, best = re.search(r"best new items for user-(\d+): (.+)", text).groups()
    items = [int(item.removeprefix("item-")) for item in best.split()]
    assert len(items) == 5
    assert [item % 3 for item in items] == [int(user) % 3] * 5


@pytest.mark.exhaustive
def test_own_file_takes_a_path_and_the_column_of_labels(tmp_path, run):
    lines = ["site,price,bought"]
    lines += [f"s{row % 30},{row % 7}.5,{'yes' if row % 30 < 15 else 'no'}" for row in range(400)]
    (tmp_path / "own.csv").write_text("\n".join(lines) + "\n")
    text = run("own_file.py", "own.csv", "bought")
    assert "400 rows x 39 features" in text
    assert "Train it with: workbench train --dataset table" in text
    assert "first predictions: yes yes yes yes yes" in text
    assert found(r"'accuracy': ([\d.]+)", text)[0] > 0.9


@pytest.mark.exhaustive
def test_own_arrays_takes_a_matrix_and_labels(tmp_path, run):
    X = scipy.sparse.random_array((300, 40), density=0.2, format="csr", rng=np.random.default_rng(0))
    scipy.sparse.save_npz(tmp_path / "X.npz", X)
    np.save(tmp_path / "y.npy", np.asarray(X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1)).ravel())
    text = run("own_arrays.py", "X.npz", "y.npy")
    assert "300 rows x 40 columns, density 20.00%" in text
    assert_near(text)


@pytest.mark.exhaustive
def test_sweep_and_plot_takes_a_path(tmp_path, run):
    (tmp_path / "own.svm").write_text(ROWS)
    text = run("sweep_and_plot.py", "own.svm")
    assert "runs/own/time.png" in text
    assert "at 2 %" in text


@TORCH
@pytest.mark.exhaustive
def test_pytorch_layer_takes_a_path(tmp_path, run):
    (tmp_path / "own.svm").write_text(ROWS)
    text = run("pytorch_layer.py", "own.svm")
    assert "300 rows x 7 features" in text
    assert found(r"accuracy on these rows: ([\d.]+)", text)[0] > 0.99


@pytest.mark.exhaustive
def test_recommender_takes_a_file_with_other_names_and_whole_numbers_as_ids(tmp_path, run):
    pairs = [(user, item) for user in range(40) for item in range(30) if user % 2 == item % 2 and (user + item) % 5]
    (tmp_path / "likes.csv").write_text("who,what\n" + "".join(f"{user},{item}\n" for user, item in pairs))
    best = re.search(r"best new items for 0: (.+)", run("recommender.py", "likes.csv")).group(1).split()
    taken = {item for user, item in pairs if user == 0}
    assert len(best) == 5
    assert not set(map(int, best)) & taken
