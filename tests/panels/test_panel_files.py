"""A data set of the user's in the panel: its files are looked at at once, and its own sizes take the place of ours."""

import json
import os

import pytest

from tests.support import rows as made
from tests.support.panel_runs import text, write_run
from workbench.panels import lab, pages
from workbench.study import choices_of_spec, suited
from workbench.sweeps import run_folder
from workbench.sweeps.spec import SpecError, dump_spec

pytestmark = pytest.mark.usefixtures("no_charts")


@pytest.fixture
def news(here):
    """A file of the user's, small."""
    path = here / "news.svm"
    path.write_text("".join(f"{label} {1 + label}:1 40:2\n" for label in range(30)))
    return path


def test_the_sizes_of_another_data_set_do_not_stay_for_the_users_file(here, opened, news):
    panel = opened(lab.study(dataset="uniform"))
    assert panel.form.fields["width"].value == "16"
    panel.state.choose(dataset="svmlight", path=str(news))
    shown = {name: panel.form.fields[name].value for name in suited.OF_FILES}
    assert shown == {"density": "natural", "width": "natural", "features": ""}
    assert not {"width", "density", "features"} & set(panel.state.spec().axes)
    assert "Densities, Widths and Features follow the data set." in text(panel)
    panel.state.choose(dataset="uniform")
    assert panel.form.fields["width"].value == "16"
    assert "follow the data set" not in text(panel)


def test_what_the_user_typed_stays_and_is_told(here, opened, news):
    panel = opened(lab.study(dataset="uniform"))
    panel.form.fields["width"].inputs[0].value = "4"
    panel.form.fields["dataset"].inputs[0].value = "svmlight"
    panel.form.fields["path"].inputs[0].value = str(news)
    assert panel.state.spec().axes["width"] == (4,)
    assert "Widths 4 instead of natural: as you asked." in text(panel)
    messages = []
    lab.study(dataset="svmlight", path=str(news), width=[16])
    study = lab.study(dataset="svmlight", path=str(news), width=[16])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "start_run", lambda spec, folder: write_run(folder, made.sweep(), "finished"))
        lab.run(study, tell=messages.append)
    assert "Widths 16 instead of natural: as you asked." in messages[0]


def test_widths_follow_the_data_set(news):
    given = {"dataset": "svmlight", "path": str(news)}
    assert suited.complete_with_suggestions(given)["width"] == "natural"
    assert suited.complete_with_suggestions({"dataset": "stdlib"})["width"] == "natural"
    assert suited.complete_with_suggestions({"dataset": "uniform"})["width"] == "16"


def test_another_kind_of_file_is_read_by_the_reader_that_suits_it_unless_one_was_chosen(here, opened, news):
    (here / "shop.csv").write_text(
        "age,town,bought\n" + "".join(f"{row},{'ab'[row % 2]},{row % 2}\n" for row in range(30))
    )
    (here / "plays.tsv").write_text(
        "user\titem\trating\n" + "".join(f"{row % 7}\t{row % 5}\t{row % 4}\n" for row in range(30))
    )
    (here / "blanks.txt").write_text("".join(f"{row}  {row % 3}   {row % 2}\n" for row in range(30)))
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    field = {name: panel.form.fields[name].inputs[0] for name in ("path", "dataset", "reading", "model")}
    panel.state.fill({"density": 0.01, "labels": {"kind": "classes", "classes": 2}})
    assert field["model"].value == "logistic"
    field["path"].value = "shop.csv"
    assert (field["dataset"].value, field["model"].value) == ("table", "softmax")
    panel.form.label.value = "bought"
    field["path"].value = "blanks.txt"
    assert (field["dataset"].value, panel.form.label.value) == ("table", "bought")
    assert "separator=blanks" in field["reading"].value
    panel.form.label.value = ""
    field["path"].value = "plays.tsv"
    assert (field["dataset"].value, field["reading"].value) == ("ratings", "")
    field["dataset"].value = "table"  # by hand
    field["path"].value = str(news)
    assert field["dataset"].value == "table"


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("nws.svm", "there is no 'nws.svm' in {here}. Did you mean 'news.svm'?"),
        ("gone/news.svm", "and no folder {here}/gone either."),
        ("folder", "{here}/folder is an empty folder; name the one that holds the data."),
        ("empty", "{here}/empty is empty; name the file that holds the data."),
        ("pipe", "{here}/pipe is a device or a pipe; name a regular file."),
        ("nul\0", "there is no 'nul\\x00' in {here}"),
        ("n" * 300, "cannot be looked at"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_at_once(here, opened, news, name, result):
    (here / "folder").mkdir()
    (here / "empty").touch()
    os.mkfifo(here / "pipe")
    expected = result.format(here=here)
    with pytest.raises(SpecError) as error:
        lab.study(dataset="svmlight", path=str(here / name))
    assert error.value.problems[0].option == "path"
    assert expected in error.value.problems[0].text
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    assert not panel.run.disabled
    panel.state.choose(path=str(here / name))
    assert "<em>Your file</em>" in text(panel)
    assert pages.html.escape(expected) in text(panel)
    assert panel.run.disabled


def test_a_file_that_may_not_be_read_is_told(news, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read whatever the permissions say
    assert "may not be read by you; change its permissions" in suited.file_error(news)


def test_a_file_that_comes_or_goes_later_is_noticed(here, opened, news):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    news.rename(here / "away")
    panel.step()
    assert "there is no &#x27;news.svm&#x27;" in text(panel)
    assert panel.run.disabled
    (here / "away").rename(news)
    panel.step()
    assert not panel.state.problem
    assert not panel.run.disabled


def test_fields_for_files_show_with_the_data_sets_that_read_them(here, opened, news):
    panel = opened(lab.study())
    visible = lambda: [name for name in ("path", "labels") if panel.form.fields[name].box.layout.display != "none"]  # noqa: E731
    assert visible() == []
    panel.state.choose(dataset="svmlight")
    assert visible() == ["path", "labels"]
    panel.state.choose(dataset="npz")
    assert visible() == ["path", "labels"]
    panel.state.choose(dataset="svmlight", path=str(news))
    panel.state.choose(dataset="uniform")
    assert "path" not in panel.state.spec().axes, "a field that is hidden changed the sweep"


def started(study):
    """A finished run of the study's choices, as its Run button leaves it."""
    with pytest.MonkeyPatch.context() as patch:

        def start(spec, folder):
            write_run(folder, made.sweep(), "finished")
            (folder / run_folder.SPEC).write_text(dump_spec(spec))

        patch.setattr(run_folder, "start_run", start)
        study.start()
    return study


def test_results_of_other_settings_say_so_until_the_choices_are_theirs_again(here, opened):
    panel = opened(started(lab.study(dataset="uniform")))
    panel.step()
    assert pages.OUTDATED not in text(panel)
    panel.form.fields["width"].inputs[0].value = "4"
    assert f"{pages.OUTDATED}</strong> The run has Widths 16 (now 4)." in text(panel)
    assert "wb-old" in panel.results.verdict._dom_classes
    assert pages.OUTDATED in panel.still().html
    panel.form.fields["width"].inputs[0].value = "lots"
    assert "Widths 16 (now lots)" in text(panel)
    panel.form.fields["width"].inputs[0].value = "16"
    assert pages.OUTDATED not in text(panel)
    assert "wb-old" not in panel.results.verdict._dom_classes
    for ticked in (False, True):
        next(box for box in panel.form.fields["update"].inputs if box.description == "lazy").value = ticked
    assert pages.OUTDATED not in text(panel), "the order of what is chosen decides nothing"


def test_static_results_of_other_settings_say_so(here):
    study = started(lab.study(dataset="uniform"))
    assert pages.OUTDATED not in lab.verdict(study).text
    study.choose(format=["csr", "coo"], rounds=3)
    shown = lab.verdict(study)
    assert shown.text.startswith(
        f"{pages.OUTDATED} The run has Sparse formats csr (now csr, coo) and Rounds 12 (now 3)"
    )
    assert pages.OUTDATED in shown.html


def test_a_run_that_the_command_line_started_in_the_folder_is_noticed(here, opened):
    study = started(lab.study(dataset="uniform"))
    panel = opened(study)
    (study.folder / "choices.json").unlink()
    path = study.folder / run_folder.SPEC
    spec = json.loads(path.read_text())
    spec["axes"]["width"] = [64]
    path.write_text(json.dumps(spec))
    panel.step()
    assert f"{pages.OUTDATED}</strong> The run has Widths 64 (now 16)" in text(panel)


def test_a_small_run_of_a_small_file_uses_all_of_it(tmp_path):
    path = tmp_path / "small.svm"
    path.write_text("1 1:1\n0 2:1\n" * 3)
    small = suited.reduce_for_file(suited.complete_with_suggestions({"dataset": "svmlight", "path": str(path)}))
    assert (small["rows"], small["features"], small["rounds"]) == ("", "", "1")
    drawn = suited.reduce_for_file(suited.complete_with_suggestions({"dataset": "uniform", "features": "10000"}))
    assert (drawn["rows"], drawn["features"]) == ("2000", "512")


def test_other_data_have_a_run_of_their_own_and_what_was_measured_is_found_again(here, opened, news, monkeypatch):
    """Rows of one sweep stay what they are when another is started: to be explored, and compared with."""

    def start(spec, folder):
        write_run(folder, [], "finished", name=spec.name)
        (folder / run_folder.SPEC).write_text(dump_spec(spec))
        write_run(folder, made.sweep(), "finished", name=spec.name)

    monkeypatch.setattr(run_folder, "start_run", start)
    study = lab.study(name="", dataset="uniform", density=[0.1])
    panel = opened(study)
    runs = here / "runs"
    assert (study.name, study.target) == ("uniform", runs / "uniform")
    panel.run.click()
    panel.step()
    study.choose(dataset="svmlight", path=str(news))
    assert (study.folder, study.rows, study.progress) == (runs / "news", (), None)
    panel.run.click()
    panel.step()
    assert len(study.rows) == 48
    study.choose(dataset="uniform", density="0.1")
    assert (study.folder, study.outdated, len(study.rows)) == (runs / "uniform", "", 48)
    study.choose(density="0.3")
    assert study.target == runs / "uniform-2"
    assert "Run measures what is chosen now in runs/uniform-2; this run stays in runs/uniform." in text(panel)
    assert "--run runs/uniform-2" in study.command
    panel.run.click()
    panel.step()
    assert (study.folder, study.outdated) == (runs / "uniform-2", "")
    study.choose(density="0.1")
    assert (study.folder, study.outdated) == (runs / "uniform", "")


def test_a_sweep_beside_another_is_refused_and_told(here, opened, monkeypatch):
    monkeypatch.setattr(run_folder, "start_run", lambda *_: pytest.fail("it started"))
    panel = opened(lab.study(dataset="uniform"))
    write_run(here / "runs" / "another", [], "running", name="another")
    panel.run.click()
    assert "Starting failed: another is running, and two sweeps at once disturb each other." in text(panel)


@pytest.mark.parametrize(
    "settings",
    [
        {"rows": 300, "rounds": 2, "density": [0.01, None], "width": 4},
        {"dataset": "power_law", "model": "logistic", "width": 1, "epochs": 3, "trial_seconds": 0.1},
        {"format": ["csr", "csc"], "storage": ["same", "uint8"], "execution": ["step"], "batch_rows": [32, 64]},
    ],
)
def test_the_panel_of_a_run_begins_with_what_the_run_was_started_with(here, settings):
    """A budget, which ends a sweep and changes no trial, makes no difference."""
    unlimited = suited.spec_of(suited.complete_with_suggestions({"dataset": "uniform"} | settings), "own")
    spec = unlimited.model_copy(update={"limits": unlimited.limits.model_copy(update={"budget": 5.0})})
    folder = here / "elsewhere"
    write_run(folder, [], "finished", name="own")
    (folder / run_folder.SPEC).write_text(dump_spec(spec))
    write_run(folder, made.sweep(), "finished", name="own")
    study = lab.study(run_dir=str(folder))
    assert (study.problem, study.outdated) == ("", "")
    assert run_folder.result_identity(study.spec()) == run_folder.result_identity(spec)
    if "rows" in settings:
        other = lab.study(run_dir=str(folder), dataset="uniform", **settings | {"rows": 77})
        assert other.outdated == "Rows of the data 300 (now 77)"


def test_the_panel_of_a_run_whose_sweep_has_no_choices_begins_as_without_a_run(here):
    spec = suited.spec_of(suited.complete_with_suggestions({"dataset": "uniform"}), "own")
    folder = here / "elsewhere"
    write_run(folder, made.sweep(), "finished", name="own")
    (folder / run_folder.SPEC).write_text(dump_spec(spec.model_copy(update={"seed": 5})))
    assert choices_of_spec(run_folder.read_spec(folder)) is None
    study = lab.study(run_dir=str(folder))
    assert study.choices == lab.study().choices
    assert study.outdated
