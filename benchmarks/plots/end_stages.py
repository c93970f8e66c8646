"""Seconds from a file to predictions by stage: one bar a candidate and start, one segment a stage."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.analysis import end
from benchmarks.plots import register_chart
from workbench.analysis import formatting
from workbench.analysis.configurations import Record, records
from workbench.plots import style
from workbench.plots.chart import Control, message

STAGES = {
    "start": "#BBBBBB",
    "import": "#E69F00",
    "read": "#56B4E9",
    "fit": "#D55E00",
    "write": "#009E73",
    "train": "#0072B2",
    "apply": "#CC79A7",
}
"""Stages in their order with their colours."""
WHOLE = {"train": "train, a whole process", "apply": "apply, a whole process"}
"""How the legend names the stages of candidates that are two commands."""


def draw(frame: pd.DataFrame, figure: Figure, *, case: str | None) -> str:
    """Draw bars of seconds by stage from a file to predictions, soonest candidate first; return the sentences below.

    `case` is the name of a case. Each candidate has a bar with a warm and one with a cold start. Draws and returns a
    message if no candidate of the case reached the loss.
    """
    bars = _bars(frame, case)
    if not bars:
        return message(figure, "No candidate reached the loss.")
    axes = figure.add_subplot()
    places = list(range(len(bars)))[::-1]
    for place, record in zip(places, bars, strict=True):
        left = 0.0
        for stage in (name for name in STAGES if name in record["stages"]):
            axes.barh(place, record["stages"][stage], left=left, color=STAGES[stage], height=0.7)
            left += record["stages"][stage]
        look: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": style.SMALL}
        axes.annotate(formatting.format_seconds(left, 2), (left, place), (4, 0), **look)
    used = [stage for stage in STAGES if any(stage in record["stages"] for record in bars)]
    for stage in used:
        axes.barh(0, 0, color=STAGES[stage], label=WHOLE.get(stage, stage))
    axes.set_yticks(places, [f"{record['candidate']}, {record['start']}" for record in bars])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("time", fontsize=style.NORMAL)
    axes.xaxis.set_major_formatter(lambda seconds, _: formatting.format_seconds(seconds))
    axes.margins(x=0.1)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)  # grid lines would cut the bars
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=len(used), fontsize=style.SMALL, frameon=False)
    title = f"From the file to predictions, {case}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    return end.describe_case([record for record in records(frame) if record["case"] == case])


def table(frame: pd.DataFrame, *, case: str | None) -> pd.DataFrame:
    """Return candidate, start, seconds, peak memory, loss, setting and stages of each bar as text.

    `case` is the name of a case; empty if no candidate of it reached the loss.
    """
    return pd.DataFrame(
        [
            {
                "candidate": record["candidate"],
                "start": record["start"],
                "seconds": formatting.format_seconds(record["seconds"]),
                "peak memory": formatting.format_bytes(record["bytes_peak"]),
                "held-out loss": formatting.format_number(record["loss"], 4),
                "setting": ", ".join(f"{name} {value}" for name, value in record["setting"].items()) or "defaults",
                "stages": ", ".join(
                    f"{stage} {formatting.format_seconds(record['stages'][stage])}"
                    for stage in STAGES
                    if stage in record["stages"]
                ),
            }
            for record in _bars(frame, case)
        ]
    )


def _bars(frame: pd.DataFrame, case: str | None) -> list[Record]:
    """Return the records of the case named `case` to draw: soonest candidate first, its warm start before its cold one.

    [] if no candidate of it reached the loss, or for None.
    """
    own = [record for record in records(frame) if record["case"] == case]
    each = {start: end.taken(own, start) for start in end.STARTS}
    order = list(each["warm"]) or list(each["cold"])
    return [each[start][name].record for name in order for start in end.STARTS if name in each[start]]


def _cases(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of the cases in the records, in their order."""
    return tuple(dict.fromkeys(frame["case"]))


register_chart(
    __name__, "From a file to predictions", (Control("case", "format and size of the file", _cases),), rows="end"
)
