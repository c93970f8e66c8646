"""A candidate against itself: how often it gets a winner, under each load."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from workbench.analysis.configurations import Record, records
from workbench.analysis.self_trial import format_measured
from workbench.plots import style
from workbench.plots.chart import message, register_chart

COLOUR = "#0072B2"


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw the share of comparisons of a candidate with itself that have a winner, by load; return a sentence.

    Error bars are 95 % intervals; a line marks what is allowed.
    """
    rows = _rows(frame)
    if not rows:
        return message(figure, "No candidate met itself: run the part same.")
    axes = figure.add_subplot()
    places = list(range(len(rows)))[::-1]
    shares = [100 * row["share"] for row in rows]
    ends = [[100 * abs(row["share"] - row[end]) for row in rows] for end in ("low", "high")]
    axes.errorbar(shares, places, xerr=ends, fmt="o", color=COLOUR, label="with a winner, 95 % interval", capsize=3)
    allowed = next((row["wanted_high"] for row in rows if row["wanted_high"] is not None), None)
    if allowed is not None:
        axes.axvline(100 * allowed, color="#D55E00", linestyle="--", label=f"allowed: {100 * allowed:g} %")
    axes.set_yticks(places, [f"{row['condition']}\n{row['hits']} of {row['count']}" for row in rows])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(left=0)
    axes.margins(y=0.2)
    axes.set_xlabel("comparisons that have a winner, %", fontsize=style.NORMAL)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=style.SMALL, frameon=False)
    title = "A candidate against itself, as a sweep decides"
    figure.suptitle(title, x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    return f"Of {rows[0]['count']} comparisons of a candidate with itself {rows[0]['hits']} have a winner."


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return load, share of comparisons with a winner and mean rounds as text."""
    cells = [(row["condition"], format_measured(row), f"{row['rounds']:.1f}") for row in _rows(frame)]
    return pd.DataFrame(cells, columns=("next to", "with a winner", "rounds"))


def _rows(frame: pd.DataFrame) -> list[Record]:
    """Return the successful records of the part same that have a true ratio, the one of all loads first."""
    kept = [row for row in records(frame) if row["part"] == "same" and row["truth"] is not None]
    kept = [row for row in kept if row["status"] == "ok"]
    return sorted(kept, key=lambda row: row["condition"] != "all")


register_chart(__name__, "A candidate against itself", rows="self")
