"""`workbench train`: without options of how to train it searches the decay; the threads that it is told."""

import re

import numpy as np
import pytest

from kernels import threads
from tests.support.commands import run
from workbench.command import training
from workbench.sweeps import spec
from workbench.training.trained import load_model

SMALL = ["--dataset", "uniform", "--rows", "500", "--features", "30", "--density", "0.2", "--model", "logistic"]


def test_a_decay_is_chosen_and_trained_with():
    came = run("train", *SMALL)
    assert came.exit_code == 0
    assert "chosen by dual ascent from 8 settings on 5 folds of all rows. To change it: --search N" in came.output
    assert "from 3 settings" in run("train", *SMALL, "--search", "3").output


def test_a_given_option_is_respected_and_said():
    came = run("train", *SMALL, "--epochs", "1")
    assert "No decay is searched, because --epochs is given." in came.output
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
def test_a_search_that_cannot_be_is_refused(given, message):
    came = run("train", *SMALL, *given)
    assert came.exit_code == 2
    assert message in " ".join(came.output.replace("\u2502", " ").split())


def test_a_training_uses_the_threads_that_it_is_told(monkeypatch):
    seen, real = [], training.make_run
    monkeypatch.setattr(training, "make_run", lambda *given: seen.append(threads.get_threads()) or real(*given))
    before = threads.get_threads()
    small = ["--dataset", "uniform", "--rows", "60", "--features", "30", "--epochs", "1"]
    assert run("train", *small, "--threads", "1").exit_code == 0
    assert set(seen) == {1}
    assert threads.get_threads() == before
    refused = run("train", *small, "--threads", "9999")
    assert isinstance(refused.exception, spec.SpecError)
    assert "--threads: threads is 9999" in str(refused.exception)


def test_a_factorization_machine_learns_columns_of_any_size_as_its_estimator_does(tmp_path):
    """Years, house prices and counts: the saved model predicts the numbers of the file, as they are."""
    generator = np.random.default_rng(0)
    years, prices = generator.integers(1990, 2026, 400), generator.lognormal(12, 1, 400)
    counts = generator.poisson(1000, 400)
    y = 1e4 * (years - 2000) + 0.5 * prices + 100 * counts + 1e6
    x = np.column_stack([years, prices, counts])
    file = tmp_path / "houses.csv"
    np.savetxt(file, np.column_stack([x, y]), "%.10g", ",", header="year,price,count,label", comments="")
    arguments = ["--model", "factorization_machine", "--optimizer", "adagrad", "--epochs", "40"]
    came = run("train", str(file), *arguments, "--batch-rows", "16", "--save", str(tmp_path / "model"))
    assert came.exit_code == 0, came.output
    assert "The training is in float64" in came.output
    assert float(re.search(r"held-out r2 (\S+);", came.output)[1]) > 0.9
    loaded = load_model(tmp_path / "model")
    assert loaded.score(x, y) > 0.9
