"""Shared parts of the charts against density: lines or bars, the break-even, failures, the table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import configurations, formatting
from workbench.analysis.breakeven import BreakEven, breakeven_of
from workbench.analysis.compare import contests_of_group
from workbench.analysis.intervals import interval_of, shown_value
from workbench.analysis.verdict_text import chart_title
from workbench.plots import marks, style
from workbench.plots.chart import Control, message

MEASURED = ("seconds_step", "bytes_peak")
COLUMNS = {
    "seconds_step": "time a step",
    "bytes_peak": "peak memory",
    "bytes_predicted": "predicted",
    "bytes_held": "held by arrays",
    "bytes_needed": "needed",
}
MOST_BARS = 8
"""Bars of a chart of one density; the slower ones are in the table."""
ROOM = 1.35
"""Length of the axis by the longest bar, for the number at its end."""


@dataclass(frozen=True)
class Shown:
    """Part of a frame that a chart shows: one group, the lines of its candidates, which two of them are the best.

    Of rows that differ in seed or learning rate alone, the best stands for all, as in the break-evens.
    """

    measure: str
    group: configurations.Group
    lines: list[list[configurations.Record]]
    best: list[tuple]

    @classmethod
    def of(cls, frame: pd.DataFrame, measure: str, group: str | None, candidates: str = "all") -> "Shown":
        """Return what a chart shows of pooled records for a measure and a group (None: the largest).

        `candidates` is a key of `style.SHOWN`. Raises IndexError if there are no groups.
        """
        picked = style.pick(frame, group)
        best = style.best_lines(picked, measure)
        found = {**configurations.dense_lines(picked.rows), **configurations.sparse_lines(picked.rows)}
        kept = {key: rows for key, rows in found.items() if candidates != "best" or key in best}
        return cls(measure, picked, [_standing(rows, measure) for rows in kept.values()], best)

    @cached_property
    def rows(self) -> list[configurations.Record]:
        """All records that are drawn or counted, dense ones first."""
        return [row for rows in self.lines for row in rows]

    @cached_property
    def single(self) -> bool:
        """Whether there is at most one density, so that bars are drawn."""
        return len({row["density"] for row in self.rows}) < 2

    def is_best(self, row: configurations.Record) -> bool:
        """Return whether a record is of the best sparse or of the best dense candidate."""
        return configurations.line_key(row) in self.best

    def break_even(self) -> BreakEven | None:
        """Return the break-even of the best sparse candidate if its line crosses that of dense, else None."""
        rows = (row for row in self.rows if self.is_best(row) and not configurations.is_dense(row))
        even = next((breakeven_of(self.group, row, self.measure) for row in rows), None)
        return even if even and even.status == "crossing" else None


def _standing(rows: Sequence[configurations.Record], measure: str) -> list[configurations.Record]:
    """Return one record for each density, that of the least measure, by rising density.

    A record without a result only if no other has that density.
    """
    best = [min(at, key=lambda row: _rank(row, measure)) for at in configurations.by_density(rows).values()]
    return sorted(best, key=lambda row: configurations.density_of(row) or 0.0)


def _rank(row: configurations.Record, measure: str) -> tuple[bool, bool, float]:
    """Return a sort key for records, the smallest first: drawable, undisturbed, then by the value of `measure`."""
    return not style.is_drawable(row, measure), style.is_disturbed(row, measure), row[measure] or 0.0


def controls() -> tuple[Control, ...]:
    """Return the controls of every chart against density: group and candidates."""
    return style.group_control(), style.candidates_control()


def draw(frame: pd.DataFrame, figure: Figure, measure: str, label: str, group: str | None, candidates: str) -> str:
    """Draw a measure against density, both logarithmic, or bars if there is one density; return the sentence below.

    `label` is that of the measure's axis; `group` a label, None for the largest; `candidates` a key of `style.SHOWN`.
    A message if nothing can be drawn.
    """
    shown = Shown.of(frame, measure, group, candidates)
    if not style.drawable(shown.rows, measure):
        counts = Counter(row["status"] for row in shown.rows).most_common()
        each = (
            formatting.join_items(f"{count} {configurations.status_text(status)}" for status, count in counts)
            if counts
            else "no configurations"
        )
        return message(figure, f"{style.nothing(f'has a {COLUMNS[measure]}').rstrip('.')}: {each}.")
    axes = figure.add_subplot()
    parts = [style.at(shown.rows, configurations.density_label(shown.rows[0]))] if shown.single else []
    if shown.single:
        _bars(axes, shown, label)
    else:
        _curves(axes, shown, label, candidates == "named")
    parts += [f"{'' if shown.single else 'bands: '}95 % intervals", style.count_lost(
        shown.rows if measure.startswith("seconds") else [], style.lost(shown.rows, measure))]  # fmt: skip
    title = chart_title(contests_of_group(shown.group, measure), measure)
    sentence = f"{title}."
    style.finish(figure, axes, title, shown.group, "; ".join(filter(None, parts)))
    if shown.single:
        axes.grid(visible=False, axis="y")
    return sentence


def _curves(axes: Axes, shown: Shown, label: str, are_named: bool) -> None:
    """Draw a line for each candidate on logarithmic axes that cover the densities of failed records too."""
    densities = _densities(shown.rows)
    axes.set_xlim(min(densities) / 1.15, max(densities) * 1.15)
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.log_axis(axes.xaxis, formatting.format_density, "density (stored entries / size)")
    style.log_axis(axes.yaxis, formatting.formatter_of(shown.measure), label)
    ends = []
    for rows in shown.lines:
        points, is_best = points_of(rows, shown.measure), shown.is_best(rows[0])
        if not points:
            continue
        look, name = style.look(rows[0], is_best), formatting.name_configuration(rows[0])
        style.draw_candidate(axes, name, points, look, is_best, is_marked=is_best or len(points) == 1)
        if is_best or are_named:
            ends.append((points[-1].x, points[-1].known.value, name, look["color"]))
    _failures(axes, shown)
    _densities_of_note(axes, shown)
    style.label_ends(axes, ends)


def _densities(rows: Iterable[configurations.Record]) -> list[float]:
    """Return the densities at which records are drawn, in their order; records without one are left out."""
    return [density for density in map(configurations.density_of, rows) if density]


def points_of(rows: Sequence[configurations.Record], measure: str) -> list[style.Point]:
    """Return the points of the drawable records, by rising density."""
    found = ((row, interval_of(row, measure)) for row in style.drawable(rows, measure))
    return [
        style.Point(configurations.density_of(row) or 0.0, known, style.is_disturbed(row, measure))
        for row, known in found
        if known
    ]


def _densities_of_note(axes: Axes, shown: Shown) -> None:
    """Draw the data's own density as a dotted line, and the break-even of the best sparse candidate with its band."""
    own = next(iter(_densities(row for row in shown.rows if row["density"] is None)), None)
    top: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "xytext": (4, 0), "textcoords": "offset points"}
    if own is not None:
        axes.axvline(own, color=style.GREY, linewidth=1.2, linestyle=":", zorder=0.5)
        style.note(axes, f"{configurations.NATURAL}, {formatting.format_density(own)}", (own, 0.985), **top)
    even = shown.break_even()
    if even is None or even.low is None or even.high is None:
        return
    axes.axvspan(even.low, even.high, facecolor=(style.GREY, 0.12), edgecolor="none", zorder=0.4)
    if even.density is not None:
        axes.axvline(even.density, color=style.GREY, linewidth=1.2, linestyle=(0, (4, 2)))
    low, high = axes.get_xlim()
    middle = (even.low * even.high) ** 0.5
    side = {"ha": "right", "xytext": (-4, 0)} if middle > (low * high) ** 0.5 else {"ha": "left"}
    text = style.wrapped(f"break-even {even.place.removesuffix(' density')}", 18)
    style.note(axes, text, (middle, 0.14), **top | side)


def _failures(axes: Axes, shown: Shown) -> None:
    """Draw a cross for each record without a result, at the bytes it needs or at the lower edge; say what dense needs.

    In a chart of memory a dotted line is the limit.
    """
    is_memory, lost = shown.measure.startswith("bytes"), style.lost(shown.rows, shown.measure)
    for row in lost:
        place: dict[str, Any] = {"color": style.look(row)["color"], "markersize": 8, "markeredgewidth": 2}
        has_place = is_memory and row["bytes_needed"]
        place |= {} if has_place else {"transform": axes.get_xaxis_transform()}
        for density in _densities([row]):
            axes.plot([density], [row["bytes_needed"] if has_place else 0.03], "x", label="_", **place)
    unfit = [row for row in lost if row["status"] == "memory" and configurations.is_dense(row)]
    need, limit = (max((row[name] for row in unfit if row[name]), default=None) for name in
                   ("bytes_needed", "bytes_limit"))  # fmt: skip
    if unfit:
        text = f"dense needs {formatting.format_bytes(need)}" if need else "dense did not fit"
        text += f", the limit is {formatting.format_bytes(limit)}" if limit else ""
        style.note(axes, style.wrapped(text, 44), (0.02, 0.9))
    if limit and is_memory:
        axes.axhline(limit, color=style.GREY, linewidth=1, linestyle=":")


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


def _bars(axes: Axes, shown: Shown, label: str) -> None:
    """Draw horizontal bars, the smallest value first, with their intervals; the best sparse and dense one are bold.

    Records without a result have a note; more bars than `MOST_BARS` are left out, the best two never.
    """
    measure = shown.measure
    ordered = sorted(style.drawable(shown.rows, measure), key=lambda row: shown_value(row, measure) or 0.0)
    ordered += style.lost(shown.rows, measure)
    kept = sorted(ordered, key=lambda row: not shown.is_best(row))[:MOST_BARS]
    rows = [row for row in ordered if row in kept]
    longest = max(known.high for row in rows if (known := interval_of(row, measure)))
    for place, row in enumerate(rows):
        known = interval_of(row, measure)
        if known is None or not style.is_drawable(row, measure):
            axes.text(0.01 * longest, place, style.without(row), va="center", fontsize=style.SMALL)
            continue
        is_busy = style.is_disturbed(row, measure)
        look: dict[str, Any] = {"edgecolor": style.look(row)["color"], "height": 0.56, "linewidth": 1.5}
        look |= {"facecolor": "white" if is_busy else look["edgecolor"]}
        bar = axes.barh(place, known.value, alpha=1 if shown.is_best(row) else style.PALE, **look)
        axes.plot([known.low, known.high], [place, place], color="#999999", linewidth=2, label="_")
        number = formatting.format_measured_quantity(row, measure)
        marks.tell(bar[0], [f"{formatting.name_configuration(row)}: {number}"])
        style.note(axes, number, (known.high, place), xycoords="data", xytext=(5, 0), textcoords="offset points",
                   va="center", color="black", fontweight="bold" if shown.is_best(row) else "normal")  # fmt: skip
    style.name_bars(axes, [style.name(row, rows) for row in rows])
    axes.set_ylim(max(len(rows), 4) - 0.5, -0.8 if style.is_narrow(axes) else -0.6)
    axes.set_xlim(0, ROOM * longest)
    style.value_axis(axes.xaxis, formatting.formatter_of(measure), label)
    if left := len(ordered) - len(rows):
        style.note(axes, f"{left} more in the table", (0.99, 0.02), ha="right", va="bottom")
