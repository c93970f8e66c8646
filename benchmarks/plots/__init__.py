"""Charts of the benchmarks' records, one a file, as `workbench.plots.chart` describes them."""

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.analysis import bench, fit, self_trial
from kernels.registry import Registry
from workbench import plots
from workbench.plots.chart import Chart, Control, chart_of_module

POOLED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "bench": bench.newest_records,
    "fit": fit.newest_records,
    "end": lambda frame: frame,
    "self": self_trial.newest_outcomes,
    "cluster": lambda frame: frame.drop_duplicates(["key", "machine"], keep="last"),
}
"""What makes one row a configuration, by the kind of rows that a chart reads."""

charts: Registry[Chart] = Registry("chart", ("benchmarks.plots",), ValueError, is_named_by_files=True)
get, unavailable = charts.get, charts.unavailable


def register_chart(module: str, title: str, controls: tuple[Control, ...] = (), rows: str = "bench") -> None:
    """Register the chart that a file draws, as `workbench.plots.chart.register_chart` does."""
    charts.register(chart_of_module(module, title, controls, rows, pool=POOLED[rows]))


def names(rows: str) -> list[str]:
    """Return the names of the charts that read one type of records, a key of `POOLED`."""
    return [name for name in charts.names() if get(name).rows == rows]


def draw(name: str, frame: pd.DataFrame, figure: Figure, **controls: Any) -> str:
    """Clear the figure, draw the chart on it, and return the sentence that says what it shows."""
    return plots.draw(get(name), frame, figure, **controls)


def table(name: str, frame: pd.DataFrame, **controls: Any) -> pd.DataFrame:
    """Return the numbers behind a chart, as text with units; empty for an empty frame."""
    return plots.table(get(name), frame, **controls)
