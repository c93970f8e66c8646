"""Held-out loss, or quality, against seconds of training: each candidate of a case with its best setting."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.analysis.fit import OLD, CaseResult, Entry, by_tolerance, format_ratio, format_tolerance, kind_of
from benchmarks.plots import register_chart
from benchmarks.plots.style import framed
from kernels.registry import format_count
from workbench.analysis.formatting import format_gain, format_number, format_seconds, join_items
from workbench.plots import style
from workbench.plots.chart import Control, message

OURS = (("#0072B2", "o"), ("#009E73", "s"), ("#56B4E9", "D"), ("#7A5195", "h"))
COMPETITORS = (
    *(("#D55E00", "v"), ("#E69F00", "^"), ("#CC79A7", ">"), ("#8C6D31", "<"), ("#A6192E", "X")),
    *(("#F0A07C", "1"), ("#B07AA1", "2"), ("#9C755F", "3")),
)
DENSE = ((style.DENSE, "P"), ("#777777", "X"), ("#A0A0A0", "p"))
"""Colours and markers: ours cool and full, competitors warm, triangles and crosses; dense of ours is black or grey."""
ROOM = 1.15
"""How far above the starts of half of the lines the axis reaches: a line that starts worse is cut there."""


def draw(frame: pd.DataFrame, figure: Figure, *, case: str | None) -> str:
    """Draw the held-out measure against seconds for the candidates of a case; return the sentence below.

    `case` is a name; the first case if it is unknown or None. Time is logarithmic, a dotted line marks the target
    within 1 %. A message if no candidate has a point.
    """
    every = _of(frame, case)
    found = _usual(every)
    plotted = [(entry, curve) for entry in soonest_of(found) if (curve := curve_of(entry)).size]
    if not plotted:
        return message(figure, f"No candidate of {found.name} has a point yet.")
    axes = figure.add_subplot()
    looks = {"sparse": iter(OURS), "dense": iter(DENSE), "competitor": iter(COMPETITORS)}
    for entry, curve in plotted:
        colour, marker = next(looks[kind_of(entry)], style.OTHER[:2])
        line: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "-" if entry.is_ours else "--"}
        face = colour if entry.is_ours else "white"
        apart = max(len(curve) // 12, 1)
        axes.plot(*curve.T, label=_label(entry), markerfacecolor=face, markevery=apart, markersize=5, **line)
    if found.target is not None:
        axes.axhline(found.target, color=style.GREY, linestyle=":", label=f"target: {found.quality}")
    axes.set_xscale("log")
    style.log_axis(axes.xaxis, format_seconds, "training time")
    axes.set_ylabel(f"{found.row['measure']} on rows held out", fontsize=style.NORMAL)
    _limit(axes, found, [curve for _, curve in plotted])
    title, sentence = _finding(found)
    below = f"{found.name}: {format_count(found.row['rows'], 'row')} x {format_count(found.row['features'], 'feature')}"
    framed(figure, axes, title, below)
    return sentence + _elsewhere(every)


def soonest_of(found: CaseResult) -> list[Entry]:
    """Return the candidates to draw: all of ours, and the soonest competitors, as many as there are looks."""
    sign = -1.0 if found.row["larger_is_better"] is True else 1.0

    def place(entry: Entry) -> tuple[float, float]:
        """Return the sort key of an entry: seconds to the target (or of its only fit), then its best value."""
        first = entry.seconds[0] if entry.seconds else entry.seconds_once
        return (np.inf if first is None else first, np.inf if entry.value_best is None else sign * entry.value_best)

    competitors = sorted((entry for entry in found.entries if not entry.is_ours), key=place)[: len(COMPETITORS)]
    return [entry for entry in found.entries if entry.is_ours or entry in competitors]


def _elsewhere(every: Mapping[float, CaseResult]) -> str:
    """Return a sentence with the ratios at the other tolerances, with a space before it; "" without any."""
    shown = [
        f"{format_ratio(found.ratio)} at {format_tolerance(tolerance)}"
        for tolerance, found in every.items()
        if found.ratio
    ]
    return f" Fastest competitor / sparse: {join_items(shown)}." if len(every) > 1 and shown else ""


def curve_of(entry: Entry) -> np.ndarray:
    """Return the curve of a candidate's best setting, float64 `[points, 2]`: seconds ascending, measure.

    Points that are not finite are left out; `[0, 2]` without a curve.
    """
    points = (entry.best or {}).get("curve") or []
    curve = np.array([point[:2] for point in points], dtype=np.float64).reshape(-1, 2)
    curve = curve[np.isfinite(curve).all(axis=1)]
    return curve[np.argsort(curve[:, 0], kind="stable")]


def _label(entry: Entry) -> str:
    """Return "NAME: seconds to the target" for the legend."""
    return f"{entry.name}: {short_seconds(entry)}"


def short_seconds(entry: Entry) -> str:
    """Return the median seconds to the target, those of a training run once ("about 3 s"), or "not reached"."""
    if entry.seconds is not None:
        return format_seconds(entry.seconds[0], 2)
    return entry.state.partition(",")[0].partition(";")[0].partition(" in ")[0]


def describe_entry(entry: Entry) -> str:
    """Return "3.2 s (3.0 to 3.4 s)", median and range over rounds, or why there is none, as text."""
    if entry.seconds is None:
        return entry.state
    median, least, most = (format_seconds(second, 2) for second in entry.seconds)
    return f"{median} ({least} to {most})"


def _limit(axes: Axes, found: CaseResult, curves: list[np.ndarray]) -> None:
    """Set the y axis so that candidates which start far off do not squeeze the others."""
    values = np.concatenate([curve[:, 1] for curve in curves])
    start = float(np.median([curve[0, 1] for curve in curves]))
    if found.row["larger_is_better"] is True:
        axes.set_ylim(bottom=0.0, top=ROOM * float(values.max()))
        return
    low = float(values.min())
    axes.set_ylim(low - 0.05 * (start - low), low + ROOM * max(start - low, 1e-9))


def _finding(found: CaseResult) -> tuple[str, str]:
    """Return (title, sentence) on which training reaches the target first, and by what factor."""
    sparse, competitor, ratio = found.fastest("sparse"), found.fastest("competitor"), found.ratio
    if sparse is None or competitor is None:
        missing = "a competitor" if sparse else "a sparse training of ours"
        text = f"{found.name}: the target is not reached by {missing}"
        return text, f"{text}."
    if found.left_too_soon:
        names = join_items(entry.name for entry in found.left_too_soon)
        text = f"{found.name}: inconclusive, {names} had less time than the fastest needed"
        return text, f"{text}."
    if ratio is None:
        text = f"{found.name}: {sparse.name} and {competitor.name} were measured in different runs"
        return text, f"{text}."
    what = f"{found.name}: {sparse.name} reaches {found.quality}"
    sentence = f"{what} in {describe_entry(sparse)}, {competitor.name} in {describe_entry(competitor)}."
    if ratio.low <= 1 <= ratio.high:
        return f"{found.name}: inconclusive between {sparse.name} and {competitor.name}", sentence
    return (f"{what}, {format_gain(ratio)} {'sooner' if ratio.value > 1 else 'later'} than {competitor.name}", sentence)


def table(frame: pd.DataFrame, *, case: str | None) -> pd.DataFrame:
    """Return the candidates of a case as text: seconds to each target, best value, its setting, how that ended.

    `case` is a name; the first case if it is unknown or None. A setting "at the edge" has the smallest or largest value
    tried. The last column says why there is no result, or, if a target is not reached, how the best training ended.
    """
    every = _of(frame, case)
    seconds = [f"time to {format_tolerance(tolerance)}" for tolerance in every]
    columns = ("candidate", *seconds, f"best {_usual(every).row['measure']}", "setting", "how it ended")
    usual = list(every).index(_usual(every).tolerance)
    entries = zip(*(found.entries for found in every.values()), strict=True)
    return pd.DataFrame([_line(each, each[usual]) for each in entries], columns=columns)


def _line(each: Sequence[Entry], usual: Entry) -> tuple[str, ...]:
    """Return a candidate's table row as texts; `each` has its entry at each tolerance, `usual` that of 1 %."""
    best: Any = usual.best
    if best is None:
        return usual.name, *[""] * (len(each) + 2), usual.state
    seconds = [describe_entry(entry) if entry.seconds else short_seconds(entry) for entry in each]
    setting = ", ".join(f"{name} {_word(value)}" for name, value in best["setting"].items())
    edge = ", at the edge" if best["is_at_end"] else ""
    return (
        usual.name,
        *seconds,
        format_number(best["value_best"], 4),
        f"{setting} (of {best['tried']}{edge})",
        usual.ended if "not reached" in seconds else "",
    )


def _word(value: Any) -> str:
    """Return a setting's value as text: a number to few digits, text or a bool unchanged."""
    return str(value) if isinstance(value, str | bool) else format_number(value)


def _of(frame: pd.DataFrame, case: str | None) -> dict[float, CaseResult]:
    """Return {tolerance: results of a case}, tightest first; the first case if the name is unknown or None."""
    found = by_tolerance(frame)
    names = [one.name for one in next(iter(found.values()))]
    index = names.index(case) if case in names else 0
    return {tolerance: cases[index] for tolerance, cases in found.items()}


def _usual(every: Mapping[float, CaseResult]) -> CaseResult:
    """Return the results at a tolerance of 1 %, or at the tightest one if there are none."""
    return every.get(OLD, next(iter(every.values())))


def _names(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of the cases in the records."""
    return tuple(found.name for found in next(iter(by_tolerance(frame).values())))


CONTROL = Control("case", "data set and model", _names)
register_chart(__name__, "Held-out loss against seconds", (CONTROL,), rows="fit")
