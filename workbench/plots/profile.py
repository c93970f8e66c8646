"""Sparsity of a data set in three pictures: columns by rank, lengths of rows, active columns of a batch."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernels.registry import format_count
from workbench.analysis import formatting, profiles
from workbench.analysis.configurations import Record, records
from workbench.plots import style
from workbench.plots.chart import message, register_chart

COLUMNS, LINE = "#0072B2", "#D55E00"
MARKS = (("median", LINE, "--"), ("p99", "#009E73", ":"))
"""Lines at the median and the 99th percentile of the entries of a row."""


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw the rows that store each column, the entries of the rows, and the active columns of batches; all axes are
    logarithmic. Returns the sentence below the chart.

    `frame` has the profile of one data set. In a narrow figure the pictures stand below each other. A message if there
    are no entries.
    """
    row = records(frame)[0]
    if not row["entries"]:
        return message(figure, f"{row['name']} stores no entry, so there is nothing to draw.")
    is_narrow = style.inches(figure)[0] < 1.5 * style.NARROW
    shape: dict[str, Any] = {"nrows": 3} if is_narrow else {"ncols": 3}
    for axes, picture in zip(figure.subplots(**shape), (_ranks, _lengths, _active), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        picture(axes, row)
        axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=style.SMALL)
    width = int(9.4 * style.inches(figure)[0])
    title = formatting.capitalized(profiles.top_columns_sentence(row))
    figure.suptitle(style.wrapped(title, width), x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    return " ".join((f"{title}.", _sentence_of_lengths(row), _sentence_of_batch(row)))


def _ranks(axes: Axes, row: Record) -> None:
    """Draw the rows that store each column against its rank, and Zipf's line."""
    columns = row["columns"]
    ranks, counts = np.array(columns["ranks"], np.float64).T
    axes.plot(ranks, counts, "o", color=COLUMNS, markersize=3, label="columns")
    if zipf := columns["zipf"]:
        ends = np.array([zipf["first"], zipf["last"]], np.float64)
        axes.plot(ends, zipf["scale"] * ends ** -zipf["slope"], "--", color=LINE, linewidth=2, label="Zipf's line")
        style.note(axes, f"slope {-zipf['slope']:.2f}", (0.97, 0.97), ha="right", color=LINE)
    style.log_axis(axes.xaxis, style.count_text, "rank of the column")
    style.log_axis(axes.yaxis, style.count_text, "rows that store it")


def _lengths(axes: Axes, row: Record) -> None:
    """Draw the share of rows by their number of entries, with the median and the 99th percentile; no empty rows."""
    lengths = row["lengths"]
    starts = np.array([least - 0.5 for least, _, _ in lengths["bins"]])
    ends = np.array([most + 0.5 for _, most, _ in lengths["bins"]])
    shares = [100 * count / row["rows"] for *_, count in lengths["bins"]]
    edge = "white" if len(starts) > 1 else COLUMNS  # of one length, the bar is thin
    axes.bar(starts, shares, ends - starts, align="edge", color=COLUMNS, edgecolor=edge, label="rows")
    for (name, colour, line), place in zip(MARKS, ((0.03, "left"), (0.97, "right")), strict=True):
        axes.axvline(lengths[name], color=colour, linestyle=line, linewidth=2)
        text = f"{name.replace('p99', '99 %')} {formatting.format_number(lengths[name])}"
        style.note(axes, text, (place[0], 0.97), ha=place[1], color=colour)
    axes.set_xlim(starts[0] / 1.15, ends[-1] * 1.15)
    style.log_axis(axes.xaxis, style.count_text, "entries a row")
    style.log_axis(axes.yaxis, _share_text, "share of the rows")


def _share_text(value: float) -> str:
    """Return the text of a share in percent; none above all rows, where the axis has room for notes."""
    return f"{formatting.format_number(value)} %" if value <= 100 else ""


def _active(axes: Axes, row: Record) -> None:
    """Draw the active columns and the entries of a batch against its rows, and all columns as a line."""
    batches = row["touched"]
    sizes = [batch["batch_rows"] for batch in batches]
    for name, label, colour, look in (
        ("entries", "entries", LINE, "s--"),
        ("columns", "active columns", COLUMNS, "o-"),
    ):
        values = [batch[name] for batch in batches]
        axes.plot(sizes, values, look, color=colour, markersize=4, label=label)
        side = {"va": "bottom", "xytext": (-4, 4)} if name == "entries" else {"va": "top", "xytext": (-2, -6)}
        style.note(axes, label, (sizes[-1], values[-1]), xycoords="data", textcoords="offset points", ha="right",
                   color=colour, **side)  # fmt: skip
    axes.axhline(row["features"], color=style.GREY, linestyle=":", linewidth=1.5, label="_")
    style.note(axes, f"all {row['features']:,} columns", (sizes[0], row["features"]), xycoords="data", va="bottom")
    axes.margins(y=0.15)
    style.log_axis(axes.xaxis, style.count_text, "rows a batch")
    style.log_axis(axes.yaxis, style.count_text, "columns, entries")


def _sentence_of_lengths(row: Record) -> str:
    """Return a sentence on the entries of a row: the median, the 99th percentile, the longest."""
    lengths = row["lengths"]
    if [tuple(each) for each in lengths["bins"]] == [(lengths["most"], lengths["most"], row["rows"])]:
        return f"Every row has {format_count(lengths['most'], 'entry')}."
    median, p99 = formatting.format_number(lengths["median"]), formatting.format_number(lengths["p99"])
    empty = f"; {lengths['empty']:,} rows are empty" if lengths["empty"] else ""
    rest = f"1 % have {p99} or more, the longest {lengths['most']:,}{empty}"
    return f"Half of the rows have {median} entries or fewer, {rest}."


def _sentence_of_batch(row: Record) -> str:
    """Return a sentence on the active columns of a batch of about 256 rows."""
    batch = min(row["touched"], key=lambda batch: abs(batch["batch_rows"] - 256))
    share = formatting.format_density(batch["columns"] / row["features"])
    rows = format_count(batch["batch_rows"], "row")
    return f"A batch of {rows} has {batch['columns']:,.0f} active columns ({share})."


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the three pictures as text: which picture, where, and the values there."""
    row = records(frame)[0]
    lines = [("rank", f"{rank:,}", f"{count:,}", formatting.format_density(count / row["rows"]))
             for rank, count in row["columns"]["ranks"]]  # fmt: skip
    for least, most, count in row["lengths"]["bins"]:
        span = f"{least}" if least == most else f"{least} to {most}"
        lines.append(("entries a row", span, f"{count:,}", formatting.format_density(count / row["rows"])))
    for batch in row["touched"]:
        ratio = formatting.format_number(batch["columns"] / batch["entries"]) if batch["entries"] else ""
        lines.append(("rows a batch", f"{batch['batch_rows']:,}", f"{batch['columns']:,.0f} active columns", ratio))
    columns = ("of", "at", "rows or columns", "share of the rows, or active columns / entries")
    return pd.DataFrame(lines, columns=columns)


register_chart(__name__, "Columns, rows and batches", rows="profile")
