"""Rules of the front door: one verb has one meaning at every door, the label is guessed by three rules that are said,
a model that was trained is kept and used, and data in memory is known by its content."""

import csv
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import workbench as wb
from tests.front_door.test_doors import called, ends_with
from tests.support.size_rows import swept
from workbench import settings, store
from workbench.api import sweeping as api_sweeping
from workbench.command import cli
from workbench.sweeps import run_folder
from workbench.sweeps.progress import Progress

ROOT = Path(__file__).parents[2]

OWNER = ("yes", "no", "no")
LABELS = {
    "by its name": ("age,click,size", "{age},{two},{few}.5", "click", "name"),
    "one of several names": ("y,age,target", "{two},{age},{few}", "target", "y"),
    "the only one of two values": ("age,owner,size", "{age},{owner},{few}.5", "owner", "the only column of two values"),
    "the last one": ("age,size,price", "{age},{few}.5,{many}.25", "price", "the last column"),
    "the last one of several of two values": ("age,owner,size,sold", "{age},{owner},{few}.5,{two}", "sold", "owner"),
}
"""Header, rows, the label that is guessed, and a word of the reason or another column that is listed."""


@pytest.mark.parametrize("rule", LABELS)
def test_the_label_is_guessed_by_one_rule_for_files_and_frames(rule, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    head, form, label, word = LABELS[rule]
    each = [{"age": row % 40, "two": row % 2, "few": row % 5, "many": row % 17} for row in range(240)]
    rows = [form.format(**values, owner=OWNER[row % 3]) for row, values in enumerate(each)]
    (tmp_path / "table.csv").write_text("\n".join([head, *rows, ""]))
    frame = pd.read_csv("table.csv")
    for source in ("table.csv", frame):
        wb.load(source)
        said = capsys.readouterr().err
        assert f"The label is the column {label!r} (" in said
        assert 'Another one: label="NAME".' in said
        assert word in said
    other = next(name for name in frame.columns if name != label)
    assert wb.load("table.csv", label=other).facts["reread"]["columns"]["columns"][other]["kind"] == "label"
    assert wb.load(frame, label=other).rows == 240


def options_of(name):
    """The options of a command and their defaults, by the name of the parameter."""
    command = get_command(cli.app).commands[name]
    return {
        parameter.name: parameter.default for parameter in command.params if not getattr(parameter, "hidden", False)
    }


def test_advise_has_the_same_settings_and_defaults_in_python_and_on_the_command_line():
    python = inspect.signature(wb.advise).parameters
    typed = options_of("advise")
    for name in ("budget", "model", "label", "optimizer", "batch_rows", "device", "lazy", "run", "framework"):
        assert name in python
        assert name in typed
    assert typed["budget"] == 60.0
    assert not typed["lazy"]
    assert python["lazy"].default is False


def test_sweep_has_an_option_for_each_setting_of_python():
    typed = set(options_of("sweep"))
    assert {"label", "budget", "run", *settings.CHOICES} <= typed


def test_docs_type_no_name_that_lies_deeper_than_one_level():
    """The bridges are a family of packages, each for its framework."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("start/*.md")]
    code = "\n".join(
        text for page in pages for text in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    )
    deep = re.findall(r"(?:from|import) (workbench\.(?!bridges)\w+\.\w+)", code)
    assert not deep


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table in a file, and new rows of it in another order of columns, with a category that is new and no label."""
    monkeypatch.chdir(tmp_path)
    rows = [(row % 40, "red" if row % 3 else "blue", "yes" if row % 3 else "no") for row in range(240)]
    (tmp_path / "train.csv").write_text("age,color,bought\n" + "".join(f"{a},{c},{b}\n" for a, c, b in rows))
    (tmp_path / "new.csv").write_text("color,age\nred,3\nblue,4\ngreen,5\n")
    return tmp_path


def test_train_save_and_apply_on_the_command_line(table):
    run = CliRunner().invoke
    came = run(cli.app, ["train", "train.csv", "--epochs", "30", "--save", "model/"])
    assert came.exit_code == 0, came.output
    came = run(cli.app, ["apply", "model/", "new.csv", "--out", "scores.csv"])
    assert came.exit_code == 0, came.output
    lines = list(csv.reader((table / "scores.csv").read_text().splitlines()))
    assert lines[0][:2] == ["row", "prediction"]
    assert [line[1] for line in lines[1:3]] == ["yes", "no"]
    again = run(cli.app, ["apply", "model/", "new.csv", "--out", "scores.csv"])
    assert "Type --force to replace it." in str(again.exception)
    assert wb.load_model("model/").apply("new.csv").values[:2].tolist() == ["yes", "no"]


def test_train_in_python_trains_as_the_command_on_the_same_file(table):
    wb.train("train.csv", random_state=0).save("of_python")
    applied = wb.load_model("of_python").apply("train.csv")
    assert applied.quality["accuracy"] == 1.0


def test_data_in_memory_is_known_by_its_content(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, folder, *_: folder))
    x, y = np.eye(12)[np.arange(60) % 12], np.arange(60) % 2
    first, said = called(wb.sweep, x, y, capsys=capsys)
    assert "of disk" in said
    again, said = called(wb.sweep, x.copy(), list(y), capsys=capsys)
    assert again == first
    assert "of disk" not in said, "it is written once"
    other = x.copy()
    other[0, 0] = 2
    assert called(wb.sweep, other, y, capsys=capsys)[0] != first
    assert called(wb.sweep, x, 1 - y, capsys=capsys)[0] != first
    assert (tmp_path / first / "X.sparse").is_dir()


def test_a_sweep_in_a_notebook_shows_progress_and_the_chart_so_far(result, monkeypatch):
    shown = []

    class Handle:
        def update(self, page):
            shown.append(page.data)

    monkeypatch.setattr("IPython.display.display", lambda *_, **__: Handle())
    monkeypatch.setattr(api_sweeping, "SECONDS_BETWEEN_CHARTS", 0.0)
    at_work = Progress("demo", "running", total=9, done=2, seconds=3.0)
    monkeypatch.setattr(run_folder, "watch_progress", lambda _: iter([at_work]))
    api_sweeping._follow_in_notebook("Measuring", result.folder, 0.0, 60.0)
    card, at_the_end = shown
    assert '<progress max="9" value="2"' in card
    assert "2 of 9 trials" in card
    assert "Interrupt the cell to stop" in card
    assert "<svg" in card or "<img" in card
    assert at_the_end == ""


def test_a_spec_may_be_a_dict_and_both_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api_sweeping, "measured", ends_with(lambda spec, *_: (spec.name, spec.axes["rows"])))
    spec = {"name": "mine", "axes": {"dataset": "uniform", "rows": 200}}
    assert called(wb.sweep, spec, capsys=capsys)[0] == ("mine", (200,))
    with pytest.raises(ValueError, match="Both a spec and density were given"):
        wb.sweep(spec, density=0.1)
    with pytest.raises(ValueError, match="rowz"):
        wb.sweep({"name": "mine", "axes": {"dataset": "uniform", "rowz": 200}})
    assert called(wb.sweep, {"axes": [1, 2] * 20, "y": [0, 1] * 20}, rows=10, capsys=capsys)[0][0].startswith("memory")


def test_results_have_break_evens_and_charts_of_loss_and_quality(result):
    import matplotlib.pyplot as plt

    assert "in time: " in str(result.break_evens)
    assert "<table" in result.break_evens._repr_html_()
    assert result.plot("loss").figure is not None
    assert result.plot("quality") is not None, "without trainings it says that there are none"
    plt.close("all")


def test_a_result_without_a_dense_format_answers_by_the_size_of_its_tables():
    made = wb.Result("none")
    made._trials = made._answered = store.frame(swept())
    assert "active rows at 100,000 rows" in str(made.verdict)
    assert "active rows at 100,000 rows" in made.verdict._repr_html_()
