"""What is left of a stored run, which density and which cell is looked at: the state and its pages, no front end."""

import pytest

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench import store
from workbench.panels.tabs import explore
from workbench.panels.tabs.explore import ALL, Exploration
from workbench.study import ChoiceError
from workbench.sweeps import run_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of several widths and configurations, with cells that failed."""
    path = tmp_path_factory.mktemp("runs") / "rich"
    write_run(path, made.rich(), "finished")
    return path


@pytest.fixture
def state(folder):
    return Exploration(str(folder))


def test_every_setting_that_varies_is_a_filter_once(state):
    filters = {filter.name: list(filter.options) for filter in state.filters}
    assert filters["density"] == ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"]
    assert filters["format"] == ["coo", "csc", "csr"], "dense is no choice: it stays"
    assert filters["width"] == ["width 16", "width 64"]
    assert set(filters) == {"density", "format", "engine", "update", "width"}


def test_a_filter_leaves_its_rows_and_the_dense_baseline(state):
    state.choose("format", "csc")
    assert {row["format"] for row in state.rows} == {"csc", "dense"}
    state.choose("width", "width 16")
    assert {row["width"] for row in state.rows} == {16}
    assert "Sparse formats csc, Widths width 16; dense stays." in state.left
    state.choose("format", ALL)
    state.choose("width", ALL)
    assert len(state.rows) == len(state.every)
    assert state.left.startswith(f"All {len(state.every)} records of ")


def test_unknown_filters_and_options_list_those_there_are(state):
    with pytest.raises(ChoiceError, match=r"Unknown filter 'colour'.*Expected one of: density"):
        state.choose("colour", "red")
    with pytest.raises(ChoiceError, match="'width 5' is none of width 16, width 64"):
        state.choose("width", "width 5")
    assert state.chosen == {}


def test_a_density_and_a_gain_are_typed_in_words_or_numbers(state):
    state.ask_density("3 %")
    assert state.density == pytest.approx(0.03)
    state.ask_density("0.02")
    assert state.density == 0.02
    state.ask_factor("1.5 x")
    assert state.factor == 1.5
    for wrong in ("", "soon", "0", "200 %", "1, 2", "natural", "-1"):
        with pytest.raises(ChoiceError, match="is not one number above 0, 100 % at most"):
            state.ask_density(wrong)
    with pytest.raises(ChoiceError, match="Gain: '' is not one number above 0"):
        state.ask_factor("x")
    assert (state.density, state.factor) == (0.02, 1.5)


def test_the_slider_has_the_measured_densities_and_some_between(state):
    places = state.places()
    assert set(state.densities) <= set(places)
    assert places == sorted(places)
    assert 20 <= len(places) <= 60


def test_the_table_of_gains_follows_density_factor_and_filters(state):
    state.choose("width", "width 16")
    state.ask_density("1 %")
    text = explore.gains_table(state)
    assert "Time at 1 % density" in text
    assert "2 x or more" in text
    state.ask_density("2 %")
    assert "; read from 1 to 3.01 %" in explore.gains_table(state)
    state.choose("format", "coo")
    assert "CSR" not in explore.gains_table(state)


def test_behind_a_cell_are_its_trials_samples_and_the_command_that_trains_it_again(state):
    state.cell = next(name for name in state.cells if name.startswith("CSR ours") and "at 1 % density" in name)
    text = explore.behind(state)
    assert text.count("✓ ok</td>") == 4, "a line for each round"
    assert "Samples" in text
    assert "µs" in text
    assert "<code>workbench train " in text
    assert "--density 0.01" in text


def test_a_cell_without_a_result_shows_its_reason(state):
    state.cell = next(name for name, one in state.cells.items() if one.pooled["status"] == "memory")
    assert "<li>needs 5 GB, the limit is 4 GB</li>" in explore.behind(state)


def test_outliers_are_listed_by_cell_with_their_reasons(state):
    text = explore.outliers_table(state)
    assert "memory: needs 5 GB, the limit is 4 GB" in text
    assert "other programs took 50 % of the cores" in text


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


def test_without_rows_every_page_says_so(tmp_path):
    write_run(tmp_path, [], "finished")
    state = Exploration(str(tmp_path))
    assert state.filters == []
    for page in (explore.gains_table, explore.behind, explore.outliers_table):
        assert "<p>No " in page(state)


def test_texts_of_rows_are_escaped(tmp_path):
    row = made.failed(made.sweep()[0], "failed", "<script>alert(1)</script>")
    write_run(tmp_path, [row | {"run": "<b>", "dataset": "<i>"}], "finished")
    state = Exploration(str(tmp_path))
    text = explore.behind(state) + explore.outliers_table(state)
    assert "<script>" not in text
    assert "<b>" not in text
