"""Seconds an epoch, or memory, against the rows of a model's tables: active rows alone, or all rows in each step."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
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
    plotted = [(rows, points) for rows in table_size.records_by_size(shown) if (points := _points(rows, column))]
    if not plotted:
        return message(figure, style.nothing(f"has a {measure}"))
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.log_axis(axes.xaxis, style.count_text, "rows of each table (features of the data)")
    style.log_axis(axes.yaxis, formatting.format_seconds if measure == "time" else formatting.format_bytes, label)
    sides = ([points for rows, points in plotted if table_size.takes_all(rows[0]) == takes] for takes in (True, False))
    least = [min(side, key=lambda points: points[-1].known.value) for side in sides if side]
    ends = []
    for records, points in plotted:
        is_best, name = points in least, formatting.name_configuration(records[0])
        look = _look(records[0], is_best)
        style.draw_candidate(axes, name, points, look, is_best)
        ends += [(points[-1].x, points[-1].known.value, name, look["color"])] if is_best else []
    lost = style.count_lost(shown.rows if measure == "time" else [], shown.rows)
    title, sentence = table_size.headline(shown, column)
    style.finish(figure, axes, title, shown, "; ".join(filter(None, ("bands: 95 % intervals", lost))))
    style.label_ends(axes, ends)
    return sentence


def _labels(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the labels of the groups in the records, in their order."""
    return tuple(group.label for group in table_size.groups(frame))


def _points(rows: Sequence[configurations.Record], column: str) -> list[style.Point]:
    """Return the points of the records with a positive value; step times become those of an epoch."""
    known = [(row, interval_of(row, column)) for row in rows if row["status"] in configurations.NUMBERED]
    return [
        style.Point(row[table_size.ROWS], _of_epoch(row, interval, column), style.is_disturbed(row, column))
        for row, interval in known
        if interval and interval.value > 0
    ]


def _of_epoch(row: configurations.Record, known: Interval, column: str) -> Interval:
    """Return the interval multiplied by the steps of an epoch for "seconds_step", else unchanged."""
    steps = row["steps_epoch"] if column == "seconds_step" else 1
    return Interval(steps * known.value, steps * known.low, steps * known.high, known.why)


def _look(row: configurations.Record, is_best: bool) -> dict[str, Any]:
    """Return the look of a configuration: black if it changes all rows, green for exact updates."""
    look = style.look(row, is_best)
    if table_size.takes_all(row) or row["update"] == "exact":
        look |= {"color": style.DENSE if table_size.takes_all(row) else EXACT}
    return look


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
