"""Share of the machine's bound that each phase of a step reaches: a bar a phase, by its kernel's bound.

A bound is the least time that the kernel's bytes and operations take at the rates that the run measured here. It counts
the kernel's own work: what a call costs before it begins is what keeps short phases far from their bounds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import shown_value
from workbench.plots import style
from workbench.plots.chart import message, register_chart
from workbench.plots.phases import PHASES, phases_of

NONE = "not known: steps that are not kernel by kernel on the CPU, other models than X @ W, or a run that measured none"
MOST_BARS = 2
"""Configurations of each side, the fastest; the others are in the table."""
HEIGHT, NARROW_HEIGHT = 0.8, 0.62
"""Share of a row's height that the bars of a configuration take together; in a narrow figure names stand above them."""
MEANINGS = {
    "stream": "the memory read in order",
    "gather": "rows read in no order",
    "instructions": "what the cores do with data at hand",
    "operations": "BLAS at its best",
}
"""What sets a bound, in words."""
ROOM, NARROW_ROOM = 1.25, 1.7
"""Length of the axis by the longest bar, for the words at its end; and in a narrow figure."""
COLUMNS = ("phase", "kernel", "time", "bound", "share of the bound", "bound by", "moves", "computes")
FASTER = 1.05
"""Share of a bound above which the machine was faster in the trial than where it was measured."""


class Reached(NamedTuple):
    """A phase of a row: its kernel, its seconds, the bound and what sets it, bytes and operations of a step."""

    phase: str
    kernel: str
    seconds: float
    seconds_bound: float
    by: str
    bytes_moved: float
    operations: float

    @property
    def share(self) -> float:
        """Share of the bound that is reached, 1.0 for a kernel as fast as the machine allows."""
        return self.seconds_bound / self.seconds


def reached(row: configurations.Record) -> list[Reached]:
    """Return the phases of a record with a time and a bound, in the order of the step; [] unless its status is "ok"."""
    if row["status"] != "ok":
        return []
    times = phases_of(row)
    return [_reached(bound, times[bound["phase"]]) for bound in row["bounds"] or () if times.get(bound["phase"])]


def _reached(bound: Mapping[str, Any], seconds: float) -> Reached:
    """Return a phase that took `seconds`, with its bound from a dict of the column `bounds`."""
    moved = max(bound["bytes"], bound["bytes_gather"])
    return Reached(bound["phase"], bound["kernel"], seconds, bound["seconds"], bound["by"], moved, bound["flops"])


def draw(frame: pd.DataFrame, figure: Figure, *, group: str | None, density: str | None) -> str:
    """Draw the share of the bound reached by each phase at one density; return the sentence below the chart.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest. Dense first, then by time; a line
    marks the bound. Draws and returns a message if no bounds are known.
    """
    shown = style.pick(frame, group)
    able = [row for row in style.at_density(shown, density) if reached(row)]
    sides = [[row for row in able if configurations.is_dense(row) == is_dense] for is_dense in (True, False)]
    rows = [row for side in sides for row in side[:MOST_BARS]]
    if not rows:
        return message(figure, f"Bounds of kernels are {NONE}.")
    axes = figure.add_subplot()
    for place, row in enumerate(rows):
        _bars(axes, place, reached(row))
    longest = max(one.share for row in rows for one in reached(row))
    axes.axvline(1.0, color=style.DENSE, linewidth=1.2, linestyle=(0, (4, 2)), label="_the bound")
    style.note(axes, "the bound ", (1.0, 0.01), xycoords=axes.get_xaxis_transform(), ha="right", va="bottom")
    style.name_bars(axes, [style.name(row, rows) for row in rows])
    is_narrow = style.is_narrow(axes)
    axes.set_ylim(max(len(rows), 3) - 0.5, -0.8 if is_narrow else -0.6)
    axes.set_xlim(0, max((NARROW_ROOM if is_narrow else ROOM) * longest, 1.08))
    style.value_axis(axes.xaxis, lambda share: f"{100 * share:.0f} %", "share of the bound (more is better)")
    title, sentence = _finding(rows, density)
    note = f"{style.at(rows, density)}; the bound: a kernel's own work, without the cost of its call"
    style.finish(figure, axes, title, shown, note)
    axes.grid(visible=False, axis="y")
    return sentence


def _bars(axes: Axes, place: int, known: Sequence[Reached]) -> None:
    """Draw the bars of a configuration's phases around height `place`, each with its share as text."""
    height = (NARROW_HEIGHT if style.is_narrow(axes) else HEIGHT) / max(len(known), 2)
    for number, one in enumerate(known):
        at = place + (number - (len(known) - 1) / 2) * height
        look: dict[str, Any] = {"color": PHASES[one.phase], "edgecolor": "white", "linewidth": 0.8}
        axes.barh(at, one.share, height=height, label=f"_{one.phase}", **look)
        text = f"{one.phase} {_percent(one.share)}, {one.by}"
        axes.text(one.share, at, f" {text}", va="center", fontsize=style.SMALL)


def _percent(share: float) -> str:
    """Return a share as text in per cent, two digits."""
    return f"{formatting.format_number(100 * share, 2)} %"


def _mean(row: configurations.Record) -> float:
    """Return the sum of the bounds of all phases over the sum of their times."""
    known = reached(row)
    return math.fsum(one.seconds_bound for one in known) / math.fsum(one.seconds for one in known)


def _finding(rows: Sequence[configurations.Record], density: str | None) -> tuple[str, str]:
    """Return (title, sentence) on what the fastest sparse and dense step reach and what is furthest from its bound.

    `rows` (at least one) have known bounds; `density` is the label that the sentence names. The title is on sparse if
    there is any.
    """
    sides = [[row for row in rows if configurations.is_dense(row) == is_dense] for is_dense in (False, True)]
    best = [min(side, key=lambda row: shown_value(row, "seconds_step") or 0.0) for side in sides if side]
    said = [f"{formatting.name_configuration(row)} runs at {_percent(_mean(row))}" for row in best]
    title = f"{formatting.name_configuration(best[0])} runs at {_percent(_mean(best[0]))} of the possible speed"
    least, row = min(((one, row) for row in best for one in reached(row)), key=lambda pair: pair[0].share)
    far = (
        f"furthest from it is the {least.phase} of {formatting.name_configuration(row)}, "
        f"{_percent(least.share)} ({least.by})"
    )
    over = any(one.share > FASTER for row in rows for one in reached(row))
    note = " Over 100 % the machine was faster in the trial than where it was measured." if over else ""
    kinds = {one.by for row in rows for one in reached(row)}
    meant = "; ".join(f"{kind}, {meaning}" for kind, meaning in MEANINGS.items() if kind in kinds)
    sentence = f"{style.where(density)} {formatting.join_items(said)} of the possible speed; {far}."
    return title, f"{sentence} What limits the speed: {meant}.{note}"


def table(frame: pd.DataFrame, *, group: str | None, density: str | None) -> pd.DataFrame:
    """Return each phase as text: kernel, time, bound, share, what limits it, bytes and operations a second.

    `group` and `density` are labels, such as "5 %"; `group` None is the largest. A record without bounds has a row with
    the reason.
    """
    rows = style.at_density(style.pick(frame, group), density)
    return pd.DataFrame([line for row in rows for line in _described(row)])


def _described(row: configurations.Record) -> list[dict[str, str]]:
    """Return the table rows of a record, one for each phase; one with the reason if none is known."""
    configuration = {"configuration": formatting.name_configuration(row)}
    known = [configuration | dict(zip(COLUMNS, _cell_texts(one), strict=True)) for one in reached(row)]
    why = NONE if row["status"] == "ok" else f"{row['status']}: {row['reason']}"
    return known or [configuration | dict.fromkeys(COLUMNS, "") | {"kernel": why}]


def _cell_texts(reached: Reached) -> tuple[str, ...]:
    """Return the cells of a phase in the table, as texts in the order of `COLUMNS`."""
    times = (
        formatting.format_seconds(reached.seconds, 2),
        formatting.format_seconds(reached.seconds_bound, 2),
        _percent(reached.share),
        reached.by,
    )
    moved = f"{formatting.format_bytes(reached.bytes_moved / reached.seconds, 2)}/s"
    return (
        reached.phase,
        reached.kernel,
        *times,
        moved,
        f"{formatting.format_number(reached.operations / reached.seconds / 1e9, 2)} Gflop/s",
    )


register_chart(
    __name__, "How near each phase comes to the possible speed", (style.group_control(), style.density_control())
)
