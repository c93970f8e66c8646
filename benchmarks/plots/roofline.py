"""Speed against arithmetic intensity, under the roofs that this machine's memory was measured to have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.analysis import bench
from benchmarks.plots import register_chart
from benchmarks.plots import style as bench_style
from workbench.analysis import formatting
from workbench.plots import style
from workbench.plots.chart import Control, message

MIB = 2**20
ROW = 256
"""Bytes of the rows of the gather roofs."""

FLOPS_A_BYTE = 0.5
"""Operations a byte of a product with float32 rows: a multiply and an add for each value of 4 bytes."""


def draw(frame: pd.DataFrame, figure: Figure, *, task: str | None, width: str) -> str:
    """Draw speed against arithmetic intensity under the measured roofs; return the sentence below the chart.

    Both axes are logarithmic; one mark for each record of the task at `width` ("all" or a number as text), competitors
    hollow.
    """
    rows = _rows(frame, task, width)
    if not rows:
        return message(figure, f"No configuration of {task} has a time and an operation to count.")
    axes = figure.add_subplot()
    seen = set()
    for row in rows:
        family = bench_style.family(row)
        label = None if family in seen else ("ours" if family == "ours" else bench_style.NAMES.get(family, family))
        seen.add(family)
        size: dict[str, Any] = {
            "markersize": 7 if family == "ours" else 6,
            "linestyle": "",
            "alpha": 0.9,
            "markeredgewidth": 1.2,
        }
        axes.plot([_intensity(row)], [_speed(row)], label=label, **bench_style.candidate_look(row), **size)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _roofs(axes, frame, rows)
    style.log_axis(axes.xaxis, formatting.format_number, "operations for each byte that must move (flop/B)")
    style.log_axis(axes.yaxis, lambda value: f"{formatting.format_number(value / 1e9)}", "speed (Gflop/s)")
    title, sentence = _finding(rows, task)
    shown = "all widths" if width == bench_style.ALL else f"N {width}"
    measured = bool(_streams(frame) or _gathers(frame))
    roofs = f"; roofs measured in the same run; gather roofs: rows of {ROW} B" if measured else ""
    bench_style.finish_bench_chart(figure, axes, title, rows, f"{task}; {shown}{roofs}")
    return sentence


def _rows(frame: pd.DataFrame, task: str | None, width: str) -> list[bench.Record]:
    """Return the records of a task and width with a time and an operation count, without BLAS."""
    rows = bench_style.measured(frame, task)
    wanted = [row for row in rows if width in (bench_style.ALL, str(row["width"]))]
    return [row for row in wanted if row["flops"] and bench_style.family(row) != "blas"]  # BLAS counts zeros as work


def _intensity(row: bench.Record) -> float:
    """Return the operations per byte of compulsory traffic of a record."""
    return row["flops"] / row["bytes_compulsory"]


def _speed(row: bench.Record) -> float:
    """Return the floating-point operations per second of a record."""
    return row["flops"] / row["seconds"]


def _roofs(axes: Axes, frame: pd.DataFrame, rows: Sequence[bench.Record]) -> None:
    """Draw streaming rates as sloped lines and gather rates as horizontal ones, with the rates in the legend."""
    x = np.array([min(map(_intensity, rows)) / 1.5, max(map(_intensity, rows)) * 1.5])
    for name, rate, dash in _streams(frame):
        axes.plot(x, rate * x, color="#222222", linewidth=1.2, linestyle=dash, label=f"stream, {name}: {_rate(rate)}")
    for name, rate, dash in _gathers(frame):
        label = f"gather, {name}: {_rate(rate)}"
        axes.axhline(FLOPS_A_BYTE * rate, color="#7a5195", linewidth=1.2, linestyle=dash, label=label)
    axes.set_xlim(*x)


def _rate(rate: float) -> str:
    """Return bytes per second as text, "12 GB/s"."""
    return f"{formatting.format_bytes(rate)}/s"


DASHES = ("-", (0, (5, 2)), ":")


def _levels(rates: dict[int, float]) -> list[tuple[str, float, object]]:
    """Return (name such as "64 MiB", rate, line style) for the largest and the two smallest table sizes.

    `rates` is {bytes of the table: bytes per second}; sizes below 1 MiB are ignored.
    """
    sizes = sorted((size for size in rates if size >= MIB), reverse=True)
    picked = dict.fromkeys([sizes[0], sizes[-2:][0], sizes[-1]]) if sizes else {}
    return [(f"{size // MIB} MiB", rates[size], dash) for size, dash in zip(picked, DASHES, strict=False)]


def _streams(frame: pd.DataFrame) -> list[tuple[str, float, object]]:
    """Return (name, bytes per second, line style) of the streaming bandwidth at up to three table sizes."""
    rates: dict[int, float] = {}
    for row in _bandwidths(frame):
        if row["level"] != "gather":
            rates[row["bytes_table"]] = max(rates.get(row["bytes_table"], 0.0), row["bytes_per_second"])
    return _levels(rates)


def _gathers(frame: pd.DataFrame) -> list[tuple[str, float, object]]:
    """Return (name, bytes per second, line style) of gathering rows of `ROW` bytes at up to three table sizes."""
    gathers = [row for row in _bandwidths(frame) if row["level"] == "gather" and row["bytes_row"] == ROW]
    return _levels({row["bytes_table"]: row["bytes_per_second"] for row in gathers})


def _bandwidths(frame: pd.DataFrame) -> list[bench.Record]:
    """Return the newest benchmark records of the task "bandwidth" that have a rate."""
    rows = bench.records(bench.newest_records(frame))
    return [row for row in rows if row["task"] == "bandwidth" and row["bytes_per_second"]]


def _finding(rows: Sequence[bench.Record], task: str | None) -> tuple[str, str]:
    """Return (title, sentence) on the share of the bound reached and the fastest record.

    `rows` are those of the benchmark task `task`, at least one; the share is the geometric mean of this project's
    records.
    """
    shares = [row["bound_share"] for row in rows if row["side"] == "ours" and row["bound_share"]]
    best = max(rows, key=_speed)
    fastest = f"the fastest mark is {best['candidate']} with {formatting.format_number(_speed(best) / 1e9)} Gflop/s"
    if not shares:
        return (
            f"{task}: speed under the machine's roofs",
            f"In {task} {fastest}, at {bench.describe_configuration(best)}.",
        )
    mean = f"{100 * (bench.geometric_mean(shares) or 0.0):.0f} %"
    title = f"{task}: ours reaches {mean} of the bound (geometric mean)"
    return (
        title,
        f"In {task} ours reaches {mean} of the measured bound; {fastest}, at {bench.describe_configuration(best)}.",
    )


def table(frame: pd.DataFrame, *, task: str | None, width: str) -> pd.DataFrame:
    """Return every mark as text: configuration, time, intensity, speed, rate and share of the bound.

    `task` is the name of a benchmark task, None for all; `width` is "all" or a number as text.
    """
    return pd.DataFrame([_described(row) for row in _rows(frame, task, width)])


def _described(row: bench.Record) -> dict[str, str]:
    """Return configuration, candidate, time, intensity, speed, rate and share of the bound as texts, by column."""
    share = row["bound_share"]
    return {
        "configuration": bench.describe_configuration(row),
        "candidate": row["candidate"],
        "time": formatting.format_seconds(row["seconds"]),
        "flop/B": formatting.format_number(_intensity(row)),
        "Gflop/s": formatting.format_number(_speed(row) / 1e9),
        "bytes a second": _rate(row["bytes_per_second"]) if row["bytes_per_second"] else "",
        "share of the bound": f"{100 * share:.0f} % ({row['bound_by']})" if share else "",
    }


def _widths(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return "all" and the widths in the records, ascending, as text."""
    return (bench_style.ALL, *map(str, sorted({row["width"] for row in bench_style.measured(frame)})))


register_chart(
    __name__,
    "Speed under the machine's roofs",
    (bench_style.task_control(), Control("width", "which width N", _widths, bench_style.ALL)),
    rows="bench",
)
