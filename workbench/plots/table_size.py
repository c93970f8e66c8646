"""Seconds an epoch, or memory, against the rows of a model's tables: active rows alone, or all rows in each step."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import configurations, formatting, table_size
from workbench.analysis.intervals import Interval, interval_of
from workbench.plots import style
from workbench.plots.chart import Control, message, register_chart

MEASURES = {"time": ("seconds_step", "time an epoch"), "memory": ("bytes_peak", "memory at the peak")}
"""What may be shown: the column that is judged, and the axis."""
EXACT = "#009E73"


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, measure: str) -> str:
    """Draw time of an epoch or memory against the rows of the tables, both logarithmic; return the sentence below.

    `group` is a label, the first group if None or unknown; `measure` is "time" or "memory". Error bars are intervals;
    configurations that change all rows are black.
    """
    shown = style.pick(frame, group, table_size.groups)
    column, label = MEASURES[measure]
    plotted = [points for rows in table_size.records_by_size(shown) if (points := _points(rows, column))]
    if not plotted:
        return message(figure, style.nothing(f"has a {measure}"))
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.log_axis(axes.xaxis, style.count_text, "rows of each table (features of the data)")
    style.log_axis(axes.yaxis, formatting.format_seconds if measure == "time" else formatting.format_bytes, label)
    for points in plotted:
        _line(axes, points, column)
    lost = [row for row in shown.rows if row["status"] not in configurations.NUMBERED]
    style.count_lost(axes, shown.rows if measure == "time" else [], lost)
    title, sentence = table_size.headline(shown, column)
    style.finish(figure, axes, title, shown, "whiskers: intervals of the rounds")
    return sentence


def _labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the labels of the groups in the records, in their order."""
    return tuple(group.label for group in table_size.groups(frame))


Point = tuple[configurations.Record, Interval]


def _points(rows: Sequence[configurations.Record], column: str) -> list[Point]:
    """Return (record, interval) of the records with a positive value; step times become those of an epoch."""
    known = [(row, interval_of(row, column)) for row in rows if row["status"] in configurations.NUMBERED]
    return [(row, _of_epoch(row, interval, column)) for row, interval in known if interval and interval.value > 0]


def _of_epoch(row: configurations.Record, known: Interval, column: str) -> Interval:
    """Return the interval multiplied by the steps of an epoch for "seconds_step", else unchanged."""
    steps = row["steps_epoch"] if column == "seconds_step" else 1
    return Interval(steps * known.value, steps * known.low, steps * known.high, known.why)


def _line(axes: Axes, points: Sequence[Point], column: str) -> None:
    """Draw one configuration with error bars; disturbed records have pale markers off the line."""
    row = points[0][0]
    disturbed = [point for point in points if style.is_disturbed(point[0], column)]
    quiet = [point for point in points if not style.is_disturbed(point[0], column)]
    x, known = [row[table_size.ROWS] for row, _ in quiet], [interval for _, interval in quiet]
    ends = [[k.value - k.low for k in known], [k.high - k.value for k in known]]
    axes.errorbar(
        x, [k.value for k in known], yerr=ends, label=formatting.short_configuration_name(row), capsize=3, **_look(row)
    )
    if disturbed:
        look = style.disturbed_look(_look(row)) | {"linestyle": "none"}
        x, known = [row[table_size.ROWS] for row, _ in disturbed], [interval for _, interval in disturbed]
        axes.plot(
            x, [k.value for k in known], label=f"_{formatting.short_configuration_name(row)}, {style.DISTURBED}", **look
        )


def _look(row: configurations.Record) -> dict[str, Any]:
    """Return the look of a record's configuration; black if it changes all rows, green for exact updates."""
    look = style.look(row)
    if table_size.takes_all(row):
        return look | {"color": style.DENSE, "markerfacecolor": style.DENSE, "marker": "P"}
    return look | {"color": EXACT, "marker": "s"} if row["update"] == "exact" else look


def table(frame: pd.DataFrame, *, group: str | None, measure: str) -> pd.DataFrame:
    """Return configuration, rows of its tables, the measure and the result as text, a row for each record.

    `group` is a label, the first group if None or unknown; `measure` is "time" or "memory".
    """
    column = MEASURES[measure][0]
    shown = style.pick(frame, group, table_size.groups)
    rows = [row for rows in table_size.records_by_size(shown) for row in rows]
    return pd.DataFrame([_described(row, column) for row in rows])


def _described(row: configurations.Record, column: str) -> dict[str, str]:
    """Return configuration, table rows, the measure `column` and the result of a record as texts, by column."""
    measured = formatting.format_measured_quantity(row, column) if row["status"] in configurations.NUMBERED else ""
    what = "time a step" if column == "seconds_step" else "peak memory"
    return {
        "configuration": formatting.name_configuration(row),
        "table rows": f"{row[table_size.ROWS]:,}",
        what: measured,
        "result": style.result_of(row),
    }


register_chart(
    __name__,
    "Cost against the size of the tables",
    (
        Control("group", "configurations alike but for size and configuration", _labels),
        Control("measure", "what is drawn against the size", tuple(MEASURES), "time"),
    ),
    rows="sizes",
)
