"""Shared parts of the charts of benchmark rows: how a candidate looks, titles, controls for task and width."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbench.analysis import bench, formatting
from workbench.plots import style
from workbench.plots.chart import Control

FAMILIES = {
    "ours": style.CONTENDERS["ours", "csr"],
    "scipy": style.CONTENDERS["vendor", "csr"],
    "torch": ("#CC79A7", "s"),
    "tensorflow": ("#E69F00", "D"),
    "blas": style.CONTENDERS["dense", "dense"],
    "numpy": ("#009E73", "^"),
    "numba": ("#B22222", "*"),
    "cusparse": ("#8C6D31", "<"),
    "cusparse_anew": ("#C9A96A", "d"),
    "cupyx": ("#56B4E9", ">"),
    "torch_cuda": ("#7A5195", "p"),
    "cublas": ("#555555", "h"),
    "cublas_tf32": ("#999999", "X"),
}
"""Colour and marker by who computes; no two share either, so that a mark means the same in every chart."""

NAMES = {"scipy": "SciPy", "torch": "PyTorch (MKL)", "tensorflow": "TensorFlow", "blas": "dense BLAS", "numpy": "NumPy"}
NAMES |= {"numba": "plain Numba"}
NAMES |= {"cusparse": "cuSPARSE", "cusparse_anew": "cuSPARSE, made anew", "cupyx": "cupyx"}
NAMES |= {"torch_cuda": "PyTorch (CUDA)", "cublas": "dense cuBLAS", "cublas_tf32": "dense cuBLAS, TF32"}
ALL = "all"


def family(row: Mapping[str, Any]) -> str:
    """Ours, or the library of a competitor.

    >>> family({"side": "rival", "contender": "torch EmbeddingBag"})
    'torch'
    """
    return "ours" if row["side"] == "ours" else row["contender"].replace(".", " ").split()[0]


def look(row: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments for `Axes.plot`: competitors are hollow."""
    colour, marker = FAMILIES.get(family(row), (style.GREY, "x"))
    return {"color": colour, "marker": marker, "markerfacecolor": colour if row["side"] == "ours" else "white"}


def measured(frame: pd.DataFrame, task: str | None = None) -> list[bench.Record]:
    """Return the rows of configurations that have a time, of one task or all."""
    rows = (row for rows in bench.group_by_configuration(frame, task) for row in rows)
    return [row for row in rows if row["status"] == "ok" and row["seconds"] and row["width"]]


def tasks(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the tasks of a frame, those with most rows first."""
    measured_tasks = [row["task"] for row in measured(frame)]
    return tuple(sorted(dict.fromkeys(measured_tasks), key=lambda task: -measured_tasks.count(task)))


def task_control() -> Control:
    """Chooses a task; at first the one with most rows."""
    return Control("task", "what is computed", tasks, _first_task)


def _first_task(frame: pd.DataFrame) -> str | None:
    """Return the first task of a frame, or None."""
    return next(iter(tasks(frame)), None)


def finish(figure: Figure, axes: Axes, title: str, rows: Sequence[bench.Record], more: str) -> None:
    """The finding as title, what is held fixed below it, the legend under the axes."""
    width = figure.get_figwidth()
    figure.suptitle(style.wrapped(title, int(10 * width)), x=0.01, ha="left", fontsize=style.LARGE, fontweight="bold")
    machines, threads = ({row[name] for row in rows if row[name] is not None} for name in ("machine", "threads"))
    on = ", ".join(sorted(machines)) or "machine unknown"
    count = " or ".join(map(str, sorted(threads))) or "?"
    devices = sorted({row["device"] for row in rows} - {"cpu"})
    caches = {row["cache"] for row in rows if row["cache"]}
    at = [
        f"on {formatting.join_items(devices)}" if devices else f"{count} threads",
        *(f"cache {cache}" for cache in sorted(caches)),
    ]
    fixed = "; ".join([more, "float32", *at, on])
    fixed = style.wrapped(fixed, int(13 * width))
    axes.set_title(fixed, loc="left", fontsize=style.SMALL, color=style.GREY)
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=style.SMALL)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns = 3 if width > 7 else 1
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=style.SMALL, frameon=False)
