"""Shared parts of the charts against density: the dense baseline, lines, crossings, failures, the table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import cells, words
from workbench.analysis.breakeven import BreakEven
from workbench.analysis.compare import FEW, LOOKS
from workbench.analysis.intervals import Interval, interval_of
from workbench.plots import style
from workbench.plots.chart import Control
from workbench.plots.shown import Shown

MEASURED = ("seconds_step", "bytes_peak")
FEWEST_MARKED = 3
"""Dense lines from which on they have markers: fewer are told apart by their strokes."""
CROSSINGS = {"best": "the best only", "all": "of every configuration", "none": "none"}
COLUMNS = {
    "seconds_step": "time a step",
    "bytes_peak": "peak memory",
    "bytes_predicted": "predicted",
    "bytes_held": "held by arrays",
    "bytes_needed": "needed",
}


def controls() -> tuple[Control, ...]:
    """Controls of every chart against density."""
    return (
        style.group_control(),
        Control("update", "which optimizer updates to show", ("all", "standard", "lazy", "exact"), "all"),
        Control("crossings", "which break-evens to mark", tuple(CROSSINGS), "best"),
    )


def _densities(rows: Iterable[cells.Row]) -> list[float]:
    """The densities that rows are drawn at; rows without one are left out."""
    return [density for density in map(cells.density_of, rows) if density]


def nothing(shown: Shown) -> str:
    """Reason why a chart has nothing to draw, empty where it has something."""
    if style.drawable(shown.rows, shown.measure):
        return ""
    why = style.nothing(shown.rows, f"has a {COLUMNS[shown.measure]}")
    counts = Counter(row["status"] for row in shown.rows).most_common()
    each = words.join(f"{count} {status}" for status, count in counts) if counts else "no cells"
    return f"{why.rstrip('.')}: {each}."


def intervals(shown: Shown) -> str:
    """Subtitle about the intervals drawn: of what they are, and where rounds are too few to decide."""
    drawn = style.drawable(shown.rows, shown.measure)
    few = sum(row["rounds"] < LOOKS[0] for row in drawn) if shown.measure.startswith("seconds") else 0
    less = f"; {few} of {words.plural(len(drawn), 'cell')} from {FEW}, which decide nothing" if few else ""
    paired = ", verdicts compare within rounds" if shown.measure.startswith("seconds") else ""
    return f"{'' if shown.single else 'bands and '}whiskers: intervals of the rounds{paired}{less}"


def axes_of(figure: Figure, shown: Shown, label: str) -> Axes:
    """Axes with both scales logarithmic, units on them, and room for every density, also of cells without a result."""
    axes = figure.add_subplot()
    densities = _densities(shown.rows)
    axes.set_xlim(min(densities) / 1.3, max(densities) * 1.3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    unit = words.seconds if shown.measure.startswith("seconds") else words.bytes_
    style.log_axis(axes.xaxis, words.density, "density (stored entries / size)")
    style.log_axis(axes.yaxis, unit, label)
    return axes


def baseline(axes: Axes, shown: Shown) -> None:
    """Each dense line with the band of its interval, over the whole width where only one density has it.

    Several have markers, and those that are not drawn are counted in the legend.
    """
    baselines = shown.baselines
    for rows in baselines:
        x, known = _points(rows, shown.measure)
        if not x:
            continue
        look = style.look(rows[0])
        line: dict[str, Any] = look | {"linewidth": 2.4 if style.is_plain_dense(rows[0]) else 1.6}
        line |= {"label": style.name(rows[0], rows)}
        if len(baselines) < FEWEST_MARKED:
            line["marker"] = ""
        band: dict[str, Any] = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        if len(x) == 1:
            axes.axhspan(known[0].low, known[0].high, **band)
            axes.axhline(known[0].value, **line)
            continue
        axes.fill_between(x, [k.low for k in known], [k.high for k in known], **band)
        axes.plot(x, [k.value for k in known], **line)
    if left := len(shown.dense_lines) - len(baselines):
        what = words.plural(left, "dense candidate")
        axes.plot([], [], linestyle="none", label=f"left out: {what} nowhere the best, in the table")


def _points(rows: Sequence[cells.Row], measure: str) -> tuple[list[float], list[Interval]]:
    """Densities, rising, and the interval at each, of the rows that can be drawn."""
    pairs = [(cells.density_of(row), interval_of(row, measure)) for row in style.drawable(rows, measure)]
    known = [(density, interval) for density, interval in pairs if density is not None and interval is not None]
    return [density for density, _ in known], [interval for _, interval in known]


def whiskers(
    axes: Axes, rows: Sequence[cells.Row], measure: str, label: str, shift: float = 0.0, **change: Any
) -> None:
    """One configuration: a line through its densities with the interval of each, moved right by a share `shift`."""
    densities, known = _points(rows, measure)
    if not known:
        return
    ends = [[k.value - k.low for k in known], [k.high - k.value for k in known]]
    x = [density * (1 + shift) for density in densities]
    look = style.look(rows[0]) | change
    axes.errorbar(x, [k.value for k in known], yerr=ends, label=label, capsize=3, elinewidth=1.2, **look)


def marks(axes: Axes, shown: Shown, crossings: str) -> None:
    """Break-evens, the data's own density, then cells without a result, which are never left out silently."""
    marked = {"best": shown.best(), "all": shown.crossing(), "none": []}[crossings]
    for even in marked:
        _crossing(axes, even, labelled=even is marked[0])
    _natural(axes, shown.rows)
    lost = [row for row in style.lost(shown.rows, shown.measure) if not cells.is_dense(row)]
    _without_result(axes, lost, needs=shown.measure.startswith("bytes"))
    style.count_lost(axes, shown.rows if shown.measure.startswith("seconds") else [], lost)
    if shown.measure.startswith("seconds"):
        _dense_unfit(axes, shown.dense)


def _natural(axes: Axes, rows: Sequence[cells.Row]) -> None:
    """A dotted line where the density is the data's own, named at the top."""
    own = next(iter(_densities(row for row in rows if row["density"] is None)), None)
    if own is None:
        return
    axes.axvline(own, color=style.GREY, linewidth=1.2, linestyle=":", zorder=0.5)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5}
    note = f"{cells.NATURAL}, {words.density(own)}"
    axes.annotate(note, (own, 0.985), xycoords=axes.get_xaxis_transform(), xytext=(4, 0), textcoords="offset points",
                  va="top", fontsize=style.SMALL, color=style.GREY, bbox=box)  # fmt: skip


def _crossing(axes: Axes, even: BreakEven, labelled: bool) -> None:
    """The interval as a band, and a dashed line where it is narrow enough for a number; named low, off most lines."""
    if even.low is None or even.high is None:
        return
    colour = style.look(even.settings)["color"]
    if even.low is None or even.high is None:  # what crosses has both ends
        return
    axes.axvspan(even.low, even.high, color=colour, alpha=0.2, linewidth=0)
    if even.density is not None:
        axes.axvline(even.density, color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
    if not labelled:
        return
    low, high = np.log(axes.get_xlim())
    middle = (even.low * even.high) ** 0.5 if even.density is None else even.density
    right = np.log(middle) > low + 0.7 * (high - low)  # then the note goes to the left of the line
    note = style.wrapped(f"break-even {even.place.removesuffix(' density')}", 16)
    place: dict[str, Any] = {"xytext": (-6 if right else 6, 0), "ha": "right" if right else "left"}
    if even.density is None:
        place = {"xytext": (0, 0), "ha": "center"}
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5}
    axes.annotate(note, (middle, 0.09), xycoords=axes.get_xaxis_transform(), textcoords="offset points",
                  fontsize=style.SMALL, bbox=box, **place)  # fmt: skip


def _dense_unfit(axes: Axes, rows: Sequence[cells.Row]) -> None:
    """Dense cells that did not fit: triangles at the top with the bytes they need."""
    unfit = [row for row in rows if row["status"] == "memory" and cells.density_of(row)]
    if not unfit:
        return
    top = axes.get_xaxis_transform()
    x = sorted(_densities(unfit))
    names = words.join(dict.fromkeys(words.short_line(row) for row in unfit))
    who = names if len(unfit) < len(rows) else "dense"
    axes.plot(x, [0.97] * len(x), "^", color=style.DENSE, transform=top, label="dense did not fit")
    need, limit = (
        max((row[name] for row in unfit if row[name]), default=None) for name in ("bytes_needed", "bytes_limit")
    )
    note = f"{who} needs {words.bytes_(need)}" if need else f"{who} did not fit"
    note += f", the limit is {words.bytes_(limit)}" if need and limit else ""
    axes.text(x[0], 0.92, style.wrapped(note, 60), transform=top, fontsize=style.SMALL, va="top", ha="left")


def _without_result(axes: Axes, rows: Sequence[cells.Row], needs: bool) -> None:
    """Crosses on the lower edge, but for those disturbed; `needs`: those with bytes needed are drawn there."""
    for row in rows:
        if row["status"] != "disturbed" and not (needs and row["bytes_needed"]):
            where = {"transform": axes.get_xaxis_transform(), "color": style.look(row)["color"]}
            for density in _densities([row]):
                axes.plot([density], [0.03], "x", markersize=9, markeredgewidth=2, **where)


def table(rows: Sequence[cells.Row], measures: Sequence[str]) -> pd.DataFrame:
    """One row a cell: configuration, density, each measure as exactly as it is known, rounds of its time, status."""
    ordered = sorted(rows, key=lambda row: (not cells.is_dense(row), words.line(row), cells.density_of(row) or 0.0))
    return pd.DataFrame([_described(row, measures) for row in ordered])


def _described(row: cells.Row, measures: Sequence[str]) -> dict[str, str]:
    known = {"configuration": words.line(row), "density": cells.density_label(row)}
    known |= {COLUMNS[measure]: _quantity(row, measure) for measure in measures}
    rests = words.plural(row["rounds"], "round") if row["status"] in cells.NUMBERED else ""
    result = row["status"] if row["status"] == "ok" else f"{row['status']}: {row['reason']}"
    return known | {"from": rests, "result": result}


def _quantity(row: cells.Row, measure: str) -> str:
    """A number of a row: as exactly as it is known where it was measured, in full where it was counted."""
    if measure in MEASURED:
        return words.measured_quantity(row, measure)
    return words.quantity(row[measure], measure) if row[measure] is not None else ""
