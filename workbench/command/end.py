"""The command `bench end`: cases are run with a progress line, then the page is written."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from workbench import store
from workbench.analysis import end as analysis
from workbench.bench.end.files import Case
from workbench.bench.end.runner import Runner
from workbench.reports import end as reports

console = Console()


def run(cases: Sequence[Case], only: Sequence[str], folder: Path, command: str) -> bool:
    """Measure the cases into the folder, print the ratios, write the page; False if Ctrl-C stopped it before."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=1.0)
        told = lambda what, share: bar.update(task, description=escape(what), completed=share)  # noqa: E731
        is_whole = Runner(folder, told).run(cases, only)
        if is_whole:
            bar.update(task, description="finished", completed=1.0)
    if store.is_stored(folder / store.END.file):
        records = store.END.read(folder)
        console.print(ratios_table(records))
        console.print(analysis.summary(records), highlight=False)
        console.print(f"Page: {reports.write(folder, command)}", highlight=False)
    return is_whole


def ratios_table(records: Sequence[analysis.Record]) -> Table:
    """Return the seconds of the project and of the soonest competitor, warm and cold, a line for each case."""
    shown = Table(*reports.COLUMNS)
    for case, own in analysis.cases_of(records).items():
        for start in analysis.STARTS:
            shown.add_row(*map(Text, reports.line(case, own, start)))
    return shown
