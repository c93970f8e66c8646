"""A model is kept by `train --save` and used by `apply`; a poor one says so."""

import csv

import numpy as np
import pytest

from tests.support.commands import run
from workbench.command import training
from workbench.sweeps.spec import Configuration


@pytest.fixture
def rows(tmp_path):
    generator = np.random.default_rng(0)
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{row % 2} {1 + row % 2}:1 {3 + generator.integers(20)}:1\n" for row in range(200)))
    return path


def test_a_model_is_trained_kept_and_applied(rows, tmp_path):
    came = run("train", rows, "--epochs", 5, "--batch-rows", 16, "--save", "model")
    assert came.exit_code == 0, came.output
    assert "The model is logistic: the labels are 2 classes" in came.stderr
    assert "workbench apply model FILE --out scores.csv" in came.stdout
    assert "log loss" in came.stdout
    came = run("apply", "model", rows, "--out", "scores.csv")
    assert came.exit_code == 0, came.output
    assert "quality: accuracy 1.0000, AUC 1.0000" in came.stdout
    read = list(csv.reader((tmp_path / "scores.csv").read_text().splitlines()))
    assert read[0] == ["row", "prediction", "probability_0", "probability_1"]
    assert [line[1] for line in read[1:]] == [str(row % 2) for row in range(200)]
    again = run("apply", "model", rows, "--out", "scores.csv")
    assert "scores.csv is there already.\nType --force" in str(again.exception)
    assert run("apply", "model", rows, "--out", "scores.csv", "--force").exit_code == 0


def test_a_model_is_trained_on_all_rows_if_none_is_held_out(rows, tmp_path):
    came = run("train", rows, "--epochs", 2, "--batch-rows", 16, "--held-out", 0, "--save", "all")
    assert came.exit_code == 0, came.output
    assert "all 200 rows were trained on; on these accuracy 1.0000; always predicting the most frequent" in came.stdout
    assert "held-out" not in came.stdout
    assert "quality: accuracy" in run("apply", "all", rows).stdout
    assert "160 rows" not in came.stdout
    assert run("train", rows, "--epochs", 2, "--held-out", 0.95).exit_code == 2


def test_a_file_without_labels_is_predicted_and_says_so(rows, tmp_path):
    assert run("train", rows, "--save", "model").exit_code == 0
    (tmp_path / "new.txt").write_text("1:1 3:1\n2:1\n")
    came = run("apply", "model", "new.txt")
    assert came.exit_code == 0, came.output
    assert "No quality: it has no labels." in came.stderr
    assert came.stdout.count("\n") == 3


def test_a_model_that_is_no_better_than_the_most_frequent_class_says_so_and_what_to_try():
    worse = training.why_worse(Configuration(epochs=3), 0.4, 0.6, "classes")
    assert worse.startswith(
        "Warning: the model is worse than always predicting the most frequent class (0.4000 against"
    )
    assert "Try --epochs 10, --learning-rate 0.033 or 0.3, --optimizer adam" in worse
    assert "no better than" in training.why_worse(Configuration(epochs=3), 0.6, 0.6, "binary")
    dual = training.why_worse(Configuration(epochs=3, execution="dual", optimizer="sgd"), 0.4, 0.6, "classes")
    assert "Try --optimizer adam --epochs 10," in dual
    assert "--learning-rate" not in dual, "dual ascent has none"
    assert training.why_worse(Configuration(epochs=3), 0.7, 0.6, "binary") == ""
    assert "worse than always predicting the mean" in training.why_worse(
        Configuration(epochs=3), float("nan"), 0.0, "numbers"
    )


def test_numbers_are_trained_by_the_linear_model_without_being_told(tmp_path):
    (tmp_path / "t").write_text("".join(f"{row / 7:.3f} {1 + row % 5}:1\n" for row in range(100)))
    came = run("train", "t", "--epochs", 1)
    assert came.exit_code == 0, came.output
    assert "The model is linear: the labels are numbers" in came.stderr
