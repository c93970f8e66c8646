"""What the charts against density share: what is shown, the dense baseline, lines, crossings, failures, the table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import cells, words
from workbench.analysis.breakeven import BreakEven, of_group
from workbench.analysis.compare import contests
from workbench.analysis.intervals import Interval, interval_of
from workbench.plots import style
from workbench.plots.chart import Control

CROSSINGS = {"best": "the best only", "all": "of every configuration", "none": "none"}
COLUMNS = {
    "seconds_step": "time a step",
    "bytes_peak": "peak memory",
    "bytes_predicted": "predicted",
    "bytes_held": "held by arrays",
    "bytes_needed": "needed",
}


@dataclass(frozen=True)
class Shown:
    """The part of a frame that a chart shows: one group, its sparse lines of one update or all, its break-evens."""

    measure: str
    group: cells.Group
    lines: list[list[cells.Row]]
    evens: list[BreakEven]

    @classmethod
    def of(cls, frame: pd.DataFrame, measure: str, group: str | None, update: str) -> "Shown":
        """From the chosen values of the controls."""
        picked = style.pick(frame, group)
        lines = [rows for rows in cells.sparse_lines(picked.rows).values() if update in ("all", rows[0]["update"])]
        return cls(measure, picked, lines, of_group(picked, measure))

    @property
    def dense(self) -> list[cells.Row]:
        """The baseline's rows."""
        return cells.dense_rows(self.group.rows)

    @property
    def rows(self) -> list[cells.Row]:
        """All rows that are shown or counted."""
        return [*self.dense, *(row for rows in self.lines for row in rows)]

    def even_of(self, row: cells.Row) -> BreakEven | None:
        """The break-even of a row's configuration."""
        return next((even for even in self.evens if even.line == cells.line_of(row)), None)

    def label(self, row: cells.Row) -> str:
        """The legend's text: configuration and where it crosses dense."""
        even = self.even_of(row)
        place = even.density if even and even.status == "crossing" else None
        crosses = "" if place is None else f", crosses at {words.density(place)}"
        return f"{words.short_line(row)}{crosses}"

    def best(self) -> list[BreakEven]:
        """The break-even of the configuration that the advice names; empty where that one crosses nowhere.

        Where none wins, the highest of all.
        """
        wins = [contest.sparse for contest in contests(self.group.rows, self.measure) if contest.verdict == "sparse"]
        best = self.even_of(wins[-1]) if wins and wins[-1] is not None else None
        return [even for even in self.crossing() if best in (even, None)][:1]

    def crossing(self) -> list[BreakEven]:
        """Break-evens of the lines shown, the highest first."""
        evens = [self.even_of(rows[0]) for rows in self.lines]
        return sorted(
            (even for even in evens if even and even.status == "crossing"), key=lambda even: -(even.density or 0)
        )


def controls() -> tuple[Control, ...]:
    """Those of every chart against density."""
    return (
        style.group_control(),
        Control("update", "which optimizer updates to show", ("all", "standard", "lazy", "exact"), "all"),
        Control("crossings", "which break-evens to mark", tuple(CROSSINGS), "best"),
    )


def _densities(rows: Iterable[cells.Row]) -> list[float]:
    """The densities that rows are drawn at; rows without one are left out."""
    return [density for density in map(cells.density_of, rows) if density]


def nothing(shown: Shown, measure: str) -> str:
    """Why a chart has nothing to draw, empty where it has something."""
    if style.drawable(shown.rows, measure):
        return ""
    counts = Counter(row["status"] for row in style.lost(shown.rows, measure)).most_common()
    each = words.join(f"{count} {status}" for status, count in counts) if counts else "no cells"
    return f"No cell of this group has a {COLUMNS[measure]}: {each}."


def axes_of(figure: Figure, shown: Shown, measure: str, label: str) -> Axes:
    """Axes with both scales logarithmic, units on them, and room for every density, also of cells without a result."""
    axes = figure.add_subplot()
    densities = _densities(shown.rows)
    room = 1.3 if len(set(densities)) > 1 else 4.0
    axes.set_xlim(min(densities) / room, max(densities) * room)
    axes.set_xscale("log")
    axes.set_yscale("log")
    unit = words.seconds if measure.startswith("seconds") else words.bytes_
    style.log_axis(axes.xaxis, words.density, "density (stored entries / size)")
    style.log_axis(axes.yaxis, unit, label)
    if len(set(densities)) == 1:
        axes.set_xticks(densities[:1])
    return axes


def baseline(axes: Axes, rows: Sequence[cells.Row], measure: str) -> None:
    """Dense as a line with the band of its interval, over the whole width where only one density has it."""
    x, known = _points(rows, measure)
    if not x:
        return
    line: dict[str, Any] = {"color": style.DENSE, "linewidth": 2.4, "label": "dense"}
    band: dict[str, Any] = {"color": style.DENSE, "alpha": 0.2, "linewidth": 0}
    if len(x) == 1:
        axes.axhspan(known[0].low, known[0].high, **band)
        axes.axhline(known[0].value, **line)
        return
    axes.fill_between(x, [k.low for k in known], [k.high for k in known], **band)
    axes.plot(x, [k.value for k in known], **line)


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


def marks(axes: Axes, shown: Shown, measure: str, crossings: str) -> None:
    """Break-evens, then cells without a result, which are never left out silently."""
    marked = {"best": shown.best(), "all": shown.crossing(), "none": []}[crossings]
    for even in marked:
        _crossing(axes, even, labelled=even is marked[0])
    failed = [row for row in style.lost(shown.rows, measure) if not cells.is_dense(row)]
    _without_result(axes, failed, needs=measure.startswith("bytes"))
    if measure.startswith("seconds"):
        _dense_unfit(axes, shown.dense)


def _crossing(axes: Axes, even: BreakEven, labelled: bool) -> None:
    """A dashed line with the interval as a band; the density is written beside it, low, where lines seldom are."""
    colour = style.look(even.settings)["color"]
    ends = ""
    if even.low is not None and even.high is not None and even.low != even.high:
        axes.axvspan(even.low, even.high, color=colour, alpha=0.2, linewidth=0)
        ends = f"\n({words.span(even.low, even.high, words.density)})"
    if even.density is None:
        return
    axes.axvline(even.density, color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
    if not labelled:
        return
    low, high = np.log(axes.get_xlim())
    right = np.log(even.density) > low + 0.7 * (high - low)  # then the note goes to the left of the line
    note = f"break-even\n{words.density(even.density)}{ends}"
    place: dict[str, Any] = {
        "xytext": (-6 if right else 6, 0),
        "textcoords": "offset points",
        "ha": "right" if right else "left",
    }
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5}
    at = (even.density, 0.09)
    axes.annotate(note, at, xycoords=axes.get_xaxis_transform(), fontsize=style.SMALL, bbox=box, **place)


def _dense_unfit(axes: Axes, rows: Sequence[cells.Row]) -> None:
    """Dense cells that did not fit: triangles at the top with the bytes they need."""
    unfit = [row for row in rows if row["status"] == "memory" and cells.density_of(row)]
    if not unfit:
        return
    top = axes.get_xaxis_transform()
    x = sorted(_densities(unfit))
    axes.plot(x, [0.97] * len(x), "^", color=style.DENSE, transform=top, label="dense did not fit")
    need, limit = (
        max((row[name] for row in unfit if row[name]), default=None) for name in ("bytes_needed", "bytes_limit")
    )
    note = f"dense needs {words.bytes_(need)}" if need else "dense did not fit"
    note += f", the limit is {words.bytes_(limit)}" if need and limit else ""
    axes.text(x[0], 0.92, note, transform=top, fontsize=style.SMALL, va="top", ha="left")


def _without_result(axes: Axes, rows: Sequence[cells.Row], needs: bool) -> None:
    """Crosses on the lower edge, counted by status in the legend; `needs`: those with bytes needed are drawn there."""
    for row in rows:
        if not (needs and row["bytes_needed"]):
            where = {"transform": axes.get_xaxis_transform(), "color": style.look(row)["color"]}
            for density in _densities([row]):
                axes.plot([density], [0.03], "x", markersize=9, markeredgewidth=2, **where)
    if rows:
        counts = Counter(row["status"] for row in rows).most_common()
        label = f"no result: {words.join(f'{count} {status}' for status, count in counts)}"
        axes.plot([], [], "x", color=style.GREY, markersize=8, markeredgewidth=2, label=label)


def table(rows: Sequence[cells.Row], measures: Sequence[str]) -> pd.DataFrame:
    """One row a cell: configuration, density, each measure with its interval, what it rests on, status."""
    ordered = sorted(rows, key=lambda row: (not cells.is_dense(row), words.line(row), cells.density_of(row) or 0.0))
    return pd.DataFrame([_described(row, measures) for row in ordered])


def _described(row: cells.Row, measures: Sequence[str]) -> dict[str, str]:
    known = {"configuration": words.line(row), "density": cells.density_label(row)}
    known |= {COLUMNS[measure]: _quantity(row, measure) for measure in measures}
    rests = f"{words.plural(len(row['samples'] or ()), 'sample')}, {words.plural(row['rounds'], 'round')}"
    ok = row["status"] == "ok"
    return known | {"from": rests if ok else "", "result": "ok" if ok else f"{row['status']}: {row['reason']}"}


def _quantity(row: cells.Row, measure: str) -> str:
    known = interval_of(row, measure)
    if known is None:
        return ""
    return words.around(known.value, known.low, known.high, lambda end: words.quantity(end, measure))
