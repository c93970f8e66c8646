"""The page of what training on several machines moves and takes: goals, the chart, every number, from rows alone."""

import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from workbench import plots, store
from workbench.analysis import cluster as analysis
from workbench.analysis import formatting
from workbench.analysis.configurations import Record
from workbench.reports import page
from workbench.reports.captions import folder_to_type, written, written_frame

FILE = "bench-cluster.md"
CHART = "cluster-steps.svg"
FIGURE_INCHES = (9.0, 6.0)
HERE = ("processes here: measured", "predicted", "measured / predicted")
MET = {True: "met", False: "missed", None: ""}


def write(folder: str | Path, command: str = "") -> Path:
    """Write the page and its chart beside the rows of a folder; returns its path."""
    folder = Path(folder)
    frame = written_frame(store.CLUSTER.frame(store.CLUSTER.read(folder)))
    rows = analysis.newest_records(frame)
    content = {
        "goals": page.table_of(
            ("goal", "wanted", "measured", "outcome"),
            ([goal.what, goal.wanted, goal.measured, MET[goal.met]] for goal in analysis.list_targets(frame)),
        ),
        "bytes": page.table_of(
            ("rows of the table", "touched a step", "bytes a step", "numbers and values", "ratio", "rows made"),
            map(_of_bytes, analysis.newest_records(frame, "bytes")),
        ),
        "sentence": _charted(frame, folder),
        "chart": CHART,
        "steps": page.table_of(
            ("machines", "predicted", "of it messages", "of it waiting", "bytes moved", *HERE),
            _of_steps(analysis.steps_of(frame)),
        ),
        "rows": page.table_of(
            ("training", "files", "limit a process", "resident at most", "asked for", "AUC", "making, training", "end"),
            map(_of_rows, analysis.newest_records(frame, "rows")),
        ),
        "machine": page.table_of(("what", "value"), page.flat(written(_machine(rows)))),
        "command": command or f"workbench bench cluster --results {folder_to_type(folder)}",
    }
    path = folder / FILE
    path.write_text(page.templates().get_template("cluster.md.jinja").render(content), "utf-8")
    return path


def _charted(frame: Any, folder: Path) -> str:
    """Return the sentence of the chart, which is drawn where a step is known; empty if none is."""
    if not analysis.steps_of(frame).machines:
        return ""
    figure = Figure(figsize=FIGURE_INCHES)
    sentence = plots.draw("cluster_steps", frame, figure)
    page.save(figure, folder / CHART)
    return sentence


def _of_bytes(row: Record) -> list[str]:
    """Return a byte measurement's row in the table."""
    counts = [f"{row[name]:,.0f}" for name in ("features", "touched", "bytes_moved", "bytes_least")]
    return [*counts, f"{row['ratio']:.3f}", f"{row['rows_made']:,}"]


def _of_steps(steps: analysis.Steps) -> list[list[str]]:
    """Return the table rows of step times by the number of machines: measured, network, waiting, ratios."""
    here, measured = ({row["machines"]: row["seconds_step"] for row in side} for side in (steps.here, steps.measured))
    return [
        [
            str(row["machines"]),
            *(_seconds(row[name]) for name in ("seconds_step", "seconds_network", "seconds_waiting")),
            formatting.format_bytes(row["bytes_moved"]),
            *(_seconds(known.get(row["machines"])) for known in (measured, here)),
            _ratio(measured.get(row["machines"]), here.get(row["machines"])),
        ]
        for row in steps.machines
    ]


def _seconds(seconds: float | None) -> str:
    """Return seconds as text, "" for None."""
    return "" if seconds is None else formatting.format_seconds(seconds)


def _ratio(measured: float | None, predicted: float | None) -> str:
    """Return measured by predicted as text, "" if either is None."""
    return "" if measured is None or predicted is None else f"{measured / predicted:.2f}"


def _of_rows(row: Record) -> list[str]:
    """Return a memory measurement's row in the table."""
    sizes = ("bytes_data", "bytes_limit", "bytes_resident", "bytes_asked")
    seconds = ", ".join(formatting.format_seconds(row[name]) for name in ("seconds_made", "seconds_all"))
    quality = "" if row["quality"] is None else f"{row['quality']:.4f}"
    told = ["" if row[name] is None else f"{row[name] / 2**20:,.0f} MiB" for name in sizes]
    named = re.sub(r"\d{5,}", lambda count: f"{int(count[0]):,}", row["what"])
    return [named, *told, quality, seconds, row["reason"]]


def _machine(rows: list[Record]) -> dict[str, Any]:
    """Return machine and versions of the newest record; {} without records."""
    return {"machine": rows[-1]["machine"], "versions": rows[-1]["versions"]} if rows else {}
