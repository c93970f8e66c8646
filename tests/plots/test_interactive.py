"""Interactive charts: they have all that the drawn chart has, its values with intervals, and are valid JSON."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.plots.test_plots import PICTURES, frame_of
from tests.support import rows as maker
from workbench import plots, store
from workbench.analysis import pool_rounds
from workbench.analysis.configurations import records
from workbench.analysis.intervals import interval_of
from workbench.panels import picture
from workbench.plots import interactive
from workbench.plots.chart import is_message


def described(name, frame, **controls):
    figure = Figure(figsize=(9, 5.4))
    plots.draw(name, frame, figure, **controls)
    return figure, interactive.describe(figure)


@pytest.mark.covering(targets=lambda case: {case["name"], case["records"]})
@pytest.mark.parametrize(("rows", "name", "records"), PICTURES)
def test_each_chart_of_one_plot_is_described_and_each_name_is_listed_once(rows, name, records):
    figure, chart = described(name, frame_of(records))
    if is_message(figure) or len(figure.axes) > 1:
        assert chart is None
        return
    json.dumps(chart, allow_nan=False)
    assert chart["data"]
    listed = [trace["legendgroup"] for trace in chart["data"] if trace["showlegend"]]
    assert len(listed) == len(set(listed))
    assert all(name for name in listed)
    scales = [figure.axes[0].get_xscale(), figure.axes[0].get_yscale()]
    assert ("updatemenus" in chart["layout"]) == ("log" in scales)
    for name, scale in zip(("xaxis", "yaxis"), scales, strict=True):
        assert chart["layout"][name]["type"] == scale


def test_points_have_their_values_with_intervals_and_the_best_two_are_bold():
    frame = store.frame(maker.sweep())
    _, chart = described("time_density", frame)
    lines = {trace["legendgroup"]: trace for trace in chart["data"] if trace["showlegend"]}
    assert {trace["name"] for trace in lines.values()} == {"<b>dense</b>", "<b>sparse</b>"}
    rows = records(pool_rounds(frame).query("format == 'csr'"))
    known = [interval_of(row, "seconds_step") for row in rows]
    np.testing.assert_allclose(lines["sparse"]["y"], [one.value for one in known], rtol=1e-5)
    np.testing.assert_allclose(lines["sparse"]["x"], [row["density_measured"] for row in rows], rtol=1e-5)
    assert all("(95 %: " in text for text in lines["sparse"]["hovertext"])
    bands = [trace for trace in chart["data"] if trace.get("fill") == "toself" and trace["legendgroup"] == "sparse"]
    assert min(bands[0]["y"]) == pytest.approx(min(one.low for one in known), rel=1e-5)


def test_disturbed_points_are_hollow():
    _, chart = described("time_density", frame_of("busy"))
    hollow = [trace for trace in chart["data"] if trace.get("marker", {}).get("color") == "#ffffff"]
    assert sum(len(trace["x"]) for trace in hollow) > 6


def test_a_notebook_gets_the_chart_and_a_picture():
    bundle = picture.draw("time_density", store.frame(maker.sweep()))._repr_mimebundle_()
    assert bundle[interactive.MIME]["data"]
    assert "data:image/svg+xml" in bundle["text/html"]
    assert interactive.MIME not in picture.draw("time_density", store.frame())._repr_mimebundle_()
