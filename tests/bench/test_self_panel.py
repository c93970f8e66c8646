"""The part of the self-trial in which a panel looks on: what it finds, what it shows, and what it needs."""

import contextlib
import signal
import sys
from types import SimpleNamespace

import pytest

from tests.support import self_trial_rows as maker
from tests.support.panel_runs import write_run
from tests.support.self_trial_rows import Measured
from workbench import store
from workbench.bench.self_trial import panel, trials
from workbench.sweeps import grid, run_folder
from workbench.sweeps.spec import dump_spec


@pytest.mark.parametrize(("times", "is_met"), [(1.0, True), (1.3, False)])
def test_a_panel_that_makes_trials_slower_is_found(measured, here, monkeypatch, times, is_met):
    """Each trial is measured alone, the panel standing still, and seen; what the panel finds is the rows so far."""
    sent = []
    monkeypatch.setattr(panel, "kernel", lambda folder: contextlib.nullcontext(sent.append))
    monkeypatch.setattr(panel, "begun", lambda _: here)
    jitter = lambda task: 1 + 0.001 * (task.round % 3)  # noqa: E731
    seconds = lambda task, work: jitter(task) * (1.0 if work == panel.WORK else times)  # noqa: E731
    monkeypatch.setattr(Measured, "seconds", staticmethod(seconds))
    *ratios, alone, seen = panel.panel(here, trials.Budget(0.0))
    assert [row["met"] for row in ratios] == [is_met] * 7
    assert ratios[-1]["ratio"] == pytest.approx(times, rel=1e-3)
    assert (alone["hits"], alone["count"], seen["count"]) == (0, 24, 24)
    ways = [trials.split_key(row["key"])[1] for row in measured]
    before = [signal.SIGCONT if way == panel.SEEN else signal.SIGSTOP for way in ways]
    assert sent[::2] == before
    assert set(sent[1::2]) == {signal.SIGCONT}, "the panel may hold the lock of the records when it is stopped"
    assert {row["key"] for row in store.read(here)} == {
        grid.configuration_key(configuration) for configuration in panel.configurations().values()
    }


def test_the_panel_that_looks_on_is_one_of_the_sweep_of_these_configurations(here, monkeypatch):
    """What the kernel runs, run here: the panel finds the rows and the configurations of the run."""
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: SimpleNamespace(update=lambda _: None))
    configurations = panel.configurations().values()
    assert {grid.configuration_key(configuration) for configuration in configurations} <= {
        grid.configuration_key(configuration) for configuration in grid.expand_grid(panel.spec()).configurations
    }
    write_run(
        here,
        [
            maker.trial(configuration, "", 0, 1.0) | {"key": grid.configuration_key(configuration)}
            for configuration in configurations
        ],
    )
    (here / run_folder.SPEC).write_text(dump_spec(panel.spec()))
    names: dict = {}
    exec(panel.PANEL.format(folder=str(here)), names)
    names["panel"].threads[1].step()
    assert len(names["panel"].state.rows) == 6
    assert names["panel"].cells.value.count("✓") == 6
    names["panel"].close()


def test_a_trial_tells_no_stage_where_it_is_measured_alone(monkeypatch):
    monkeypatch.setattr(panel.trial, "answers", lambda request: iter([{"stage": "measuring"}, {"status": "ok"}]))
    assert list(panel.untold({})) == [{"status": "ok"}]


def test_a_panel_without_jupyter_is_an_outcome_with_its_reason(measured, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupyter_client.manager", None)
    monkeypatch.setattr(panel, "begun", lambda _: here)
    [row] = panel.panel(here, trials.Budget(0.0))
    assert row["status"] == "failed"
    assert "pip install 'sparse-workbench[lab]'" in row["reason"]
