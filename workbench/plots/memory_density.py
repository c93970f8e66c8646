"""Bytes against density: what was predicted, what was measured, the dense baseline, and where they cross."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import formatting
from workbench.analysis.advisor import headline
from workbench.analysis.configurations import Record, density_of, is_dense
from workbench.plots import density, style
from workbench.plots.chart import message, register_chart

MEASURE, PREDICTED = "bytes_peak", "bytes_predicted"


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, update: str, crossings: str) -> str:
    """Draw memory against density, or bars if there is one density; return the sentence below the chart.

    `group` is a label, `update` "all" or the only update shown, `crossings` "best", "all" or "none". Markers are
    measured peaks, thin lines predictions by formula.
    """
    shown = density.Shown.of(frame, MEASURE, group, update)
    if nothing := density.nothing(shown):
        return message(figure, nothing)
    title, sentence = headline(shown.group, MEASURE)
    of = "the device" if shown.group.settings["device"] == "cuda" else "the process above its start"
    what = "bars" if shown.single else "markers, set side by side"
    note = f"{what}: peak of {of}; {density.intervals(shown)}"
    if shown.single:
        density.finish(figure, _bars(figure, shown), title, shown, note)
    else:
        style.finish(figure, _curves(figure, shown, crossings), title, shown.group, note)
    return sentence


def _bars(figure: Figure, shown: density.Shown) -> Axes:
    """Draw one bar for each configuration, with a mark at its predicted memory; return the axes."""
    axes = density.draw(figure, shown, "memory")
    rows = sorted(style.drawable(shown.rows, MEASURE), key=lambda row: row[MEASURE])
    known = [(row[PREDICTED], place) for place, row in enumerate(rows) if row[PREDICTED]]
    if known:
        look: dict[str, Any] = {"color": "#d62728", "marker": "|", "markeredgewidth": 2, "linestyle": "none"}
        axes.plot(*zip(*known, strict=True), markersize=22, **look)
        axes.plot([], [], markersize=10, label="predicted", **look)
    return axes


def _curves(figure: Figure, shown: density.Shown, crossings: str) -> Axes:
    """Draw memory against density with baseline, predictions and break-evens; return the axes.

    `crossings` is "best", "all" or "none".
    """
    axes = density.axes_of(figure, shown, "memory")
    density.baseline(axes, shown)
    for place, rows in enumerate(shown.lines):
        shift = 0.07 * (place - (len(shown.lines) - 1) / 2)  # equal sizes are common: side by side, none hides another
        density.whiskers(axes, rows, MEASURE, shown.label(rows[0]), shift, linestyle="none")
        _predicted(axes, rows)
    for rows in shown.baselines:
        _predicted(axes, rows)
    axes.plot([], [], color=style.GREY, linewidth=1, label="predicted (thin lines)")
    _attempted(axes, shown.rows)
    density.marks(axes, shown, crossings)
    return axes


def _predicted(axes: Axes, rows: list[Record]) -> None:
    """Draw a thin line through the predicted memory of each configuration, whether or not it ran."""
    known = sorted((density_of(row), row[PREDICTED]) for row in rows if row[PREDICTED] and density_of(row))
    if known:
        look = style.look(rows[0])
        alone: dict[str, Any] = {"marker": "_", "markersize": 24} if len(known) == 1 else {}
        axes.plot(*zip(*known, strict=True), color=look["color"], linestyle=look["linestyle"], linewidth=1, **alone)


def _attempted(axes: Axes, rows: list[Record]) -> None:
    """Draw crosses at the bytes needed by configurations that did not fit, and a line at the memory limit."""
    unfit = [row for row in rows if row["status"] == "memory" and row["bytes_needed"] and density_of(row)]
    for row in unfit:
        look: dict[str, Any] = {"color": style.look(row)["color"], "markersize": 9, "markeredgewidth": 2}
        axes.plot([density_of(row) or 0.0], [row["bytes_needed"]], "x", **look)
    dense = [row for row in unfit if is_dense(row)]
    if dense:
        first = min(dense, key=lambda row: density_of(row) or 0.0)
        note = f"dense needs {formatting.format_bytes(first['bytes_needed'])}"
        axes.annotate(note, (density_of(first) or 0.0, first["bytes_needed"]), xytext=(0, -8),
                      textcoords="offset points", va="top", fontsize=style.SMALL)  # fmt: skip
    if limit := max((row["bytes_limit"] for row in unfit if row["bytes_limit"]), default=None):
        axes.axhline(limit, color=style.GREY, linewidth=1, linestyle=":")
        note = f"limit {formatting.format_bytes(limit)}, crosses did not fit"
        axes.annotate(note, (0.01, limit), xycoords=axes.get_yaxis_transform(), xytext=(0, 2),
                      textcoords="offset points", fontsize=style.SMALL, color=style.GREY)  # fmt: skip


def table(frame: pd.DataFrame, *, group: str | None, update: str, crossings: str) -> pd.DataFrame:
    """Return peak, predicted, held and needed bytes as text, a row for each record of the group.

    `group` is a label, None for the largest; `update` is "all" or the only update of the sparse lines; `crossings` is
    unused.
    """
    shown = density.Shown.of(frame, MEASURE, group, update)
    return density.table(shown.rows, [MEASURE, PREDICTED, "bytes_held", "bytes_needed"])


register_chart(__name__, "Memory against density", density.controls())
