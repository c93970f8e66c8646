"""`workbench train` without options of how to train searches the decay and says what it chose."""

import pytest

from tests.command.test_cli import run

SMALL = ["--dataset", "uniform", "--rows", "500", "--features", "30", "--density", "0.2", "--model", "logistic"]


def test_a_decay_is_chosen_and_trained_with(here):
    came = run("train", *SMALL)
    assert came.exit_code == 0
    assert "chosen by dual ascent from 8 settings on 5 folds of all rows. To change it: --search N" in came.output
    assert "from 3 settings" in run("train", *SMALL, "--search", "3").output


def test_a_given_option_is_respected_and_said(here):
    came = run("train", *SMALL, "--epochs", "1")
    assert "Nothing is searched, as --epochs is given." in came.output
    assert "chosen" not in came.output
    assert "chosen" not in run("train", *SMALL, "--search", "0").output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--search", "1"], "1; expected 2 settings or more, or 0 for none"),
        (["--search", "4", "--learning-rate", "1"], "--learning-rate is given, too"),
        (["--search", "4", "--trainers", "2"], "several trainers search no settings"),
        (["--held-out", "0.1", "--trainers", "2"], "several trainers hold out a fifth"),
    ],
)
def test_a_search_that_cannot_be_is_refused(given, message, here):
    came = run("train", *SMALL, *given)
    assert came.exit_code == 2
    assert message in " ".join(came.output.replace("\u2502", " ").split())
