"""The chart of bounds: shares are bounds over the phases' times as the step has them; unknown ones are said."""

import pytest
from matplotlib.figure import Figure

from tests.support import rows as maker
from tests.support.figures import drawn, said, texts
from workbench import plots, store
from workbench.analysis import configurations
from workbench.plots.bounds import reached
from workbench.reports import report


def swept(share=0.5, **more) -> list[dict]:
    """Rows whose forward and gradient reach that share of a stream's bound."""
    rows = maker.sweep(densities=(0.01, 0.1), noise=0.0)
    return [row | {"bounds": [_bound(row, phase, share) for phase in ("forward", "gradient")]} | more for row in rows]


def _bound(row, phase, share) -> dict:
    known = {"bytes": 2_000_000, "bytes_gather": 6_000_000, "flops": 1_000_000, "by": "stream", "kernel": "csr_dense"}
    return known | {"phase": phase, "seconds": share * row[f"seconds_{phase}"]}


def test_shares_are_of_the_phases_times_as_the_step_has_them():
    [row] = configurations.records(configurations.pool_rounds(store.frame(swept()[:1])))
    scale = row["seconds_step"] / sum(row[f"seconds_{name}"] or 0 for name in maker.PHASES)
    assert [one.phase for one in reached(row)] == ["forward", "gradient"]
    for one in reached(row):
        assert one.seconds == pytest.approx(scale * row[f"seconds_{one.phase}"])
        assert one.share == pytest.approx(0.5 / scale)


def test_the_sentence_names_what_both_sides_reach_and_what_is_furthest():
    figure, sentence = drawn("bounds", swept(), density="1 %")
    best = "sparse"
    assert sentence.startswith(f"At 1 % density {best} runs at 50 % and dense runs at 50 % of the possible speed")
    assert "furthest from it is the " in sentence
    assert "(stream)" in sentence
    assert "What limits the speed: stream, the memory read in order." in sentence
    assert "the bound: a kernel's own work" in said(figure)
    assert "50 %, stream" in said(figure)


def test_a_share_above_the_bound_is_explained():
    assert "Over 100 % the machine was faster in the trial" in drawn("bounds", swept(share=1.2))[1]
    assert "Over 100 %" not in drawn("bounds", swept())[1]


def test_rows_without_bounds_say_why_in_chart_and_table():
    figure, sentence = drawn("bounds", maker.sweep())
    assert sentence.startswith("Bounds of kernels are not known: ")
    assert not figure.axes[0].axison
    table = plots.table("bounds", store.frame(maker.sweep()))
    assert set(table["kernel"]) == {sentence.removeprefix("Bounds of kernels are ").removesuffix(".")}
    assert not table.isna().any(axis=None)


def test_the_table_has_rates_that_the_bytes_and_the_time_give():
    [row] = configurations.records(configurations.pool_rounds(store.frame(swept()[:1])))
    [first, _] = plots.table("bounds", store.frame(swept()[:1])).to_dict("records")
    assert first["kernel"] == "csr_dense"
    rate = 6_000_000 / reached(row)[0].seconds
    assert float(first["moves"].split()[0]) * 1e9 == pytest.approx(rate, rel=0.06)


@pytest.mark.parametrize("share", [0.1, 1.2])
@pytest.mark.parametrize("name", ["bounds", "phases", "time_density", "memory_density", "learning"])
def test_no_text_of_a_narrow_chart_is_cut_off(name, share):
    """A window of a phone has charts of this width; names are long, as those of real runs."""
    rows = [row | {"dataset": "stdlib, rare classes as one"} for row in swept(share)]
    figure = Figure(figsize=report.NARROW_INCHES)
    plots.draw(name, store.frame(rows), figure)
    figure.draw_without_rendering()
    ticks = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
    boxes = {text.get_text(): text.get_window_extent() for text in set(texts(figure)) - ticks}
    width = figure.get_window_extent().width
    assert [text for text, box in boxes.items() if box.x0 < 0 or box.x1 > width] == []
    for axes in figure.axes:
        assert axes.get_window_extent().width > 0.6 * width
