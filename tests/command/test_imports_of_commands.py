"""What each command imports before it answers: packages that it does not use are not loaded; modules are counted."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.support.commands import run
from tests.support.processes import printed
from workbench import data
from workbench.command import cli, data_commands

ALWAYS_LATE = ("cupy", "dask", "torch", "tensorflow", "matplotlib", "ipywidgets", "sklearn", "pandas", "scipy.optimize")
COMPILED = ("numba", "scipy.sparse")
UNUSED = ("unittest", "charset_normalizer", "psutil", "multiprocessing.forkserver", "workbench.measure.posterior")
RUN = """
import contextlib, io, json, sys
from workbench.command import cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    cli.main()
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(tmp_path, *words):
    return set(json.loads(printed(RUN, *words, cwd=tmp_path).splitlines()[-1]))


@pytest.mark.parametrize(
    ("words", "most", "unused"),
    [
        (["--help"], 360, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["--version"], 295, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["sweep", "--help"], 460, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["status"], 370, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["data", "--help"], 460, (*ALWAYS_LATE, *COMPILED, "numpy")),
        (["doctor"], 1000, ALWAYS_LATE),
        pytest.param(
            ["train", "uniform", "--rows=40", "--features=9", "--density=0.3", "--epochs=1"],
            1130,
            ALWAYS_LATE,
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_imports_no_more_than_it_uses(tmp_path, words, most, unused):
    loaded = modules_after(tmp_path, *words)
    assert sorted(loaded & set(unused)) == []
    assert len(loaded) <= most


def test_the_list_of_data_sets_says_what_each_is_in_a_sentence():
    listed = data_commands.sources()
    assert [one["name"] for one in listed] == data.names()
    assert all(one["about"].endswith(".") for one in listed)
    assert len({one["about"] for one in listed}) == len(listed)


def test_training_and_applying_with_code_from_the_cache_import_no_more_than_they_use(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.txt").write_text("".join(f"{row % 2} {1 + row % 2}:1 {3 + row % 7}:1\n" for row in range(600)))
    train = ["train", "rows.txt", "--save=model", "--force"]
    assert run(*train).exit_code == 0  # compiles what is loaded from then on
    loaded = modules_after(tmp_path, *train)
    assert sorted(loaded & {*ALWAYS_LATE, *UNUSED, "numba.np.arrayobj"}) == []
    assert len(loaded) <= 1000
    assert run("apply", "model", "rows.txt").exit_code == 0
    loaded = modules_after(tmp_path, "apply", "model", "rows.txt", "--out=scores.csv")
    assert (tmp_path / "scores.csv").read_text().count("\n") == 601
    assert sorted(loaded & {*ALWAYS_LATE, *UNUSED, "scipy.special"}) == []
    assert len(loaded) <= 880


def test_a_command_alone_has_the_help_that_it_has_among_all():
    words = [sys.executable, "-m", "workbench", "apply", "--help"]
    alone = subprocess.run(
        words, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "100"}
    ).stdout
    among_all = CliRunner().invoke(cli.app, ["apply", "--help"], env={"COLUMNS": "100"}).output
    assert "Predict the rows" in alone
    assert alone.partition("Predict")[2].split() == among_all.partition("Predict")[2].split()


def test_the_choices_of_a_sweep_and_the_usual_model_import_no_other_models():
    code = "import sys; from workbench import models, study; print(models.default_model('binary'), *sys.modules)"
    words = printed(code).split()
    assert words[0] == "logistic"
    assert not {f"workbench.models.{name}" for name in ("pruned_mlp", "patterns", "softmax", "multilabel")} & {*words}
    from workbench import models, study  # here all models may be known

    assert all(name in study.help_of(study.CHOICES["model"]) for name in models.names())
