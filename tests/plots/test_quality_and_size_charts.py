"""The charts of quality against seconds and of cost against the size of tables: what they draw, and what they say."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.support.curve_points import point, two
from tests.support.figures import said
from tests.support.quiet_ratios import known
from tests.support.size_rows import swept
from workbench import plots, store
from workbench.analysis import curves, pool_rounds
from workbench.plots import style


def drawn(name, frame, **controls):
    figure = Figure(figsize=(9, 5.4))
    return figure, plots.draw(name, frame, figure, **controls)


def test_quality_is_drawn_against_seconds_ours_full_and_competitors_dashed():
    level = point("click rate alone", side="reference", value=0.5, epoch=None, seconds=None)
    both = curves.frame([*two().to_dict("records"), level])
    figure, sentence = drawn("quality_seconds", both)
    ours, theirs, line = figure.axes[0].get_lines()
    np.testing.assert_allclose(ours.get_xdata(), [1.0, 2.0])
    np.testing.assert_allclose(ours.get_ydata(), [0.795, 0.845])
    assert (ours.get_linestyle(), theirs.get_linestyle()) == ("-", "--")
    assert line.get_label() == "click rate alone"
    assert "ours ends with the best AUC" in said(figure)
    assert "AUC on held-out rows (more is better)" in figure.axes[0].get_ylabel()
    low, high = (f"{end:.2g}" for end in known(8.0, 4)[1:])
    assert f"ours is {low} to {high} times faster" in sentence
    assert list(plots.table("quality_seconds", both)["who"]) == ["ours"] * 4 + ["theirs"] * 4


@pytest.mark.parametrize("name", ["quality_seconds", "table_size"])
def test_nothing_measured_is_said_so(name):
    empty = curves.frame([]) if name == "quality_seconds" else store.frame()
    assert drawn(name, empty)[1] == plots.EMPTY


def test_an_epoch_is_drawn_against_the_rows_of_the_tables():
    frame = store.frame(swept())
    figure, sentence = drawn("table_size", frame)
    whole, lazy = (bars.lines[0] for bars in figure.axes[0].containers)
    pooled = pool_rounds(frame)
    for line, gradient in ((whole, "dense"), (lazy, "row_sparse")):
        rows = pooled[pooled["gradient"] == gradient].sort_values("features")
        np.testing.assert_allclose(np.asarray(line.get_xdata(), float), rows["features"].astype(float))
        np.testing.assert_allclose(
            np.asarray(line.get_ydata(), float), (rows["seconds_step"] * rows["steps_epoch"]).astype(float), rtol=0.005
        )
    assert to_hex(whole.get_color()) == style.DENSE
    assert "Active rows are faster from 100,000 rows on" in said(figure)
    assert sentence.startswith("For time, active rows win")
    assert drawn("table_size", frame, measure="memory")[1].startswith("For memory")
    assert len(plots.table("table_size", frame)) == 6


def test_cells_that_failed_are_counted():
    rows = [
        row | {"status": "timeout", "reason": "no result after 60 s"} if row["features"] == 10_000 else row
        for row in swept()
    ]
    assert "no result: 2 timeout" in said(drawn("table_size", store.frame(rows))[0])
