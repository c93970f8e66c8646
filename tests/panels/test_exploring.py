"""What the filters leave of a stored run: the state, no front end."""

import pytest

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench import store
from workbench.analysis import pool
from workbench.panels.tabs.explore import ALL, Exploration
from workbench.sweeps import run_folder
from workbench.sweeps.spec import SpecError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of several widths and configurations, with cells that failed."""
    path = tmp_path_factory.mktemp("runs") / "rich"
    write_run(path, made.rich(), "finished")
    return path


@pytest.fixture
def state(folder):
    return Exploration(str(folder))


def test_format_density_and_device_are_filters_where_they_vary(state):
    assert state.filters == {
        "format": ["csr", "csc", "coo"],
        "density": ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"],
    }, "dense is no choice: it stays; all ran on one device"


def test_a_filter_leaves_its_rows_and_the_dense_baseline(state):
    state.choose("format", "csc")
    assert {row["format"] for row in state.rows} == {"csc", "dense"}
    state.choose("density", "1 %")
    assert {row["density"] for row in state.rows} == {0.01}
    assert "Sparse format csc, Density 1 %; dense stays." in state.left
    assert {(row["format"], row["density"]) for row in pool.records(state.frame)} == {("csc", 0.01), ("dense", 0.01)}
    state.choose("format", ALL)
    state.choose("density", ALL)
    assert len(state.rows) == len(state.every)
    assert state.left.startswith(f"All {len(state.every)} records of ")


def test_unknown_filters_and_options_list_those_there_are(state):
    with pytest.raises(SpecError, match=r"Unknown filter 'colour'.*Expected one of: format"):
        state.choose("colour", "red")
    with pytest.raises(SpecError, match="'lists' is none of csr, csc, coo"):
        state.choose("format", "lists")
    assert state.chosen == {}


def test_rows_that_arrive_are_read_and_filters_stay(tmp_path):
    rows = made.rich()
    write_run(tmp_path, rows[:40], "finished")
    state = Exploration(str(tmp_path))
    state.choose("format", "csr")
    write_run(tmp_path, rows, "finished")
    state.poll()
    assert len(state.every) == len(rows)
    assert {row["format"] for row in state.rows} == {"csr", "dense"}


def test_a_file_of_rows_is_explored_as_a_run_is(tmp_path):
    for row in made.sweep(rounds=4):
        store.append(tmp_path / "rows.jsonl", row)
    state = Exploration(str(tmp_path / "rows.jsonl"))
    assert len(state.every) == 48
    assert not state.alive
    with pytest.raises(run_folder.RunError, match="is not a run folder"):
        Exploration(str(tmp_path / "nothing"))


def test_without_rows_there_is_nothing_to_choose(tmp_path):
    write_run(tmp_path, [], "finished")
    state = Exploration(str(tmp_path))
    assert state.filters == {}
    assert state.frame.empty
