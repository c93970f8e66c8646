"""The profile of the user's file in the panel: counted while it is idle, shown first, never beside a sweep."""

import numpy as np
import pytest
import scipy.sparse

from tests.support import rows as made
from tests.support.clocks import until
from tests.support.panel_runs import text, write_run
from workbench import data
from workbench.panels import lab
from workbench.panels import panel as panel_module
from workbench.panels.panel import asked_of
from workbench.study import suited


@pytest.fixture
def news(here):
    path = here / "news.svm"
    path.write_text("".join(f"{row % 2} {1 + row}:1 40:2\n" for row in range(30)))
    return path


@pytest.fixture
def counted(monkeypatch):
    """The parameters that data were read with, of each profile that was counted."""
    asked, load = [], data.load

    def count(name, **parameters):
        asked.append(parameters)
        return load(name, **parameters)

    monkeypatch.setattr(panel_module.data, "load", count)
    return asked


def wait_until(panel, status):
    def is_there() -> bool:
        panel.step()
        return panel.profiling.status in (status, "failed")

    until(is_there)
    assert panel.profiling.status == status, panel.profiling.problem


def test_a_chosen_file_is_counted_beside_the_panel_and_shown_first(here, opened, news):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    assert panel.profile.box.layout.display == "none"
    panel.profiling.poll()
    assert "Reading the file" in text(panel)
    wait_until(panel, "done")
    panel.step()
    assert "5 % of the elements are stored" in text(panel)
    assert "30 rows x 40 columns" in panel.profile.text.value
    assert panel.profile.chart.value.count("<img") == 1
    assert "9 never used" in panel.profile.numbers.value
    assert panel.form.fields["model"].value == "logistic"
    assert panel.form.fields["density"].value == "0.03, natural, 0.1, 0.3"
    assert "Model logistic and Densities 0.03, natural, 0.1, 0.3 follow the profile." in text(panel)
    shown = panel.root.children
    assert shown.index(panel.profile.box) == shown.index(panel.form.box) + 1


def test_a_width_that_was_typed_keeps_a_model_that_has_it(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news), width=[4]))
    panel.state.fill({"density": 0.05, "labels": {"kind": "classes", "classes": 2}})
    assert panel.form.fields["model"].value == "softmax"
    panel.state.choose(width="natural", density="natural")
    panel.state.fill({"density": 0.05, "labels": {"kind": "classes", "classes": 2}})
    assert panel.form.fields["model"].value == "logistic"


def test_what_cannot_be_read_is_told_in_the_words_of_the_reader(here, opened, news):
    news.write_text("0 1:1\n1 2:x\n")
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    wait_until(panel, "failed")
    assert "news.svm:2: " in panel.profile.text.value


def test_what_a_reader_asks_for_is_told_as_a_field_of_the_panel(here, opened):
    scipy.sparse.save_npz(here / "x.npz", scipy.sparse.eye_array(30, format="csr"))
    panel = opened(lab.study(dataset="npz", path="x.npz"))
    wait_until(panel, "failed")
    assert "FILE in the field <em>Labels file</em>" in panel.profile.text.value
    assert "--" not in panel.profile.text.value


def test_the_model_and_the_guesses_are_those_of_the_other_doors(here, opened):
    ratings = "".join(f"{row % 7},{row % 5},{1 + row % 3}\n" for row in range(35))
    (here / "plays.csv").write_text(f"user,item,rating\n{ratings}")
    panel = opened(lab.study(dataset="ratings", path="plays.csv"))
    wait_until(panel, "done")
    assert panel.form.fields["model"].value == "matrix_factorization"
    (here / "shop.csv").write_text("age,town,bought\n" + "".join(f"{row},{row % 7},{row % 2}\n" for row in range(99)))
    panel.form.fields["path"].inputs[0].value = "shop.csv"
    wait_until(panel, "done")
    assert panel.form.fields["model"].value == "logistic"
    output = panel.profile.text.value
    assert "The label is the column &#x27;bought&#x27;" in output
    assert "NAME in the field <em>Label</em>" in output


def test_sets_that_read_no_file_have_no_profile(here, opened, counted):
    panel = opened(lab.study(dataset="uniform"))
    panel.step()
    assert (panel.profiling.status, counted) == ("", [])
    assert panel.profile.box.layout.display == "none"


def test_what_was_counted_of_a_former_choice_is_dropped(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    panel.state.choose(kind="numbers")
    panel.profiling.poll()
    assert (panel.profiling.status, panel.profiling.profile) == ("waiting", {})
    wait_until(panel, "done")
    assert [one.get("kind") for one in counted] == [None, "numbers"]
    panel.state.choose(dataset="uniform")
    panel.step()
    assert panel.profiling.status == ""


def test_a_file_that_changes_is_counted_again(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    wait_until(panel, "done")
    news.write_text(news.read_text() + "1 1:1\n")
    panel.step()
    wait_until(panel, "done")
    assert panel.profiling.profile["rows"] == 31
    assert len(counted) == 2


def test_a_large_file_is_not_counted_and_what_to_type_is_said(here, opened, news, counted, monkeypatch):
    monkeypatch.setattr(panel_module, "BYTES_UNASKED", 10)
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    assert (panel.profiling.status, counted) == ("waiting", [])
    assert f"The file has {news.stat().st_size} B: wb.profile(PATH)" in text(panel)


def test_nothing_is_counted_beside_a_sweep(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    write_run(panel.state.folder, made.sweep(), "running")
    panel.step()
    panel.step()
    assert (panel.profiling.status, counted) == ("waiting", [])
    assert "once the run is over" in text(panel)
    write_run(panel.state.folder, made.sweep(), "finished")
    wait_until(panel, "done")
    assert len(counted) == 1


def test_a_matrix_is_profiled_without_labels_and_with_them(here):
    scipy.sparse.save_npz(here / "x.npz", scipy.sparse.eye_array(3, format="csr"))
    study = lab.study(dataset="uniform")
    study.choose(dataset="npz", path=str(here / "x.npz"))
    assert asked_of(study.choices).parameters.keys() == {"path"}
    np.save(here / "y.npy", np.arange(3))
    study.choose(labels=str(here / "y.npy"), reading="classes=3, kind=x")
    assert asked_of(study.choices).parameters.keys() == {"path", "labels", "classes", "kind"}
    study.choose(reading="clases=3")
    assert asked_of(study.choices) is None


def test_an_empty_folder_is_refused(here):
    (here / "mails").mkdir()
    choices = lab.study(dataset="uniform").choices | {"dataset": "svmlight", "path": str(here / "mails")}
    assert "is an empty folder" in suited.find_file_errors(choices)["path"]
    choices["dataset"] = "text"
    assert "is an empty folder" in suited.find_file_errors(choices)["path"]
    (here / "mails" / "ham").mkdir()
    (here / "mails" / "ham" / "a.txt").write_text("text")
    assert suited.find_file_errors(choices) == {}
    assert asked_of(choices).bytes_ == 4
