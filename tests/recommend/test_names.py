"""Names of columns that recommenders know, and options that they do not take."""

import pandas as pd
import pytest
from typer.testing import CliRunner

import workbench as wb
from workbench.command import cli


@pytest.mark.parametrize("names", [("reader", "book", "stars", "when"), ("member_id", "isbn", "score", "rated_at")])
def test_other_usual_names_of_columns_are_known(names):
    columns = ([1, 1, 2], ["a", "b", "a"], [2, 5, 1], ["2024-01-01", "2024-01-02", "2024-01-03"])
    found = wb.Recommender().read(pd.DataFrame(dict(zip(names, columns, strict=True))).iloc[:, ::-1])
    assert found.columns == dict(zip(("user", "item", "value", "time"), names, strict=True))


def test_options_that_a_recommender_does_not_take_are_refused(tmp_path):
    (tmp_path / "taken.csv").write_text("user,item\n1,2\n2,3\n")
    for option in (("--label", "user"), ("--optimizer", "adam"), ("--held-out", "0.3")):
        done = CliRunner().invoke(cli.app, ["train", str(tmp_path / "taken.csv"), "--model", "als", *option])
        assert (done.exit_code, f"Leave {option[0]} out." in " ".join(done.output.replace("│", " ").split())) == (
            2,
            True,
        )
