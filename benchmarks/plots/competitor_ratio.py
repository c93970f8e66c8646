"""A competitor's time by ours, against the width: one line a shape, the geometric mean, and the performance target."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from benchmarks.analysis import bench
from benchmarks.plots import register_chart
from benchmarks.plots import style as bench_style
from workbench.analysis.formatting import format_count, format_number, format_seconds, format_with_interval
from workbench.plots import style
from workbench.plots.chart import Control, message

BEST = "the fastest"
TARGETS = {
    ("csr_dense", "torch"): 2.0,
    ("csr_dense", "scipy"): 6.0,
    ("csr_t_dense", "scipy"): 10.0,
    ("step repeat", "tensorflow"): 10.0,
    ("step repeat", "torch"): 20.0,
    ("step new", "tensorflow"): 5.0,
    ("step new", "torch"): 10.0,
}
"""Geometric mean to reach, by task, and for steps their batches, and by library."""

CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#7A5195", "#8C6D31", "#888888")
MARKERS = "os^Dv<>Ph*X"
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (4, 1.5, 1, 1.5)))


def draw(frame: pd.DataFrame, figure: Figure, *, task: str | None, competitor: str, batches: str) -> str:
    """Draw the competitors' time over ours against the width, both logarithmic; return the sentence below.

    Error bars are 95 % intervals of the median ratio over rounds. `competitor` is a library or "the fastest", `batches`
    "all", "repeat" or "new". A message without ratios.
    """
    ratios = _ratios(frame, task, competitor, batches)
    if task is None or not ratios:
        return message(figure, f"No configuration of {task} has a time of ours and of a competitor ({competitor}).")
    axes = figure.add_subplot()
    lines = _lines(ratios)
    looks = _looks(lines, list(dict.fromkeys(row["shape"] for row in bench_style.measured(frame))))
    for number, (label, line) in enumerate(lines.items()):
        ends = [[r.value - r.low for r in line], [r.high - r.value for r in line]]
        shift = 1 + 0.012 * (number - (len(lines) - 1) / 2)  # or whiskers of different shapes would cover each other
        x, y = [r.row["width"] * shift for r in line], [r.value for r in line]
        _, _, bars = axes.errorbar(x, y, yerr=ends, label=label, elinewidth=0.9, **looks[label])
        for bar in bars:  # pale, or wide intervals would hide the lines
            bar.set_alpha(0.45)
    mean = bench.geometric_mean(r.value for r in ratios) or 1.0
    _levels(axes, mean, TARGETS.get((task if batches == bench_style.ALL else f"{task} {batches}", competitor)))
    _scales(axes, sorted({r.row["width"] for r in ratios}))
    behind = sum(r.value < 1 for r in ratios)
    against = "the fastest competitor" if competitor == BEST else bench_style.NAMES.get(competitor, competitor)
    faster = f"{format_number(mean)} times as fast as {against}"
    rows = [r.row for r in ratios]
    note = "whiskers: 95 % intervals" if batches == bench_style.ALL else f"{batches} batches; whiskers: 95 % intervals"
    bench_style.finish_bench_chart(figure, axes, f"{task}: ours is {faster} (geometric mean)", rows, note)
    where = f"behind in {behind} of them" if behind else "behind in none"
    return (
        f"Over {format_count(len(ratios), 'configuration')} of {task} ours is {faster}, by the geometric "
        f"mean, and {where}."
    )


def _looks(lines: Mapping[str, Sequence[bench.Ratio]], shapes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return {label: line properties}; colour and marker by the position of the line's shape in `shapes`.

    Dashes and hollow markers distinguish lines of one shape.
    """
    seen: Counter[str] = Counter()
    looks = {}
    for label, line in lines.items():
        shape = line[0].row["shape"]
        place, (turn, dash) = shapes.index(shape), divmod(seen[shape], len(DASHES))
        seen[shape] += 1
        colour, marker = CYCLE[place % len(CYCLE)], MARKERS[place % len(MARKERS)]
        look = {"color": colour, "marker": marker, "markerfacecolor": "white" if turn % 2 else colour}
        looks[label] = look | {"linestyle": DASHES[dash], "markersize": 5, "linewidth": 1.2}
    return looks


def _levels(axes: Axes, mean: float, target: float | None) -> None:
    """Draw horizontal lines at 1, at the geometric mean and, unless None, at `target`."""
    axes.axhline(1.0, color="#222222", linewidth=1.4, label="equal")
    axes.axhline(mean, color=style.GREY, linewidth=1.4, linestyle=(0, (5, 3)), label=f"mean {format_number(mean)} x")
    if target:
        axes.axhline(target, color="#009E73", linewidth=1.6, linestyle=":", label=f"target {format_number(target)} x")


def _scales(axes: Axes, widths: Sequence[int]) -> None:
    """Set logarithmic scales, with a tick for each width."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(min(widths) / 1.25, max(widths) * 1.25)
    axes.xaxis.set_major_locator(FixedLocator(widths))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("width N of the dense operand", fontsize=style.NORMAL)
    style.log_axis(
        axes.yaxis, lambda value: f"{format_number(value)} x", "competitor's time / ours (above 1: ours is faster)"
    )
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.7), max(high, 1.5))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _ratios(frame: pd.DataFrame, task: str | None, competitor: str, batches: str) -> list[bench.Ratio]:
    """Return the ratios of a task against the library `competitor`, or against the fastest one; [] if the task is None.

    `batches` is "all" or the only kind of batches.
    """
    if task is None:
        return []
    ratios = bench.ratios(frame, task, "" if competitor == BEST else competitor)
    return [r for r in ratios if r.row["batches"] in (None, batches) or batches == bench_style.ALL]


def _lines(ratios: Sequence[bench.Ratio]) -> dict[str, list[bench.Ratio]]:
    """Return {label: ratios by rising width} for each shape and further settings that differ."""
    lines: dict[str, list[bench.Ratio]] = {}
    varied = [name for name in ("rows", "device", "cache") if len({ratio.row[name] for ratio in ratios}) > 1]
    for ratio in sorted(ratios, key=lambda r: r.row["width"]):
        row = ratio.row
        more = [row[name] for name in ("optimizer", "batches") if row[name]]
        rows = f"R {row['rows']:,}" if not more or "rows" in varied else ""
        more += [row[name] for name in varied if name != "rows" and row[name]]
        lines.setdefault(", ".join(filter(None, (row["shape"], rows, *more))), []).append(ratio)
    return lines


def table(frame: pd.DataFrame, *, task: str | None, competitor: str, batches: str) -> pd.DataFrame:
    """Return each configuration with its competitor, that one's time and the ratio, as text.

    Configurations without a competitor's time are left out.
    """
    tell = lambda value: f"{format_number(value)} x"  # noqa: E731
    return pd.DataFrame(
        [
            {
                "configuration": bench.describe_configuration(r.row),
                "competitor": r.competitor,
                "competitor's time": format_seconds(r.row["seconds"]),
                "competitor's time / ours": format_with_interval(r.value, r.low, r.high, tell),
            }
            for r in _ratios(frame, task, competitor, batches)
        ]
    )


def _competitors(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return "the fastest" and the libraries in the records, in alphabetical order."""
    families = {bench_style.family(row) for row in bench_style.measured(frame)} - {"ours"}
    return (BEST, *sorted(families))


def _batches(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return "all" and the kinds of batches in the records."""
    batches = dict.fromkeys(row["batches"] for row in bench_style.measured(frame) if row["batches"])
    return (bench_style.ALL, *batches)


register_chart(
    __name__,
    "Competitors' time by ours",
    (
        bench_style.task_control(),
        Control("competitor", "which competitor", _competitors, BEST),
        Control("batches", "of steps: batches that repeat, new ones, or all", _batches, bench_style.ALL),
    ),
    rows="bench",
)
