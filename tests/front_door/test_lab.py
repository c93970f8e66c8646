"""`wb.lab` in a notebook: the panel that begins with the settings of a sweep, and the panel of questions."""

from types import SimpleNamespace

import numpy as np
import pytest

import workbench as wb

CELLS = ["rows: int = 3", "import workbench as wb", "# Parameters\nrwos = 4\n"]


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """An empty folder, in which this process is taken for the kernel of a notebook."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("workbench.api.panel.in_notebook", lambda: True)
    handle = SimpleNamespace(update=lambda page: None)
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: handle)
    return tmp_path


def test_the_panel_begins_with_the_settings_of_a_sweep_and_has_its_result(notebook):
    shown = wb.lab("uniform", density=[0.01, 0.1], width=4, format=["csr", "dense"], rounds=2, show_widgets=True)
    try:
        choices = shown.panel.state.choices
        assert (choices["dataset"], choices["density"], choices["width"]) == ("uniform", "0.01, 0.1", "4")
        assert (choices["format"], choices["rounds"]) == (("csr",), "2")
        assert repr(shown) == "The panel is shown above."
        assert isinstance(shown.result, wb.Result)
        assert shown.result.folder == notebook / "runs" / "uniform"
        assert "Nothing was measured yet" in str(shown.result.verdict)
        assert "Nothing was measured yet" in str(shown.result.break_evens)
    finally:
        shown.panel.close()


def test_the_run_of_the_panel_may_be_named_and_data_may_be_in_memory(notebook):
    x, y = np.eye(12)[np.arange(60) % 12], np.arange(60) % 2
    shown = wb.lab(x, y, run="runs/mine", show_widgets=True)
    try:
        assert shown.result.folder == notebook / "runs" / "mine"
        assert shown.panel.state.choices["path"].endswith("X.sparse")
    finally:
        shown.panel.close()


def test_widgets_asked_for_outside_of_a_notebook_are_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shown = wb.lab("uniform", show_widgets=True)
    try:
        assert "No run yet" in capsys.readouterr().out
    finally:
        shown.panel.close()


def test_labels_without_a_matrix_are_refused():
    with pytest.raises(wb.DataError, match=r"y has labels, and X is None.*\nType wb.lab\(X, y\)"):
        wb.lab(None, [0, 1])


def test_without_a_person_the_panel_says_what_to_type_and_a_question_is_answered(notebook, capsys):
    assert wb.lab("uniform", density=0.1) is None
    assert "Type wb.sweep(X, y) to measure the same in a cell." in capsys.readouterr().out
    answer = wb.lab("uniform", question="inspect")
    assert "a batch of 256 rows" in answer.text
    x, y = np.eye(12)[np.arange(60) % 12], np.arange(60) % 2
    assert "12 columns" in wb.lab(x, y, question="inspect").text


def test_the_panel_of_questions_opens_at_one_and_has_no_run(notebook):
    shown = wb.lab("uniform", question="inspect", budget=30, show_widgets=True)
    try:
        assert shown.panel.buttons.value == "inspect"
        assert shown.panel.asked.seconds == 30.0
        with pytest.raises(ValueError, match=r"questions has no run.\nType wb.runs\(\)"):
            shown.result  # noqa: B018
    finally:
        shown.panel.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"densty": 0.1, "show_widgets": True}, "Unknown setting 'densty'. Did you mean 'density'"),
        ({"question": "advice"}, "advise"),
        ({"question": "advise", "modle": "softmax"}, "Did you mean 'model'"),
        ({"question": "advise", "seconds": 8}, "Did you mean 'budget'"),
    ],
)
def test_unknown_settings_and_questions_are_refused(notebook, given, message):
    with pytest.raises((ValueError, LookupError), match=message):
        wb.lab("uniform", **given)


def test_a_parameter_of_papermill_that_no_cell_has_is_refused(notebook, monkeypatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(user_ns={"In": CELLS}, kernel=None))
    with pytest.raises(ValueError, match=r"Unknown parameter 'rwos'\. Did you mean 'rows'"):
        wb.lab("uniform", question="inspect")
