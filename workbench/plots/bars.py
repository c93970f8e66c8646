"""Bars that the charts against density draw where there is one density only: one a configuration, the least first."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import interval_of
from workbench.plots import density, style

ROOM = 1.45
"""Length of the axis by the longest bar, for the number at its end."""


def draw(figure: Figure, shown: density.Shown, label: str) -> Axes:
    """Bars from 0 with the interval of each as a whisker, a line at the least of the baselines, numbers at the ends."""
    axes, measure = figure.add_subplot(), shown.measure
    rows = sorted(style.drawable(shown.rows, measure), key=lambda row: row[measure])
    lost = style.lost(shown.rows, measure)
    longest = max(_end(row, measure) for row in rows)
    for place, row in enumerate(rows):
        _bar(axes, place, row, measure, longest)
    for place, row in enumerate(lost, len(rows)):
        axes.text(0.01 * longest, place, style.without(row), va="center", fontsize=style.SMALL)
    _baseline(
        axes, [row for row in rows if configurations.is_dense(row) and not style.is_beside(row, measure)], measure
    )
    drawn = [*rows, *lost]
    axes.set_yticks(range(len(drawn)), [style.name(row, drawn) for row in drawn])
    axes.set_ylim(max(len(drawn), 4) - 0.5, -0.6)
    axes.set_xlim(0, ROOM * longest)
    axes.set_xlabel(label, fontsize=style.NORMAL)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formatting.format_quantity(value, measure)))
    style.count_lost(axes, shown.rows if measure.startswith("seconds") else [], [])
    return axes


def finish(figure: Figure, axes: Axes, title: str, shown: density.Shown, note: str) -> None:
    """Add title, subtitle and legend, and reserve space for the names on the left."""
    at = style.at(shown.rows, configurations.density_label(shown.rows[0]))
    style.finish(figure, axes, title, shown.group, f"{at}; {note}", room=0.75)
    axes.grid(visible=False, axis="y")


def _end(row: configurations.Record, measure: str) -> float:
    """Return where a bar with its interval ends, at most twice its value; 0 if unknown."""
    known = interval_of(row, measure)
    return min(known.high, 2 * known.value) if known else 0.0


def _bar(axes: Axes, place: int, row: configurations.Record, measure: str, longest: float) -> None:
    """Draw the bar of a configuration with its interval."""
    known = interval_of(row, measure)
    if known is None:
        return
    look = style.beside(style.look(row)) if style.is_beside(row, measure) else style.look(row)
    face = look["markerfacecolor"]
    bar: dict[str, Any] = {"facecolor": face, "edgecolor": look["color"], "linewidth": 1.8, "height": 0.56}
    axes.barh(place, known.value, linestyle=look["linestyle"] if face == "white" else "-", **bar)
    ends = [[known.value - known.low], [known.high - known.value]]
    axes.errorbar([known.value], [place], xerr=ends, fmt="none", ecolor="#888888", elinewidth=2, capsize=4)
    end = max(_end(row, measure), known.value)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.0}
    told = formatting.format_measured_quantity(row, measure)
    axes.text(end + 0.02 * longest, place, told, va="center", fontsize=style.SMALL, bbox=box)


def _baseline(axes: Axes, rows: Sequence[configurations.Record], measure: str) -> None:
    """A dashed line at the least of the dense bars: what sparse has to come below."""
    least = min(rows, key=lambda row: row[measure], default=None)
    if least is not None:
        label = f"{formatting.short_configuration_name(least)}, the baseline"
        axes.axvline(least[measure], color=style.DENSE, linewidth=1.2, linestyle=(0, (4, 2)), label=label)
