"""The suite of recommenders: its sets, its loss, and the lines that it makes of records."""

import numpy as np
import pytest
import scipy.sparse

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


def test_a_file_of_entries_is_a_set_with_a_tenth_held_out(tmp_path):
    entries = scipy.sparse.random(300, 200, 0.1, "csr", random_state=2)
    scipy.sparse.save_npz(tmp_path / "taken.npz", entries)
    one, held = recommend.set_of(str(tmp_path / "taken.npz"))
    assert one.multiply(held).nnz == 0
    assert ((one + held) != (entries != 0)).nnz == 0
    assert 0.05 < held.nnz / entries.nnz < 0.15
    assert recommend.name_of(str(tmp_path / "taken.npz")) == "taken"


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
        "seconds": [3 * s for s in own["seconds"]],
        "loss": own["loss"] * 1.01,
    }
    (line,) = recommend.ratios([own, other, {"suite": "recommend", "side": "x", "error": "no implicit"}])
    assert line["ratio"] == pytest.approx(3)
    assert line["ratio_reach"] == pytest.approx(3)
    assert line["loss"] == pytest.approx(1 / 1.01)
    late = other | {"recall": [0.0, 0.0, max(own["recall"])]}
    first = next(number for number, recall in enumerate(own["recall"]) if recall >= 0.99 * max(own["recall"]))
    reach = sum(late["seconds"]) / sum(own["seconds"][: first + 1])
    assert recommend.ratios([own, late])[0]["ratio_reach"] == pytest.approx(reach)
    more_threads = [record | {"threads": 2} for record in (own, other)]
    assert [line["threads"] for line in recommend.ratios([own, other, *more_threads])] == [1, 2]
    text = recommend.page([own, other], "python -m benchmarks recommend")
    assert "take 3.00 times our time" in text


def test_ease_agrees_with_numpy():
    record = recommend.measure_ease(150, 1)
    assert record["error"] < 1e-5
    assert np.isfinite(record["seconds"]).all()
    assert "EASE of 150 items" in recommend.page([record], "")
