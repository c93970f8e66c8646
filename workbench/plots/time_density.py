"""Seconds a step against density: one line a configuration, the dense baseline, and where they cross."""

import pandas as pd
from matplotlib.figure import Figure

from workbench.analysis.advisor import headline
from workbench.plots import density, style
from workbench.plots.chart import Chart, message, register

MEASURE = "seconds_step"


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, update: str, crossings: str) -> str:
    """Both axes logarithmic; whiskers and bands are 95 % intervals."""
    shown = density.Shown.of(frame, MEASURE, group, update)
    if nothing := density.nothing(shown, MEASURE):
        return message(figure, nothing)
    axes = density.axes_of(figure, shown, MEASURE, "time a step")
    density.baseline(axes, shown.dense, MEASURE)
    for rows in shown.lines:
        density.whiskers(axes, rows, MEASURE, shown.label(rows[0]))
    density.marks(axes, shown, MEASURE, crossings)
    title, sentence = headline(shown.group, MEASURE, shown.evens)
    style.finish(figure, axes, title, shown.group, "whiskers and bands: 95 % intervals")
    return sentence


def table(frame: pd.DataFrame, *, group: str | None, update: str, crossings: str) -> pd.DataFrame:
    """Every cell of the group, those without a result too."""
    shown = density.Shown.of(frame, MEASURE, group, update)
    return density.table(shown.rows, [MEASURE])


register(Chart("time_density", "Time a step against density", draw, table, density.controls()))
