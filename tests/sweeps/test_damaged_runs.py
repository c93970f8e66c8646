"""Damaged files of a run folder: commands say what is wrong, rows stay readable, and the panel opens."""

import json
import warnings

import pytest
from typer.testing import CliRunner

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench.command import cli, running
from workbench.panels import state
from workbench.panels.state import LabState
from workbench.reports import export
from workbench.sweeps import run_folder
from workbench.sweeps.progress import Progress, parse

BAD = {
    "cut": b'{"na',
    "empty": b"",
    "null": b"null",
    "list": b"[]",
    "latin-1": b'{"name": "\xe9"}',
    "deep": b"[" * 100_000,
    "wrong types": b'{"name": 3, "keys": 3, "dropped": 3, "state": 3, "total": "x", "heartbeat": "soon", "given": 3}',
    "wrong state": b'{"name": "x", "state": "running", "pid": 10000000000000000000000, "heartbeat": 1e400}',
}


@pytest.fixture
def run(here, no_other_runs):
    """A finished run with two rows."""
    folder = here / "runs" / "news"
    write_run(folder, list(made.sweep())[:2], "finished", name="news")
    return folder


def keys_of(folder) -> list[str]:
    return [row["key"] for row in run_folder.read_current_records(folder)]


@pytest.mark.parametrize("damage", BAD)
def test_rows_of_a_run_with_a_damaged_plan_are_read_with_a_warning(run, damage):
    (run / run_folder.PLAN).write_bytes(BAD[damage])
    with pytest.warns(UserWarning, match=r"plan.json is damaged \(.*\); all rows of its folder are shown. Start the"):
        assert len(keys_of(run)) == 2


def test_a_sound_plan_chooses_the_rows(run):
    [first, _] = keys_of(run)
    (run / run_folder.PLAN).write_text(json.dumps({"keys": [first], "dropped": {"why": 3}}))
    assert keys_of(run) == [first]


@pytest.mark.parametrize("damage", BAD)
def test_a_damaged_progress_is_an_error_and_shown_as_a_failed_run(run, damage):
    (run / run_folder.PROGRESS).write_bytes(BAD[damage])
    with pytest.raises(run_folder.RunError, match=r"progress.json is damaged \(.*\); start the sweep again") as raised:
        run_folder.read_progress(run)
    shown = next(found.progress for found in running.find() if found.folder.name == "news")
    assert (shown.state, shown.message) == ("failed", str(raised.value))
    for command in (["status"], ["stop", str(run)]):
        ended = CliRunner().invoke(cli.app, command)
        assert ended.exception is None or isinstance(ended.exception, SystemExit | run_folder.RunError), command


@pytest.mark.parametrize("damage", BAD)
def test_a_damaged_spec_is_an_error(run, damage):
    (run / run_folder.SPEC).write_bytes(BAD[damage])
    readers = (run_folder.read_spec, export.spec_of, export.title_of)
    for read in readers[:1] if damage == "wrong state" else readers:  # a title needs a name alone
        with pytest.raises(run_folder.RunError, match=r"holds no usable spec.json"):
            read(run)


def test_a_title_is_read_from_the_keys_of_a_spec_alone(run):
    """A run whose model is no longer registered can be reported, by a spec that has a valid set of keys."""
    for spec, title in (({"name": "a"}, "a"), ({"name": "a", "description": "b", "candidates": []}, "b")):
        (run / run_folder.SPEC).write_text(json.dumps(spec | {"axes": {"model": "removed"}}))
        assert export.title_of(run) == title
    with pytest.raises(run_folder.RunError, match="removed"):
        run_folder.read_spec(run)


@pytest.mark.parametrize("damage", BAD)
@pytest.mark.parametrize("name", [run_folder.PLAN, run_folder.PROGRESS, run_folder.SPEC, state.CHOSEN])
def test_the_panel_opens_beside_a_damaged_file(run, name, damage):
    (run / name).write_bytes(BAD[damage])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        study = LabState("news", {"dataset": "uniform", "density": "0.01", "rows": "300"}, run_dir=str(run))
    assert study.status == ("failed" if name == run_folder.PROGRESS else "finished")
    assert state.chosen_of(run) is None


def test_progress_comes_back_as_it_was_written(run):
    progress = Progress("x", "running", 7, counts={"ok": 2}, agents={"a": "b"}, seconds=3, seconds_left=1.5)
    run_folder.write_progress(run, progress)
    assert parse((run / run_folder.PROGRESS).read_bytes()) == progress
