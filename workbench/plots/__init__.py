"""Charts of rows, one a file; a file is in the registry by being in this folder.

Matplotlib is loaded when the first chart is asked for, and only its Figure: a chart never opens a window.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.analysis import configurations

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from kernels.registry import Registry
    from workbench.plots.chart import Chart

POOLED: "dict[str, Callable[[pd.DataFrame], pd.DataFrame]]" = {
    "trials": configurations.pool_rounds,
    "sizes": configurations.pool_rounds,
    "profile": lambda frame: frame,
    "runs": lambda frame: frame,
}
"""What makes one row a configuration, by the kind of rows that a chart reads."""

EMPTY = "Nothing was measured yet."


def _charts() -> "Registry[Chart]":
    """Return the registry of charts, imported on first use."""
    from workbench.plots.chart import charts

    return charts


def names(rows: str = "trials") -> list[str]:
    """Return the names of the charts that read one type of records, a key of `POOLED` such as "trials"."""
    return [name for name in _charts().names() if get(name).rows == rows]


def get(name: str) -> "Chart":
    """Return the chart of that name, imported on first use; ValueError lists the known ones."""
    return _charts().get(name)


def unavailable() -> dict[str, str]:
    """Return {chart: reason} of charts whose files could not be imported."""
    return _charts().unavailable()


def draw(name: "str | Chart", frame: "pd.DataFrame", figure: "Figure", **controls: Any) -> str:
    """Clear the figure, draw a chart, given itself or by name, on it, and return the sentence that says what it shows.

    A SubFigure of a larger figure is cleared and drawn on alone.
    Controls not given, or None, take their initial value for this frame. An empty frame gives a message on the figure.
    ValueError for an unknown chart, control or value.
    """
    import matplotlib

    from workbench.plots.chart import message
    from workbench.plots.style import fit_ticks

    figure.clear()
    root = figure.get_figure(root=True)
    assert root is not None
    root.set_layout_engine("constrained")
    chart = get(name) if isinstance(name, str) else name
    pooled = (chart.pool or POOLED[chart.rows])(frame)
    chosen = chart.chosen(pooled, controls)
    with matplotlib.rc_context({"text.parse_math": False}):  # a "$" in a name is a "$"
        if pooled.empty:
            return message(figure, EMPTY)
        sentence = chart.draw(pooled, figure, **chosen)
        fit_ticks(root)
    return sentence


def table(name: "str | Chart", frame: "pd.DataFrame", **controls: Any) -> "pd.DataFrame":
    """Return the numbers behind a chart, as text with units, a row for each configuration; empty for an empty frame.

    ValueError for an unknown chart, control or value.
    """
    import pandas as pd

    chart = get(name) if isinstance(name, str) else name
    pooled = (chart.pool or POOLED[chart.rows])(frame)
    chosen = chart.chosen(pooled, controls)
    return pd.DataFrame() if pooled.empty else chart.table(pooled, **chosen)
