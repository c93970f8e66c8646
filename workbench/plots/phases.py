"""Time of a step by phase: one bar a configuration, one segment a phase.

Phases are means over all steps: they give the shares. The length of a bar is the time a step of the configuration, as
all charts have it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis.configurations import Record, is_dense, line_key
from workbench.analysis.formatting import format_measured_quantity, format_seconds, name_configuration
from workbench.plots import marks, style
from workbench.plots.chart import Control, message, register_chart

PHASES = {
    "slice": "#999999",
    "convert": "#E69F00",
    "plan": "#F0E442",
    "wait": "#DDDDDD",
    "transfer": "#56B4E9",
    "forward": "#0072B2",
    "loss": "#CC79A7",
    "gradient": "#009E73",
    "update": "#D55E00",
    "graph": "#000000",
    "batches": "#332288",
}
DARK = ("forward", "gradient", "update", "graph", "batches")  # white letters can be read on these
TOTALS = {"time a step": "seconds_step", "preparing a batch": "seconds_prepare"}
READABLE = 8  # times the fastest bar that the slowest may take
BATCHES = "batches: whole steps, many in one compiled call"
MOST_BARS = 8  # others are in the table
LEAST_BARS = 4  # for which there is room
FEW = 7  # bars up to which the note of each may have two lines
MOST_NOTE = 0.62  # share of the axes that the note of a bar has at most; a longer one is cut


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None, scale: str) -> str:
    """Draw a stacked bar of the phases for each configuration at one density; return the sentence below the chart.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest. `scale` is "time" or "share". Dense
    first, then by time; disturbed records are pale, failed ones have a note. A message if nothing was timed.
    """
    shown = style.pick(frame, group)
    rows = _kept(style.at_density(shown, density), style.best_lines(shown))
    if not any(map(style.is_timed, rows)):
        return message(figure, style.nothing(f"was timed at {density} density"))
    axes = figure.add_subplot()
    phases = [phases_of(row) for row in rows]
    totals = [sum(each.values()) for each in phases]
    notes = [_note(row, each, len(rows)) for row, each in zip(rows, phases, strict=True)]
    longest = 1.0 if scale == "share" else max(totals) or 1.0
    units = [total if scale == "share" else 1.0 for total in totals]
    limit = _limit(axes, notes, [total / unit if unit else 0.0 for total, unit in zip(totals, units, strict=True)])
    character, unnamed = _character(axes) * limit, dict[str, tuple[float, float]]()
    for place, (row, each, unit, note) in enumerate(zip(rows, phases, units, notes, strict=True)):
        end, short = _bar(axes, place, row, each, unit, longest, character)
        axes.text(end + 0.01 * longest, place, note, va="center", fontsize=style.SMALL)
        unnamed |= short
    written = {text.get_text() for text in axes.texts}
    unnamed = {name: at for name, at in unnamed.items() if name not in written}
    _axes(axes, rows, limit, scale, bool(unnamed) and len(rows) >= LEAST_BARS)
    _name_short(axes, unnamed, len(rows) - 0.42, character)
    title, sentence = _finding(rows, density)
    busy = style.count_disturbed(rows, "pale")
    several = BATCHES if any(each.get("batches") for each in phases) else ""
    style.finish(figure, axes, title, shown, "; ".join(filter(None, (style.at(rows, density), busy, several))))
    axes.grid(visible=False, axis="y")
    return sentence


def _kept(rows: Sequence[Record], best: Sequence[tuple]) -> list[Record]:
    """Return the first `MOST_BARS` records, those of the best candidates and timed ones before others, in order."""
    ranked = sorted(
        rows, key=lambda row: (line_key(row) not in best, not style.is_timed(row), row["seconds_step"] or 0.0)
    )
    return [row for row in rows if row in ranked[:MOST_BARS]]


def phases_of(row: Record) -> dict[str, float]:
    """Return {phase: seconds of a step}; {} for a record without a result.

    Each is the phase's share of the mean step times the configuration's step time, which is their sum.
    """
    if not style.is_timed(row):
        return {}
    means = {name: row[f"seconds_{name}"] or 0.0 for name in PHASES}
    unit = row["seconds_step"] / (sum(means.values()) or 1.0)
    return {name: seconds * unit for name, seconds in means.items()}


def _character(axes: Axes) -> float:
    """Return an upper bound of the width of a character of a small text, as a share of the width of the axes."""
    return 0.021 if style.is_narrow(axes) else 0.0135


def _limit(axes: Axes, notes: Sequence[str], lengths: Sequence[float]) -> float:
    """Return the right limit of the axes, at which each bar of `lengths` has space for its note."""
    most = max(lengths) or 1.0
    texts = [max(map(len, note.split("\n"))) * _character(axes) for note in notes]
    ends = [length / (1 - min(text, MOST_NOTE)) for length, text in zip(lengths, texts, strict=True)]
    return max(1.2 * most, *ends)


def _bar(
    axes: Axes, place: int, row: Record, phases: Mapping[str, float], unit: float, longest: float, character: float
) -> tuple[float, dict[str, tuple[float, float]]]:
    """Draw the segments of a record's phases at height `place`, named if there is space for the name.

    `unit` divides seconds, `longest` is the longest bar, `character` the width of a character on the axis. Returns
    where the bar ends, and {phase: (x, y) of the lower edge of its segment} of the phases that are not named.
    """
    start, is_pale, unnamed = 0.0, style.is_disturbed(row, "seconds_step"), dict[str, tuple[float, float]]()
    for name, seconds in phases.items():
        width = seconds / unit if unit else 0.0
        edge = 0.8 if width > 0.01 * longest else 0.0  # an edge would hide a thin segment
        look: dict[str, Any] = {"color": PHASES[name], "edgecolor": "white", "linewidth": edge}
        look |= {"alpha": style.PALE} if is_pale else {}
        bars = axes.barh(place, width, left=start, height=0.62, label=f"_{name}", **look)
        marks.tell(bars[0], [f"{name_configuration(row)}, {name}: {format_seconds(seconds)}"])
        if width > character * len(name):
            colour = "white" if name in DARK and not is_pale else "black"
            axes.text(start + width / 2, place, name, ha="center", va="center", fontsize=style.SMALL, color=colour)
        elif width:
            unnamed[name] = (start + width / 2, place + 0.31)
        start += width
    return start, unnamed


def _name_short(axes: Axes, found: Mapping[str, tuple[float, float]], below: float, character: float) -> None:
    """Write the names of segments that are too short for them in a line at height `below`, with lines to the segments.

    `found` is {phase: (x, y) of the lower edge of its lowest segment}; `character` the width of a character.
    """
    start = 0.0
    for name, (x, y) in sorted(found.items(), key=lambda item: item[1]):
        at = max(start, x - character * len(name) / 2)
        axes.annotate(name, (x, y), xytext=(at, below), va="center", fontsize=style.SMALL, annotation_clip=False,
                      gid=style.SHORT_NAME, arrowprops={"arrowstyle": "-", "color": PHASES[name], "linewidth": 1.5,
                                  "relpos": (0.5, 1), "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        start = at + character * (len(name) + 1.5)


def _note(row: Record, phases: Mapping[str, float], bars: int) -> str:
    """Return the text after a bar: the total and what it leaves out, or why there is no bar.

    `phases` are the `phases_of` the record, `bars` how many bars there are: of many, a second line would meet the next
    note.
    """
    if not phases:
        return style.without(row)
    total = format_measured_quantity(row, "seconds_step")
    if not any(phases.values()):
        return f"{total}, phases not timed"
    inside = phases["slice"] + phases["convert"] + phases["plan"]
    if (row["seconds_prepare"] or 0.0) <= 2 * inside:
        return total
    between = "\n" if bars <= FEW else " "
    return f"{total}{between}+ {format_measured_quantity(row, 'seconds_prepare')} a batch, once"


def _axes(axes: Axes, rows: Sequence[Record], limit: float, scale: str, has_line_below: bool) -> None:
    """Set ticks, limits (`limit` is the right one) and labels; `has_line_below` leaves room for a line of text."""
    style.name_bars(axes, [style.name(row, rows) for row in rows])
    bottom = max(len(rows), LEAST_BARS) - (0.1 if has_line_below else 0.5)
    axes.set_ylim(bottom, -0.8 if style.is_narrow(axes) else -0.6)
    axes.set_xlim(0, limit)
    share = scale == "share"
    percent = lambda value: f"{100 * value:.0f} %"  # noqa: E731
    style.value_axis(axes.xaxis, percent if share else format_seconds, "share of a step" if share else "time a step")
    if share:
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])


def _rank(row: Record) -> tuple[bool, bool, float]:
    """Return a sort key for records, the smallest first: undisturbed, then sparse, then by step time."""
    return style.is_disturbed(row, "seconds_step"), is_dense(row), row["seconds_step"]


def _finding(rows: Sequence[Record], density: str | None) -> tuple[str, str]:
    """Return (title, sentence) on which phase takes most of the fastest step, preferring sparse and undisturbed ones.

    `density` is the label that it names. At least one of `rows` must be timed.
    """
    row = min(filter(style.is_timed, rows), key=_rank)
    phases, total = phases_of(row), row["seconds_step"]
    if not any(phases.values()):
        return "No phase was timed", f"{style.where(density)} no phase was timed."
    most = max(phases, key=lambda name: phases[name])
    share = f"{100 * phases[most] / total:.0f} %"
    side = "dense" if is_dense(row) else "sparse"
    sentence = f"{style.where(density)} a step of {name_configuration(row)} spends {share} of its time in {most}."
    return f"A {side} step spends {share} of its time in {most}", sentence


def table(frame: pd.DataFrame, *, group: str | None, density: str | None, scale: str) -> pd.DataFrame:
    """Return the seconds of each phase and of preparing a batch as text, a row for each configuration.

    Phases that take no time in any of them are left out.
    `group` and `density` are labels, such as "5 %"; `group` None is the largest. `scale` is unused.
    """
    rows = style.at_density(style.pick(frame, group), density)
    used = [name for name in PHASES if any(phases_of(row).get(name) for row in rows)]
    return pd.DataFrame([_described(row, used) for row in rows])


def _described(row: Record, used: Sequence[str]) -> dict[str, str]:
    """Return the texts configuration, seconds of each phase in `used`, total, preparing and result, by column."""
    known = {"configuration": name_configuration(row)} | dict.fromkeys(used, "")
    phases = phases_of(row)
    for name, seconds in ((name, phases[name]) for name in used if phases):
        known[name] = style.seconds(row, seconds / row["seconds_step"]) if seconds else format_seconds(0)
    known |= {name: format_measured_quantity(row, column) for name, column in TOTALS.items()}
    return known | {"result": style.result_of(row)}


def _scale(frame: pd.DataFrame) -> str:
    """Return "share" if the fastest bar would be unreadably short next to the slowest, else "time"."""
    group, density = style.pick(frame, None), style.density_control().initial(frame)
    totals = [row["seconds_step"] for row in style.at_density(group, density) if style.is_timed(row)]
    return "share" if totals and max(totals) > READABLE * min(totals) else "time"


register_chart(
    __name__,
    "Where the time of a step goes",
    (
        style.group_control(),
        style.density_control(),
        Control("scale", "seconds, or shares of each step", ("time", "share"), _scale),
    ),
)
