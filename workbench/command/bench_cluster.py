"""The command `bench cluster`: a process of its own measures, rows are shown as they come, then the page is written."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from workbench import store
from workbench.analysis import cluster as analysis
from workbench.analysis import formatting
from workbench.bench import screen
from workbench.measure import loads
from workbench.reports import cluster as reports
from workbench.sweeps import run_folder

console = Console()
PARTS = {"computing": "computing", "network": "messages", "waiting": "waiting"}
"""Words for the parts of a predicted step, by what their column says."""
PROGRAM = (sys.executable, "-m", "workbench.cluster.bench")


def run(folder: Path, runs: Path, quick: bool, streamed: int | None, command: str = "") -> None:
    """Measure into the folder what it has not yet, and say what was found; `streamed` is a number of generated rows."""
    arguments = [*PROGRAM, str(folder), str(runs), str(streamed or ("quick" if quick else "all"))]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=loads.measuring_environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            console.print(describe_record(json.loads(line)), markup=False, highlight=False, soft_wrap=True)
    if process.returncode:
        raise run_folder.RunError(f"The measuring ended with status {process.returncode}; its logs are in {runs}.")
    frame = store.CLUSTER.frame(store.CLUSTER.read(folder))
    screen.console.print(screen.goals_table(analysis.list_targets(frame)))
    for processes, ratio in analysis.steps_of(frame).ratios:
        typer.echo(
            f"{formatting.format_count(processes, 'trainer')} here: a step takes {ratio:.2f} x what is predicted"
        )
    typer.echo(f"Page: {reports.write(folder, command)}")


def describe_record(row: dict[str, Any]) -> str:
    """Return the row, said in a line."""
    if row["part"] == "bytes":
        return (
            f"table of {row['features']:,} rows: {row['bytes_moved']:,.0f} bytes a step, {row['ratio']:.3f} of numbers "
            f"and values of the {row['touched']:,.0f} touched rows; {row['rows_made']:,} rows were made"
        )
    if row["part"] == "step":
        parts = [(name, row[f"seconds_{part}"]) for part, name in PARTS.items() if row[f"seconds_{part}"] is not None]
        told = ", ".join(f"{name} {1e3 * seconds:.3g}" for name, seconds in parts)
        return f"{row['what']}: {1e3 * row['seconds_step']:.3g} ms{f' ({told})' if told else ''}"
    if row["status"] != "ok":
        return f"{row['what']}: {row['reason']}"
    limit, resident = (f"{row[name] / 2**20:,.0f} MiB" for name in ("bytes_limit", "bytes_resident"))
    return (
        f"{row['what']}: {row['rows_trained']:,} rows trained; a process may have {limit} of its own, the largest was "
        f"{resident} with its libraries. AUC {row['quality']:.3f}, {row['seconds_all']:,.0f} s"
    )
