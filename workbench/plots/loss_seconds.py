"""Loss against training time, one line a configuration: a step that is faster but trains worse shows here."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from workbench.analysis import cells, words
from workbench.plots import style
from workbench.plots.chart import Chart, message, register

CLOSE = 1.01  # a loss within 1 % of dense's final one has reached it
READABLE = 6  # times the end of the shortest line that the axis may reach before it is drawn logarithmic


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None) -> str:
    """Loss linear, and time too unless lines end far apart; a line breaks where the loss was not finite."""
    shown = style.pick(frame, group)
    rows = style.at_density(shown, density)
    trained = [row for row in rows if curve_of(row).size]
    if not trained:
        return message(figure, f"No cell of this group has a loss curve at {density} density.")
    axes = figure.add_subplot()
    for row in trained:
        seconds, loss = curve_of(row).T[:2]
        look = style.look(row) | {"markevery": max(seconds.size // 8, 1), "markersize": 5}
        axes.plot(seconds, loss, label=_label(row), **look)
    if without := len(rows) - len(trained):
        axes.plot([], [], "x", color=style.GREY, label=f"no result: {words.plural(without, 'configuration')}")
    axes.set_xlabel("training time", fontsize=style.NORMAL)
    axes.set_ylabel("training loss", fontsize=style.NORMAL)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.seconds(value)))
    _scale_time(axes, trained)
    title, sentence = _finding(trained, density)
    style.finish(figure, axes, title, shown, f"density {density}")
    return sentence


def curve_of(row: cells.Row) -> np.ndarray:
    """The curve as [points, 3]: seconds, loss, step; NaN where the loss was not finite; [0, 3] without a curve."""
    return np.array(row["curve"] or [], dtype=np.float64).reshape(-1, 3)


def _label(row: cells.Row) -> str:
    quality = f", {row['quality_name']} {words.number(row['quality'])}" if row["quality"] is not None else ""
    return f"{words.short_line(row)}{quality}"


def _scale_time(axes: Axes, rows: Sequence[cells.Row]) -> None:
    """From 0, or logarithmic where a line would else be squeezed to the edge."""
    horizon, starts = _horizon(rows), [seconds for row in rows for seconds in curve_of(row)[:, 0] if seconds > 0]
    if horizon and starts and horizon > READABLE * min(curve_of(row)[-1, 0] for row in rows):
        axes.set_xscale("log")
        style.log_axis(axes.xaxis, words.seconds, "training time")
        axes.set_xlim(min(starts) / 1.1, horizon)
    else:
        axes.set_xlim(left=0, right=horizon)


def _horizon(rows: Sequence[cells.Row]) -> float | None:
    """The right end of the axis: dense's end, since slower lines would squeeze the rest; the longest without dense."""
    ends = [curve_of(row)[-1, 0] for row in rows if cells.is_dense(row)] or [curve_of(row)[-1, 0] for row in rows]
    return max(ends) * 1.05 or None


def smooth(row: cells.Row) -> np.ndarray:
    """The losses of a curve without the scatter of single batches: medians of nine neighbours, [points]."""
    return pd.Series(curve_of(row)[:, 1]).rolling(9, center=True, min_periods=1).median().to_numpy()


def reached(row: cells.Row, target: float) -> float | None:
    """Seconds until the smoothed loss is within 1 % of the target, None where it never is."""
    at = np.flatnonzero(smooth(row) <= target * (CLOSE if target > 0 else 1.0))
    return float(curve_of(row)[at[0], 0]) if at.size else None


def _finding(rows: Sequence[cells.Row], density: str | None) -> tuple[str, str]:
    """The title, and the sentence."""
    dense = next((row for row in rows if cells.is_dense(row)), None)
    target = smooth(dense)[-1] if dense is not None else np.nan
    base = reached(dense, target) if dense is not None else None
    if base is None:
        return "Loss against training time", f"{style.where(density)} dense has no loss to compare with."
    times = [(reached(row, target), row) for row in rows if not cells.is_dense(row)]
    got = [(time, row) for time, row in times if time is not None]
    if not got:
        title = "No sparse configuration reaches the final loss of dense"
        return title, f"{style.where(density)} no sparse configuration reaches the final loss of dense."
    time, row = min(got, key=lambda pair: pair[0])
    never = [words.line(row) for time, row in times if time is None]
    rest = f" It is never reached with {words.join(never)}." if never else ""
    took = f"in {words.seconds(time)} instead of {words.seconds(base)}"
    sentence = f"{style.where(density)} {words.line(row)} reaches the final loss of dense {took}.{rest}"
    return f"Sparse reaches the final loss of dense {took}", sentence


def table(frame: pd.DataFrame, *, group: str | None, density: str | None) -> pd.DataFrame:
    """First and last loss, time and steps trained, and quality of each configuration."""
    rows = style.at_density(style.pick(frame, group), density)
    return pd.DataFrame([_described(row) for row in rows])


def _described(row: cells.Row) -> dict[str, str]:
    shown = lambda value: "" if value is None else words.number(value)  # noqa: E731
    curve = curve_of(row)
    known = {
        "configuration": words.line(row),
        "first loss": shown(row["loss_first"]),
        "last loss": shown(row["loss_last"]),
    }
    known |= {
        "trained": words.seconds(curve[-1, 0]) if curve.size else "",
        "steps": f"{curve[-1, 2]:.0f}" if curve.size else "",
    }
    known[row["quality_name"] or "quality"] = shown(row["quality"])
    return known | {"result": "ok" if row["status"] == "ok" else f"{row['status']}: {row['reason']}"}


register(
    Chart("loss_seconds", "Loss against training time", draw, table, (style.group_control(), style.density_control()))
)
