"""Shared parts of the charts against density: the dense baseline, lines, crossings, failures, the table."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from workbench.analysis import configurations, formatting
from workbench.analysis.breakeven import BreakEven, breakeven_of
from workbench.analysis.compare import EQUIVALENCE_MARGIN, contests_of_group
from workbench.analysis.intervals import Interval, interval_of, shown_value
from workbench.plots import style
from workbench.plots.chart import Control

# Selection that a chart against density shows: one group, its lines, its dense candidates, its break-evens.


MOST_BASELINES = 3
"""Dense candidates that are all drawn; of more only those that are the best somewhere."""


@dataclass(frozen=True)
class Shown:
    """Part of a frame that a chart shows: one group, its sparse lines of one update or all.

    Of rows that differ in seed or learning rate alone, the best stands for all, as in the break-evens.
    """

    measure: str
    group: configurations.Group
    lines: list[list[configurations.Record]]

    @classmethod
    def of(cls, frame: pd.DataFrame, measure: str, group: str | None, update: str) -> "Shown":
        """Return what a chart shows of pooled records for a measure, a group (None: the largest) and an update.

        `update` is "all" or the only update of the sparse lines. Raises IndexError if there are no groups.
        """
        return cls.of_group(style.pick(frame, group), measure, update)

    @staticmethod
    @configurations.once_per_group
    def of_group(group: configurations.Group, measure: str, update: str) -> "Shown":
        """Return what every chart and table shows of a group for a measure and an update, as in `of`."""
        lines = [
            _standing(rows, measure)
            for rows in configurations.sparse_lines(group.rows).values()
            if update in ("all", rows[0]["update"])
        ]
        return Shown(measure, group, lines)

    @cached_property
    def dense_lines(self) -> list[list[configurations.Record]]:
        """Records of each dense candidate, the best one for each density."""
        return [_standing(rows, self.measure) for rows in configurations.dense_lines(self.group.rows).values()]

    @cached_property
    def baselines(self) -> list[list[configurations.Record]]:
        """Dense lines to draw: all if there are few, else the best ones of each storage of the data."""
        lines = self.dense_lines
        if len(lines) <= MOST_BASELINES:
            return lines
        by_storage = configurations.group_by(lines, lambda rows: configurations.storage_of(rows[0]))
        return [rows for alike in by_storage.values() for rows in self._best_of(alike)]

    def _best_of(self, lines: Sequence[list[configurations.Record]]) -> list[list[configurations.Record]]:
        """Return the line that is lowest at most densities, and lines over 10 % lower at another density."""
        best = _standing([row for rows in lines for row in rows], self.measure)
        able = [row for row in style.drawable(best, self.measure) if not style.is_disturbed(row, self.measure)]
        least = {row["density"]: row[self.measure] for row in able}
        near = 1.0 if self.measure.startswith("seconds") else EQUIVALENCE_MARGIN  # memory is alike, whatever computes
        wins = [sum(row[self.measure] <= near * least.get(row["density"], 0.0)
                    for row in style.drawable(rows, self.measure)) for rows in lines]  # fmt: skip
        first = lines[wins.index(max(wins))]
        usual = {row["density"]: row[self.measure] for row in style.drawable(first, self.measure)}
        far = [
            row for row in able if EQUIVALENCE_MARGIN * (row[self.measure] or 0.0) < usual.get(row["density"], math.inf)
        ]
        return [rows for rows in lines if rows is first or any(row is one for row in rows for one in far)]

    @cached_property
    def dense(self) -> list[configurations.Record]:
        """Records of all dense candidates, the best one for each of their densities."""
        return [row for rows in self.dense_lines for row in rows]

    @cached_property
    def rows(self) -> list[configurations.Record]:
        """All records that are drawn or counted, dense ones first."""
        return [*self.dense, *(row for rows in self.lines for row in rows)]

    @cached_property
    def single(self) -> bool:
        """Whether there is at most one density, so that bars are drawn."""
        return len({row["density"] for row in self.rows}) < 2

    def even_of(self, row: configurations.Record) -> BreakEven | None:
        """Return the break-even of the record's configuration; None if it has none."""
        return breakeven_of(self.group, row, self.measure)

    def label(self, row: configurations.Record) -> str:
        """Return the legend's text of a record's line, "CSR ours, break-even 4 to 6 %"."""
        even = self.even_of(row)
        place = f", break-even {even.place.removesuffix(' density')}" if even and even.place else ""
        return f"{formatting.short_configuration_name(row)}{place}"

    def best(self) -> list[BreakEven]:
        """Return [the break-even of the configuration that the advice names]; [] if that one has none."""
        met = contests_of_group(self.group, self.measure)
        wins = [contest.sparse for contest in met if contest.verdict == "sparse"]
        best = self.even_of(wins[-1]) if wins and wins[-1] is not None else None
        return [even for even in self.crossing() if even is best]

    def crossing(self) -> list[BreakEven]:
        """Return the break-evens with a crossing of the lines shown, the one at the highest density first."""
        evens = [self.even_of(rows[0]) for rows in self.lines]
        return sorted(
            (even for even in evens if even and even.status == "crossing"), key=lambda even: -(even.high or 0)
        )


def _standing(rows: Sequence[configurations.Record], measure: str) -> list[configurations.Record]:
    """Return one record for each density, that of the least measure, by rising density.

    A record without a result only if no other has that density.
    """
    best = [min(at, key=lambda row: _rank(row, measure)) for at in configurations.by_density(rows).values()]
    return sorted(best, key=lambda row: configurations.density_of(row) or 0.0)


def _rank(row: configurations.Record, measure: str) -> tuple[bool, bool, float]:
    """Return a sort key for records, the smallest first: drawable, undisturbed, then by the value of `measure`."""
    return not style.is_drawable(row, measure), style.is_disturbed(row, measure), row[measure] or 0.0


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
    """Return the controls of every chart against density: group, update and crossings."""
    return (
        style.group_control(),
        Control("update", "which optimizer updates to show", ("all", "standard", "lazy", "exact"), "all"),
        Control("crossings", "which break-evens to mark", tuple(CROSSINGS), "best"),
    )


def _densities(rows: Iterable[configurations.Record]) -> list[float]:
    """Return the densities at which records are drawn, in their order; records without one are left out."""
    return [density for density in map(configurations.density_of, rows) if density]


def nothing(shown: Shown) -> str:
    """Return a sentence on why the chart has nothing to draw, with counts by status; "" if it has something."""
    if style.drawable(shown.rows, shown.measure):
        return ""
    why = style.nothing(f"has a {COLUMNS[shown.measure]}")
    counts = Counter(row["status"] for row in shown.rows).most_common()
    each = formatting.join_items(f"{count} {status}" for status, count in counts) if counts else "no configurations"
    return f"{why.rstrip('.')}: {each}."


def intervals(shown: Shown) -> str:
    """Return the part of a subtitle that says what the drawn intervals are, and how many records were disturbed."""
    plotted = style.drawable(shown.rows, shown.measure)
    busy = sum(row["status"] == "disturbed" for row in plotted) if shown.measure.startswith("seconds") else 0
    less = (
        f"; {busy} of {formatting.format_count(len(plotted), 'configuration')} only next to other programs"
        if busy
        else ""
    )
    paired = ", verdicts compare within rounds" if shown.measure.startswith("seconds") else ""
    return f"{'' if shown.single else 'bands and '}whiskers: intervals of the rounds{paired}{less}"


def axes_of(figure: Figure, shown: Shown, label: str) -> Axes:
    """Add logarithmic axes to the figure and return them; they cover the densities of failed records too.

    `label` is that of the y axis; ticks have units of seconds or bytes by the measure.
    """
    axes = figure.add_subplot()
    densities = _densities(shown.rows)
    axes.set_xlim(min(densities) / 1.3, max(densities) * 1.3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.log_axis(axes.xaxis, formatting.format_density, "density (stored entries / size)")
    style.log_axis(axes.yaxis, formatting.formatter_of(shown.measure), label)
    return axes


PALE_LINE = {"linewidth": 1.0}
"""Look of the line of a configuration that was measured only while other programs ran."""


def baseline(axes: Axes, shown: Shown) -> None:
    """Draw each dense line with its interval band; a horizontal line if only one density has a value.

    Disturbed records have a pale marker and no interval; the only quiet one among them is a marker, too. Several lines
    have markers; lines that are left out are counted in the legend.
    """
    baselines = shown.baselines
    for rows in baselines:
        x, known = _points(rows, shown.measure)
        look = style.look(rows[0])
        line: dict[str, Any] = look | {"linewidth": 2.4 if style.is_plain_dense(rows[0]) else 1.6}
        line |= {"label": style.name(rows[0], rows)}
        if len(baselines) < FEWEST_MARKED:
            line["marker"] = ""
        _draw_disturbed(axes, rows, shown.measure)
        if not x:
            pale = style.disturbed_look(look) | PALE_LINE if style.drawable(rows, shown.measure) else {}
            axes.plot([], [], **line | pale)
            continue
        band: dict[str, Any] = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
        if len(x) == 1 < len(style.drawable(rows, shown.measure)):
            ends = [[known[0].value - known[0].low], [known[0].high - known[0].value]]
            axes.errorbar(x, [known[0].value], yerr=ends, capsize=3, **line | {"marker": look["marker"]})
            continue
        if len(x) == 1:
            axes.axhspan(known[0].low, known[0].high, **band)
            axes.axhline(known[0].value, **line)
            continue
        axes.fill_between(x, [k.low for k in known], [k.high for k in known], **band)
        axes.plot(x, [k.value for k in known], **line)
    if left := len(shown.dense_lines) - len(baselines):
        what = formatting.format_count(left, "dense candidate")
        axes.plot([], [], linestyle="none", label=f"left out: {what} nowhere the best, in the table")


Shift = float | Mapping[float, float]
"""How far points are moved to the right, as a share of their density: one for all, or by density."""
NEAR, MOVE = 0.03, 0.035
"""Points nearer than this share of the axis's height hide each other; the share of the density they are moved by."""


def dodged(lines: Sequence[Sequence[configurations.Record]], measure: str) -> list[Mapping[float, float]]:
    """Return {density: shift} for each line, so that no marker lies on the marker of a line before it.

    A shift is a share of the density by which to move a point to the right, 0.0 if nothing is near.
    """
    places: list[dict[float, float]] = []
    for rows in lines:
        plotted = style.drawable(rows, measure)
        places.append(
            {density: math.log(row[measure]) for row in plotted if (density := configurations.density_of(row))}
        )
    heights = [height for known in places for height in known.values()]
    near = NEAR * max(max(heights, default=0.0) - min(heights, default=0.0), 1.0)
    return [
        {
            density: MOVE * sum(abs(before[density] - height) < near for before in places[:index] if density in before)
            for density, height in known.items()
        }
        for index, known in enumerate(places)
    ]


def _moved(densities: Sequence[float], shift: Shift) -> list[float]:
    """Return the densities, each multiplied by 1 + its shift."""
    if isinstance(shift, Mapping):
        return [density * (1 + shift.get(density, 0.0)) for density in densities]
    return [density * (1 + shift) for density in densities]


def _draw_disturbed(axes: Axes, rows: Sequence[configurations.Record], measure: str, shift: Shift = 0.0) -> None:
    """Draw pale markers for the records that were measured only while other programs ran.

    A thin line joins them if the configuration has no others: its strokes say whose they are.
    """
    densities, known = _points(rows, measure, is_disturbed=True)
    if known:
        is_alone = not _points(rows, measure)[0]
        look = style.disturbed_look(style.look(rows[0])) | (PALE_LINE if is_alone else {"linestyle": "none"})
        x = _moved(densities, shift)
        axes.plot(
            x,
            [k.value for k in known],
            label=f"_{formatting.short_configuration_name(rows[0])}, {style.DISTURBED}",
            **look,
        )


def _points(
    rows: Sequence[configurations.Record], measure: str, is_disturbed: bool = False
) -> tuple[list[float], list[Interval]]:
    """Return (densities ascending, intervals) of the drawable records that are disturbed, or not."""
    plotted = [row for row in style.drawable(rows, measure) if style.is_disturbed(row, measure) == is_disturbed]
    pairs = [(configurations.density_of(row), interval_of(row, measure)) for row in plotted]
    known = [(density, interval) for density, interval in pairs if density is not None and interval is not None]
    return [density for density, _ in known], [interval for _, interval in known]


def whiskers(
    axes: Axes, rows: Sequence[configurations.Record], measure: str, label: str, shift: Shift = 0.0, **change: Any
) -> None:
    """Draw a configuration's records: a line through its densities with an error bar each, moved right by `shift`.

    `measure` is the column drawn, `label` the legend's text; `change` overrides line properties. Disturbed records have
    pale markers off the line, joined by a thin one if there are no others. Nothing if none can be drawn.
    """
    densities, known = _points(rows, measure)
    if not style.drawable(rows, measure):
        return
    _draw_disturbed(axes, rows, measure, shift)
    ends = [[k.value - k.low for k in known], [k.high - k.value for k in known]]
    x = _moved(densities, shift)
    look = style.look(rows[0]) | change
    if not x:  # the legend has the markers that are drawn
        axes.plot([], [], label=label, **style.disturbed_look(look) | PALE_LINE)
        return
    axes.errorbar(x, [k.value for k in known], yerr=ends, label=label, capsize=3, elinewidth=1.2, **look)


def marks(axes: Axes, shown: Shown, crossings: str) -> None:
    """Draw break-evens, the data's own density, and marks of configurations without a result.

    `crossings` is "best", "all" or "none".
    """
    marked = {"best": shown.best(), "all": shown.crossing(), "none": []}[crossings]
    for even in marked:
        _crossing(axes, even, labelled=even is marked[0])
    _natural(axes, shown.rows)
    lost = [row for row in style.lost(shown.rows, shown.measure) if not configurations.is_dense(row)]
    _without_result(axes, lost, needs=shown.measure.startswith("bytes"))
    style.count_lost(axes, shown.rows if shown.measure.startswith("seconds") else [], lost)
    if shown.measure.startswith("seconds"):
        _dense_unfit(axes, shown.dense)


def _natural(axes: Axes, rows: Sequence[configurations.Record]) -> None:
    """Draw a dotted line, with a note at the top, at the data's own density; nothing if no record has it."""
    own = next(iter(_densities(row for row in rows if row["density"] is None)), None)
    if own is None:
        return
    axes.axvline(own, color=style.GREY, linewidth=1.2, linestyle=":", zorder=0.5)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5}
    note = f"{configurations.NATURAL}, {formatting.format_density(own)}"
    axes.annotate(note, (own, 0.985), xycoords=axes.get_xaxis_transform(), xytext=(4, 0), textcoords="offset points",
                  va="top", fontsize=style.SMALL, color=style.GREY, bbox=box)  # fmt: skip


def _crossing(axes: Axes, even: BreakEven, labelled: bool) -> None:
    """Draw a break-even: its interval as a band, a dashed line if it is narrow; a note if `labelled`."""
    if even.low is None or even.high is None:
        return
    colour = style.look(even.settings)["color"]
    if even.low is None or even.high is None:  # what crosses has both ends
        return
    axes.axvspan(even.low, even.high, facecolor=(style.GREY, 0.15), edgecolor=(colour, 0.6), linewidth=0.8)
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


def _dense_unfit(axes: Axes, rows: Sequence[configurations.Record]) -> None:
    """Draw triangles at the top for dense records that did not fit in memory, with a note on the bytes needed."""
    unfit = [row for row in rows if row["status"] == "memory" and configurations.density_of(row)]
    if not unfit:
        return
    top = axes.get_xaxis_transform()
    x = sorted(_densities(unfit))
    names = formatting.join_items(dict.fromkeys(formatting.short_configuration_name(row) for row in unfit))
    who = names if len(unfit) < len(rows) else "dense"
    axes.plot(x, [0.97] * len(x), "^", color=style.DENSE, transform=top, label="dense did not fit")
    need, limit = (
        max((row[name] for row in unfit if row[name]), default=None) for name in ("bytes_needed", "bytes_limit")
    )
    note = f"{who} needs {formatting.format_bytes(need)}" if need else f"{who} did not fit"
    note += f", the limit is {formatting.format_bytes(limit)}" if need and limit else ""
    axes.text(x[0], 0.92, style.wrapped(note, 60), transform=top, fontsize=style.SMALL, va="top", ha="left")


def _without_result(axes: Axes, rows: Sequence[configurations.Record], needs: bool) -> None:
    """Draw a cross at the lower edge for each record; with `needs` those with known bytes needed are left out."""
    for row in rows:
        if not (needs and row["bytes_needed"]):
            where = {"transform": axes.get_xaxis_transform(), "color": style.look(row)["color"]}
            for density in _densities([row]):
                axes.plot([density], [0.03], "x", markersize=9, markeredgewidth=2, **where)


def table(rows: Sequence[configurations.Record], measures: Sequence[str]) -> pd.DataFrame:
    """Return the numbers behind the chart as text, a row for each record, dense ones first, by density.

    Columns: configuration, density, each measure as exactly as it is known, rounds, result.
    """
    ordered = sorted(
        rows,
        key=lambda row: (
            not configurations.is_dense(row),
            formatting.name_configuration(row),
            configurations.density_of(row) or 0.0,
        ),
    )
    return pd.DataFrame([_described(row, measures) for row in ordered])


def _described(row: configurations.Record, measures: Sequence[str]) -> dict[str, str]:
    """Return the texts configuration, density, each measure, rounds ("from") and result of a record, by column."""
    known = {"configuration": formatting.name_configuration(row), "density": configurations.density_label(row)}
    known |= {COLUMNS[measure]: _quantity(row, measure) for measure in measures}
    rests = _rounds_of(row) if row["status"] in configurations.NUMBERED else ""
    return known | {"from": rests, "result": style.result_of(row)}


def _rounds_of(row: configurations.Record) -> str:
    """Return how many rounds a record rests on, "4 rounds" or "2 rounds, 2 disturbed rounds"."""
    quiet, disturbed = row["rounds"], row["rounds_disturbed"]
    counts = [formatting.format_count(quiet, "round")] if quiet or not disturbed else []
    return ", ".join([*counts, *([formatting.format_count(disturbed, "disturbed round")] if disturbed else [])])


def _quantity(row: configurations.Record, measure: str) -> str:
    """Return a measure of a record as text: to its known digits if measured, in full if counted; "" for None."""
    if measure in MEASURED:
        return formatting.format_measured_quantity(row, measure)
    return formatting.formatter_of(measure)(row[measure]) if row[measure] is not None else ""


# Bars that the charts against density draw where there is one density only: one a configuration, the least first.

ROOM = 1.45
"""Length of the axis by the longest bar, for the number at its end."""


def draw(figure: Figure, shown: Shown, label: str) -> Axes:
    """Draw horizontal bars, the smallest value first, for a chart with one density; return the axes.

    `label` is that of the x axis. Error bars are the intervals, a line marks the best baseline, records without a
    result have a note.
    """
    axes, measure = figure.add_subplot(), shown.measure
    rows = sorted(style.drawable(shown.rows, measure), key=lambda row: shown_value(row, measure) or 0.0)
    lost = style.lost(shown.rows, measure)
    longest = max(_end(interval_of(row, measure)) for row in rows)
    for place, row in enumerate(rows):
        _bar(axes, place, row, measure, longest)
    for place, row in enumerate(lost, len(rows)):
        axes.text(0.01 * longest, place, style.without(row), va="center", fontsize=style.SMALL)
    _baseline(
        axes, [row for row in rows if configurations.is_dense(row) and not style.is_disturbed(row, measure)], measure
    )
    plotted = [*rows, *lost]
    style.name_bars(axes, [style.name(row, plotted) for row in plotted])
    axes.set_ylim(max(len(plotted), 4) - 0.5, -0.8 if style.is_narrow(axes) else -0.6)
    axes.set_xlim(0, ROOM * longest)
    axes.set_xlabel(label, fontsize=style.NORMAL)
    axes.xaxis.set_major_locator(MaxNLocator(3 if style.is_narrow(axes) else 6))
    tell = formatting.formatter_of(measure)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tell(value)))
    style.count_lost(axes, shown.rows if measure.startswith("seconds") else [], [])
    return axes


def finish(figure: Figure, axes: Axes, title: str, shown: Shown, note: str) -> None:
    """Add title, subtitle (density and `note`) and legend to a bar chart, leaving space for the names on the left."""
    at = style.at(shown.rows, configurations.density_label(shown.rows[0]))
    style.finish(figure, axes, title, shown.group, f"{at}; {note}", room=style.room_beside_names(axes))
    axes.grid(visible=False, axis="y")


def _end(known: Interval | None) -> float:
    """Return the x position where a bar with its interval ends, at most twice its value; 0.0 if unknown."""
    return min(known.high, 2 * known.value) if known else 0.0


def _bar(axes: Axes, place: int, row: configurations.Record, measure: str, longest: float) -> None:
    """Draw the bar of a record at height `place` with its interval and value; nothing without a value.

    `longest` is the length of the longest bar, for distances.
    """
    known = interval_of(row, measure)
    if known is None:
        return
    look = style.disturbed_look(style.look(row)) if style.is_disturbed(row, measure) else style.look(row)
    face = look["markerfacecolor"]
    bar: dict[str, Any] = {"facecolor": face, "edgecolor": look["color"], "linewidth": 1.8, "height": 0.56}
    bar |= {"alpha": look.get("alpha")}
    axes.barh(place, known.value, linestyle=look["linestyle"] if face == "white" else "-", **bar)
    ends = [[known.value - known.low], [known.high - known.value]]
    axes.errorbar([known.value], [place], xerr=ends, fmt="none", ecolor="#888888", elinewidth=2, capsize=4)
    end = max(_end(known), known.value)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.0}
    text = formatting.format_measured_quantity(row, measure)
    axes.text(end + 0.02 * longest, place, text, va="center", fontsize=style.SMALL, bbox=box)


def _baseline(axes: Axes, rows: Sequence[configurations.Record], measure: str) -> None:
    """Draw a dashed line at the smallest value of `rows` (dense records); nothing if there are none."""
    least = min(rows, key=lambda row: shown_value(row, measure) or 0.0, default=None)
    if least is not None:
        label = f"{formatting.short_configuration_name(least)}, the baseline"
        axes.axvline(
            shown_value(least, measure) or 0.0, color=style.DENSE, linewidth=1.2, linestyle=(0, (4, 2)), label=label
        )
