"""Where the time of a step goes: one bar a configuration, one segment a phase."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from workbench.analysis import cells, words
from workbench.plots import style
from workbench.plots.chart import Chart, Control, message, register

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
}
DARK = ("forward", "gradient", "update", "graph")  # white letters can be read on these
READABLE = 8  # times the fastest bar that the slowest may take
ROOM = 0.016  # share of the longest bar that a segment needs for each letter of its name


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None, scale: str) -> str:
    """Horizontal stacked bars at one density, dense first, then the fastest."""
    shown = style.pick(frame, group)
    rows = style.at_density(shown, density)
    if not any(row["status"] == "ok" for row in rows):
        return message(figure, f"No cell of this group was timed at {density} density.")
    axes = figure.add_subplot()
    totals = [sum(phases_of(row).values()) for row in rows]
    longest = 1.0 if scale == "share" else max(totals) or 1.0
    for place, (row, total) in enumerate(zip(rows, totals, strict=True)):
        _bar(axes, place, row, total if scale == "share" else 1.0, longest)
    _axes(axes, rows, longest, scale)
    title = _finding(rows, density)
    style.finish(figure, axes, title, shown, f"density {density}", columns=len(PHASES), room=0.75)
    axes.grid(visible=False, axis="y")
    return f"{title}."


def phases_of(row: cells.Row) -> dict[str, float]:
    """Mean seconds a step of each phase; empty where the row has no result."""
    return {name: row[f"seconds_{name}"] or 0.0 for name in PHASES} if row["status"] == "ok" else {}


def _bar(axes: Axes, place: int, row: cells.Row, unit: float, longest: float) -> None:
    start = 0.0
    for name, seconds in phases_of(row).items():
        width = seconds / unit if unit else 0.0
        edge = 0.8 if width > 0.01 * longest else 0.0  # an edge would hide a thin segment
        axes.barh(place, width, left=start, height=0.62, color=PHASES[name], edgecolor="white", linewidth=edge)
        if width > ROOM * len(name) * longest:
            colour = "white" if name in DARK else "black"
            axes.text(start + width / 2, place, name, ha="center", va="center", fontsize=style.SMALL, color=colour)
        start += width
    axes.text(start + 0.01 * longest, place, _note(row), va="center", fontsize=style.SMALL)


def _note(row: cells.Row) -> str:
    """What stands at the end of a bar: its total and what it leaves out, or why there is no bar."""
    if row["status"] != "ok":
        need = f", needs {words.bytes_(row['bytes_needed'])}" if row["bytes_needed"] else ""
        return f"no result: {row['status']}{need}"
    phases = phases_of(row)
    inside = phases["slice"] + phases["convert"] + phases["plan"]
    apart = (row["seconds_prepare"] or 0.0) > 2 * inside
    once = f"\n+ {words.seconds(row['seconds_prepare'])} a batch, once" if apart else ""
    return f"{words.seconds(sum(phases.values()))}{once}"


def _axes(axes: Axes, rows: Sequence[cells.Row], longest: float, scale: str) -> None:
    axes.set_yticks(range(len(rows)), [words.short_line(row) for row in rows])
    axes.set_ylim(max(len(rows), 4) - 0.5, -0.6)
    axes.set_xlim(0, 1.2 * longest)
    share = scale == "share"
    axes.set_xlabel("share of a step" if share else "time a step", fontsize=style.NORMAL)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: words.density(at) if share else words.seconds(at)))
    if share:
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    used = [name for name in PHASES if any(phases_of(row).get(name) for row in rows)]
    for name in used:
        axes.barh([0], [0], color=PHASES[name], label=name)


def _finding(rows: Sequence[cells.Row], density: str | None) -> str:
    sparse = [row for row in rows if row["status"] == "ok" and not cells.is_dense(row)]
    phases = phases_of(sparse[0] if sparse else next(row for row in rows if row["status"] == "ok"))
    if not any(phases.values()):
        return f"{style.where(density)} no phase was timed"
    most = max(phases, key=lambda name: phases[name])
    share = words.density(phases[most] / sum(phases.values()))
    which = "the fastest sparse step" if sparse else "the dense step"
    return f"{style.where(density)} {which} spends {share} of its time in {most}"


def table(frame: pd.DataFrame, *, group: str | None, density: str | None, scale: str) -> pd.DataFrame:
    """Seconds of each phase, and of making a batch, for each configuration."""
    rows = style.at_density(style.pick(frame, group), density)
    return pd.DataFrame([_described(row) for row in rows])


def _described(row: cells.Row) -> dict[str, str]:
    phases, seconds_prepare = phases_of(row), row["seconds_prepare"]
    each = {name: words.seconds(phases[name]) if phases else "" for name in PHASES}
    known = {"configuration": words.line(row)} | each
    known |= {"all phases": words.seconds(sum(phases.values())) if phases else ""}
    known |= {"preparing a batch": words.seconds(seconds_prepare) if seconds_prepare is not None else ""}
    return known | {"result": "ok" if phases else f"{row['status']}: {row['reason']}"}


def _scale(frame: pd.DataFrame) -> str:
    """Shares at first where the slowest bar would leave the fastest too short to be read."""
    group, density = style.pick(frame, None), style.density_control().initial(frame)
    totals = [sum(phases_of(row).values()) for row in style.at_density(group, density) if row["status"] == "ok"]
    return "share" if totals and max(totals) > READABLE * min(totals) else "time"


register(
    Chart(
        "phases",
        "Where the time of a step goes",
        draw,
        table,
        (
            style.group_control(),
            style.density_control(),
            Control("scale", "seconds, or shares of each step", ("time", "share"), _scale),
        ),
    )
)
