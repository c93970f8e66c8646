"""Style of the charts of benchmarks: a colour and a marker for each library, and what these charts have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.analysis import bench
from workbench.analysis import formatting
from workbench.plots.chart import Control
from workbench.plots.style import CANDIDATES, GREY, SMALL, add_title_and_grid

FAMILIES = {
    "ours": CANDIDATES["ours", "csr"],
    "scipy": CANDIDATES["vendor", "csr"],
    "torch": ("#CC79A7", "s"),
    "tensorflow": ("#E69F00", "D"),
    "blas": CANDIDATES["dense", "dense"],
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
    """Return "ours" for a benchmark record of the project, else the name of the competitor's library.

    >>> family({"side": "competitor", "candidate": "torch EmbeddingBag"})
    'torch'
    """
    return "ours" if row["side"] == "ours" else row["candidate"].replace(".", " ").split()[0]


def candidate_look(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments of `Axes.plot` for a benchmark record; competitors have hollow markers."""
    colour, marker = FAMILIES.get(family(row), (GREY, "x"))
    return {"color": colour, "marker": marker, "markerfacecolor": colour if row["side"] == "ours" else "white"}


def measured(frame: pd.DataFrame, task: str | None = None) -> list[bench.Record]:
    """Return the benchmark records with a time and a width, of one task or (None) of all."""
    rows = (row for rows in bench.group_by_configuration(frame, task) for row in rows)
    return [row for row in rows if row["status"] == "ok" and row["seconds"] and row["width"]]


def tasks(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the tasks of the benchmark records that have a time and a width, those with most records first."""
    measured_tasks = [row["task"] for row in measured(frame)]
    return tuple(sorted(dict.fromkeys(measured_tasks), key=lambda task: -measured_tasks.count(task)))


def task_control() -> Control:
    """Return the control that selects a task; initially the one with most records."""
    return Control("task", "what is computed", tasks)


def finish_bench_chart(figure: Figure, axes: Axes, title: str, rows: Sequence[bench.Record], more: str) -> None:
    """Add title, a subtitle with `more`, threads, cache and machines, grid, and the legend below the axes."""
    machines, threads = ({row[name] for row in rows if row[name] is not None} for name in ("machine", "threads"))
    on = ", ".join(sorted(machines)) or "machine unknown"
    count = " or ".join(map(str, sorted(threads))) or "?"
    devices = sorted({row["device"] for row in rows} - {"cpu"})
    caches = {row["cache"] for row in rows if row["cache"]}
    at = [
        f"on {formatting.join_items(devices)}" if devices else f"{count} threads",
        *(f"cache {cache}" for cache in sorted(caches)),
    ]
    framed(figure, axes, title, "; ".join([more, "float32", *at, on]))


def framed(figure: Figure, axes: Axes, title: str, below: str) -> None:
    """Add title, subtitle `below`, grid, and a legend below the axes for what has a label."""
    add_title_and_grid(figure, axes, title, below)
    axes.margins(y=0.1)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns = 3 if figure.get_figwidth() > 7 else 1
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=SMALL, frameon=False)
