"""Quality beside speed: the time to the quality that dense ends with."""

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from tests.support import rows as maker
from workbench import plots, store
from workbench.analysis import configurations, curves

LAZY = replace(maker.SPARSE, update="lazy", fixed=6e-5, loss_last=0.37, quality=0.895)


def curve(end, seconds, name="accuracy"):
    """Quality after three epochs, rising to its end."""
    return [{"epoch": epoch, "seconds": epoch * seconds, name: end - 0.1 * (3 - epoch)} for epoch in (1, 2, 3)]


def frame_of(*laws, name="accuracy"):
    rows = maker.sweep(laws, (0.01,), noise=0.01, epochs=3, quality_name=name)
    return store.frame(row | {"quality_curve": curve(row["quality"], row["seconds_epoch"], name)} for row in rows)


def rows_of(*laws, **known):
    return configurations.records(configurations.pool_rounds(frame_of(*laws, **known)))


def test_who_never_comes_to_the_quality_of_dense_has_no_time_to_it():
    rows = rows_of(maker.DENSE, maker.SPARSE, LAZY)
    target = curves.quality_target(rows)
    assert (target.measure, target.value) == ("accuracy", pytest.approx(0.99 * 0.91))
    reached = {one.row["update"] + one.row["format"]: one.reached for one in curves.trained_records(rows)}
    assert reached["lazycsr"] is None
    assert reached["standardcsr"] < reached["standarddense"]


def test_of_a_loss_less_is_reached():
    rows = rows_of(maker.DENSE, maker.SPARSE, name="log loss")
    assert curves.quality_target(rows).is_loss
    assert curves.quality_target(rows).value == pytest.approx(1.01 * 0.91)
    assert all(one.reached is not None for one in curves.trained_records(rows))


def test_the_chart_names_who_reaches_first_and_who_never_does():
    figure = Figure()
    said = plots.draw("learning", frame_of(maker.DENSE, maker.SPARSE, LAZY), figure, measure="quality")
    assert figure.get_suptitle().replace("\n", " ") == "Sparse reaches the quality of dense first"
    assert "that of dense less 1 %, is reached by sparse in" in said
    assert "never: sparse, lazy" in said
    assert figure.axes[0].get_ylabel() == "accuracy on held-out rows"
    assert 3 in {len(line.get_xdata()) for line in figure.axes[0].get_lines()}
    table = plots.table("learning", frame_of(maker.DENSE, maker.SPARSE, LAZY), measure="quality")
    assert table["to dense's quality"].tolist()[1] == "never"
