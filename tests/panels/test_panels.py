"""The panel without a browser: Run, Stop, a restart, export, and the notebook without a panel. Buttons are clicked."""

import os
import shutil

import pytest

from tests.support import rows as made
from tests.support.panel_runs import text, write_run
from workbench import store
from workbench.panels import lab, tabs
from workbench.panels.guard import Guard
from workbench.sweeps import run_folder


def test_run_starts_the_sweep_of_the_choices(here, opened, monkeypatch):
    started = []

    def start(spec, folder):
        started.append((spec, folder))
        write_run(folder, [], "starting")

    monkeypatch.setattr(run_folder, "start_run", start)
    panel = opened(lab.study())
    panel.form.fields["width"].inputs[0].value = "4"
    panel.run.click()
    assert panel.state.trouble is None
    [(spec, folder)] = started
    assert spec == panel.state.spec()
    assert spec.axes["width"] == (4,)
    assert folder == here / "runs" / "can_sparse_reduce_training_time"
    assert (panel.run.disabled, panel.stop.disabled) == (True, False)
    assert "Starting." in text(panel)


def test_stop_answers_at_once(here, opened, no_charts):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    panel.step()
    panel.stop.click()
    assert (study.folder / "stop").exists()
    assert "Stopping." in text(panel)
    assert panel.stop.disabled
    write_run(study.folder, made.sweep(), "stopped")
    panel.step()
    assert "Stopped. Resume does the rest." in text(panel)
    assert panel.run.description == "Resume"
    assert (panel.run.disabled, panel.stop.disabled) == (False, True)


def test_a_second_run_in_the_folder_is_refused_and_told(here, opened, monkeypatch):
    def start(spec, folder):
        raise run_folder.RunError("in use by another sweep")

    monkeypatch.setattr(run_folder, "start_run", start)
    panel = opened(lab.study())
    panel.run.click()
    assert "Starting failed: in use by another sweep" in text(panel)
    assert "Traceback" not in text(panel), "the message says what to do"


def test_a_new_panel_on_the_same_folder_shows_the_same(here, opened):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep(), current="x")
    panel.step()
    again = opened(lab.study())
    assert again.state.folder == study.folder
    assert again.state.alive
    assert again.state.rows == study.rows
    assert [line.value for line in again.live.lines.values()] == [line.value for line in panel.live.lines.values()]
    assert again.results.page.value == panel.results.page.value
    assert "img" in again.results.chart.image.value


def test_choices_changed_in_the_panel_are_found_again(here, opened, no_charts, monkeypatch):
    monkeypatch.setattr(run_folder, "start_run", lambda spec, folder: write_run(folder, [], "starting"))
    panel = opened(lab.study())
    panel.form.fields["width"].inputs[0].value = "8"
    panel.run.click()
    assert lab.study().choices["width"] == "8"
    assert opened(lab.study()).form.fields["width"].value == "8"
    assert lab.study(width=64).choices["width"] == "64"  # whoever edits the parameters means them


def test_the_newest_run_of_the_name_is_found_in_whatever_folder(here):
    write_run(here / "runs" / "elsewhere", made.sweep(), "finished")
    assert lab.study().folder == here / "runs" / "elsewhere"
    assert lab.study(run_dir="runs/own").folder == here / "runs" / "own"
    write_run(here / "runs" / "empty", [], "failed")
    assert lab.study().folder == here / "runs" / "elsewhere"


def test_export_writes_report_and_rows_into_the_run_folder(here, opened):
    study = lab.study()
    panel = opened(study)
    assert panel.export.disabled
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    panel.export.click()
    assert panel.state.trouble is None
    report = (study.folder / "report.html").read_text()
    assert "<svg" in report
    assert "Go sparse" in report
    assert len((study.folder / "rows.csv").read_text().splitlines()) == 49
    assert "<code>runs/can_sparse_reduce_training_time/report.html</code>" in text(panel)


def test_exceptions_of_a_button_are_shown(here, opened, no_charts, monkeypatch):
    study = lab.study()
    write_run(study.folder, made.sweep(), "finished")
    panel = opened(study)
    panel.step()
    study.folder.joinpath("report.html").mkdir()
    panel.export.click()
    assert "Exporting failed:" in text(panel)


def test_the_still_has_the_last_state_and_follows_the_end_of_a_run(here, opened):
    study, stills = lab.study(), []
    panel = opened(study)
    panel.keep_snapshot(stills.append)
    write_run(study.folder, made.sweep()[:4])
    panel.step()
    assert not stills
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    panel.step()
    [still] = stills
    assert "Finished." in still.html
    assert "data:image/svg+xml" in still.html
    assert "48 of 48" in still.html
    bundle = panel._repr_mimebundle_()
    assert {"text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(bundle)


def test_without_a_front_end_no_panel_is_made(here, capsys):
    assert not lab.has_front_end()
    assert lab.show(lab.study()) is None
    assert "No front end" in capsys.readouterr().out


def test_run_without_a_panel_starts_waits_and_tells(here, monkeypatch):
    messages = []
    monkeypatch.setattr(run_folder, "start_run", lambda spec, folder: write_run(folder, made.sweep(), "finished"))
    study = lab.study(threads=1)
    lab.run(study, tell=messages.append)
    assert len(study.rows) == 48
    assert messages[0].startswith("90 to 540 trials; Run takes ")
    assert messages[-1] == "Finished: 48 of 48 trials."


def test_run_with_a_panel_leaves_it_to_the_user(here, opened, monkeypatch):
    monkeypatch.setattr(run_folder, "start_run", lambda *_: pytest.fail("it started"))
    messages = []
    study = lab.study()
    lab.run(study, opened(study), tell=messages.append)
    assert "Press Run" in messages[0]


def test_results_are_static_and_say_so_when_there_are_none(here):
    study = lab.study()
    assert "Nothing was measured yet" in lab.verdict(study).text
    write_run(study.folder, made.sweep(), "finished")
    bundle = lab.verdict(study)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "Nothing was measured yet" not in bundle["text/html"]


@pytest.mark.parametrize("action", ["stop", "export"])
def test_a_run_folder_that_is_gone_is_told_in_a_line(here, action):
    study = lab.study()
    write_run(study.folder, made.sweep())
    shutil.rmtree(study.folder)
    getattr(study, action)()
    assert study.trouble.summary.endswith("is gone: press Run to measure again.")
    assert not study.trouble.details


@pytest.mark.parametrize("line", [b"\xff\xfe\n", b"[]\n"])
def test_the_panel_of_a_run_with_a_damaged_line_opens_and_says_what_to_do(here, opened, line):
    folder = here / "runs" / lab.NAME
    write_run(folder, made.sweep()[:4], "finished")
    with open(folder / store.FILE, "r+b") as file:
        rows = file.read()
        file.seek(0)
        file.write(line + rows)
    panel = opened(lab.study())
    panel.step()
    assert "line 1 is" in text(panel)
    assert "or remove that line." in text(panel)
    assert "Traceback" not in text(panel)


def view_of(answer):
    """The view of an answer; what goes wrong in it fails the test."""
    return tabs.get(answer).view(tabs.RequestState(), Guard(lambda error, what: pytest.fail(f"{what}: {error}")))


def test_runs_that_come_are_offered_and_what_was_chosen_stays(here):
    explore, compare = view_of("explore"), view_of("compare")
    for number, name in enumerate(("first", "second", "third")):
        write_run(here / "runs" / name, made.sweep(), "finished", name=name)
        os.utime(here / "runs" / name / "progress.json", (number, number))
        for view in (explore, compare):
            view.paint()
        assert compare.button.disabled == (number == 0)
    assert explore.explored.state.run == "runs/first", "the first that came was opened, and stays"
    assert explore.picker.known == ("runs/third", "runs/second", "runs/first")
    assert (compare.first.value, compare.second.value) == ("runs/first", "runs/second")
    assert compare.answer.value == ""
    newer = view_of("compare")
    assert (newer.first.value, newer.second.value) == ("runs/second", "runs/third"), "the older one is before"
