"""`benchmarks path`: its sets, that ours comes to the minimum which scikit-learn's path does, and its page."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import alpha_path


@pytest.mark.parametrize("name", alpha_path.SETS)
def test_sets_are_the_same_each_time_and_all_weights_are_0_at_the_largest_alpha(name: str) -> None:
    x, classes, numbers = alpha_path.draw_set(name, 0.01)
    again, *_ = alpha_path.draw_set(name, 0.01)
    assert abs(x - again).max() == 0
    assert set(classes) == {0, 1}
    assert numbers.mean() == pytest.approx(0, abs=1e-9)
    for loss, y in (("logistic", classes), ("squared", numbers)):
        largest = alpha_path.largest_alpha(x, y, loss)
        first, below = alpha_path.fit_of("workbench", x, y, loss, largest * np.array([1.0001, 0.9]))(1e-8)
        assert not first.any()
        assert below.any()


def test_ours_and_scikit_learn_have_the_same_objective() -> None:
    x, _, y = alpha_path.draw_set("dense", 0.02)
    alphas = alpha_path.largest_alpha(x, y, "squared") * np.geomspace(1, 0.1, 4)
    values = []
    for side in ("workbench", "scikit-learn lasso_path"):
        found = alpha_path.fit_of(side, x, y, "squared", alphas)(1e-8)
        values.append([alpha_path.objective(x, y, "squared", *one) for one in zip(found, alphas, strict=True)])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_the_page_has_the_ratio_to_the_fastest_that_reached_the_minimum(tmp_path: Path) -> None:
    base = {"suite": "path", "set": "dense", "loss": "squared", "threads": 1, "load": 0.5, "version": "1"}
    found = [
        {**base, "side": "workbench", "seconds": [1.0, 1.0, 2.0], "excess": 0.0},
        {**base, "side": "certified", "seconds": [1.5], "excess": 0.0},
        {**base, "side": "celer", "seconds": [3.0, 2.5, 4.0], "excess": 1e-5},
        {**base, "side": "skglm", "seconds": [0.1], "excess": 1e-2},
        {**base, "side": "scikit-learn saga", "error": "scikit-learn is not installed"},
    ]
    (line,) = alpha_path.ratios(found)
    assert (line["fastest"], line["ratio"], line["low"], line["high"]) == ("celer", 3.0, 1.25, 4.0)
    assert line["certified"] == 2.0
    text = alpha_path.page(json.loads(json.dumps(found)), "python -m benchmarks path")
    assert "3.00 times our time" in text
    assert "skglm, dense, squared: 1.0e-02 above the minimum, left out." in text
    assert "These records are of before list 1 of linear competitors. Measured: skglm 1, celer 1." in text
    assert "scikit-learn saga (scikit-learn is not installed)" in text
    again = [{**one, "list": 1, "seconds": [5.0]} for one in found if one["side"] in ("celer", "workbench")]
    (line,) = alpha_path.ratios(alpha_path.newest(found + again))
    assert (line["own"], line["others"]["celer"]) == ([5.0], [5.0])


def test_a_side_that_is_missing_is_named_and_the_others_are_measured(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(alpha_path.linear, "versions", lambda python: {"scikit-learn": "1.8"})
    monkeypatch.setattr(alpha_path, "LOSSES", ("squared",))
    names = "workbench", "celer", "scikit-learn lasso_path"
    monkeypatch.setattr(alpha_path, "SIDES", {name: alpha_path.SIDES[name] for name in names})
    page = alpha_path.run(tmp_path, alpha_path.sys.executable, 1, True, 1, ("dense",))
    text = page.read_text()
    assert "celer (celer is not installed)" in text
    assert "List 1 of linear competitors. Measured: scikit-learn lasso_path 1.8." in text
    assert len((tmp_path / alpha_path.RECORDS).read_text().splitlines()) == 4


def test_a_side_that_takes_too_long_is_left_out_with_what_it_said_before() -> None:
    side = alpha_path.Side(alpha_path.sys.executable, "scikit-learn lasso_path", "dense", "squared", 0.02, 1)
    try:
        side.lines.put(json.dumps({"excess": 0.02, "is_last": False}))
        answer = side.ask(0.1, run=1e-3)
        assert answer["error"] == "left out after 0.1 s, 2.0e-02 above the minimum before"
        assert "error" in side.ask(5.0, run=1e-3)
    finally:
        side.end()
