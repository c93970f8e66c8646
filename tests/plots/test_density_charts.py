"""Charts against density: the best two candidates, the data's own density, disturbed rounds, failures, and bars."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from tests.support import rows as maker
from tests.support.figures import drawn, notes, said
from workbench import plots, store
from workbench.analysis import breakeven, configurations, pool_rounds
from workbench.analysis.configurations import records
from workbench.analysis.intervals import interval_of, shown_value
from workbench.plots import density, style

MANY = (
    *maker.BOTH_AT_THEIR_BEST,
    replace(maker.SERIAL, execution="epoch", fixed=4.6e-3),
    replace(maker.HELD_AS_CSR, execution="step", fixed=8.5e-3),
)


def lines_of(figure, width):
    return {
        str(line.get_label()).removeprefix("_"): line
        for line in figure.axes[0].get_lines()
        if line.get_linewidth() == width and len(line.get_xdata()) > 1
    }


def ends(figure):
    """What is written at the ends of lines."""
    return [text.get_text().replace("\n", " ") for text in figure.axes[0].texts if text.arrow_patch is not None]


def test_the_best_sparse_and_the_best_dense_candidate_are_bold_with_their_intervals_and_named_at_their_ends():
    frame = pool_rounds(store.frame(maker.sweep(MANY, noise=0.003)))
    group = configurations.groups(frame)[0]
    best = style.best_lines(group)
    figure, _ = drawn("time_density", maker.sweep(MANY, noise=0.003))
    bold, thin = lines_of(figure, style.BOLD), lines_of(figure, style.THIN)
    assert len(bold) == 2
    assert set(ends(figure)) == set(bold)
    assert len(thin) == len({configurations.line_key(row) for row in group.rows}) - 2
    for key in best:
        rows = sorted((row for row in group.rows if configurations.line_key(row) == key), key=configurations.density_of)
        (line,) = (line for line in bold.values() if len(line.get_xdata()) == len(rows) and np.allclose(
            line.get_ydata(), [shown_value(row, "seconds_step") for row in rows], rtol=1e-12))  # fmt: skip
        known = [interval_of(row, "seconds_step") for row in rows]
        colour = to_hex(line.get_color())
        (band,) = (area for area in figure.axes[0].collections if to_hex(area.get_facecolor()[0]) == colour)
        heights = band.get_paths()[0].vertices[:, 1]
        assert {interval.low for interval in known} | {interval.high for interval in known} <= set(heights)


def test_other_candidates_are_named_or_left_out_on_demand():
    rows = maker.sweep(MANY, noise=0.003)
    assert len(ends(drawn("time_density", rows, candidates="named")[0])) == 9
    figure, _ = drawn("time_density", rows, candidates="best")
    assert not lines_of(figure, style.THIN)
    assert len(plots.table("time_density", store.frame(rows), candidates="best")) == 2 * len(maker.DENSITIES)
    assert len(plots.table("time_density", store.frame(rows))) == 9 * len(maker.DENSITIES)


@pytest.mark.parametrize("name", ["time_density", "memory_density"])
@pytest.mark.parametrize("size", [(4.2, 5.2), (12.8, 7.2)])
def test_names_at_the_ends_of_lines_are_apart_and_inside_the_figure(name, size):
    figure = Figure(figsize=size)
    plots.draw(name, store.frame(maker.sweep(MANY)), figure)
    figure.draw_without_rendering()
    labels = [text for text in figure.axes[0].texts if text.arrow_patch is not None]
    boxes = [Text.get_window_extent(text) for text in labels]  # without its line
    assert max(box.x1 for box in boxes) <= figure.bbox.x1 + 1
    assert not boxes[0].overlaps(boxes[1])


def test_one_density_is_bars_in_order():
    laws = (maker.DENSE, maker.SERIAL, maker.SPARSE)
    for name, column in (("time_density", "seconds_step"), ("memory_density", "bytes_peak")):
        figure, _ = drawn(name, [row | {"density": None} for row in maker.sweep(laws, (0.05,), noise=0.01)])
        axes = figure.axes[0]
        pooled = pool_rounds(store.frame(maker.sweep(laws, (0.05,), noise=0.01)))
        pooled[column] = [shown_value(row, column) for row in records(pooled)]
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], sorted(pooled[column]))
        assert [bar.get_alpha() for bar in axes.patches].count(1) == 2, "the best two"
        assert "density the data's own, 5.01 %" in said(figure)
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert set(names) == {"dense", "dense, 1 thread", "sparse"}


def test_of_many_bars_the_slowest_are_in_the_table_alone():
    figure, _ = drawn("time_density", maker.sweep(MANY, (0.1,), noise=0.003))
    assert len(figure.axes[0].patches) == density.MOST_BARS
    assert "1 more in the table" in said(figure)


def test_the_data_s_own_density_is_shown_first_and_marked_among_others():
    rows = [row | {"density": None} if row["density"] == 0.003 else row for row in maker.sweep()]
    for name in ("phases", "learning"):
        control = next(control for control in plots.get(name).controls if control.name == "density")
        assert control.initial(pool_rounds(store.frame(rows))) == "the data's own"
        assert "density the data's own, 0.301 %" in said(drawn(name, rows)[0])
    for name in ("time_density", "memory_density"):
        assert "the data's own, 0.301 %" in said(drawn(name, rows)[0])
        assert "the data's own" not in said(drawn(name, maker.sweep())[0])


def test_what_ran_only_beside_other_programs_is_hollow_on_its_line():
    rows = [maker.disturbed(row) if row["density"] == 0.01 and row["format"] == "csr" else row for row in maker.sweep()]
    figure, _ = drawn("time_density", rows)
    hollow = [
        line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    ]
    (known,) = pool_rounds(store.frame(rows)).query("status == 'disturbed'").to_dict("records")
    assert [line.get_xydata().tolist() for line in hollow] == [
        [pytest.approx([known["density_measured"], shown_value(known, "seconds_step")])]
    ]
    assert all(len(line.get_xdata()) == 6 for line in lines_of(figure, style.BOLD).values())
    assert "hollow: 1 configuration only next to other programs" in said(figure)
    assert style.DISTURBED not in said(drawn("memory_density", rows)[0]), "memory is the same next to other programs"


def test_what_ran_only_beside_other_programs_is_told_in_charts_of_one_density():
    rows = [maker.disturbed(row) if row["format"] == "csr" else row for row in maker.sweep(densities=(0.01,))]
    figure, sentence = drawn("phases", rows)
    assert f"pale: 1 configuration only {style.DISTURBED}" in said(figure)
    assert sentence.startswith("At 1 % density a step of dense spends"), "the finding is of what was left alone"
    assert "hollow: 1 configuration only" in said(drawn("time_density", rows)[0])


def test_few_rounds_have_intervals_and_a_break_even_is_a_grey_band():
    for rounds in (1, 2):
        figure, _ = drawn("time_density", maker.sweep(rounds=rounds))
        (even,) = breakeven(store.frame(maker.sweep(rounds=rounds)))
        assert notes(figure) == [f"break-even {even.place.removesuffix(' density')}"]
        (band,) = figure.axes[0].patches
        assert to_hex(band.get_facecolor()) == style.GREY
        assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((even.low, even.high))


def test_a_range_is_a_band_without_a_line():
    noisy = maker.sweep(noise=0.3, seed=3)
    (even,) = breakeven(store.frame(noisy))
    assert even.is_range
    figure, _ = drawn("time_density", noisy)
    assert notes(figure) == [f"break-even {even.place.removesuffix(' density')}"]
    assert not [line for line in figure.axes[0].get_lines() if len(set(line.get_xdata())) == 1 < len(line.get_xdata())]


def test_rows_of_other_seeds_are_one_point_of_a_line_and_named_apart():
    rows = [*maker.sweep(noise=0.01), *maker.sweep(learning_rate=0.5, noise=0.01, seed=1)]
    figure, _ = drawn("time_density", rows)
    assert {len(set(line.get_xdata())) for line in lines_of(figure, style.BOLD).values()} == {6}
    names = [label.get_text() for label in drawn("phases", rows)[0].axes[0].get_yticklabels()]
    assert len(set(names)) == len(names) == 4
    assert "dense · learning rate 0.5" in names


@pytest.mark.parametrize("name", ["time_density", "phases"])
def test_a_narrow_figure_names_its_bars_above_them(name):
    figure = Figure(figsize=(4.25, 6))
    plots.draw(name, store.frame(maker.sweep(densities=(0.05,))), figure)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts if text.get_gid() == style.NAMES_OF_BARS] == [
        text.get_text() for text in drawn(name, maker.sweep(densities=(0.05,)))[0].axes[0].get_yticklabels()
    ]
    assert axes.get_window_extent().width > 0.7 * figure.get_window_extent().width


def test_a_dense_array_that_did_not_fit_is_told_beside_data_held_as_csr():
    rows = [maker.unfit(row) if (row["format"], row["storage"]) == ("dense", "same") else row for row in
            maker.sweep((maker.DENSE, maker.HELD_AS_CSR, maker.SPARSE))]  # fmt: skip
    figure, _ = drawn("time_density", rows)
    assert "dense needs 82 GB" in said(figure)
    assert "dense from CSR batches, whole epochs" in ends(figure)
