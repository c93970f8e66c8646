"""Measured against predicted seconds of a step, each row predicted by a cost model that never saw it."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import configurations, formatting, pool
from workbench.plots import style
from workbench.plots.chart import message, register_chart

BAND = 1.25
"""The band around the diagonal is this factor wide, each way."""
LEFT_OUT = {"data set": "other data sets", "row": "the other rows of its configuration"}
"""What a row was predicted from, by what was left out."""


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw measured against predicted step times, both logarithmic; return the sentence below the chart.

    One mark for each record, in a ring if it is extrapolated; a band around the diagonal.
    """
    rows = _rows(frame)
    if not rows:
        return message(figure, "No row could be predicted from others.")
    axes = figure.add_subplot()
    _diagonal(axes, rows)
    style.log_axis(axes.xaxis, formatting.format_seconds, "predicted time a step")
    style.log_axis(axes.yaxis, formatting.format_seconds, "measured time a step")
    names = []
    for name, alike in pool.group_by(rows, formatting.name_configuration).items():
        look = style.look(alike[0]) | {"linestyle": "none", "marker": "o", "markersize": 5}
        x, y = ([row[side] for row in alike] for side in ("seconds_predicted", "seconds"))
        axes.plot(x, y, label=f"_{name}", alpha=0.85, **look)
        names.append((f"\N{BLACK CIRCLE} {name}", look["color"]))
    beyond = [row for row in rows if row["is_extrapolated"]]
    if beyond:
        places = [[row[side] for row in beyond] for side in ("seconds_predicted", "seconds")]
        ring: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": "#888888"}
        axes.plot(*places, "o", linestyle="none", markeredgewidth=0.9, zorder=1.5, label="_extrapolated", **ring)
        names.append(("\N{WHITE CIRCLE} extrapolated: sizes beyond those of the fit", style.GREY))
    style.list_names(axes, names)
    title, sentence = _finding(rows)
    below = (
        f"each row predicted from {LEFT_OUT[rows[0]['left_out']]}; band: within {formatting.format_number(BAND)} times"
    )
    style.add_title_and_grid(figure, axes, title, below)
    return sentence


def _rows(frame: pd.DataFrame) -> list[configurations.Record]:
    """Return the records of predictions in a frame; [] for an empty one."""
    return [*pool.records(frame)] if len(frame) else []


def _diagonal(axes: Axes, rows: Sequence[configurations.Record]) -> None:
    """Draw the diagonal and its band, and set logarithmic scales with equal limits."""
    known = [row[name] for row in rows for name in ("seconds_predicted", "seconds")]
    ends = np.array([min(known) / 1.5, max(known) * 1.5])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(ends, ends, color=style.GREY, linewidth=1.2, label="_as predicted", zorder=1)
    axes.fill_between(ends, ends / BAND, ends * BAND, color=style.GREY, alpha=0.15, linewidth=0)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)


def _finding(rows: Sequence[configurations.Record]) -> tuple[str, str]:
    """Return (title, sentence) on the median error, within fitted sizes and extrapolated, and the worst one."""
    near = [row for row in rows if not row["is_extrapolated"]]
    beyond = [row for row in rows if row["is_extrapolated"]]
    said = [_median(some, what) for some, what in ((near, "within the sizes fitted"), (beyond, "extrapolated")) if some]
    title = f"Half of {formatting.format_count(len(rows), 'prediction')} are within {_times(rows)} of what was measured"
    worst = max(rows, key=_off)
    far = (
        f"the worst is {formatting.name_configuration(worst)} on {worst['data']}, "
        f"{formatting.format_number(math.exp(_off(worst)), 2)} times off"
    )
    return title, f"Predicted from {LEFT_OUT[rows[0]['left_out']]}, {formatting.join_items(said)}; {far}."


def _median(rows: Sequence[configurations.Record], what: str) -> str:
    """Return "half of the N WHAT are within F times", F from the median error of these records."""
    return f"half of the {len(rows)} {what} are within {_times(rows)}"


def _times(rows: Sequence[configurations.Record]) -> str:
    """Return the factor within which half of the predictions are, as "1.23 times"."""
    return f"{formatting.format_number(math.exp(statistics.median(map(_off, rows))), 3)} times"


def _off(row: configurations.Record) -> float:
    """Return |log(predicted / measured)| of a record."""
    return abs(math.log(row["seconds_predicted"] / row["seconds"]))


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return measured and predicted time of each record and their ratio as text, the worst first."""
    return pd.DataFrame([_described(row) for row in sorted(_rows(frame), key=_off, reverse=True)])


def _described(row: configurations.Record) -> dict[str, str]:
    """Return configuration, data, sizes, measured and predicted time and their ratio as texts, by column."""
    return {
        "configuration": formatting.name_configuration(row),
        "data": row["data"],
        "density": formatting.format_density(row["density"], 2),
        "width": str(row["width"]),
        "rows a batch": f"{row['batch_rows']:,}",
        "measured": formatting.format_seconds(row["seconds"]),
        "predicted": formatting.format_seconds(row["seconds_predicted"]),
        "predicted / measured": formatting.format_number(row["seconds_predicted"] / row["seconds"]),
        "": "extrapolated" if row["is_extrapolated"] else "",
    }


register_chart(__name__, "Measured against predicted time", rows="predictions")
