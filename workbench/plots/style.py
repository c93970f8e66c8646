"""Style shared by all charts: colours, line styles, axes in units, ticks that fit, titles, labels and controls.

The best sparse and the best dense candidate are bold, with their intervals, and named at the end of their lines. All
others are thin. A format has one colour in every chart, from those of Okabe and Ito, which most colour-blind readers
distinguish; vendor kernels are dashed; dense candidates are black, or grey if their data are not held as a dense array.
"""

import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from workbench.analysis import configurations, formatting
from workbench.analysis.answers import answered_groups
from workbench.analysis.compare import contests_of_group
from workbench.analysis.intervals import Interval, interval_of, shown_value
from workbench.plots import marks
from workbench.plots.chart import Control

DENSE = "#222222"
CANDIDATES = {
    ("ours", "csr"): ("#0072B2", "o"),
    ("ours", "csc"): ("#009E73", "s"),
    ("ours", "coo"): ("#56B4E9", "D"),
    ("ours", "row_sparse"): ("#7A5195", "h"),
    ("vendor", "csr"): ("#D55E00", "v"),
    ("vendor", "csc"): ("#E69F00", "^"),
    ("vendor", "coo"): ("#CC79A7", ">"),
    ("vendor", "row_sparse"): ("#8C6D31", "<"),
    ("dense", "dense"): (DENSE, "P"),
}
"""Colour and marker by engine and format."""
OTHER = ("#888888", "*", ":")
HELD = "#8A8A8A"
"""Colour of a dense training whose data are not held as a dense array."""
Groups = Callable[[pd.DataFrame], list[configurations.Group]]
GREY = "#555555"
DISTURBED = "next to other programs"
"""Name of what was measured only while other programs ran: hollow markers, and never the best of a chart."""
BOLD, THIN = 2.6, 0.9
"""Widths of the lines of the two best candidates and of the others."""
PALE = 0.35
"""Opacity of the bars of candidates that are not the best."""
SMALL, NORMAL, LARGE = 9, 10, 12
UNITS = r"(%|ns|µs|ms|s|B|kB|MB|GB|TB|times)(?!\w)"
SUBTITLE = "subtitle"
"""Group id of a chart's subtitle."""
MOST_LINES = 2
"""Lines of a subtitle; the rest is cut."""
SHOWN = {"all": "the best two named", "named": "all named", "best": "the best two alone"}


def look(row: configurations.Record, is_best: bool = True) -> dict[str, Any]:
    """Return keyword arguments of `Axes.plot` (colour, line style, width) for a record's configuration."""
    colour = CANDIDATES.get((row["engine"], row["format"]), OTHER)[0]
    if configurations.is_dense(row) and configurations.storage_of(row) != configurations.HELD:
        colour = HELD
    line = {"color": colour, "linestyle": "--" if row["engine"] == "vendor" else "-"}
    return line | ({"linewidth": BOLD, "zorder": 3} if is_best else {"linewidth": THIN, "alpha": 0.6})


def is_disturbed(row: configurations.Record, measure: str) -> bool:
    """Return whether the record's measure is a time taken only while other programs ran."""
    return measure.startswith("seconds") and row["status"] == "disturbed"


def best_lines(group: configurations.Group, measure: str = "seconds_step") -> list[tuple]:
    """Return the `line_key` of the best sparse and of the best dense candidate, of those that a group has.

    The best is the one that wins in its side at most densities, as in the verdict.
    """
    contests = contests_of_group(group, measure)
    sides = [[row for contest in contests if (row := getattr(contest, side))] for side in ("sparse", "dense")]
    return [Counter(map(configurations.line_key, rows)).most_common(1)[0][0] for rows in sides if rows]


def candidates_control() -> Control:
    """Return the control that selects which candidates are drawn and named, a key of `SHOWN`."""
    return Control("candidates", "which candidates are drawn and named", tuple(SHOWN), "all")


def mark(format: str) -> dict[str, str]:
    """Return {"color", "marker"} of a format with the native backend, or of "dense"."""
    colour, marker = CANDIDATES.get(("dense" if format == "dense" else "ours", format), OTHER[:2])
    return {"color": colour, "marker": marker}


def pick(frame: pd.DataFrame, label: str | None, groups_of: Groups = configurations.groups) -> configurations.Group:
    """Return the group of that label; the largest if it is None or unknown. IndexError without groups.

    `groups_of` gives the groups of the frame.
    """
    groups = groups_of(frame)
    return next((group for group in groups if group.label == label), groups[0])


def result_of(row: configurations.Record) -> str:
    """Return "ok", or the status of a record and its reason."""
    return "ok" if row["status"] == "ok" else f"{row['status']}: {row['reason']}"


def group_control() -> Control:
    """Return the control that selects a group of records; initially the largest."""
    labels = lambda frame: tuple(group.label for group in answered_groups(frame))  # noqa: E731
    return Control("group", "configurations alike but for density and configuration", labels)


def density_control() -> Control:
    """Return the control that selects a density, by its label.

    Initially the data's own, if the largest group has a result there, else the middle one of those with most results.
    """
    return Control("density", "density to show", _densities, _first_density)


def where(label: str | None) -> str:
    """Return the start of a sentence about one density, as "At 5 % density"; `label` is that density's label."""
    return f"At {label} density"


@configurations.once_per_group
def at_density(group: configurations.Group, label: str | None) -> Sequence[configurations.Record]:
    """Return the records of a group at the density with this label: dense first, then by time, failed ones last.

    Labels are those of `configurations.density_label`, such as "5 %"; [] for another one or None.
    """
    rows = [row for row in group.rows if configurations.density_label(row) == label]
    seconds_of = {id(row): shown_value(row, "seconds_step") for row in rows}
    return sorted(
        rows,
        key=lambda row: (not configurations.is_dense(row), seconds_of[id(row)] is None, seconds_of[id(row)] or 0.0),
    )


def _densities(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the labels of the densities in pooled records, ascending, without repetition."""
    rows = [row for group in configurations.groups(frame) for row in group.rows]
    by_density = configurations.by_density(sorted(rows, key=lambda row: row["density"] or 0))
    return tuple(dict.fromkeys(configurations.density_label(rows[0]) for rows in by_density.values()))


def _first_density(frame: pd.DataFrame) -> str:
    """Return the label of the density to show first: the natural one, else the middle of those with most results."""
    rows = [row for row in configurations.groups(frame)[0].rows if row["status"] == "ok"]
    found = Counter(map(configurations.density_label, rows))
    ok = {label: found[label] for label in _densities(frame)}
    if ok.get(configurations.NATURAL):
        return configurations.NATURAL
    best = [label for label, count in ok.items() if count == max(ok.values())]
    return best[(len(best) - 1) // 2]


def finish(figure: Figure, axes: Axes, title: str, group: configurations.Group, more: str = "") -> None:
    """Add title, a subtitle of `more` and the group's settings, and grid to a chart."""
    left_out = ("shuffle", "ahead", "machine")
    fixed = configurations.describe(group.settings, [name for name in configurations.GROUP if name not in left_out])
    add_title_and_grid(figure, axes, title, "; ".join(filter(None, (more, fixed))))
    axes.margins(y=0.1)  # keeps lines off the marks at the edges


def add_title_and_grid(figure: Figure, axes: Axes, title: str, below: str) -> None:
    """Add title, subtitle `below`, cut to `MOST_LINES` lines, and grid to a chart."""
    width = inches(figure)[0]
    lines = wrapped(below, int(13 * width) - 3).split("\n")
    subtitle = "\n".join(lines[:MOST_LINES]) + (" …" if len(lines) > MOST_LINES else "")
    figure.suptitle(wrapped(title, int(9.4 * width)), x=0.01, ha="left", fontsize=LARGE, fontweight="bold")
    # Its room: the text begins at the figure's left. With `y` Matplotlib searches no place above other axes.
    axes.set_title(" " + "\n" * subtitle.count("\n"), fontsize=SMALL, y=1.0)
    axes.annotate(subtitle, (0.01, 1), xycoords=("subfigure fraction", "axes fraction"), xytext=(0, 5), va="bottom",
                  textcoords="offset points", fontsize=SMALL, color=GREY, annotation_clip=False,
                  in_layout=False, gid=SUBTITLE)  # fmt: skip
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL)


SUBS = (tuple(range(1, 10)), (1, 2, 5), (1, 3), (1,))
"""Multiples of a power of ten that have a tick, the most first."""
SHORT = 30
"""Ratio of the ends of a logarithmic axis up to which all multiples may have ticks."""


def fit_ticks(figure: Figure) -> None:
    """Give each numeric axis of the figure as many ticks as fit without overprinting; layouts the figure."""
    lay_out(figure)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), FuncFormatter):
                next(filter(partial(_fits, axis), _locators(axis)), None)


def lay_out(figure: Figure) -> None:
    """Place the axes of the figure as its next drawing would, without drawing, which takes as long again."""
    engine = figure.get_layout_engine()
    assert engine is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no room for the axes: a page makes the figure higher
        engine.execute(figure)


def _locators(axis: Any) -> Iterator[Any]:
    """Yield locators of the ticks of an axis with ever fewer ticks."""
    low, high = sorted(axis.get_view_interval())
    is_log, fixed = axis.get_scale() == "log", axis.get_major_locator()
    if isinstance(fixed, FixedLocator):
        places = axis.get_majorticklocs()
        yield from (FixedLocator(places[::step]) for step in range(1, len(places)))
        return
    tries = [LogLocator(subs=subs, numticks=99) for subs in SUBS] if is_log else list(map(MaxNLocator, (7, 6, 5, 4)))
    yield from tries[1:] if is_log and high > SHORT * low else tries
    axis.set_major_locator(tries[0])
    tell = axis.get_major_formatter()
    rest = [at for at in axis.get_majorticklocs() if low <= at <= high and tell(at)]
    yield from (FixedLocator(rest[::step]) for step in range(1, len(rest) + 1))


def _fits(axis: Any, locator: Any) -> bool:
    """Set the locator of an axis, and return whether there are labels of ticks in view, and all apart."""
    axis.set_major_locator(locator)
    low, high = sorted(axis.get_view_interval())
    axis.get_majorticklabels()  # sets their places and texts
    labels = [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    ends = sorted((box.x0, box.x1 + 6) if axis.axis_name == "x" else (box.y0, box.y1) for box in boxes)
    return len(ends) > 1 and all(first[1] <= second[0] for first, second in pairwise(ends))


Label = tuple[float, float, str, str]
"""x, y, text and colour of what stands at the end of a line."""
END, SHORT_NAME = "end of a line", "name of a short bar"
"""Group ids of names which an interactive chart has in its list of names."""


def label_ends(axes: Axes, ends: Sequence[Label]) -> None:
    """Write the names of lines to the right of their ends (x, y, text, colour), moved apart so that none overlap."""
    height = 0.6 * inches(axes.get_figure())[1] * 72 / (1.3 * SMALL)  # lines of text that fit beside the axes
    texts = [wrapped(text, 14 if is_narrow(axes) else 22) for *_, text, _ in ends]
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [float(to_axes.transform((x, y))[1]) for x, y, *_ in ends]
    top = 0.0
    found: list[tuple[float, int]] = []
    for place, index in sorted((place, index) for index, place in enumerate(places)):
        half = (texts[index].count("\n") + 1.2) / height / 2
        at = max(place, top + half)
        top = at + half
        found.append((at, index))
    excess = max(top - 1.05, 0.0)
    for at, index in found:
        x, y, _, colour = ends[index]
        axes.annotate(texts[index], (x, y), xytext=(1.03, at - excess), textcoords="axes fraction", va="center",
                      color=colour, fontsize=SMALL, annotation_clip=False, gid=END,
                      arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "alpha": 0.6,
                                  "relpos": (0, 0.5), "shrinkA": 1, "patchA": None})  # fmt: skip


def note(axes: Axes, text: str, at: tuple[float, float], **change: Any) -> None:
    """Write a short text into the axes at a place in shares of their size, readable over lines."""
    look: dict[str, Any] = {"fontsize": SMALL, "color": GREY, "path_effects": [withStroke(linewidth=3, foreground="w")]}
    axes.annotate(text, at, **{"xycoords": "axes fraction", "va": "top"} | look | change)


NARROW = 5
"""Figures of fewer inches have the names of horizontal bars above them: next to them, hardly a bar would be left."""
NAMES_OF_BARS = "names of bars"
"""Group id of such names, by which a figure's height is chosen."""


def name_bars(axes: Axes, names: Sequence[str]) -> None:
    """Name horizontal bars at 0, 1, ...: next to the axis, or in a narrow figure above each bar."""
    axes.set_yticks(range(len(names)), names)
    if not is_narrow(axes):
        return
    axes.set_yticks(range(len(names)), [""] * len(names))
    for place, name in enumerate(names):
        text = axes.annotate(
            name,
            (0, place - 0.3),
            xycoords=axes.get_yaxis_transform(),
            xytext=(3, 0),
            textcoords="offset points",
            va="bottom",
            fontsize=SMALL,
        )
        text.set_gid(NAMES_OF_BARS)


def is_narrow(axes: Axes) -> bool:
    """Return whether the figure of the axes is less than `NARROW` inches wide."""
    return inches(axes.get_figure())[0] < NARROW


def inches(figure: Any) -> tuple[float, float]:
    """Return width and height of a Figure or SubFigure in inches."""
    return figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi


def wrapped(text: str, width: int) -> str:
    """Return the text in lines of at most `width` characters, without a break between a number and its unit."""
    kept = re.sub(rf"(?<=\d) (?={UNITS})", "\u00a0", text)
    return textwrap.fill(kept, width, break_on_hyphens=False).replace("\u00a0", " ")


def count_text(value: float) -> str:
    """Return a count as text for a tick; "" for a value between two counts.

    >>> count_text(3000.0), count_text(0.7)
    ('3,000', '')
    """
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 * value else ""


def log_axis(axis: Any, tell: Any, label: str) -> None:
    """Give a Matplotlib axis logarithmic ticks with text by `tell(value)`, and a label."""
    value_axis(axis, tell, label)
    axis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def value_axis(axis: Any, tell: Callable[[float], str], label: str) -> None:
    """Give a Matplotlib axis a label and ticks with text by `tell(value)`."""
    axis.set_label_text(label, fontsize=NORMAL)
    axis.set_major_formatter(marks.ValueText(tell))


class Point(NamedTuple):
    """A measured point of a candidate: where it stands, its value with the interval, and whether it was disturbed."""

    x: float
    known: Interval
    is_busy: bool


def draw_candidate(
    axes: Axes, name: str, points: Sequence[Point], look: dict[str, Any], is_best: bool, is_marked: bool = True
) -> None:
    """Draw the line of a candidate, with a band of its intervals if it is the best of its side.

    Points have markers if the candidate `is_marked`; those of disturbed records are hollow. The axes have their scales
    and formats already, in which the texts of the points are.
    """
    x, y = [point.x for point in points], [point.known.value for point in points]
    if is_best:
        lower, upper = [point.known.low for point in points], [point.known.high for point in points]
        axes.fill_between(x, lower, upper, color=look["color"], alpha=0.18, linewidth=0, label=f"_{name}")
    marker: dict[str, Any] = {"marker": "o" if is_marked else "", "markersize": 5 if is_best else 3}
    (line,) = axes.plot(x, y, label=f"_{name}", **marker, **look)
    tell_x, tell_y = marks.text_on_axis(axes.xaxis), marks.text_on_axis(axes.yaxis)
    marks.tell(line, [
        f"{name}: {tell_x(at)}, {tell_y(known.value)} (95 %: {tell_y(known.low)} to {tell_y(known.high)})"
        + (f", {DISTURBED}" if is_busy else "") for at, known, is_busy in points])  # fmt: skip
    busy = [point for point in points if is_marked and point.is_busy]
    hollow: dict[str, Any] = {"markerfacecolor": "white", "linestyle": "none", "zorder": 4, "markersize": 6}
    axes.plot([p.x for p in busy], [p.known.value for p in busy], "o", label="_", **look | hollow)


def is_timed(row: configurations.Record) -> bool:
    """Return whether a record has a result with the time of a step."""
    return row["status"] in configurations.NUMBERED and bool(row["seconds_step"])


def seconds(row: configurations.Record, steps: float) -> str:
    """Return the time of `steps` steps of a record as text, to the digits known of a step; "" without a time."""
    step = interval_of(row, "seconds_step")
    if step is None:
        return ""
    return formatting.format_measured(
        steps * step.value, steps * step.low, steps * step.high, formatting.format_seconds
    )


def name(row: configurations.Record, among: Iterable[configurations.Record]) -> str:
    """Return the configuration's name for a legend, with settings that differ between equal ones in `among`."""
    line = configurations.line_key(row)
    alike = [other for other in among if configurations.line_key(other) == line]
    varied = [setting for setting in configurations.BEST if len({other[setting] for other in alike}) > 1]
    return " · ".join(
        [
            formatting.name_configuration(row),
            *(f"{setting.replace('_', ' ')} {row[setting]:g}" for setting in varied),
        ]
    )


def at(rows: Sequence[configurations.Record], label: str | None) -> str:
    """Return "density LABEL" for a subtitle; for the data's own density with its measured value.

    `label` is the label of the density of `rows`.
    """
    measured = next((density for density in map(configurations.density_of, rows) if density), None)
    own = f", {formatting.format_density(measured)}" if label == configurations.NATURAL and measured else ""
    return f"density {label}{own}"


def nothing(what: str) -> str:
    """Return the sentence that no configuration of the group `what`, such as "has a time"."""
    return f"No configuration of this group {what}."


def without(row: configurations.Record) -> str:
    """Return why a record has no bar, "no result: STATUS", with the bytes needed if known."""
    need = f", needs {formatting.format_bytes(row['bytes_needed'])}" if row["bytes_needed"] else ""
    return f"no result: {configurations.status_text(row['status'])}{need}"


def count_lost(rows: Sequence[configurations.Record], lost: Sequence[configurations.Record]) -> str:
    """Return the part of a subtitle that counts failed records in `lost` by status, and the disturbed among `rows`."""
    failed = Counter(row["status"] for row in lost if row["status"] not in configurations.NUMBERED).most_common()
    missing = (
        f"no result: {formatting.join_items(f'{n} {configurations.status_text(status)}' for status, n in failed)}"
        if failed
        else ""
    )
    return "; ".join(filter(None, (count_disturbed(rows, "hollow"), missing)))


def count_disturbed(rows: Sequence[configurations.Record], mark: str) -> str:
    """Return the part of a subtitle that counts the disturbed records, which have the mark "hollow" or "pale"."""
    busy = sum(is_disturbed(row, "seconds_step") for row in rows)
    return f"{mark}: {formatting.format_count(busy, 'configuration')} only {DISTURBED}" if busy else ""


def drawable(rows: Iterable[configurations.Record], measure: str) -> list[configurations.Record]:
    """Return the records with a result, the measure and a density, by rising density."""
    good = [row for row in rows if is_drawable(row, measure)]
    return sorted(good, key=lambda row: configurations.density_of(row) or 0.0)


def is_drawable(row: configurations.Record, measure: str) -> bool:
    """Return whether a record has a result, the measure and a density."""
    has_value = row["status"] in configurations.NUMBERED and row[measure] is not None
    return has_value and bool(configurations.density_of(row))


def lost(rows: Sequence[configurations.Record], measure: str) -> list[configurations.Record]:
    """Return the records that `drawable` leaves out, in their order."""
    return [row for row in rows if not is_drawable(row, measure)]
