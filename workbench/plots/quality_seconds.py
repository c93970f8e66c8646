"""Quality on held-out rows against training seconds: ours, competitors, and levels that a model has to beat."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from workbench.analysis import curves, formatting
from workbench.plots import style
from workbench.plots.chart import Control, message, register_chart

LOOKS = {
    "ours": (("#0072B2", "#009E73", "#7A5195", "#56B4E9"), "osDh", "-"),
    "competitor": (("#D55E00", "#E69F00", "#CC79A7", "#8C6D31"), "v^<>", "--"),
}
"""Colours and markers of each side, in turn, and its line: ours cool and full, competitors warm triangles and dashed.

What differs after a comma has the same colour, another marker, hollow from the second on.
"""
LEVELS = (":", (0, (1, 3)), (0, (4, 1.5, 1, 1.5)))
FAR = 6
"""Times the end of the shortest training that the axis may reach before it is drawn logarithmic."""


def draw(frame: pd.DataFrame, figure: Figure, *, measure: str | None) -> str:
    """Draw a held-out measure against training seconds: means over splits, bands of their range; return a sentence.

    Dotted lines are reference levels. A message if no training has the measure.
    """
    of_measure = frame[frame["measure"] == measure]
    found = curves.final_values(of_measure, measure or "")
    if not found:
        return message(figure, f"No training has the measure {measure}.")
    axes = figure.add_subplot()
    looks = _looks({who: str(of_measure.loc[of_measure["who"] == who, "side"].iloc[0]) for who in found})
    for who in found:
        _training(axes, who, of_measure[of_measure["who"] == who], looks[who])
    for number, (who, value) in enumerate(curves.reference_levels(frame, measure or "").items()):
        axes.axhline(value, color=style.GREY, linewidth=1.6, linestyle=LEVELS[number % len(LEVELS)], label=who)
    _scale(axes, [max(end.seconds for end in each.values()) for each in found.values()])
    less = "less" if measure in curves.SMALLER else "more"
    axes.set_ylabel(f"{measure} on held-out rows ({less} is better)", fontsize=style.NORMAL)
    repeats = max(map(len, found.values()))
    below = f"{formatting.format_count(repeats, 'split')} of the data; lines: means; bands: from the least to the most"
    title, sentence = curves.headline(frame, measure or "")
    style.framed(figure, axes, title, below)
    return sentence


def _looks(sides: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return {candidate: line properties} for {candidate: "ours" or "competitor"}.

    Candidates of one model share a colour and differ by marker.
    """
    alike: dict[str, dict[str, int]] = {}
    looks = {}
    for who, side in sides.items():
        hues, markers, line = LOOKS[side]
        kinds, kind = alike.setdefault(side, {}), curves.model_of(who)
        place = list(kinds).index(kind) if kind in kinds else len(kinds)
        kinds[kind] = kinds.get(kind, -1) + 1
        colour = hues[place % len(hues)]
        look = {"color": colour, "marker": markers[kinds[kind] % len(markers)], "linestyle": line}
        looks[who] = look | {"markerfacecolor": "white" if kinds[kind] else colour}
    return looks


def _training(axes: Axes, who: str, points: pd.DataFrame, look: dict[str, Any]) -> None:
    """Draw the mean of a candidate's values over splits at each epoch, and a band of their range."""
    by_epoch = points.groupby("epoch")
    seconds, values = by_epoch["seconds"].mean(), by_epoch["value"]
    axes.fill_between(seconds, values.min(), values.max(), color=look["color"], alpha=0.18, linewidth=0)
    axes.plot(seconds, values.mean(), label=who, markersize=6, linewidth=1.8, **look)


def _scale(axes: Axes, seconds_end: Sequence[float]) -> None:
    """Set the time axis: logarithmic if the end times (seconds) are far apart, else from 0."""
    axes.set_xlabel("training time", fontsize=style.NORMAL)
    if max(seconds_end) > FAR * min(seconds_end) > 0:
        axes.set_xscale("log")
        style.log_axis(axes.xaxis, formatting.format_seconds, "training time")
        return
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formatting.format_seconds(value)))


def table(frame: pd.DataFrame, *, measure: str | None) -> pd.DataFrame:
    """Return the last point of each training as text: who, repeat, seconds and the measure.

    `measure` is a value of the column `measure`, such as "AUC".
    """
    found = curves.final_values(frame, measure or "")
    return pd.DataFrame(
        [
            {
                "who": who,
                "repeat": str(repeat),
                "seconds": formatting.format_seconds(end.seconds),
                str(measure): formatting.format_number(end.value, 4),
            }
            for who, each in found.items()
            for repeat, end in each.items()
        ]
    )


register_chart(
    __name__,
    "Quality against training time",
    (Control("measure", "which measure of quality to draw", curves.list_measures),),
    rows="curves",
)
