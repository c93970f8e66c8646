"""The profile of the user's file in the panel: counted by a process of its own, shown first, never beside a sweep."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse

from tests.support import rows as made
from tests.support.clocks import until
from tests.support.panel_runs import text, write_run
from workbench.panels import lab
from workbench.panels import panel as panel_module
from workbench.panels.panel import asked_of
from workbench.study import suited


@pytest.fixture
def news(here):
    path = here / "news.svm"
    path.write_text("".join(f"{row % 2} {1 + row}:1 40:2\n" for row in range(30)))
    return path


class Counted:
    """Counting that goes on until it is stopped."""

    started: ClassVar[list] = []

    def __init__(self, dataset, parameters):
        self.asked, self.stopped = (dataset, dict(parameters)), 0
        Counted.started.append(self)

    def poll(self):
        return None

    def stop(self):
        self.stopped += 1


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(Counted, "started", [])
    monkeypatch.setattr(panel_module, "Counting", Counted)
    return Counted


def wait_until(panel, status):
    def is_there() -> bool:
        panel.step()
        return panel.profiling.status in (status, "failed")

    until(is_there)
    assert panel.profiling.status == status, panel.profiling.problem


def test_a_chosen_file_is_counted_beside_the_panel_and_shown_first(here, opened, news):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    assert panel.profile.box.layout.display == "none"
    panel.step()
    assert "Reading the file" in text(panel)
    wait_until(panel, "done")
    panel.step()
    assert "5 % of the elements are stored" in text(panel)
    assert "30 rows x 40 columns" in panel.profile.text.value
    assert panel.profile.charts.value.count("<img") == 2
    assert "9 never used" in panel.profile.numbers.value
    assert panel.form.fields["model"].value == "logistic"
    assert panel.form.fields["densities"].value == "0.03, natural, 0.1, 0.3"
    assert "Model logistic and Densities 0.03, natural, 0.1, 0.3 follow the profile." in text(panel)
    shown = panel.root.children
    assert shown.index(panel.profile.box) == shown.index(panel.form.box) + 1


def test_a_width_that_was_typed_keeps_a_model_that_has_it(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news), widths=[4]))
    panel.state.fill({"density": 0.05, "labels": {"kind": "classes", "classes": 2}})
    assert panel.form.fields["model"].value == "softmax"
    panel.state.choose(widths="natural", densities="natural")
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
    assert "npz needs the field <em>Labels file</em>" in panel.profile.text.value
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
    assert (panel.profiling.status, counted.started) == ("", [])
    assert panel.profile.box.layout.display == "none"


def test_another_choice_ends_the_counting_of_the_one_before(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    panel.state.choose(kind="numbers")
    panel.step()
    assert [one.asked[1].get("kind") for one in counted.started] == [None, "numbers"]
    assert [one.stopped > 0 for one in counted.started] == [True, False]
    panel.state.choose(dataset="uniform")
    panel.step()
    assert panel.profiling.status == ""
    assert counted.started[1].stopped


def test_a_file_that_changes_is_counted_again(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    news.write_text(news.read_text() + "1 1:1\n")
    panel.step()
    assert len(counted.started) == 2


def test_a_large_file_waits_for_a_click(here, opened, news, counted, monkeypatch):
    monkeypatch.setattr(panel_module, "BYTES_UNASKED", 10)
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    assert (panel.profiling.status, counted.started) == ("waiting", [])
    assert panel.profile.button.layout.display is None
    assert f"Profile reads {news.stat().st_size} B" in text(panel)
    panel.profile.button.click()
    assert (panel.profiling.status, len(counted.started)) == ("counting", 1)
    assert panel.profile.button.layout.display == "none"


def test_nothing_is_counted_beside_a_sweep(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    write_run(panel.state.folder, made.sweep(), "running")
    panel.step()
    assert counted.started[0].stopped
    assert panel.profiling.status == "waiting"
    assert panel.profile.button.disabled
    write_run(panel.state.folder, made.sweep(), "finished")
    panel.step()
    assert len(counted.started) == 2


def test_closing_the_panel_ends_the_counting(here, opened, news, counted):
    panel = opened(lab.study(dataset="svmlight", path=str(news)))
    panel.step()
    panel.close()
    assert counted.started[0].stopped


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
