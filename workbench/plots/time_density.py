"""Seconds a step against density: one line a configuration, the dense baseline, and where they cross."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis.advisor import headline
from workbench.plots import density, style
from workbench.plots.chart import message, register_chart

MEASURE = "seconds_step"


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, update: str, crossings: str) -> str:
    """Draw the step time against density, both logarithmic, or bars if there is one density; return a sentence.

    `group` is a label, `update` "all" or the only update shown, `crossings` "best", "all" or "none". Error bars and
    bands are intervals of the rounds. A message if nothing can be drawn.
    """
    shown = density.Shown.of(frame, MEASURE, group, update)
    if nothing := density.nothing(shown):
        return message(figure, nothing)
    title, sentence = headline(shown.group, MEASURE)
    if shown.single:
        density.finish(figure, density.draw(figure, shown, "time a step"), title, shown, density.intervals(shown))
    else:
        style.finish(figure, _curves(figure, shown, crossings), title, shown.group, density.intervals(shown))
    return sentence


def _curves(figure: Figure, shown: density.Shown, crossings: str) -> Axes:
    """Draw time against density with baseline and break-evens; return the axes.

    `crossings` is "best", "all" or "none".
    """
    axes = density.axes_of(figure, shown, "time a step")
    density.baseline(axes, shown)
    for rows, shift in zip(shown.lines, density.dodged(shown.lines, MEASURE), strict=True):
        density.whiskers(axes, rows, MEASURE, shown.label(rows[0]), shift)
    density.marks(axes, shown, crossings)
    return axes


def table(frame: pd.DataFrame, *, group: str | None, update: str, crossings: str) -> pd.DataFrame:
    """Return time a step, rounds and result as text, a row for each record of the group, failed ones too.

    `group` is a label, None for the largest; `update` is "all" or the only update of the sparse lines; `crossings` is
    unused.
    """
    shown = density.Shown.of(frame, MEASURE, group, update)
    return density.table(shown.rows, [MEASURE])


register_chart(__name__, "Time a step against density", density.controls())
