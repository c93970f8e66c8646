"""The command `bench cluster`: a process of its own measures, rows are shown as they come, then the chart is drawn."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workbench import store
from workbench.measure import blas
from workbench.reports import cluster as reports

console = Console()
PROGRAM = (sys.executable, "-m", "workbench.cluster.bench")


def run(folder: Path, quick: bool, streamed: int | None) -> None:
    """Measure into the folder, and say what was found; with `streamed` of so many generated rows alone."""
    folder.mkdir(parents=True, exist_ok=True)
    arguments = [*PROGRAM, str(folder), str(streamed or ("quick" if quick else "all"))]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=blas.own_environment()) as process:
        assert process.stdout is not None
        rows = [told(json.loads(line)) for line in process.stdout]
    if process.returncode:
        raise RuntimeError(f"The measuring ended with status {process.returncode}; its logs are in {folder}.")
    if streamed:
        return
    console.print(table(rows))
    path, sentence = reports.write(folder)
    console.print(f"{sentence} Chart: {path}", markup=False, highlight=False, soft_wrap=True)


def told(row: dict[str, Any]) -> dict[str, Any]:
    """The row, said in a line."""
    if row["part"] == "bytes":
        console.print(
            f"table of {row['features']:,} rows: {row['bytes_moved']:,.0f} bytes a step, {row['ratio']:.3f} of numbers "
            f"and values of the {row['touched']:,.0f} touched rows; {row['rows_made']:,} rows were made",
            highlight=False,
        )
    if row["part"] == "rows":
        whole, limit, peak = (f"{row[name] / 2**20:,.0f} MiB" for name in ("bytes_data", "bytes_limit", "bytes_peak"))
        said = row["reason"].rstrip(".") or "within the limit"
        console.print(
            f"{row['rows_trained']:,} rows trained; all are {whole}, a process may own {limit} and owned {peak} at "
            f"most: {said}. AUC {row['quality']:.3f}, {row['seconds_all']:,.0f} s",
            highlight=False,
        )
    return row


def table(rows: list[dict[str, Any]]) -> Table:
    """The time of a step, measured and predicted."""
    shown = Table("machines", "measured, ms a step", "predicted, ms", "of it network", "MB moved")
    steps: dict[int, dict[bool, dict[str, Any]]] = {}
    for row in store.CLUSTER.frame(rows).to_dict("records"):
        if row["part"] == "step":
            steps.setdefault(row["machines"], {})[row["is_measured"]] = row
    for machines, known in sorted(steps.items()):
        cells = [f"{1e3 * known[True]['seconds_step']:.3g}" if True in known else ""]
        if guess := known.get(False):
            cells += [f"{1e3 * guess[name]:.3g}" for name in ("seconds_step", "seconds_network")]
            cells.append(f"{guess['bytes_moved'] / 1e6:.3g}")
        shown.add_row(str(machines), *cells)
    return shown
