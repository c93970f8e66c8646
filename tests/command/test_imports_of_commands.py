"""What each command imports before it answers: packages that it does not use are not loaded; modules are counted."""

import json
import subprocess
import sys

import pytest

from workbench import data
from workbench.command import data_commands

ALWAYS_LATE = ("cupy", "dask", "torch", "tensorflow", "matplotlib", "ipywidgets", "sklearn", "pandas", "scipy.optimize")
COMPILED = ("numba", "scipy.sparse")
RUN = """
import contextlib, io, json, sys
from workbench.command import cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    cli.app(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(tmp_path, *words):
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("words", "most", "unused"),
    [
        (["--help"], 360, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["--version"], 295, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["sweep", "--help"], 460, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["status"], 370, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["data", "--help"], 460, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["doctor"], 1060, ALWAYS_LATE),
        (["train", "uniform", "--rows=40", "--features=9", "--density=0.3", "--epochs=1"], 1260, ALWAYS_LATE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_imports_no_more_than_it_uses(tmp_path, words, most, unused):
    loaded = modules_after(tmp_path, *words)
    assert sorted(loaded & set(unused)) == []
    assert len(loaded) <= most


def test_the_list_of_data_sets_imports_the_readers_once_and_is_the_same_then(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    assert {"numba", "scipy.sparse"} <= modules_after(tmp_path, "data", "list")
    later = modules_after(tmp_path, "data", "list")
    assert sorted(later & {*ALWAYS_LATE, *COMPILED, "numpy"}) == []
    assert len(later) <= 370
    listed = data_commands.sources()
    (tmp_path / "cache" / data_commands.FILE).write_text("{", encoding="utf-8")
    assert data_commands.sources() == listed
    assert [one["name"] for one in listed] == data.names()


def test_a_model_is_applied_without_the_special_functions_of_scipy(tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{row % 2} {1 + row % 2}:1 {3 + row % 7}:1\n" for row in range(60)))
    modules_after(tmp_path, "train", "rows.txt", "--epochs=1", "--save=model")
    loaded = modules_after(tmp_path, "apply", "model", "rows.txt", "--out=scores.csv")
    assert (tmp_path / "scores.csv").read_text().count("\n") == 61
    assert sorted(loaded & {*ALWAYS_LATE, "scipy.special"}) == []
