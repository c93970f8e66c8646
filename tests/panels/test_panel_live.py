"""The panel follows a run: rows arrive, charts and tables change, failures are told. Threads are stepped by hand."""

import json

import pytest

from tests.support import rows as made
from tests.support.clocks import Clock
from tests.support.panel_runs import text, write_run
from workbench.panels import lab, pages, picture, state
from workbench.panels.picture import Picture
from workbench.panels.results_view import SECONDS_PATIENCE, VIEWS
from workbench.plots.interactive import MIME
from workbench.sweeps import run_folder
from workbench.sweeps.progress import TIMED

FAKE = Picture("A chart", "It says nothing.", b"")


def test_rows_that_arrive_change_progress_chart_verdict_and_table(here, opened):
    study, clock = lab.study(), Clock()
    panel = opened(study, clock=clock)
    assert "No run yet." in text(panel)
    shown = panel.results
    rooms = (shown.verdict, shown.chart.box, shown.view, shown.page)
    assert {room.layout.display for room in rooms} == {"none"}, "there is nothing to see yet"
    rows = made.sweep()
    stage = {"stage": "measuring", "round": 1, "rounds": 12, "stage_since": 1e12, "candidate": "CSR ours"}
    write_run(study.folder, rows[:4], current_key="5eed", seconds_left=30.0, **stage)
    panel.step()
    assert (panel.live.bar.value, panel.live.bar.max) == (4, 48)
    assert "4 of 48 trials · ✓ 4 ok · about 30 s left" in text(panel)
    assert "Now: measuring round 1 of 12: CSR ours" in text(panel)
    write_run(study.folder, rows[:4], agents={"n1": "csr at 1 %", "n2": "<starting>"}, waiting=3)
    panel.step()
    assert "Now: n1: csr at 1 %<br>n2: &lt;starting&gt;<br>3 comparisons wait<" in text(panel)
    first = panel.results.chart.image.value
    assert "data:image/svg+xml" in first
    assert panel.results.chart.drawn.live.outputs[0]["data"][MIME]["data"], (
        "wide panels have a chart that can be pointed at"
    )
    assert {room.layout.display for room in rooms} == {None}
    write_run(study.folder, rows)
    clock.now += 60
    panel.step()
    assert panel.results.chart.image.value != first
    assert "Latest trials: 12 of 48" in text(panel)
    assert "Sparse is faster" in panel.results.chart.image.value or "Go sparse" in text(panel)


def test_charts_are_drawn_again_only_for_new_rows_and_not_all_the_time(here, opened, no_charts, monkeypatch):
    drawn = []
    study, clock = lab.study(), Clock()
    panel = opened(study, clock=clock)
    draw = panel.results.chart.draw
    monkeypatch.setattr(panel.results.chart, "draw", lambda: (drawn.append(clock.now), draw()))
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


def test_nothing_is_drawn_beside_a_trial_that_is_timed_unless_rows_wait_too_long(here, opened, no_charts):
    study, clock = lab.study(), Clock()
    panel, rows = opened(study, clock=clock), made.sweep()
    for count, stage in enumerate(TIMED, 1):
        write_run(study.folder, rows[:count], stage=stage, current_key="5eed")
        for _ in range(5):
            panel.step()
        clock.now += 2
    assert panel.results.chart.stale
    write_run(study.folder, rows[:4], stage="compiling")
    panel.step()
    assert panel.results.chart.stale, "it began long ago, and the clock may run at any moment"
    write_run(study.folder, rows[:4], stage="compiling", stage_since=1e12)
    panel.step()
    assert not panel.results.chart.stale
    write_run(study.folder, rows[:5], stage="training")
    panel.step()
    assert panel.results.chart.stale
    clock.now += SECONDS_PATIENCE
    panel.step()
    assert not panel.results.chart.stale


def test_a_run_in_which_nothing_changes_is_looked_at_by_its_stamps_alone(here, monkeypatch):
    study, clock = lab.study(), Clock()
    monkeypatch.setattr(state, "monotonic", clock)
    read, real = [], run_folder.read_progress
    monkeypatch.setattr(state.run_folder, "read_progress", lambda folder: read.append(folder) or real(folder))
    write_run(study.folder, made.sweep()[:2])
    for _ in range(5):
        study.poll()
    assert len(read) == 1
    clock.now += 1
    study.poll()
    assert len(read) == 2, "a supervisor that died has changed nothing"
    write_run(study.folder, made.sweep()[:3])
    study.poll()
    assert (len(read), len(study.rows)) == (3, 3)


def test_the_last_rows_are_drawn_at_once(here, opened, no_charts):
    study, clock = lab.study(), Clock()
    panel = opened(study, clock=clock)
    rows = made.sweep()
    write_run(study.folder, rows[:6])
    panel.step()
    write_run(study.folder, rows, "finished")
    panel.step()
    assert not panel.results.chart.stale


def test_the_threads_end_with_the_panel(here, opened):
    panel = opened(lab.study())
    panel.watch()
    assert all(thread.alive for thread in panel.threads)
    panel.close()
    assert not any(thread.alive for thread in panel.threads)
    assert panel.root.comm is None


def test_the_rows_of_an_older_spec_are_not_shown_while_a_run_starts(here, opened):
    study = lab.study()
    write_run(study.folder, made.sweep(), "starting")
    panel = opened(study)
    panel.step()
    assert study.rows == ()


def test_failed_trials_and_a_failed_run_are_shown_with_their_reasons(here, opened, no_charts):
    study = lab.study()
    rows = made.sweep()
    write_run(study.folder, [*rows[:3], made.unfit(rows[4])], "failed", message="The supervisor died <here>.")
    panel = opened(study)
    panel.step()
    assert "✗ Failed. The supervisor died &lt;here&gt;." in text(panel)
    assert "▣ memory" in text(panel)
    assert "needs 82 GB, the limit is 16 GB" in text(panel)
    assert not panel.run.disabled


def test_a_dead_supervisor_is_told(here, opened, no_charts):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    path = study.folder / "progress.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"heartbeat": 0.0}))
    panel.step()
    assert "The supervisor died" in text(panel)


def test_exceptions_of_the_watcher_are_shown(here, opened):
    study = lab.study()
    panel = opened(study)
    write_run(study.folder, made.sweep())
    (study.folder / "plan.json").write_text("no JSON <b>")
    panel.step()
    assert "Watching the run failed:" in text(panel)
    assert "<details><summary>Traceback</summary>" in text(panel)


def test_a_charts_controls_become_widgets_and_the_choice_reaches_the_chart(here, opened, monkeypatch):
    """What charts make of every choice is tested without panels, where each is drawn."""
    drawn = []
    monkeypatch.setattr(picture, "draw", lambda name, frame, **chosen: drawn.append((name, chosen)) or FAKE)
    study = lab.study()
    write_run(study.folder, made.rich(), "finished")
    panel = opened(study)
    panel.step()
    for name in (option[1] for option in panel.results.chart.picker.options):
        panel.results.chart.picker.value = name
        assert panel.state.trouble is None
        assert drawn[-1][0] == name
        for key, control in panel.results.chart.controls.items():
            assert control.description
            assert control.tooltip
            if control.value != control.options[-1]:
                control.value = control.options[-1]
                assert drawn[-1][1][key] == control.options[-1]
            assert panel.state.trouble is None
    assert {"group", "density"} <= {key for _, chosen in drawn for key in chosen}


def test_a_chosen_control_stays_when_rows_arrive(here, opened, no_charts):
    study, clock = lab.study(), Clock()
    rows = made.sweep()
    write_run(study.folder, rows[:6])
    panel = opened(study, clock=clock)
    panel.step()
    panel.results.chart.picker.value = "learning"
    panel.results.chart.controls["density"].value = "0.1 %"
    write_run(study.folder, rows)
    clock.now += 60
    panel.step()
    assert panel.results.chart.controls["density"].value == "0.1 %"
    assert len(panel.results.chart.controls["density"].options) == 6


def test_rows_that_come_before_the_user_picks_a_chart_still_reach_the_verdict(here, opened, no_charts):
    study, clock = lab.study(), Clock()
    write_run(study.folder, made.sweep()[:1])
    panel = opened(study, clock=clock)
    panel.step()
    assert "There is no comparison." in panel.results.verdict.value
    write_run(study.folder, made.sweep())
    study.poll()
    panel.results.chart.picker.value = "memory_density"
    clock.now += 60
    panel.step()
    assert "Go sparse" in panel.results.verdict.value


@pytest.mark.parametrize("view", VIEWS)
def test_every_table_can_be_shown_with_and_without_rows(here, opened, no_charts, view):
    study = lab.study()
    panel = opened(study)
    panel.results.view.value = view
    assert panel.results.page.value
    empty = panel.results.page.value
    write_run(study.folder, made.sweep(), "finished")
    panel.step()
    assert panel.results.page.value != empty
    assert panel.state.trouble is None


def test_texts_of_rows_are_escaped(here, opened):
    study = lab.study()
    rows = made.sweep()
    adversarial = made.failed(rows[0], "failed", "<script>alert(1)</script>")
    write_run(study.folder, [adversarial], "finished", current="<img>")
    panel = opened(study)
    for view in VIEWS:
        panel.results.view.value = view
        assert "<script>" not in text(panel)
    assert "&lt;script&gt;" in pages.latest_rows([adversarial])


def test_the_table_is_capped():
    rows = made.rich()
    table = pages.latest_rows(rows)
    assert table.count("<tr>") == pages.MOST_ROWS + 1
    assert f"{pages.MOST_ROWS} of {len(rows)}" in table
