"""Quality beside speed: time to what dense comes to, what no other beats in both, and what an update moved."""

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from tests.support import rows as maker
from workbench import plots, store
from workbench.analysis import configurations, curves

LAZY = replace(maker.SPARSE, update="lazy", fixed=6e-5, loss_last=0.37, quality=0.895)
EXACT = replace(maker.SPARSE, update="exact", quality=0.91)


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


def test_on_the_frontier_is_what_none_other_is_as_fast_and_better_than():
    found = curves.trained_records(rows_of(maker.DENSE, maker.SPARSE, LAZY))
    assert [one.row["update"] for one in curves.pareto_front(found)] == ["lazy", "standard"]
    assert all(one.row["format"] == "csr" for one in curves.pareto_front(found))


def test_lazy_and_exact_are_held_against_the_standard_update_trained_alike():
    found = {
        one.row["update"]: one
        for one in curves.differences_from_dense_update(rows_of(maker.DENSE, maker.SPARSE, LAZY, EXACT))
    }
    assert set(found) == {"lazy", "exact"}
    assert found["lazy"].standard["format"] == "csr"
    assert (found["lazy"].quality, found["lazy"].loss) == (pytest.approx(-0.015), pytest.approx(0.02))
    assert found["exact"].quality == pytest.approx(0.0)


def test_the_chart_names_who_reaches_first_and_who_never_does():
    said = plots.draw("frontier", frame_of(maker.DENSE, maker.SPARSE, LAZY), Figure())
    assert "what dense comes to less 1 %, CSR ours (row_sparse gradient, standard update) reaches first, in" in said
    assert "never: CSR ours (row_sparse gradient, lazy update)" in said
    assert "lazy ones move the quality by -0.015 at most" in said
    table = plots.table("frontier", frame_of(maker.DENSE, maker.SPARSE, LAZY))
    assert table["to dense's quality"].tolist()[1] == "never"
    assert table["on the frontier"].tolist() == ["no", "yes", "yes"]
