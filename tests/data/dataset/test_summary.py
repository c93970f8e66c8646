"""The line before training, and the quality of the answer that ignores the input."""

import dataclasses

import numpy as np
import pytest

from tests.data.dataset.test_targets import SEVERAL, named
from tests.support.small_sets import targets
from workbench import data, metrics
from workbench.data import DataError, Labels

RATINGS = named([0, 1, 1, 2], ("1", "2", "5"), guess="whole numbers, few of them")


@pytest.mark.parametrize(
    ("made", "target", "width", "text"),
    [
        (
            RATINGS,
            "classes",
            None,
            "target: one of 3 classes; labels: 3 classes (guessed: whole numbers, few of them), "
            "1: 25 %, 2: 50 %, 5: 25 %; a constant gets accuracy 0.5",
        ),
        (
            RATINGS,
            "numbers",
            None,
            "target: a number, mean 2.5, standard deviation 1.5; labels: 3 classes (guessed: whole numbers, few of "
            "them), 1: 25 %, 2: 50 %, 5: 25 %; a constant gets r2 0 (the mean)",
        ),
        (
            RATINGS,
            "multilabel",
            3,
            "target: 3 columns of 0 and 1, 1 ones a row; labels: 3 classes (guessed: whole numbers, few of them), "
            "1: 25 %, 2: 50 %, 5: 25 %; a constant gets accuracy 0.667",
        ),
        (
            named([0, 1, 1, 1], ("no", "yes")),
            "binary",
            None,
            "target: positive class 'yes'; labels: 2 classes, no: 25 %, yes: 75 %; a constant gets accuracy 0.75",
        ),
        (
            SEVERAL,
            "multilabel",
            None,
            "target: 3 columns of 0 and 1, 1.33 ones a row; labels: 3 classes, several a row, "
            "a: 50 %, b: 33.3 %, c: 50 %; a constant gets accuracy 0.556",
        ),
        (
            targets(range(6)),
            "numbers",
            None,
            "target: a number, mean 2.5, standard deviation 1.71; labels: numbers; a constant gets r2 0 (the mean)",
        ),
    ],
)
def test_the_line_before_training(made, target, width, text):
    assert data.summary(made, target, width) == text


def test_of_many_classes_the_most_frequent_are_shown():
    made = named([number for number in range(12) for _ in range(number + 1)], "abcdefghijkl")
    assert "12 classes, l: 15.4 %, k: 14.1 %" in data.summary(made, "classes")
    assert "e: 6.41 %, and 4 more; a constant" in data.summary(made, "classes")


def test_a_span_and_what_cannot_be_trained_are_told():
    made = dataclasses.replace(targets(range(6)), labels=Labels("numbers", guess="not all whole", span=(0.0, 5.0)))
    assert "labels: numbers 0 to 5 (guessed: not all whole); a constant" in data.summary(made, "numbers")
    with pytest.raises(DataError, match="this model chooses one class a row"):
        data.summary(made, "classes")


@pytest.mark.parametrize(
    ("target", "quality", "y", "held_out", "wanted"),
    [
        ("classes", metrics.accuracy, [0, 1, 1], [1, 0, 0, 0], 0.25),
        ("binary", metrics.binary_accuracy, [[0.0], [0], [1]], [[0.0], [1], [1]], 1 / 3),
        ("binary", metrics.binary_accuracy, [[0.0], [1], [1]], [[0.0], [1], [1]], 2 / 3),
        ("multilabel", metrics.binary_accuracy, [[0.0, 1], [0, 1]], [[0.0, 0], [0, 1]], 0.75),
        ("numbers", metrics.r2, [[1.0], [3]], [[1.0], [3]], 0.0),
        ("numbers", metrics.r2, [[1.0], [3]], [[3.0], [5]], 1 - (1 + 9) / 2),
    ],
)
def test_quality_of_the_answer_that_ignores_the_input(target, quality, y, held_out, wanted):
    y, held_out = np.array(y), np.array(held_out)
    width = 2 if target == "classes" else y.shape[1]
    assert metrics.constant_quality(target, quality, y, held_out, width) == pytest.approx(wanted)


def test_no_constant_has_a_lower_loss():
    rng = np.random.default_rng(0)
    y = (rng.random((50, 1)) < 0.3).astype(np.float64)
    best = metrics.constant_scores("binary", y, 1)[0]

    def loss(score):
        return np.mean(np.log1p(np.exp(score)) - y * score)

    assert all(loss(best) < loss(best + step) for step in (-0.1, -0.01, 0.01, 0.1))


def test_a_target_unknown_and_no_rows_are_refused():
    with pytest.raises(metrics.MetricError, match=r"Unknown target 'rank'.*Expected one of: classes, binary"):
        metrics.constant_scores("rank", np.zeros(3), 1)
    with pytest.raises(metrics.MetricError, match="y has no rows"):
        metrics.constant_scores("classes", np.zeros(0, np.int64), 2)
