"""`workbench data columns`, and tables in the commands that train and sweep."""

import pytest
from typer.testing import CliRunner

from tests.support.commands import run
from workbench.command import cli, sweeping
from workbench.data import DataError
from workbench.sweeps import grid
from workbench.sweeps.spec import Configuration

pytest.importorskip("pyarrow")


@pytest.fixture
def table(tmp_path):
    rows = [f"{row % 7}.5,{'abc'[row % 3]},{row % 2}" for row in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["size,letter,bought", *rows]))
    return tmp_path / "rows.csv"


def test_columns_are_shown_written_and_used(table, tmp_path):
    file = tmp_path / "columns.toml"
    came = run("data", "columns", table, "--out", file, "--reading", "label=bought, bins=3")
    assert came.exit_code == 0, came.output
    assert "binned, 3 bins" in came.output
    assert f"Written: {file}" in came.output
    again = run("data", "columns", table, "--columns", file)
    assert [line.split()[:3] for line in again.output.splitlines()[3:6]] == [
        ["size", "number", "binned,"],
        ["letter", "category", "one-hot"],
        ["bought", "label"],
    ]
    assert run("data", "profile", table, "--dataset", "table", "--columns", file).exit_code == 0


def test_a_file_that_looks_like_no_table_is_shown_with_a_word_on_it(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1 4:0.5\n0 2:1\n" * 9)
    came = run("data", "columns", tmp_path / "rows.svm")
    assert "rows.svm is shown as a table; it looks like svmlight text, which the data set svmlight reads" in came.output


def test_what_columns_do_not_depend_on_is_refused(table):
    with pytest.raises(DataError, match="reading names 'kind', on which columns do not depend"):
        CliRunner().invoke(
            cli.app, ["data", "columns", str(table), "--reading", "kind=numbers"], catch_exceptions=False
        )


def test_a_cell_reads_a_table_by_its_columns(table, tmp_path):
    file = tmp_path / "columns.toml"
    file.write_text('[columns.bought]\nkind = "label"\n[columns.size]\nkind = "ignored"\n')
    cell = Configuration(dataset="table", path=str(table), columns=str(file), model="logistic", reading="hashed=8")
    assert grid.list_unread_settings(cell) == []
    assert sweeping.make_problem(cell).x.shape == (60, 9)
