"""Style shared by all charts: colours, markers, line styles, axes in units, titles, and controls.

A candidate, which is a format and whose kernels compute with it, has the same colour and marker in every chart. Colours
start from Okabe and Ito's, distinguished by most colour-blind readers, and are never the only sign: ours are cool
colours and full shapes, the vendor's warm colours and triangles; a lazy update has a hollow marker and an exact one a
half-filled, a dense gradient a paler colour, a CUDA device a black edge around the marker, a step in one graph a line
of dashes and dots, one thread where others may use more a line of short dashes. Dense candidates have a marker for each
execution, and are black if their data are held as a dense array of their type, else of another colour.
"""

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from workbench.analysis import configurations, formatting
from workbench.analysis.answers import answered_groups
from workbench.analysis.intervals import interval_of, shown_value
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

STORAGE_COLOURS = {"csr": "#8A8A8A", "uint8": "#7B1E3A", "float16": "#5B5B9A"}
"""Colour of a dense training by what its data are held as, where that is no dense array of their type."""
DENSE_MARKERS = {"epoch": "X", "dual": "d", "graph": "*"}
"""Marker of a dense training by its launch, where that is not a step at a time."""
LINES = {"ours": "-", "vendor": "--", "dense": "-"}
OTHER = ("#888888", "*", ":")
GRAPH = "-."
EPOCH = (0, (3, 1, 1, 1, 1, 1))
DUAL = (0, (5, 1, 1, 1, 1, 1))
LAUNCHES = {"graph": GRAPH, "epoch": EPOCH, "dual": DUAL}
SERIAL = (0, (2, 1.5))
SEVERAL = (0, (1, 1))
FILLED = {"lazy": "left", "exact": "top"}
"""Filled half of the marker of several trainers, by update; right for all others."""
Groups = Callable[[pd.DataFrame], list[configurations.Group]]
GREY = "#555555"
DISTURBED = "next to other programs"
"""Name of what was measured only while other programs ran: pale, and never the best of a chart."""
PALE = 0.4
"""Opacity of what was measured only while other programs ran."""
SMALL, NORMAL, LARGE = 9, 10, 12
UNITS = r"(%|ns|µs|ms|s|B|kB|MB|GB|TB|times)(?!\w)"
SHORT, SHORTEST = 30, 4
"""A logarithmic axis whose ends are less far apart has more ticks, or one or two would be all."""


def look(row: configurations.Record) -> dict[str, Any]:
    """Return keyword arguments of `Axes.plot` (colour, marker, line style, ...) for a record's configuration."""
    base, marker = CANDIDATES.get((row["engine"], row["format"]), OTHER[:2])
    if configurations.is_dense(row):
        base = STORAGE_COLOURS.get(configurations.storage_of(row), base)
        marker = DENSE_MARKERS.get(str(row.get("launch")), marker)
    pale = row["gradient"] == "dense" and not configurations.is_dense(row)
    red, green, blue = colors.to_rgb(base)
    colour = colors.to_hex((0.75 * red + 0.25, 0.75 * green + 0.25, 0.75 * blue + 0.25)) if pale else base
    several = (row.get("trainers") or 1) > 1
    face = "white" if (row["update"] == "lazy" and not several) or row.get("serial") else colour
    line = _line(row)
    style = {"marker": marker, "linestyle": line}
    half: dict[str, Any] = {"fillstyle": "bottom", "markerfacecoloralt": "white"} if row["update"] == "exact" else {}
    if several:  # lines are not in every chart, so their markers differ, too
        half = {"fillstyle": FILLED.get(row["update"], "right"), "markerfacecoloralt": "white"}
    half |= {"markeredgecolor": "black", "markeredgewidth": 1.6} if row.get("device") == "cuda" else {}
    return style | half | {"color": colour, "markerfacecolor": face, "markersize": 6, "linewidth": 1.8}


def is_disturbed(row: configurations.Record, measure: str) -> bool:
    """Return whether the record's measure is a time taken only while other programs ran."""
    return measure.startswith("seconds") and row["status"] == "disturbed"


def disturbed_look(look: dict[str, Any]) -> dict[str, Any]:
    """Return a pale look for disturbed records: colour, shape and fill stay, which say whose record it is."""
    return look | {"alpha": PALE}


def is_plain_dense(row: configurations.Record) -> bool:
    """Return whether a record is of plain dense training: dense array, execution per step, all threads."""
    return formatting.short_configuration_name(row) == f"dense{formatting.device_suffix(row)}"


def _line(row: configurations.Record) -> Any:
    """Return the Matplotlib line style of a record: by serial, trainers, launch, else by backend."""
    if row.get("serial"):
        return SERIAL
    if (row.get("trainers") or 1) > 1:
        return SEVERAL
    return LAUNCHES.get(str(row.get("launch"))) or LINES.get(row["engine"], OTHER[2])


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


def finish(figure: Figure, axes: Axes, title: str, group: configurations.Group, more: str = "", **change: Any) -> None:
    """Add title, a subtitle with the group's fixed settings and `more`, and the legend below the axes.

    `change`: `columns` is the legend's largest number of columns, `room` the width of the axes as a share of the
    figure's.
    """
    left_out = ("shuffle", "ahead", "machine")
    fixed = configurations.describe(group.settings, [name for name in configurations.GROUP if name not in left_out])
    framed(figure, axes, title, f"{fixed}; {more}" if more else fixed, **change)


def framed(figure: Figure, axes: Axes, title: str, below: str, **change: Any) -> None:
    """Add title, subtitle `below`, grid, ticks and legend to a chart; `change` as in `finish`."""
    width = figure.get_figwidth()
    add_title_and_grid(figure, axes, title, below, change.get("room", NARROW_SHARE if is_narrow(axes) else 1.0))
    axes.margins(y=0.1)  # keeps lines off the marks at the edges
    for axis in (axes.xaxis, axes.yaxis):
        _add_ticks(axis)
    entries = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda entry: _place(entry[1]))
    if entries:
        handles = [handle for handle, _ in entries]
        labels = [wrapped(label, int(13 * width) - 8) for _, label in entries]  # the mark takes the rest of a line
        columns = min(change.get("columns", 2), _columns_of(labels, width))
        columns = math.ceil(len(labels) / math.ceil(len(labels) / columns))  # no entry alone in the last line
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False)


def _add_ticks(axis: Any) -> None:
    """Give a logarithmic Matplotlib axis more ticks if its ends are near each other; others are left as they are."""
    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log" and high < SHORT * low:
        subs = (1.0, 2.0, 3.0, 5.0) if high > SHORTEST * low else tuple(range(1, 10))
        axis.set_major_locator(LogLocator(subs=subs, numticks=12))


def add_title_and_grid(figure: Figure, axes: Axes, title: str, below: str, room: float = 1.0) -> None:
    """Add title, subtitle `below` (as wide as a share `room` of the figure) and grid to a chart."""
    width = figure.get_figwidth()
    figure.suptitle(wrapped(title, int(10 * width)), x=0.01, ha="left", fontsize=LARGE, fontweight="bold")
    axes.set_title(wrapped(below, int(13 * width * room)), loc="left", fontsize=SMALL, color=GREY)
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL)


DECADES = 300
"""Ratio of the ends of a logarithmic axis from which on a narrow figure has room for powers of ten alone."""
NARROW = 5
"""Figures of fewer inches have the names of horizontal bars above them: next to them, hardly a bar would be left."""
NARROW_SHARE = 0.84
"""Width of the axes as a share of a narrow figure's: the labels of the other axis take the rest."""
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
    figure = axes.get_figure(root=True)
    return figure is not None and figure.get_figwidth() < NARROW


def room_beside_names(axes: Axes) -> float:
    """Return the share of the figure's width that the axes of named bars have."""
    return 0.95 if is_narrow(axes) else 0.75


def _columns_of(labels: Sequence[str], width: float) -> int:
    """Return how many columns a legend with these labels may have in a figure of `width` inches, 1 or more."""
    widest = max(map(len, labels)) / 13 + 0.6  # characters an inch, as in `framed`, and the mark before them
    return max(int(width / widest), 1) if width > 7 else 1


def wrapped(text: str, width: int) -> str:
    """Return the text in lines of at most `width` characters, without a break between a number and its unit."""
    kept = re.sub(rf"(?<=\d) (?={UNITS})", "\u00a0", text)
    return textwrap.fill(kept, width, break_on_hyphens=False).replace("\u00a0", " ")


def _place(label: str) -> int:
    """Return the sort key of a legend entry: dense, configurations, other marks, without result, left out."""
    starts = {"dense": 0, "predicted": 2, DISTURBED: 2, "no result": 3, "left out": 4}
    return next((place for start, place in starts.items() if label.startswith(start)), 1)


def count_text(value: float) -> str:
    """Return a count as text for a tick; "" for a value between two counts.

    >>> count_text(3000.0), count_text(0.7)
    ('3,000', '')
    """
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-6 * value else ""


def log_axis(axis: Any, tell: Any, label: str) -> None:
    """Give a Matplotlib axis logarithmic ticks with text by `tell(value)`, and a label."""
    axis.set_label_text(label, fontsize=NORMAL)
    low, high = sorted(axis.get_view_interval())
    is_crowded = axis.axis_name == "x" and is_narrow(axis.axes) and high > DECADES * low
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_crowded else (1.0, 3.0), numticks=7 if is_crowded else 12))
    _add_ticks(axis)
    axis.set_major_formatter(FuncFormatter(lambda value, _: tell(value)))
    axis.set_minor_formatter(NullFormatter())


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
            formatting.short_configuration_name(row),
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
    return f"no result: {row['status']}{need}"


def count_lost(axes: Axes, rows: Sequence[configurations.Record], lost: Sequence[configurations.Record]) -> None:
    """Add legend entries that count the failed records in `lost` by status, and the disturbed trials of `rows`."""
    failed = Counter(row["status"] for row in lost if row["status"] not in configurations.NUMBERED).most_common()
    if failed:
        label = f"no result: {formatting.join_items(f'{count} {status}' for status, count in failed)}"
        axes.plot([], [], "x", color=GREY, markersize=8, markeredgewidth=2, label=label)
    if busy := sum(row["rounds_disturbed"] for row in rows):
        marker = "o" if any(is_disturbed(row, "seconds_step") for row in rows) else ""
        look = disturbed_look({"marker": marker, "color": GREY})
        axes.plot([], [], linestyle="none", label=f"{DISTURBED}: {formatting.format_count(busy, 'trial')}", **look)


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
