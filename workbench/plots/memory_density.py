"""Peak bytes against density: one line a configuration, the best two bold, what did not fit, and where they cross."""

import pandas as pd
from matplotlib.figure import Figure

from workbench.plots import density
from workbench.plots.chart import register_chart

MEASURE = "bytes_peak"


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, candidates: str) -> str:
    """Draw peak memory against density, or bars if there is one density; return the sentence below the chart.

    `group` is a label, None for the largest; `candidates` a key of `style.SHOWN`. A message if nothing can be drawn.
    """
    return density.draw(frame, figure, MEASURE, "peak memory", group, candidates)


def table(frame: pd.DataFrame, *, group: str | None, candidates: str) -> pd.DataFrame:
    """Return peak memory, rounds and result as text, a row for each record of the candidates, failed ones too."""
    return density.table(
        density.Shown.of(frame, MEASURE, group, candidates).rows,
        ["bytes_peak", "bytes_predicted", "bytes_held", "bytes_needed"],
    )


register_chart(__name__, "Memory against density", density.controls())
