"""Quality on held-out rows against training seconds: ours, rivals, and levels that a model has to beat."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from workbench.analysis import curves, words
from workbench.plots import style
from workbench.plots.chart import Chart, Control, message, register

LOOKS = {
    "ours": (("#0072B2", "#009E73", "#56B4E9", "#7A5195"), "osDh", "-"),
    "rival": (("#D55E00", "#E69F00", "#CC79A7", "#8C6D31"), "v^<>", "--"),
}
"""Colours and markers of each side, in turn, and its line: ours cool and full, rivals warm triangles and dashed."""
LEVELS = (":", (0, (1, 3)), (0, (4, 1.5, 1, 1.5)))
FAR = 6
"""Times the end of the shortest training that the axis may reach before it is drawn logarithmic."""


def draw(frame: pd.DataFrame, figure: Figure, *, measure: str | None) -> str:
    """Lines are means of the repeats, bands the range of them; levels are dotted."""
    of_measure = frame[frame["measure"] == measure]
    found = curves.ends(of_measure, measure or "")
    if not found:
        return message(figure, f"No training has the measure {measure}.")
    axes = figure.add_subplot()
    sides: dict[str, int] = {}
    for who in found:
        points = of_measure[of_measure["who"] == who]
        side = str(points["side"].iloc[0])
        _training(axes, who, points, _look(side, sides.setdefault(side, 0)))
        sides[side] += 1
    levels = of_measure[of_measure["side"] == "reference"].groupby("who", sort=False)["value"].mean()
    for number, (who, value) in enumerate(levels.items()):
        axes.axhline(value, color=style.GREY, linewidth=1.6, linestyle=LEVELS[number % len(LEVELS)], label=str(who))
    _scale(axes, [max(end.seconds for end in each.values()) for each in found.values()])
    less = "less" if measure in curves.SMALLER else "more"
    axes.set_ylabel(f"{measure} on held-out rows ({less} is better)", fontsize=style.NORMAL)
    repeats = max(map(len, found.values()))
    below = f"{words.plural(repeats, 'split')} of the data; lines: means; bands: from the least to the most"
    style.framed(figure, axes, _title(frame, measure or ""), below)
    return " ".join(curves.sentences(frame, measure or ""))


def _look(side: str, number: int) -> dict[str, Any]:
    hues, markers, line = LOOKS.get(side, LOOKS["rival"])
    return {"color": hues[number % len(hues)], "marker": markers[number % len(markers)], "linestyle": line}


def _training(axes: Axes, who: str, points: pd.DataFrame, look: dict[str, Any]) -> None:
    by_epoch = points.groupby("epoch")
    seconds, values = by_epoch["seconds"].mean(), by_epoch["value"]
    axes.fill_between(seconds, values.min(), values.max(), color=look["color"], alpha=0.18, linewidth=0)
    axes.plot(seconds, values.mean(), label=who, markersize=5, linewidth=1.8, **look)


def _scale(axes: Axes, seconds_end: Sequence[float]) -> None:
    axes.set_xlabel("training time", fontsize=style.NORMAL)
    if max(seconds_end) > FAR * min(seconds_end) > 0:
        axes.set_xscale("log")
        style.log_axis(axes.xaxis, words.seconds, "training time")
        return
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: words.seconds(value)))


def _title(frame: pd.DataFrame, measure: str) -> str:
    best = curves.best(frame, measure)
    value = [end.value for end in curves.ends(frame, measure)[best].values()]
    return f"{best} ends with the best mean {measure}, {words.number(sum(value) / len(value))}"


def table(frame: pd.DataFrame, *, measure: str | None) -> pd.DataFrame:
    """The last point of each training: who, repeat, seconds, and the measure."""
    found = curves.ends(frame, measure or "")
    return pd.DataFrame(
        [
            {
                "who": who,
                "repeat": str(repeat),
                "seconds": words.seconds(end.seconds),
                str(measure): words.number(end.value, 4),
            }
            for who, each in found.items()
            for repeat, end in each.items()
        ]
    )


def _first(frame: pd.DataFrame) -> str | None:
    return next(iter(curves.measures(frame)), None)


register(
    Chart(
        "quality_seconds",
        "Quality against training time",
        draw,
        table,
        (Control("measure", "which measure of quality to draw", curves.measures, _first),),
        rows="curves",
    )
)
