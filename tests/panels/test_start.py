"""The first panel: a button for each answer, its view made when it is asked for, and the same answers for cells."""

import html
import json
import re
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import ipywidgets as widgets
import pytest

from tests.support import rows as made
from tests.support.clocks import SECONDS
from tests.support.panel_runs import tree, write_run
from workbench import option_text, plots, store
from workbench.analysis.answer_text import AnswerText
from workbench.panels import lab, tabs
from workbench.panels.lab import Start
from workbench.panels.panel import Panel
from workbench.panels.tabs import advise, compare, inspect
from workbench.sweeps import run_folder, run_notes
from workbench.sweeps.spec import SpecError, dump_spec


def pressed(start: Start, name: str) -> str:
    """All that is shown once a button is pressed."""
    start.buttons.value = name
    start.paint()
    return "\n".join(str(getattr(widget, "value", "")) for widget in tree(start.root)[2:])


@pytest.fixture
def start(here):
    made_here = []

    def make(answer: str = "inspect", **asked) -> Start:
        made_here.append(Start(tabs.RequestState(**asked), answer))
        return made_here[-1]

    yield make
    for one in made_here:
        one.close()


@pytest.fixture
def run(here):
    """A finished run."""
    study = lab.study(dataset="uniform", density=[0.01, 0.1])
    write_run(study.folder, made.rich(), "finished")
    (study.folder / run_folder.SPEC).write_text(dump_spec(study.spec()))
    return str(study.folder)


def test_there_is_a_button_for_each_answer_and_advice_comes_first(start):
    assert tabs.names() == ("advise", "sweep", "explore", "compare", "inspect")
    shown = start("explore")
    assert [name for _, name in shown.buttons.options] == list(tabs.names())
    for name in tabs.names():
        assert tabs.get(name).meaning in pressed(shown, name)
    assert set(shown.views) == set(tabs.names())


def states() -> dict[str, dict]:
    """The state of every open widget, as a page that is loaded anew asks for it."""
    return widgets.Widget.get_manager_state()["state"]


@pytest.mark.parametrize("answer", [None, "explore"])
def test_a_closed_panel_leaves_no_widget_that_a_page_would_ask_for(run, answer):
    """One box with closed children made ipywidgets fail to answer: the next panel stayed at "Loading widget..."."""
    before = set(states())
    if answer is None:
        shown = Panel(lab.study(dataset="uniform", density=[0.01, 0.1]))
        shown.step()
        for name in plots.names()[:3]:
            shown.results.chart.picker.value = name
    else:
        shown = Start(tabs.RequestState(run=run, other_run=run), answer)
        for name in tabs.names():
            pressed(shown, name)
        shown.views["explore"]._open(run)
    assert set(states()) > before
    shown.close()
    assert set(states()) == before


def test_a_page_that_is_loaded_anew_gets_no_defaults_and_small_charts(run):
    """A panel sent 2.3 MB: forty empty fields for each layout, and charts with an outline for each letter."""
    before = set(states())
    panel = Panel(lab.study(dataset="uniform", density=[0.01, 0.1]))
    panel.step()
    assert 'src="data:image/svg+xml' in panel.results.chart.image.value
    shown = Start(tabs.RequestState(run=run, other_run=run), "advise")
    try:
        sizes = []
        for name in tabs.names():
            pressed(shown, name)
            own = {key: state for key, state in states().items() if key not in before}
            sizes.append(len(json.dumps(own)))
        layouts = [one["state"] for one in own.values() if one["model_name"] == "LayoutModel"]
        assert len(layouts) > 200
        assert max(map(len, layouts)) < 8
        assert sizes[0] < 250_000
        assert sizes[-1] < 600_000, "two panels, all views opened"
    finally:
        panel.close()
        shown.close()


def test_a_view_is_made_once_and_kept(start):
    shown = start("inspect")
    view = shown.view
    shown.buttons.value = "explore"
    assert shown.view is not view
    shown.buttons.value = "inspect"
    assert shown.view is view


def test_inspect_shows_the_format_and_bytes_of_each_array(start):
    shown = start("inspect", source="uniform")
    shown.view.button.click()
    text = shown.view.answer.value
    assert "uniform, softmax: a batch of 256 rows x 16,384 columns, 1 % stored" in text
    assert "row_sparse [16384, 10] float32" in text
    assert "Nothing is made dense on the way." in text
    assert re.search(
        "csr .256, 16384. float32</td><td[^>]*></td><td[^>]*>≈ 3[0-9]{2},[0-9]{3}<", text
    )  # as it is filled


def test_what_goes_wrong_is_told_and_the_panel_lives(start, monkeypatch):
    shown = start("inspect", source="none.svm")
    shown.view.button.click()
    assert "Inspecting failed: There is no file and no data set" in shown.trouble.value
    assert "Traceback" not in shown.trouble.value, "the message says what to do"
    shown.asked.source = "uniform"
    shown.view.button.click()
    assert shown.trouble.value == "", "it is over with what goes right"
    monkeypatch.setattr(inspect, "inspected", lambda *_: 1 / 0)
    shown.view.button.click()
    assert "Traceback" in shown.trouble.value
    shown.paint()
    assert "Traceback" in shown.trouble.value, "nobody asked for anything since"
    shown.buttons.value = "explore"
    assert shown.trouble.value == ""


def test_an_error_names_the_field_that_solves_it_and_the_field_does(start, here):
    """Data of which no column looks like labels; the message of the reader is in the words of the command line."""
    (here / "visits.csv").write_text("a,b,c\n" + "".join(f"{row},{row * 7 % 30},{row % 5}\n" for row in range(30)))
    shown = start("inspect", source="visits.csv", label="wrong")
    shown.view.button.click()
    assert "Inspecting failed" in shown.trouble.value
    assert "<em>Label</em>" in shown.trouble.value
    assert "--" not in shown.trouble.value
    shown.asked.label = "c"
    shown.view.button.click()
    assert shown.trouble.value == ""
    assert "visits.csv" in shown.view.answer.value


def test_the_cell_run_again_shows_the_same_panel_and_another_closes_it(here):
    first = lab.start("inspect", True, source="uniform")
    assert lab.start("inspect", True, source="uniform") is first
    assert first.watcher.alive
    other = lab.start("inspect", True, source="stdlib")
    assert other is not first
    assert not first.watcher.alive
    other.close()


def test_the_sweep_follows_what_another_answer_was_asked_about(start, here):
    (here / "news.svm").write_text("".join(f"{row % 2} {1 + row}:1 40:2\n" for row in range(30)))
    shown = start("sweep", source="uniform")
    assert shown.view.panel.state.choices["dataset"] == "uniform"
    shown.asked.source, shown.asked.model = "news.svm", "logistic"
    pressed(shown, "sweep")
    choices = shown.view.panel.state.choices
    assert (choices["dataset"], choices["path"], choices["model"]) == ("svmlight", "news.svm", "logistic")
    shown.asked.source = "none.svm"
    shown.watcher.step()
    assert "There is no file and no data set &#x27;none.svm&#x27;" in shown.trouble.value
    assert shown.view.panel.state.choices["path"] == "news.svm"


def test_the_sweep_that_was_started_last_is_there_again_after_a_restart(start, here, monkeypatch):
    (here / "news.svm").write_text("".join(f"{row % 2} {1 + row}:1 40:2\n" for row in range(30)))
    monkeypatch.setattr(
        run_folder, "start_run", lambda spec, folder: write_run(folder, made.sweep(), "running", name=spec.name)
    )
    shown = start("sweep", source="news.svm")
    shown.view.panel.run.click()
    again = start("sweep").view.panel.state
    assert (again.choices["path"], again.alive, again.folder) == ("news.svm", True, here / "runs" / "news")
    assert start("sweep", source="uniform").view.panel.state.choices["dataset"] == "uniform"
    kept = again.folder / "choices.json"
    kept.write_text(kept.read_text().replace('"density"', '"of_another_version"'))
    assert start("sweep").view.panel.state.choices["dataset"] == "stdlib"


def test_advice_beside_a_sweep_is_refused_and_told(start, here):
    write_run(here / "runs" / "another", [], "running", name="another")
    shown = start("advise", source="uniform")
    shown.view.button.click()
    assert "Advising failed: another is running" in shown.trouble.value
    assert not shown.view.button.disabled


def test_explore_shows_any_run_with_its_verdict_and_rows(start, run):
    shown = start("explore")
    assert "Go sparse" in pressed(shown, "explore")
    shown.view.explored.results.view.value = "Latest trials"
    assert "Latest trials: 12 of" in pressed(shown, "explore")
    answer = lab.answered("explore", run=run)
    assert "Go sparse" in answer.text


def test_explore_filters_by_its_lists(start, run):
    shown = start("explore", run=run)
    view = shown.view.explored
    view.filters["format"].value = "csc"
    shown.paint()
    assert view.state.chosen == {"format": "csc"}
    assert "Sparse format csc; dense stays." in view.left.value
    assert "CSR" not in view.results.chart.numbers
    assert shown.trouble.value == ""


def test_explore_opens_a_file_of_rows_that_is_named(start, here):
    for row in made.sweep():
        store.append(here / "rows.jsonl", row)
    shown = start("explore")
    shown.view.file.value = "rows.jsonl"
    assert "All 48 records of rows.jsonl." in pressed(shown, "explore")
    assert shown.view.picker.value == "rows.jsonl"
    shown.view.file.value = ""
    assert "All 48 records of rows.jsonl." in pressed(shown, "explore"), "it stays"
    shown.view.file.value = "none.jsonl"
    assert "is not a run folder" in shown.trouble.value


def test_without_a_run_explore_and_compare_say_so(start):
    assert "There is no run in this folder yet." in pressed(start("explore"), "explore")
    assert "There is no run in this folder yet." in lab.answered("compare").text
    shown = start("compare")
    assert shown.view.button.disabled


def test_compare_tells_what_changed_between_two_runs(start, run):
    shown = start("compare", run=run, other_run=run)
    shown.view.second.widget.value = shown.view.first.value
    shown.view.button.click()
    expected = compare.of_runs(run, run)
    assert shown.view.answer.value == expected.html
    assert "compared" in expected.text or "Nothing is slower." in expected.text


def test_runs_are_listed_with_notes_and_tags_in_an_order_and_drawn_over_each_other(start, run):
    other = Path(run).with_name("another")
    shutil.copytree(run, other)
    shown = start("compare", run=run, other_run=str(other))
    view = shown.view.list
    view.run.widget.value = str(other) if str(other) in view.run.known else view.run.known[0]
    view.note.value, view.tags.value = "with <more> rows", "b, a,"
    view.save.click()
    assert "with &lt;more&gt; rows" in view.table.value
    assert run_notes.read(Path(view.run.value)) == run_notes.Note("with <more> rows", ("a", "b"))
    names = {one: view.table.value.index(f">{one}<") for one in ("another", Path(run).name)}
    view.order.value = "name"
    assert sorted(names) == sorted(names, key=lambda one: view.table.value.index(f">{one}<"))
    shown.view.button.click()
    assert shown.trouble.value == ""
    assert "data:image/svg+xml" in shown.view.chart.image.value
    (Path(view.run.value) / run_notes.FILE).write_text("{")
    assert run_notes.read(Path(view.run.value)) == run_notes.Note()


def test_advice_is_measured_on_a_thread_and_shown_with_its_command_chart_and_files(start, run, monkeypatch):
    guess = f"The label is the column 'a' (its name). Another one: {option_text.typed(label='NAME')}."
    command = "workbench train --dataset uniform"
    settings = {"dataset": "uniform", "model": "softmax"}
    answer = SimpleNamespace(text=AnswerText("Go <sparse>"), command=command, spent="3 trials", guesses=(guess,),
                             settings=settings, folder=Path(run))  # fmt: skip
    asked = []
    monkeypatch.setattr(advise, "advise", lambda settings, seconds, **_: asked.append((settings, seconds)) or answer)
    shown = start("advise", source="uniform", model="softmax", seconds=12)
    shown.view.button.click()
    shown.view.thread.join(SECONDS)
    assert asked == [({"dataset": "uniform", "model": "softmax"}, 12.0)]
    assert "Go &lt;sparse&gt;.</strong>" in shown.view.answer.value
    assert "<code>workbench train --dataset uniform</code>" in shown.view.answer.value
    assert "Another one: NAME in the field <em>Label</em>." in shown.view.answer.value
    python = 'advice = wb.advise("uniform", model="softmax"); model = advice.fit()'
    assert html.escape(python) in shown.view.answer.value
    assert not shown.view.button.disabled
    assert "data:image/svg+xml" in shown.view.chart.image.value
    shown.view.export.click()
    assert all(Path(run, name).is_file() and name in shown.view.exported.value for name in ("report.html", "rows.csv"))


def test_while_advice_is_measured_the_panel_tells_what_happens_and_hears_stop(start, monkeypatch):
    is_at_work, may_end = threading.Event(), threading.Event()

    def measured(settings, seconds, follow, say):
        say("So far: Go sparse. Stopping now keeps this answer.")
        shown.view.now = "racing: 3 of 12 s"
        is_at_work.set()
        may_end.wait(SECONDS)
        raise SpecError("enough")

    monkeypatch.setattr(advise, "advise", measured)
    shown = start("advise", source="uniform", seconds=12)
    try:
        shown.view.button.click()
        assert is_at_work.wait(SECONDS)
        for step in (shown.watcher.step, shown.view.stop.click):
            user = threading.Thread(target=step)
            user.start()
            user.join(SECONDS)
            assert not user.is_alive()
        assert "racing: 3 of 12 s" in shown.view.line.value
        assert "So far: Go sparse." in shown.view.answer.value
        assert shown.view.is_stopping
    finally:
        may_end.set()
    shown.view.thread.join(SECONDS)
    assert "Advising failed: enough" in shown.trouble.value


def test_seconds_that_are_no_number_are_told(start):
    shown = start("advise", source="uniform")
    shown.view.seconds.value = "soon"
    shown.view.button.click()
    assert "Advising failed: <em>Budget (s)</em> = &#x27;soon&#x27;: expected a number" in shown.trouble.value
    assert not shown.view.button.disabled


def test_answers_that_there_are_not_list_those_that_there_are(here):
    with pytest.raises(tabs.AnswerError, match="inspect"):
        lab.answered("guess")
    with pytest.raises(SpecError, match=r"sauce.*source"):
        lab.answered("inspect", sauce="uniform")


def test_without_a_front_end_the_cell_answers(here, capsys):
    assert lab.start("inspect", False, source="uniform") is None
    assert "the next cell answers" in capsys.readouterr().out
    assert "Nothing is made dense" in lab.answered("inspect", None, source="uniform").text
    assert inspect.inspected(tabs.RequestState(source="uniform")).html == lab.answered("inspect", source="uniform").html


def test_inspect_takes_the_model_that_suits_ratings_and_leaves_nothing_of_a_reading_that_failed(start, here):
    lines = "".join(f"{row % 7},{row % 5},{1 + row % 3}\n" for row in range(35))
    (here / "plays.csv").write_text(f"user,item,rating\n{lines}")
    shown = start("inspect", source="plays.csv")
    shown.view.button.click()
    assert shown.trouble.value == ""
    assert "plays.csv, matrix_factorization: a batch of" in shown.view.answer.value
    shown.asked.source = "none.csv"
    shown.view.button.click()
    assert shown.trouble.value
    assert shown.view.answer.value == ""
