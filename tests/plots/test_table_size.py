"""The chart of cost against the size of tables: what they draw, and what they say."""

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.support.figures import said
from tests.support.size_rows import swept
from workbench import plots, store
from workbench.analysis import pool_rounds
from workbench.plots import style


def drawn(name, frame, **controls):
    figure = Figure(figsize=(9, 5.4))
    return figure, plots.draw(name, frame, figure, **controls)


def test_nothing_measured_is_said_so():
    assert drawn("table_size", store.frame())[1] == plots.EMPTY


def test_an_epoch_is_drawn_against_the_rows_of_the_tables():
    frame = store.frame(swept())
    figure, sentence = drawn("table_size", frame)
    whole, lazy = (line for line in figure.axes[0].get_lines() if line.get_label() != "_")
    pooled = pool_rounds(frame)
    for line, gradient in ((whole, "dense"), (lazy, "row_sparse")):
        rows = pooled[pooled["gradient"] == gradient].sort_values("features")
        np.testing.assert_allclose(np.asarray(line.get_xdata(), float), rows["features"].astype(float))
        np.testing.assert_allclose(
            np.asarray(line.get_ydata(), float), (rows["seconds_step"] * rows["steps_epoch"]).astype(float), rtol=0.005
        )
    assert to_hex(whole.get_color()) == style.DENSE
    assert "active rows at 100,000 rows" in said(figure)
    assert "active rows at 100,000 rows. At 100,000 rows 10 times faster" in sentence
    assert drawn("table_size", frame, measure="memory")[1].startswith("Rows of a table, less memory: ")
    assert len(plots.table("table_size", frame)) == 6


def test_cells_that_failed_are_counted():
    rows = [
        row | {"status": "timeout", "reason": "no result after 60 s"} if row["features"] == 10_000 else row
        for row in swept()
    ]
    assert "no result: 2 timeout" in said(drawn("table_size", store.frame(rows))[0])
