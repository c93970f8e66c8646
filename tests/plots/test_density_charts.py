"""Charts against density: baselines, the data's own density, disturbed and few rounds, ranges, and bars."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.support import rows as maker
from tests.support.figures import drawn, notes, said
from workbench import plots, store
from workbench.analysis import breakeven, pool_rounds
from workbench.analysis.configurations import records
from workbench.analysis.intervals import shown_value
from workbench.plots import density, style


def test_one_density_is_bars_with_the_better_baseline_marked():
    laws = (maker.DENSE, maker.SERIAL, maker.SPARSE)
    for name, column in (("time_density", "seconds_step"), ("memory_density", "bytes_peak")):
        figure, _ = drawn(name, [row | {"density": None} for row in maker.sweep(laws, (0.05,), noise=0.01)])
        axes = figure.axes[0]
        pooled = pool_rounds(store.frame(maker.sweep(laws, (0.05,), noise=0.01)))
        pooled[column] = [shown_value(row, column) for row in records(pooled)]
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], sorted(pooled[column]))
        baseline = next(line for line in axes.get_lines() if "baseline" in str(line.get_label()))
        assert baseline.get_xdata()[0] == pytest.approx(pooled[pooled["format"] == "dense"][column].min())
        assert "density the data's own, 5.01 %" in said(figure)
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert set(names) == {"dense", "dense, 1 thread", "CSR ours · row_sparse gradient"}


def test_the_data_s_own_density_is_shown_first_and_marked_among_others():
    rows = [row | {"density": None} if row["density"] == 0.003 else row for row in maker.sweep()]
    for name in ("phases", "loss_seconds"):
        control = next(control for control in plots.get(name).controls if control.name == "density")
        assert control.initial(pool_rounds(store.frame(rows))) == "the data's own"
        assert "density the data's own, 0.301 %" in said(drawn(name, rows)[0])
    for name in ("time_density", "memory_density"):
        assert "the data's own, 0.301 %" in said(drawn(name, rows)[0])
        assert "the data's own" not in said(drawn(name, maker.sweep())[0])


def test_both_baselines_are_drawn_and_told_apart():
    figure, _ = drawn("time_density", maker.sweep((maker.DENSE, maker.SERIAL, maker.SPARSE)))
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines["dense"].get_linestyle() != lines["dense, 1 thread"].get_linestyle()
    np.testing.assert_array_less(lines["dense"].get_ydata(), lines["dense, 1 thread"].get_ydata())


def test_what_ran_only_beside_other_programs_is_pale_and_not_on_the_line():
    rows = [maker.disturbed(row) if row["density"] == 0.01 and row["format"] == "csr" else row for row in maker.sweep()]
    figure, _ = drawn("time_density", rows)
    lines = figure.axes[0].get_lines()
    quiet = next(line for line in lines if len(line.get_xdata()) == 5)
    assert not [density for density in quiet.get_xdata() if 0.009 < density < 0.011]
    (beside,) = (line for line in lines if str(line.get_label()).endswith(style.DISTURBED))
    pooled = pool_rounds(store.frame(rows))
    (known,) = pooled[pooled["status"] == "disturbed"].to_dict("records")
    assert beside.get_xydata().tolist() == [
        pytest.approx([known["density_measured"], shown_value(known, "seconds_step")])
    ]
    assert beside.get_alpha() == style.PALE
    look = [(line.get_color(), line.get_markerfacecolor(), line.get_marker()) for line in (beside, quiet)]
    assert look[0] == look[1], "the configuration is still recognised"
    assert f"{style.DISTURBED}: 4 trials" in said(figure)
    assert style.DISTURBED not in said(drawn("memory_density", rows)[0]), "memory is the same next to other programs"


def test_a_chart_of_configurations_that_all_ran_beside_other_programs_has_their_times_and_looks():
    figure, _ = drawn("time_density", [maker.disturbed(row) for row in maker.sweep()])
    pale = [line for line in figure.axes[0].get_lines() if line.get_alpha() == style.PALE and len(line.get_xdata())]
    assert sorted(len(line.get_xdata()) for line in pale) == [6, 6]
    assert len({line.get_color() for line in pale}) == 2, "each has the colour of its configuration"
    assert f"{style.DISTURBED}: 48 trials" in said(figure)
    assert "12 of 12 configurations only next to other programs" in said(figure)


def test_what_ran_only_beside_other_programs_is_never_the_baseline():
    laws = (maker.DENSE, maker.SERIAL, maker.SPARSE)
    rows = [
        maker.disturbed(row) | {"seconds_step": 1e-6} if row["format"] == "dense" and not row["serial"] else row
        for row in maker.sweep(laws, (0.05,), noise=0.01)
    ]
    axes = drawn("time_density", rows)[0].axes[0]
    baseline = next(line for line in axes.get_lines() if "baseline" in str(line.get_label()))
    assert baseline.get_label().startswith("dense, 1 thread")
    assert [bar.get_alpha() for bar in axes.patches].count(style.PALE) == 1


@pytest.mark.parametrize("name", ["phases", "loss_seconds"])
def test_what_ran_only_beside_other_programs_is_named_in_charts_of_one_density(name):
    rows = [maker.disturbed(row) if row["format"] == "csr" else row for row in maker.sweep(densities=(0.01,))]
    figure, sentence = drawn(name, rows)
    assert f", {style.DISTURBED}" in said(figure)
    assert f"{style.DISTURBED}: 4 trials" in said(figure)
    if name == "phases":
        assert sentence.startswith("At 1 % density a step of dense spends"), "the finding is of what was left alone"


def test_few_rounds_have_intervals_and_a_break_even_is_a_grey_band():
    for rounds in (1, 2):
        figure, _ = drawn("time_density", maker.sweep(rounds=rounds))
        (even,) = breakeven(store.frame(maker.sweep(rounds=rounds)))
        assert notes(figure) == [f"break-even {even.place.removesuffix(' density')}"]
        (band,) = (patch for patch in figure.axes[0].patches if patch.get_alpha() is None)
        assert to_hex(band.get_facecolor()) == style.GREY


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
    assert {len(set(line.get_xdata())) for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2} == {6}
    names = [label.get_text() for label in drawn("phases", rows)[0].axes[0].get_yticklabels()]
    assert len(set(names)) == len(names) == 4
    assert "dense · learning rate 0.5" in names


def test_a_marker_that_would_lie_on_another_is_moved_a_little_to_the_right():
    low, high, other = ({**maker.sweep()[0], "density": 0.01, "seconds_step": seconds} for seconds in (0.1, 1.0, 0.101))
    for row in (low, high, other):
        row.update(status="ok", density_measured=0.01)
    first, second, third = density.dodged([[low], [high], [other]], "seconds_step")
    assert (first, second) == ({0.01: 0.0}, {0.01: 0.0})
    assert 0 < third[0.01] < 0.1


@pytest.mark.parametrize("name", ["time_density", "phases"])
def test_a_narrow_figure_names_its_bars_above_them_and_its_ticks_are_apart(name):
    figure = Figure(figsize=(4.25, 6))
    plots.draw(name, store.frame(maker.sweep(densities=(0.05,))), figure)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.texts if text.get_gid() == style.NAMES_OF_BARS] == [
        text.get_text() for text in drawn(name, maker.sweep(densities=(0.05,)))[0].axes[0].get_yticklabels()
    ]
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert axes.get_window_extent().width > 0.7 * figure.get_window_extent().width


def test_the_only_dense_time_that_is_quiet_is_a_marker_and_no_line_over_all_densities():
    rows = [
        maker.disturbed(row) if row["format"] == "dense" and row["density"] != 0.01 else row for row in maker.sweep()
    ]
    lines = drawn("time_density", rows)[0].axes[0].get_lines()
    dense = [line for line in lines if "dense" in str(line.get_label())]
    assert not [line for line in dense if len(line.get_xdata()) == 2 and line.get_xdata()[0] == 0]
    assert [1] in [[len(line.get_xdata())] for line in lines if line.get_color() == style.DENSE]


def test_configurations_without_a_quiet_time_have_the_strokes_of_their_lines():
    laws = (maker.DENSE, maker.SPARSE, maker.IN_CALLS)
    figure, _ = drawn("time_density", [maker.disturbed(row) for row in maker.sweep(laws)])
    pale = [line for line in figure.axes[0].get_lines() if line.get_alpha() == style.PALE and len(line.get_xdata()) > 1]
    looks = {(line.get_color(), line.get_marker(), str(line.get_linestyle())) for line in pale}
    assert len(looks) == len(pale) == 3
