"""Active columns by the rows of a batch: what a lazy update has to change, in addition to the entries of the batch."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from workbench.analysis import formatting
from workbench.analysis.configurations import Record, records
from workbench.plots import style
from workbench.plots.chart import message, register_chart

TOUCHED, ENTRIES = "#0072B2", "#D55E00"


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw the active columns of a batch against its rows, between the bounds all columns and all entries.

    Both axes are logarithmic; returns the sentence below the chart. `frame` has the profile of one data set.
    """
    row = records(frame)[0]
    batches = row["touched"]
    if not row["entries"]:
        return message(figure, f"{row['name']} stores no entry, so no batch has an active column.")
    axes = figure.add_subplot(xscale="log", yscale="log")
    sizes = [batch["batch_rows"] for batch in batches]
    axes.axhline(
        row["features"], color=style.GREY, linestyle=":", linewidth=2, label=f"all {row['features']:,} columns"
    )
    axes.plot(sizes, [batch["entries"] for batch in batches], "s--", color=ENTRIES, label="entries z of the batch")
    touched = [batch["columns"] for batch in batches]
    axes.plot(sizes, touched, "o-", color=TOUCHED, linewidth=2.2, markersize=7, label="active columns U")
    for batch in batches:
        note = f"U/z {formatting.format_number(batch['columns'] / batch['entries'], 2)}"
        place = (batch["batch_rows"], batch["columns"])
        axes.annotate(note, place, (0, -15), textcoords="offset points", ha="center", fontsize=style.SMALL)
    axes.margins(x=0.12)
    style.log_axis(axes.yaxis, style.count_text, "columns, entries")
    style.framed(figure, axes, _title(row), f"{row['name']}, {row['source']}: means over random batches", columns=3)
    axes.set_xlabel("rows a batch", fontsize=style.NORMAL)
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylim(bottom=axes.get_ylim()[0] / 1.6)
    return f"{_title(row)}."


def _title(row: Record) -> str:
    """Return the title of the chart: the active columns of a batch of about 256 rows."""
    batch = min(row["touched"], key=lambda batch: abs(batch["batch_rows"] - 256))
    share = formatting.format_density(batch["columns"] / row["features"])
    rows = f"{batch['batch_rows']:,} {'row' if batch['batch_rows'] == 1 else 'rows'}"
    return f"A batch of {rows} has {batch['columns']:,.0f} active columns ({share})"


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the chart as text: rows a batch, active columns U, entries z, U/z."""
    row = records(frame)[0]
    shown = [
        (
            f"{batch['batch_rows']:,}",
            f"{batch['columns']:,.0f}",
            f"{batch['entries']:,.0f}",
            formatting.format_number(batch["columns"] / batch["entries"]) if batch["entries"] else "",
        )
        for batch in row["touched"]
    ]
    return pd.DataFrame(shown, columns=("rows a batch", "active columns U", "entries z", "U/z"))


register_chart(__name__, "Active columns by the rows of a batch", rows="profile")
