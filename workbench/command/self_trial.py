"""The command `bench self`: parts of the self-trial with a progress line, their outcomes as a table, then the page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from workbench import store
from workbench.analysis import self_trial as analysis
from workbench.bench.self_trial import parts
from workbench.measure import machine
from workbench.reports import self_trial as reports
from workbench.sweeps import run_folder

console = Console()


def run(names: Sequence[str], folder: Path, seconds_budget: float, command: str = "") -> None:
    """Run the parts, print what each found, and write the page where there are outcomes."""
    parts.chosen(names)
    folder.mkdir(parents=True, exist_ok=True)
    run_folder.replace_file(folder / run_folder.MACHINE, json.dumps(machine.describe_machine(), indent=1))
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=1.0)
        told = lambda what, share: bar.update(task, description=escape(what), completed=share)  # noqa: E731
        for name, rows in parts.run(names, folder, seconds_budget, told):
            if rows:
                console.print(table(name, rows))
    if store.is_stored(folder / store.SELF.file):
        console.print(f"Page: {reports.write(folder, command)}", highlight=False)
    else:
        console.print("Noise is recorded. Next: workbench bench self coverage power", highlight=False)


def table(name: str, rows: Sequence[dict[str, Any]]) -> Table:
    """Return the outcomes of a part that something was wanted of."""
    frame = store.SELF.frame(rows)
    shown = Table(title=f"{name}: {parts.PARTS[name].what}", title_justify="left")
    for heading in ("what", "condition", "wanted", "measured", ""):
        shown.add_column(heading, overflow="fold")
    for found in analysis.criteria(frame):
        sign = "-" if found.met is None else "met" if found.met else "missed"
        style = None if found.met is None else "green" if found.met else "yellow"
        shown.add_row(*map(escape, (found.what, found.condition, found.wanted, found.measured, sign)), style=style)
    return shown
