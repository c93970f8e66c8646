"""The time of a step on 1 to 256 machines: predicted by the cost model, and measured where there were processes."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from workbench.analysis.cells import Row, records
from workbench.plots import style
from workbench.plots.chart import Chart, message, register

PREDICTED, MEASURED = "#0072B2", "#D55E00"


def draw(frame: pd.DataFrame, figure: Figure) -> str:
    """Milliseconds of a step against machines: dots are measured, the line is a prediction."""
    predicted, measured = _rows(frame, False), _rows(frame, True)
    if not predicted:
        return message(figure, "No step was predicted: run workbench bench cluster.")
    axes = figure.add_subplot()
    axes.plot(
        *_points(predicted), color=PREDICTED, marker=".", label="predicted for machines, each with a network card"
    )
    if measured:
        axes.plot(*_points(measured), "o", color=MEASURED, label="measured, processes of one machine on loopback")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("machines, each with a trainer and a shard", fontsize=style.NORMAL)
    axes.set_ylabel("ms a step", fontsize=style.NORMAL)
    axes.grid(visible=True, color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, fontsize=style.SMALL, frameon=False)
    figure.suptitle("When a second machine pays", x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    return sentence(predicted, measured)


def sentence(predicted: list[Row], measured: list[Row]) -> str:
    """From how many machines on a step is predicted to be faster than on one, and how far off the model was."""
    alone = next((row["seconds_step"] for row in predicted if row["machines"] == 1), None)
    faster = [row["machines"] for row in predicted if alone is not None and row["seconds_step"] < alone]
    best = min(predicted, key=lambda row: row["seconds_step"])
    if faster:
        said = f"A step is predicted to be faster than on one machine from {min(faster)} on, fastest on "
        said += f"{best['machines']} ({1e3 * best['seconds_step']:.3g} ms)."
    else:
        said = "A step is predicted to be slower on any number of machines than on one."
    known = {row["machines"]: row["seconds_step"] for row in predicted}
    ratios = [f"{row['seconds_step'] / known[row['machines']]:.2g}" for row in measured if row["machines"] in known]
    counts = ", ".join(str(row["machines"]) for row in measured)
    return f"{said} Measured / predicted at {counts} processes: {', '.join(ratios)}." if ratios else said


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """The numbers behind it."""
    cells = [
        (str(row["machines"]), "measured" if is_measured else "predicted", f"{1e3 * row['seconds_step']:.3g} ms")
        for is_measured in (True, False)
        for row in _rows(frame, is_measured)
    ]
    return pd.DataFrame(cells, columns=("machines", "how", "a step"))


def _rows(frame: pd.DataFrame, is_measured: bool) -> list[Row]:
    kept = [row for row in records(frame) if row["part"] == "step" and row["status"] == "ok"]
    kept = [row for row in kept if row["is_measured"] == is_measured]
    return sorted(kept, key=lambda row: row["machines"])


def _points(rows: list[Row]) -> tuple[list[int], list[float]]:
    return [row["machines"] for row in rows], [1e3 * row["seconds_step"] for row in rows]


register(Chart("cluster_steps", "When a second machine pays", draw, table, rows="cluster"))
