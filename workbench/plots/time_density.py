"""Seconds a step against density: one line a configuration, the best two bold, and where they cross."""

import pandas as pd
from matplotlib.figure import Figure

from workbench.plots import density
from workbench.plots.chart import register_chart

MEASURE = "seconds_step"


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, candidates: str) -> str:
    """Draw time a step against density, or bars if there is one density; return the sentence below the chart.

    `group` is a label, None for the largest; `candidates` a key of `style.SHOWN`. A message if nothing can be drawn.
    """
    return density.draw(frame, figure, MEASURE, "time a step", group, candidates)


def table(frame: pd.DataFrame, *, group: str | None, candidates: str) -> pd.DataFrame:
    """Return time a step, rounds and result as text, a row for each record of the candidates, failed ones too."""
    return density.table(density.Shown.of(frame, MEASURE, group, candidates).rows, ["seconds_step"])


register_chart(__name__, "Time a step against density", density.controls())
