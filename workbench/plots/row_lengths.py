"""Lengths of the rows of a data set: rows by their number of entries, with the median and the 99th percentile."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from kernels.registry import format_count
from workbench.analysis import formatting
from workbench.analysis.configurations import Record, records
from workbench.plots import style
from workbench.plots.chart import message, register_chart

MARKS = (("median", "median", "#D55E00", "--"), ("p99", "99th percentile", "#009E73", ":"))
BARS = "#0072B2"
MOST = 115
"""Upper bound of the axis of shares, in percent: the bar of all rows has space above it."""
LEAST = 1
"""Lower bound of the axis of shares, in percent, if no bar needs less: a bar of nearly all rows looks like one."""
NARROW = 4
"""An axis whose ends are less far apart has equally spaced ticks."""


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw the distribution of entries per row as bars with equal widths on a logarithmic axis; return a sentence.

    `frame` has the profile of one data set. Empty rows are not drawn; a message if there are no entries.
    """
    row = records(frame)[0]
    lengths = row["lengths"]
    if not lengths["bins"]:
        return message(figure, f"{row['name']} stores no entry, so its rows have no lengths to draw.")
    axes = figure.add_subplot(xscale="log", yscale="log")
    starts = [least - 0.5 for least, _, _ in lengths["bins"]]
    widths = [most + 0.5 - start for start, (_, most, _) in zip(starts, lengths["bins"], strict=True)]
    shares = [100 * count / row["rows"] for *_, count in lengths["bins"]]
    axes.bar(starts, shares, widths, align="edge", color=BARS, edgecolor="white", linewidth=0.6)
    for name, noun, colour, line in MARKS:
        label = f"{noun}: {formatting.format_number(lengths[name])}"
        axes.axvline(max(lengths[name], starts[0]), color=colour, linestyle=line, linewidth=2.2, label=label)
    axes.set_xlim(starts[0] / 1.15, (starts[-1] + widths[-1]) * 1.15)
    style.log_axis(axes.xaxis, style.count_text, "entries a row")
    style.log_axis(axes.yaxis, lambda value: f"{formatting.format_number(value)} %", "share of the rows")
    style.framed(figure, axes, _title(row), _below(row))
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, LEAST), min(high, MOST))
    if widths[-1] + starts[-1] < NARROW * starts[0]:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.xaxis.set_minor_locator(NullLocator())
    longest = "" if _has_equal_rows(row) else f"; the longest has {lengths['most']:,}"
    return f"{_title(row)}{longest}."


def _has_equal_rows(row: Record) -> bool:
    """Return whether all rows of a profiled data set have the same number of entries."""
    lengths = row["lengths"]
    return [tuple(each) for each in lengths["bins"]] == [(lengths["most"], lengths["most"], row["rows"])]


def _title(row: Record) -> str:
    """Return the title of the chart: the median and the 99th percentile of the entries of a row."""
    lengths = row["lengths"]
    median, p99 = formatting.format_number(lengths["median"]), formatting.format_number(lengths["p99"])
    if _has_equal_rows(row):
        return f"Every row has {format_count(lengths['most'], 'entry')}"
    if median == p99:
        return f"99 % of the rows have {p99} entries or fewer"
    return f"Half of the rows have {median} entries or fewer, 1 % have {p99} or more"


def _below(row: Record) -> str:
    """Return the line below the title: data set, rows, mean length, empty rows."""
    lengths = row["lengths"]
    empty = f"; {lengths['empty']:,} empty rows are not drawn" if lengths["empty"] else ""
    rows = format_count(row["rows"], "row")
    return f"{row['name']}, {row['source']}: {rows}, mean {formatting.format_number(lengths['mean'])}{empty}"


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the bars of the chart as text: entries a row, rows, their share."""
    row = records(frame)[0]
    spans = [
        (f"{least}" if least == most else f"{least} to {most}", count) for least, most, count in row["lengths"]["bins"]
    ]
    shown = [(span, f"{count:,}", formatting.format_density(count / row["rows"])) for span, count in spans]
    return pd.DataFrame(shown, columns=("entries a row", "rows", "share of the rows"))


register_chart(__name__, "Entries a row", rows="profile")
