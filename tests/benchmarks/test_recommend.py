"""The suite of recommenders: its sets, its loss, and the lines that it makes of records."""

import numpy as np
import pytest

from benchmarks import recommend
from workbench.recommend import als

pytestmark = pytest.mark.usefixtures("kept_threads")


@pytest.fixture
def small(monkeypatch) -> None:
    monkeypatch.setattr(recommend, "SETS", {"small": (300, 200, 12, 1)})


def test_a_set_is_the_same_each_time_and_holds_a_tenth_out(small):
    (one, held), (again, _) = (recommend.draw_set(*recommend.SETS["small"]) for _ in range(2))
    assert (one != again).nnz == 0
    assert one.multiply(held).nnz == 0
    assert 0.05 < held.nnz / (one.nnz + held.nnz) < 0.15


def test_its_loss_is_that_of_the_training(small):
    matrix, _ = recommend.draw_set(*recommend.SETS["small"])
    weights = als.weights_of("implicit", "given", recommend.ALPHA)
    training = als.Factors(matrix, 8, recommend.REGULARIZATION, 0.0, weights, 3, 0)
    training.iterate()
    x, y = training.tables
    assert recommend.loss_of(matrix, x, y) == pytest.approx(training.loss(), rel=1e-5)


def test_our_side_is_measured_and_compared(small):
    own = recommend.measure("workbench", "small", 4, 3, 1)
    assert len(own["seconds"]) == len(own["seconds_cpu"]) == len(own["recall"]) == 3
    assert own["recall"][-1] > 20 / 200
    other = own | {
        "side": "implicit cg",
        "seconds_cpu": [3 * s for s in own["seconds_cpu"]],
        "loss": own["loss"] * 1.01,
    }
    (line,) = recommend.ratios([own, other, {"suite": "recommend", "side": "x", "error": "no implicit"}])
    assert line["ratio"] == pytest.approx(3)
    assert line["ratio_reach"] == pytest.approx(3)
    assert line["loss"] == pytest.approx(1 / 1.01)
    never = other | {"recall": [0.0, 0.0, 0.0]}
    assert recommend.ratios([own, never])[0]["ratio_reach"] is None
    text = recommend.page([own, other], "python -m benchmarks recommend")
    assert "take 3.00 times our time" in text


def test_ease_agrees_with_numpy():
    record = recommend.measure_ease(150, 1)
    assert record["error"] < 1e-5
    assert np.isfinite(record["seconds"]).all()
    assert "EASE of 150 items" in recommend.page([record], "")
