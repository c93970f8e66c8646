"""A benchmark in a terminal: a progress line while it runs, then how it ended and the goals."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from workbench.bench.configurations import Cell
from workbench.bench.runner import Outcome, Runner

console = Console()


def run(runner: Runner, cells: Sequence[Cell], starts: Sequence[str] = ()) -> Outcome:
    """Run with a progress line; Ctrl-C ends the run, what is finished stays."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=console) as bar:
        task = bar.add_task("starting", total=len(cells))
        runner.told = lambda what, done, total: bar.update(task, description=escape(what), completed=done, total=total)
        outcome = runner.run(cells, starts)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(outcome.counts.items())) or "nothing new"
    reused = f"; {outcome.reused} cells found done" if outcome.reused else ""
    ended = "stopped" if outcome.stopped else "finished"
    console.print(f"{ended}: {outcome.done} cells, {counts}{reused}. Rows: {runner.rows_file}", highlight=False)
    return outcome


def goals_table(goals: Sequence[tuple]) -> Table:
    """Return goals as (what, wanted, measured, met)."""
    table = Table()
    for heading in ("goal", "wanted", "measured", ""):
        table.add_column(heading, overflow="fold")
    for what, wanted, measured, met in goals:
        sign = {True: "met", False: "missed", None: "-"}[met]
        table.add_row(escape(what), wanted, escape(measured), sign, style={False: "yellow", True: "green"}.get(met))
    return table
