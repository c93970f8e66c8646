"""The time of a step on 1 to 256 machines: predicted by the cost model, and measured where there were processes."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.analysis.cluster import Steps, steps_of
from benchmarks.plots import register_chart
from workbench.analysis.configurations import Record
from workbench.plots import style
from workbench.plots.chart import message

PREDICTED, MEASURED = "#0072B2", "#D55E00"


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Draw milliseconds of a step against the number of machines, predicted and measured; return the sentence below."""
    steps = steps_of(frame)
    if not steps.machines:
        return message(figure, "No step was predicted: run python -m benchmarks cluster.")
    axes = figure.add_subplot()
    axes.plot(*_points(steps.machines), color=PREDICTED, marker=".", label="predicted: machines of one core each")
    if steps.machines[0]["machines"] == 1:
        alone = 1e3 * steps.machines[0]["seconds_step"]
        axes.axhline(alone, color=style.GREY, linestyle="--", linewidth=1.2, label="predicted: one machine")
    if steps.here:
        label = f"predicted: processes of one machine with {steps.here[0]['cores']} cores"
        axes.plot(*_points(steps.here), "s", color=PREDICTED, fillstyle="none", markersize=11, label=label)
    if steps.measured:
        axes.plot(*_points(steps.measured), "o", color=MEASURED, label="measured: processes of that machine")
    _scale(axes, [row["machines"] for row in steps.machines])
    figure.legend(loc="outside lower center", ncols=2, fontsize=style.SMALL, frameon=False)
    figure.suptitle("When a second machine pays", x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    return sentence(steps)


def _scale(axes: Axes, counts: list[int]) -> None:
    """Set logarithmic axes with plain numbers, and a tick for each count of machines."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("machines, or processes of one, each with a trainer and a shard", fontsize=style.NORMAL)
    axes.set_ylabel("ms a step", fontsize=style.NORMAL)
    axes.grid(visible=True, color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def sentence(steps: Steps) -> str:
    """Return a sentence on the number of machines from which on a step is faster than on one, and the model's error."""
    alone = next((row["seconds_step"] for row in steps.machines if row["machines"] == 1), None)
    faster = [row["machines"] for row in steps.machines if alone is not None and row["seconds_step"] < alone]
    best = min(steps.machines, key=lambda row: row["seconds_step"])
    if faster:
        said = f"A step is predicted to be faster than on one machine from {min(faster)} on, fastest on "
        said += f"{best['machines']} ({1e3 * best['seconds_step']:.3g} ms)."
    else:
        said = "A step is predicted to be slower on any number of machines than on one."
    ratios = [f"{ratio:.2g}" for _, ratio in steps.ratios]
    counts = ", ".join(str(count) for count, _ in steps.ratios)
    checked = f"Checked on one machine: measured / predicted is {', '.join(ratios)} with {counts} processes."
    return f"{said} {checked}" if ratios else said


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return (machines, how it is known, milliseconds of a step) as text, measured ones first."""
    steps = steps_of(frame)
    named = {"measured": steps.measured, "predicted here": steps.here, "predicted": steps.machines}
    cells = [
        (str(row["machines"]), how, f"{1e3 * row['seconds_step']:.3g} ms")
        for how, rows in named.items()
        for row in rows
    ]
    return pd.DataFrame(cells, columns=("machines", "how", "a step"))


def _points(rows: list[Record]) -> tuple[list[int], list[float]]:
    """Return ([number of machines], [milliseconds of a step]) of the records, in their order."""
    return [row["machines"] for row in rows], [1e3 * row["seconds_step"] for row in rows]


register_chart(__name__, "When a second machine pays", rows="cluster")
