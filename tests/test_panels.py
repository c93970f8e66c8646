"""The panel without a browser: values set, buttons clicked, the watcher stepped by hand, run folders written here."""

import json
import time
from pathlib import Path

import ipywidgets as widgets
import pytest
import rows as made

from workbench import store
from workbench.panels import choices, lab, notebook, pages
from workbench.panels.panel import VIEWS, Panel
from workbench.panels.planned import SECONDS_OVERHEAD
from workbench.sweep import grid, progress

INPUTS = (widgets.Button, widgets.ToggleButton, widgets.ToggleButtons, widgets.Dropdown, widgets.Text, widgets.Checkbox)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder to be in: runs go to `runs` in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened():
    """Makes panels, and closes them."""
    panels = []

    def make(study: lab.LabState, **options) -> Panel:
        panels.append(Panel(study, **options))
        return panels[-1]

    yield make
    for panel in panels:
        panel.close()


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def write_run(folder: Path, rows: list[dict], state: str = "running", **known) -> None:
    """A run folder as a supervisor leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / store.FILE).unlink(missing_ok=True)
    for row in rows:
        store.append(folder / store.FILE, row)
    (folder / "plan.json").write_text(json.dumps({"keys": [row["key"] for row in rows], "dropped": {}}))
    found = progress.Progress("can_sparse_reduce_training_time", state, total=24, done=len(rows), **known)
    progress.write(folder, found)


def tree(widget: widgets.Widget) -> list[widgets.Widget]:
    return [widget, *(found for child in getattr(widget, "children", ()) for found in tree(child))]


def inputs(panel: Panel) -> list[widgets.Widget]:
    return [widget for widget in tree(panel.root) if isinstance(widget, INPUTS)]


def text(panel: Panel) -> str:
    """All that the panel says."""
    return "\n".join(widget.value for widget in tree(panel.root)[2:] if isinstance(widget, widgets.HTML))


# choices and the spec


def test_choices_become_exactly_the_configurations_that_were_asked_for(here):
    study = lab.study(formats=["csr", "coo"], engines=["ours", "vendor"], updates=["lazy", "standard"], widths=[4, 16])
    spec = study.spec()
    made_of = [tuple(contender.values()) for contender in spec.contenders]
    assert made_of == [
        ("csr", "ours", "row_sparse", "lazy"),
        ("csr", "ours", "dense", "standard"),
        ("csr", "vendor", "dense", "standard"),
        ("coo", "ours", "row_sparse", "lazy"),
        ("coo", "ours", "dense", "standard"),
        ("coo", "vendor", "dense", "standard"),
        ("dense", "dense", "dense", "standard"),
    ]
    assert study.planned.trials == len(grid.expand(spec).cells) * spec.measure.rounds == 7 * 5 * 2 * 2


@pytest.mark.parametrize("format", choices.sparse_formats())
def test_dense_is_measured_beside_every_format(here, format):
    contenders = lab.study(formats=[format]).spec().contenders
    assert choices.BASELINE in contenders
    assert {contender["format"] for contender in contenders} == {format, "dense"}


def test_numbers_are_read_as_people_write_them(here):
    assert lab.study(densities="1 %, 0.5; natural").spec().axes["density"] == (0.01, 0.5, None)
    assert lab.study(densities="[0.01, 0.1]").spec().axes["density"] == (0.01, 0.1)
    assert lab.study(features=None).spec().axes.get("features") is None
    assert lab.study(features="1_000").spec().axes["features"] == (1000,)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"densities": "0.1, lots"}, "Densities: 'lots' is not a number"),
        ({"densities": "2"}, "density = 2.0: Input should be less than or equal to 1"),
        ({"widths": "1.5"}, "Widths: '1.5' is not a whole number"),
        ({"rounds": "1, 2"}, "Rounds: '1, 2' is not one number"),
        ({"formats": []}, "Sparse formats: none is chosen; choose one or more of csr,"),
        ({"formats": "cscr"}, "unknown formats 'cscr'. Did you mean 'csr'? Known: csr,"),
        ({"dataset": "stdlb"}, "unknown dataset 'stdlb'. Did you mean 'stdlib'? Known: npz,"),
        ({"model": "logistic", "widths": 16}, "do not go together: The logistic model has width 1."),
        ({"model": "logistic", "widths": [1, 16]}, "do not go together for 20 of 40 cells: The logistic model"),
        ({"dataset": "npz"}, "The data set npz needs the axis path, a file of yours."),
        ({"formats": "row_sparse", "engines": "vendor"}, "there is no row_sparse with these kernels and updates"),
    ],
)
def test_wrong_choices_are_told_in_words_and_nothing_is_lost(here, opened, chosen, told):
    with pytest.raises(lab.ChoiceError) as error:
        lab.study(**chosen)
    assert told in str(error.value)
    panel = opened(lab.study())
    panel.state.choose(**chosen)
    assert pages.html.escape(told) in text(panel)
    assert panel.run.disabled
    assert panel.state.planned is None
    panel.state.choose(**lab.study().choices)
    assert told not in text(panel)
    assert not panel.run.disabled


def test_several_slips_are_told_at_once(here):
    with pytest.raises(lab.ChoiceError, match=r"(?s)Densities: 'a'.*\nWidths: 'b'"):
        lab.study(densities="a", widths="b")


def test_unknown_choices_are_refused(here):
    with pytest.raises(lab.ChoiceError, match=r"unknown choice 'densties'. Did you mean 'densities'"):
        lab.study(densties=[0.1])


def test_smoke_is_small_whatever_was_chosen(here):
    study = lab.study(smoke=True, densities=[0.001, 0.01, 0.1], widths=[4, 64], features=None, rows=10**6, rounds=5)
    spec = study.spec()
    assert study.name.endswith("-smoke")
    assert spec.axes["density"] == (0.001, 0.01)
    assert (spec.axes["rows"], spec.axes["features"], spec.axes["width"]) == ((2000,), (512,), (4,))
    assert (spec.measure.rounds, study.planned.trials) == (1, 8)


def test_the_plan_tells_trials_configurations_and_time(here, opened):
    panel = opened(lab.study(densities=[0.1], rounds=1, seconds=1, updates="lazy", engines="ours"))
    assert panel.state.planned.seconds == pytest.approx(2 * (1 + 0.1 + SECONDS_OVERHEAD))
    assert "2 trials; Run takes about 5 s." in text(panel)
    assert "CSR ours · row_sparse gradient · lazy; dense." in text(panel)


# fields


def test_a_changed_field_changes_the_state(here, opened):
    panel = opened(lab.study())
    fields = panel.form.fields
    fields["dataset"].inputs[0].value = "power_law"
    fields["densities"].inputs[0].value = "0.5"
    next(box for box in fields["formats"].inputs if box.description == "coo").value = True
    spec = panel.state.spec()
    assert spec.axes["dataset"] == ("power_law",)
    assert spec.axes["density"] == (0.5,)
    assert {contender["format"] for contender in spec.contenders} == {"csr", "coo", "dense"}


@pytest.mark.parametrize("choice", choices.CHOICES, ids=lambda choice: choice.name)
def test_every_choice_has_a_field_that_shows_the_state(here, opened, choice):
    panel = opened(lab.study())
    other = {"one": lambda: choice.options()[0], "many": choice.options}.get(choice.kind, lambda: "7")()
    panel.state.choose(**{choice.name: other})
    assert panel.form.fields[choice.name].value == other


def test_no_control_lacks_a_description_or_a_tooltip(here, opened):
    panel = opened(lab.study())
    assert len(inputs(panel)) > 20
    assert not [widget for widget in inputs(panel) if not widget.description or not widget.tooltip]
    assert not [widget for widget in inputs(panel) if getattr(widget, "icon", "")]


def test_fields_cannot_be_changed_while_a_run_is_alive(here, opened):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    panel.step()
    assert all(field.disabled for field in panel.form.fields["formats"].inputs)
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    assert not any(field.disabled for field in panel.form.fields["formats"].inputs)


# run and stop


def test_run_starts_the_sweep_of_the_choices(here, opened, monkeypatch):
    started = []

    def start(spec, folder):
        started.append((spec, folder))
        write_run(folder, [], "starting")

    monkeypatch.setattr(progress, "start", start)
    panel = opened(lab.study())
    panel.form.fields["widths"].inputs[0].value = "4"
    panel.run.click()
    assert panel.state.trouble is None
    [(spec, folder)] = started
    assert spec == panel.state.spec()
    assert spec.axes["width"] == (4,)
    assert folder == here / "runs" / "can_sparse_reduce_training_time"
    assert (panel.run.disabled, panel.stop.disabled) == (True, False)
    assert "Starting." in text(panel)


def test_stop_answers_at_once(here, opened):
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
    assert "Stopped. Run does the rest." in text(panel)
    assert (panel.run.disabled, panel.stop.disabled) == (False, True)


def test_a_second_run_in_the_folder_is_refused_and_told(here, opened, monkeypatch):
    def start(spec, folder):
        raise progress.RunError("in use by another sweep")

    monkeypatch.setattr(progress, "start", start)
    panel = opened(lab.study())
    panel.run.click()
    assert "Starting failed: in use by another sweep" in text(panel)
    assert "Traceback" in text(panel)


# watching


def test_rows_that_arrive_change_progress_chart_verdict_and_table(here, opened):
    study, clock = lab.study(), Clock()
    panel = opened(study, clock=clock)
    assert "No run yet." in text(panel)
    assert "The chart appears with the first trial." in text(panel)
    rows = made.sweep()
    write_run(study.folder, rows[:4], current="csr at 1 %", seconds_left=30.0)
    panel.step()
    first = panel.chart.image.value
    assert "data:image/svg+xml" in first
    assert (panel.live.bar.value, panel.live.bar.max) == (4, 24)
    assert "4 of 24 trials · ✓ 4 ok · about 30 s left" in text(panel)
    assert "Now: csr at 1 %" in text(panel)
    write_run(study.folder, rows)
    clock.now += 60
    panel.step()
    assert panel.chart.image.value != first
    assert "Latest trials: 12 of 12" in text(panel)
    assert "Sparse is faster" in panel.chart.image.value or "go sparse" in text(panel)


def test_charts_are_drawn_again_only_for_new_rows_and_not_all_the_time(here, opened, monkeypatch):
    drawn = []
    study, clock = lab.study(), Clock()
    panel = opened(study, clock=clock)
    draw = panel.chart.draw
    monkeypatch.setattr(panel.chart, "draw", lambda: (drawn.append(clock.now), draw()))
    rows = made.sweep()
    for count in range(1, 9):
        write_run(study.folder, rows[:count])
        panel.step()
        clock.now += 0.25
    assert len(drawn) == 2  # at most once a second
    for _ in range(8):
        clock.now += 1
        panel.step()
    assert len(drawn) == 3  # the last rows, and then nothing changes


def test_the_last_rows_are_drawn_at_once(here, opened):
    study, clock = lab.study(), Clock()
    panel = opened(study, clock=clock)
    rows = made.sweep()
    write_run(study.folder, rows[:6])
    panel.step()
    write_run(study.folder, rows, "finished")
    panel.step()
    assert not panel.chart.stale


def test_the_watcher_ends_with_the_panel(here, opened):
    panel = opened(lab.study())
    panel.watch()
    assert panel.watcher.alive
    panel.close()
    assert not panel.watcher.alive
    assert panel.root.comm is None


def test_the_rows_of_an_older_spec_are_not_shown_while_a_run_starts(here, opened):
    study = lab.study()
    write_run(study.folder, made.sweep(), "starting")
    panel = opened(study)
    panel.step()
    assert study.rows == ()


def test_failed_trials_and_a_failed_run_are_shown_with_their_reasons(here, opened):
    study = lab.study()
    rows = made.sweep()
    write_run(study.folder, [*rows[:3], made.unfit(rows[4])], "failed", message="The supervisor died <here>.")
    panel = opened(study)
    panel.step()
    assert "✗ Failed. The supervisor died &lt;here&gt;." in text(panel)
    assert "▣ memory" in text(panel)
    assert "needs 82 GB, the limit is 16 GB" in text(panel)
    assert not panel.run.disabled


def test_a_dead_supervisor_is_told(here, opened):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    path = study.folder / "progress.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"heartbeat": time.time() - 60}))
    panel.step()
    assert "The supervisor died" in text(panel)


def test_exceptions_of_the_watcher_are_shown(here, opened):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    (study.folder / "plan.json").write_text("no JSON <b>")
    panel.watcher.step()
    assert "Watching the run failed:" in text(panel)
    assert "<details><summary>Traceback</summary>" in text(panel)


# charts and tables


def test_a_charts_controls_become_widgets_and_the_choice_reaches_the_chart(here, opened):
    study = lab.study()
    write_run(study.folder, made.rich(), "finished")
    panel = opened(study)
    panel.step()
    for name in (option[1] for option in panel.chart.picker.options):
        panel.chart.picker.value = name
        assert panel.state.trouble is None
        for control in panel.chart.controls.values():
            assert control.description
            assert control.tooltip
            before = panel.chart.image.value
            control.value = control.options[-1]
            assert panel.state.trouble is None
            if len(control.options) > 1 and control.description in ("Group", "Density"):
                assert panel.chart.image.value != before


def test_a_chosen_control_stays_when_rows_arrive(here, opened):
    study, clock = lab.study(), Clock()
    rows = made.sweep()
    write_run(study.folder, rows[:6])
    panel = opened(study, clock=clock)
    panel.step()
    panel.chart.picker.value = "loss_seconds"
    panel.chart.controls["density"].value = "0.1 %"
    write_run(study.folder, rows)
    clock.now += 60
    panel.step()
    assert panel.chart.controls["density"].value == "0.1 %"
    assert len(panel.chart.controls["density"].options) == 6


@pytest.mark.parametrize("view", VIEWS)
def test_every_table_can_be_shown_with_and_without_rows(here, opened, view):
    study = lab.study()
    panel = opened(study)
    panel.view.value = view
    assert panel.page.value
    empty = panel.page.value
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    assert panel.page.value != empty
    assert panel.state.trouble is None


def test_texts_of_rows_are_escaped(here, opened):
    study = lab.study()
    rows = made.sweep()
    hostile = made.failed(rows[0], "failed", "<script>alert(1)</script>")
    write_run(study.folder, [hostile], "finished", current="<img>")
    panel = opened(study)
    for view in VIEWS:
        panel.view.value = view
        assert "<script>" not in text(panel)
    assert "&lt;script&gt;" in pages.latest_rows([hostile])


def test_the_table_is_capped():
    rows = made.rich()
    table = pages.latest_rows(rows)
    assert table.count("<tr>") == pages.MOST_ROWS + 1
    assert f"{pages.MOST_ROWS} of {len(rows)}" in table


# after a restart


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
    assert again.page.value == panel.page.value
    assert "img" in again.chart.image.value


def test_choices_changed_in_the_panel_are_found_again(here, opened, monkeypatch):
    monkeypatch.setattr(progress, "start", lambda spec, folder: write_run(folder, [], "starting"))
    panel = opened(lab.study())
    panel.form.fields["widths"].inputs[0].value = "8"
    panel.run.click()
    assert lab.study().choices["widths"] == "8"
    assert opened(lab.study()).form.fields["widths"].value == "8"
    assert lab.study(widths=64).choices["widths"] == "64"  # whoever edits the parameters means them


def test_the_newest_run_of_the_name_is_found_in_whatever_folder(here):
    write_run(here / "runs" / "elsewhere", made.sweep(), "finished")
    assert lab.study().folder == here / "runs" / "elsewhere"
    assert lab.study(run_dir="runs/own").folder == here / "runs" / "own"
    write_run(here / "runs" / "empty", [], "failed")
    assert lab.study().folder == here / "runs" / "elsewhere"


# export and the still


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
    assert "go sparse" in report
    assert len((study.folder / "rows.csv").read_text().splitlines()) == 13
    assert "<code>runs/can_sparse_reduce_training_time/report.html</code>" in text(panel)


def test_exceptions_of_a_button_are_shown(here, opened, monkeypatch):
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
    panel.keep_still(stills.append)
    write_run(study.folder, made.sweep()[:4])
    panel.step()
    assert not stills
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    panel.step()
    [still] = stills
    assert "Finished." in still.html
    assert "data:image/svg+xml" in still.html
    assert "12 of 12" in still.html
    bundle = panel._repr_mimebundle_()
    assert {"text/html", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(bundle)


# without a front end


def test_without_a_front_end_no_panel_is_made(here, capsys):
    assert not lab.has_front_end()
    assert lab.show(lab.study()) is None
    assert "No front end" in capsys.readouterr().out


def test_run_without_a_panel_starts_waits_and_tells(here, monkeypatch):
    told = []
    monkeypatch.setattr(progress, "start", lambda spec, folder: write_run(folder, made.sweep(), "finished"))
    study = lab.study()
    lab.run(study, tell=told.append)
    assert len(study.rows) == 12
    assert told[0].startswith("40 trials; Run takes about")
    assert told[-1] == "Finished: 12 of 24 trials."
    assert "12 of 12 trials gave a result" in lab.gate(study).text


def test_run_with_a_panel_leaves_it_to_the_user(here, opened, monkeypatch):
    monkeypatch.setattr(progress, "start", lambda *_: pytest.fail("it started"))
    told = []
    study = lab.study()
    lab.run(study, opened(study), tell=told.append)
    assert "Press Run" in told[0]
    assert "No rows yet" in lab.gate(study).text


def test_the_gate_fails_when_no_trial_gave_a_result(here):
    study = lab.study()
    write_run(study.folder, [made.failed(made.sweep()[0], "failed", "boom")], "finished")
    with pytest.raises(lab.NoResultError, match="None of 1 trials gave a result: failed: boom"):
        lab.gate(study)


def test_results_are_static_and_say_so_when_there_are_none(here):
    study = lab.study()
    shows = (lab.verdict, lab.break_evens, lab.trials, lambda study: lab.chart(study, "time_density"))
    assert all("No rows yet" in show(study).text for show in shows)
    write_run(study.folder, made.sweep(), "finished")
    shown = [show(study)._repr_mimebundle_() for show in shows]
    assert all(set(bundle) == {"text/html", "text/plain"} for bundle in shown)
    assert not any("No rows yet" in bundle["text/html"] for bundle in shown)
    assert "data:image/svg+xml" in shown[-1]["text/html"]


def test_names_that_papermill_set_and_nobody_knows_are_refused():
    namespace = {"densities": [0.1], "In": ["", "densities = [0.2]", "# Parameters\ndensties = [0.1]\n"]}
    with pytest.raises(lab.ChoiceError, match=r"unknown parameter 'densties'. Did you mean 'densities'"):
        lab.parameters(namespace)
    namespace["In"][-1] = "# Parameters\ndensities = [0.1]\nshow_widgets = False\n"
    assert lab.parameters(namespace) == {"densities": [0.1]}
    assert notebook.injected(namespace["In"]) == ["densities", "show_widgets"]
