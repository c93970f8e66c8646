"""Simulated sweeps: how often the interval at the end holds the truth, and how often a difference is decided."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.analysis.self_trial import format_measured
from benchmarks.plots import register_chart
from workbench.analysis.configurations import Record, group_by, records
from workbench.plots import style
from workbench.plots.chart import message

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
MARKERS = "osv^D"
BAND = (93, 97)


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw coverage of intervals (above) and share of decisions (below) against the true ratio; return a sentence.

    Error bars are 95 % intervals, in per cent.
    """
    rows = _rows(frame)
    if not rows:
        return message(figure, "Nothing was simulated: run the parts coverage and power.")
    above, below = figure.subplots(2, 1, sharex=True)
    above.axhspan(*BAND, color="#dddddd", label="wanted")
    for axes, part, label in ((above, "coverage", "interval holds the truth, %"), (below, "power", "decided, %")):
        lines = _lines(rows, part)
        for number, (name, line) in enumerate(lines.items()):
            _line(axes, line, name, number)
        axes.set_ylabel(label, fontsize=style.NORMAL)
        axes.grid(visible=True, color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if lines:
            axes.legend(fontsize=style.SMALL, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    truths = sorted({row["truth"] for row in rows})
    below.set_xscale("log")
    below.xaxis.set_major_locator(FixedLocator(truths))
    below.xaxis.set_minor_locator(NullLocator())
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    below.set_xlabel("true ratio dense / sparse", fontsize=style.NORMAL)
    shares = [100 * row["share"] for row in rows if row["part"] == "coverage"]
    text = f"hold the truth in {min(shares):.0f} to {max(shares):.0f} %" if shares else "were not simulated"
    figure.suptitle("Simulated sweeps on recorded noise", x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    return f"Intervals at the end of simulated sweeps {text} of them, by true ratio and noise."


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return part, condition, competitors, true ratio, measured share and rounds as text, a row for each record."""
    columns = ("part", "condition", "candidates", "true ratio", "measured", "rounds")
    cells = [
        (
            row["part"],
            row["condition"],
            str(row["candidates"]),
            f"{row['truth']:g}",
            format_measured(row),
            f"{row['rounds']:.1f}",
        )
        for row in _rows(frame)
    ]
    return pd.DataFrame(cells, columns=columns)


def _rows(frame: pd.DataFrame) -> list[Record]:
    """Return the successful simulation records of the parts coverage and power that have a true ratio."""
    kept = [row for row in records(frame) if row["part"] in ("coverage", "power") and row["truth"] is not None]
    return [row for row in kept if row["status"] == "ok"]


def _lines(rows: list[Record], part: str) -> dict[str, list[Record]]:
    """Return {condition: records by rising true ratio} of a part, of those with one competitor."""
    own = [row for row in rows if row["part"] == part and row["candidates"] == 1]
    lines = group_by(own, lambda row: row["condition"])
    return {name: sorted(line, key=lambda row: row["truth"]) for name, line in lines.items()}


def _line(axes: Axes, line: list[Record], name: str, number: int) -> None:
    """Draw one line of shares in per cent with error bars; `number` selects colour and marker."""
    ends = [[100 * abs(row["share"] - row[end]) for row in line] for end in ("low", "high")]
    place, mark = number % len(COLOURS), number % len(MARKERS)
    x, y = [row["truth"] for row in line], [100 * row["share"] for row in line]
    axes.errorbar(x, y, yerr=ends, label=name, color=COLOURS[place], marker=MARKERS[mark], markersize=5, linewidth=1.4)


register_chart(__name__, "Simulated sweeps", rows="self")
