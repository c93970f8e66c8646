"""The file chooser: lists folders and readable files, opens folders, and writes what is chosen into its text field."""

import ipywidgets as widgets
import pytest

from workbench.panels import form, lab
from workbench.panels.form import PARENT, FileChooser
from workbench.panels.guard import Guard


def refuse(error, what):
    raise AssertionError(what) from error


@pytest.fixture
def chooser(here):
    """A chooser in a folder with a file, a hidden file and a folder that holds a file."""
    (here / "b.svm").write_text("1 1:1\n")
    (here / ".hidden").write_text("")
    (here / "data").mkdir()
    (here / "data" / "a.csv").write_text("x\n1\n")
    return FileChooser(widgets.Text(description="Data"), Guard(refuse), takes_folder=True)


def labels(chooser):
    return [label for label, _ in chooser.list.options]


def test_a_file_in_a_folder_is_chosen_by_its_button(chooser):
    assert chooser.shown.layout.display == "none"
    chooser.browse.value = True
    assert labels(chooser) == [PARENT, "data/", "b.svm   6 B"]
    chooser.list.value = "data"
    assert labels(chooser) == [PARENT, "a.csv   4 B"]
    assert chooser.list.value is None, "the same name can be pressed in the next folder"
    chooser.list.value = "a.csv"
    assert (chooser.text.value, chooser.browse.value) == ("data/a.csv", False)


def test_a_folder_is_taken_and_the_folder_above_is_opened(chooser):
    chooser.text.value = "data/a.csv"
    chooser.browse.value = True
    assert labels(chooser) == [PARENT, "a.csv   4 B"]
    chooser.take.click()
    assert chooser.text.value == "data"
    chooser.browse.value = True
    chooser.list.value = ".."
    assert "data/" in labels(chooser)


def test_a_wrong_path_is_told_with_the_nearest_file_and_a_data_set_is_none(chooser):
    chooser.text.value = "data/a.cvs"
    assert "Did you mean &#x27;a.csv&#x27;?" in chooser.wrong.value
    for right in ("data/a.csv", "uniform", ""):
        chooser.text.value = right
        assert chooser.wrong.value == ""


def test_the_list_begins_where_data_are(here, chooser):
    chooser.browse.value = True
    assert chooser.folder == here
    chooser.browse.value = False
    (here / "b.svm").unlink()
    chooser.browse.value = True
    assert chooser.folder == here / "data"


def test_entries_beyond_the_most_are_counted(here, monkeypatch):
    monkeypatch.setattr(form, "MOST", 2)
    for name in "abc":
        (here / name).touch()
    options, left_out = form.entries(here)
    assert ([name for _, name in options], left_out) == (["..", "a", "b"], 1)


def test_the_form_has_a_label_field_for_readers_of_named_columns(here, opened):
    (here / "t.csv").write_text("a,b\n" + "".join(f"{row},{row % 2}\n" for row in range(20)))
    panel = opened(lab.study(dataset="uniform"))
    assert panel.form.label.layout.display == "none"
    panel.state.choose(dataset="table", path="t.csv", reading="label=a")
    assert (panel.form.label.layout.display, panel.form.label.value) == (None, "a")
    panel.form.label.value = "b"
    assert panel.state.choices["reading"] == "label=b"
    panel.form.label.value = ""
    assert panel.state.choices["reading"] == ""
