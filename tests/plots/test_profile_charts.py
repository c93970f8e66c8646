"""Charts of a profile: they draw every set there may be, say what they show, and mark what they name."""

import itertools
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.support.figures import said, texts
from tests.support.small_sets import csr, labelled
from workbench import data, plots

SETS = {
    "skewed": data.load("power_law", rows=300, features=400, density=0.03, cache=False),
    "wide": data.load("uniform", rows=400, features=60_000, density=0.005, cache=False),
    "constant": labelled(features=8),
    "one element": data.Dataset("one", csr((0, 1), (0,), (1,), (1, 1)), np.zeros(1, np.int64),
                                data.Labels("classes", ("a", "b")), "", ""),
    "no entries": data.Dataset("$none$", csr((0, 0), (), (), (1, 3)), np.zeros(1, np.int64),
                               data.Labels("classes", ("a", "b")), "", ""),
}  # fmt: skip


def drawn(name, dataset, inches=(9, 5.4)):
    figure = Figure(figsize=inches)
    sentence = plots.draw(name, pd.DataFrame([asdict(data.profile(dataset))]), figure)
    figure.draw_without_rendering()
    return figure, sentence


@pytest.mark.covering(targets=lambda case: {case["name"], case["kind"], case["inches"]})
@pytest.mark.parametrize("name", plots.names("profile"))
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("inches", [(9, 5.4), (5.6, 4)])
def test_every_set_is_drawn_and_told(name, kind, inches):
    figure, sentence = drawn(name, SETS[kind], inches)
    assert sentence.endswith(".")
    assert min(text.get_fontsize() for text in texts(figure)) >= 9
    table = plots.table(name, pd.DataFrame([asdict(data.profile(SETS[kind]))]))
    assert not table.empty


def side_by_side(axis):
    """Boxes of the labels of the ticks that are seen, in their order."""
    low, high = sorted(axis.get_view_interval())
    shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_text()]
    return [tick.label1.get_window_extent() for tick in sorted(shown, key=lambda tick: tick.get_loc())]


@pytest.mark.parametrize("name", plots.names("profile"))
@pytest.mark.parametrize("kind", ["skewed", "wide", "constant", "one element"])
def test_labels_of_ticks_stand_apart_on_a_small_figure(name, kind):
    figure, _ = drawn(name, SETS[kind], (5.6, 4))
    for axes in figure.axes:
        boxes = side_by_side(axes.xaxis)
        assert boxes
        assert all(left.x1 + 4 < right.x0 for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize("name", plots.names("profile"))
@pytest.mark.parametrize("kind", [kind for kind in SETS if kind != "no entries"])
def test_no_two_ticks_of_an_axis_say_the_same(name, kind):
    for axis in (axis for axes in drawn(name, SETS[kind])[0].axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        said = [tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        shown = [text for text in said if text]
        assert len(set(shown)) == len(shown) > 0


def test_rows_of_one_length_are_said_to_be_so():
    assert "Every row has 2 entries." in drawn("profile", SETS["constant"])[1]


@pytest.mark.parametrize("name", plots.names("profile"))
def test_an_empty_frame_is_told(name):
    assert plots.draw(name, pd.DataFrame(), Figure()) == plots.EMPTY


def test_the_marks_are_where_their_labels_say():
    profile = data.profile(SETS["skewed"])
    figure, sentence = drawn("profile", SETS["skewed"])
    marked = [line.get_xdata()[0] for line in figure.axes[1].lines]
    assert marked == [profile.lengths.median, profile.lengths.p99]
    assert f"the longest {profile.lengths.most:,}" in sentence
    assert "median" in said(figure)


def test_the_bars_hold_all_rows_that_have_entries():
    profile = data.profile(SETS["skewed"])
    figure, _ = drawn("profile", SETS["skewed"])
    shares = sum(bar.get_height() for bar in figure.axes[1].patches)
    assert shares == pytest.approx(100 * (1 - profile.lengths.empty / profile.rows))


def test_active_columns_stay_below_entries_and_columns():
    figure, _ = drawn("profile", SETS["skewed"])
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[2].lines}
    assert (np.array(lines["active columns"]) < lines["entries"]).all()
    assert max(lines["active columns"]) <= lines["_"][0] == 400


def test_the_line_of_zipf_goes_through_the_ranks_that_it_was_fitted_to():
    figure, _ = drawn("profile", SETS["skewed"])
    points, line = (np.log(np.array(each.get_xydata(), float)) for each in figure.axes[0].lines)
    fitted = points[(points[:, 0] >= line[0, 0]) & (points[:, 0] <= line[1, 0])]
    assert len(fitted) > 20
    assert fitted[:, 1] - np.interp(fitted[:, 0], *line.T) == pytest.approx(0, abs=0.5)
