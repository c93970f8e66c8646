"""Charts of rows, one a file; a file is in the registry by being in this folder.

Matplotlib is loaded when the first chart is asked for, and only its Figure: a chart never opens a window.
"""

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.analysis import bench, cells

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.plots.chart import Chart

POOLED = {"trials": cells.latest, "bench": bench.latest}
"""What makes one row a cell of a table's rows."""

EMPTY = "No rows yet: nothing has been measured."


@cache
def charts() -> dict[str, "Chart"]:
    """All charts by name, in alphabetical order of their files."""
    found: dict[str, Chart] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        chart = getattr(importlib.import_module(module.name), "CHART", None)
        if chart is not None and found.setdefault(chart.name, chart) is not chart:
            raise ValueError(f"Two charts are named {chart.name!r}, the second in {module.name}; rename one.")
    return found


def names(rows: str = "trials") -> list[str]:
    """Names of the charts of one table's rows: trials, or bench."""
    return [name for name, chart in charts().items() if chart.rows == rows]


def get(name: str) -> "Chart":
    """The chart of that name; ValueError lists the known ones."""
    if name not in charts():
        raise ValueError(f"There is no chart {name!r}; there is: {', '.join(charts())}.")
    return charts()[name]


def draw(name: str, frame: "pd.DataFrame", figure: "Figure", **controls: Any) -> str:
    """Draw a chart on a figure, which is cleared first; returns the sentence that says what it shows.

    Controls not given, or None, take their initial value for this frame. An empty frame gives a message on the figure.
    """
    import matplotlib

    from workbench.plots.chart import message

    figure.clear()
    figure.set_layout_engine("constrained")
    chart = get(name)
    pooled = POOLED[chart.rows](frame)
    chosen = chart.chosen(pooled, controls)
    with matplotlib.rc_context({"text.parse_math": False}):  # a "$" in a name is a "$"
        return message(figure, EMPTY) if pooled.empty else chart.draw(pooled, figure, **chosen)


def table(name: str, frame: "pd.DataFrame", **controls: Any) -> "pd.DataFrame":
    """The numbers behind a chart, as text with units, one row a cell; empty for an empty frame."""
    import pandas as pd

    chart = get(name)
    pooled = POOLED[chart.rows](frame)
    chosen = chart.chosen(pooled, controls)
    return pd.DataFrame() if pooled.empty else chart.table(pooled, **chosen)
