"""Inequality of columns: the rows that store each column of a data set, by its rank, and Zipf's line."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from kernels.registry import format_count
from workbench.analysis import profiles
from workbench.analysis.configurations import Record, records
from workbench.analysis.formatting import capitalized, format_density
from workbench.plots import style
from workbench.plots.chart import message, register_chart

POINTS, LINE = "#0072B2", "#D55E00"
WIDE = 10_000
"""Ranks from which on the axis has a tick a decade: more would not fit side by side."""


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw the rows that store each column against its rank, both logarithmic; return the sentence below.

    A power law is a straight line. `frame` has the profile of one data set. A message if it has no entries.
    """
    row = records(frame)[0]
    columns = row["columns"]
    if not columns["ranks"]:
        return message(figure, f"{row['name']} stores no entry, so no column is used.")
    axes = figure.add_subplot(xscale="log", yscale="log")
    ranks, counts = np.array(columns["ranks"], np.float64).T
    axes.plot(ranks, counts, "o", color=POINTS, markersize=4.5, label="columns")
    if zipf := columns["zipf"]:
        ends = np.array([zipf["first"], zipf["last"]], np.float64)
        label = f"Zipf's line of ranks {zipf['first']} to {zipf['last']:,}, slope {-zipf['slope']:.2f}"
        axes.plot(ends, zipf["scale"] * ends ** -zipf["slope"], "--", color=LINE, linewidth=2.5, label=label)
    axes.set_ylim(bottom=0.7 * counts[-1])
    style.log_axis(axes.xaxis, style.count_text, "rank of the column, most frequent first")
    style.log_axis(axes.yaxis, style.count_text, "rows that store it")
    style.framed(figure, axes, _title(row), _below(row))
    if ranks[-1] >= WIDE:
        axes.xaxis.set_major_locator(LogLocator(numticks=12))
    return f"{_title(row)}; the first of them is stored in {format_density(columns['most_rows'])} of the rows."


def _title(row: Record) -> str:
    """Return the title: which share of the entries the most frequent columns have."""
    return capitalized(profiles.top_columns_sentence(row))


def _below(row: Record) -> str:
    """Return the subtitle: data set, source, number of columns and of unused ones."""
    columns = row["columns"]
    all_columns = format_count(row["features"], "column")
    return f"{row['name']}, {row['source']}: {all_columns}, of which {columns['unused']:,} are never used"


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the chart as text: rank of a column, rows that store it, their share."""
    row = records(frame)[0]
    shown = [
        (f"{rank:,}", f"{count:,}", format_density(count / row["rows"])) for rank, count in row["columns"]["ranks"]
    ]
    return pd.DataFrame(shown, columns=("rank", "rows that store it", "share of the rows"))


register_chart(__name__, "Columns by rank", rows="profile")
