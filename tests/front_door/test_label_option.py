"""The option --label names the column of labels at every door that data comes in by."""

import json

import pytest
from typer.testing import CliRunner

from workbench import data
from workbench.command import advising, cli, sweeping, training

ROWS = [
    "size,answer,colour,bought",
    *(f"{row % 7},{'no' if row % 3 else 'yes'},{row % 5},{row % 2}" for row in range(60)),
]


@pytest.fixture
def table(tmp_path):
    """Write a table of two columns that might be labels; the guess is the other one."""
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(ROWS) + "\n")
    return path


def typed(*words):
    came = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
    assert came.exit_code == 0, came.output
    return came.stdout


def test_profile_takes_the_label(table):
    assert json.loads(typed("data", "profile", table, "--label", "colour", "--json"))["labels"]["classes"] == 5
    with pytest.raises(ValueError, match="wrong"):
        typed("data", "profile", table, "--label", "wrong")


def test_convert_takes_the_label(table, tmp_path):
    typed("data", "convert", table, tmp_path / "X.sparse", "--label", "answer")
    assert data.load("sparse", path=tmp_path / "X.sparse", whole=True).classes == ("no", "yes")


def test_advise_sweep_and_train_take_the_label(table, monkeypatch):
    taken = {}

    class Done(Exception):  # noqa: N818 (ends the command when what is tested has come)
        pass

    def take(name):
        def keep(*values, **more):
            taken[name] = values
            raise Done

        return keep

    monkeypatch.setattr(advising, "advise", take("advise"))
    monkeypatch.setattr(training, "train", take("train"))
    monkeypatch.setattr(sweeping, "load_sweep", take("sweep"))
    for words in (("advise", table), ("train", table), ("sweep", "--path", table)):
        with pytest.raises(Done):
            typed(*words, "--label", "answer")
    assert taken["advise"][1]["label"] == "answer"
    assert taken["train"][0]["reading"] == {"label": "answer"}
    assert taken["sweep"][1]["reading"] == "label=answer"
